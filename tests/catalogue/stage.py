"""Plays a case: the real pipeline and store, PostgreSQL, and a model server over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import logging
from collections.abc import AsyncIterator

import aiohttp
import asyncpg
from maubot.lib.plugin_db import ProxyPostgresDatabase
from mautrix.util.config import RecursiveDict
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from devstack.build import ROOT
from devstack.scripted_model import (
    RecordedRequest,
    Response,
    ScriptedModel,
    completion,
    reply_json,
)
from llmbot.config import Config, Settings
from llmbot.memory.cleanup import RejectedCleanupError
from llmbot.memory.facts import own_words
from llmbot.memory.pipeline import Exchange, MemoryPipeline
from llmbot.memory.rules import Mention
from llmbot.memory.store import MemoryStore
from llmbot.models import ModelClient, Provider
from tests.integration.database import Clock

from . import worst
from .case import (
    CallsSave,
    Case,
    CleansUp,
    Deletes,
    Knows,
    Remembered,
    Says,
    Step,
    Together,
    Waits,
)

ROOM = "!room:example.org"
_numbers = itertools.count(1)


def default_settings() -> Settings:
    """Return the settings of `base-config.yaml`."""
    base = RecursiveDict(YAML().load((ROOT / "base-config.yaml").read_text()), CommentedMap)
    config = Config(CommentedMap, base.clone, lambda _: None)
    config.reload(logging.getLogger("test.config"))
    return config.settings


class Stage:
    """Where one case is played, by users of its own."""

    def __init__(
        self, pipeline: MemoryPipeline, store: MemoryStore, model: ScriptedModel, clock: Clock
    ) -> None:
        self._pipeline = pipeline
        self._store = store
        self._model = model
        self._clock = clock
        self._number = next(_numbers)
        self._events = itertools.count(1)
        self._saying: dict[tuple[str, str], Says] = {}
        self.settings = dataclasses.replace(
            default_settings(),
            assistant_model="scripted/answers",
            providers={"scripted": Provider(model.base_url, "")},
            timeout=5.0,
        )
        model.on("extraction", self._extract)

    def user_id(self, name: str) -> str:
        """Return the full id of a user in this case."""
        return f"@{name}{self._number}:example.org"

    async def play(self, case: Case) -> None:
        """Carry out the case's steps."""
        self.settings = dataclasses.replace(self.settings, **case.settings)
        for step in case.steps:
            await self._carry_out(step)

    async def _carry_out(self, step: Step) -> None:
        match step:
            case Says():
                await self._run_pass(step)
            case Together(messages):
                gate = self._model.hold("extraction")
                before = len(self._model.seen("extraction"))
                passes = asyncio.gather(*map(self._run_pass, messages))
                await self._model.wait_for("extraction", before + len(messages))
                gate.release()
                await passes
            case CallsSave():
                await self._call_save(step)
            case Knows(fact, user):
                await self._store.save(self.user_id(user), ROOM, fact)
            case Deletes(fact, user):
                await self._delete(self.user_id(user), fact)
            case Waits(days):
                self._clock.advance(days=days)
            case CleansUp():
                await self._clean_up(step)

    async def _run_pass(self, message: Says) -> None:
        words = own_words(message.prompt)
        self._saying[words, message.reply] = message
        event_id = message.event or f"$event{next(self._events)}"
        mention = Mention(self.user_id(message.user), ROOM, event_id)
        exchange = Exchange(mention, words, message.reply, is_fiction=message.in_scene)
        await self._pipeline.run_pass(exchange, self.settings)

    def _extract(self, request: RecordedRequest) -> Response:
        payload = request.payload
        message = self._saying[payload["user_message"], payload["assistant_reply"]]
        return completion(request, {"content": worst.answer(payload, message)})

    async def _call_save(self, call: CallsSave) -> None:
        mention = Mention(self.user_id(call.user), ROOM, f"$event{next(self._events)}")
        arguments = {"fact": call.fact, "evidence": call.evidence}
        messages = [own_words(message) for message in call.messages]
        result = await self._pipeline.save(mention, arguments, messages, self.settings)
        assert result.startswith(call.result), result

    async def _delete(self, user_id: str, fact: str) -> None:
        (memory,) = [one for one in await self._store.memories(user_id) if one.fact == fact]
        assert await self._store.delete(user_id, [memory.id]) == {memory.id}

    async def _clean_up(self, step: CleansUp) -> None:
        self._model.on("cleanup", reply_json(step.answer))
        try:
            await self._pipeline.cleanup(self.user_id(step.user), self.settings)
        except RejectedCleanupError:
            assert step.is_rejected
        else:
            assert not step.is_rejected

    async def remembered(self, committed: asyncpg.Connection, user: str) -> Remembered:
        """Return what both tables hold of a user."""
        memories = await committed.fetch(
            "SELECT fact FROM memories WHERE user_id = $1 ORDER BY id", self.user_id(user)
        )
        candidates = await committed.fetch(
            "SELECT fact, mentions FROM memory_candidates WHERE user_id = $1 ORDER BY id",
            self.user_id(user),
        )
        return Remembered(
            tuple(row["fact"] for row in memories),
            {row["fact"]: row["mentions"] for row in candidates},
        )


@contextlib.asynccontextmanager
async def stage(database: ProxyPostgresDatabase, model: ScriptedModel) -> AsyncIterator[Stage]:
    """Set up what one case needs."""

    async def open_room(_: str) -> bool:
        return True

    log = logging.getLogger("test.llmbot")
    clock = Clock()
    store = MemoryStore(database, clock)
    async with aiohttp.ClientSession() as http:
        pipeline = MemoryPipeline(store, ModelClient(http, log), open_room, log)
        yield Stage(pipeline, store, model, clock)
        await pipeline.stop()
