"""Section 4: what a pass and a list cost in full tables, and of a user with very many facts."""

# mypy: allow-untyped-calls
# (asyncpg's methods carry no types.)
from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import asyncpg
from maubot.lib.plugin_db import ProxyPostgresDatabase

from benchmarks.measuring import Figure, Section, interleaved, plugin_database, postgres, timed
from benchmarks.mem0.model import BYTES_PER_TOKEN
from devstack.postgres import connect
from llmbot.memory.rules import Mention, PassSettings, Proposals
from llmbot.memory.store import MemoryStore
from llmbot.prompts import extraction_messages

USERS, CANDIDATES, MEMORIES = 1_000_000, 5_000_000, 1_000_000
MANY, FEW = 10_000, 10
_SMALL_USERS = 100
_MANY_ID = "@many:example.org"
_MESSAGE = "She likes my cello, and I have two cats called Ada and Bob."
# Nothing is promoted and nobody reaches the cap: each pass does the same.
_SETTINGS = PassSettings(
    promotion_threshold=1_000_000,
    candidate_ttl_days=14,
    max_per_user=1_000,
    cleanup_interval=3,
    mention_gap_minutes=0,
)
# autovacuum_analyze_threshold is 50 rows, and a pass writes about four to each of two tables.
_PASSES_UNTIL_ANALYZE = 13
_numbers = itertools.count(1)
_random = random.Random(6)  # noqa: S311 - chooses users, no secrets


def _user_id(number: int) -> str:
    return f"@user{number:07}:example.org"


async def _load(
    connection: asyncpg.Connection, users: str, *, candidates: int, memories: int
) -> None:
    """Insert rows that llmbot itself could have written, each fact with two terms.

    Args:
        connection: Sees the tables.
        users: SQL that gives the user of row i.
        candidates: How many.
        memories: How many.
    """
    await connection.execute("SET synchronous_commit = off")
    await connection.execute("ALTER TABLE memory_candidates DISABLE TRIGGER USER")
    last = await connection.fetchval("SELECT coalesce(max(id), 0) FROM memory_candidates")
    await connection.execute(
        f"""
        INSERT INTO memory_candidates (user_id, fact, fact_key, terms, event_ids)
        SELECT {users}, 'Likes ' || word || '-' || i, 'likes ' || word || ' ' || i,
               ARRAY['likes', word], ARRAY['$load' || i]
        FROM generate_series(0, {candidates - 1}) AS i,
             LATERAL (SELECT 'w' || substr(md5(i::text), 1, 4) AS word) AS made
        """  # noqa: S608 - our own numbers
    )
    await connection.execute(
        f"""
        INSERT INTO memory_candidate_terms (user_id, term, candidate_id)
        SELECT DISTINCT user_id, term, id FROM memory_candidates, unnest(terms) AS term
        WHERE id > {last}
        """  # noqa: S608 - our own number
    )
    await connection.execute("ALTER TABLE memory_candidates ENABLE TRIGGER USER")
    await connection.execute(
        f"""
        INSERT INTO memories (user_id, fact, fact_key)
        SELECT {users}, 'Knows a town called ' || md5(i::text) || ' and has lived there for years',
               'knows ' || i
        FROM generate_series(0, {memories - 1}) AS i
        """  # noqa: S608 - our own numbers
    )


class Tables:
    """Passes and lists in the tables of one instance.

    Args:
        database: The instance's.
        users: How many of those loaded have a memory.
        grows_from_nothing: Whether the passes make the tables many times larger than they were.
            PostgreSQL's own upkeep would look at them once a minute, which is longer than all
            of this takes, so they are analysed as often as it would do it in a slower world.
    """

    def __init__(
        self, database: ProxyPostgresDatabase, users: int, *, grows_from_nothing: bool = False
    ) -> None:
        self._database = database
        self._store = MemoryStore(database)
        self._users = users
        self._grows_from_nothing = grows_from_nothing
        self._passes = 0

    async def list_seconds(self) -> float:
        """Return the seconds of a list of somebody's memories."""
        user_id = _user_id(_random.randrange(self._users))
        return await timed(self._store.page(user_id, 1, 10))

    async def pass_seconds(self) -> float:
        """Return the seconds of a pass of somebody new, who stands among all others."""
        self._passes += 1
        if self._grows_from_nothing and self._passes % _PASSES_UNTIL_ANALYZE == 0:
            await self._database.execute("ANALYZE memory_candidates, memory_candidate_terms")
        number = next(_numbers)
        user_id = _user_id(_random.randrange(USERS)).replace(":", f"n{number}:")
        await self._store.apply_pass(
            Mention(user_id, "!room:example.org", f"$first{number}"),
            Proposals(new=("Has two cats called Ada and Bob",)),
            _SETTINGS,
        )
        return await self.pass_of(user_id)

    async def pass_of(self, user_id: str) -> float:
        """Return the seconds of a pass with 2 new facts and 1 reinforced."""
        number = next(_numbers)

        async def whole() -> None:
            view = await self._store.begin_pass(user_id, _MESSAGE, _SETTINGS)
            assert view is not None
            new = (f"Plays cello number {number}", f"Has lived in house {number}")
            proposals = Proposals(new=new, reinforced=(view.candidates[0].id,))
            mention = Mention(user_id, "!room:example.org", f"$event{number}")
            outcome = await self._store.apply_pass(mention, proposals, _SETTINGS)
            assert (outcome.created, outcome.reinforced) == (2, 1)

        return await timed(whole())

    async def prompt_bytes(self, user_id: str) -> int:
        """Return the length of the extraction prompt of somebody's message."""
        settings = dataclasses.replace(_SETTINGS, candidate_ttl_days=0)
        view = await self._store.begin_pass(user_id, _MESSAGE, settings)
        assert view is not None
        messages = extraction_messages(view, _MESSAGE, "Fine.")
        return sum(len(message["content"].encode()) for message in messages)


