"""Live links: two networks of this machine, and the emulated link between them."""

from __future__ import annotations

import atexit
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
from typing import Any, Iterator, Mapping, Sequence, Union

from ._control import Control, escape
from ._directory import PrivateDirectory
from ._program import program
from .errors import EndedError, FidelityError, LongwireError, ProgramNotFoundError, StartError
from .node import Node
from .report import Report

Value = Union[str, int, float, bool, "os.PathLike[str]", Sequence[str], None]
"""The value of an option, as on the command line; ``True`` for one without a value."""

_ADDRESSES = {"near": ("10.77.0.1", "fd77:4c57::1"), "far": ("10.77.0.2", "fd77:4c57::2")}

_START_SECONDS = 30.0
"""Time for a link to start on a busy machine."""

_END_SECONDS = 20.0
"""Time for a link to end: the program gives processes half a second after SIGTERM."""

_UNMET = 3
"""The program's exit code for a requirement that is not met."""

_AGENT = Path(__file__).parent / "_agent.py"

_open: "weakref.WeakSet[LiveLink]" = weakref.WeakSet()


def link(
    *,
    topology: str | os.PathLike[str] | None = None,
    up: Mapping[str, Value] | None = None,
    down: Mapping[str, Value] | None = None,
    **options: Value,
) -> LiveLink:
    """Starts a link between two networks, near and far.

    ``options`` are those of ``longwire exec``, with ``_`` for ``-``: ``delay="20ms"``,
    ``rate="10mbit"``, ``preset="lte"``, ``seed=7``, ``capture="trace"``, ``require=...``. ``up``
    and ``down`` have options of one direction, near to far and far to near. ``topology`` is a
    file with two ports, or its text.

    :raises StartError: if an option is wrong, or the system forbids user namespaces.
    """
    words: list[str] = []
    for side, chosen in (("up", up), ("down", down)):
        words += command_words({f"{side}_{name}": value for name, value in (chosen or {}).items()})
    return LiveLink(words + command_words(options), topology)


def command_words(options: Mapping[str, Value]) -> list[str]:
    """Returns options as words of a command line."""
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


class Direction:
    """One direction of a link, or several links whose names fit a pattern."""

    def __init__(self, owner: LiveLink, name: str) -> None:
        self._owner = owner
        self.name = name

    def __repr__(self) -> str:
        return f"<longwire {self.name}>"

    def set(self, **options: Value) -> None:
        """Changes options, between two frames. What is not named stays.

        :raises RefusedError: if a value is wrong. Nothing is changed then.
        """
        values = {name.replace("_", "-"): _text(value) for name, value in options.items()}
        self._owner._control.ask("PATCH", f"/links/{escape(self.name)}", values)

    def stats(self) -> dict[str, Any]:
        """Returns counters so far."""
        path = f"/stats?match={escape(self.name)}"
        answer: dict[str, Any] = self._owner._control.ask("GET", path)
        return answer


def _text(value: Value) -> Any:
    return os.fspath(value) if isinstance(value, os.PathLike) else value


