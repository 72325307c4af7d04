"""The figures in docs/choosing-a-threshold.md: written by `make eval`, compared by a test."""

from __future__ import annotations

import re
from typing import Any

from devstack.build import ROOT
from evaluation import results as show
from evaluation.results import Results

PAGE = ROOT / "docs" / "choosing-a-threshold.md"
HEADLINE_RATES = (0.25, 0.4)
"""The error rates of the table at the top of the page."""
_BLOCK = re.compile(r"<!-- figures: ([\w-]+) -->\n.*?<!-- figures: end -->", re.DOTALL)


def with_figures(page: str, results: Results) -> str:
    """Return the page with the figures of these results in its marked blocks."""
    blocks = {
        "short": _in_short(results),
        "table": show.table(results),
        "wrong": show.wrong_table(results),
        "errors": show.error_table(results),
        "made-with": f"{_data(results)} {show.made_with(results)}",
    }
    return _BLOCK.sub(
        lambda block: f"<!-- figures: {block[1]} -->\n{blocks[block[1]]}\n<!-- figures: end -->",
        page,
    )


def _in_short(results: Results) -> str:
    lines = [
        (
            "| extractor wrong in | what is saved | precision | recall, said again in 14 days "
            "| recall, said ≥ 2 times |"
        ),
        "|---|---|---|---|---|",
    ]
    for row in results["by_error_rate"]:
        if row["rate"] in HEADLINE_RATES:
            wrong = f"{row['wrong_passes']:.0%} of passes, {row['wrong_items']:.0%} of items"
            lines += [
                _short_line(wrong, "everything at once, no evidence", row["single"]),
                _short_line(wrong, "**default**: two mentions, with evidence", row),
            ]
    return "\n".join(lines)


def _short_line(wrong: str, what: str, row: Any) -> str:  # noqa: ANN401
    middle = [row[figure][1] for figure in ("precision", "in_time", "recall")]
    return f"| {wrong} | {what} | " + " | ".join(f"{value:.3f}" for value in middle) + " |"


def _data(results: Results) -> str:
    size = ", ".join(f"{count} {name}" for name, count in results["data_set"].items())
    return f"Data set of the first seed: {size}."
