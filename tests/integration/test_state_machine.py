"""The store against the oracle: the same steps on both, compared after each."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
from collections.abc import Coroutine
from typing import Any, TypeVar

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from llmbot.memory.rules import Mention, PassSettings, Proposals
from llmbot.memory.store import CleanupPlan, Memory, MemoryStore, Merge

from .database import DEFAULTS, Clock, bystander, plugin_database
from .oracle import OracleMemory, OraclePass, Person

T = TypeVar("T")

# Two of them differ in case only: different people.
USERS = ("@ada:example.org", "@Ada:example.org")
ROOMS = ("!one:example.org", "!two:example.org")

users = st.sampled_from(USERS)
rooms = st.sampled_from(ROOMS)
facts = st.builds(
    lambda words, spelling: spelling(words),
    st.sampled_from(["lives in Berlin", "likes tea", "is 42", "has a dog", "speaks Thai"]),
    st.sampled_from([str, str.upper, lambda words: f" {words}. ".strip()]),
)
events = st.integers(1, 6).map("$event{}".format)
picks = st.lists(st.integers(0, 7), max_size=3)
pass_settings = st.builds(
    PassSettings,
    promotion_threshold=st.integers(1, 4),
    candidate_ttl_days=st.sampled_from([0, 1, 14]),
    max_per_user=st.integers(1, 6),
    cleanup_interval=st.integers(0, 3),
    mention_gap_minutes=st.sampled_from([0, 0, 30]),
)
passes = st.tuples(st.lists(facts, max_size=4), picks, picks, events, rooms)


class Memories(RuleBasedStateMachine):
    """Drives store and oracle."""

    url: str

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.exit = contextlib.AsyncExitStack()
        database = self.run(self.exit.enter_async_context(plugin_database(self.url)))
        self.connection = self.run(self.exit.enter_async_context(bystander(self.url, database)))
        self.clock = Clock()
        self.store = MemoryStore(database, self.clock)
        self.serials = itertools.count(1)
        self.people = {user: Person(lambda: next(self.serials)) for user in USERS}
        self.settings = DEFAULTS
        # What the oracle calls by serial numbers the database calls by ids.
        self.candidate_ids: dict[int, int] = {}
        self.memory_ids: dict[int, int] = {}
        self.ids_seen: set[int] = set()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def teardown(self) -> None:
        self.run(self.exit.aclose())
        self.loop.close()

    @initialize(chosen=pass_settings)
    def start(self, chosen: PassSettings) -> None:
        self.settings = chosen

    # --- steps -----------------------------------------------------------------------------

    def _drawn(self, user: str, drawn: tuple[Any, ...]) -> tuple[OraclePass, Proposals]:
        """Turn drawn numbers into candidates that the extractor would be shown now."""
        new, reinforced, contradicted, event, room = drawn
        shown = self.people[user].shown(self.settings, self.clock.now)

        def serials(places: list[int]) -> tuple[int, ...]:
            return tuple(dict.fromkeys(shown[p].serial for p in places if p < len(shown)))

        told = OraclePass(tuple(new), serials(reinforced), serials(contradicted), event, room)
        return told, Proposals(
            told.new,
            tuple(self.candidate_ids[serial] for serial in told.reinforced),
            tuple(self.candidate_ids[serial] for serial in told.contradicted),
        )

    async def _apply(self, user: str, told: OraclePass, proposals: Proposals) -> bool:
        mention = Mention(user, told.room, told.event)
        outcome = await self.store.apply_pass(mention, proposals, self.settings)
        return outcome.cleanup_due

    @rule(user=users, drawn=passes)
    def one_pass(self, user: str, drawn: tuple[Any, ...]) -> None:
        told, proposals = self._drawn(user, drawn)
        due = self.run(self._apply(user, told, proposals))
        assert due == self.people[user].do_pass(told, self.settings, self.clock.now)

    @rule(drawn=st.lists(st.tuples(users, passes), min_size=2, max_size=3))
    def parallel_passes(self, drawn: list[tuple[str, tuple[Any, ...]]]) -> None:
        """Parallel passes end as if they had run one after another, in some order (M16)."""
        told = [(user, *self._drawn(user, one)) for user, one in drawn]

        async def at_once() -> None:
            await asyncio.gather(*(self._apply(*one) for one in told))

        self.run(at_once())
        before = self.people
        for order in itertools.permutations(told):
            self.people = {user: person.copy() for user, person in before.items()}
            for user, one, _ in order:
                self.people[user].do_pass(one, self.settings, self.clock.now)
            if self._differences() == []:
                return
        raise AssertionError(f"no order of {told} explains the tables")

    @rule(user=users, fact=facts, room=rooms)
    def save_explicitly(self, user: str, fact: str, room: str) -> None:
        self.run(self.store.save(user, room, fact))
        self.people[user].save(fact, room, self.clock.now)

    def _memory(self, user: str, place: int) -> OracleMemory | None:
        memories = self.people[user].memories
        return memories[place % len(memories)] if memories else None

    @rule(user=users, owner=users, place=st.integers(0, 5))
    def delete(self, user: str, owner: str, place: int) -> None:
        memory = self._memory(owner, place)
        if memory:
            found = self.run(self.store.delete(user, [self.memory_ids[memory.serial]]))
            assert bool(found) == (user == owner)
            if user == owner:
                self.people[user].delete(memory.serial)

    @rule(user=users, owner=users, place=st.integers(0, 5), fact=facts)
    def edit(self, user: str, owner: str, place: int, fact: str) -> None:
        memory = self._memory(owner, place)
        if memory:
            self.run(self.store.edit(user, self.memory_ids[memory.serial], fact))
            if user == owner:
                self.people[user].edit(memory.serial, fact)

    @rule(user=users)
    def clear(self, user: str) -> None:
        deleted = self.run(self.store.clear(user))
        assert deleted == len(self.people[user].memories)
        self.people[user].clear()

    @rule(
        user=users,
        order=st.permutations(range(6)),
        drops=st.integers(0, 2),
        merged=st.sampled_from([0, 2, 3]),
        fact=facts,
        meanwhile=st.none() | st.tuples(st.integers(0, 5), st.none() | facts),
    )
    def cleanup(
        self,
        user: str,
        order: list[int],
        drops: int,
        merged: int,
        fact: str,
        meanwhile: tuple[int, str | None] | None,
    ) -> None:
        """A cleanup during whose call the user may edit or delete a memory."""
        person = self.people[user]
        shown = person.copy().memories
        rows = {memory.id: memory for memory in self.run(self.store.memories(user))}
        if meanwhile:
            place, text = meanwhile
            if text is None:
                self.delete(user, user, place)
            else:
                self.edit(user, user, place, text)
        places = [place for place in order if place < len(shown)]
        drop, merge = places[:drops], places[drops : drops + merged]
        merge = merge if len(merge) >= 2 else []

        def row(place: int) -> Memory:
            return rows[self.memory_ids[shown[place].serial]]

        merges = (Merge(tuple(map(row, merge)), fact),) if merge else ()
        self.run(self.store.apply_cleanup(user, CleanupPlan(tuple(map(row, drop)), merges)))
        person.clean(shown, drop, merge, fact)

    @rule(user=users)
    def undo(self, user: str) -> None:
        self.run(self.store.undo_cleanup(user))
        self.people[user].undo_cleanup()

    @rule(duration=st.sampled_from([{"minutes": 10}, {"hours": 13}, {"days": 13}, {"days": 15}]))
    def time_passes(self, duration: dict[str, float]) -> None:
        self.clock.advance(**duration)

    @rule(chosen=pass_settings)
    def change_settings(self, chosen: PassSettings) -> None:
        self.settings = chosen

    @rule(user=users)
    def look(self, user: str) -> None:
        """What the extractor is shown (M3, M4, M5)."""
        view = self.run(self.store.begin_pass(user, "hello", self.settings))
        person = self.people[user]
        assert (view is None) == person.full(self.settings)
        if view:
            shown = person.shown(self.settings, self.clock.now)
            assert sorted(c.fact for c in view.candidates) == sorted(c.fact for c in shown)
            assert sorted(view.known_memories) == sorted(m.fact for m in person.memories)

    # --- what must hold after each step ----------------------------------------------------

    @invariant()
    def tables_are_as_the_rules_say(self) -> None:
        assert self._differences() == []

    @invariant()
    def candidates_are_found_by_their_terms(self) -> None:
        """The terms of the candidates, and no others, stand in the table by which they are."""
        by_candidate = "SELECT user_id, unnest(terms), id FROM memory_candidates"
        by_term = "SELECT user_id, term, candidate_id FROM memory_candidate_terms"
        query = f"({by_candidate} EXCEPT {by_term}) UNION ALL ({by_term} EXCEPT {by_candidate})"
        assert self.run(self.connection.fetch(query)) == []

    def _differences(self) -> list[str]:
        """Compare both users' rows; where all agree, note which id belongs to which serial."""
        rows = {user: self.run(self._rows(user)) for user in self.people}
        differences = [
            f"{user}: {rows[user]} != {expected}"
            for user, person in self.people.items()
            if _facts_of(rows[user]) != (expected := _expected(person))
        ]
        if differences:
            return differences
        for user, person in self.people.items():
            for candidate in person.candidates:
                self.candidate_ids[candidate.serial] = rows[user].id_of(
                    "candidates", candidate.fact
                )
            for memory in person.memories:
                memory_id = rows[user].id_of("memories", memory.fact)
                if self.memory_ids.setdefault(memory.serial, memory_id) != memory_id:
                    differences.append(f"{user}: {memory} changed its id")
        if len(set(self.memory_ids.values())) != len(self.memory_ids):
            differences.append("an id was reused")
        return differences

    async def _rows(self, user: str) -> Rows:
        tables = [
            await self.connection.fetch(f"SELECT * FROM {table} WHERE user_id = $1", user)
            for table in (
                "memory_candidates",
                "memories",
                "memory_cleanup_undo",
                "memory_cleanup_counters",
            )
        ]
        return Rows(*([dict(row) for row in table] for table in tables))