async def measure(
    folder: Path,
    *,
    users: int = USERS,
    candidates: int = CANDIDATES,
    memories: int = MEMORIES,
    rounds: int = 200,
) -> Section:
    """Measure on a PostgreSQL of its own below a folder, in full and in nearly empty tables."""
    async with (
        postgres(folder) as server,
        plugin_database(server.url, "empty") as empty_database,
        plugin_database(server.url, "full") as full_database,
    ):
        await _fill(server.url, users, candidates, memories)
        empty = Tables(empty_database, _SMALL_USERS, grows_from_nothing=True)
        full = Tables(full_database, min(users, memories))
        works = (full.pass_seconds, empty.pass_seconds, full.list_seconds, empty.list_seconds)
        pass_full, pass_empty, list_full, list_empty = await interleaved(rounds, works)
        few_ids = itertools.cycle(f"@few{number}:example.org" for number in range(_SMALL_USERS))

        def of(user_id: Callable[[], str]) -> Callable[[], Awaitable[float]]:
            return lambda: full.pass_of(user_id())

        compared = (of(lambda: _MANY_ID), of(lambda: next(few_ids)))
        many, few = await interleaved(_SMALL_USERS - 10, compared)
        length = await full.prompt_bytes(_MANY_ID)
    return Section(
        "growth",
        "Growth: full tables, and one user with very many facts",
        [
            Figure(
                "a pass in full tables over one in empty tables", pass_full / pass_empty, "", 1.2
            ),
            Figure(
                "a list in full tables over one in empty tables", list_full / list_empty, "", 1.2
            ),
            Figure("a pass of a user with many candidates over one with few", many / few, "", 2),
            Figure(
                "extraction prompt of the user with many candidates",
                length / BYTES_PER_TOKEN,
                "tokens",
                4_000,
            ),
            Figure("the same prompt, three bytes to a token", length / 3, "tokens", 4_000),
            Figure("a pass in full tables", pass_full * 1000, "ms"),
            Figure("a pass in empty tables", pass_empty * 1000, "ms"),
            Figure("a list in full tables", list_full * 1000, "ms"),
            Figure("a list in empty tables", list_empty * 1000, "ms"),
            Figure("a pass of the user with many candidates", many * 1000, "ms"),
            Figure("a pass of a user with few candidates", few * 1000, "ms"),
        ],
        [
            (
                f"Full: {candidates:,} candidates and {memories:,} memories of {users:,} users,"
                " inserted with SQL; empty: one memory each of"
                f" {_SMALL_USERS} users. Both in one PostgreSQL, in turns."
            ),
            (
                "A pass is both its parts: what is read for the prompt, and 2 new facts and 1"
                " reinforced. Each is of a new user whose rows stand among those of the others."
            ),
            (
                f"Many candidates are {MANY:,}, few are {FEW}; both users stand in the full"
                " tables, and a user with few is measured once after another until all were."
            ),
            (
                f"Tokens are counted as {BYTES_PER_TOKEN} bytes of UTF-8 each, which is usual for"
                " English; the second figure is for other languages. The whole prompt counts,"
                " with 50 memories beside the candidates."
            ),
            (
                "The message shares the term “likes” with every candidate that was inserted, so"
                " the search by likeness looks at as many as it ever does."
            ),
            (
                "The empty tables grow from nothing to some hundred rows meanwhile. They are"
                " analysed after every"
                f" {_PASSES_UNTIL_ANALYZE} passes, as PostgreSQL's autovacuum does"
                " within a minute; until then a plan made for one row reads all there are."
            ),
        ],
    )


async def _fill(url: str, users: int, candidates: int, memories: int) -> None:
    full = await connect(url, "mbp_full")
    empty = await connect(url, "mbp_empty")
    try:
        await _load(
            empty, _SQL_USER.format(users=_SMALL_USERS), candidates=1, memories=_SMALL_USERS
        )
        spread = _SQL_USER.format(users=users)
        await _load(full, spread, candidates=candidates, memories=memories)
        await _load(full, f"'{_MANY_ID}'", candidates=MANY, memories=50)
        few = f"'@few' || (i % {_SMALL_USERS}) || ':example.org'"
        await _load(full, few, candidates=_SMALL_USERS * FEW, memories=_SMALL_USERS)
        for connection in (empty, full):
            # As PostgreSQL's own upkeep does it in tables that were not filled a minute ago.
            await connection.execute("VACUUM ANALYZE")
        await full.execute("CHECKPOINT")
    finally:
        await full.close()
        await empty.close()


_SQL_USER = "'@user' || lpad((i % {users})::text, 7, '0') || ':example.org'"
