"""The memory in PostgreSQL: the only module that holds SQL.

Every statement reaches its rows by an index that starts with `user_id`, or by their ids, and
a pass takes as few round trips as it can: beside the commit they are what it costs. Everything
that changes a user's rows runs in one transaction under that user's lock, so that changes of
one user are applied one after another, each on the rows as they are then (M16).
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import enum
import hashlib
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence

from mautrix.util.async_db import Connection, Database

from .facts import fact_key, terms
from .rules import (
    Candidate,
    Changes,
    KnownMemories,
    Mention,
    PassSettings,
    Proposals,
    decide,
)

MAX_SHOWN_CANDIDATES = 100
"""Candidates that the extractor is shown of one user."""
MAX_SHOWN_MEMORIES = 200
"""Memories that the extractor is shown of one user, the newest."""
MAX_SHOWN_BYTES = 5_500
"""Length of the candidates that the extractor is shown, and again of the memories.

Three bytes of UTF-8 hardly ever make more than a token, so both together stay below 4,000.
"""
_BYTES_AROUND = 24  # what stands around a fact in the prompt: {"n": 100, "fact": ""}, and space
_MAX_LOOKED_AT = 2_000  # Candidates compared with a message, if there are as many alike.

_MAX_ID = 2**63 - 1

# Planning a pass's statements would take longer than running them, so each connection plans
# them once; and by an index whatever the tables' sizes were then. Most users have little, which
# makes reading all that the user has look cheap: where ids are given, `user_id || ''` keeps the
# index on the user out of the plan.
_BEGIN = "BEGIN; SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_seqscan = off;"

Clock = Callable[[], datetime.datetime]


def utc_now() -> datetime.datetime:
    """Return the present time, with its time zone."""
    return datetime.datetime.now(datetime.timezone.utc)


@dataclasses.dataclass(frozen=True)
class Memory:
    """A durable memory: a row of `memories`."""

    id: int
    fact: str
    created_at: datetime.datetime


@dataclasses.dataclass(frozen=True)
class ShownCandidate:
    """A candidate as the extractor is shown it: by its place in the list, not by its id."""

    id: int
    fact: str


@dataclasses.dataclass(frozen=True)
class PassView:
    """What a pass shows the extractor of the user's rows (M5).

    `has_stale` tells that the pass has candidates to delete, whatever the extractor finds (M4).
    """

    known_memories: tuple[str, ...]
    candidates: tuple[ShownCandidate, ...]
    has_stale: bool = False


@dataclasses.dataclass(frozen=True)
class PassOutcome:
    """What a pass changed, for the log, and whether a cleanup is due (M11)."""

    created: int = 0
    reinforced: int = 0
    promoted: int = 0
    contradicted: int = 0
    cleanup_due: bool = False


class Saved(enum.Enum):
    """How an explicit save ended (M13)."""

    NEW = "new"
    KNOWN = "known"


class Edited(enum.Enum):
    """How an edit ended."""

    DONE = "done"
    NOT_FOUND = "not found"
    KNOWN = "known"


@dataclasses.dataclass(frozen=True)
class Merge:
    """Memories that a cleanup replaces by one."""

    merged: tuple[Memory, ...]
    fact: str


@dataclasses.dataclass(frozen=True)
class CleanupPlan:
    """What a cleanup wants to change, in terms of the memories that the model was shown (M12)."""

    dropped: tuple[Memory, ...] = ()
    merges: tuple[Merge, ...] = ()


@dataclasses.dataclass(frozen=True)
class CleanupOutcome:
    """How many memories a cleanup dropped, merged (into how many) and kept."""

    dropped: int
    merged: int
    merged_into: int
    kept: int


class MemoryStore:
    """One instance's memory.

    Every method raises what asyncpg raises when the database cannot be reached; nothing is
    changed then.
    """

    def __init__(self, database: Database, clock: Clock = utc_now) -> None:
        """Use `database`, the instance's own schema, and the time that `clock` tells."""
        self._database = database
        self._clock = clock

    # --- passes --------------------------------------------------------------------------------

    async def begin_pass(
        self, user_id: str, message: str, settings: PassSettings
    ) -> PassView | None:
        """Return what the extractor is shown for `message`, or None where M3 forbids the pass."""
        wanted = terms(message)
        async with self._database.acquire() as connection:
            # Likeness first, so that a fact said twice a year is still found; recency second.
            # What is stale by M4 is not shown. However many candidates there are, few are
            # looked at: the newest with each term, found by the user and the term, and the
            # newest of all.
            row = await connection.fetchrow(
                """
                WITH alike AS (
                    SELECT found.candidate_id AS id, count(*) AS likeness
                    FROM unnest($3::text[]) AS wanted (term) CROSS JOIN LATERAL (
                        SELECT candidate_id FROM memory_candidate_terms
                        WHERE user_id = $1 AND term = wanted.term
                        ORDER BY candidate_id DESC LIMIT $4
                    ) AS found
                    GROUP BY found.candidate_id
                    ORDER BY likeness DESC, id DESC LIMIT $5
                ), newest AS (
                    SELECT id, fact, last_seen FROM memory_candidates
                    WHERE user_id = $1 AND ($2::timestamptz IS NULL OR last_seen >= $2)
                    ORDER BY last_seen DESC LIMIT $5
                ), shown AS (
                    SELECT id, likeness, last_seen, fact
                    FROM alike CROSS JOIN LATERAL (
                        SELECT fact, last_seen FROM memory_candidates
                        WHERE id = alike.id AND user_id = $1
                              AND ($2::timestamptz IS NULL OR last_seen >= $2)
                        LIMIT 1
                    ) AS candidate
                    UNION ALL
                    SELECT id, 0, last_seen, fact FROM newest
                    WHERE id NOT IN (SELECT id FROM alike)
                    ORDER BY likeness DESC, last_seen DESC, id DESC LIMIT $5
                )
                SELECT (SELECT count(*) FROM memories WHERE user_id = $1) AS number_of_memories,
                       ARRAY(SELECT fact FROM memories WHERE user_id = $1
                             ORDER BY created_at DESC, id DESC LIMIT $6) AS memories,
                       EXISTS (SELECT FROM memory_candidates
                               WHERE user_id = $1 AND last_seen < $2) AS has_stale,
                       ARRAY(SELECT id FROM shown) AS candidate_ids,
                       ARRAY(SELECT fact FROM shown) AS candidates
                """,
                user_id,
                settings.stale_before(self._clock()),
                wanted,
                _MAX_LOOKED_AT // max(1, len(wanted)),
                MAX_SHOWN_CANDIDATES,
                MAX_SHOWN_MEMORIES,
            )
        if row["number_of_memories"] >= settings.max_per_user:  # M3
            return None
        candidates = _within_budget(row["candidates"])
        return PassView(
            tuple(_within_budget(row["memories"])),
            tuple(map(ShownCandidate, row["candidate_ids"], candidates)),
            row["has_stale"],
        )

    async def apply_pass(
        self, mention: Mention, proposals: Proposals, settings: PassSettings
    ) -> PassOutcome:
        """Carry out a pass: rules M3, M4 and M7 to M11 in one transaction (M16)."""
        async with self._locked(mention.user_id) as connection:
            now = self._clock()
            memories, candidates = await _prune_and_read(
                connection, mention.user_id, proposals, settings, now
            )
            if memories.count >= settings.max_per_user:  # M3, on the rows as they are now
                return PassOutcome()
            changes = decide(proposals, candidates, memories, mention.event_id, settings, now)
            if changes.are_none:
                return PassOutcome()
            cleanup_due = await _write(connection, mention, changes, settings, now)
            return PassOutcome(
                created=len(changes.created),
                reinforced=len(changes.reinforced),
                promoted=len(changes.promoted) + len(changes.remembered),
                contradicted=len(changes.contradicted),
                cleanup_due=cleanup_due,
            )

    # --- what users see and change (M18: memories only) ----------------------------------------

    async def memories(self, user_id: str) -> list[Memory]:
        """Return all the user's memories, newest first."""
        async with self._database.acquire() as connection:
            return await _memories(connection, user_id)

    async def page(self, user_id: str, page: int, size: int) -> tuple[list[Memory], int]:
        """Return one page (from 1) of the user's memories, newest first, and their number."""
        async with self._database.acquire() as connection:
            total = await connection.fetchval(
                "SELECT count(*) FROM memories WHERE user_id = $1", user_id
            )
            rows = await connection.fetch(
                """
                SELECT id, fact, created_at FROM memories WHERE user_id = $1
                ORDER BY created_at DESC, id DESC OFFSET $2 LIMIT $3
                """,
                user_id,
                min((page - 1) * size, _MAX_ID),
                size,
            )
        return [Memory(**row) for row in rows], total

    async def save(self, user_id: str, room_id: str, fact: str) -> Saved:
        """Store a fact that the user asked to remember (M13): no threshold, no cap."""
        key = fact_key(fact)
        async with self._locked(user_id) as connection:
            if key in await _memory_keys(connection, user_id):
                return Saved.KNOWN
            await _delete_candidates(connection, user_id, [key])
            await _insert_memories(connection, user_id, [(fact, room_id)], self._clock())
            return Saved.NEW

    async def delete(self, user_id: str, memory_ids: Iterable[int]) -> set[int]:
        """Delete those of the memories that are the user's; return the ids that were."""
        ids = [memory_id for memory_id in memory_ids if 0 < memory_id <= _MAX_ID]
        async with self._locked(user_id) as connection:
            rows = await connection.fetch(
                "DELETE FROM memories WHERE user_id = $1 AND id = ANY ($2::bigint[]) RETURNING id",
                user_id,
                ids,
            )
            # A deleted memory is gone: an undo must not bring back what it was merged from.
            await connection.execute(
                """
                DELETE FROM memory_cleanup_undo
                WHERE user_id = $1 AND merged_into = ANY ($2::bigint[])
                """,
                user_id,
                ids,
            )
        return {row["id"] for row in rows}

    async def edit(self, user_id: str, memory_id: int, fact: str) -> Edited:
        """Give one of the user's memories another text."""
        key = fact_key(fact)
        if not 0 < memory_id <= _MAX_ID:
            return Edited.NOT_FOUND
        async with self._locked(user_id) as connection:
            rows = await connection.fetch(
                "SELECT id, fact, fact_key FROM memories WHERE user_id = $1", user_id
            )
            if all(row["id"] != memory_id for row in rows):
                return Edited.NOT_FOUND
            if any(row["id"] != memory_id and _key_of(row) == key for row in rows):
                return Edited.KNOWN
            await connection.execute(
                "UPDATE memories SET fact = $3, fact_key = $4 WHERE user_id = $1 AND id = $2",
                user_id,
                memory_id,
                fact,
                key,
            )
            # The user's own words now: an undo must not take them away.
            await connection.execute(
                """
                UPDATE memory_cleanup_undo SET merged_into = NULL
                WHERE user_id = $1 AND merged_into = $2
                """,
                user_id,
                memory_id,
            )
            await _delete_candidates(connection, user_id, [key])
            return Edited.DONE

    async def clear(self, user_id: str) -> int:
        """Delete all the user's memories and what an undo would bring back; candidates stay.

        Returns:
            How many memories there were.
        """
        async with self._locked(user_id) as connection:
            await connection.execute("DELETE FROM memory_cleanup_undo WHERE user_id = $1", user_id)
            rows = await connection.fetch(
                "DELETE FROM memories WHERE user_id = $1 RETURNING id", user_id
            )
        return len(rows)

    # --- cleanup (M12) -------------------------------------------------------------------------

    async def apply_cleanup(self, user_id: str, plan: CleanupPlan) -> CleanupOutcome:
        """Carry out a cleanup, leaving alone whatever changed since the model was asked.

        What it takes out stays in `memory_cleanup_undo` until the next cleanup that changes
        something.
        """
        async with self._locked(user_id) as connection:
            now_there = {memory.id: memory for memory in await _memories(connection, user_id)}
            dropped = [memory for memory in plan.dropped if now_there.get(memory.id) == memory]
            merges = [
                merge
                for merge in plan.merges
                if all(now_there.get(memory.id) == memory for memory in merge.merged)
            ]
            merges = _without_clashes(merges, dropped, now_there.values())
            if dropped or merges:
                await connection.execute(
                    "DELETE FROM memory_cleanup_undo WHERE user_id = $1", user_id
                )
                await _retire(connection, user_id, dropped, None)
                await _merge(connection, user_id, merges)
            merged = sum(len(merge.merged) for merge in merges)
            kept = len(now_there) - len(dropped) - merged
            return CleanupOutcome(len(dropped), merged, len(merges), kept)

    async def undo_cleanup(self, user_id: str) -> int:
        """Bring back what the last cleanup took out; once.

        A merged memory goes again, unless its user edited it since. A fact that was stored
        anew meanwhile is not stored twice.

        Returns:
            How many memories came back; 0 where there is nothing to undo.
        """
        async with self._locked(user_id) as connection:
            rows = await connection.fetch(
                """
                DELETE FROM memory_cleanup_undo WHERE user_id = $1
                RETURNING memory_id, fact, created_at, room_id, merged_into
                """,
                user_id,
            )
            await connection.execute(
                """
                DELETE FROM memories WHERE user_id = $1 AND id = ANY ($2::bigint[])
                """,
                user_id,
                [row["merged_into"] for row in rows],
            )
            keys = [fact_key(row["fact"]) for row in rows]
            restored = await connection.fetch(
                """
                INSERT INTO memories (id, user_id, fact, fact_key, created_at, room_id)
                SELECT id, $1, fact, fact_key, created_at, room_id
                FROM unnest($2::bigint[], $3::text[], $4::text[], $5::timestamptz[], $6::text[])
                     AS undo (id, fact, fact_key, created_at, room_id)
                ON CONFLICT DO NOTHING
                RETURNING id
                """,
                user_id,
                [row["memory_id"] for row in rows],
                [row["fact"] for row in rows],
                keys,
                [row["created_at"] for row in rows],
                [row["room_id"] for row in rows],
            )
            await _delete_candidates(connection, user_id, keys)
        return len(restored)

    # --- transactions --------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def _locked(self, user_id: str) -> AsyncIterator[Connection]:
        """Open a transaction that no other change of this user's rows runs beside (M16).

        The lock is a statement of its own: the statements after it see what the transaction
        before it committed. It travels together with the beginning, which costs one round
        trip instead of two.
        """
        async with self._database.acquire() as connection:
            try:
                await connection.execute(f"{_BEGIN} {lock_statement(user_id)}")
                yield connection
                await connection.execute("COMMIT")
            except BaseException:
                if not connection.wrapped.is_closed():
                    await connection.execute("ROLLBACK")
                raise


