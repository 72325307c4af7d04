"""One turn: recall, conversation and prompt go to the model, tools run, an answer comes back."""

from __future__ import annotations

import dataclasses
import logging
from typing import NamedTuple

from .config import ChosenModel, Settings
from .conversation import ConversationKey, Conversations, Exchanged, as_messages
from .counters import Counters
from .memory.facts import out_of_character, own_words
from .memory.pipeline import MemoryPipeline
from .memory.rules import Mention
from .memory.store import MemoryStore
from .models import EmptyAnswerError, ModelClient, ToolCall, ToolLoopError
from .prompts import (
    NOT_SAVED_FAILED,
    SAVE_MEMORY,
    SAVE_MEMORY_TOOL,
    Surroundings,
    assistant_messages,
    unknown_tool,
)
from .reporting import traceback_of


@dataclasses.dataclass(frozen=True)
class Turn:
    """What somebody asks, where, and in which message; `is_code` tells `!code` from `!ask`.

    `scene` is the scene that the turn is played in; empty outside of one.
    """

    is_code: bool
    mention: Mention
    thread_id: str | None
    prompt: str
    scene: str = ""

    @property
    def conversation(self) -> ConversationKey:
        """The conversation that the turn belongs to."""
        user_id = "" if self.scene else self.mention.user_id
        return ConversationKey(self.mention.room_id, self.thread_id, user_id, self.scene)

    @property
    def words(self) -> str:
        """The asker's own words, without what they quote."""
        return own_words(self.prompt)

    @property
    def own_statements(self) -> str:
        """What of these words the asker may have said of themselves, and not as a character."""
        return out_of_character(self.words) if self.scene else self.words


@dataclasses.dataclass(frozen=True)
class Answer:
    """A model's answer; it may be cut off at the longest that the model can write."""

    text: str
    is_cut_off: bool


class _Role(NamedTuple):
    """Which model answers, and what it is told."""

    model: ChosenModel
    system_prompt: str


class Assistant:
    """Answers turns."""

    def __init__(
        self,
        models: ModelClient,
        store: MemoryStore,
        pipeline: MemoryPipeline,
        conversations: Conversations,
        log: logging.Logger,
        counters: Counters | None = None,
    ) -> None:
        self._models = models
        self._store = store
        self._pipeline = pipeline
        self._conversations = conversations
        self._log = log
        self._counters = counters or Counters()

    async def answer(self, turn: Turn, surroundings: Surroundings, settings: Settings) -> Answer:
        """Return the model's answer, never empty.

        Raises:
            ModelError: there is no answer; the error says why.
        """
        exchanges = self._conversations.so_far(turn.conversation, settings.context)
        # M15: the asker's memories and nobody else's.
        memories = await self._store.memories(turn.mention.user_id)
        role = _role(settings, turn)
        messages = assistant_messages(
            role.system_prompt,
            memories,
            surroundings,
            as_messages(exchanges),
            turn.prompt,
            turn.scene,
        )
        # M13: of a shared conversation, only what the asker said themselves is evidence.
        own_messages = [
            turn.own_statements,
            *(
                exchanged.words
                for exchanged in exchanges
                if exchanged.user_id == turn.mention.user_id
            ),
        ]
        for _ in range(settings.max_tool_steps + 1):
            completion = await self._models.complete(
                role.model.name,
                messages,
                settings.client,
                setting=role.model.setting,
                tools=[SAVE_MEMORY_TOOL],
            )
            if not completion.tool_calls:
                break
            messages.append(completion.as_message())
            for call in completion.tool_calls:
                result = await self._call_tool(call, turn, own_messages, settings)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        else:
            raise ToolLoopError(settings.max_tool_steps)
        if not completion.text:
            raise EmptyAnswerError(role.model.name.partition("/")[0])
        return Answer(completion.text, is_cut_off=completion.finish_reason == "length")

    def remember_exchange(
        self, turn: Turn, answer: Answer, surroundings: Surroundings, settings: Settings
    ) -> None:
        """Make an answered turn part of the conversation; in a shared one, by the asker's name."""
        exchanged = Exchanged(
            turn.mention.event_id,
            f"{surroundings.person}: {turn.prompt}" if turn.scene else turn.prompt,
            turn.own_statements,
            answer.text,
            turn.mention.user_id,
        )
        self._conversations.add(turn.conversation, exchanged, settings.context)

    async def _call_tool(
        self, call: ToolCall, turn: Turn, own_messages: list[str], settings: Settings
    ) -> str:
        if call.name != SAVE_MEMORY:
            return unknown_tool(call.name)
        try:
            return await self._pipeline.save(turn.mention, call.arguments, own_messages, settings)
        # The answer must not fail with the memory; the model is told, and tells the person.
        except Exception as error:  # noqa: BLE001
            self._counters.failures["memory"] += 1
            self._log.error("save_memory failed%s", traceback_of(error))
            return NOT_SAVED_FAILED


def _role(settings: Settings, turn: Turn) -> _Role:
    if turn.is_code:
        return _Role(settings.code_model, settings.code_system_prompt)
    prompt = settings.assistant_system_prompt
    if turn.scene:
        return _Role(settings.verse_model, f"{prompt.rstrip()}\n\n{settings.verse_system_prompt}")
    return _Role(ChosenModel(settings.assistant_model, "assistantModel"), prompt)
