"""The plugin: what happens with a message, in which order."""

from __future__ import annotations

import secrets

from maubot import MessageEvent, Plugin
from maubot.handlers import event
from mautrix.types import EventType, MessageType
from mautrix.util.async_db import UpgradeTable

from . import memory_commands, texts
from .addressing import Command, Message, Request, addressed
from .assistant import Assistant, Turn
from .config import Config
from .conversation import Conversations
from .memory.migrations import upgrade_table
from .memory.pipeline import Exchange, MemoryPipeline
from .memory.rules import Mention
from .memory.store import MemoryStore
from .models import ModelClient, ModelError
from .replies import rendered, reply, typing
from .room import Rooms


class LLMBot(Plugin):
    """Answers `!ask` and remembers people."""

    config: Config
    assistant: Assistant
    pipeline: MemoryPipeline
    store: MemoryStore

    @classmethod
    def get_config_class(cls) -> type[Config]:
        """Tell maubot how the config is read."""
        return Config

    @classmethod
    def get_db_upgrade_table(cls) -> UpgradeTable:
        """Tell maubot how the tables are made."""
        return upgrade_table

    async def start(self) -> None:
        """Put the parts together; maubot has prepared config and database."""
        self.config.reload(self.log)
        models = ModelClient(self.http, self.log)
        rooms = Rooms(self.client, self.log)
        self.store = MemoryStore(self.database)
        self.pipeline = MemoryPipeline(self.store, models, rooms.memory_enabled, self.log)
        self.assistant = Assistant(models, self.store, self.pipeline, Conversations(), self.log)

    async def stop(self) -> None:
        """End what runs in the background."""
        await self.pipeline.stop()

    def on_external_config_update(self) -> None:
        """Put a saved config in force."""
        self.config.reload(self.log)

    @event.on(EventType.ROOM_MESSAGE)
    async def on_message(self, evt: MessageEvent) -> None:
        """Answer a message that is for the bot."""
        content = evt.content
        if getattr(content, "msgtype", None) != MessageType.TEXT:
            return
        message = Message(
            sender=evt.sender,
            body=content.body,
            is_text=content.msgtype == MessageType.TEXT,
            is_edit=content.get_edit() is not None,
        )
        request = addressed(message, self.client.mxid)
        if request is None:
            return
        try:
            if request.command is Command.ASK:
                await self._ask(evt, request)
            else:
                await reply(evt, await memory_commands.run(self.store, evt.sender, request.text))
        except Exception:
            error_id = secrets.token_hex(4)
            self.log.exception("Internal error %s", error_id)
            await reply(evt, texts.internal_error(error_id))

    async def _ask(self, evt: MessageEvent, request: Request) -> None:
        settings = self.config.settings
        if not request.text:
            await reply(evt, texts.ASK_USAGE)
            return
        if len(request.text) > settings.max_prompt_length:
            await reply(evt, texts.prompt_too_long(len(request.text), settings.max_prompt_length))
            return
        mention = Mention(evt.sender, evt.room_id, evt.event_id)
        turn = Turn(mention, evt.content.get_thread_parent(), request.text)
        try:
            async with typing(self.client, evt.room_id):
                answer = await self.assistant.answer(turn, settings)
                await reply(evt, rendered(answer))
        except ModelError as error:
            self.log.warning("No answer: %s", error)
            await reply(evt, texts.model_error(error))
            return
        self.assistant.remember_exchange(turn, answer, settings)
        # M1: after the answer was sent.
        self.pipeline.start_pass(Exchange(mention, turn.words, answer), settings)
