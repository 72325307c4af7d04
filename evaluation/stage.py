"""Where a run takes place: real pipeline and store, a PostgreSQL of its own, simulated time."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import itertools
import logging
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp
from mautrix.util.async_db import Database
from mautrix.util.config import RecursiveDict
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from devstack.build import ROOT
from devstack.postgres import Postgres
from devstack.process import empty_world
from evaluation.answers import SavedAnswers
from evaluation.dataset import START, Conversation, Person, Turn
from evaluation.extractor import NoisyExtractor
from evaluation.metrics import Outcome
from llmbot.config import Config, Settings
from llmbot.memory.migrations import upgrade_table
from llmbot.memory.pipeline import Exchange, MemoryPipeline
from llmbot.memory.rules import Mention
from llmbot.memory.store import MemoryStore
from llmbot.models import Completion, ModelClient, ModelError, Urgency
from llmbot.models.client import ClientSettings
from llmbot.models.parsing import ShapeError, parse_object

_ROOM = "!evaluation:example.org"
_runs = itertools.count(1)
log = logging.getLogger("evaluation")


def default_settings() -> Settings:
    """Return the settings of `base-config.yaml`."""
    base = RecursiveDict(YAML().load((ROOT / "base-config.yaml").read_text()), CommentedMap)
    config = Config(CommentedMap, base.clone, lambda _: None)
    config.reload(log)
    return config.settings


@dataclasses.dataclass(frozen=True)
class Rules:
    """What differs between runs."""

    threshold: int
    require_evidence: bool

    def __str__(self) -> str:
        evidence = "with" if self.require_evidence else "without"
        return f"threshold {self.threshold} {evidence} evidence"

    def applied_to(self, settings: Settings) -> Settings:
        """Return settings with these rules."""
        return dataclasses.replace(
            settings,
            memory_promotion_threshold=self.threshold,
            memory_require_evidence=self.require_evidence,
        )


ALL_RULES = tuple(
    Rules(threshold, evidence) for evidence in (True, False) for threshold in (1, 2, 3)
)
SINGLE_STAGE = Rules(1, require_evidence=False)
DEFAULT_RULES = Rules(2, require_evidence=True)


@contextlib.asynccontextmanager
async def database() -> AsyncIterator[Database]:
    """Start a PostgreSQL with llmbot's tables; it need not survive a crash of the machine."""
    with tempfile.TemporaryDirectory(prefix="llmbot-evaluation-") as folder:
        world = Path(folder) / "world"
        world.mkdir()
        async with empty_world(world):
            postgres = Postgres(world)
            await postgres.start()
            try:
                pool = Database.create(
                    postgres.url,
                    upgrade_table=upgrade_table,
                    db_args={
                        "min_size": 1,
                        "max_size": 4,
                        "server_settings": {"synchronous_commit": "off"},
                    },
                    log=logging.getLogger("evaluation.database"),
                )
                await pool.start()
                try:
                    yield pool
                finally:
                    await pool.stop()
            finally:
                await postgres.stop()


class WatchedClient(ModelClient):
    """The plugin's model client; it keeps what the extractor proposes, and saved answers."""

    def __init__(self, http: aiohttp.ClientSession, saved: SavedAnswers | None = None) -> None:
        super().__init__(http, log)
        self._saved = saved
        self.conversation = ""
        self.offered: set[str] = set()
        self.asked = 0
        """Requests that reached the model."""
        self.from_saved = 0
        """Requests answered from what was saved."""
        self.failure: ModelError | None = None

    async def complete(
        self,
        name: str,
        messages: Sequence[dict[str, Any]],
        settings: ClientSettings,
        *,
        setting: str = "assistantModel",
        urgency: Urgency = Urgency.ANSWER,
        tools: Sequence[Mapping[str, Any]] = (),
        json_schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        """Ask the model, or take the answer that was saved for this very request."""
        answer = self._saved.find(self.conversation, name, messages) if self._saved else None
        if answer is not None:
            self.from_saved += 1
        else:
            try:
                completion = await super().complete(
                    name,
                    messages,
                    settings,
                    setting=setting,
                    urgency=urgency,
                    tools=tools,
                    json_schema=json_schema,
                )
            except ModelError as error:
                self.failure = error
                raise
            self.asked += 1
            answer = completion.text
            if self._saved:
                self._saved.add(self.conversation, name, messages, answer)
        self._watch(answer)
        return Completion(answer)

    def _watch(self, answer: str) -> None:
        try:
            items = parse_object(answer).get("new")
        except ShapeError:
            return
        for item in items if isinstance(items, list) else ():
            if isinstance(item, dict) and isinstance(item.get("fact"), str):
                self.offered.add(item["fact"])


class Run:
    """One run of a data set under certain rules, as users of its own."""

    def __init__(
        self,
        database: Database,
        client: WatchedClient,
        settings: Settings,
        extractor: NoisyExtractor | None = None,
    ) -> None:
        self._number = next(_runs)
        self._now = START
        self._store = MemoryStore(database, lambda: self._now)
        self._pipeline = MemoryPipeline(self._store, client, _open_room, log)
        self._client = client
        self._settings = settings
        self._extractor = extractor

    async def live_through(self, person: Person) -> Outcome:
        """Let a person say all they say; return what is remembered.

        Raises:
            ModelError: the model gave no answer.
        """
        user_id = f"@{person.name}.{self._number}:example.org"
        self._client.offered = set()
        first_stored: dict[str, datetime.datetime] = {}
        for conversation in person.conversations:
            await self._talk(user_id, conversation, first_stored)
        memories = await self._store.memories(user_id)
        return Outcome(
            person, [memory.fact for memory in memories], first_stored, self._client.offered
        )

    async def _talk(
        self,
        user_id: str,
        conversation: Conversation,
        first_stored: dict[str, datetime.datetime],
    ) -> None:
        self._client.conversation = conversation.id
        for turn in conversation.turns:
            await self._pass(user_id, turn)
            for memory in await self._store.memories(user_id):
                first_stored.setdefault(memory.fact, turn.time)

    async def _pass(self, user_id: str, turn: Turn) -> None:
        self._now = turn.time
        if self._extractor:
            self._extractor.read(turn)
        mention = Mention(user_id, _ROOM, f"${turn.id}")
        await self._pipeline.run_pass(Exchange(mention, turn.words, turn.reply), self._settings)
        if self._client.failure:
            raise self._client.failure


async def _open_room(_: str) -> bool:
    return True
