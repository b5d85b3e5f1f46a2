"""Captures frames in a network of a run.

Usage: ``python -I -S -B _capture.py PID FILE CONTROL PARENT_PIDFD SNAP NAME``. PID is a process
in the network; FILE, CONTROL and PARENT_PIDFD are descriptors. The script sends ``ready`` or an
errno on CONTROL. A message on CONTROL, the end of the parent, or SIGTERM ends the capture; the
script then sends the counts as a JSON object.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import sys
import time
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from ._enter import enter_network
    from ._pcapng import Writer
else:
    # Run as a script, since importing the package is slow. With -I, the script's directory
    # is not on the path.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from _enter import enter_network
    from _pcapng import Writer

DEVICE = "eth0"

BUFFER_BYTES = 16 << 20
"""Maximum socket buffer in bytes."""

BURST = 256
"""Frames read between checks for requests."""

FLUSH_MS = 500

_ETH_P_ALL = 3
_SOL_PACKET = 263
_PACKET_STATISTICS = 6
_PACKET_AUXDATA = 8
_PACKET_OUTGOING = 4
_SO_RCVBUFFORCE = 33
_SO_TIMESTAMPNS = 35

_AUXILIARY = struct.Struct("=IIIHHHH")
_VLAN_VALID = 1 << 4
_VLAN_TPID_VALID = 1 << 6
_ETHERTYPE_AT = 12
"""Offset of the VLAN tag, after both addresses."""


def open_socket() -> socket.socket:
    """Opens a socket that receives the frames of the device."""
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    try:
        opened.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, BUFFER_BYTES)
    except OSError:
        # The system's limit applies without privileges in the initial user namespace.
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    opened.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    opened.setsockopt(_SOL_PACKET, _PACKET_AUXDATA, 1)
    opened.setblocking(False)
    opened.bind((DEVICE, _ETH_P_ALL))
    return opened


class Reader:
    """Copies frames to the file."""

    def __init__(self, opened: socket.socket, writer: Writer, snap: int) -> None:
        self._socket = opened
        self._writer = writer
        self._buffer = bytearray(snap)
        self._control_bytes = socket.CMSG_SPACE(16) + socket.CMSG_SPACE(_AUXILIARY.size)
        self.frames = 0

    def read(self, frames_max: int, until_ns: float = float("inf")) -> bool:
        """Reads up to ``frames_max`` frames. Returns whether there may be more that arrived by
        ``until_ns``.
        """
        for _ in range(frames_max):
            try:
                length, control, _flags, address = self._socket.recvmsg_into(
                    [self._buffer], self._control_bytes, socket.MSG_TRUNC
                )
            except BlockingIOError:
                return False
            stamp, tag = _read_control(control)
            if stamp > until_ns:
                return False
            kept = self._buffer[: min(length, len(self._buffer))]
            if tag:
                kept[_ETHERTYPE_AT:_ETHERTYPE_AT] = tag
                del kept[len(self._buffer) :]
                length += len(tag)
            self._writer.frame(stamp, kept, length, address[2] == _PACKET_OUTGOING)
            self.frames += 1
        return True

    def lost(self) -> int:
        """Returns the frames dropped by the socket buffer. Reading resets the kernel's counter."""
        counts = self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
        return int(struct.unpack("=II", counts)[1])


def _read_control(control: list[tuple[int, int, bytes]]) -> tuple[int, bytes]:
    """Returns the stamp of a frame in nanoseconds, and the VLAN tag that the kernel removed."""
    stamp, tag = 0, b""
    for level, kind, data in control:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS:
            seconds, nanos = struct.unpack("=qq", data[:16])
            stamp = seconds * 10**9 + nanos
        elif level == _SOL_PACKET and kind == _PACKET_AUXDATA:
            status, *_rest, tci, tpid = _AUXILIARY.unpack(data[: _AUXILIARY.size])
            if status & _VLAN_VALID:
                protocol = tpid if status & _VLAN_TPID_VALID else 0x8100
                tag = struct.pack(">HH", protocol, tci)
    return stamp or time.time_ns(), tag


def capture(reader: Reader, opened: socket.socket, ends: list[int], file: BinaryIO) -> None:
    """Copies frames until one of ``ends`` is readable."""
    poller = select.poll()
    for descriptor in (opened.fileno(), *ends):
        poller.register(descriptor, select.POLLIN)
    written = False
    while True:
        ready = {found for found, _event in poller.poll(FLUSH_MS if written else None)}
        if ready.intersection(ends):
            break
        if ready:
            reader.read(BURST)
            written = True
        elif written:
            file.flush()
            written = False
    until = time.time_ns()
    while reader.read(BURST, until):
        pass


def answer(control: socket.socket, result: dict[str, int]) -> None:
    """Sends the result as JSON, and reads the pending request."""
    control.send(json.dumps(result).encode())
    # An unread request would reset the connection, and lose the response.
    control.recv(64)


def main() -> None:
    process, *numbers, name = sys.argv[1:]
    file_fd, control_fd, parent, snap = map(int, numbers)
    control = socket.socket(fileno=control_fd)
    woken, wake = socket.socketpair()
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGTERM, lambda _number, _frame: None)
    file = open(file_fd, "wb", buffering=1 << 20)
    result: dict[str, int] = {}
    try:
        enter_network(process)
        opened = open_socket()
    except OSError as error:
        control.send(str(error.errno or 1).encode())
        return
    control.send(b"ready")
    try:
        writer = Writer(file, name, snap)
        reader = Reader(opened, writer, snap)
        capture(reader, opened, [control_fd, parent, woken.fileno()], file)
        result = {"frames": reader.frames, "lost": reader.lost()}
        writer.finish(time.time_ns(), **result)
        file.close()
    except OSError as error:
        result["errno"] = error.errno or 1
    try:
        control.setblocking(False)
        answer(control, result)
    except OSError:
        # The parent has ended.
        pass


if __name__ == "__main__":
    main()
