"""The evaluation's figures, on inputs small enough to count by hand."""

from __future__ import annotations

import datetime

import pytest

from evaluation.dataset import Conversation, Person, Statement, Turn
from evaluation.judge import Verdict, judge, recognise
from evaluation.material import Label
from evaluation.metrics import Figures, Outcome, figures, unrecognised
from evaluation.results import spread

DAY_0 = datetime.datetime(2026, 9, 1, tzinfo=datetime.timezone.utc)
OSLO, BERGEN, GRAZ, JOURNALIST, CELLO = "home:0", "home:1", "home:2", "work:0", "instrument:0"


def person(
    said: dict[str, list[int]],
    *,
    outdated: tuple[str, ...] = (),
    updates: tuple[str, ...] = (),
) -> Person:
    """A person who says each fact on these days; what is not outdated is true."""
    turns = sorted(
        (
            Turn(
                f"{key} on {day}",
                DAY_0 + datetime.timedelta(days=day),
                "words",
                "reply",
                (Statement(key, Label.DURABLE, key.partition(":")[0], "en", "words", ()),),
            )
            for key, days in said.items()
            for day in days
        ),
        key=lambda turn: turn.time,
    )
    return Person(
        "p00",
        (Conversation("p00-0", tuple(turns)),),
        frozenset(said) - set(outdated),
        frozenset(outdated),
        frozenset(updates),
    )


def after(
    who: Person,
    *memories: str,
    offered: tuple[str, ...] = (),
    stored_on: dict[str, int] | None = None,
) -> Figures:
    """The figures of one person with these memories, newest first."""
    stored = {
        text: DAY_0 + datetime.timedelta(days=day) for text, day in (stored_on or {}).items()
    }
    return figures([Outcome(who, memories, {**dict.fromkeys(memories, DAY_0), **stored}, offered)])


class TestPrecision:
    def test_is_the_share_of_memories_that_are_no_mistake(self) -> None:
        who = person({OSLO: [0, 1], JOURNALIST: [0, 1]})
        found = after(
            who, "Lives in Oslo", "Works as a journalist", "Is tired", "Works as a pilot"
        )
        assert found.precision == 0.5
        assert found.memories == 4
        assert found.wrong == {"transient": 1, "about somebody else": 1}

    def test_what_was_true_once_is_no_mistake_but_not_current(self) -> None:
        who = person({OSLO: [0], BERGEN: [5]}, outdated=(OSLO,), updates=(BERGEN,))
        found = after(who, "Lives in Bergen", "Lives in Oslo")
        assert (found.precision, found.current) == (1.0, 0.5)

    def test_another_value_is_wrong(self) -> None:
        found = after(person({OSLO: [0]}), "Lives in Graz")
        assert found.precision == 0.0
        assert found.wrong == {"a wrong value": 1}

    def test_without_memories_there_is_none(self) -> None:
        assert after(person({OSLO: [0, 1]})).precision is None

    def test_all_people_count_together(self) -> None:
        who = person({OSLO: [0, 1]})
        outcomes = [
            Outcome(who, ["Lives in Oslo"], {}, ()),
            Outcome(who, ["Is tired", "Is hungry", "Plays chess"], {}, ()),
        ]
        assert figures(outcomes).precision == 0.25


class TestRecall:
    WHO = person({OSLO: [0], JOURNALIST: [0, 1], CELLO: [0, 1, 2]})

    def test_counts_what_was_said_twice_and_more(self) -> None:
        found = after(self.WHO, "Works as a journalist", "Lives in Oslo")
        assert (found.recall, found.often) == (0.5, 0.0)
        assert found.coverage == pytest.approx(2 / 3)

    def test_what_was_said_again_in_time_is_told_from_what_was_not(self) -> None:
        who = person({OSLO: [0, 14], JOURNALIST: [0, 15], CELLO: [0, 20, 30]})
        found = after(who, "Lives in Oslo")
        assert found.recall == pytest.approx(1 / 3)
        assert found.in_time == 0.5
        assert after(person({OSLO: [0, 15]}), "Lives in Oslo").in_time is None

    def test_a_fact_in_two_wordings_counts_once(self) -> None:
        found = after(self.WHO, "Plays the cello", "Spielt Cello")
        assert (found.recall, found.often) == (0.5, 1.0)
        assert found.precision == 1.0

    def test_what_is_not_true_any_more_need_not_be_remembered(self) -> None:
        who = person({OSLO: [0, 1], BERGEN: [5, 6]}, outdated=(OSLO,))
        assert after(who, "Lives in Bergen").recall == 1.0


