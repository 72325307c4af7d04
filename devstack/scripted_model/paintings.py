"""Pictures that the scripted model draws: small landscapes as real PNGs.

Pure: the same description always gives the same picture. Words of it that the painter knows, such
as "night", "sea" or "lighthouse", show up in it.
"""

from __future__ import annotations

import functools
import hashlib
import math
import re
import struct
import zlib
from collections.abc import Callable

Colour = tuple[int, int, int]

WIDTH, HEIGHT = 320, 200
_HORIZON = 118
# Each dot is so many pixels wide and high: Python paints slowly.
_DOT = 2
_SKIES: dict[str, tuple[Colour, Colour]] = {
    "night": ((8, 12, 38), (44, 52, 96)),
    "storm": ((52, 58, 70), (120, 126, 134)),
    "evening": ((70, 44, 110), (250, 150, 90)),
    "day": ((92, 160, 226), (214, 234, 246)),
}
_SKY_WORDS = {
    "night": "night|moon|star|dark|midnight",
    "storm": "storm|rain|thunder|grey|gray|fog",
    "evening": "evening|sunset|dusk|dawn|sunrise",
}
_GROUNDS: dict[str, tuple[Colour, Colour]] = {
    "sea": ((28, 92, 140), (12, 46, 88)),
    "snow": ((236, 242, 250), (196, 208, 226)),
    "desert": ((226, 190, 122), (196, 150, 84)),
    "meadow": ((96, 164, 78), (52, 108, 52)),
}
_GROUND_WORDS = {
    "sea": "sea|ocean|wave|ship|boat|harbour|lake|water|lighthouse|island",
    "snow": "snow|winter|ice|polar",
    "desert": "desert|sand|dune|camel",
}


def _matching(description: str, words: dict[str, str], otherwise: str) -> str:
    found = (
        name
        for name, pattern in words.items()
        if re.search(rf"\b(?:{pattern})", description, re.IGNORECASE)
    )
    return next(found, otherwise)


def _mixed(one: Colour, other: Colour, share: float) -> Colour:
    red, green, blue = (
        round(a + (b - a) * max(0.0, min(1.0, share))) for a, b in zip(one, other, strict=True)
    )
    return red, green, blue


@functools.lru_cache(maxsize=64)
def paint(description: str) -> bytes:
    """Return a PNG for a description."""
    seed = hashlib.sha256(description.encode(errors="replace")).digest()
    sky_name = _matching(description, _SKY_WORDS, "day")
    sky = _SKIES[sky_name]
    ground_name = _matching(description, _GROUND_WORDS, "meadow")
    ground = _GROUNDS[ground_name]
    sun_x, sun_y = 40 + seed[0] * 240 // 255, 30 + seed[1] * 40 // 255
    sun: Colour = (244, 244, 220) if sky_name == "night" else (255, 226, 130)
    hill: Colour = _mixed(ground[1], (90 + seed[2] % 60, 90 + seed[3] % 60, 110), 0.5)

    def hill_top(x: int) -> float:
        return _HORIZON - 14 - 22 * abs(math.sin(x / (38 + seed[4] % 30) + seed[5]))

    def colour(x: int, y: int) -> Colour:
        distance = math.hypot(x - sun_x, y - sun_y)
        if y < _HORIZON:
            if ground_name != "sea" and y > hill_top(x):
                return _mixed(hill, ground[0], (y - hill_top(x)) / 60)
            above = _mixed(sky[0], sky[1], y / _HORIZON)
            if sky_name == "night" and (x * 7919 + y * 104729) % 977 == seed[6]:
                return (255, 255, 240)
            if sky_name == "storm":
                return _mixed(above, (230, 230, 235), 0.3 * (math.sin(x / 17 + y / 9) > 0.8))
            return sun if distance < 15 else _mixed(sun, above, (distance - 15) / 26)
        below = _mixed(ground[0], ground[1], (y - _HORIZON) / (HEIGHT - _HORIZON))
        ripple = ground_name == "sea" and math.sin(x / 5 + y * y / 40 + seed[7]) > 0.86
        return _mixed(below, sky[1], 0.45) if ripple else below

    motif, middle = _motif(description), 150 + seed[8] % 60

    def row(y: int) -> bytes:
        colours = (motif(x - middle, y) or colour(x, y) for x in range(0, WIDTH, _DOT))
        return b"\0" + b"".join(bytes(dot) * _DOT for dot in colours)

    return png(WIDTH, HEIGHT, b"".join(row(y) * _DOT for y in range(0, HEIGHT, _DOT)))


def _tower(x: int, y: int) -> Colour | None:
    if 50 <= y < 132 and abs(x) <= 7 + (y - 50) // 16:
        return (208, 60, 56) if (y - 50) // 14 % 2 else (244, 240, 232)
    if 38 <= y < 50 and abs(x) <= 5:
        return (255, 236, 140)
    return (60, 40, 40) if 30 <= y < 38 and abs(x) <= y - 30 else None


def _house(x: int, y: int) -> Colour | None:
    if 78 <= y < 100 and abs(x) <= (y - 78) * 1.6:
        return (150, 62, 48)
    if not (100 <= y < 134 and abs(x) <= 28):
        return None
    if 106 <= y < 118 and 8 <= abs(x) <= 20:
        return (255, 226, 130)
    return (96, 60, 40) if y >= 112 and abs(x) <= 5 else (226, 206, 176)


def _tree(x: int, y: int) -> Colour | None:
    if math.hypot(x, y - 84) < 22:
        return _mixed((60, 130, 60), (30, 84, 40), (y - 62) / 44)
    return (98, 66, 40) if 100 <= y < 136 and abs(x) <= 4 else None


def _motif(description: str) -> Callable[[int, int], Colour | None]:
    """Return what stands in the picture, as its colour at a place or None."""
    if re.search(r"lighthouse|tower|castle", description, re.IGNORECASE):
        return _tower
    if re.search(r"house|home|cottage|hut|pub|kitchen", description, re.IGNORECASE):
        return _house
    return _tree


def png(width: int, height: int, rows: bytes) -> bytes:
    """Return a PNG of RGB rows, each with its filter byte in front."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows, 9))
        + chunk(b"IEND", b"")
    )
