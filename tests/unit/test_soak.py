"""What the soak takes for a broken rule, and what it counts: a check that cannot fail is none."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from soak.__main__ import figures, missed, page
from soak.crowd import Crowd, Outage
from soak.invariants import Broken, Question, Snapshot, broken_rules, lost
from soak.model import clean_up, extract
from soak.run import Report, Size
from soak.script import Item, Kind, items_in, pair, question

ADA = "@u1:example.org"
LEFT, RIGHT = pair("u1", 0)
SAVED = Item("u1", "s9", "left")


def asked(number: int, kind: Kind = Kind.FACTS, **changes: Any) -> Question:  # noqa: ANN401
    token = f"[u1/{number}]"
    items = {Kind.FACTS: (LEFT, RIGHT), Kind.SAVE: (SAVED,)}.get(kind, ())
    answers = [(2.0, f"{token} Saved." if kind is Kind.SAVE else f"{token} Understood.")]
    good = Question(f"$e{number}", token, kind, items, ADA, True, 1.0, answers)
    return dataclasses.replace(good, **changes)


QUESTIONS = [*(asked(number) for number in range(4)), asked(4, Kind.SAVE), asked(5, Kind.SECRET)]


def candidate(item: Item, *events: int, **changes: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "id": 1,
        "user_id": ADA,
        "fact": item.fact,
        "fact_key": item.fact,
        "mentions": len(events),
        "event_ids": [f"$e{number}" for number in events],
        **changes,
    }


def memory(item: Item, **changes: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"id": 7, "user_id": ADA, "fact": item.fact, "fact_key": item.fact, **changes}


def state(
    candidates: tuple[Any, ...] = (),
    memories: tuple[Any, ...] = (),
    counters: tuple[Any, ...] = (),
    undo: tuple[Any, ...] = (),
) -> Snapshot:
    return Snapshot(candidates, memories, counters, undo)


def rules(snapshot: Snapshot, *questions: Question) -> set[str]:
    """The numbers of the rules that a state breaks."""
    by_id = {question.event_id: question for question in questions or QUESTIONS}
    found = broken_rules(snapshot, by_id, at_end=True)
    return {broken.partition(":")[0] for broken in found}


KEPT = memory(SAVED)
BOTH = (candidate(LEFT, 0, 1), candidate(RIGHT, 0, 1))
REMEMBERED = (memory(LEFT, id=1), memory(RIGHT, id=2), KEPT)
UNDO = {"memory_id": 3, "user_id": ADA, "fact": LEFT.fact, "merged_into": 7}


@pytest.mark.parametrize(
    "snapshot",
    [
        state(BOTH, (KEPT,)),
        state((), REMEMBERED, ({"user_id": ADA, "promoting_passes": 1},)),
        state((), (memory(LEFT, fact=f"{LEFT.fact} and {RIGHT.name}", id=2), KEPT), (), (UNDO,)),
    ],
)
def test_what_is_as_it_should_be(snapshot: Snapshot) -> None:
    assert rules(snapshot) == set()


@pytest.mark.parametrize(
    ("rule", "snapshot"),
    [
        ("M6", state((candidate(LEFT, 5), candidate(RIGHT, 5)), (KEPT,))),
        ("M6", state((candidate(dataclasses.replace(SAVED, pair="invented")),), (KEPT,))),
        ("M7", state((*BOTH, *BOTH), (KEPT,))),
        ("M7", state((), (KEPT, KEPT))),
        ("M8", state((candidate(LEFT, 0, 0), candidate(RIGHT, 0, 0)), (KEPT,))),
        ("M8", state((candidate(LEFT, 0, mentions=2), candidate(RIGHT, 0, mentions=2)), (KEPT,))),
        ("M8", state((candidate(LEFT, 99), candidate(RIGHT, 99)), (KEPT,))),
        ("M9", state((candidate(LEFT, 0, 1, 2), candidate(RIGHT, 0, 1, 2)), (KEPT,))),
        ("M9", state((candidate(SAVED, 4),), (KEPT,))),
        ("M11", state((), (KEPT,), ({"user_id": ADA, "promoting_passes": 2},))),
        ("M12", state((), (*REMEMBERED, memory(LEFT, id=3, fact_key="x")), (), (UNDO,))),
        ("M12", state((), (KEPT,), (), ({**UNDO, "merged_into": 8},))),
        ("M13", state()),
        ("M14", state((), (KEPT, memory(SAVED, fact="Password is swordfish", fact_key="p")))),
        ("M15", state((), (KEPT, memory(SAVED, user_id="@u2:example.org")))),
        ("M16", state(BOTH[:1], (KEPT,))),
        ("M16", state((candidate(LEFT, 0, 1), candidate(RIGHT, 0)), (KEPT,))),
    ],
)
def test_what_breaks_a_rule(rule: str, snapshot: Snapshot) -> None:
    assert rule in rules(snapshot)


def test_m1_m2_m9_what_may_be_counted() -> None:
    one = state(BOTH)
    first, second = QUESTIONS[:2]
    assert rules(one, first, second) == set()
    assert rules(one, first, dataclasses.replace(second, answers=[])) == {"M1"}
    assert rules(one, first, dataclasses.replace(second, answers=[(2, "Busy.")])) == {"M1"}
    assert rules(one, first, dataclasses.replace(second, room_is_remembered=False)) == {"M2"}
    assert rules(state((), REMEMBERED[:2]), *QUESTIONS[:3]) == set()
    assert rules(state((), REMEMBERED[:2]), first, second) == {"M9"}


def test_what_was_committed_may_only_grow() -> None:
    once, twice = (
        state((candidate(LEFT, *events), candidate(RIGHT, *events))) for events in ((0,), (0, 1))
    )
    durable = state((), REMEMBERED[:2])
    for earlier, later in ((state(), once), (once, twice), (twice, durable), (once, once)):
        assert lost(earlier, later) == []
    for earlier, later in ((once, state()), (twice, once), (durable, twice), (durable, state())):
        assert len(lost(earlier, later)) == 2


def report(*questions: Question) -> Report:
    return Report(Size(), list(questions), [], [], ["maubot killed at 1 s"], 3, {}, {})


def test_each_target_can_be_missed() -> None:
    good = report(*QUESTIONS)
    assert missed(good) == []
    wrong = asked(1, answers=[(2.0, "[u1/2] Understood.")])
    leak = asked(1, answers=[(2.0, "LEAK [u1/1]")])
    twice = asked(1, answers=asked(1).answers * 2)
    assert missed(report(wrong)) == missed(report(leak)) == ["wrong answers"]
    assert missed(report(twice)) == ["doubled answers"]
    assert missed(dataclasses.replace(good, lost=[asked(1, answers=[])])) == ["lost otherwise"]
    assert missed(dataclasses.replace(good, broken=[Broken("M1: x")])) == ["broken rules"]
    assert missed(report()) == missed(report(asked(1, answers=[(2.0, "Busy.")]))) == ["answered"]


def test_the_counts_add_up() -> None:
    silent, error = asked(7, answers=[]), asked(8, answers=[(3.0, "Internal error abc")])
    counts = figures(dataclasses.replace(report(*QUESTIONS, silent, error), lost=[silent]))
    assert counts["questions"] == len(QUESTIONS) + 2
    assert counts["answered"] == len(QUESTIONS)
    assert counts["answered with an error sentence"] == counts["lost otherwise"] == 1
    assert counts["lost with a bot that was down or cut off"] == 0
    assert "| lost otherwise (target: 0) | 0 |" in page(report(*QUESTIONS))


def test_only_an_outage_explains_a_lost_question() -> None:
    crowd = Crowd.__new__(Crowd)
    crowd.outages = [Outage("maubot", 100.0, 110.0)]
    for sent, is_explained in ((80, False), (90, True), (105, True), (110.5, False)):
        lost_question = asked(1, answers=[], sent=float(sent))
        assert (crowd.unexplained([lost_question]) == []) == is_explained


def test_the_model_tempts_and_merges() -> None:
    message = question("[u1/1]", Kind.FACTS, (LEFT, RIGHT))
    assert items_in(message) == [LEFT, RIGHT]
    payload = {
        "known_memories": [],
        "candidates": [{"n": 1, "fact": RIGHT.fact}],
        "user_message": message,
        "assistant_reply": "",
    }
    found = extract(payload)
    assert [item["fact"] for item in found["new"]] == [LEFT.fact, "Owns item u1-invented-x"]
    assert [item["n"] for item in found["reinforced"]] == [1]
    memories = [{"n": n, "fact": item.fact} for n, item in ((1, SAVED), (2, LEFT), (3, RIGHT))]
    assert [merge["n"] for merge in clean_up({"memories": memories})["merge"]] == [[2, 3]]