class TestResistance:
    def test_is_the_share_of_false_proposals_that_never_became_a_memory(self) -> None:
        offered = ("Lives in Oslo", "Is tired", "Plays chess", "Name is John", "Has migraine")
        found = after(person({OSLO: [0]}), "Lives in Oslo", "Is tired", offered=offered)
        assert found.resistance == 0.75

    def test_a_memory_that_is_gone_again_counts_as_stored(self) -> None:
        found = after(
            person({OSLO: [0]}), offered=("Is tired", "Plays chess"), stored_on={"Is tired": 1}
        )
        assert found.resistance == 0.5


class TestUpdates:
    WHO = person({OSLO: [0, 1], BERGEN: [5, 6]}, outdated=(OSLO,), updates=(BERGEN,))

    def test_right_where_the_newest_memory_has_the_new_value(self) -> None:
        assert after(self.WHO, "Lives in Bergen", "Lives in Oslo").updates == 1.0
        assert after(self.WHO, "Lives in Oslo", "Lives in Bergen").updates == 0.0
        assert after(self.WHO, "Lives in Oslo").updates == 0.0

    def test_a_new_value_that_was_said_once_is_not_asked_for(self) -> None:
        who = person({OSLO: [0, 1], BERGEN: [5]}, outdated=(OSLO,), updates=(BERGEN,))
        assert after(who, "Lives in Oslo").updates is None

    def test_what_ended_is_an_update_as_well(self) -> None:
        over = f"{CELLO} ended"
        who = person({CELLO: [0], over: [3, 4]}, outdated=(CELLO,), updates=(over,))
        assert after(who, "No longer plays the cello", "Plays the cello").updates == 1.0


class TestTimeToRemember:
    def test_from_the_first_mention_to_the_memory(self) -> None:
        who = person({OSLO: [2, 5, 9], JOURNALIST: [0, 7]})
        found = after(
            who, stored_on={"Lives in Oslo": 5, "Works as a journalist": 7, "Is tired": 1}
        )
        assert (found.days, found.mentions) == (5.0, 2.0)

    def test_the_wording_that_came_first_counts(self) -> None:
        who = person({OSLO: [2, 5, 9]})
        found = after(who, stored_on={"Home is in Oslo": 9, "Lives in Oslo": 5})
        assert (found.days, found.mentions) == (3.0, 2)


class TestVerdicts:
    @pytest.mark.parametrize(
        ("text", "key"),
        [
            ("Lives in Oslo", OSLO),
            ("The user's home is Oslo, Norway", OSLO),
            ("Vive en Oporto", "home:3"),
            ("Has two cats", "animals:0"),
            ("Hat 3 Katzen", "animals:1"),
            ("Used to play the cello", f"{CELLO} ended"),
            ("Spielt nicht mehr Cello", f"{CELLO} ended"),
            ("Likes long walks", None),
        ],
    )
    def test_a_fact_is_recognised_in_whatever_words(self, text: str, key: str | None) -> None:
        assert recognise(text) == key

    def test_a_number_that_is_not_the_persons_is_a_wrong_value(self) -> None:
        assert judge("Has 3 cats", person({"animals:0": [0]})) is Verdict.WRONG_VALUE

    def test_what_the_data_set_does_not_know_counts_as_invented_and_is_listed(self) -> None:
        who = person({OSLO: [0]})
        outcome = Outcome(who, ["Likes long walks", "Lives in Oslo"], {}, ())
        assert judge("Likes long walks", who) is Verdict.INVENTED
        assert unrecognised([outcome]) == ["Likes long walks"]


def test_a_spread_is_lowest_median_and_highest_of_what_there_is() -> None:
    assert spread([0.5, None, 0.25, 1.0]) == [0.25, 0.5, 1.0]
    assert spread([None, None]) is None
