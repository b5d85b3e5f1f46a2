"""Writes pcapng files with one interface and nanosecond stamps (draft-ietf-opsawg-pcapng)."""

from __future__ import annotations

import struct
from typing import BinaryIO

_SECTION = 0x0A0D0D0A
_INTERFACE = 1
_STATISTICS = 5
_FRAME = 6

_ETHERNET = 1
_NANOSECONDS = 9

_OPTION_END = b"\0\0\0\0"
_FRAME_HEAD = struct.Struct("<IIIIIII")
_FRAME_FLAGS = [
    struct.pack("<HHI", 2, 4, direction) + _OPTION_END for direction in (1, 2)
]
"""Option with the direction of a frame: inbound or outbound."""


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + _padded(value)


def _time(stamp_ns: int) -> bytes:
    return struct.pack("<II", stamp_ns >> 32, stamp_ns & 0xFFFF_FFFF)


class Writer:
    """Writes the blocks of a capture."""

    def __init__(self, file: BinaryIO, name: str, snap: int) -> None:
        self._file = file
        version = struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)
        self._block(_SECTION, version + _option(4, b"longwire") + _OPTION_END)
        options = _option(2, name.encode()) + _option(9, bytes([_NANOSECONDS])) + _OPTION_END
        self._block(_INTERFACE, struct.pack("<HHI", _ETHERNET, 0, snap) + options)

    def frame(self, stamp_ns: int, kept: bytes | bytearray, length: int, sent: bool) -> None:
        """Writes a frame; ``kept`` is its beginning."""
        options = _FRAME_FLAGS[sent]
        padding = -len(kept) % 4
        size = _FRAME_HEAD.size + len(kept) + padding + len(options) + 4
        head = _FRAME_HEAD.pack(
            _FRAME, size, 0, stamp_ns >> 32, stamp_ns & 0xFFFF_FFFF, len(kept), length
        )
        tail = b"\0" * padding + options + struct.pack("<I", size)
        self._file.write(b"".join((head, kept, tail)))

    def finish(self, stamp_ns: int, frames: int, lost: int) -> None:
        """Writes the statistics."""
        options = _option(3, _time(stamp_ns))
        options += _option(4, struct.pack("<Q", frames + lost))
        options += _option(5, struct.pack("<Q", lost)) + _OPTION_END
        self._block(_STATISTICS, struct.pack("<I", 0) + _time(stamp_ns) + options)

    def _block(self, kind: int, body: bytes) -> None:
        size = len(body) + 12
        self._file.write(struct.pack("<II", kind, size) + body + struct.pack("<I", size))
