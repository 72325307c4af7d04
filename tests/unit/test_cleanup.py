"""Which cleanups are carried out (M12): rejected as a whole where anything would do harm."""

from __future__ import annotations

import datetime
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmbot.memory.cleanup import RejectedCleanupError, parse_cleanup
from llmbot.memory.facts import one_line, refusal
from llmbot.memory.store import CleanupPlan, Memory, Merge

from ..fuzzing import fuzzed

SINCE = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
SHOWN = tuple(
    Memory(id_, fact, SINCE)
    for id_, fact in (
        (41, "Lives in Berlin"),
        (7, "Has a cat"),
        (9_000_000_000, "Has two cats"),
        (12, "Is a nurse"),
        (13, "Likes tea"),
    )
)
A, B, C, D, E = SHOWN


def read(answer: object, shown: tuple[Memory, ...] = SHOWN) -> CleanupPlan:
    return parse_cleanup(answer if isinstance(answer, str) else json.dumps(answer), shown)


def merge(numbers: object, fact: object = "Has cats") -> dict[str, object]:
    return {"merge": [{"n": numbers, "fact": fact}]}


@pytest.mark.parametrize(
    ("answer", "plan"),
    [
        ({"drop": [], "merge": []}, CleanupPlan()),
        ({}, CleanupPlan()),
        ({"drop": None, "merge": None}, CleanupPlan()),
        ({"drop": [2]}, CleanupPlan((B,))),
        ({"drop": [5, 1]}, CleanupPlan((E, A))),
        (merge([3, 2]), CleanupPlan((), (Merge((C, B), "Has cats"),))),
        (merge([1, 2, 3, 4, 5]), CleanupPlan((), (Merge(SHOWN, "Has cats"),))),
        (
            {"drop": [1, 4], "merge": [{"n": [2, 3], "fact": "Has cats", "why": "same"}]},
            CleanupPlan((A, D), (Merge((B, C), "Has cats"),)),
        ),
        (merge([2, 3], " Has \n two\tcats \0"), CleanupPlan((), (Merge((B, C), "Has two cats"),))),
        (merge([2, 3], "a" * 500), CleanupPlan((), (Merge((B, C), "a" * 500),))),
        ({"drop": [2], "keep": [1, 3]}, CleanupPlan((B,))),
    ],
)
def test_m12_what_is_carried_out(answer: dict[str, object], plan: CleanupPlan) -> None:
    assert read(answer) == plan
    assert read(f"```json\n{json.dumps(answer)}\n```") == plan


@pytest.mark.parametrize("number", [0, -1, 6, 41, 7, 10**30])
def test_m12_an_unknown_number(number: int) -> None:
    for answer in ({"drop": [number]}, {"drop": [1, number]}, merge([1, number])):
        with pytest.raises(RejectedCleanupError, match="unknown number"):
            read(answer)


@pytest.mark.parametrize(
    "answer",
    [
        {"drop": [1, 1]},
        merge([2, 2]),
        merge([2, 3, 2]),
        {"drop": [2], "merge": [{"n": [2, 3], "fact": "Has cats"}]},
        {"merge": [{"n": [1, 2], "fact": "x y"}, {"n": [2, 3], "fact": "y z"}]},
    ],
)
def test_m12_a_repeated_number(answer: object) -> None:
    with pytest.raises(RejectedCleanupError, match="twice"):
        read(answer)


@pytest.mark.parametrize("numbers", [[], [2], None])
def test_m12_a_merge_of_fewer_than_two(numbers: object) -> None:
    with pytest.raises(RejectedCleanupError, match="fewer than two"):
        read(merge(numbers))
    with pytest.raises(RejectedCleanupError, match="fewer than two"):
        read({"merge": [{"fact": "Has cats"}]})


@pytest.mark.parametrize(
    "fact", ["", "  \n", "\u200b", "a" * 501, "Password is swordfish", "sk-abcdefghijklmnop"]
)
def test_m12_m14_a_text_that_is_never_stored(fact: str) -> None:
    with pytest.raises(RejectedCleanupError, match="never stored") as caught:
        read(merge([2, 3], fact))
    assert not fact.strip() or fact not in str(caught.value)


