"""The evaluation: its data set, its simulated extractor, a small run, and the page it writes."""

from __future__ import annotations

import collections
import dataclasses
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from mautrix.util.async_db import Database

from devstack.scripted_model import ScriptedModel, http_error
from evaluation import real_model, results
from evaluation.answers import SavedAnswers
from evaluation.dataset import PEOPLE, Person, Turn, people
from evaluation.extractor import ErrorCount, ErrorRates, Mistake, NoisyExtractor, clean_up
from evaluation.judge import Verdict, judge, recognise
from evaluation.material import INVENTIONS, LANGUAGES, Label
from evaluation.page import HEADLINE_RATES, PAGE, with_figures
from evaluation.simulation import simulate
from evaluation.stage import ALL_RULES, DEFAULT_RULES, SINGLE_STAGE, database
from llmbot.models import ModelError

SEED = 11
EVERYBODY = people(SEED)


def a_turn_with_everything() -> Turn:
    """A turn that gives occasion to every mistake: all that one person says, said at once."""
    turns = list(EVERYBODY[0].turns)
    said = {one.key: one for turn in turns for one in turn.said}
    return dataclasses.replace(
        next(turn for turn in turns if turn.said_by_assistant), said=tuple(said.values())
    )


@pytest.fixture(scope="module")
async def store() -> AsyncIterator[Database]:
    async with database() as store:
        yield store


class TestDataSet:
    def test_its_size(self) -> None:
        assert len(EVERYBODY) == PEOPLE == 30
        assert sum(len(person.conversations) for person in EVERYBODY) >= 120
        assert all(len(person.conversations) > 1 for person in EVERYBODY)
        days = [turn.time for person in EVERYBODY for turn in person.turns]
        assert (max(days) - min(days)).days > 28

    def test_the_same_seed_gives_the_same_people_and_another_one_others(self) -> None:
        assert people(SEED) == EVERYBODY
        assert people(SEED + 1) != EVERYBODY

    def test_three_languages_and_all_labels_but_inventions_occur(self) -> None:
        said = [
            statement
            for person in EVERYBODY
            for turn in person.turns
            for statement in (*turn.said, *turn.said_by_assistant)
        ]
        assert {statement.language for statement in said} == set(LANGUAGES)
        assert {statement.label for statement in said} == set(Label) - {Label.INVENTED}

    @pytest.mark.parametrize("person", EVERYBODY, ids=lambda person: person.name)
    def test_every_statement_stands_in_its_message_and_is_recognised(self, person: Person) -> None:
        for turn in person.turns:
            assert all(statement.sentence in turn.words for statement in turn.said)
            assert all(one.sentence in turn.reply for one in turn.said_by_assistant)
            for statement in (*turn.said, *turn.said_by_assistant):
                texts = (statement.sentence, *statement.facts)
                assert {recognise(text) for text in texts} == {statement.key}

    def test_facts_change_and_end(self) -> None:
        updates = [key for person in EVERYBODY for key in person.updates]
        assert any(key.endswith("ended") for key in updates)
        assert not all(key.endswith("ended") for key in updates)
        assert all(person.updates <= person.true_at_end for person in EVERYBODY)

    def test_inventions_are_true_of_nobody(self) -> None:
        assert {recognise(text) for text in INVENTIONS} == {None}


