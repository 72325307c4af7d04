"""What a pass changes, decided from the rows as they are: rules M7 to M10.

Pure: `store.py` reads the rows, asks here, and writes the answer in one transaction.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
from collections.abc import Collection, Iterable, Sequence

from .facts import fact_key


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A fact that was mentioned but is not yet a memory: a row of `memory_candidates`."""

    id: int
    fact: str
    key: str
    mentions: int
    last_seen: datetime.datetime
    room_id: str
    event_ids: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Proposals:
    """What the extractor found in one message, its evidence already checked (M6).

    `reinforced` and `contradicted` hold ids of candidates; `new` holds one-line facts.
    """

    new: tuple[str, ...] = ()
    reinforced: tuple[int, ...] = ()
    contradicted: tuple[int, ...] = ()

    @property
    def are_none(self) -> bool:
        """Whether the extractor found nothing."""
        return not (self.new or self.reinforced or self.contradicted)

    @functools.cached_property
    def keys(self) -> list[str]:
        """The keys under which the new facts may be known already."""
        return [fact_key(fact) for fact in self.new]


@dataclasses.dataclass(frozen=True)
class KnownMemories:
    """A user's memories, as far as a pass has to know them.

    `keys` holds at least those of the proposals' keys that are memories' keys.
    """

    count: int
    keys: Collection[str]


@dataclasses.dataclass(frozen=True)
class Mention:
    """The message that a pass is about."""

    user_id: str
    room_id: str
    event_id: str


@dataclasses.dataclass(frozen=True)
class PassSettings:
    """The settings of one pass, read once when it starts (M3)."""

    promotion_threshold: int
    candidate_ttl_days: int
    max_per_user: int
    cleanup_interval: int
    mention_gap_minutes: int

    def stale_before(self, now: datetime.datetime) -> datetime.datetime | None:
        """Return the time before which a candidate must have been seen to be stale (M4)."""
        if self.candidate_ttl_days == 0:
            return None
        try:
            return now - datetime.timedelta(days=self.candidate_ttl_days)
        except OverflowError:
            return None


@dataclasses.dataclass(frozen=True)
class Changes:
    """What one pass does to the user's rows.

    `created` become candidates, `remembered` memories; `promoted` go from one to the other.
    """

    contradicted: Sequence[Candidate]
    reinforced: Sequence[Candidate]
    promoted: Sequence[Candidate]
    created: Sequence[str]
    remembered: Sequence[str]

    @property
    def are_none(self) -> bool:
        """Whether there is nothing to write."""
        return not (
            self.contradicted
            or self.reinforced
            or self.promoted
            or self.created
            or self.remembered
        )


def decide(
    proposals: Proposals,
    candidates: Iterable[Candidate],
    memories: KnownMemories,
    event_id: str,
    settings: PassSettings,
    now: datetime.datetime,
) -> Changes:
    """Return the changes that `proposals` make to one user's rows.

    Args:
        proposals: What the extractor found.
        candidates: The user's candidates that the proposals may be about, none of them stale.
        memories: What there is to know of the user's memories.
        event_id: The event that mentions the facts.
        settings: The pass's settings.
        now: The time of the pass.
    """
    by_id = {candidate.id: candidate for candidate in candidates}
    # M10: what the text contradicts goes first, so that nothing else can save it. What is not
    # there any more (promoted or deleted meanwhile) is ignored, here and in what follows.
    contradicted = [
        by_id.pop(id_) for id_ in dict.fromkeys(proposals.contradicted) if id_ in by_id
    ]
    mentioned = {id_: by_id[id_] for id_ in proposals.reinforced if id_ in by_id}
    unknown: dict[str, str] = {}
    by_key = {candidate.key: candidate for candidate in by_id.values()}
    for fact, key in zip(proposals.new, proposals.keys, strict=True):
        if key in by_key:  # M7: said again in the same words
            mentioned[by_key[key].id] = by_key[key]
        elif key not in memories.keys:  # M7: else it is known already
            unknown.setdefault(key, fact)

    counted = [
        candidate
        for candidate in mentioned.values()
        if _counts(candidate, event_id, settings, now)
    ]
    # M9: promotion happens at a reinforcement, while there is room.
    due = [c for c in counted if c.mentions + 1 >= settings.promotion_threshold]
    room = max(0, settings.max_per_user - memories.count)
    promoted = due[:room]
    # M7: with a threshold of 1 the first mention is enough, while there is room.
    room = room - len(promoted) if settings.promotion_threshold == 1 else 0
    new = list(unknown.values())
    return Changes(
        contradicted=contradicted,
        reinforced=[candidate for candidate in counted if candidate not in promoted],
        promoted=promoted,
        created=new[room:],
        remembered=new[:room],
    )


def _counts(
    candidate: Candidate, event_id: str, settings: PassSettings, now: datetime.datetime
) -> bool:
    """Say whether this event is one more mention of the candidate (M8).

    Not if it was counted before, and not if it follows the last mention too closely.
    """
    if event_id in candidate.event_ids:
        return False
    minutes_since = (now - candidate.last_seen).total_seconds() / 60
    return settings.mention_gap_minutes == 0 or minutes_since >= settings.mention_gap_minutes
