"""One database and one model server for the whole catalogue: each case has users of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest
from maubot.lib.plugin_db import ProxyPostgresDatabase

from devstack.postgres import Postgres
from devstack.process import empty_world
from devstack.scripted_model import ScriptedModel
from tests.integration.database import bystander, plugin_database


@pytest.fixture(scope="session")
async def catalogue_url(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """The address of the bundled PostgreSQL."""
    world = tmp_path_factory.mktemp("postgres")
    async with empty_world(world):
        postgres = Postgres(world)
        await postgres.start()
        try:
            yield postgres.url
        finally:
            await postgres.stop()


@pytest.fixture(scope="session")
async def catalogue_database(catalogue_url: str) -> AsyncIterator[ProxyPostgresDatabase]:
    """A plugin's database with llmbot's tables."""
    async with plugin_database(catalogue_url) as database:
        yield database


@pytest.fixture(scope="session")
async def committed(
    catalogue_url: str, catalogue_database: ProxyPostgresDatabase
) -> AsyncIterator[asyncpg.Connection]:
    """A connection that sees what is committed."""
    async with bystander(catalogue_url, catalogue_database) as connection:
        yield connection


@pytest.fixture(scope="session")
async def server() -> AsyncIterator[ScriptedModel]:
    """The model server, for all cases."""
    async with ScriptedModel() as model:
        yield model


@pytest.fixture
def model(server: ScriptedModel) -> ScriptedModel:
    """The model server without what earlier cases set."""
    server.reset()
    return server
