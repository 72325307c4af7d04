"""`make eval`: measure, and write results, chart and the figures of the docs page.

Without MODEL a simulated extractor is asked, offline. With MODEL=provider/name the same
conversations go to that model, whose key stands in the provider's environment variable;
BASE_URL names a server of one's own. YES=1 starts without being asked.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

from evaluation import real_model, results
from evaluation.chart import draw
from evaluation.dataset import PEOPLE, people
from evaluation.extractor import ErrorCount, ErrorRates
from evaluation.page import PAGE, with_figures
from evaluation.simulation import SimulatedRun, simulate
from evaluation.stage import DEFAULT_RULES, SINGLE_STAGE, database
from llmbot.models import ModelError

_OTHER_ERROR_RATES = {0.0: 1, 0.25: 5, 0.6: 1}
"""How often the extractor is wrong besides the usual rate, and from how many seeds."""
_COMPARED = (DEFAULT_RULES, SINGLE_STAGE)


def _parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="evaluation", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--people", type=int, default=int(os.environ.get("PEOPLE") or PEOPLE))
    parser.add_argument("--into", type=Path, default=results.FOLDER, help="folder of the results")
    return parser.parse_args(arguments)


async def _with_simulation(options: argparse.Namespace) -> dict[str, Any]:
    async with database() as store:
        runs = await simulate(store, options.seeds, count=options.people)
        by_error_rate = [one for one in runs if one.rules in _COMPARED]
        for wrong, seeds in _OTHER_ERROR_RATES.items():
            rates = ErrorRates(wrong, anchoring=ErrorRates().anchoring if wrong else 0.0)
            by_error_rate += await simulate(
                store,
                options.seeds[:seeds],
                rates=rates,
                all_rules=_COMPARED,
                count=options.people,
            )
    return {
        **results.summary(results.SIMULATED, options.seeds, map(_measured, runs)),
        "data_set": results.data_set_size(people(options.seeds[0], options.people)),
        "by_error_rate": _by_error_rate(by_error_rate),
    }


def _measured(run: SimulatedRun) -> results.Measured:
    return results.Measured(run.rules, run.seed, run.figures)


def _by_error_rate(runs: list[SimulatedRun]) -> list[dict[str, Any]]:
    rows = []
    for wrong in sorted({run.wrong for run in runs}):
        same = [run for run in runs if run.wrong == wrong]
        default, single = ([run for run in same if run.rules == rules] for rules in _COMPARED)
        errors = sum((run.errors for run in default), ErrorCount())
        rows.append(
            {
                "rate": wrong,
                **{name: round(share, 4) for name, share in errors.shares().items()},
                **results.row(DEFAULT_RULES, list(map(_measured, default))),
                "single": results.row(SINGLE_STAGE, list(map(_measured, single))),
            }
        )
    return rows


async def _with_model(model: str, options: argparse.Namespace) -> dict[str, Any] | None:
    seed = options.seeds[0]
    everybody = people(seed, options.people)
    if not real_model.may_start(real_model.estimate(everybody), os.environ):
        return None
    async with database() as store:
        measured, strange = await real_model.run_all(
            store, real_model.settings_for(model), everybody, seed=seed
        )
    return {
        **results.summary(model, [seed], measured),
        "data_set": results.data_set_size(everybody),
        "unrecognised": strange,
    }


def _write(found: dict[str, Any], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    name = results.slug(found["model"])
    text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    (folder / f"{name}.json").write_text(text, encoding="utf-8")
    (folder / f"{name}.md").write_text(results.report(found), encoding="utf-8")
    draw(found, folder)
    if folder == results.FOLDER and found["model"] == results.SIMULATED:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(with_figures(page, found), encoding="utf-8")
    print(f"\n{results.table(found)}\n\nWritten to {folder}: {name}.md, .json, .svg, .png")


def main() -> int:
    """Measure as the command line and the environment say."""
    options = _parse()
    # Warnings are about bad answers, which are what is measured here.
    logging.getLogger("evaluation").setLevel(logging.ERROR)
    model = os.environ.get("MODEL")
    try:
        found = asyncio.run(_with_model(model, options) if model else _with_simulation(options))
    except KeyboardInterrupt:
        print("\nInterrupted; what a real model answered is saved.", file=sys.stderr)
        return 130
    except ModelError as error:
        print(f"The model gave no answer: {error}. Run again to go on.", file=sys.stderr)
        return 1
    if found is None:
        return 1
    _write(found, options.into)
    return 0


if __name__ == "__main__":
    sys.exit(main())
