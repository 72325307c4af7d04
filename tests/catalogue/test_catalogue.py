"""Every case of the catalogue, and that the catalogue is whole."""

from __future__ import annotations

import collections
import dataclasses
import logging
import re

import asyncpg
import pytest
from maubot.lib.plugin_db import ProxyPostgresDatabase

from devstack.scripted_model import ScriptedModel

from . import fiction, meaning, never_stored, rows, said_by_others
from .case import ADA, CallsSave, Case, Guard, Kind, Remembered
from .stage import stage

CASES = (
    *said_by_others.CASES,
    *meaning.CASES,
    *rows.CASES,
    *never_stored.CASES,
    *fiction.CASES,
)
BY_EVIDENCE = tuple(case for case in CASES if case.guard is Guard.EVIDENCE)


def _id(case: Case) -> str:
    return re.sub(r"\W+", "-", f"{case.kind.name} {case.name}")[:70].strip("-").lower()


async def played(
    case: Case,
    database: ProxyPostgresDatabase,
    model: ScriptedModel,
    committed: asyncpg.Connection,
) -> dict[str, Remembered]:
    """Return what is remembered of each user of a case when it has been played."""
    async with stage(database, model) as here:
        await here.play(case)
        return {user: await here.remembered(committed, user) for user in (ADA, *case.others)}


@pytest.mark.parametrize("case", CASES, ids=_id)
async def test_what_is_remembered(
    case: Case,
    catalogue_database: ProxyPostgresDatabase,
    model: ScriptedModel,
    committed: asyncpg.Connection,
) -> None:
    remembered = await played(case, catalogue_database, model, committed)
    assert remembered == {ADA: case.after, **case.others}


@pytest.mark.parametrize("case", BY_EVIDENCE, ids=_id)
async def test_m6_without_the_evidence_rule_it_goes_wrong(
    case: Case,
    catalogue_database: ProxyPostgresDatabase,
    model: ScriptedModel,
    committed: asyncpg.Connection,
) -> None:
    unguarded = dataclasses.replace(
        case,
        settings={**case.settings, "memory_require_evidence": False},
        steps=tuple(
            dataclasses.replace(step, result="") if isinstance(step, CallsSave) else step
            for step in case.steps
        ),
    )
    remembered = await played(unguarded, catalogue_database, model, committed)
    assert remembered[ADA] != case.after


async def test_m14_m17_no_secret_reaches_the_log(
    catalogue_database: ProxyPostgresDatabase,
    model: ScriptedModel,
    committed: asyncpg.Connection,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    for case in never_stored.SECRET:
        await played(case, catalogue_database, model, committed)
    assert not [said for _, said, _ in never_stored.SECRETS if said in caplog.text]


class TestTheCatalogueIsWhole:
    def test_at_least_sixty_cases_with_names_of_their_own(self) -> None:
        assert len(CASES) >= 60
        assert len({(case.kind, case.name) for case in CASES}) == len(CASES)

    def test_each_kind_has_several_variants(self) -> None:
        count = collections.Counter(case.kind for case in CASES)
        assert {kind for kind in Kind if count[kind] < 3} == set()

    @pytest.mark.parametrize(
        "kind",
        [
            Kind.RECALLED,
            Kind.ASSISTANT,
            Kind.SYSTEM_PROMPT,
            Kind.PROMPT_EXAMPLE,
            Kind.QUOTED,
            Kind.THIRD_PERSON,
            Kind.QUESTION,
            Kind.INVENTED,
            Kind.TRANSIENT,
            Kind.NEGATION,
            Kind.CHANGE,
            Kind.TWO_LANGUAGES,
            Kind.DATE,
            Kind.SECRET,
            Kind.FICTION,
        ],
    )
    def test_kinds_in_which_language_matters_have_three(self, kind: Kind) -> None:
        found = {language for case in CASES if case.kind is kind for language in case.languages}
        assert len(found) >= 3

    def test_each_limit_says_why_it_is_one(self) -> None:
        assert all(case.note for case in CASES if case.guard is Guard.NOTHING)