@dataclasses.dataclass(frozen=True)
class Rows:
    """All rows of one user."""

    candidates: list[dict[str, Any]]
    memories: list[dict[str, Any]]
    undo: list[dict[str, Any]]
    counters: list[dict[str, Any]]

    def id_of(self, table: str, fact: str) -> int:
        (found,) = [row["id"] for row in getattr(self, table) if row["fact"] == fact]
        assert isinstance(found, int)
        return found


def _facts_of(rows: Rows) -> tuple[Any, ...]:
    keys = [row["fact_key"] for row in (*rows.candidates, *rows.memories)]
    return (
        sorted(
            (
                row["fact"],
                row["mentions"],
                row["first_seen"],
                row["last_seen"],
                row["room_id"],
                sorted(row["event_ids"]),
            )
            for row in rows.candidates
        ),
        sorted((row["fact"], row["created_at"], row["room_id"]) for row in rows.memories),
        sorted(row["fact"] for row in rows.undo),
        sum(row["promoting_passes"] for row in rows.counters),
        # No fact is in both tables, none twice in one.
        len(keys) == len(set(keys)),
    )


def _expected(person: Person) -> tuple[Any, ...]:
    return (
        sorted(
            (c.fact, c.mentions, c.first_seen, c.last_seen, c.room, sorted(c.events))
            for c in person.candidates
        ),
        sorted((memory.fact, memory.created_at, memory.room) for memory in person.memories),
        sorted(retired.memory.fact for retired in person.undo),
        person.promoting_passes,
        True,
    )


def test_store_and_oracle_agree(postgres_url: str) -> None:
    machine = type("MemoriesHere", (Memories,), {"url": postgres_url})
    # Without types in the Hypothesis that Python 3.10 gets.
    run: Any = run_state_machine_as_test
    run(
        machine,
        settings=settings(
            max_examples=60,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
