"""From Matrix events, as mautrix makes them of a homeserver's JSON, to messages."""

from __future__ import annotations

import types
from typing import Any

import pytest
from maubot.matrix import MaubotMessageEvent
from mautrix.types import BaseMessageEventContentFuncs, Event

from llmbot.addressing import Message
from llmbot.incoming import CLOCK_SKEW_MILLISECONDS, MessageReader

BOT = "@bot:example.org"
ADA = "@ada:example.org"


class Rooms:
    """Knows that "$own" is the bot's, and an answer to Ada; counts what it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.noted: dict[str, frozenset[str]] = {}

    def note_own_message(self, event_id: str, mentioned: frozenset[str]) -> None:
        self.noted[event_id] = mentioned

    async def is_direct(self, _room_id: str) -> bool:
        self.asked += 1
        return True

    async def is_own_message(self, _room_id: str, event_id: str) -> bool:
        self.asked += 1
        return event_id == "$own"

    async def is_answer_to(self, _room_id: str, event_id: str, user_id: str) -> bool:
        self.asked += 1
        return event_id == "$own" and user_id == ADA


ROOMS = Rooms()
NOW = 1_700_000_000_000


async def read(
    content: dict[str, Any], sender: str = ADA, rooms: Rooms = ROOMS, **event_values: object
) -> Message | None:
    client: Any = types.SimpleNamespace(mxid=BOT, disable_replies=False)
    event = Event.deserialize(
        {
            "type": "m.room.message",
            "room_id": "!room:example.org",
            "event_id": "$event",
            "sender": sender,
            "origin_server_ts": 17,
            "unsigned": {"age": 5},
            "content": {"msgtype": "m.text", "body": "hello", **content},
            **event_values,
        }
    )
    # As mautrix does before it hands out a message.
    if isinstance(event.content, BaseMessageEventContentFuncs):
        event.content.trim_reply_fallback()
    reader = MessageReader(client, rooms, lambda: NOW)  # type: ignore[arg-type]
    return await reader.read(MaubotMessageEvent(event, client))


def relation(in_reply_to: str | None = None, **values: object) -> dict[str, Any]:
    reply = {"m.in_reply_to": {"event_id": in_reply_to}} if in_reply_to else {}
    return {"m.relates_to": {**values, **reply}}


THREAD = {"rel_type": "m.thread", "event_id": "$root"}


async def test_a_plain_message() -> None:
    assert await read({}) == Message(ADA, "hello", sent=NOW - 5, is_direct=True)


@pytest.mark.parametrize(
    ("unsigned", "sent"),
    [
        ({"age": 0}, NOW),
        ({"age": 60_000}, NOW - 60_000),
        ({"age": -1}, 17 + CLOCK_SKEW_MILLISECONDS),
        ({"age": None}, 17 + CLOCK_SKEW_MILLISECONDS),
        ({"age": "5"}, 17 + CLOCK_SKEW_MILLISECONDS),
        ({}, 17 + CLOCK_SKEW_MILLISECONDS),
        (None, 17 + CLOCK_SKEW_MILLISECONDS),
    ],
)
async def test_the_age_tells_when_a_message_was_sent_whatever_the_clocks_say(
    unsigned: object, sent: int
) -> None:
    message = await read({}, unsigned=unsigned)
    assert message is not None
    assert message.sent == sent


async def test_what_is_formatted_and_mentions() -> None:
    message = await read(
        {
            "format": "org.matrix.custom.html",
            "formatted_body": "<b>hello</b>",
            "m.mentions": {"user_ids": [BOT, ADA]},
        }
    )
    assert message is not None
    assert message.formatted_body == "<b>hello</b>"
    assert message.mentions == {BOT, ADA}


async def test_an_edit() -> None:
    new = {"msgtype": "m.text", "body": "new"}
    message = await read({"m.new_content": new, **relation(rel_type="m.replace", event_id="$old")})
    assert message is not None
    assert message.is_edit


@pytest.mark.parametrize(
    ("content", "replies_to_own", "continues_own_answer"),
    [
        (relation(in_reply_to="$own"), True, False),
        (relation(in_reply_to="$other"), False, False),
        (relation(**THREAD, in_reply_to="$own"), True, False),
        (relation(**THREAD, in_reply_to="$own", is_falling_back=False), True, False),
        (relation(**THREAD, in_reply_to="$own", is_falling_back=True), False, True),
        (relation(**THREAD, in_reply_to="$other", is_falling_back=True), False, False),
        (relation(**THREAD), False, False),
        (relation(rel_type="m.thread", event_id="$own"), False, True),
        (relation(rel_type="m.reference", event_id="$own"), False, False),
        (relation(in_reply_to="$own", is_falling_back=True), True, False),
    ],
    ids=[
        "reply",
        "reply to somebody else",
        "reply in a thread",
        "reply in a thread, said so",
        "below an answer in a thread",
        "below somebody else in a thread",
        "in a thread without fallback",
        "in a thread that begins with an answer",
        "reference",
        "fallback without a thread",
    ],
)
async def test_replies_and_threads(
    content: dict[str, Any], replies_to_own: bool, continues_own_answer: bool
) -> None:
    message = await read(content)
    assert message is not None
    assert message.replies_to_own is replies_to_own
    assert message.continues_own_answer is continues_own_answer


async def test_a_thread_goes_on_with_the_one_who_was_answered_only() -> None:
    content = relation(**THREAD, in_reply_to="$own", is_falling_back=True)
    message = await read(content, sender="@bob:example.org")
    assert message is not None
    assert not message.continues_own_answer


@pytest.mark.parametrize(
    ("body", "read_as"),
    [
        ("> <@ada:example.org> said\n> more\n\nmine", "mine"),
        ("> <@ada:example.org> said\n\n> quoted\nmine", "> quoted\nmine"),
        ("> quoted\n\nmine", "> quoted\n\nmine"),
    ],
)
async def test_a_reply_loses_its_fallback_and_no_quote(body: str, read_as: str) -> None:
    message = await read({"body": body, **relation(in_reply_to="$other")})
    assert message is not None
    assert message.body == read_as


async def test_a_quote_that_looks_like_a_fallback_stays_where_there_is_no_reply() -> None:
    body = "> <@ada:example.org> said\n\nmine"
    message = await read({"body": body})
    assert message is not None
    assert message.body == body


@pytest.mark.parametrize(
    ("content", "sender"),
    [
        ({}, BOT),
        ({"msgtype": "m.notice"}, ADA),
        ({"msgtype": "m.emote"}, ADA),
        ({"msgtype": "m.image", "url": "mxc://e.org/x"}, ADA),
        ({"msgtype": "m.location", "geo_uri": "geo:1,1"}, ADA),
        ({"msgtype": "org.example.odd"}, ADA),
        ({"msgtype": None}, ADA),
        ({"body": 5}, ADA),
    ],
)
async def test_what_is_never_for_the_bot_costs_no_request(
    content: dict[str, Any], sender: str
) -> None:
    rooms = Rooms()
    assert await read(content, sender, rooms) is None
    assert rooms.asked == 0


async def test_own_messages_are_noted() -> None:
    rooms = Rooms()
    await read({"msgtype": "m.notice", "m.mentions": {"user_ids": [ADA]}}, BOT, rooms)
    assert rooms.noted == {"$event": frozenset({ADA})}


@pytest.mark.parametrize(
    "content",
    [
        {"formatted_body": 5},
        {"m.mentions": "x"},
        {"m.relates_to": {"m.in_reply_to": {"event_id": 5}}},
        {"m.relates_to": {"rel_type": "m.thread", "event_id": {"a": 1}}},
        {"m.relates_to": {"rel_type": 5, "event_id": "$own"}},
        {"m.relates_to": {}},
        {"m.relates_to": None},
    ],
)
async def test_odd_content_does_no_harm(content: dict[str, Any]) -> None:
    assert await read(content) == Message(ADA, "hello", sent=NOW - 5, is_direct=True)
