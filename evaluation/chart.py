"""The chart: precision and recall against the threshold, as SVG and PNG."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from evaluation.results import Results, slug

_THRESHOLDS = (1, 2, 3)
_LINES = (
    ("precision", True, "#1b6ca8", "o", "-", "precision"),
    ("recall", True, "#c0562f", "s", "-", "recall of what is said twice or more"),
    ("precision", False, "#1b6ca8", "o", ":", "precision, without the evidence rule"),
    ("recall", False, "#c0562f", "s", ":", "recall, without the evidence rule"),
)


def draw(results: Results, folder: Path) -> None:
    """Write the chart of results into a folder, under the model's name."""
    # Text stays text in the SVG; without ids by chance the same results give the same file.
    settings: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": "llmbot",
        "font.family": "sans-serif",
        "font.size": 12,
    }
    with plt.rc_context(settings):
        figure, axes = plt.subplots(figsize=(7.5, 5.2), layout="constrained")
        for name, evidence, colour, marker, style, label in _LINES:
            _line(
                axes, results, name, evidence, color=colour, marker=marker, ls=style, label=label
            )
        axes.set_xticks(_THRESHOLDS, ["1", "2 (default)", "3"])
        axes.set_xlabel("memoryPromotionThreshold: mentions that make a memory")
        axes.set_ylim(0, 1.02)
        axes.set_yticks([tenth / 10 for tenth in range(0, 11, 2)])
        axes.set_ylabel("share")
        axes.grid(axis="y", color="#dddddd")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, frameon=False, fontsize=10
        )
        seeds = len(results["seeds"])
        axes.set_title(
            f"What is remembered, {results['model']} extractor\n"
            f"(median of {seeds} data set{'s' if seeds > 1 else ''}; bars: lowest and highest)",
            fontsize=12,
        )
        path = folder / slug(results["model"])
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None, "Creator": None})
        figure.savefig(path.with_suffix(".png"), dpi=130, metadata={"Software": None})
        plt.close(figure)


def _line(axes: Any, results: Results, name: str, evidence: bool, **look: Any) -> None:  # noqa: ANN401
    rows = [row for row in results["rows"] if row["evidence"] is evidence]
    spreads = [next(row[name] for row in rows if row["threshold"] == one) for one in _THRESHOLDS]
    places, low, middle, high = [], [], [], []
    for threshold, values in zip(_THRESHOLDS, spreads, strict=True):
        if values is not None:
            places.append(threshold)
            low.append(values[1] - values[0])
            middle.append(values[1])
            high.append(values[2] - values[1])
    axes.errorbar(places, middle, yerr=[low, high], capsize=4, lw=2, markersize=7, **look)
