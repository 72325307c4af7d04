"""From a text to Matrix events: replies and threads, parts that fit, typing, read receipts."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import functools
import json
from collections.abc import AsyncIterator, Sequence

from maubot import MessageEvent
from maubot.matrix import MaubotMatrixClient
from mautrix.errors import MForbidden, MNotFound
from mautrix.types import (
    EventID,
    EventType,
    Format,
    MessageEventContent,
    MessageType,
    RoomID,
    TextMessageEventContent,
)

from .markdown import html, split
from .patience import patiently
from .tables import readable_tables
from .texts import Text

MAX_CONTENT_BYTES = 44_000
"""The largest `body` and `formatted_body` together.

An event may have 64 KiB. Encrypted, it holds these as base64 of JSON in ASCII, four bytes for
three, and the envelope and the relations come on top.
"""

_TYPING_SECONDS = 30
_RECEIPT_SECONDS = 5


class RoomGoneError(Exception):
    """The bot may not write in the room: it was removed or silenced, or the room is gone."""


async def reply(event: MessageEvent, text: Text | Sequence[Text]) -> None:
    """Answer an event with a notice, in its thread if it has one; with several for several texts.

    Each is a reply to the event and notifies the asker and nobody else, whoever the text names.

    Raises:
        RoomGoneError: the bot may not write there (any more).
    """
    for part in _fitting([text] if isinstance(text, Text) else text):
        await send(event, notice(part))


def notice(text: Text) -> TextMessageEventContent:
    """Return a text as a message, which other bots do not answer."""
    content = TextMessageEventContent(msgtype=MessageType.NOTICE, body=text.plain)
    if text.html is not None:
        content.format = Format.HTML
        content.formatted_body = text.html
    return content


async def send(event: MessageEvent, content: MessageEventContent) -> EventID:
    """Send any message as an answer to an event and return its id.

    It waits while the homeserver limits the rate or is away, for some minutes at most, and
    never sends twice.

    Raises:
        RoomGoneError: the bot may not write there (any more).
    """
    if event.content.get_thread_parent():
        # A reply to the event for all clients, no fallback for those without threads.
        content.set_thread_parent(event, disable_reply_fallback=True)
    content.set_reply(event)
    content["m.mentions"] = {"user_ids": [event.sender]}
    return await _deliver(event, content)


class Thread:
    """Messages that follow each other below an event, in its thread or in one that it begins.

    Clients without threads show each as a reply to the one before.
    """

    def __init__(self, event: MessageEvent) -> None:
        self.event = event
        self._last: EventID = event.event_id

    async def send(self, content: MessageEventContent, *, notifies: bool = False) -> EventID:
        """Send the next message and return its id; one that `notifies` mentions the asker.

        Raises:
            RoomGoneError: the bot may not write there (any more).
        """
        content.set_thread_parent(self.event, last_event_in_thread=self._last)
        content["m.mentions"] = {"user_ids": [self.event.sender] if notifies else []}
        self._last = await _deliver(self.event, content)
        return self._last

    async def edit(self, event_id: EventID, content: MessageEventContent) -> None:
        """Replace one of the messages.

        Raises:
            RoomGoneError: the bot may not write there (any more).
        """
        content.set_edit(event_id)
        content["m.mentions"] = {}
        await _deliver(self.event, content)


async def _deliver(event: MessageEvent, content: MessageEventContent) -> EventID:
    client = event.client
    transaction_id = client.api.get_txn_id()
    try:
        return await patiently(
            lambda: client.send_message_event(
                event.room_id, EventType.ROOM_MESSAGE, content, txn_id=transaction_id
            )
        )
    except (MForbidden, MNotFound) as error:
        raise RoomGoneError(str(error)) from error


def rendered(answer: str) -> list[Text]:
    """Return a model's Markdown as the texts of a reply: one, or as many as its length needs.

    Long answers take long (200 KB some seconds): call this in a thread.
    """
    # Half of a character pair, as a model cut off in the middle sends, fits into no event.
    clean = answer.encode(errors="replace").decode().replace("\0", "\ufffd")
    as_text = functools.cache(_as_text)
    parts = split(readable_tables(clean), lambda part: _size(as_text(part)), MAX_CONTENT_BYTES)
    return [as_text(part) for part in parts]


def _as_text(markdown: str) -> Text:
    return Text(markdown, html(markdown))


def _size(text: Text) -> int:
    return len(json.dumps([text.plain, text.html]))


def _fitting(texts: Sequence[Text]) -> list[Text]:
    """Return texts that fit into events; what does not is cut up, and shown plain."""
    parts: list[Text] = []
    for text in texts:
        if _size(text) <= MAX_CONTENT_BYTES:
            parts.append(text)
        else:
            plain = split(text.plain, lambda part: _size(Text(part)), MAX_CONTENT_BYTES)
            parts += map(Text, plain)
    return parts


# --- signs of life -----------------------------------------------------------------------------

# How many turns are at work in a room, by bot and room: the first of them to end must not make
# the bot look idle.
_at_work: collections.Counter[tuple[str, str]] = collections.Counter()


@contextlib.asynccontextmanager
async def working(event: MessageEvent) -> AsyncIterator[None]:
    """Mark a message as read, and show the bot as typing until the block ends."""
    receipt = asyncio.create_task(_mark_read(event))
    try:
        async with typing(event.client, event.room_id):
            yield
    finally:
        await asyncio.wait({receipt}, timeout=_RECEIPT_SECONDS)
        receipt.cancel()


async def _mark_read(event: MessageEvent) -> None:
    with contextlib.suppress(Exception):
        await event.mark_read()


@contextlib.asynccontextmanager
async def typing(client: MaubotMatrixClient, room_id: RoomID) -> AsyncIterator[None]:
    """Show the bot as typing in a room until the block ends, however it ends."""
    place = (client.mxid, room_id)
    _at_work[place] += 1
    task = asyncio.create_task(_keep_typing(client, room_id))
    try:
        yield
    finally:
        _at_work[place] -= 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if not _at_work[place]:
            del _at_work[place]
            with contextlib.suppress(Exception):
                await client.set_typing(room_id, timeout=0)


async def _keep_typing(client: MaubotMatrixClient, room_id: RoomID) -> None:
    """Renew the typing notice before it runs out; a failure is only a missing notice."""
    while True:
        with contextlib.suppress(Exception):
            await client.set_typing(room_id, timeout=_TYPING_SECONDS * 1000)
        await asyncio.sleep(_TYPING_SECONDS * 0.8)
