"""Runs with a real model: an estimate first, then progress; what was answered is never lost."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import aiohttp
from mautrix.util.async_db import Database

from evaluation.answers import FOLDER, SavedAnswers
from evaluation.dataset import Person
from evaluation.metrics import Outcome, figures, unrecognised
from evaluation.results import Measured
from evaluation.stage import (
    ALL_RULES,
    DEFAULT_RULES,
    Rules,
    Run,
    WatchedClient,
    default_settings,
)
from llmbot.config import Settings
from llmbot.memory.store import PassView
from llmbot.models import Provider
from llmbot.prompts import extraction_messages

_CHARACTERS_OF_A_TOKEN = 4
_SHOWN_FACTS = 15
"""Memories and candidates that a request shows on average, for the estimate."""
_CHARACTERS_OF_A_FACT = 30
_TOKENS_OF_AN_ANSWER = 60


@dataclasses.dataclass(frozen=True)
class Estimate:
    """What a whole evaluation asks of a model, roughly."""

    requests: int
    tokens_in: int
    tokens_out: int

    def cost(self, price_in: float, price_out: float) -> float:
        """Return the cost at prices per million tokens."""
        return (self.tokens_in * price_in + self.tokens_out * price_out) / 1_000_000


def estimate(people: Sequence[Person], runs: int = len(ALL_RULES)) -> Estimate:
    """Return what `runs` runs of these people ask, without what is saved already."""
    requests = tokens = 0
    for person in people:
        for turn in person.turns:
            messages = extraction_messages(PassView((), ()), turn.words, turn.reply)
            characters = sum(len(message["content"]) for message in messages)
            characters += _SHOWN_FACTS * _CHARACTERS_OF_A_FACT
            requests += 1
            tokens += characters // _CHARACTERS_OF_A_TOKEN
    return Estimate(requests * runs, tokens * runs, requests * runs * _TOKENS_OF_AN_ANSWER)


def may_start(what: Estimate, environment: Mapping[str, str]) -> bool:
    """Tell what an evaluation would cost, and ask; `YES=1` answers yes."""
    price_in, price_out = (
        float(environment.get(name) or default)
        for name, default in (("PRICE_IN", "0.5"), ("PRICE_OUT", "2"))
    )
    print(
        f"About {what.requests:,} requests, {what.tokens_in / 1e6:.1f} million tokens in and "
        f"{what.tokens_out / 1e6:.2f} million out; at {price_in:g} and {price_out:g} per million "
        f"(PRICE_IN, PRICE_OUT) that costs about {what.cost(price_in, price_out):.2f}. Answers "
        "that are saved from an earlier run are not asked for again.",
        flush=True,
    )
    if environment.get("YES") == "1":
        return True
    if not sys.stdin.isatty():
        print("Set YES=1 to start without being asked.")
        return False
    return input("Start? [y/N] ").strip().casefold() in {"y", "yes"}


def settings_for(model: str, environment: Mapping[str, str] = os.environ) -> Settings:
    """Return the default settings with this model; `BASE_URL` names a server of one's own."""
    settings = default_settings()
    base_url = environment.get("BASE_URL")
    if base_url:
        name = model.partition("/")[0]
        settings = dataclasses.replace(
            settings, providers={**settings.providers, name: Provider(base_url, "")}
        )
    return dataclasses.replace(settings, assistant_model=model, timeout=120.0)


async def run_all(
    database: Database,
    settings: Settings,
    people: Sequence[Person],
    *,
    seed: int,
    folder: Path = FOLDER,
) -> tuple[list[Measured], list[str]]:
    """Run these people under all rules; return the figures, and what was not recognised.

    Raises:
        ModelError: the model gave no answer; what it answered before is saved.
    """
    saved = SavedAnswers(settings.memory_model.name, folder)
    measured, strange = [], []
    for rules in ALL_RULES:
        outcomes = await _run(database, settings, rules, people, saved)
        measured.append(Measured(rules, seed, figures(outcomes)))
        if rules == DEFAULT_RULES:
            strange = unrecognised(outcomes)
    return measured, strange


async def _run(
    database: Database,
    settings: Settings,
    rules: Rules,
    people: Sequence[Person],
    saved: SavedAnswers,
) -> list[Outcome]:
    outcomes = []
    async with aiohttp.ClientSession() as http:
        client = WatchedClient(http, saved)
        run = Run(database, client, rules.applied_to(settings))
        for number, person in enumerate(people, start=1):
            outcomes.append(await run.live_through(person))
            print(
                f"{rules}: {number} of {len(people)} people, {client.asked} asked, "
                f"{client.from_saved} from saved answers",
                flush=True,
            )
    return outcomes
