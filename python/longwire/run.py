"""Runs of the program."""

from __future__ import annotations

import atexit
import html
import json
import os
import select
import shlex
import socket
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from types import TracebackType
from typing import Any, Iterator, Mapping, Sequence, TypeVar, Union

from ._control import Control, escape
from ._directory import PrivateDirectory
from ._program import program
from .capture import SNAP, Capture
from .errors import (
    CaptureError,
    EndedError,
    FidelityError,
    LongwireError,
    ProgramNotFoundError,
    StartError,
)
from .node import Addresses, Node
from .report import Report

Value = Union[str, int, float, bool, "os.PathLike[str]", Sequence[str], None]
"""Value of an option, as on the command line; ``True`` for a flag."""

_START_SECONDS = 30.0
"""Start timeout in seconds; generous for busy machines."""

_END_SECONDS = 20.0
"""End timeout in seconds; the program waits up to 2 s between SIGTERM and SIGKILL."""

_UNMET = 3
"""Exit code of the program for an unmet requirement."""

_AGENT = Path(__file__).parent / "_agent.py"

_open: "weakref.WeakSet[Run]" = weakref.WeakSet()

_Self = TypeVar("_Self", bound="Run")


def command_words(options: Mapping[str, Value]) -> list[str]:
    """Converts options to command-line words; omits those that are None or False."""
    words: list[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(flag)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            for item in value:
                words.append(f"{flag}={item}")
        else:
            words.append(f"{flag}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
    return words


def option_values(options: Mapping[str, Value]) -> dict[str, Any]:
    """Converts options to the format of the control API."""
    return {
        name.replace("_", "-"): os.fspath(value) if isinstance(value, os.PathLike) else value
        for name, value in options.items()
    }


class Direction:
    """A direction of a link, or several links that match a pattern."""

    def __init__(self, owner: Run, name: str) -> None:
        self._owner = owner
        self.name: str = name
        """Name, such as ``link.up``, or pattern, such as ``adsl*``."""

    def __repr__(self) -> str:
        return f"<longwire {self.name}>"

    def set(self, **options: Value) -> None:
        """Changes options between two frames; other options are unchanged.

        :raises RefusedError: if a value is invalid; nothing is changed.
        """
        self._owner._control.ask("PATCH", f"/links/{escape(self.name)}", option_values(options))

    def stats(self) -> dict[str, Any]:
        """Returns the counters."""
        path = f"/stats?match={escape(self.name)}"
        answer: dict[str, Any] = self._owner._control.ask("GET", path)
        return answer


class Run:
    """A running link or network. Leaving its ``with`` block ends it and all processes in its
    networks.

    It also ends when this process exits or is killed.
    """

    def __init__(
        self,
        words: Sequence[str],
        topology: str | os.PathLike[str] | None,
        hosts: Mapping[str, Addresses],
    ) -> None:
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._report: Report | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._nodes: dict[str, Node] = {}
        self._directory = PrivateDirectory()
        self._control = Control(self._directory.file("control.sock"))
        try:
            self._start(list(words), self._topology(topology), hosts)
            self._started()
        except BaseException:
            self._kill()
            self._directory.remove()
            raise
        _open.add(self)

    def __repr__(self) -> str:
        return f"<longwire {self._title()}: {'running' if self._process else 'ended'}>"

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except LongwireError:
            # Do not mask the error of the block.
            if error is None:
                raise

    def change(self, **change: Any) -> dict[str, Any]:
        """Applies a change like ``longwire ctl apply``.

        The arguments are the fields of the change: ``set``, ``on``, ``off``, ``pause``, ``move``,
        ``add`` and ``remove``. ``at`` schedules the change relative to the start of the run,
        ``in_`` (the field ``in``) relative to now.

        :raises RefusedError: if the change is invalid; nothing is changed.
        """
        body = {name.rstrip("_"): value for name, value in change.items()}
        answer: dict[str, Any] = self._control.ask("POST", "/changes", body)
        return answer

    def stream(self, every: str = "1s") -> Iterator[dict[str, Any]]:
        """Yields counters and rates at an interval of 50 ms to 1 h until the run ends."""
        return self._control.events(f"/stats/stream?every={escape(every)}")

    def capture(self, path: str | os.PathLike[str], at: str, snap: int = SNAP) -> Capture:
        """Captures the frames sent and received by a network from now on, until the capture is
        closed or the run ends. See :meth:`Node.capture`.

        :param path: pcapng file to write.
        :param at: the network to capture: ``near``, ``far``, or the name of a port.
        :param snap: bytes to keep per frame.
        :raises CaptureError: if the network is unknown, or the file cannot be written.
        """
        node = self._nodes.get(at)
        if node is None:
            known = ", ".join(self._nodes)
            raise CaptureError("at", f"no network named '{at}'", f"one of {known}")
        return node.capture(path, snap)

    @property
    def report(self) -> Report:
        """The current report during the run, and the final one afterwards."""
        if self._report is not None:
            return self._report
        data = dict(self._control.ask("GET", "/report"))
        # This report lacks the links, which have a separate route.
        data["links"] = [
            {**found[side], "name": f"{found['name']}.{side}"}
            for found in self._links()
            for side in ("up", "down")
            if found.get(side)
        ]
        return Report(data)

    def close(self) -> None:
        """Ends the run and the processes in its networks. Idempotent.

        :raises FidelityError: if the option ``require`` is not met.
        :raises CaptureError: if a capture could not be completed.
        :raises LongwireError: if the run had ended early.
        """
        if os.getpid() != self._owner:
            # A forked process must not end its parent's run.
            return
        with self._lock:
            if self._report is not None or self._process is None:
                return
            self._end()

    def _title(self) -> str:
        raise NotImplementedError

    def _started(self) -> None:
        """Completes the object once the program runs; subclasses override it."""

    def _links(self) -> Iterator[dict[str, Any]]:
        """Yields all links, page by page."""
        after: str | None = ""
        while after is not None:
            page = self._control.ask("GET", f"/links?limit=1000&after={escape(after)}")
            yield from page["links"]
            after = page["next"]

    def _repr_html_(self) -> str:
        """Returns state, report and figures as HTML."""
        state = "running" if self._process else "ended"
        return f"<p>{html.escape(self._title())}: {state}</p>{self.report._repr_html_()}"

    def _start(self, words: list[str], file: list[str], hosts: Mapping[str, Addresses]) -> None:
        """Starts the program with an agent in each network, near first."""
        channels = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in hosts]
        # The agents also watch this process, because copies of the channels in forked processes
        # would keep an unused run alive.
        parent = os.pidfd_open(os.getpid())
        passed = [theirs.fileno() for _ours, theirs in channels]
        try:
            command = self._command(words, file, dict(zip(hosts, passed)), parent)
            with open(self._directory.file("stderr"), "wb") as stderr:
                # Use a separate session, so that Ctrl-C reaches only this process, which then ends
                # the run.
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=stderr,
                    stderr=stderr,
                    pass_fds=[*passed, parent],
                    start_new_session=True,
                )
        except BaseException as error:
            for ours, _theirs in channels:
                ours.close()
            if isinstance(error, (FileNotFoundError, PermissionError)):
                message = f"cannot start the program: {error}"
                raise ProgramNotFoundError(message) from error
            raise
        finally:
            os.close(parent)
            for _ours, theirs in channels:
                theirs.close()
        self._nodes = {
            name: Node(name, hosts, ours) for name, (ours, _theirs) in zip(hosts, channels)
        }
        deadline = time.monotonic() + _START_SECONDS
        for node, (ours, _theirs) in zip(self._nodes.values(), channels):
            node._started(self._agent(ours, deadline))

    def _command(
        self, words: list[str], file: list[str], channels: Mapping[str, int], parent: int
    ) -> list[str]:
        """Returns the command line of the program. ``channels`` are the agents' sockets by
        network, and ``parent`` is a pidfd of this process.
        """
        (_near, first), *others = (
            (name, [sys.executable, "-I", "-S", str(_AGENT), str(channel), str(parent), name])
            for name, channel in channels.items()
        )
        command = [program(), "exec", "--quiet", *words, "--peer-wait=0s"]
        command += ["--control", self._directory.file("control.sock")]
        command += ["--report", self._directory.file("report.json")]
        for name, agent in others:
            command.append(f"--node={name}={_shell(agent)}" if file else f"--peer={_shell(agent)}")
        return [*command, *file, "--", *first]

    def _agent(self, channel: socket.socket, deadline: float) -> int:
        """Waits for the agent of a network, and returns its process ID."""
        poller = select.poll()
        poller.register(channel, select.POLLIN)
        while not poller.poll(20):
            if self._process is not None and self._process.poll() is not None:
                raise StartError(self._messages())
            if time.monotonic() > deadline:
                raise StartError(f"the link has not started in {_START_SECONDS:.0f} s")
        hello = channel.recv(64)
        if not hello:
            raise StartError(self._messages())
        return int(hello)

    def _topology(self, topology: str | os.PathLike[str] | None) -> list[str]:
        """Returns the arguments for the topology, written to a file if given as text."""
        if topology is None:
            return []
        text = os.fspath(topology)
        if "\n" not in text:
            return [text]
        path = self._directory.file("network.toml")
        Path(path).write_text(text, encoding="utf-8")
        return [path]

    def _end(self) -> None:
        """Ends the program, and reads its report."""
        process = self._process
        assert process is not None
        failed = [error for node in self._nodes.values() for error in node._end_captures()]
        # The agent in near is the command of `exec`, so its end stops the program.
        for node in self._nodes.values():
            node._closed()
        try:
            code = process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._kill()
            raise EndedError(f"the link has not ended in {_END_SECONDS:.0f} s") from None
        except BaseException:
            # On Ctrl-C, end the program here, because no later call does.
            self._kill()
            raise
        finally:
            self._process = None
            _open.discard(self)
            messages = self._messages()
            self._read_report()
            self._directory.remove()
        if code == _UNMET:
            raise FidelityError([messages])
        if code != 0:
            raise EndedError(messages or f"longwire ended with code {code}")
        if failed:
            raise failed[0]

    def _read_report(self) -> None:
        try:
            with open(self._directory.file("report.json"), encoding="utf-8") as file:
                self._report = Report(json.load(file))
        except (OSError, ValueError):
            # The program was killed.
            self._report = None

    def _messages(self) -> str:
        """Returns the program's messages without their prefix."""
        try:
            text = Path(self._directory.file("stderr")).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
        left_out = (" is not listening after ", "For more information, try")
        lines = [line for line in text.splitlines() if not any(word in line for word in left_out)]
        return "\n".join(lines).strip().removeprefix("error: ")

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        for node in self._nodes.values():
            node._closed()


def _shell(words: Sequence[str]) -> str:
    """Returns a shell command that execs ``words``."""
    return "exec " + shlex.join(words)


@atexit.register
def _close_all() -> None:
    """Ends remaining runs when the interpreter exits."""
    for left in list(_open):
        try:
            left.close()
        except LongwireError:
            pass
