"""Markdown tables as text that reads well where clients show no tables: pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from .fences import fence_after

MAX_WIDTH = 60
"""A table of more columns on the screen than this becomes a list."""

_PIPE = re.compile(r"(?<!\\)\|")
_DELIMITER = re.compile(r":?-+:?")
_LINE_BREAK = re.compile(r"\s*<br\s*/?>\s*", re.IGNORECASE)
_MARKERS = re.compile(r"\*\*|__|`")


class _Table(NamedTuple):
    """A table's cells: `rows` as long as `header`, and how each column is aligned."""

    indent: str
    header: list[str]
    alignments: list[str]
    rows: list[list[str]]


def readable_tables(markdown: str) -> str:
    """Return Markdown with each table as an aligned code block or, if it is wide, as a list.

    CommonMark has no tables, and clients that show some squeeze them on a telephone.
    """
    lines = markdown.split("\n")
    read: list[str] = []
    fence = None
    number = 0
    while number < len(lines):
        table = None if fence else _table_at(lines, number)
        if table is None:
            fence = fence_after(lines[number], fence)
            read.append(lines[number])
            number += 1
        else:
            if read and read[-1].strip():
                read.append("")
            read += [f"{table.indent}{line}" for line in _as_text(table)]
            number += 2 + len(table.rows)
            if number < len(lines) and lines[number].strip():
                read.append("")
    return "\n".join(read)


def _table_at(lines: Sequence[str], number: int) -> _Table | None:
    """Return the table whose header is this line."""
    header_line, *after = lines[number : number + 2]
    indent = header_line[: len(header_line) - len(header_line.lstrip(" "))]
    if not after or "|" not in header_line or len(indent) > 3:
        return None
    header, delimiters = _cells(header_line), _cells(after[0])
    if len(header) != len(delimiters) or not all(map(_DELIMITER.fullmatch, delimiters)):
        return None
    rows = []
    for line in lines[number + 2 :]:
        if "|" not in line:
            break
        rows.append(_cells(line))
    # Nothing that a row holds is left out, be it longer than the header.
    width = max(len(header), *map(len, rows)) if rows else len(header)
    alignments = [_alignment(delimiter) for delimiter in delimiters]
    return _Table(
        indent,
        [*header, *[""] * (width - len(header))],
        [*alignments, *["left"] * (width - len(header))],
        [[*row, *[""] * (width - len(row))] for row in rows],
    )


def _cells(line: str) -> list[str]:
    row = line.strip().removeprefix("|")
    if row.endswith("|") and not row.endswith("\\|"):
        row = row[:-1]
    return [_LINE_BREAK.sub("; ", cell.strip()).replace("\\|", "|") for cell in _PIPE.split(row)]


def _alignment(delimiter: str) -> str:
    if not delimiter.endswith(":"):
        return "left"
    return "center" if delimiter.startswith(":") else "right"


def _as_text(table: _Table) -> list[str]:
    lines = [table.header, *table.rows]
    # What takes effect in a list only: links.
    if any("](" in cell or "://" in cell for line in lines for cell in line):
        return _as_list(table)
    aligned = _aligned(table)
    return _as_list(table) if max(map(_width, aligned)) > MAX_WIDTH else aligned


def _aligned(table: _Table) -> list[str]:
    lines = [[_MARKERS.sub("", cell) for cell in line] for line in (table.header, *table.rows)]
    widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
    header, *rows = [
        " | ".join(map(_padded, line, widths, table.alignments)).rstrip() for line in lines
    ]
    return ["```", header, "-|-".join("-" * width for width in widths), *rows, "```"]


def _as_list(table: _Table) -> list[str]:
    lines = []
    for row in table.rows:
        (_, title), *details = zip(table.header, row, strict=True)
        lines.append(f"- {title}" if not title or "**" in title else f"- **{title}**")
        lines += [
            f"  - {name}: {cell}" if name else f"  - {cell}" for name, cell in details if cell
        ]
    if not table.rows:
        lines.append("- " + ", ".join(table.header))
    return lines


def _width(text: str) -> int:
    """Return how many columns a text takes in a fixed-width font."""
    return sum(
        0
        if unicodedata.combining(character)
        else 2
        if unicodedata.east_asian_width(character) in "FW"
        else 1
        for character in text
    )


def _padded(cell: str, width: int, alignment: str) -> str:
    space = width - _width(cell)
    before = {"left": 0, "right": space, "center": space // 2}[alignment]
    return " " * before + cell + " " * (space - before)
