"""What older versions stored is there after an upgrade."""

from __future__ import annotations

import logging

from maubot.lib.plugin_db import ProxyPostgresDatabase
from mautrix.util.async_db import Database, UpgradeTable

from llmbot.memory.facts import fact_key, terms
from llmbot.memory.migrations import upgrade_table
from llmbot.memory.rules import Mention, Proposals
from llmbot.memory.store import MemoryStore

from .database import DEFAULTS, START, Clock

ADA = "@ada:example.org"
ROOM = "!room:example.org"
FACTS = ["Lives in Berlin", "Likes tea", "Likes tea with milk"]


async def instance(pool: Database, versions: int) -> ProxyPostgresDatabase:
    """Start the instance's database with this many versions of the tables."""
    table = UpgradeTable()
    table.upgrades = upgrade_table.upgrades[:versions]
    log = logging.getLogger("test.database")
    database = ProxyPostgresDatabase(pool, "upgraded", 3, table, log)
    await database.start()
    return database


async def test_candidates_and_memories_of_version_1(postgres_url: str) -> None:
    pool = Database.create(postgres_url, db_args={"min_size": 1, "max_size": 3})
    await pool.start()
    old = await instance(pool, 1)
    try:
        for fact in FACTS:
            await old.execute(
                """
                INSERT INTO memory_candidates (user_id, fact, fact_key, terms, last_seen)
                VALUES ($1, $2, $3, $4, $5)
                """,
                ADA,
                fact,
                fact_key(fact),
                terms(fact),
                START,
            )
        await old.execute("INSERT INTO memories (user_id, fact) VALUES ($1, 'Is 42')", ADA)

        store = MemoryStore(await instance(pool, 2), Clock())
        view = await store.begin_pass(ADA, "I drink my tea with milk", DEFAULTS)
        assert view is not None
        assert view.known_memories == ("Is 42",)
        assert [c.fact for c in view.candidates] == [FACTS[2], FACTS[1], FACTS[0]]

        await store.apply_pass(Mention(ADA, ROOM, "$event"), Proposals(tuple(FACTS)), DEFAULTS)
        assert {memory.fact for memory in await store.memories(ADA)} == {"Is 42", *FACTS}
        assert await old.fetchval("SELECT count(*) FROM memory_candidate_terms") == 0
    finally:
        await old.delete()
        await pool.stop()
