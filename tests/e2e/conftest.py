"""One world for all end-to-end tests; each test has people and rooms of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from devstack.build import build
from devstack.scripted_model import ScriptedModel
from devstack.stack import Stack

from .world import Person, World


@pytest.fixture(scope="session")
async def whole_world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    mbp = build(tmp_path_factory.mktemp("dist"))
    async with (
        ScriptedModel() as model,
        Stack(tmp_path_factory.mktemp("stack"), scripted_model=False) as stack,
    ):
        bot = await stack.setup_bot(mbp, {})
        world = World(stack, model, bot)
        await world.connect()
        yield world
        await world.sql.close()


@pytest.fixture
async def world(whole_world: World) -> World:
    await whole_world.begin()
    return whole_world


@pytest.fixture
async def ada(world: World) -> Person:
    """Somebody new in a room of their own with the bot."""
    return await world.person("ada")
