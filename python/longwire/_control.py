"""HTTP and JSON over the Unix socket of the control API."""

from __future__ import annotations

import http.client
import json
import socket
from typing import Any, Iterator
from urllib.parse import quote

from .errors import EndedError, LongwireError, RefusedError

TIMEOUT = 30.0
"""Response timeout in seconds."""


class _UnixConnection(http.client.HTTPConnection):
    """An HTTP connection over a Unix socket."""

    def __init__(self, path: str, timeout: float | None) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Control:
    """Client of a run's control API. Thread-safe."""

    def __init__(self, path: str) -> None:
        self._path = path

    def _open(
        self, method: str, path: str, body: Any, timeout: float | None
    ) -> tuple[_UnixConnection, http.client.HTTPResponse]:
        connection = _UnixConnection(self._path, timeout)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, f"/v1{path}", body=text)
            return connection, connection.getresponse()
        except socket.timeout as error:
            connection.close()
            message = f"{method} {path}: no answer within {timeout:.0f} s"
            raise LongwireError(message) from error
        except (ConnectionError, FileNotFoundError, http.client.HTTPException) as error:
            connection.close()
            raise EndedError("the link has ended") from error

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Sends a request, and returns the JSON response.

        :raises RefusedError: if the run refuses it.
        :raises EndedError: if the run has ended.
        """
        connection, response = self._open(method, path, body, TIMEOUT)
        try:
            text = response.read()
        except socket.timeout as error:
            message = f"{method} {path}: no answer within {TIMEOUT:.0f} s"
            raise LongwireError(message) from error
        except (ConnectionError, http.client.HTTPException) as error:
            raise EndedError("the link has ended") from error
        finally:
            connection.close()
        answer = json.loads(text) if text else None
        if response.status >= 400:
            if isinstance(answer, dict):
                raise RefusedError.of(answer)
            raise LongwireError(f"{method} {path}: status {response.status}")
        return answer

    def events(self, path: str) -> Iterator[Any]:
        """Yields the JSON values of a stream of server-sent events until the run ends."""
        connection, response = self._open("GET", path, None, None)
        try:
            if response.status >= 400:
                raise RefusedError.of(json.loads(response.read()))
            for line in response:
                if line.startswith(b"data:"):
                    yield json.loads(line[len(b"data:") :])
        except (ConnectionError, http.client.HTTPException):
            return
        finally:
            connection.close()


def escape(name: str) -> str:
    """Escapes a name as a path segment."""
    return quote(name, safe="*")