def lock_statement(user_id: str) -> str:
    """Return the statement that locks a user's rows in this schema until the transaction ends.

    It takes no parameters, so that it can share a round trip. The number that stands for the
    user may stand for another one as well, who then waits without need.
    """
    digest = hashlib.sha256(user_id.encode()).digest()
    number = int.from_bytes(digest[:8], "big") >> 1  # within a signed bigint
    return f"SELECT pg_advisory_xact_lock(hashtextextended(current_schema(), {number}))"


def _key_of(row: dict[str, str | None]) -> str:
    """Return a row's key, also where somebody inserted the row by hand without one."""
    return row["fact_key"] or fact_key(row["fact"] or "")


def _within_budget(facts: Iterable[str]) -> list[str]:
    """Return as many of the facts, from the first, as the extractor's prompt has room for."""
    room = MAX_SHOWN_BYTES
    shown = []
    for fact in facts:
        room -= len(fact.encode()) + _BYTES_AROUND
        if room < 0:
            break
        shown.append(fact)
    return shown


async def _memories(connection: Connection, user_id: str) -> list[Memory]:
    rows = await connection.fetch(
        """
        SELECT id, fact, created_at FROM memories WHERE user_id = $1
        ORDER BY created_at DESC, id DESC
        """,
        user_id,
    )
    return [Memory(**row) for row in rows]


