"""Live links: two networks on this machine, joined by an emulated link."""

from __future__ import annotations

import os
from typing import Any, Mapping, Sequence

from .capture import SNAP, Capture
from .node import Addresses, Node
from .run import Direction, Run, Value, command_words, option_values

_HOSTS: Mapping[str, Addresses] = {
    "near": ("10.77.0.1", "fd77:4c57::1"),
    "far": ("10.77.0.2", "fd77:4c57::2"),
}


def link(
    *,
    topology: str | os.PathLike[str] | None = None,
    up: Mapping[str, Value] | None = None,
    down: Mapping[str, Value] | None = None,
    **options: Value,
) -> LiveLink:
    """Starts a link between two networks, near and far.

    ``options`` are those of ``longwire exec``, with ``_`` for ``-``: ``delay="20ms"``,
    ``rate="10mbit"``, ``preset="lte"``, ``seed=7``, ``capture="trace"``, ``require=...``.
    ``up`` and ``down`` are options of one direction: near to far and far to near. ``topology``
    is a file with two ports, or its text; use :func:`network` for more ports.

    :raises StartError: if an option is invalid, or the system forbids user namespaces.
    :raises ProgramNotFoundError: if the program is missing or cannot be started.
    """
    words: list[str] = []
    for side, chosen in (("up", up), ("down", down)):
        words += command_words({f"{side}_{name}": value for name, value in (chosen or {}).items()})
    return LiveLink(words + command_words(options), topology)


class LiveLink(Run):
    """A running link. Leaving its ``with`` block ends it and all processes in its networks.

    It also ends when this process exits or is killed.
    """

    def __init__(self, words: Sequence[str], topology: str | os.PathLike[str] | None) -> None:
        self.name: str = "link"
        """Name of the link; ``*`` if a topology has several."""
        self.near: Node
        """Network at the near end."""
        self.far: Node
        """Network at the far end."""
        self.upward: Direction
        """Direction from near to far."""
        self.downward: Direction
        """Direction from far to near."""
        super().__init__(words, topology, _HOSTS)

    def _started(self) -> None:
        self.near, self.far = self._nodes["near"], self._nodes["far"]
        links = self._control.ask("GET", "/links?limit=2")["links"]
        self.name = str(links[0]["name"]) if len(links) == 1 else "*"
        self.upward = Direction(self, f"{self.name}.up")
        self.downward = Direction(self, f"{self.name}.down")

    def _title(self) -> str:
        return "link" if self.name == "link" else f"link {self.name}"

    def set(self, **options: Value) -> None:
        """Changes options of both directions: ``link.set(delay="80ms", loss="1%")``.

        :raises RefusedError: if a value is invalid; nothing is changed.
        """
        Direction(self, self.name).set(**options)

    def off(self) -> None:
        """Drops arriving and queued frames until :meth:`on`."""
        self.change(off=[self.name])

    def pause(self) -> None:
        """Holds arriving frames, up to the queue limit, until :meth:`on`."""
        self.change(pause=[self.name])

    def on(self) -> None:
        """Ends :meth:`off` and :meth:`pause`."""
        self.change(on=[self.name])

    def scenario(self, events: Sequence[tuple[str, Mapping[str, Value]]]) -> None:
        """Schedules changes from now: ``[("1s", {"delay": "80ms"}), ("2s", {"rate": "1mbit"})]``.

        :raises RefusedError: if a value is invalid. Earlier events stay scheduled.
        """
        for delay, options in events:
            self.change(in_=delay, set={self.name: option_values(options)})

    def stats(self) -> dict[str, Any]:
        """Returns the counters of both directions."""
        answer: dict[str, Any] = self._control.ask("GET", "/stats")
        return answer

    def capture(self, path: str | os.PathLike[str], at: str = "near", snap: int = SNAP) -> Capture:
        """Captures the frames sent and received at one end of the link from now on, until the
        capture is closed or the link ends. See :meth:`Node.capture`.

        :param path: pcapng file to write.
        :param at: the end of the link to capture: ``near`` or ``far``.
        :param snap: bytes to keep per frame.
        :raises CaptureError: if the end is unknown, or the file cannot be written.
        """
        return super().capture(path, at, snap)
