"""The plugin: what happens with a message, in which order."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import time
from collections.abc import Sequence

from aiohttp.web import Request as WebRequest
from aiohttp.web import Response
from maubot import MessageEvent, Plugin
from maubot.handlers import event, web
from mautrix.types import EventType, RedactionEvent, StateEvent
from mautrix.util.async_db import UpgradeTable

from . import metrics, texts
from .addressing import Command, Request, addressed
from .assistant import Answer, Assistant, Turn
from .code_files import CodeFile, code_files
from .config import Config, Settings
from .conversation import ConversationKey, Conversations
from .counters import Counters, cause
from .files import UploadTooLargeError, send_file
from .health import Setup, setup
from .incoming import MessageReader
from .limits import Limits, Refusal, SeenEvents
from .memory.cleanup import RejectedCleanupError
from .memory.migrations import upgrade_table
from .memory.pipeline import Exchange, MemoryPipeline
from .memory.rules import Mention
from .memory.store import MemoryStore
from .memory_commands import MemoryCommands
from .models import ModelClient, ModelError
from .pictures import Painter, picture_message
from .replies import RoomGoneError, rendered, reply, send, working
from .reporting import FailureLog, traceback_of
from .room import SETTINGS_EVENT, Rooms
from .story import Storyteller
from .surroundings import SurroundingsReader
from .tasks import RunningTasks
from .texts import Text
from .verse import VERSE_EVENT, Verses


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
    rooms: Rooms
    verses: Verses
    painter: Painter
    storyteller: Storyteller
    messages: MessageReader
    started: int
    turns: RunningTasks
    failures: FailureLog
    counters: Counters

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
        self.started = time.time_ns() // 1_000_000
        self.rooms = Rooms(self.client, self.log)
        self.verses = Verses(self.rooms, self.log)
        self.messages = MessageReader(self.client, self.rooms)
        store = MemoryStore(self.database)
        self.limits = Limits()
        self.surroundings = SurroundingsReader(self.client, self.rooms)
        self.seen_events = SeenEvents()
        self.turns = RunningTasks()
        self.failures = FailureLog(self.log)
        self.counters = Counters()
        self.pipeline = MemoryPipeline(
            store, models, self.rooms.memory_enabled, self.log, self.counters
        )
        self.memory_commands = MemoryCommands(store, self.pipeline, self.limits, self.rooms)
        self.painter = Painter(models)
        self.storyteller = Storyteller(models, self.painter, self.log, self.counters)
        self.conversations = Conversations()
        self.assistant = Assistant(
            models, store, self.pipeline, self.conversations, self.log, self.counters
        )
        self.log.info("Started: %s", texts.setup_line(self._setup()))

    def _setup(self) -> Setup:
        return setup(str(self.loader.meta.version), self.config.settings, os.environ)

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
        with self.turns.including_this():
            settings = self.config.settings
            request = await self._request(evt, settings)
            if request is None or not self.seen_events.is_new(evt.event_id):
                return
            try:
                await self._answer(evt, request, settings)
            except RoomGoneError as error:
                self.log.debug("No answer to %s: %s", evt.event_id, error)
            # What nobody foresaw gets an id that the user sees and the log explains.
            except Exception as error:  # noqa: BLE001
                self.counters.failures["internal"] += 1
                error_id = secrets.token_hex(4)
                self.log.error("Internal error %s%s", error_id, traceback_of(error))
                with contextlib.suppress(RoomGoneError):
                    await reply(evt, texts.internal_error(error_id))

    @web.get("/metrics")
    async def on_metrics(self, request: WebRequest) -> Response:
        """Let Prometheus read the counters, if the config has a token for it."""
        token = self.config.settings.metrics_token
        if not token:
            return Response(status=404)
        if not metrics.may_read(request.headers.get("Authorization", ""), token):
            return Response(status=401, headers={"WWW-Authenticate": "Bearer"})
        text = metrics.exposition(self.counters, self.pipeline.running, self.started / 1000)
        return Response(body=text.encode(), headers={"Content-Type": metrics.CONTENT_TYPE})

    async def _request(self, evt: MessageEvent, settings: Settings) -> Request | None:
        """Return what a message asks the bot for."""
        message = await self.messages.read(evt)
        if message is None:
            return None
        return addressed(
            message,
            self.client.mxid,
            await self.rooms.own_name(evt.room_id),
            started=self.started,
            answers_mentions=settings.answer_mentions,
            answers_direct_chats=settings.answer_direct_chats,
        )

    @event.on(SETTINGS_EVENT)
    async def on_room_settings(self, evt: StateEvent) -> None:
        """Follow what a room says of its memory."""
        self.rooms.on_settings_event(evt)

    @event.on(VERSE_EVENT)
    async def on_verse(self, evt: StateEvent) -> None:
        """Follow which scene a room plays."""
        self.verses.on_verse_event(evt)

    @event.on(EventType.ROOM_MEMBER)
    async def on_member(self, evt: StateEvent) -> None:
        """Follow who is in a room."""
        self.rooms.on_member_event(evt)

    @event.on(EventType.ROOM_REDACTION)
    async def on_redaction(self, evt: RedactionEvent) -> None:
        """Let a message that was taken back leave the conversation, and follow its room."""
        self.rooms.on_redaction(evt)
        self.verses.on_redaction(evt)
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
                await reply(evt, await self._forget(evt))
            case Command.VERSE:
                async with working(evt):
                    await reply(evt, await self.verses.run(evt.sender, evt.room_id, request.text))

            case Command.DRAW:
                await self._draw(evt, request.text, settings)
            case Command.STORY:
                await self._story(evt, request.text, settings)
            case Command.LLMBOT:
                await reply(evt, self._health(evt.sender, settings))

    def _health(self, user_id: str, settings: Settings) -> Text:
        if user_id not in settings.admins:
            return texts.ONLY_FOR_ADMINS
        seconds = time.time() - self.started / 1000
        return texts.health(self._setup(), self.counters, self.pipeline.running, seconds)

    async def _draw(self, evt: MessageEvent, prompt: str, settings: Settings) -> None:
        refusal = self.limits.draw_refusal(evt.sender, prompt, settings)
        if refusal is not None:
            await self._refuse(evt, refusal)
            return
        try:
            async with working(evt):
                picture = await self.painter.draw(prompt, settings)
                await send(evt, await picture_message(self.client, evt.room_id, picture, prompt))
        except ModelError as error:
            self._log_no_answer(error)
            await reply(evt, texts.model_error(error))
        except UploadTooLargeError as error:
            self.counters.failures["upload"] += 1
            self.log.warning("A picture was not sent: %s", error)
            await reply(evt, texts.upload_too_large(error.size, error.limit))

    async def _story(self, evt: MessageEvent, wish: str, settings: Settings) -> None:
        refusal = self.limits.story_refusal(evt.sender, wish, settings)
        if refusal is not None:
            await self._refuse(evt, refusal)
            return
        try:
            async with working(evt):
                await self.storyteller.tell(evt, wish, settings)
        except ModelError as error:
            self._log_no_answer(error)

    async def _forget(self, evt: MessageEvent) -> Text:
        key = ConversationKey(evt.room_id, evt.content.get_thread_parent(), evt.sender)
        forgot = self.conversations.forget(key)
        if scene := await self.verses.scene(evt.room_id):
            # What others said in the scene stays theirs.
            shared = key._replace(user_id="", scene=scene)
            forgot = self.conversations.leave(shared, evt.sender) or forgot
        return texts.FORGOTTEN if forgot else texts.NOTHING_TO_FORGET

    async def _memories(self, evt: MessageEvent, text: str, settings: Settings) -> None:
        try:
            async with working(evt):
                answer = await self.memory_commands.run(evt.sender, evt.room_id, text, settings)
                if isinstance(answer, Refusal):
                    await self._refuse(evt, answer)
                else:
                    await reply(evt, answer)
        except ModelError as error:
            self._log_no_answer(error)
            await reply(evt, texts.model_error(error))
        except RejectedCleanupError as error:
            self.counters.failures["answer"] += 1
            self.failures.report(f"No cleanup: {error}")
            await reply(evt, texts.CLEANUP_REJECTED)

    async def _turn(
        self, evt: MessageEvent, prompt: str, settings: Settings, *, is_code: bool
    ) -> None:
        refusal = self.limits.refusal(evt.sender, prompt, settings, is_code=is_code)
        if refusal is not None:
            await self._refuse(evt, refusal)
            return
        mention = Mention(evt.sender, evt.room_id, evt.event_id)
        try:
            async with working(evt):
                scene = "" if is_code else await self.verses.scene(evt.room_id)
                turn = Turn(is_code, mention, evt.content.get_thread_parent(), prompt, scene)
                surroundings = await self.surroundings.read(evt)
                answer = await self.assistant.answer(turn, surroundings, settings)
                await self._send_answer(evt, answer, is_code=is_code)
                self.counters.turns += 1
                # Before typing stops: the next message may be on its way already.
                self.assistant.remember_exchange(turn, answer, surroundings, settings)
                # M1: after the answer was sent; with the settings as they are now.
                exchange = Exchange(mention, turn.words, answer.text, is_fiction=scene != "")
                self.pipeline.start_pass(exchange, self.config.settings)
        except ModelError as error:
            self._log_no_answer(error)
            await reply(evt, texts.model_error(error))

    async def _refuse(self, evt: MessageEvent, refusal: Refusal) -> None:
        self.log.debug("Refused %s: %s", evt.event_id, refusal.text.plain)
        if not refusal.is_silent:
            await reply(evt, refusal.text)

    async def _send_answer(self, evt: MessageEvent, answer: Answer, *, is_code: bool) -> None:
        text = answer.text
        if answer.is_cut_off:
            text += f"\n\n{texts.CUT_OFF.plain}"
        await reply(evt, await asyncio.to_thread(rendered, text))
        if is_code:
            await self._send_files(evt, code_files(answer.text))

    async def _send_files(self, evt: MessageEvent, files: Sequence[CodeFile]) -> None:
        """Send code as files too; where that fails, the answer has it all the same."""
        try:
            for file in files:
                await send_file(evt, file)
        except RoomGoneError:
            raise
        # Whatever the homeserver has against a file, the turn goes on.
        except Exception as error:  # noqa: BLE001
            self.counters.failures["upload"] += 1
            self.failures.report(
                f"A file with code was not sent: {type(error).__name__}", error=error
            )
            await reply(evt, texts.FILE_NOT_SENT)

    def _log_no_answer(self, error: ModelError) -> None:
        self.counters.failures[cause(error)] += 1
        if error.is_set_up_wrong:
            self.failures.report(f"No answer: {error}")
        else:
            self.log.log(error.log_level, "No answer: %s", error)
