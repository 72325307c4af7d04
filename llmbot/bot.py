"""The plugin: what happens with a message, in which order."""

from __future__ import annotations

import secrets

from maubot import MessageEvent, Plugin
from maubot.handlers import event
from mautrix.types import EventType, MessageType, RedactionEvent
from mautrix.util.async_db import UpgradeTable

from . import texts
from .addressing import Command, Message, Request, addressed
from .assistant import Answer, Assistant, Turn
from .code_files import code_files
from .config import Config, Settings
from .conversation import ConversationKey, Conversations
from .files import send_file
from .limits import Limits, Refusal, SeenEvents
from .memory.migrations import upgrade_table
from .memory.pipeline import Exchange, MemoryPipeline
from .memory.rules import Mention
from .memory.store import MemoryStore
from .memory_commands import MemoryCommands
from .models import ModelClient, ModelError
from .replies import rendered, reply, typing
from .reporting import FailureLog
from .room import Rooms
from .surroundings import SurroundingsReader
from .tasks import RunningTasks
from .texts import Text


class LLMBot(Plugin):
    """Answers `!ask` and remembers people."""

    config: Config
    assistant: Assistant
    pipeline: MemoryPipeline
    memory_commands: MemoryCommands
    limits: Limits
    surroundings: SurroundingsReader
    conversations: Conversations
    seen_events: SeenEvents
    turns: RunningTasks
    failures: FailureLog

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
        store = MemoryStore(self.database)
        self.limits = Limits()
        self.surroundings = SurroundingsReader(self.client)
        self.seen_events = SeenEvents()
        self.turns = RunningTasks()
        self.failures = FailureLog(self.log)
        self.pipeline = MemoryPipeline(store, models, rooms.memory_enabled, self.log)
        self.memory_commands = MemoryCommands(store, self.pipeline, self.limits)
        self.conversations = Conversations()
        self.assistant = Assistant(models, store, self.pipeline, self.conversations, self.log)

    async def stop(self) -> None:
        """End what runs: turns first, since they start passes."""
        await self.turns.cancel()
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
        if not isinstance(content.body, str):
            return
        message = Message(
            sender=evt.sender,
            body=content.body,
            is_text=content.msgtype == MessageType.TEXT,
            is_edit=content.get_edit() is not None,
        )
        request = addressed(message, self.client.mxid)
        if request is None or not self.seen_events.is_new(evt.event_id):
            return
        with self.turns.including_this():
            try:
                await self._answer(evt, request, self.config.settings)
            # What nobody foresaw gets an id that the user sees and the log explains.
            except Exception:
                error_id = secrets.token_hex(4)
                self.log.exception("Internal error %s", error_id)
                await reply(evt, texts.internal_error(error_id))

    @event.on(EventType.ROOM_REDACTION)
    async def on_redaction(self, evt: RedactionEvent) -> None:
        """Let a message that was taken back leave the conversation."""
        self.conversations.redact(evt.room_id, evt.redacts)

    async def _answer(self, evt: MessageEvent, request: Request, settings: Settings) -> None:
        match request.command:
            case Command.ASK:
                await self._turn(evt, request.text, settings, is_code=False)
            case Command.CODE:
                await self._turn(evt, request.text, settings, is_code=True)
            case Command.MEMORIES:
                await self._memories(evt, request.text, settings)
            case Command.FORGET:
                await reply(evt, self._forget(evt))

    def _forget(self, evt: MessageEvent) -> Text:
        thread_id = evt.content.get_thread_parent()
        key = ConversationKey(evt.room_id, thread_id, evt.sender)
        return texts.FORGOTTEN if self.conversations.forget(key) else texts.NOTHING_TO_FORGET

    async def _memories(self, evt: MessageEvent, text: str, settings: Settings) -> None:
        async with typing(self.client, evt.room_id):
            answer = await self.memory_commands.run(evt.sender, text, settings)
            if isinstance(answer, Refusal):
                await self._refuse(evt, answer)
            else:
                await reply(evt, answer)

    async def _turn(
        self, evt: MessageEvent, prompt: str, settings: Settings, *, is_code: bool
    ) -> None:
        refusal = self.limits.refusal(evt.sender, prompt, settings, is_code=is_code)
        if refusal is not None:
            await self._refuse(evt, refusal)
            return
        mention = Mention(evt.sender, evt.room_id, evt.event_id)
        turn = Turn(is_code, mention, evt.content.get_thread_parent(), prompt)
        try:
            async with typing(self.client, evt.room_id):
                surroundings = await self.surroundings.read(evt)
                answer = await self.assistant.answer(turn, surroundings, settings)
                await self._send_answer(evt, answer, is_code=is_code)
        except ModelError as error:
            self._log_no_answer(error)
            await reply(evt, texts.model_error(error))
            return
        self.assistant.remember_exchange(turn, answer, settings)
        # M1: after the answer was sent; with the settings as they are now.
        exchange = Exchange(mention, turn.words, answer.text)
        self.pipeline.start_pass(exchange, self.config.settings)

    async def _refuse(self, evt: MessageEvent, refusal: Refusal) -> None:
        self.log.debug("Refused %s: %s", evt.event_id, refusal.text.plain)
        if not refusal.is_silent:
            await reply(evt, refusal.text)

    async def _send_answer(self, evt: MessageEvent, answer: Answer, *, is_code: bool) -> None:
        await reply(evt, rendered(answer.text + (texts.CUT_OFF if answer.is_cut_off else "")))
        if is_code:
            for file in code_files(answer.text):
                await send_file(evt, file)

    def _log_no_answer(self, error: ModelError) -> None:
        if error.is_set_up_wrong:
            self.failures.report(f"No answer: {error}")
        else:
            self.log.log(error.log_level, "No answer: %s", error)
