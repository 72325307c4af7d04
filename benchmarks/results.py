"""The results of `make bench`: one JSON file, and the Markdown made of it."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import chart
from benchmarks.measuring import Figure, Section
from devstack.postgres import BUNDLED
from evaluation import results as evaluation_results

JSON = Path(__file__).parent / "results" / "bench.json"

Results = Mapping[str, Any]


def write(section: Section, order: Sequence[str]) -> None:
    """Put a section's results into the file; those of the other sections stay.

    Args:
        section: What was measured now.
        order: The names of all sections.
    """
    found = {one["name"]: one for one in load()["sections"]}
    made = {
        "date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}",
        "versions": versions(),
        "cores": os.cpu_count(),
    }
    found[section.name] = {**section.as_json(), "made": made}
    results = {"sections": [found[name] for name in order if name in found]}
    text = json.dumps(results, indent=1, ensure_ascii=False) + "\n"
    JSON.write_text(text, encoding="utf-8")
    publish(results)


def publish(found: Results) -> None:
    """Write the report and the chart beside the file."""
    JSON.with_suffix(".md").write_text(report(found), encoding="utf-8")
    chart.draw(
        [(section["title"], figures(section)) for section in found["sections"]],
        JSON.with_suffix(".svg"),
    )


def load() -> dict[str, Any]:
    """Return the results that there are."""
    if not JSON.exists():
        return {"sections": []}
    found: dict[str, Any] = json.loads(JSON.read_text(encoding="utf-8"))
    return found


def versions() -> dict[str, str]:
    """Return the versions of what was measured."""
    every = evaluation_results.versions()
    told = subprocess.run(  # noqa: S603 - our own PostgreSQL
        [BUNDLED / "postgres", "--version"], check=True, capture_output=True, text=True
    )
    return {
        "llmbot": every["llmbot"],
        "Python": platform.python_version(),
        "PostgreSQL": told.stdout.split()[-1],
        "maubot": every["maubot"],
        "mautrix": every["mautrix"],
        "Synapse": importlib.metadata.version("matrix-synapse"),
    }


# --- Markdown ----------------------------------------------------------------------------------


def report(found: Results) -> str:
    """Return the whole page."""
    parts = "\n".join(section_text(section) for section in found["sections"])
    return f"""# Benchmarks

Written by `make bench`. {NOISE}

![What was measured, over its target]({JSON.stem}.svg)

{summary(found)}

{parts}"""


NOISE = (
    "The machine has two cores, which other work loads as well, and a disk whose speed varies:"
    " what is compared was measured in turns within one run, and medians are shown. The ratios"
    " say more than the milliseconds."
)


def made_with(section: Mapping[str, Any]) -> str:
    """Return the sentence that says when and with what a section was measured."""
    made = section["made"]
    listed = ", ".join(f"{name} {version}" for name, version in made["versions"].items())
    return f"Measured on {made['date']} with {listed}, on {made['cores']} cores."


def summary(found: Results) -> str:
    """Return the figures that have a target, as a table."""
    rows = [("", "measured", "target", "")]
    rows += [
        (one.what, one.shown, f"≤ {_number(one.target)}", "met" if one.is_met else "**missed**")
        for section in found["sections"]
        for one in figures(section)
        if one.target is not None
    ]
    return table(rows)


def figures(section: Mapping[str, Any]) -> list[Figure]:
    """Return a section's figures."""
    return [Figure(**one) for one in section["figures"]]


def section_text(section: Mapping[str, Any]) -> str:
    """Return a section with all its tables."""
    rows = [("", "measured", "target")]
    rows += [
        (one.what, one.shown, "" if one.target is None else f"≤ {_number(one.target)}")
        for one in figures(section)
    ]
    parts = [f"## {section['title']}", table(rows)]
    notes = [*section["notes"], made_with(section)] if "made" in section else section["notes"]
    if notes:
        parts.append("\n".join(f"- {note}" for note in notes))
    for heading, lines in section["details"].items():
        parts += [f"### {heading}", table(lines)]
    return "\n\n".join(parts) + "\n"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; the first row names the columns."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


def _number(value: float | None) -> str:
    return f"{value:,g}"