@pytest.mark.parametrize(
    ("count", "most"), [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2), (7, 3), (50, 25), (51, 25)]
)
def test_m12_half_may_be_dropped_and_no_more(count: int, most: int) -> None:
    shown = tuple(Memory(id_, f"Fact {id_}", SINCE) for id_ in range(count))
    assert len(read({"drop": list(range(1, most + 1))}, shown).dropped) == most
    with pytest.raises(RejectedCleanupError, match="more than half"):
        read({"drop": list(range(1, most + 2))}, shown)


def test_m12_merged_memories_do_not_count_as_dropped() -> None:
    plan = read({"drop": [1, 2], "merge": [{"n": [3, 4, 5], "fact": "All of it"}]})
    assert (plan.dropped, plan.merges) == ((A, B), (Merge((C, D, E), "All of it"),))


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "Nothing to tidy up.",
        "[]",
        "null",
        "[1, 2]",
        '{"drop": [1}',
        '{"drop": [NaN]}',
        '{"drop": [1e0]}',
        '{"drop": ' + "[" * 50_000 + "]" * 50_000 + "}",
        '{"drop": [' + "1" * 10_000 + "]}",
        {"drop": 1},
        {"drop": {}},
        {"drop": "1"},
        {"drop": True},
        {"drop": ["1"]},
        {"drop": [1.0]},
        {"drop": [True]},
        {"drop": [None]},
        {"drop": [[1]]},
        {"drop": [{"n": 1}]},
        {"merge": {}},
        {"merge": 1},
        {"merge": "1, 2"},
        {"merge": [None]},
        {"merge": [[1, 2]]},
        {"merge": ["Has cats"]},
        {"merge": [{}]},
        {"merge": [{"n": [1, 2]}]},
        merge([1, 2], None),
        merge([1, 2], 7),
        merge([1, 2], ["Has cats"]),
        merge(1),
        merge("1, 2"),
        merge({"1": 2}),
        merge([1, "2"]),
        merge([1, 2.0]),
        merge([1, True]),
        # One bad part spoils the whole.
        {"drop": [1], "merge": [{"n": [2, 3], "fact": "Has cats"}, {"n": [4], "fact": "x y"}]},
        {"drop": [1], "merge": 7},
    ],
    ids=lambda answer: repr(answer)[:40],
)
def test_m12_another_shape_is_rejected(answer: object) -> None:
    with pytest.raises(RejectedCleanupError):
        read(answer)


# --- anything ----------------------------------------------------------------------------------

NUMBERS = st.integers(-1, 7) | st.integers(1, 5)
SCALARS = st.none() | st.booleans() | NUMBERS | st.floats() | st.text(max_size=20)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
FACTS = st.sampled_from(["Has cats", "a\nb", "", "a" * 501, "Password is swordfish"]) | st.text()
MERGES = st.fixed_dictionaries(
    {"n": st.lists(NUMBERS, max_size=3) | JSON, "fact": FACTS | FACTS | JSON}
)
ANSWERS = st.fixed_dictionaries(
    {},
    optional={
        "drop": st.lists(NUMBERS, max_size=3) | JSON,
        "merge": st.lists(MERGES, max_size=2) | JSON,
        "x": JSON,
    },
)


@fuzzed
@given(
    ANSWERS.map(json.dumps) | JSON.map(json.dumps) | st.text(),
    st.integers(0, len(SHOWN)).map(lambda count: SHOWN[:count]),
)
def test_any_answer_is_rejected_or_within_m12(text: str, shown: tuple[Memory, ...]) -> None:
    try:
        plan = parse_cleanup(text, shown)
    except RejectedCleanupError:
        return
    merged = [memory for merge in plan.merges for memory in merge.merged]
    touched = [*plan.dropped, *merged]
    assert set(touched) <= set(shown)
    assert len(touched) == len(set(touched))
    assert len(plan.dropped) * 2 <= len(shown)
    assert not shown or len(shown) - len(touched) + len(plan.merges) >= 1
    for merge in plan.merges:
        assert len(merge.merged) >= 2
        assert merge.fact == one_line(merge.fact)
        assert refusal(merge.fact) is None
