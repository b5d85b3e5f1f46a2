"""Captures during a run."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType

from .errors import CaptureError

SNAP = 262_144
"""Default number of bytes kept per frame: the maximum length of a super-packet."""

_SECONDS = 30.0
"""Timeout in seconds for the start and the end of a capture."""

_PROCESS = Path(__file__).parent / "_capture.py"


class Capture:
    """A capture of one network of a run. Leaving its ``with`` block ends it.

    It also ends with the run, and when this process exits or is killed. At most 16 MiB of frames
    are buffered; frames beyond that count as lost.
    """

    def __init__(self, name: str, process: int, path: str, snap: int) -> None:
        self.path: str = path
        """Path of the file."""
        self.frames: int = 0
        """Frames in the file, once the capture has ended."""
        self.lost: int = 0
        """Frames lost, once the capture has ended."""
        self._owner = os.getpid()
        self._lock = threading.Lock()
        if not 64 <= snap <= SNAP:
            raise CaptureError("snap", f"{snap} is outside 64..{SNAP}", f"omit it for {SNAP}")
        try:
            file = open(path, "wb")
        except OSError as error:
            remedy = "use an existing, writable directory"
            raise CaptureError("path", f"{path}: {error.strerror}", remedy) from error
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with file, theirs:
            parent = os.pidfd_open(os.getpid())
            try:
                passed = [file.fileno(), theirs.fileno(), parent]
                words = [str(process), *map(str, passed), str(snap), name]
                # Use a separate session, so that Ctrl-C reaches only this process, which then ends
                # the capture.
                self._process: subprocess.Popen[bytes] | None = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-B", str(_PROCESS), *words],
                    stdin=subprocess.DEVNULL,
                    pass_fds=passed,
                    start_new_session=True,
                )
            except BaseException:
                self._control.close()
                raise
            finally:
                os.close(parent)
        try:
            self._await_ready(name)
        except BaseException:
            self._kill()
            raise

    def __repr__(self) -> str:
        return f"<longwire capture {self.path}: {'running' if self._process else self.frames}>"

    def __enter__(self) -> Capture:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except CaptureError:
            # Do not mask the error of the block.
            if error is None:
                raise

    def close(self) -> None:
        """Ends the capture; all frames so far are in the file. Idempotent.

        :raises CaptureError: if the file could not be written.
        """
        if os.getpid() != self._owner:
            # A forked process must not end its parent's capture.
            return
        with self._lock:
            if self._process is None:
                return
            try:
                self._finish()
            finally:
                self._kill()

    def _await_ready(self, name: str) -> None:
        answer = self._receive()
        if answer == b"ready":
            return
        reason = os.strerror(int(answer)) if answer else "its process has ended"
        raise CaptureError("capture", f"cannot capture frames of {name}: {reason}", None)

    def _finish(self) -> None:
        try:
            self._control.send(b"end")
        except OSError:
            # It ended early, and reported why.
            pass
        answer = self._receive()
        if not answer:
            raise CaptureError("capture", "its process was killed", None)
        result = json.loads(answer)
        self.frames, self.lost = result.get("frames", 0), result.get("lost", 0)
        if "errno" in result:
            reason = f"{self.path}: {os.strerror(result['errno'])}"
            raise CaptureError("path", reason, "name a file on a disk with room")

    def _receive(self) -> bytes:
        """Returns the next message of the process; empty if it has ended."""
        self._control.settimeout(_SECONDS)
        try:
            return self._control.recv(4096)
        except ConnectionError:
            return b""
        except socket.timeout:
            raise CaptureError("capture", f"no answer within {_SECONDS:.0f} s", None) from None

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is None or os.getpid() != self._owner:
            return
        self._control.close()
        try:
            # Its response was its last action.
            process.wait(1)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
