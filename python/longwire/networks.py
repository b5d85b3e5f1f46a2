"""Live networks: a topology with a host at each port."""

from __future__ import annotations

import ipaddress
import json
import os
import subprocess
from typing import Any, Iterator, Mapping, Sequence

from ._control import escape
from ._program import program
from .errors import LongwireError, ProgramNotFoundError, StartError
from .node import Addresses, Node
from .run import Direction, Run, Value, command_words, option_values


def network(
    topology: str | os.PathLike[str],
    *,
    addresses: Mapping[str, str | Sequence[str]] | None = None,
    **options: Value,
) -> LiveNetwork:
    """Starts the network of a topology, with a host at each port.

    :param topology: a file, or its text.
    :param addresses: addresses of hosts by port: ``{"core": "10.2.0.1/24"}``, or a list of
        several. By default, the host of the Nth port has 10.77.0.N and fd77:4c57::N; ports
        ``near`` and ``far`` come first.
    :param options: those of ``longwire exec``, with ``_`` for ``-``: ``seed=7``,
        ``scenario="evening.toml"``, ``capture="trace"``, ``require=...``.
    :raises StartError: if the topology, an address or an option is invalid, or the system
        forbids user namespaces.
    :raises ProgramNotFoundError: if the program is missing or cannot be started.
    """
    given = {
        port: [chosen] if isinstance(chosen, str) else list(chosen)
        for port, chosen in (addresses or {}).items()
    }
    words = [f"--address={port}={address}" for port, few in given.items() for address in few]
    return LiveNetwork(words + command_words(options), topology, given)


class LiveNetwork(Run):
    """A running network. Leaving its ``with`` block ends it and all processes of its hosts.

    It also ends when this process exits or is killed.
    """

    def __init__(
        self,
        words: Sequence[str],
        topology: str | os.PathLike[str],
        addresses: Mapping[str, Sequence[str]],
    ) -> None:
        hosts = _hosts(_ports(topology), addresses)
        super().__init__(words, topology, hosts)

    def _title(self) -> str:
        return f"network of {', '.join(self._nodes)}"

    @property
    def nodes(self) -> dict[str, Node]:
        """Networks of the hosts by port."""
        return dict(self._nodes)

    def node(self, port: str) -> Node:
        """Returns the network of the host at a port, like ``net[port]``.

        :raises KeyError: if the port does not exist.
        """
        return self[port]

    def __getitem__(self, port: str) -> Node:
        try:
            return self._nodes[port]
        except KeyError:
            known = ", ".join(self._nodes)
            raise KeyError(f"no port named '{port}'; known: {known}") from None

    def __contains__(self, port: object) -> bool:
        return port in self._nodes

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def links(self, pattern: str = "*") -> Direction:
        """Returns the links that match a pattern, for repeated changes and queries."""
        return Direction(self, pattern)

    def set(self, links: str, **options: Value) -> None:
        """Changes options of links: ``net.set("adsl1.up", rate="1mbit")``.

        :param links: name or pattern; ``*`` and ``?`` are wildcards, a suffix ``.up`` or
            ``.down`` selects one direction.
        :raises RefusedError: if a value is invalid, or no link matches; nothing is changed.
        """
        Direction(self, links).set(**options)

    def off(self, links: str) -> None:
        """Drops arriving and queued frames of links until :meth:`on`."""
        self.change(off=[links])

    def pause(self, links: str) -> None:
        """Holds arriving frames of links, up to their queue limits, until :meth:`on`."""
        self.change(pause=[links])

    def on(self, links: str) -> None:
        """Ends :meth:`off` and :meth:`pause`."""
        self.change(on=[links])

    def scenario(self, events: Sequence[tuple[str, Mapping[str, Mapping[str, Value]]]]) -> None:
        """Schedules changes from now: ``[("1s", {"adsl*": {"delay": "80ms"}})]``.

        :raises RefusedError: if a value is invalid. Earlier events stay scheduled.
        """
        for delay, changes in events:
            values = {links: option_values(options) for links, options in changes.items()}
            self.change(in_=delay, set=values)

    def stats(self, links: str = "*") -> dict[str, Any]:
        """Returns the counters of links."""
        answer: dict[str, Any] = self._control.ask("GET", f"/stats?match={escape(links)}")
        return answer


def _ports(topology: str | os.PathLike[str]) -> list[str]:
    """Returns the port names of a topology in file order."""
    text = os.fspath(topology)
    try:
        checked = subprocess.run(
            [program(), "check", "--json", "/dev/stdin" if "\n" in text else text],
            input=text.encode() if "\n" in text else None,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            check=False,
        )
    except (FileNotFoundError, PermissionError) as error:
        raise ProgramNotFoundError(f"cannot start the program: {error}") from error
    try:
        answer = json.loads(checked.stdout)
    except ValueError:
        raise LongwireError(checked.stderr.decode(errors="replace").strip()) from None
    if not answer["fine"]:
        problems = answer["problems"]
        if "\n" in text:
            problems = [{**found, "file": "topology"} for found in problems]
        raise StartError.of(problems)
    return [name for name, _opens in answer["summary"]["ports"]]


def _hosts(ports: list[str], given: Mapping[str, Sequence[str]]) -> dict[str, Addresses]:
    """Returns the hosts in the program's order."""
    # Same selection of near and far as `longwire exec`.
    near = "near" if "near" in ports else next((port for port in ports if port != "far"), "far")
    far = "far" if "far" in ports else next((port for port in ports if port != near), near)
    first = dict.fromkeys((near, far))
    ordered = [*first, *(port for port in ports if port not in first)]
    hosts: dict[str, Addresses] = {}
    for number, port in enumerate(ordered, 1):
        usual: Addresses = (f"10.77.0.{number}", f"fd77:4c57::{number:x}")
        hosts[port] = _first_of_each(given[port]) if given.get(port) else usual
    return hosts


def _first_of_each(addresses: Sequence[str]) -> Addresses:
    """Returns the first IPv4 and the first IPv6 address."""
    found: dict[int, str] = {}
    for text in addresses:
        try:
            address = ipaddress.ip_interface(text)
        except ValueError:
            # The program refuses it with a reason.
            continue
        found.setdefault(address.version, str(address.ip))
    return found.get(4), found.get(6)
