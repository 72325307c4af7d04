"""The chart of `make bench`: each figure against its target, all on one page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from benchmarks.measuring import Figure

_MET, _MISSED = "#1b6ca8", "#c0562f"


def draw(sections: Sequence[tuple[str, Sequence[Figure]]], path: Path) -> None:
    """Write the chart of all figures that have a target.

    Args:
        sections: Titles with figures, from top to bottom.
        path: The SVG.
    """
    rows = [
        (title, [one for one in figures if one.target is not None]) for title, figures in sections
    ]
    rows = [(title, figures) for title, figures in rows if figures]
    # Text stays text in the SVG; without ids by chance the same results give the same file.
    settings: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": "llmbot",
        "font.family": "sans-serif",
        "font.size": 11,
    }
    lines = sum(len(figures) + 1 for _, figures in rows)
    with plt.rc_context(settings):
        figure, axes = plt.subplots(figsize=(11, 0.36 * lines + 1.4), layout="constrained")
        ticks, labels = [], []
        place = 0
        for title, figures in rows:
            ticks.append(place)
            labels.append(title)
            for one in figures:
                place += 1
                _bar(axes, place, one)
                ticks.append(place)
                labels.append(one.what)
            place += 1
        axes.set_yticks(ticks, labels)
        titles = {title for title, _ in rows}
        for label in axes.get_yticklabels():
            if label.get_text() in titles:
                label.set_fontweight("bold")
        axes.tick_params(axis="y", length=0)
        axes.invert_yaxis()
        axes.axvline(1, color="#333333", lw=1.5)
        axes.set_xlim(0, 3)
        axes.set_xticks([0, 0.5, 1, 2, 3], ["0", "half", "target", "twice", "three times"])
        axes.grid(axis="x", color="#dddddd")
        axes.set_axisbelow(True)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.set_title(
            "llmbot: what was measured, over its target (shorter is better)",
            fontsize=12,
            loc="left",
        )
        figure.savefig(path, metadata={"Date": None, "Creator": None})
        plt.close(figure)


def _bar(axes: Any, place: int, figure: Figure) -> None:  # noqa: ANN401
    assert figure.target is not None
    length = figure.value / figure.target
    axes.barh(place, min(length, 3), height=0.6, color=_MET if figure.is_met else _MISSED)
    text = f"{figure.shown} (target ≤ {figure.target:,g})"
    if not figure.is_met:
        text += ", missed"
    # Within the bar where there would be no room behind it; else beside the line at least.
    is_long = length > 1.7
    beside = 1.04 if is_long else max(length, 1) + 0.04
    axes.text(beside, place, text, va="center", color="white" if is_long else "black")