class LiveLink:
    """A running link. Leaving its ``with`` block ends it, with all processes in its networks.

    The link also ends with this process, however that ends.
    """

    def __init__(self, words: Sequence[str], topology: str | os.PathLike[str] | None) -> None:
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._report: Report | None = None
        self.name = "link"
        """The link's name; ``*`` if a topology has several."""
        self._directory = PrivateDirectory()
        self._control = Control(self._directory.file("control.sock"))
        self.near: Node
        """The network at the near end."""
        self.far: Node
        """The network at the far end."""
        try:
            self._start(list(words), topology)
        except BaseException:
            self._directory.remove()
            raise
        self.name = self._only_name()
        self.upward = Direction(self, f"{self.name}.up")
        """The direction from near to far."""
        self.downward = Direction(self, f"{self.name}.down")
        """The direction from far to near."""
        _open.add(self)

    def __repr__(self) -> str:
        return f"<longwire link {self.name}: {'ended' if self._report else 'running'}>"

    def __enter__(self) -> LiveLink:
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
            # The first error of the block is the one to look at.
            if error is None:
                raise

    def set(self, **options: Value) -> None:
        """Changes options of both directions: ``link.set(delay="80ms", loss="1%")``.

        :raises RefusedError: if a value is wrong. Nothing is changed then.
        """
        Direction(self, self.name).set(**options)

    def down(self) -> None:
        """Loses what arrives and what is queued, until :meth:`up`."""
        self.change(down=[self.name])

    def pause(self) -> None:
        """Holds what arrives, as far as the queue has room, until :meth:`up`."""
        self.change(pause=[self.name])

    def up(self) -> None:
        """Ends :meth:`down` and :meth:`pause`."""
        self.change(up=[self.name])

    def change(self, **change: Any) -> dict[str, Any]:
        """Makes a change as ``longwire ctl apply`` does: fields ``set``, ``up``, ``down``,
        ``pause``, ``move``, ``add``, ``remove``, and ``at`` or ``in`` (here ``in_``).

        :raises RefusedError: if anything is wrong with it. Nothing is changed then.
        """
        body = {name.rstrip("_"): value for name, value in change.items()}
        answer: dict[str, Any] = self._control.ask("POST", "/changes", body)
        return answer

    def scenario(self, events: Sequence[tuple[str, Mapping[str, Value]]]) -> None:
        """Plans changes from now on: ``[("1s", {"delay": "80ms"}), ("2s", {"rate": "1mbit"})]``.

        :raises RefusedError: if a value is wrong. The events before it stay planned.
        """
        for delay, options in events:
            values = {name.replace("_", "-"): _text(value) for name, value in options.items()}
            self.change(in_=delay, set={self.name: values})

    def stats(self) -> dict[str, Any]:
        """Returns counters of both directions so far."""
        answer: dict[str, Any] = self._control.ask("GET", "/stats")
        return answer

    def stream(self, every: str = "1s") -> Iterator[dict[str, Any]]:
        """Yields counters and rates at intervals of 50 ms to 1 h, until the link ends."""
        return self._control.events(f"/stats/stream?every={escape(every)}")

    @property
    def report(self) -> Report:
        """The report: so far while the link runs, and of all of it afterwards."""
        if self._report is not None:
            return self._report
        data = dict(self._control.ask("GET", "/report"))
        # It has the ports; counters of links are asked for by name.
        data["links"] = [
            {**found[side], "name": f"{found['name']}.{side}"}
            for found in self._links()
            for side in ("up", "down")
            if found.get(side)
        ]
        return Report(data)

    def _links(self) -> Iterator[dict[str, Any]]:
        """Yields all links, a page at a time."""
        after: str | None = ""
        while after is not None:
            page = self._control.ask("GET", f"/links?limit=1000&after={escape(after)}")
            yield from page["links"]
            after = page["next"]

    def _repr_html_(self) -> str:
        """The report so far, for Jupyter."""
        return self.report._repr_html_()

    def close(self) -> None:
        """Ends the link and the processes in its networks. Further calls do nothing.

        :raises FidelityError: if the option ``require`` was given and is not met.
        :raises LongwireError: if the link had ended early.
        """
        if os.getpid() != self._owner:
            # A forked process must not end the link of its parent.
            return
        with self._lock:
            if self._report is not None or self._process is None:
                return
            self._end()

    def _start(self, words: list[str], topology: str | os.PathLike[str] | None) -> None:
        """Starts the program, with a process of this package in each network."""
        channels = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2)]
        # The processes in the networks watch it: a copy of a channel in a forked process
        # would keep a link that nothing uses any more.
        parent = os.pidfd_open(os.getpid())
        passed = [theirs.fileno() for _ours, theirs in channels] + [parent]
        agents = [
            [sys.executable, "-I", "-S", str(_AGENT), str(theirs.fileno()), str(parent), side]
            for side, (_ours, theirs) in zip(("near", "far"), channels)
        ]
        command = [program(), "exec", "--quiet", *words]
        command += ["--control", self._directory.file("control.sock")]
        command += ["--report", self._directory.file("report.json"), "--peer-wait", "0s"]
        command += ["--peer", _shell(agents[1]), *self._topology(topology), "--", *agents[0]]
        self._process: subprocess.Popen[bytes] | None = None
        with open(self._directory.file("stderr"), "wb") as stderr:
            try:
                # A session of its own: Ctrl-C is for this process, which ends the link.
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=stderr,
                    stderr=stderr,
                    pass_fds=passed,
                    start_new_session=True,
                )
            except (FileNotFoundError, PermissionError) as error:
                raise ProgramNotFoundError(f"the program cannot be started: {error}") from error
            finally:
                os.close(parent)
                for _ours, theirs in channels:
                    theirs.close()
        self.near, self.far = (
            Node(side, _ADDRESSES, ours)
            for side, (ours, _theirs) in zip(("near", "far"), channels)
        )
        try:
            deadline = time.monotonic() + _START_SECONDS
            for node, (ours, _theirs) in zip((self.near, self.far), channels):
                node._started(self._agent(ours, deadline))
        except BaseException:
            self._kill()
            raise

    def _agent(self, channel: socket.socket, deadline: float) -> int:
        """Waits for the process in a network, and returns its number."""
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
        return int(hello.split()[1])

    def _topology(self, topology: str | os.PathLike[str] | None) -> list[str]:
        """Returns the topology's file, which is written if its text is given."""
        if topology is None:
            return []
        text = os.fspath(topology)
        if "\n" not in text:
            return [text]
        path = self._directory.file("network.toml")
        Path(path).write_text(text, encoding="utf-8")
        return [path]

    def _only_name(self) -> str:
        try:
            links = self._control.ask("GET", "/links?limit=2")["links"]
        except BaseException:
            self._kill()
            self._directory.remove()
            raise
        return str(links[0]["name"]) if len(links) == 1 else "*"

    def _end(self) -> None:
        """Ends the program, and reads its report."""
        process = self._process
        assert process is not None
        # The end of the process in near is the end of the command of `exec`.
        self.near._closed()
        self.far._closed()
        try:
            code = process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._kill()
            raise EndedError(f"the link has not ended in {_END_SECONDS:.0f} s") from None
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

    def _read_report(self) -> None:
        try:
            with open(self._directory.file("report.json"), encoding="utf-8") as file:
                self._report = Report(json.load(file))
        except (OSError, ValueError):
            # The program was killed.
            self._report = None

    def _messages(self) -> str:
        """Returns what the program has said, without its prefix."""
        try:
            text = Path(self._directory.file("stderr")).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
        left_out = ("the peer does not", "For more information, try")
        lines = [line for line in text.splitlines() if not line.startswith(left_out)]
        return "\n".join(lines).strip().removeprefix("error: ")

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        self.near._closed()
        self.far._closed()


def _shell(words: Sequence[str]) -> str:
    """Returns words as a command of the shell that replaces the shell."""
    return "exec " + shlex.join(words)


@atexit.register
def _close_all() -> None:
    """Ends links that are left when the interpreter ends."""
    for left in list(_open):
        try:
            left.close()
        except LongwireError:
            pass
