"""What must hold in every committed state of the tables, whatever was killed (M1 to M18). Pure."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from soak.script import INVENTED, LEAK, PASSWORD, SAVED, TOKEN, Item, Kind, items_in

THRESHOLD = 3
CLEANUP_INTERVAL = 2
DURABLE = 1_000_000
"""The standing of what is a memory: above any number of mentions."""

Row = Mapping[str, Any]


@dataclasses.dataclass
class Question:
    """What was asked, and what came back."""

    event_id: str
    token: str
    kind: Kind
    items: tuple[Item, ...]
    user_id: str
    room_is_remembered: bool
    sent: float
    """Seconds since 1970, by the homeserver's clock, as all times here."""
    answers: list[tuple[float, str]] = dataclasses.field(default_factory=list)

    @property
    def is_answered(self) -> bool:
        """Whether the model's own answer came, and no error in its place."""
        return any(TOKEN.search(text) for _, text in self.answers)

    @property
    def is_wrong(self) -> bool:
        """Whether an answer belongs to another question, or holds another person's data."""
        tokens = {match[0] for _, text in self.answers for match in TOKEN.finditer(text)}
        return bool(tokens - {self.token}) or any(LEAK in text for _, text in self.answers)

    @property
    def is_saved(self) -> bool:
        """Whether it was told that its fact is saved."""
        return self.kind is Kind.SAVE and any(SAVED in text for _, text in self.answers)


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """All rows as one statement saw them."""

    candidates: Sequence[Row]
    memories: Sequence[Row]
    counters: Sequence[Row]
    undo: Sequence[Row]

    def standings(self) -> dict[Item, int]:
        """Return how far each item has come: its mentions, or `DURABLE`."""
        found: dict[Item, int] = collections.Counter()
        for row in self.candidates:
            for item in items_in(row["fact"]):
                found[item] = max(found[item], row["mentions"])
        for row in self.memories:
            for item in items_in(row["fact"]):
                found[item] = DURABLE
        return found


class Broken(str):
    """One rule broken: its number and what is wrong."""

    __slots__ = ()


def broken_rules(
    snapshot: Snapshot, questions: Mapping[str, Question], *, at_end: bool
) -> Iterator[Broken]:
    """Yield what is wrong with a committed state.

    Args:
        snapshot: The state.
        questions: All that was asked before it was taken, by event id.
        at_end: Whether all answers have been seen, so that they can be counted on.
    """
    yield from _broken_rows(snapshot)
    owner = {
        question.items[0].owner: question.user_id
        for question in questions.values()
        if question.items
    }
    for row in (*snapshot.candidates, *snapshot.memories, *snapshot.undo):
        if any(
            owner.get(item.owner, row["user_id"]) != row["user_id"]
            for item in items_in(row["fact"])
        ):
            yield Broken(f"M15: {row['user_id']} has another one's fact: {row['fact']}")
    for row in snapshot.candidates:
        yield from _broken_candidate(row, questions, at_end=at_end)
    yield from _torn_pairs(snapshot)
    if at_end:
        yield from _unfounded_memories(snapshot, questions.values())
        standings = snapshot.standings()
        for question in questions.values():
            if question.is_saved and standings.get(question.items[0]) != DURABLE:
                yield Broken(f"M13: told to be saved, but is not there: {question.items[0].name}")


def _broken_rows(snapshot: Snapshot) -> Iterator[Broken]:
    keys = collections.Counter(
        (table, row["user_id"], row["fact_key"])
        for table, rows in (("candidates", snapshot.candidates), ("memories", snapshot.memories))
        for row in rows
    )
    for (table, user_id, key), count in keys.items():
        if count > 1 or key is None:
            yield Broken(f"M7: {user_id} has {count} {table} with the key {key}")
        if table == "memories" and ("candidates", user_id, key) in keys:
            yield Broken(f"M9: a fact of {user_id} is in both tables")
    yield from _never_stored(snapshot)
    for row in snapshot.counters:
        if not 0 <= row["promoting_passes"] < CLEANUP_INTERVAL:
            yield Broken(f"M11: counter {row['promoting_passes']} of {row['user_id']}")
    ids = {row["id"] for row in snapshot.memories}
    for row in snapshot.undo:
        if row["memory_id"] in ids or row["merged_into"] not in ids:
            yield Broken(f"M12: a cleanup of {row['user_id']} was half done: {row['fact']}")


def _never_stored(snapshot: Snapshot) -> Iterator[Broken]:
    for row in (*snapshot.candidates, *snapshot.memories):
        if INVENTED in row["fact"]:
            yield Broken(f"M6: without evidence: {row['fact']}")
        if PASSWORD in row["fact"]:
            yield Broken(f"M14: a password of {row['user_id']} was stored")


def _broken_candidate(
    row: Row, questions: Mapping[str, Question], *, at_end: bool
) -> Iterator[Broken]:
    events = list(row["event_ids"])
    if len(set(events)) != len(events) or len(events) != row["mentions"]:
        yield Broken(f"M8: {row['mentions']} mentions by {len(set(events))} events: {row['fact']}")
    if row["mentions"] >= THRESHOLD:
        yield Broken(f"M9: {row['mentions']} mentions and no memory: {row['fact']}")
    for event_id in events:
        question = questions.get(event_id)
        if question is None:
            # In the middle of the load, the sender may not have been told the event's id yet.
            if at_end:
                yield Broken(f"M8: counted an event that nobody sent: {row['fact']}")
            continue
        if question.user_id != row["user_id"] or not {*items_in(row["fact"])} <= {*question.items}:
            yield Broken(f"M6: counted an event that does not state it: {row['fact']}")
        if not question.room_is_remembered:
            yield Broken(f"M2: counted in a room whose memory is off: {row['fact']}")
        if at_end and not question.is_answered:
            yield Broken(f"M1: counted an unanswered question: {row['fact']}")


def _torn_pairs(snapshot: Snapshot) -> Iterator[Broken]:
    """Yield pairs of which one pass has noted only one."""
    standings = snapshot.standings()
    for item, standing in standings.items():
        other = dataclasses.replace(item, side="right" if item.side == "left" else "left")
        if item.pair.startswith("p") and standings.get(other, 0) != standing:
            yield Broken(f"M16: half of a pass: {item.name} {standing}, {other.name} not")


def _unfounded_memories(snapshot: Snapshot, questions: Iterable[Question]) -> Iterator[Broken]:
    told: collections.Counter[Item] = collections.Counter()
    wished: set[Item] = set()
    for question in questions:
        if question.kind is Kind.SAVE:
            wished.update(question.items)
        elif question.is_answered and question.room_is_remembered:
            told.update(question.items)
    for row in snapshot.memories:
        for item in items_in(row["fact"]):
            if item not in wished and told[item] < THRESHOLD:
                yield Broken(f"M9: a memory after {told[item]} mentions: {item.name}")


def lost(before: Snapshot, after: Snapshot) -> list[Broken]:
    """Return what was committed before and is not there, or counts less, after."""
    now = after.standings()
    return [
        Broken(f"M16: committed and lost: {item.name} had {standing}, has {now.get(item, 0)}")
        for item, standing in before.standings().items()
        if now.get(item, 0) < standing
    ]
