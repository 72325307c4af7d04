"""The conversations so far: per room, thread and person, in memory only."""

from __future__ import annotations

import collections
import dataclasses
import time
from collections.abc import Callable
from typing import Any, NamedTuple

MAX_CONVERSATIONS = 2000
"""Conversations kept at once; the longest silent one makes room."""


class ConversationKey(NamedTuple):
    """Who talks with the bot where."""

    room_id: str
    thread_id: str | None
    user_id: str


@dataclasses.dataclass(frozen=True)
class Exchanged:
    """One message of the user with the answer that it got.

    `words` are the user's own ones, without what they quoted.
    """

    prompt: str
    words: str
    answer: str


@dataclasses.dataclass
class _Conversation:
    exchanges: list[Exchanged]
    last_active: float


class Conversations:
    """Remembers what was said until a conversation falls silent."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Tell the time by `clock`, in seconds."""
        self._clock = clock
        self._conversations: collections.OrderedDict[ConversationKey, _Conversation] = (
            collections.OrderedDict()
        )

    def so_far(
        self, key: ConversationKey, max_messages: int, timeout_minutes: int
    ) -> list[Exchanged]:
        """Return the last exchanges, at most `max_messages` messages of them."""
        conversation = self._conversations.get(key)
        if conversation is None:
            return []
        if self._clock() - conversation.last_active > timeout_minutes * 60:
            del self._conversations[key]
            return []
        count = max_messages // 2
        return conversation.exchanges[-count:] if count else []

    def add(self, key: ConversationKey, exchanged: Exchanged, max_messages: int) -> None:
        """Append an exchange and forget what `max_messages` leaves no room for."""
        earlier = self._conversations.pop(key, None)
        exchanges = [*(earlier.exchanges if earlier else []), exchanged]
        count = max_messages // 2
        if count:
            self._conversations[key] = _Conversation(exchanges[-count:], self._clock())
        while len(self._conversations) > MAX_CONVERSATIONS:
            self._conversations.popitem(last=False)

    def forget(self, key: ConversationKey) -> bool:
        """End a conversation; say whether there was one."""
        return self._conversations.pop(key, None) is not None


def as_messages(exchanges: list[Exchanged]) -> list[dict[str, Any]]:
    """Return exchanges as the messages that a model is sent."""
    messages = []
    for exchanged in exchanges:
        messages.append({"role": "user", "content": exchanged.prompt})
        messages.append({"role": "assistant", "content": exchanged.answer})
    return messages
