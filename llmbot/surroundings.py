"""Where a message was said, by whom, and in reply to what: for the model to know."""

from __future__ import annotations

import asyncio
import datetime
import time
from collections.abc import Awaitable, Callable

from maubot import MessageEvent
from maubot.matrix import MaubotMatrixClient
from mautrix.types import EventType, RoomID, UserID

from .prompts import Quoted, Surroundings
from .room import Rooms

_KEPT_SECONDS = 600.0
_MAX_NAMES = 5000


class SurroundingsReader:
    """Finds out what surrounds a message."""

    def __init__(self, client: MaubotMatrixClient, rooms: Rooms) -> None:
        self._client = client
        self._rooms = rooms
        self._names = _Names(client)

    async def read(self, event: MessageEvent) -> Surroundings:
        """Return what a model should know of the place of this message."""
        room, person, own_name, quoted = await asyncio.gather(
            self._names.room(event.room_id),
            self._names.member(event.room_id, event.sender),
            self._rooms.own_name(event.room_id),
            self._quoted(event),
        )
        today = datetime.datetime.now(datetime.timezone.utc).date()
        return Surroundings(own_name or self._client.mxid, room, person, today, quoted)

    async def _quoted(self, event: MessageEvent) -> Quoted | None:
        """Return the message that this one replies to; None too where it cannot be read."""
        replied_to = event.content.get_reply_to()
        if not replied_to or event.content.relates_to.is_falling_back:
            return None
        try:
            quoted = await self._client.get_event(event.room_id, replied_to)
            text = quoted.content.body
            sender = await self._names.member(event.room_id, quoted.sender)
        # Redacted, no message, or hidden from the bot: the person's own words still stand.
        except Exception:  # noqa: BLE001
            return None
        return Quoted(sender, text) if isinstance(text, str) and text else None


class _Names:
    """Names of rooms and of their members; where there is none, or none to be had, the id.

    They change seldom and nothing depends on them, so they are looked up seldom.
    """

    def __init__(self, client: MaubotMatrixClient) -> None:
        self._client = client
        self._names: dict[tuple[str, str], tuple[str, float]] = {}

    async def room(self, room_id: str) -> str:
        """Return a room's name."""

        async def look_up() -> str | None:
            content = await self._client.get_state_event(RoomID(room_id), EventType.ROOM_NAME)
            return str(content.name or "")

        return await self._name((room_id, ""), look_up) or room_id

    async def member(self, room_id: str, user_id: str) -> str:
        """Return the display name of a room's member."""

        async def look_up() -> str | None:
            content = await self._client.get_state_event(
                RoomID(room_id), EventType.ROOM_MEMBER, UserID(user_id)
            )
            return str(content.displayname or "")

        return await self._name((room_id, user_id), look_up) or user_id

    async def _name(
        self, key: tuple[str, str], look_up: Callable[[], Awaitable[str | None]]
    ) -> str | None:
        known = self._names.get(key)
        if known and time.monotonic() - known[1] < _KEPT_SECONDS:
            return known[0]
        try:
            name = await look_up()
        # A room without a name answers with an error; and no name is worth a failed turn.
        except Exception:  # noqa: BLE001
            name = None
        if len(self._names) >= _MAX_NAMES:
            self._names.clear()
        self._names[key] = (name or "", time.monotonic())
        return name
