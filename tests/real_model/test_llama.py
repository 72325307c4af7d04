"""llmbot against a real model server: `make real-model`.

The model is tiny and talks nonsense; what is proved is that the server's ways are handled.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import aiohttp
import pytest

from devstack.build import build
from devstack.process import empty_world, wait_until
from devstack.stack import Stack
from llmbot.memory.extraction import parse_extraction
from llmbot.memory.store import PassView, ShownCandidate
from llmbot.models import ModelClient, Provider
from llmbot.models.client import ClientSettings
from llmbot.prompts import EXTRACTION_SCHEMA, SAVE_MEMORY_TOOL, extraction_messages

from .llama import LlamaServer

MESSAGES = [
    {"role": "system", "content": "Answer in one word."},
    {"role": "system", "content": "{}"},
    {"role": "user", "content": "What is the capital of France?"},
]


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LlamaServer]:
    world = tmp_path_factory.mktemp("llama")
    async with empty_world(world):
        server = LlamaServer(world)
        await server.start(120)
        yield server
        await server.stop()


@pytest.fixture
async def client() -> AsyncIterator[ModelClient]:
    async with aiohttp.ClientSession() as http:
        yield ModelClient(http, logging.getLogger("test.models"))


@pytest.fixture
def settings(server: LlamaServer) -> ClientSettings:
    return ClientSettings({"llama": Provider(server.base_url, "")}, 120.0, 2)


async def test_it_answers_with_and_without_tools(
    client: ModelClient, settings: ClientSettings
) -> None:
    plain = await client.complete("llama/gemma", MESSAGES, settings)
    assert plain.text
    await client.complete("llama/gemma", MESSAGES, settings, tools=[SAVE_MEMORY_TOOL])


async def test_json_is_asked_for_in_a_way_that_the_server_takes(
    client: ModelClient, settings: ClientSettings, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    view = PassView(("Likes tea",), (ShownCandidate(7, "Lives in Berlin"),))
    words = "I work as a mechanical engineer."
    for _ in range(2):
        completion = await client.complete(
            "llama/gemma",
            extraction_messages(view, words, "How interesting!"),
            settings,
            json_schema=EXTRACTION_SCHEMA,
        )
        extraction = parse_extraction(
            completion.text, view.candidates, words, require_evidence=True
        )
        assert set(extraction.proposals.reinforced) <= {7}
    # json_schema was refused once; what works was remembered.
    assert caplog.text.count("JSON by object") == 1


async def test_a_whole_conversation_in_a_room(
    server: LlamaServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    mbp = build(tmp_path_factory.mktemp("dist"))
    async with Stack(tmp_path_factory.mktemp("stack"), scripted_model=False) as stack:
        config = {
            "assistantModel": "llama/gemma",
            "providers": {"llama": {"baseUrl": server.base_url, "apiKeyEnv": ""}},
            "timeout": 120,
        }
        bot = await stack.setup_bot(mbp, config)
        ada = await stack.member("ada")
        room_id = await ada.create_room(bot.user_id)
        await ada.wait_for_member(room_id, bot.user_id)
        event_id = await ada.say(room_id, "!ask I work as a mechanical engineer. And you?")
        answer = await ada.wait_for_reply(event_id, 120)
        assert answer.body

        async def pass_is_over() -> bool:
            return "Memory pass:" in stack.maubot.log

        await wait_until(pass_is_over, 120, "the memory pass")
        connection = await stack.connect()
        count = await connection.fetchval("SELECT count(*) FROM memory_candidates")
        await connection.close()
        # Whatever it reported as a fact had to quote what Ada said.
        assert count <= 3