class TestSimulatedExtractor:
    EMPTY: Mapping[str, Any] = MappingProxyType({"known_memories": (), "candidates": ()})

    def _errors(self, rates: ErrorRates) -> ErrorCount:
        extractor = NoisyExtractor(SEED, rates)
        for person in EVERYBODY:
            for turn in person.turns:
                extractor.read(turn)
                extractor.extract(self.EMPTY)
        return extractor.errors

    def test_it_is_wrong_as_often_as_it_is_told(self) -> None:
        usual, rare = (self._errors(rates).shares() for rates in (ErrorRates(), ErrorRates(0.1)))
        assert usual["wrong_passes"] == pytest.approx(0.4, abs=0.04)
        assert rare["wrong_passes"] == pytest.approx(0.1, abs=0.03)

    @pytest.mark.parametrize("mistake", Mistake, ids=lambda mistake: mistake.name)
    def test_wrong_items_and_facts_left_out_are_counted(self, mistake: Mistake) -> None:
        weights = dict.fromkeys(Mistake, 0.0) | {mistake: 1.0}
        turn = a_turn_with_everything()
        extractor = NoisyExtractor(SEED, ErrorRates(1.0, weights=weights, anchoring=0.0))
        extractor.read(turn)
        candidates = [{"n": 1, "fact": "Owns a boat"}]
        answer = extractor.extract({"known_memories": [], "candidates": candidates})
        true = {one.key for one in turn.said if one.label is Label.DURABLE}
        reported = [recognise(item["fact"]) for item in answer["new"]]
        wrong_numbers = len(answer["reinforced"]) + len(answer["contradicted"])
        found = extractor.errors
        assert (found.passes, found.wrong_passes) == (1, 1)
        assert found.items == len(reported) + wrong_numbers
        assert found.wrong_items == sum(key not in true for key in reported) + wrong_numbers
        assert (found.facts, found.left_out) == (len(true), len(true - set(reported)))

    def test_counts_add_up(self) -> None:
        both = ErrorCount(1, 1, 4, 1, 2, 0) + ErrorCount(1, 0, 0, 0, 0, 0)
        assert both.shares() == {"wrong_passes": 0.5, "wrong_items": 0.25, "left_out": 0.0}
        assert set(ErrorCount().shares().values()) == {0.0}

    def test_without_errors_it_reports_what_was_said_and_nothing_else(self) -> None:
        extractor = NoisyExtractor(SEED, ErrorRates(wrong=0.0))
        for turn in EVERYBODY[0].turns:
            extractor.read(turn)
            facts = {recognise(item["fact"]) for item in extractor.extract(self.EMPTY)["new"]}
            assert facts == {one.key for one in turn.said if one.label is Label.DURABLE}

    @pytest.mark.parametrize("mistake", Mistake, ids=lambda mistake: mistake.name)
    def test_each_mistake_can_be_asked_for_alone(self, mistake: Mistake) -> None:
        weights = dict.fromkeys(Mistake, 0.0) | {mistake: 1.0, Mistake.INVENTED: 1e-9}
        extractor = NoisyExtractor(SEED, ErrorRates(wrong=1.0, weights=weights))
        verdicts: collections.Counter[Verdict] = collections.Counter()
        candidates = [{"n": 1, "fact": "Owns a boat"}]
        for person in EVERYBODY[:5]:
            for turn in person.turns:
                extractor.read(turn)
                answer = extractor.extract({"known_memories": [], "candidates": candidates})
                verdicts.update(judge(item["fact"], person) for item in answer["new"])
                confirmed = [item for item in answer["reinforced"] if item["n"] == 1]
                assert bool(confirmed) <= (mistake is Mistake.WRONG_CONFIRMATION)
        expected = {
            Mistake.TRANSIENT: Verdict.TRANSIENT,
            Mistake.THIRD_PERSON: Verdict.THIRD_PERSON,
            Mistake.QUESTION: Verdict.QUESTION,
            Mistake.ASSISTANT: Verdict.ASSISTANT,
            Mistake.INVENTED: Verdict.INVENTED,
            Mistake.WRONG_VALUE: Verdict.WRONG_VALUE,
        }.get(mistake)
        assert expected is None or verdicts[expected] > 0

    def test_a_right_cleanup_merges_what_is_the_same_and_drops_what_was_replaced(self) -> None:
        memories = [
            (1, "Lives in Bergen"),
            (2, "No longer plays the cello"),
            (3, "Plays the cello"),
            (4, "Home is in Oslo"),
            (5, "Is allergic to nuts"),
            (6, "Has an allergy: nuts"),
            (7, "Is allergic to pollen"),
        ]
        assert clean_up(memories) == {
            "drop": [3, 4],
            "merge": [{"n": [5, 6], "fact": "Has an allergy: nuts"}],
        }


class TestRuns:
    async def test_two_stages_with_evidence_are_truer_than_one_without(
        self, store: Database
    ) -> None:
        runs = await simulate(
            store, [SEED], all_rules=[DEFAULT_RULES, SINGLE_STAGE], count=4, tell=lambda _: None
        )
        default, single = (run.figures for run in runs)
        assert default.precision is not None
        assert single.precision is not None
        assert default.precision > single.precision
        assert single.resistance == 0.0

    async def test_the_same_seed_gives_the_same_figures(self, store: Database) -> None:
        runs = [
            await simulate(store, [SEED], all_rules=[DEFAULT_RULES], count=2, tell=lambda _: None)
            for _ in range(2)
        ]
        assert runs[0] == runs[1]

    async def test_without_errors_nothing_false_is_remembered(self, store: Database) -> None:
        (run,) = await simulate(
            store,
            [SEED],
            rates=ErrorRates(wrong=0.0, anchoring=0.0),
            all_rules=[DEFAULT_RULES],
            count=4,
            tell=lambda _: None,
        )
        assert run.figures.precision == 1.0