async def _memory_keys(connection: Connection, user_id: str) -> list[str]:
    rows = await connection.fetch(
        "SELECT fact_key, CASE WHEN fact_key IS NULL THEN fact END AS fact"
        " FROM memories WHERE user_id = $1",
        user_id,
    )
    return [_key_of(row) for row in rows]


async def _prune_and_read(
    connection: Connection,
    user_id: str,
    proposals: Proposals,
    settings: PassSettings,
    now: datetime.datetime,
) -> tuple[KnownMemories, list[Candidate]]:
    """Delete stale candidates (M4), unless the user is at the cap (M3), and read for `decide`.

    One round trip: the candidates that the proposals may be about (M7, M8, M10), each beside
    the same description of the memories, or that alone. What is deleted here is still there
    for the reading part, which therefore leaves out by itself what is stale: no stale
    candidate is rescued. Rows inserted by hand have no key, so all of these are read.
    """
    rows = await connection.fetch(
        """
        WITH memory AS (
            SELECT count(*) AS number,
                   array_agg(fact_key) FILTER (WHERE fact_key = ANY ($2::text[])) AS keys,
                   array_agg(fact) FILTER (WHERE fact_key IS NULL) AS without_key
            FROM memories WHERE user_id = $1
        ), stale AS (
            DELETE FROM memory_candidates
            WHERE user_id = $1 AND last_seen < $4 AND (SELECT number FROM memory) < $5
        )
        SELECT memory.*, candidate.*
        FROM memory LEFT JOIN (
            SELECT same.* FROM unnest($2::text[]) AS new (fact_key) CROSS JOIN LATERAL (
                SELECT id, fact, fact_key, mentions, last_seen, room_id, event_ids
                FROM memory_candidates WHERE user_id = $1 AND fact_key = new.fact_key
                LIMIT 1
            ) AS same
            UNION
            SELECT id, fact, fact_key, mentions, last_seen, room_id, event_ids
            FROM memory_candidates WHERE user_id = $1 AND fact_key IS NULL
            UNION
            SELECT id, fact, fact_key, mentions, last_seen, room_id, event_ids
            FROM memory_candidates WHERE id = ANY ($3::bigint[]) AND user_id || '' = $1
        ) AS candidate ON $4::timestamptz IS NULL OR last_seen >= $4
        """,
        user_id,
        proposals.keys,
        [*proposals.reinforced, *proposals.contradicted],
        settings.stale_before(now),
        settings.max_per_user,
    )
    without_key = map(fact_key, rows[0]["without_key"] or ())
    memories = KnownMemories(rows[0]["number"], {*(rows[0]["keys"] or ()), *without_key})
    candidates = [
        Candidate(
            row["id"],
            row["fact"],
            _key_of(row),
            row["mentions"],
            row["last_seen"],
            row["room_id"],
            tuple(row["event_ids"]),
        )
        for row in rows
        if row["id"] is not None
    ]
    return memories, candidates


