"""What a picture's own bytes say of it: type and size. Pure."""

from __future__ import annotations

import dataclasses

MAX_SIDE = 16_384
"""Pixels of a side; more than any model draws, and more than clients can show."""


@dataclasses.dataclass(frozen=True)
class Picture:
    """A picture: its bytes, media type, and width and height in pixels."""

    content: bytes
    media_type: str
    width: int
    height: int

    @property
    def file_name(self) -> str:
        """What it is called as a file."""
        return f"picture.{self.media_type.removeprefix('image/').replace('jpeg', 'jpg')}"


def read_picture(content: bytes) -> Picture | None:
    """Return a PNG, JPEG, GIF or WebP; None for what is none, is cut off, or has an odd size.

    The bytes between header and end are not looked at.
    """
    for media_type, read in (
        ("image/png", _png),
        ("image/jpeg", _jpeg),
        ("image/gif", _gif),
        ("image/webp", _webp),
    ):
        size = read(content)
        if size is not None:
            width, height = size
            if 0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE:
                return Picture(content, media_type, width, height)
    return None


_Size = tuple[int, int]


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")


def _png(data: bytes) -> _Size | None:
    begins = data[:8] == b"\x89PNG\r\n\x1a\n" and data[12:16] == b"IHDR"
    if not (begins and data.rstrip(b"\0\r\n")[-8:] == b"IEND\xaeB`\x82"):
        return None
    return _big(data[16:20]), _big(data[20:24])


def _gif(data: bytes) -> _Size | None:
    if data[:6] not in {b"GIF87a", b"GIF89a"} or not data.rstrip(b"\0\r\n").endswith(b";"):
        return None
    return _little(data[6:8]), _little(data[8:10])


# Start-of-frame markers of JPEG; between them lie tables.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_SCAN = 0xDA


def _jpeg(data: bytes) -> _Size | None:
    if data[:3] != b"\xff\xd8\xff" or not data.rstrip(b"\0\r\n").endswith(b"\xff\xd9"):
        return None
    position = 2
    while position + 9 <= len(data) and data[position] == 0xFF:
        marker = data[position + 1]
        if marker == 0xFF:  # filling
            position += 1
        elif marker in _FRAMES:
            return _big(data[position + 7 : position + 9]), _big(data[position + 5 : position + 7])
        elif marker == _SCAN:
            return None
        else:
            position += 2 + _big(data[position + 2 : position + 4])
    return None


def _webp(data: bytes) -> _Size | None:
    # The file may not be shorter than it says, but for a byte of padding.
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP" or len(data) + 1 < 8 + _little(data[4:8]):
        return None
    kind = data[12:16]
    if kind == b"VP8X" and len(data) >= 30:
        return 1 + _little(data[24:27]), 1 + _little(data[27:30])
    if kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        return _little(data[26:28]) & 0x3FFF, _little(data[28:30]) & 0x3FFF
    if kind == b"VP8L" and data[20:21] == b"\x2f" and len(data) >= 25:
        bits = _little(data[21:25])
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    return None
