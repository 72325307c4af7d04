"""Code fences in Markdown, line by line."""

from __future__ import annotations

import re
from typing import NamedTuple

_OPENING = re.compile(r"(?P<indent> {0,3})(?P<marker>`{3,20}|~{3,20})(?P<info>[^`]*)")
_LANGUAGE = re.compile(r"\s*(\S{0,40})")


class Fence(NamedTuple):
    """An open code fence."""

    indent: str
    marker: str
    language: str

    @property
    def opening(self) -> str:
        """The line that opens it."""
        return f"{self.indent}{self.marker}{self.language}"

    @property
    def closing(self) -> str:
        """The line that closes it."""
        return f"{self.indent}{self.marker}"

    def is_closed_by(self, line: str) -> bool:
        """Say whether a line ends this fence."""
        stripped = line.strip()
        return (
            len(line) - len(line.lstrip(" ")) <= 3
            and len(stripped) >= len(self.marker)
            and set(stripped) == {self.marker[0]}
        )


def fence_after(line: str, fence: Fence | None) -> Fence | None:
    """Return the fence that is open after a line, given the one that is open before it."""
    if fence is not None:
        return None if fence.is_closed_by(line) else fence
    opening = _OPENING.fullmatch(line)
    if opening is None:
        return None
    language = _LANGUAGE.match(opening["info"])
    return Fence(opening["indent"], opening["marker"], language[1] if language else "")
