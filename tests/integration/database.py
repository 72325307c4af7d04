"""A plugin's database as maubot gives it: the same pool proxy, on a real PostgreSQL."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import logging
from collections.abc import AsyncIterator

import asyncpg
from maubot.lib.plugin_db import ProxyPostgresDatabase
from mautrix.util.async_db import Database

from devstack.postgres import connect
from llmbot.memory.migrations import upgrade_table
from llmbot.memory.rules import PassSettings

DEFAULTS = PassSettings(
    promotion_threshold=2,
    candidate_ttl_days=14,
    max_per_user=50,
    cleanup_interval=3,
    mention_gap_minutes=0,
)
START = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.timezone.utc)

_numbers = itertools.count(1)


class Clock:
    """The time that the store is told; it passes only when a test says so."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime.datetime:
        return self.now

    def advance(self, **duration: float) -> None:
        """Let time pass, as the arguments of a timedelta."""
        self.now += datetime.timedelta(**duration)


@contextlib.asynccontextmanager
async def plugin_database(url: str) -> AsyncIterator[ProxyPostgresDatabase]:
    """Make an instance's database in a schema of its own, tables and all."""
    pool = Database.create(url, db_args={"min_size": 1, "max_size": 10})
    await pool.start()
    try:
        database = ProxyPostgresDatabase(
            pool,
            instance_id=f"test{next(_numbers)}",
            max_conns=3,
            upgrade_table=upgrade_table,
            log=logging.getLogger("test.database"),
        )
        await database.start()
        try:
            yield database
        finally:
            await database.stop()
            await database.delete()
    finally:
        await pool.stop()


@contextlib.asynccontextmanager
async def bystander(
    url: str, database: ProxyPostgresDatabase
) -> AsyncIterator[asyncpg.Connection]:
    """Open a connection of its own, which sees only what is committed."""
    connection = await connect(url, database.schema_name)
    try:
        yield connection
    finally:
        await connection.close()
