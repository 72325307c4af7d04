"""The figures in docs/choosing-a-threshold.md: written by `make eval`, compared by a test."""

from __future__ import annotations

import re
from typing import Any

from devstack.build import ROOT
from evaluation import results as show
from evaluation.results import Results
from evaluation.stage import DEFAULT_RULES, SINGLE_STAGE, Rules

PAGE = ROOT / "docs" / "choosing-a-threshold.md"
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
    default, single = show.find(results, DEFAULT_RULES), show.find(results, SINGLE_STAGE)
    strict = show.find(results, Rules(3, require_evidence=True))
    return "\n".join(
        [
            "| | precision | recall, said ≥ 2 times | recall, said ≥ 3 times |",
            "|---|---|---|---|",
            _short_line("everything saved at once, no evidence asked for", single),
            _short_line("default: two mentions, with evidence", default),
            _short_line("three mentions, with evidence", strict),
        ]
    )


def _short_line(name: str, row: Any) -> str:  # noqa: ANN401
    middle = [row[figure][1] for figure in ("precision", "recall", "often")]
    return f"| {name} | " + " | ".join(f"{value:.3f}" for value in middle) + " |"


def _data(results: Results) -> str:
    size = ", ".join(f"{count} {name}" for name, count in results["data_set"].items())
    return f"Data set of the first seed: {size}."
