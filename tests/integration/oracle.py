"""The memory rules as a small in-memory model, written from the rules and not from the store.

It is slow and plain on purpose: one list per table, one line per sentence of the rules.
"""

from __future__ import annotations

import copy
import dataclasses
import datetime
from collections.abc import Callable, Sequence

from llmbot.memory.rules import PassSettings

Time = datetime.datetime


def key(fact: str) -> str:
    """What the facts of these tests share when they are the same."""
    return " ".join(fact.casefold().split()).rstrip(".")


@dataclasses.dataclass
class OracleCandidate:
    serial: int
    fact: str
    mentions: int
    first_seen: Time
    last_seen: Time
    room: str
    events: set[str]


@dataclasses.dataclass
class OracleMemory:
    serial: int
    fact: str
    created_at: Time
    room: str


@dataclasses.dataclass
class Retired:
    memory: OracleMemory
    merged_into: int | None


@dataclasses.dataclass(frozen=True)
class OraclePass:
    """One pass: serials stand for the candidates that the extractor was shown."""

    new: tuple[str, ...]
    reinforced: tuple[int, ...]
    contradicted: tuple[int, ...]
    event: str
    room: str


@dataclasses.dataclass
class Person:
    """One user's rows, and every rule that changes them."""

    serials: Callable[[], int]
    candidates: list[OracleCandidate] = dataclasses.field(default_factory=list)
    memories: list[OracleMemory] = dataclasses.field(default_factory=list)
    undo: list[Retired] = dataclasses.field(default_factory=list)
    promoting_passes: int = 0

    def copy(self) -> Person:
        return dataclasses.replace(
            self,
            candidates=copy.deepcopy(self.candidates),
            memories=copy.deepcopy(self.memories),
            undo=copy.deepcopy(self.undo),
        )

    def knows(self, fact: str) -> bool:
        return any(key(memory.fact) == key(fact) for memory in self.memories)

    def remember(self, fact: str, room: str, now: Time) -> None:
        self.memories.append(OracleMemory(self.serials(), fact, now, room))
        self.candidates = [c for c in self.candidates if key(c.fact) != key(fact)]

    def full(self, settings: PassSettings) -> bool:
        return len(self.memories) >= settings.max_per_user

    def shown(self, settings: PassSettings, now: Time) -> list[OracleCandidate]:
        return [c for c in self.candidates if not self.stale(c, settings, now)]

    def stale(self, candidate: OracleCandidate, settings: PassSettings, now: Time) -> bool:
        ttl = datetime.timedelta(days=settings.candidate_ttl_days)
        return bool(ttl) and now - candidate.last_seen > ttl

    def do_pass(self, told: OraclePass, settings: PassSettings, now: Time) -> bool:
        """Carry out a pass; say whether a cleanup is due."""
        if self.full(settings):  # M3
            return False
        self.candidates = self.shown(settings, now)  # M4
        self.candidates = [  # M10
            c for c in self.candidates if c.serial not in told.contradicted
        ]
        due: list[OracleCandidate] = [
            next(c for c in self.candidates if c.serial == serial)
            for serial in told.reinforced
            if any(c.serial == serial for c in self.candidates)
        ]
        fresh: list[str] = []
        for fact in told.new:  # M7
            same = [c for c in self.candidates if key(c.fact) == key(fact)]
            if same:
                due += same
            elif not self.knows(fact) and key(fact) not in map(key, fresh):
                fresh.append(fact)
        promotions = 0
        done: set[int] = set()
        for candidate in due:  # M8, M9
            minutes = (now - candidate.last_seen).total_seconds() / 60
            too_close = 0 < settings.mention_gap_minutes and minutes < settings.mention_gap_minutes
            if candidate.serial in done or told.event in candidate.events or too_close:
                continue
            done.add(candidate.serial)
            candidate.mentions += 1
            candidate.last_seen = now
            candidate.events.add(told.event)
            if candidate.mentions >= settings.promotion_threshold and not self.full(settings):
                self.remember(candidate.fact, candidate.room, now)
                promotions += 1
        for fact in fresh:
            if settings.promotion_threshold == 1 and not self.full(settings):
                self.remember(fact, told.room, now)
                promotions += 1
            else:
                self.candidates.append(
                    OracleCandidate(self.serials(), fact, 1, now, now, told.room, {told.event})
                )
        if not promotions:
            return False
        self.promoting_passes += 1  # M11
        if settings.cleanup_interval and self.promoting_passes >= settings.cleanup_interval:
            self.promoting_passes = 0
            return True
        return False

    def save(self, fact: str, room: str, now: Time) -> None:  # M13
        if not self.knows(fact):
            self.remember(fact, room, now)

    def delete(self, serial: int) -> None:
        self.memories = [m for m in self.memories if m.serial != serial]
        self.undo = [r for r in self.undo if r.merged_into != serial]

    def edit(self, serial: int, fact: str) -> None:
        if any(m.serial != serial and key(m.fact) == key(fact) for m in self.memories):
            return
        for memory in self.memories:
            if memory.serial == serial:
                memory.fact = fact
                self.candidates = [c for c in self.candidates if key(c.fact) != key(fact)]
                for retired in self.undo:
                    if retired.merged_into == serial:
                        retired.merged_into = None

    def clear(self) -> None:
        self.memories = []
        self.undo = []

    def clean(
        self,
        shown: Sequence[OracleMemory],
        drop: Sequence[int],
        merge: Sequence[int],
        merged_fact: str,
    ) -> None:
        """Drop and merge what is as it was shown (M12); numbers are places in `shown`."""

        def unchanged(places: Sequence[int]) -> bool:
            return all(shown[place] in self.memories for place in places)

        leaving = [shown[place] for place in drop if unchanged([place])]
        merged = [shown[place] for place in merge] if merge and unchanged(merge) else []
        staying = [m for m in self.memories if m not in leaving and m not in merged]
        if any(key(m.fact) == key(merged_fact) for m in staying):
            merged = []
        if not leaving and not merged:
            return
        self.undo = [Retired(memory, None) for memory in leaving]
        self.memories = [m for m in self.memories if m not in leaving and m not in merged]
        if merged:
            newest = max(merged, key=lambda memory: (memory.created_at, memory.serial))
            self.remember(merged_fact, newest.room, newest.created_at)
            self.undo += [Retired(memory, self.memories[-1].serial) for memory in merged]

    def undo_cleanup(self) -> None:
        back, self.undo = self.undo, []
        gone = {retired.merged_into for retired in back}
        self.memories = [m for m in self.memories if m.serial not in gone]
        for retired in back:
            if not self.knows(retired.memory.fact):
                self.memories.append(retired.memory)
            self.candidates = [
                c for c in self.candidates if key(c.fact) != key(retired.memory.fact)
            ]