async def _delete_candidates(connection: Connection, user_id: str, keys: Sequence[str]) -> None:
    """Delete the candidates whose facts are memories now: no fact stands in both tables."""
    await connection.execute(
        "DELETE FROM memory_candidates WHERE user_id = $1 AND fact_key = ANY ($2::text[])",
        user_id,
        keys,
    )


async def _write(
    connection: Connection,
    mention: Mention,
    changes: Changes,
    settings: PassSettings,
    now: datetime.datetime,
) -> bool:
    """Write all that a pass changes (M7 to M11) in one round trip.

    Returns:
        Whether a cleanup is due (M11).
    """
    # M9: a promoted candidate keeps the wording and the room it was first recorded with.
    memories = [(candidate.fact, candidate.room_id) for candidate in changes.promoted]
    memories += [(fact, mention.room_id) for fact in changes.remembered]
    promoting_passes = await connection.fetchval(
        """
        WITH gone AS (
            -- M9, M10
            DELETE FROM memory_candidates WHERE id = ANY ($5::bigint[]) AND user_id || '' = $1
            RETURNING id
        ), stored AS (
            -- M9, M7 with a threshold of 1
            INSERT INTO memories (user_id, fact, fact_key, created_at, room_id)
            SELECT $1, fact, fact_key, $2, room_id
            FROM unnest($6::text[], $7::text[], $8::text[]) AS new (fact, fact_key, room_id)
            ON CONFLICT (user_id, fact_key) DO NOTHING
        ), mentioned AS (
            -- M8: the text is never rewritten.
            UPDATE memory_candidates
            SET mentions = mentions + 1, last_seen = $2, event_ids = event_ids || $4::text
            WHERE id = ANY ($9::bigint[]) AND user_id || '' = $1
        ), noted AS (
            -- M7, once all that leaves is gone: a contradicted fact may be stated anew in the
            -- same words. Arrays of arrays must be rectangular, so each row's terms travel as
            -- one text.
            INSERT INTO memory_candidates
                (user_id, fact, fact_key, terms, first_seen, last_seen, room_id, event_ids)
            SELECT $1, fact, fact_key, string_to_array(terms, ' '), $2, $2, $3, ARRAY[$4::text]
            FROM unnest($10::text[], $11::text[], $12::text[]) AS new (fact, fact_key, terms)
            WHERE (SELECT count(*) FROM gone) >= 0
        )
        -- M11: a pass that promotes something counts.
        INSERT INTO memory_cleanup_counters (user_id, promoting_passes)
        SELECT $1, CASE WHEN $13 = 1 THEN 0 ELSE 1 END
        WHERE cardinality($6::text[]) > 0
        ON CONFLICT (user_id) DO UPDATE
        SET promoting_passes = CASE
            WHEN $13 > 0 AND memory_cleanup_counters.promoting_passes + 1 >= $13 THEN 0
            ELSE memory_cleanup_counters.promoting_passes + 1
        END
        RETURNING promoting_passes
        """,
        mention.user_id,
        now,
        mention.room_id,
        mention.event_id,
        [candidate.id for candidate in (*changes.contradicted, *changes.promoted)],
        [fact for fact, _ in memories],
        [fact_key(fact) for fact, _ in memories],
        [room_id for _, room_id in memories],
        [candidate.id for candidate in changes.reinforced],
        changes.created,
        [fact_key(fact) for fact in changes.created],
        [" ".join(terms(fact)) for fact in changes.created],
        settings.cleanup_interval,
    )
    return bool(promoting_passes == 0)


