"""Which messages are for the bot, and as what."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmbot.addressing import Command, Message, Request, addressed

BOT = "@bot:example.org"
ADA = "@ada:example.org"


def request(body: str, sender: str = ADA) -> Request | None:
    return addressed(Message(sender, body, is_text=True, is_edit=False), BOT)


@pytest.mark.parametrize("command", Command)
@pytest.mark.parametrize(
    ("after", "text"),
    [
        ("", ""),
        (" ", ""),
        (" hello", "hello"),
        ("  hello  ", "hello"),
        ("\thello", "hello"),
        # A prompt may start on the next line, span lines and contain Markdown.
        ("\nhello", "hello"),
        ("\n\n```python\nprint(1)\n```\n", "```python\nprint(1)\n```"),
        (" hello\n\n> quoted\n\n* **bold** <b>x</b>", "hello\n\n> quoted\n\n* **bold** <b>x</b>"),
        (" !ask again", "!ask again"),
        ("\u00a0hello", "hello"),
        (" 漢字 😀", "漢字 😀"),
    ],
)
def test_commands(command: Command, after: str, text: str) -> None:
    assert request(f"!{command.value}{after}") == Request(command, text)
    assert request(f"!{command.value.upper()}{after}") == Request(command, text)


@pytest.mark.parametrize("command", Command)
@pytest.mark.parametrize(
    "body",
    ["{}", "! {}", "!!{}", "/{}", "{}!", "!{}s x", "!{}, x", "!{}x", "!{}!", "x !{} y", "!x{}"],
)
def test_no_commands(command: Command, body: str) -> None:
    assert request(body.format(command.value)) is None


@pytest.mark.parametrize(
    "body", ["", " ", "!", "!!", "! x", "hello", "!nobody knows", "!\u0131 x"]
)
def test_other_texts_are_not_for_the_bot(body: str) -> None:
    assert request(body) is None


@pytest.mark.parametrize("command", Command)
def test_own_messages_notices_and_edits_are_never_for_the_bot(command: Command) -> None:
    body = f"!{command.value} hello"
    assert addressed(Message(BOT, body, is_text=True, is_edit=False), BOT) is None
    assert addressed(Message(ADA, body, is_text=False, is_edit=False), BOT) is None
    assert addressed(Message(ADA, body, is_text=True, is_edit=True), BOT) is None


@given(st.text(), st.booleans(), st.booleans())
def test_any_text_is_for_the_bot_or_not(body: str, is_text: bool, is_edit: bool) -> None:
    found = addressed(Message(ADA, body, is_text=is_text, is_edit=is_edit), BOT)
    if found is not None:
        assert is_text
        assert not is_edit
        assert found.text in body


@given(st.sampled_from(Command), st.text())
def test_any_prompt_arrives_whole(command: Command, prompt: str) -> None:
    assert request(f"!{command.value} {prompt}") == Request(command, prompt.strip())
