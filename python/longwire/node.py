"""Networks at the ports of a run: processes and sockets."""

from __future__ import annotations

import asyncio
import os
import shlex
import socket as sockets
import subprocess
import sys
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence, Tuple, Union

from .capture import SNAP, Capture
from .errors import CaptureError, EndedError, LongwireError

Words = Union[str, "os.PathLike[str]"]
"""A word of a command."""

_HERE = Path(__file__).parent


Addresses = Tuple[Optional[str], Optional[str]]
"""First IPv4 and first IPv6 address of a host."""


class Node:
    """A network at one end of a link, or at a port of a topology.

    It has the device ``eth0`` and a loopback device. Processes in it resolve the other networks
    by name: ``near`` and ``far``, or the names of ports.
    """

    def __init__(
        self, name: str, addresses: Mapping[str, Addresses], channel: sockets.socket
    ) -> None:
        self.name: str = name
        """``near`` or ``far``, or the name of the port."""
        self._addresses = addresses
        self._channel = channel
        self._process: int | None = None
        self._captures: list[Capture] = []

    @property
    def address(self) -> str:
        """First IPv4 address.

        :raises LongwireError: if it has none.
        """
        return self._address_of(self.name, sockets.AF_INET)

    @property
    def address6(self) -> str:
        """First IPv6 address.

        :raises LongwireError: if it has none.
        """
        return self._address_of(self.name, sockets.AF_INET6)

    def _address_of(self, name: str, family: int) -> str:
        found = self._addresses[name][family == sockets.AF_INET6]
        if found is None:
            version = "IPv6" if family == sockets.AF_INET6 else "IPv4"
            raise LongwireError(f"{name} has no {version} address")
        return found

    def __repr__(self) -> str:
        return f"<longwire network {self.name} {' '.join(filter(None, self._addresses[self.name]))}>"

    def _started(self, process: int) -> None:
        self._process = process

    def _closed(self) -> None:
        for capture in self._captures:
            capture._kill()
        self._process = None
        self._channel.close()

    def _end_captures(self) -> list[CaptureError]:
        """Ends all captures, and returns their errors."""
        failed = []
        for capture in self._captures:
            try:
                capture.close()
            except CaptureError as error:
                failed.append(error)
        return failed

    def capture(self, path: Words, snap: int = SNAP) -> Capture:
        """Captures the frames sent and received by this network from now on, until the capture
        is closed or the run ends::

            with link.far.capture("call.pcapng") as capture:
                ...
            print(capture.frames, capture.lost)

        The file is pcapng with the kernel's nanosecond stamps. As with tcpdump, frames are
        recorded at the network's device: sent frames before the link, received frames after it.
        A super-packet of segmentation offload is one frame.

        :param path: pcapng file to write.
        :param snap: bytes to keep per frame.
        :raises CaptureError: if the file cannot be written.
        """
        if self._process is None:
            raise EndedError("the link has ended")
        started = Capture(self.name, self._process, os.fspath(path), snap)
        self._captures.append(started)
        return started

    def command(self, args: Sequence[Words]) -> list[str]:
        """Returns the command that runs ``args`` in this network, for libraries that start
        processes. The command execs ``args``.
        """
        if self._process is None:
            raise EndedError("the link has ended")
        words = [os.fspath(word) for word in args]
        if not words:
            raise ValueError("the command has no words")
        entered = [sys.executable, "-I", "-S", str(_HERE / "_enter.py"), str(self._process)]
        return entered + words

    def script(self, path: Words, args: Sequence[Words]) -> str:
        """Writes an executable script for libraries that take the path of a program, such as
        Playwright, and returns its path. The script runs ``args`` in this network, followed by
        its own arguments.
        """
        words = " ".join(shlex.quote(word) for word in self.command(args))
        text = f'#!/bin/sh\nexec {words} "$@"\n'
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o700)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        return os.fspath(path)

    def popen(self, args: Words | Sequence[Words], **options: Any) -> subprocess.Popen[Any]:
        """Starts a process in this network, like :class:`subprocess.Popen`.

        The process runs as the caller's user in the caller's directory, and is killed when the
        link ends. With ``shell=True``, ``args`` is a string for the shell.
        """
        return subprocess.Popen(self._words(args, options), **options)

    def run(self, args: Words | Sequence[Words], **options: Any) -> subprocess.CompletedProcess[Any]:
        """Runs a process in this network, like :func:`subprocess.run`."""
        return subprocess.run(self._words(args, options), **options)

    def check_output(self, args: Words | Sequence[Words], **options: Any) -> Any:
        """Runs a process in this network, like :func:`subprocess.check_output`."""
        return subprocess.check_output(self._words(args, options), **options)

    async def create_subprocess_exec(
        self, *args: Words, **options: Any
    ) -> asyncio.subprocess.Process:
        """Starts a process in this network, like :func:`asyncio.create_subprocess_exec`."""
        return await asyncio.create_subprocess_exec(*self.command(args), **options)

    def _words(self, args: Words | Sequence[Words], options: dict[str, Any]) -> list[str]:
        if isinstance(args, (str, os.PathLike)):
            word = os.fspath(args)
            return self.command(["/bin/sh", "-c", word] if options.pop("shell", False) else [word])
        if options.pop("shell", False):
            raise ValueError("shell=True takes a string, not a sequence of words")
        return self.command(args)

    def socket(
        self,
        family: int = sockets.AF_INET,
        type: int = sockets.SOCK_STREAM,
        proto: int = 0,
    ) -> sockets.socket:
        """Creates a socket in this network for use in this process, including with asyncio. It
        takes only addresses; names such as ``far`` are not resolved.
        """
        ours, theirs = sockets.socketpair(sockets.AF_UNIX, sockets.SOCK_STREAM)
        with ours:
            with theirs:
                request = f"socket {int(family)} {int(type)} {proto}".encode()
                try:
                    sockets.send_fds(self._channel, [request], [theirs.fileno()])
                except OSError as error:
                    raise EndedError("the link has ended") from error
            answer, descriptors, _flags, _address = sockets.recv_fds(ours, 64, 1)
        if not answer:
            raise EndedError("the link has ended")
        if not descriptors:
            number = int(answer)
            raise OSError(number, os.strerror(number))
        os.set_inheritable(descriptors[0], False)
        return sockets.socket(fileno=descriptors[0])

    def resolve(self, host: str, family: int = sockets.AF_INET) -> str:
        """Returns the address of a network by name, such as ``far``; other names are returned
        unchanged.

        :raises LongwireError: if the network has no address of this family.
        """
        return self._address_of(host, family) if host in self._addresses else host

    def create_connection(
        self, address: tuple[str, int], timeout: float | None = None
    ) -> sockets.socket:
        """Opens a TCP connection from this network, like :func:`socket.create_connection`. The
        host is the name of a network, such as ``far``, or an address.
        """
        family = sockets.AF_INET6 if ":" in address[0] else sockets.AF_INET
        made = self.socket(family, sockets.SOCK_STREAM)
        try:
            made.settimeout(timeout)
            made.connect((self.resolve(address[0], family), address[1]))
        except BaseException:
            made.close()
            raise
        return made

    def create_server(
        self, address: tuple[str, int] = ("", 0), backlog: int | None = None
    ) -> sockets.socket:
        """Listens on TCP in this network, like :func:`socket.create_server`. Port 0 selects a free
        port.
        """
        family = sockets.AF_INET6 if ":" in address[0] else sockets.AF_INET
        made = self.socket(family, sockets.SOCK_STREAM)
        try:
            made.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
            made.bind((self.resolve(address[0], family), address[1]))
            made.listen() if backlog is None else made.listen(backlog)
        except BaseException:
            made.close()
            raise
        return made