async def _insert_memories(
    connection: Connection,
    user_id: str,
    facts: Sequence[tuple[str, str]],
    now: datetime.datetime,
) -> None:
    """Insert facts, each with its room, as memories stored now."""
    await connection.execute(
        """
        INSERT INTO memories (user_id, fact, fact_key, created_at, room_id)
        SELECT $1, fact, fact_key, $5, room_id
        FROM unnest($2::text[], $3::text[], $4::text[]) AS new (fact, fact_key, room_id)
        ON CONFLICT (user_id, fact_key) DO NOTHING
        """,
        user_id,
        [fact for fact, _ in facts],
        [fact_key(fact) for fact, _ in facts],
        [room_id for _, room_id in facts],
        now,
    )


def _without_clashes(
    merges: Sequence[Merge], dropped: Sequence[Memory], now_there: Collection[Memory]
) -> list[Merge]:
    """Leave out merges whose text is that of a memory which stays, or of another merge."""
    kept = list(merges)
    while True:
        leaving = {memory.id for memory in dropped}
        leaving |= {memory.id for merge in kept for memory in merge.merged}
        taken = {fact_key(memory.fact) for memory in now_there if memory.id not in leaving}
        without_clash: list[Merge] = []
        for merge in kept:
            key = fact_key(merge.fact)
            if key not in taken:
                taken.add(key)
                without_clash.append(merge)
        # What a left-out merge would have replaced stays, and may clash with the others.
        if len(without_clash) == len(kept):
            return kept
        kept = without_clash


