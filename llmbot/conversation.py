"""The conversations so far: per room, thread and person, in memory only."""

from __future__ import annotations

import collections
import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

MAX_CONVERSATIONS = 2000
"""Conversations kept at once; the longest silent one makes room."""


class ConversationKey(NamedTuple):
    """Who talks with the bot where.

    A `scene` is played by all who are there: its conversation is nobody's own, and a new scene is
    a new conversation.
    """

    room_id: str
    thread_id: str | None
    user_id: str
    scene: str = ""


@dataclasses.dataclass(frozen=True)
class Exchanged:
    """One message of the user with the answer that it got.

    `words` are the user's own ones, without what they quoted; `event_id` is their message's.
    `user_id` tells whose message it is, which matters where several share a conversation.
    """

    event_id: str
    prompt: str
    words: str
    answer: str
    user_id: str = ""

    @property
    def size(self) -> int:
        """How many characters a model reads of it."""
        return len(self.prompt) + len(self.answer)


@dataclasses.dataclass(frozen=True)
class ContextLimits:
    """How much of a conversation is kept, and for how many minutes of silence."""

    max_messages: int
    max_characters: int
    timeout_minutes: int


@dataclasses.dataclass
class _Conversation:
    exchanges: list[Exchanged]
    last_active: float


class Conversations:
    """Remembers what was said until a conversation falls silent."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Tell the time by `clock`, in seconds."""
        self._clock = clock
        # The one that was silent longest comes first.
        self._conversations: collections.OrderedDict[ConversationKey, _Conversation] = (
            collections.OrderedDict()
        )

    def so_far(self, key: ConversationKey, limits: ContextLimits) -> list[Exchanged]:
        """Return the last exchanges within the limits, oldest first."""
        conversation = self._conversations.get(key)
        if conversation is None:
            return []
        if self._clock() - conversation.last_active > limits.timeout_minutes * 60:
            del self._conversations[key]
            return []
        return _last_within(conversation.exchanges, limits)

    def add(self, key: ConversationKey, exchanged: Exchanged, limits: ContextLimits) -> None:
        """Append an exchange and forget what the limits leave no room for."""
        exchanges = _last_within([*self.so_far(key, limits), exchanged], limits)
        self._conversations.pop(key, None)
        if exchanges:
            self._conversations[key] = _Conversation(exchanges, self._clock())
        while len(self._conversations) > MAX_CONVERSATIONS:
            self._conversations.popitem(last=False)

    def forget(self, key: ConversationKey) -> bool:
        """End a conversation; say whether there was one."""
        return self._conversations.pop(key, None) is not None

    def leave(self, key: ConversationKey, user_id: str) -> bool:
        """Take what one user said out of a shared conversation; say whether there was any."""
        conversation = self._conversations.get(key)
        if conversation is None:
            return False
        before = len(conversation.exchanges)
        conversation.exchanges = [
            exchanged for exchanged in conversation.exchanges if exchanged.user_id != user_id
        ]
        return len(conversation.exchanges) < before

    def redact(self, room_id: str, event_id: str) -> None:
        """Forget the exchange that began with a message which was taken back."""
        for key, conversation in self._conversations.items():
            if key.room_id == room_id:
                conversation.exchanges = [
                    exchanged
                    for exchanged in conversation.exchanges
                    if exchanged.event_id != event_id
                ]


def _last_within(exchanges: Sequence[Exchanged], limits: ContextLimits) -> list[Exchanged]:
    kept: list[Exchanged] = []
    characters = 0
    for exchanged in reversed(exchanges):
        characters += exchanged.size
        if characters > limits.max_characters or len(kept) == limits.max_messages // 2:
            break
        kept.insert(0, exchanged)
    return kept


def as_messages(exchanges: Sequence[Exchanged]) -> list[dict[str, Any]]:
    """Return exchanges as the messages that a model is sent."""
    messages = []
    for exchanged in exchanges:
        messages.append({"role": "user", "content": exchanged.prompt})
        messages.append({"role": "assistant", "content": exchanged.answer})
    return messages
