"""From a Matrix event to what addressing has to know of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from maubot import MessageEvent
from maubot.matrix import MaubotMatrixClient
from mautrix.types import MessageType

from .addressing import Message
from .room import Rooms, mentioned_users

CLOCK_SKEW_MILLISECONDS = 60_000
"""How far a homeserver's clock may be behind the bot's, where it does not tell an event's age."""


class MessageReader:
    """Reads the messages that come by sync."""

    def __init__(
        self,
        client: MaubotMatrixClient,
        rooms: Rooms,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        """Tell the time by `clock`, in milliseconds."""
        self._client = client
        self._rooms = rooms
        self._clock = clock

    async def read(self, event: MessageEvent) -> Message | None:
        """Return a message, or None if it is the bot's own or no text, and so never for the bot.

        For those nothing is looked up. Own messages are remembered: people reply to them.
        """
        content = event.content
        if event.sender == self._client.mxid:
            self._rooms.note_own_message(event.event_id, mentioned_users(content))
            return None
        if getattr(content, "msgtype", None) != MessageType.TEXT:
            return None
        body, html = content.body, content.formatted_body
        # mautrix checks no types.
        if not isinstance(body, str):
            return None
        is_direct, (replies_to_own, continues_own_answer) = await asyncio.gather(
            self._rooms.is_direct(event.room_id), self._relations(event)
        )
        return Message(
            sender=event.sender,
            body=body,
            is_edit=content.get_edit() is not None,
            formatted_body=html if isinstance(html, str) else None,
            sent=_sent(event, self._clock()),
            mentions=mentioned_users(content),
            replies_to_own=replies_to_own,
            continues_own_answer=continues_own_answer,
            is_direct=is_direct,
        )

    async def _relations(self, event: MessageEvent) -> tuple[bool, bool]:
        """Return whether a message replies to an own one, and whether it continues an answer."""
        content = event.content
        replied_to, thread = content.get_reply_to(), content.get_thread_parent()
        if isinstance(replied_to, str) and not (thread and content.relates_to.is_falling_back):
            return await self._rooms.is_own_message(event.room_id, replied_to), False
        # Clients without this fallback name only the thread's root.
        last = replied_to or thread
        if not isinstance(last, str):
            return False, False
        return False, await self._rooms.is_answer_to(event.room_id, last, event.sender)


def _sent(event: MessageEvent, now: int) -> int:
    """Return when a message was sent, by the bot's clock."""
    age = event.unsigned.age if event.unsigned else None
    # The homeserver's clock told both ends of an age, so it does not matter how it is set.
    if isinstance(age, int) and age >= 0:
        return now - age
    return int(event.timestamp) + CLOCK_SKEW_MILLISECONDS
