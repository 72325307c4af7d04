"""What the demo prints: who said what, and what the memory's tables hold."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 96
CELL_WIDTH = 64
CANDIDATES = "memory_candidates"
MEMORIES = "memories"

Row = tuple[str, ...]
"""One row of a table as text: the fact first, then the rest."""


@dataclass(frozen=True)
class Tables:
    """What the tables hold of one person at one moment.

    Attributes:
        candidates: Fact, mentions and day of the last mention of each candidate.
        memories: Fact and day of each memory.
        promoting_passes: The cleanup counter.
    """

    candidates: tuple[Row, ...]
    memories: tuple[Row, ...]
    promoting_passes: int = 0

    @property
    def candidate_facts(self) -> set[str]:
        """The facts that are candidates."""
        return {row[0] for row in self.candidates}

    @property
    def memory_facts(self) -> set[str]:
        """The facts that are memories."""
        return {row[0] for row in self.memories}

    def __str__(self) -> str:
        rows = [row[:2] for row in self.candidates]
        return f"{draw(CANDIDATES, ('fact', 'mentions'), rows)}\n{self._memories()}"

    def in_full(self) -> str:
        """Draw the tables with all columns, and the cleanup counter."""
        candidates = draw(CANDIDATES, ("fact", "mentions", "last seen"), self.candidates)
        return f"{candidates}\n{self._memories()}\n    cleanup counter: {self.promoting_passes}"

    def _memories(self) -> str:
        return draw(MEMORIES, ("fact", "since"), self.memories)

    def in_short(self) -> str:
        """Return the same in one line."""
        return f"{CANDIDATES} held {list(self.candidates)}, {MEMORIES} held {list(self.memories)}"


def shortened(text: str, width: int = CELL_WIDTH) -> str:
    """Return a text in one line, cut where it is too long."""
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width - 2]} …"


def draw(title: str, columns: Row, rows: Sequence[Row]) -> str:
    """Draw a table as text, indented below its title; long cells are cut."""
    if not rows:
        return f"    {title}: (no rows)"
    rows = [tuple(map(shortened, row)) for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(columns, *rows, strict=True)]
    lines = [
        " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (columns, *rows)
    ]
    lines.insert(1, "-+-".join("-" * width for width in widths))
    return "\n".join([f"    {title}:", *(f"      {line}" for line in lines)])


def say(text: str = "") -> None:
    """Print at once, also into a pipe."""
    print(text, flush=True)


def heading(text: str, explanation: str) -> None:
    """Print what comes next and why it happens."""
    say(f"\n--- {text} " + "-" * max(3, WIDTH - len(text) - 5))
    say(textwrap.fill(explanation, WIDTH))
    say()


def quote(speaker: str, text: str) -> None:
    """Print what somebody said."""
    margin, further = f"{speaker:>8} | ", " " * 8 + " | "
    for line in text.splitlines():
        filled = textwrap.fill(line, WIDTH, initial_indent=margin, subsequent_indent=further)
        say(filled or margin.rstrip())
        margin = further