async def _merge(connection: Connection, user_id: str, merges: Sequence[Merge]) -> None:
    """Replace each merge's memories by one that bears the newest of their dates.

    The keys are set when all replaced memories are gone: one of them may have had it.
    """
    merged_ids = []
    for merge in merges:
        newest = max(merge.merged, key=lambda memory: (memory.created_at, memory.id))
        merged_into = await connection.fetchval(
            """
            INSERT INTO memories (user_id, fact, created_at, room_id)
            SELECT user_id, $3, created_at, room_id FROM memories WHERE user_id = $1 AND id = $2
            RETURNING id
            """,
            user_id,
            newest.id,
            merge.fact,
        )
        await _retire(connection, user_id, merge.merged, merged_into)
        merged_ids.append(merged_into)
    keys = [fact_key(merge.fact) for merge in merges]
    await connection.execute(
        """
        UPDATE memories SET fact_key = merged.fact_key
        FROM unnest($2::bigint[], $3::text[]) AS merged (id, fact_key)
        WHERE user_id = $1 AND memories.id = merged.id
        """,
        user_id,
        merged_ids,
        keys,
    )
    await _delete_candidates(connection, user_id, keys)


async def _retire(
    connection: Connection,
    user_id: str,
    memories: Sequence[Memory],
    merged_into: int | None,
) -> None:
    """Move memories to where an undo finds them."""
    await connection.execute(
        """
        WITH retired AS (
            DELETE FROM memories WHERE user_id = $1 AND id = ANY ($2::bigint[])
            RETURNING id, fact, created_at, room_id
        )
        INSERT INTO memory_cleanup_undo
            (memory_id, user_id, fact, created_at, room_id, merged_into)
        SELECT id, $1, fact, created_at, room_id, $3::bigint FROM retired
        """,
        user_id,
        [memory.id for memory in memories],
        merged_into,
    )
