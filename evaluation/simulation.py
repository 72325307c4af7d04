"""Runs with the simulated extractor: the data sets of some seeds under all rules."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence

import aiohttp
from mautrix.util.async_db import Database

from devstack.scripted_model import RecordedRequest, Response, ScriptedModel, completion
from evaluation.dataset import PEOPLE, people
from evaluation.extractor import ErrorCount, ErrorRates, NoisyExtractor
from evaluation.metrics import Figures, figures
from evaluation.stage import ALL_RULES, Rules, Run, WatchedClient, default_settings
from llmbot.models import Provider


@dataclasses.dataclass(frozen=True)
class SimulatedRun:
    """One run's figures, and how often its extractor was wrong."""

    rules: Rules
    seed: int
    wrong: float
    """How often the extractor was set to be wrong."""
    errors: ErrorCount
    """How often it was."""
    figures: Figures


async def simulate(
    database: Database,
    seeds: Sequence[int],
    *,
    rates: ErrorRates | None = None,
    all_rules: Sequence[Rules] = ALL_RULES,
    count: int = PEOPLE,
    tell: Callable[[str], None] = print,
) -> list[SimulatedRun]:
    """Run each seed's data set under each of the rules; the model is asked over HTTP."""
    runs = []
    async with ScriptedModel(record=False) as model, aiohttp.ClientSession() as http:
        for seed in seeds:
            for rules in all_rules:
                run = await _one(database, model, http, rules, seed, rates or ErrorRates(), count)
                tell(
                    f"seed {seed}, {rules}: precision {run.figures.precision or 0:.3f}, "
                    f"recall {run.figures.recall or 0:.3f}"
                )
                runs.append(run)
    return runs


async def _one(
    database: Database,
    model: ScriptedModel,
    http: aiohttp.ClientSession,
    rules: Rules,
    seed: int,
    rates: ErrorRates,
    count: int,
) -> SimulatedRun:
    extractor = NoisyExtractor(seed, rates)
    settings = dataclasses.replace(
        rules.applied_to(default_settings()),
        assistant_model="simulated/extractor",
        providers={"simulated": Provider(model.base_url, "")},
    )

    def extract(request: RecordedRequest) -> Response:
        return completion(request, {"content": json.dumps(extractor.extract(request.payload))})

    def clean_up(request: RecordedRequest) -> Response:
        return completion(request, {"content": json.dumps(extractor.clean_up(request.payload))})

    model.reset()
    model.on("extraction", extract)
    model.on("cleanup", clean_up)
    run = Run(database, WatchedClient(http), settings, extractor)
    outcomes = [await run.live_through(person) for person in people(seed, count)]
    return SimulatedRun(rules, seed, rates.wrong, extractor.errors, figures(outcomes))
