"""Answers as Matrix events, to a homeserver that is a list."""

from __future__ import annotations

import asyncio
import json
import types
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mautrix.errors import MatrixConnectionError, MForbidden, MLimitExceeded, MNotFound, MTooLarge
from mautrix.types import MessageType, RelatesTo, TextMessageEventContent

from llmbot import patience
from llmbot.replies import MAX_CONTENT_BYTES, RoomGoneError, rendered, reply, typing, working
from llmbot.texts import Text

from ..fuzzing import fuzzed

BOT = "@bot:example.org"
ADA = "@ada:example.org"
ROOM = "!room:example.org"
EVENT_BYTES = 65_536


class Homeserver:
    """Takes messages, typing notices and receipts; stands in for maubot's client."""

    def __init__(self) -> None:
        self.mxid = BOT
        self.api = self
        self.failures: list[Exception] = []
        self.lost_answers = 0
        self.sent: dict[str, dict[str, Any]] = {}
        self.attempts: list[str] = []
        self.typing: list[int] = []
        self.read: list[str] = []
        self.is_down = False

    def get_txn_id(self) -> str:
        return f"transaction {len(self.attempts)}"

    async def send_message_event(
        self, room_id: str, event_type: object, content: TextMessageEventContent, txn_id: str
    ) -> str:
        assert room_id == ROOM
        assert str(event_type) == "m.room.message"
        self.attempts.append(txn_id)
        if self.failures:
            raise self.failures.pop(0)
        self.sent[txn_id] = content.serialize()
        if self.lost_answers:
            self.lost_answers -= 1
            raise MatrixConnectionError("connection lost")
        return f"$sent by {txn_id}"

    async def set_typing(self, room_id: str, timeout: int = 0) -> None:
        assert room_id == ROOM
        self.typing.append(timeout)
        if self.is_down:
            raise MatrixConnectionError("down")

    @property
    def contents(self) -> list[dict[str, Any]]:
        return list(self.sent.values())


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "WAITS", (0,) * len(patience.WAITS))


@pytest.fixture
def homeserver() -> Homeserver:
    return Homeserver()


def event(homeserver: Homeserver, thread: str | None = None) -> Any:  # noqa: ANN401
    content = TextMessageEventContent(msgtype=MessageType.TEXT, body="!ask")
    if thread:
        content.set_thread_parent(thread)

    async def mark_read() -> None:
        homeserver.read.append("$event")
        if homeserver.is_down:
            raise MatrixConnectionError("down")

    return types.SimpleNamespace(
        client=homeserver,
        room_id=ROOM,
        event_id="$event",
        sender=ADA,
        content=content,
        mark_read=mark_read,
    )


# --- one event ---------------------------------------------------------------------------------


async def test_a_reply_is_a_notice_to_the_event_that_mentions_just_the_asker(
    homeserver: Homeserver,
) -> None:
    await reply(event(homeserver), Text("for @bob:example.org", "<b>for</b> @bob:example.org"))
    assert homeserver.contents == [
        {
            "msgtype": "m.notice",
            "body": "for @bob:example.org",
            "format": "org.matrix.custom.html",
            "formatted_body": "<b>for</b> @bob:example.org",
            "m.mentions": {"user_ids": [ADA]},
            "m.relates_to": {"m.in_reply_to": {"event_id": "$event"}},
        }
    ]


async def test_a_plain_text_has_no_html(homeserver: Homeserver) -> None:
    await reply(event(homeserver), Text("plain <b>"))
    assert "formatted_body" not in homeserver.contents[0]
    assert "format" not in homeserver.contents[0]


