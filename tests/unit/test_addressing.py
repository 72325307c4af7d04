"""Which messages are for the bot, and as what."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmbot.addressing import Command, Message, Request, addressed

BOT = "@bot:example.org"
NAME = "LLM Bot"
ADA = "@ada:example.org"
BOB = "@bob:example.org"
STARTED = 1_700_000_000_000
LATER = STARTED + 1000

PILL = '<a href="https://matrix.to/#/@bot:example.org">LLM Bot</a>'


def read(
    body: str,
    *,
    name: str = NAME,
    answers_mentions: bool = True,
    answers_direct_chats: bool = True,
    **message: object,
) -> Request | None:
    return addressed(
        dataclasses.replace(Message(ADA, body, sent=LATER), **message),  # type: ignore[arg-type]
        BOT,
        name,
        started=STARTED,
        answers_mentions=answers_mentions,
        answers_direct_chats=answers_direct_chats,
    )


def ask(text: str) -> Request:
    return Request(Command.ASK, text)


# --- commands ----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", Command)
@pytest.mark.parametrize(
    ("after", "text"),
    [
        pytest.param("", "", id="alone"),
        pytest.param(" ", "", id="with a space after it"),
        pytest.param(" hello", "hello", id="on one line"),
        pytest.param("  hello  ", "hello", id="with spaces around"),
        pytest.param("\thello", "hello", id="with a tab"),
        pytest.param("\nhello", "hello", id="on the next line"),
        pytest.param("\r\nhello", "hello", id="on the next line of Windows"),
        pytest.param("\n\n```py\nx = 1\n```\n", "```py\nx = 1\n```", id="with code"),
        pytest.param(
            " a\n\n> b\n\n* **c** <b>d</b>", "a\n\n> b\n\n* **c** <b>d</b>", id="Markdown"
        ),
        pytest.param(" !ask again", "!ask again", id="with a command in the prompt"),
        pytest.param(" !other", "!other", id="with another bot's command in the prompt"),
        pytest.param("\u00a0hello", "hello", id="with a fixed space"),
        pytest.param(" 漢字 😀", "漢字 😀", id="in any script"),
        pytest.param(" LLM Bot: hello", "LLM Bot: hello", id="with the bot's name in the prompt"),
    ],
)
def test_commands(command: Command, after: str, text: str) -> None:
    assert read(f"!{command.value}{after}") == Request(command, text)
    assert read(f"!{command.value.upper()}{after}") == Request(command, text)
    assert read(f" \n!{command.value}{after}") == Request(command, text)


@pytest.mark.parametrize("command", Command)
@pytest.mark.parametrize(
    "body",
    [
        "{}",
        "! {}",
        "!!{}",
        "/{}",
        "{}!",
        "!{}s x",
        "!{}, x",
        "!{}x",
        "!{}!",
        "x !{} y",
        "!x{}",
        "> !{}",
    ],
)
def test_no_commands(command: Command, body: str) -> None:
    assert read(body.format(command.value)) is None


@pytest.mark.parametrize(
    "message",
    [
        {"is_direct": True},
        {"mentions": frozenset({BOT})},
        {"replies_to_own": True},
        {"continues_own_answer": True},
        {"mentions": frozenset({BOB})},
    ],
    ids=["direct chat", "mention", "reply", "thread", "with a mention of somebody else"],
)
def test_a_command_is_a_command_everywhere(message: dict[str, Any]) -> None:
    for switches in (True, False):
        request = read(
            "!code\nx", answers_mentions=switches, answers_direct_chats=switches, **message
        )
        assert request == Request(Command.CODE, "x")


# --- the name at the start ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "text"),
    [
        pytest.param("LLM Bot: what is it?", "what is it?", id="name and colon"),
        pytest.param("LLM Bot, what is it?", "what is it?", id="name and comma"),
        pytest.param("LLM Bot what is it?", "what is it?", id="name alone"),
        pytest.param("LLM Bot :what is it?", "what is it?", id="space before the colon"),
        pytest.param("LLM Bot\n\nwhat\nis it?", "what\nis it?", id="name on a line of its own"),
        pytest.param("llm bot: what is it?", "what is it?", id="in any case"),
        pytest.param("  LLM Bot: what is it?", "what is it?", id="after spaces"),
        pytest.param("@LLM Bot what is it?", "what is it?", id="name with @"),
        pytest.param("LLM Bot\uff1a什麼?", "什麼?", id="wide colon"),
        pytest.param("LLM Bot\u3001何?", "何?", id="wide comma"),
        pytest.param("@bot:example.org what is it?", "what is it?", id="id"),
        pytest.param("@bot:example.org: what is it?", "what is it?", id="id and colon"),
        pytest.param("@BOT:example.org, what is it?", "what is it?", id="id in any case"),
        pytest.param("@bot what is it?", "what is it?", id="local part"),
        pytest.param("@bot: what is it?", "what is it?", id="local part and colon"),
        pytest.param("LLM Bot: LLM Bot: hi", "LLM Bot: hi", id="twice"),
        pytest.param("LLM Bot", "", id="only the name"),
        pytest.param("@bot:", "", id="only the local part and a colon"),
        pytest.param("LLM Bot: > quote\n\nwords", "> quote\n\nwords", id="then a quote"),
        pytest.param(
            "[LLM Bot](https://matrix.to/#/@bot:example.org): hi", "hi", id="Markdown pill"
        ),
        pytest.param(
            "[x](https://matrix.to/#/%40bot%3Aexample.org?via=example.org) hi",
            "hi",
            id="encoded Markdown pill",
        ),
    ],
)
def test_a_text_that_begins_with_the_name(body: str, text: str) -> None:
    assert read(body) == ask(text)
    assert read(body, mentions=frozenset({BOT})) == ask(text)
    assert read(body, is_direct=True) == ask(text)
    assert read(body, answers_mentions=False) is None


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("LLM Bots are everywhere", id="a longer word"),
        pytest.param("LLM Bot's answer was wrong", id="the genitive"),
        pytest.param("I like LLM Bot", id="not at the start"),
        pytest.param("bot: hello", id="the local part without @"),
        pytest.param("@bot:elsewhere.org hello", id="a namesake elsewhere"),
        pytest.param("@bot:example.org.uk hello", id="a namesake at a longer server name"),
        pytest.param("@bot:example.org:8448 hello", id="a namesake at a port"),
        pytest.param("@bots hello", id="a longer local part"),
        pytest.param("[LLM Bot](https://matrix.to/#/@bob:example.org) hi", id="somebody's pill"),
        pytest.param("[LLM Bot](https://example.org/@bot:example.org) hi", id="an ordinary link"),
        pytest.param("> LLM Bot: hello", id="in a quote"),
        pytest.param("", id="nothing"),
        pytest.param(" \n ", id="nothing visible"),
        pytest.param("hello", id="something else"),
    ],
)
def test_texts_that_do_not_begin_with_the_name(body: str) -> None:
    assert read(body) is None


def test_a_bot_without_a_name_has_its_id() -> None:
    assert read("hello", name="") is None
    assert read(": hello", name="") is None
    assert read("@bot hello", name="") == ask("hello")


@pytest.mark.parametrize(
    ("html", "body"),
    [
        (f"{PILL}: hi", "Old Name: hi"),
        (f"<p>{PILL} hi</p>", "Old Name hi"),
        (
            "<a class=\"x\" href='matrix:u/bot:example.org?action=chat'>Old Name</a>: hi",
            "Old Name: hi",
        ),
        (f"{PILL} hi", "@Old Name hi"),
    ],
    ids=["pill", "paragraph", "matrix: link", "with @"],
)
def test_a_pill_may_show_another_name(html: str, body: str) -> None:
    html = html.replace("LLM Bot", "Old Name")
    assert read(body, formatted_body=html) == ask("hi")
    assert read(body, formatted_body=html.replace("bot:", "bob:")) is None


# --- mentions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "html"),
    [
        pytest.param("Tell me, LLM Bot, what is it?", f"Tell me, {PILL}, what is it?", id="pill"),
        pytest.param("what is it?", None, id="no name in the text"),
        pytest.param("> quote\n\nwhat is it?", None, id="a typed quote"),
        pytest.param("> <@ada:example.org> x\nwhat?", None, id="what looks like a fallback"),
    ],
)
def test_a_mention_anywhere_leaves_the_text_as_it_is(body: str, html: str | None) -> None:
    message: dict[str, Any] = {"formatted_body": html, "mentions": frozenset({BOB, BOT})}
    assert read(body, **message) == ask(body)
    assert read(body, answers_mentions=False, **message) is None
    assert read(body, **{**message, "mentions": frozenset({BOB})}) is None


def test_a_mention_without_words_is_nothing() -> None:
    assert read(" ", mentions=frozenset({BOT})) is None


@pytest.mark.parametrize(
    ("body", "request_"),
    [
        ("LLM Bot: !memories 2", Request(Command.MEMORIES, "2")),
        ("@bot !FORGET", Request(Command.FORGET, "")),
        ("LLM Bot: !other thing", None),
        ("LLM Bot: !asking", None),
        ("!other LLM Bot", None),
    ],
)
def test_a_command_after_the_name(body: str, request_: Request | None) -> None:
    assert read(body, mentions=frozenset({BOT})) == request_


# --- replies, threads, direct chats ------------------------------------------------------------


def test_a_reply_to_the_bot() -> None:
    assert read("and why?", replies_to_own=True) == ask("and why?")
    assert read("and why?", replies_to_own=True, answers_mentions=False) is None
    assert read("and why?", replies_to_own=True, mentions=frozenset({BOB})) == ask("and why?")
    assert read("> and\nwhy?", replies_to_own=True) == ask("> and\nwhy?")


def test_going_on_below_an_answer_in_a_thread() -> None:
    assert read("and why?", continues_own_answer=True) == ask("and why?")
    assert read("and why?", continues_own_answer=True, answers_mentions=False) is None
    assert read("and why?", continues_own_answer=True, mentions=frozenset({ADA})) is not None
    assert read("Bob?", continues_own_answer=True, mentions=frozenset({BOB})) is None
    both = frozenset({BOB, BOT})
    assert read("Bob?", continues_own_answer=True, mentions=both) == ask("Bob?")


@pytest.mark.parametrize("body", ["hello", "> quote\n\nhello", "!", "!!!", "! ask", "/ask", "?x"])
def test_any_text_in_a_direct_chat(body: str) -> None:
    assert read(body, is_direct=True) == ask(body)
    assert read(body, is_direct=True, answers_mentions=False) == ask(body)
    assert read(body, is_direct=True, answers_direct_chats=False) is None
    assert read(body) is None


def test_a_mention_in_a_direct_chat_counts_for_both_switches() -> None:
    body = "LLM Bot: hello"
    assert read(body, is_direct=True, answers_direct_chats=False) == ask("hello")
    assert read(body, is_direct=True, answers_mentions=False) == ask("hello")
    assert read(body, is_direct=True, answers_mentions=False, answers_direct_chats=False) is None


@pytest.mark.parametrize(
    "body", ["!other", "!other hello", "!\u0131 x", "!8ball", "!ask-me", "!asks"]
)
@pytest.mark.parametrize(
    "message",
    [{"is_direct": True}, {"mentions": frozenset({BOT})}, {"replies_to_own": True}],
    ids=["direct chat", "mention", "reply"],
)
def test_commands_of_other_bots_are_left_to_them(body: str, message: dict[str, Any]) -> None:
    assert read(body, **message) is None


# --- never -------------------------------------------------------------------------------------

EVERY_WAY: dict[str, Any] = {
    "mentions": frozenset({BOT}),
    "replies_to_own": True,
    "continues_own_answer": True,
    "is_direct": True,
}


@pytest.mark.parametrize("body", ["!ask hello", "LLM Bot: hello", "hello"])
@pytest.mark.parametrize(
    "never",
    [
        {"sender": BOT},
        {"is_edit": True},
        {"is_text": False},
        {"sent": STARTED - 1},
        {"sent": 0},
    ],
    ids=["own", "edit", "notice, emote or file", "before the start", "long before the start"],
)
def test_never_for_the_bot(body: str, never: dict[str, Any]) -> None:
    assert read(body, **EVERY_WAY) is not None
    assert read(body, **{**EVERY_WAY, **never}) is None


@pytest.mark.parametrize("sent", [STARTED, STARTED + 1, STARTED + 10**12])
def test_what_was_sent_since_the_start(sent: int) -> None:
    assert read("!ask hello", sent=sent) == ask("hello")


# --- for any message ---------------------------------------------------------------------------

USERS = st.sampled_from([BOT, ADA, BOB])
BODIES = st.one_of(
    st.text(),
    st.builds(
        "".join,
        st.lists(st.sampled_from(["!", "ask", " ", "\n", ":", "@bot", "LLM Bot", BOT, "x", "> "])),
    ),
)
MESSAGES = st.builds(
    Message,
    sender=USERS,
    body=BODIES,
    is_text=st.booleans(),
    is_edit=st.booleans(),
    formatted_body=st.one_of(st.none(), st.text(), st.just(PILL)),
    sent=st.integers(),
    mentions=st.frozensets(USERS),
    replies_to_own=st.booleans(),
    continues_own_answer=st.booleans(),
    is_direct=st.booleans(),
)


@given(MESSAGES, st.text(), st.integers(), st.booleans(), st.booleans())
def test_any_message_is_for_the_bot_or_not(
    message: Message, name: str, started: int, mentions: bool, direct: bool
) -> None:
    request = addressed(
        message,
        BOT,
        name,
        started=started,
        answers_mentions=mentions,
        answers_direct_chats=direct,
    )
    if request is not None:
        assert message.sender != BOT
        assert message.is_text
        assert not message.is_edit
        assert request.text in message.body
        assert request.text == request.text.strip()


@given(BODIES, st.text())
def test_nothing_but_commands_and_names_is_for_the_bot_where_it_was_not_called(
    body: str, name: str
) -> None:
    request = read(body, name=name)
    if request is not None and request.command is Command.ASK:
        called = (
            name.strip().casefold() or "\0",
            f"@{name.strip()}".casefold(),
            "@bot",
            "!ask",
            "[",
        )
        assert body.strip().casefold().startswith(called)


@given(st.sampled_from(Command), st.text())
def test_any_prompt_arrives_whole(command: Command, prompt: str) -> None:
    assert read(f"!{command.value} {prompt}") == Request(command, prompt.strip())
