"""A model's Markdown as HTML for Matrix, and in parts that fit into events: pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from html import escape

import commonmark

from .fences import Fence, fence_after

# --- as HTML -----------------------------------------------------------------------------------

_LINKABLE = re.compile(r"(?:https?|ftp|mailto|magnet|matrix):", re.IGNORECASE)
# What makes commonmark's link parser run for a minute and stops everything else in the process.
_UNBROKEN = re.compile(r"\S{2000,}")
_MAX_LINKS_UNBROKEN = 20


def html(markdown: str) -> str:
    """Return Markdown as HTML; HTML in it is shown, never applied.

    A line break stays one, as in chat. Images become links, since Matrix shows no foreign ones,
    and links that lead nowhere or could run something become their text.
    """
    if any(run[0].count("](") > _MAX_LINKS_UNBROKEN for run in _UNBROKEN.finditer(markdown)):
        return escape(markdown).replace("\n", "<br />\n")
    return str(_Renderer().render(commonmark.Parser().parse(markdown))).strip()


class _Renderer(commonmark.HtmlRenderer):
    """Renders what Matrix clients show; one for each text."""

    def __init__(self) -> None:
        super().__init__({"softbreak": "<br />\n"})

    def html_inline(self, node: commonmark.node.Node, _entering: bool) -> None:
        self.out(node.literal)

    def html_block(self, node: commonmark.node.Node, _entering: bool) -> None:
        self.cr()
        self.lit(f"<p>{escape(node.literal)}</p>".replace("\n", "<br />\n"))
        self.cr()

    def link(self, node: commonmark.node.Node, entering: bool) -> None:
        if _LINKABLE.match(node.destination):
            super().link(node, entering)

    def image(self, node: commonmark.node.Node, entering: bool) -> None:
        if node.parent.t != "link":
            self.link(node, entering)
        if entering and node.first_child is None:
            self.out(node.destination)


# --- in parts ----------------------------------------------------------------------------------

_MIN_WINDOW = 200
_MAX_CLUSTER = 20


def split(markdown: str, size: Callable[[str], int], limit: int) -> list[str]:
    """Return Markdown in parts of a `size` up to `limit`: whole, if it fits.

    It is cut between paragraphs or where a code fence begins or ends, else between lines, else
    between words, else anywhere, so that no part is nearly empty. A code fence that is cut is
    closed, and opened again in the next part. Nothing is lost but white space at the cuts.

    Args:
        markdown: The text.
        size: How large a part is, with all that will be made of it; at least its length.
        limit: The largest part; some hundred more than what the shortest text takes.
    """
    parts = []
    rest = markdown
    while len(rest) > limit or size(rest) > limit:
        head, rest = _cut(rest, size, limit)
        parts.append(head)
    parts.append(rest)
    return [part for part in parts if part.strip()]


def _cut(text: str, size: Callable[[str], int], limit: int) -> tuple[str, str]:
    """Return the largest head that fits, and the rest."""
    # Most texts take more than twice their length, since an event holds them plain and as HTML.
    window = max(_MIN_WINDOW, limit * 2 // 5)
    while True:
        position = _best_cut(text, window)
        head, rest = _cut_at(text, position)
        excess = size(head) / limit
        if excess <= 1 or window == _MIN_WINDOW:
            return head, rest
        window = max(_MIN_WINDOW, min(int(window * 0.9), int(position / excess)))


def _best_cut(text: str, window: int) -> int:
    """Return the best position up to `window` to cut a text at."""
    paragraph = line = position = 0
    fence: Fence | None = None
    previous = ""
    for number, content in enumerate(text[:window].split("\n")):
        opened = fence_after(content, fence)
        # A heading stays with what it is the heading of.
        if fence is None and (opened or not content.strip()) and not previous.startswith("#"):
            paragraph = position
        if number:
            line = position
        position += len(content) + 1
        if fence and not opened and position <= window:
            paragraph = position
        fence = opened
        previous = content.strip() or previous
    enough = window // 2
    if paragraph >= enough:
        return paragraph
    if line >= enough:
        return line
    space = max(text.rfind(" ", 0, window), text.rfind("\t", 0, window)) + 1
    return space if space >= enough else _between_characters(text, window)


def _between_characters(text: str, position: int) -> int:
    """Return a position up to this one that does not part what is seen as one character."""
    for earlier in range(position, max(1, position - _MAX_CLUSTER), -1):
        if earlier >= len(text) or not (
            _is_joined(text[earlier]) or text[earlier - 1] == "\u200d"
        ):
            return earlier
    return position


def _is_joined(character: str) -> bool:
    """Say whether a character is seen as part of the one before it."""
    return (
        unicodedata.category(character) in {"Mn", "Me", "Mc"}
        or character == "\u200d"
        or "\U0001f3fb" <= character <= "\U0001f3ff"
    )


def _cut_at(text: str, position: int) -> tuple[str, str]:
    fence: Fence | None = None
    for line in text[:position].removesuffix("\n").split("\n"):
        fence = fence_after(line, fence)
    head, rest = text[:position], text[position:]
    if fence is None:
        return head.rstrip(), rest.lstrip("\n")
    head = head if head.endswith("\n") else f"{head}\n"
    return f"{head}{fence.closing}", f"{fence.opening}\n{rest}"