class TestRealModel:
    """The path of a real model, with the scripted persona behind a provider entry."""

    ONE = (dataclasses.replace(EVERYBODY[0], conversations=EVERYBODY[0].conversations[:3]),)

    async def test_an_interrupted_run_goes_on_from_the_saved_answers(
        self, store: Database, tmp_path: Path
    ) -> None:
        async with ScriptedModel() as model:
            settings = real_model.settings_for("scripted/persona", {"BASE_URL": model.base_url})
            assert settings.memory_model.name == "scripted/persona"
            first_turns = list(self.ONE[0].turns)
            model.on(
                "any",
                http_error(401),
                when=lambda request: request.payload.get("user_message") == first_turns[-1].words,
            )
            with pytest.raises(ModelError):
                await real_model.run_all(store, settings, self.ONE, seed=SEED, folder=tmp_path)
            asked_before = len(model.requests) - 1
            assert asked_before > 0
            model.reset()
            measured, _ = await real_model.run_all(
                store, settings, self.ONE, seed=SEED, folder=tmp_path
            )
            # Nothing that was answered is asked again.
            assert all(
                request.payload.get("user_message") == first_turns[-1].words
                or request.payload.get("candidates")
                or request.payload.get("known_memories")
                or request.kind == "cleanup"
                for request in model.requests
            )
            model.reset()
            again, _ = await real_model.run_all(
                store, settings, self.ONE, seed=SEED, folder=tmp_path
            )
            assert model.requests == []
            assert again == measured
            assert [one.rules for one in measured] == list(ALL_RULES)

    def test_the_estimate_counts_every_message_in_every_run(self) -> None:
        turns = sum(1 for person in EVERYBODY for _ in person.turns)
        found = real_model.estimate(EVERYBODY)
        assert found.requests == turns * len(ALL_RULES)
        assert found.cost(1.0, 0.0) == found.tokens_in / 1e6

    def test_it_starts_only_if_told_so(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
        what = real_model.Estimate(1000, 2_000_000, 500_000)
        assert real_model.may_start(what, {"YES": "1", "PRICE_IN": "1", "PRICE_OUT": "2"})
        assert "1,000 requests" in capsys.readouterr().out
        assert not real_model.may_start(what, {})

    def test_a_line_that_was_cut_off_is_asked_again(self, tmp_path: Path) -> None:
        saved = SavedAnswers("some/model", tmp_path)
        saved.add("p00-0", "some/model", [{"role": "user", "content": "one"}], "1")
        saved.add("p00-0", "some/model", [{"role": "user", "content": "two"}], "2")
        (file,) = tmp_path.glob("*/*.jsonl")
        file.write_text(file.read_text()[:-10])
        later = SavedAnswers("some/model", tmp_path)
        assert later.find("p00-0", "some/model", [{"role": "user", "content": "one"}]) == "1"
        assert later.find("p00-0", "some/model", [{"role": "user", "content": "two"}]) is None


class TestWhatIsPublished:
    RESULTS = json.loads((results.FOLDER / "simulated.json").read_text())

    def test_the_page_shows_the_figures_of_the_results(self) -> None:
        page = PAGE.read_text()
        assert with_figures(page, self.RESULTS) == page

    def test_the_report_shows_the_figures_of_the_results(self) -> None:
        assert (results.FOLDER / "simulated.md").read_text() == results.report(self.RESULTS)

    def test_what_the_page_says_of_the_rows_is_so(self) -> None:
        second, third = (
            next(row for row in self.RESULTS["by_error_rate"] if row["rate"] == rate)
            for rate in HEADLINE_RATES
        )
        assert second["single"]["precision"][1] <= 0.6
        assert second["precision"][1] >= 0.95
        assert second["in_time"][1] >= 0.85
        assert third["wrong_passes"] >= 0.4
        assert third["wrong_items"] >= 0.4
        assert third["precision"][1] == pytest.approx(0.95, abs=0.011)
        assert third["in_time"][1] == pytest.approx(0.85, abs=0.011)

    def test_the_page_shows_the_chart(self) -> None:
        assert "](../evaluation/results/simulated.svg)" in PAGE.read_text()
        assert (results.FOLDER / "simulated.svg").exists()

    def test_they_are_of_five_seeds_and_of_this_data_set(self) -> None:
        assert len(self.RESULTS["seeds"]) >= 5
        seed = self.RESULTS["seeds"][0]
        assert self.RESULTS["data_set"] == results.data_set_size(people(seed))
