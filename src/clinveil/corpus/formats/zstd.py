"""Zstandard's frames (RFC 8878), as far as it takes to know whether damage to them can be found out."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

_FRAME, _SKIPPABLE = 0xFD2FB528, 0x184D2A50
_RLE = 1


def has_unchecked_frame(path: Path) -> bool:
    """Whether a frame of the file carries no checksum of its content: then a flipped bit in it may pass unseen.

    Reads headers only. A file that is cut off or malformed is left to the reader, which refuses it.
    """
    with path.open("rb") as file:
        while start := file.read(4):
            magic = int.from_bytes(start, "little")
            if magic & 0xFFFFFFF0 == _SKIPPABLE:
                file.seek(_number(file, 4), 1)
            elif magic != _FRAME:
                return False
            elif not _skip_frame(file):
                return True
    return False


def _skip_frame(file: BinaryIO) -> bool:
    """Go to the end of a frame; whether it has a checksum (section 3.1.1)."""
    descriptor = _number(file, 1)
    single, checked = descriptor >> 5 & 1, bool(descriptor >> 2 & 1)
    content_size = (single, 2, 4, 8)[descriptor >> 6]
    file.seek((1 - single) + (0, 1, 2, 4)[descriptor & 3] + content_size, 1)
    last = 0
    while checked and not last:  # of one without, the rest does not matter
        header = file.read(3)
        if len(header) < 3:
            return True
        block = int.from_bytes(header, "little")
        last, kind, size = block & 1, block >> 1 & 3, block >> 3
        file.seek(1 if kind == _RLE else size, 1)
    file.seek(4, 1)
    return checked


def _number(file: BinaryIO, size: int) -> int:
    return int.from_bytes(file.read(size), "little")
