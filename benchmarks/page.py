"""The figures in docs/numbers.md: written by `make bench`, compared by a test."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks import results as show
from devstack.build import ROOT

PAGE = ROOT / "docs" / "numbers.md"
SOAK = ROOT / "soak" / "results" / "soak.md"
MEM0 = ROOT / "benchmarks" / "results" / "mem0.md"
_BLOCK = re.compile(r"<!-- figures: ([\w-]+) -->\n.*?<!-- figures: end -->", re.DOTALL)

Sections = Mapping[str, Mapping[str, Any]]

REASONS = {
    "a pass over an INSERT, on this disk": (
        "a commit costs next to nothing here, so that what is left to compare are the round trips"
    ),
    "the same, a commit made 4 ms slower": (
        "seven round trips: the lock, reading, writing and the commit; three more are maubot's,"
        " at each use of a connection"
    ),
    "CPU time of a turn over bare": (
        "llmbot reads and checks what the model wrote, and maubot's and asyncpg's layers around a"
        " connection are not in the bare turn; by package below"
    ),
    "a list in full tables over one in empty tables": (
        "what is listed in the full tables was not read before, and comes from the disk's cache"
        " into PostgreSQL's own"
    ),
    "an answer over an echo, memory on": (
        "the machine was busy with other work, which stretches the few more steps of an answer"
    ),
    "an answer over an echo, memory off": (
        "the machine was busy with other work, which stretches the few more steps of an answer"
    ),
    "an answer with memory on over one with memory off": (
        "the bounds below hold 1: this run could not tell the two apart"
    ),
}
"""Why a figure misses its target, if it does."""


def with_figures(page: str) -> str:
    """Return the page with the figures that are published in its marked blocks."""
    sections = {section["name"]: section for section in show.load()["sections"]}
    blocks = {
        "summary": show.summary(show.load()),
        "missed": "\n".join(_missed(sections)),
        "soak": _tables_of(SOAK.read_text(encoding="utf-8")),
        "mem0": _tables_of(MEM0.read_text(encoding="utf-8")),
        **{name: _section(section) for name, section in sections.items()},
    }
    return _BLOCK.sub(
        lambda block: f"<!-- figures: {block[1]} -->\n{blocks[block[1]]}\n<!-- figures: end -->",
        page,
    )


def _missed(sections: Sections) -> Iterator[str]:
    for section in sections.values():
        for one in show.figures(section):
            if not one.is_met:
                reason = REASONS.get(one.what, "it has not been found out why")
                yield f"- **{one.what}**: {one.shown}, not ≤ {one.target:,g}: {reason}."


def _section(section: Mapping[str, Any]) -> str:
    rows = [("", "measured"), *((one.what, one.shown) for one in show.figures(section))]
    parts = [show.table(rows)]
    for heading, lines in section["details"].items():
        parts += [f"{heading}:", show.table(lines)]
    return "\n\n".join([*parts, show.made_with(section)])


def _tables_of(report: str) -> str:
    """Return a report's tables, and the day when it was made."""
    day = re.search(r"\d{4}-\d\d-\d\d", report)
    assert day is not None
    tables = [part.strip() for part in report.split("\n\n") if part.startswith("|")]
    return "\n\n".join([*tables, f"Measured on {day[0]}."])