async def test_a_reply_in_a_thread_stays_there(
    homeserver: Homeserver, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = event(homeserver)
    # mautrix looks for the thread in events only.
    asked.content.relates_to = RelatesTo()
    asked.content.set_thread_parent("$root")
    monkeypatch.setattr("mautrix.types.event.message.MessageEvent", types.SimpleNamespace)
    await reply(asked, Text("hello"))
    assert homeserver.contents[0]["m.relates_to"] == {
        "rel_type": "m.thread",
        "event_id": "$root",
        "m.in_reply_to": {"event_id": "$event"},
    }


# --- sending -----------------------------------------------------------------------------------


async def test_a_limited_rate_is_waited_for(homeserver: Homeserver) -> None:
    homeserver.failures = [MLimitExceeded(429, "slow down")] * 3
    await reply(event(homeserver), [Text("one"), Text("two")])
    assert [content["body"] for content in homeserver.contents] == ["one", "two"]
    assert len(homeserver.attempts) == 5


async def test_an_answer_that_arrived_unnoticed_is_not_sent_twice(homeserver: Homeserver) -> None:
    homeserver.lost_answers = 2
    await reply(event(homeserver), Text("one"))
    assert len(homeserver.attempts) == 3
    assert len(set(homeserver.attempts)) == 1


@pytest.mark.parametrize("failure", [MForbidden(403, "kicked"), MNotFound(404, "no room")])
async def test_a_room_that_is_gone_is_told_apart(
    failure: Exception, homeserver: Homeserver
) -> None:
    homeserver.failures = [failure]
    with pytest.raises(RoomGoneError):
        await reply(event(homeserver), [Text("one"), Text("two")])
    assert len(homeserver.attempts) == 1


async def test_anything_else_is_an_error(homeserver: Homeserver) -> None:
    homeserver.failures = [MTooLarge(413, "large")]
    with pytest.raises(MTooLarge):
        await reply(event(homeserver), Text("one"))


# --- long answers ------------------------------------------------------------------------------


def encrypted_size(content: dict[str, Any]) -> int:
    """Return about what an event takes in an encrypted room."""
    plaintext = json.dumps({"room_id": ROOM, "type": "m.room.message", "content": content})
    return len(plaintext) * 4 // 3 + 3000


@pytest.mark.parametrize(
    "answer",
    [
        "word " * 40_000,
        "\n\n".join(["A paragraph with *some* `code` & more <b>."] * 4000),
        "```python\n" + "print('hello')\n" * 12_000 + "```",
        "漢字" * 30_000,
        "😀 " * 30_000,
        '"&<' * 20_000,
        ">" * 3000,
        "- a\n" * 20_000,
        "[a](" * 10_000,
        "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 10_000,
    ],
    ids=[
        "words",
        "paragraphs",
        "code",
        "Chinese",
        "emoji",
        "signs",
        "quotes",
        "list",
        "links",
        "table",
    ],
)
async def test_a_long_answer_comes_in_events_that_fit_encrypted_too(
    answer: str, homeserver: Homeserver
) -> None:
    await reply(event(homeserver), rendered(answer))
    assert len(homeserver.contents) > 1
    for content in homeserver.contents:
        assert encrypted_size(content) <= EVENT_BYTES
        assert content["m.relates_to"]["m.in_reply_to"] == {"event_id": "$event"}
        assert content["m.mentions"] == {"user_ids": [ADA]}
        assert content["formatted_body"]


async def test_a_long_text_of_our_own_is_cut_up_too(homeserver: Homeserver) -> None:
    lines = [f"{number}: " + "漢" * 500 for number in range(20)]
    await reply(event(homeserver), Text("\n".join(lines), "<ul>" + "漢" * 10_000 + "</ul>"))
    assert len(homeserver.contents) > 1
    assert "\n".join(content["body"] for content in homeserver.contents) == "\n".join(lines)


def test_a_short_answer_is_one_text() -> None:
    assert rendered("**hello**") == [Text("**hello**", "<p><strong>hello</strong></p>")]


def test_a_table_reads_well_plain_and_as_html() -> None:
    (text,) = rendered("a | b\n--|--\n1 | 2")
    assert text.plain == "```\na | b\n--|--\n1 | 2\n```"
    assert text.html == "<pre><code>a | b\n--|--\n1 | 2\n</code></pre>"


@fuzzed
@given(st.text(st.characters(exclude_categories=[])))
def test_any_answer_can_be_sent(answer: str) -> None:
    for text in rendered(answer):
        assert text.plain.strip()
        assert "\0" not in text.plain
        text.plain.encode()
        assert text.html is not None
        text.html.encode()
        assert len(json.dumps([text.plain, text.html])) <= MAX_CONTENT_BYTES


# --- signs of life -----------------------------------------------------------------------------


async def test_typing_and_receipt(homeserver: Homeserver) -> None:
    async with working(event(homeserver)):
        await asyncio.sleep(0)
        assert homeserver.typing[-1:] != [0]
    assert homeserver.typing[0] > 0
    assert homeserver.typing[-1] == 0
    assert homeserver.read == ["$event"]


@pytest.mark.parametrize("end", [RuntimeError, asyncio.CancelledError])
async def test_typing_stops_however_the_work_ends(
    end: type[BaseException], homeserver: Homeserver
) -> None:
    with pytest.raises(end):
        async with working(event(homeserver)):
            raise end
    assert homeserver.typing[-1] == 0


async def test_typing_goes_on_while_another_turn_works(homeserver: Homeserver) -> None:
    client: Any = homeserver
    room: Any = ROOM
    async with typing(client, room):
        async with typing(client, room):
            await asyncio.sleep(0)
        assert 0 not in homeserver.typing
    assert homeserver.typing.count(0) == 1


async def test_no_sign_of_life_is_worth_a_failure(homeserver: Homeserver) -> None:
    homeserver.is_down = True
    async with working(event(homeserver)):
        await asyncio.sleep(0)
    assert homeserver.typing
    assert homeserver.read
