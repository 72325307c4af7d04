"""From a text to Matrix events: Markdown, replies and threads, typing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from maubot import MessageEvent
from maubot.matrix import MaubotMatrixClient
from mautrix.types import (
    EventID,
    Format,
    MessageType,
    RoomID,
    TextMessageEventContent,
)
from mautrix.util import markdown

from .texts import Text

_TYPING_SECONDS = 30


async def reply(event: MessageEvent, text: Text) -> EventID:
    """Answer an event with a notice, in its thread if it has one."""
    content = TextMessageEventContent(msgtype=MessageType.NOTICE, body=text.plain)
    if text.html is not None:
        content.format = Format.HTML
        content.formatted_body = text.html
    if event.content.get_thread_parent():
        content.set_thread_parent(event)
    content.set_reply(event)
    # Only the asker is notified, whoever the text names.
    content["m.mentions"] = {"user_ids": [event.sender]}
    return await event.client.send_message(event.room_id, content)


def rendered(answer: str) -> Text:
    """Return a model's Markdown as a reply's text; HTML in it is shown, not applied."""
    return Text(answer, markdown.render(answer))


@contextlib.asynccontextmanager
async def typing(client: MaubotMatrixClient, room_id: RoomID) -> AsyncIterator[None]:
    """Show the bot as typing in a room until the block ends, however it ends."""
    task = asyncio.create_task(_keep_typing(client, room_id))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await task
        with contextlib.suppress(Exception):
            await client.set_typing(room_id, timeout=0)


async def _keep_typing(client: MaubotMatrixClient, room_id: RoomID) -> None:
    """Renew the typing notice before it runs out; a failure is only a missing notice."""
    while True:
        with contextlib.suppress(Exception):
            await client.set_typing(room_id, timeout=_TYPING_SECONDS * 1000)
        await asyncio.sleep(_TYPING_SECONDS * 0.8)
