"""The built .mbp in a real maubot, a real homeserver and database, and people who talk to it."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any

import asyncpg

from devstack.member import Member, SeenEvent
from devstack.postgres import CANNOT_CONNECT
from devstack.process import wait_until
from devstack.scripted_model import Gate, Kind, RecordedRequest, Responder, ScriptedModel
from devstack.stack import Bot, Stack, instance_config

SECONDS = 20.0
_names = itertools.count(1)


@dataclasses.dataclass
class Person:
    """Somebody in a room with the bot."""

    world: World
    member: Member
    room_id: str

    @property
    def user_id(self) -> str:
        """The person's full Matrix id."""
        return self.member.user_id

    async def tell(self, text: str, **content: object) -> SeenEvent:
        """Say something and return the bot's answer."""
        event_id = await self.member.say(self.room_id, text, **content)
        return await self.member.wait_for_reply(event_id, SECONDS)

    async def tell_silently(self, text: str, **content: object) -> str:
        """Say something without waiting for an answer; return the event's id."""
        return await self.member.say(self.room_id, text, **content)

    async def rows(self, table: str) -> list[str]:
        """Return this person's facts in a table, oldest first."""
        rows = await self.world.sql.fetch(
            f"SELECT fact FROM {table} WHERE user_id = $1 ORDER BY id", self.user_id
        )
        return [row["fact"] for row in rows]

    async def candidates(self) -> dict[str, int]:
        """Return this person's candidates with their mentions."""
        rows = await self.world.sql.fetch(
            "SELECT fact, mentions FROM memory_candidates WHERE user_id = $1", self.user_id
        )
        return {row["fact"]: row["mentions"] for row in rows}

    async def until(
        self, *, candidates: Mapping[str, int] | None = None, memories: list[str] | None = None
    ) -> None:
        """Wait until the tables hold exactly this of the person; what is None is not looked at."""

        async def holds() -> bool:
            return (candidates is None or await self.candidates() == candidates) and (
                memories is None or await self.rows("memories") == memories
            )

        await wait_until(holds, SECONDS, f"candidates {candidates}, memories {memories}")


class World:
    """Everything that an end-to-end test needs."""

    def __init__(self, stack: Stack, model: ScriptedModel, bot: Bot) -> None:
        self.stack = stack
        self.model = model
        self.bot = bot
        self.sql: asyncpg.Connection
        self._model_name = ""

    async def connect(self) -> None:
        """Open the connection by which tests look into the tables."""
        self.sql = await self.stack.connect(self.bot.instance_id)

    async def reconnect(self) -> None:
        """Open it anew once the database is back."""

        async def connected() -> bool:
            try:
                await self.connect()
            except CANNOT_CONNECT:
                return False
            return True

        await wait_until(connected, SECONDS, "PostgreSQL to come back")

    async def begin(self) -> None:
        """Begin a test: default settings, and a model that follows no rules yet.

        Each test has a model name of its own, so that a pass which another test left running
        neither takes this one's answers nor shows up among its requests.
        """
        self.model.reset()
        self._model_name = f"model-{next(_names)}"
        await self.configure()

    def _asked_here(self, request: RecordedRequest) -> bool:
        return request.model == self._model_name

    def on(self, kind: Kind, responder: Responder, *, times: int | None = None) -> None:
        """Let the model answer requests of a kind in this way."""
        self.model.on(kind, responder, when=self._asked_here, times=times)

    def hold(self, kind: Kind) -> Gate:
        """Let requests of a kind wait until the gate is released."""
        return self.model.hold(kind, when=self._asked_here)

    def seen(self, kind: Kind) -> list[RecordedRequest]:
        """Return this test's requests of a kind."""
        return self.model.seen(kind, when=self._asked_here)

    async def requested(self, kind: Kind, count: int = 1) -> list[RecordedRequest]:
        """Wait until this test has made so many requests of a kind, and return them."""
        return await self.model.wait_for(kind, count, when=self._asked_here, timeout=SECONDS)

    async def configure(self, **changes: object) -> None:
        """Save the default config with some changes, as an admin does."""
        await self.stack.admin.set_config(
            self.bot.instance_id, instance_config({**self._own_settings(), **changes})
        )

    def _own_settings(self) -> dict[str, Any]:
        return {
            "assistantModel": f"scripted/{self._model_name}",
            "providers": {"scripted": {"baseUrl": self.model.base_url, "apiKeyEnv": ""}},
            "askRateLimitCount": 0,
            "imageModel": f"scripted/{self._model_name}",
            "drawRateLimitCount": 0,
            "storyCooldownSeconds": 0,
        }

    def log(self) -> str:
        """Return maubot's log."""
        return self.stack.maubot.log

    async def person(self, who: str = "ada", *others: Member, **room: Any) -> Person:  # noqa: ANN401
        """Register somebody new and make a room of theirs with the bot.

        Args:
            who: The beginning of their name.
            others: Further members to bring into the room.
            room: As for `Member.create_room`.
        """
        member = await self.stack.member(f"{who}{next(_names)}")
        invited = [self.bot.user_id, *(other.user_id for other in others)]
        room_id = await member.create_room(*invited, **room)
        for other in others:
            await other.join(room_id)
        await member.wait_for_member(room_id, self.bot.user_id)
        return Person(self, member, room_id)
