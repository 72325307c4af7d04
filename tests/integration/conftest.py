"""Real PostgreSQL for the store: the bundled one, and those that the system has."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest
from maubot.lib.plugin_db import ProxyPostgresDatabase

from devstack.postgres import BUNDLED, Postgres, other_installations
from devstack.process import empty_world
from llmbot.memory.store import MemoryStore

from .database import Clock, bystander, plugin_database


def _label(bin_dir: Path) -> str:
    return "bundled" if bin_dir == BUNDLED else f"system-{bin_dir.parent.name}"


@pytest.fixture(scope="session", params=[BUNDLED, *other_installations()], ids=_label)
async def postgres_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[str]:
    """The address of a running PostgreSQL; LLMBOT_POSTGRES names another one instead."""
    own = os.environ.get("LLMBOT_POSTGRES")
    if own:
        yield own
        return
    world = tmp_path_factory.mktemp("postgres")
    async with empty_world(world):
        postgres = Postgres(world, request.param)
        await postgres.start()
        try:
            yield postgres.url
        finally:
            await postgres.stop()


@pytest.fixture
async def database(postgres_url: str) -> AsyncIterator[ProxyPostgresDatabase]:
    """A plugin database with llmbot's tables, for this test alone."""
    async with plugin_database(postgres_url) as database:
        yield database


@pytest.fixture
def clock() -> Clock:
    """The store's time."""
    return Clock()


@pytest.fixture
def store(database: ProxyPostgresDatabase, clock: Clock) -> MemoryStore:
    """The memory under test."""
    return MemoryStore(database, clock)


@pytest.fixture
async def committed(
    postgres_url: str, database: ProxyPostgresDatabase
) -> AsyncIterator[asyncpg.Connection]:
    """A connection that sees what the store committed."""
    async with bystander(postgres_url, database) as connection:
        yield connection
