"""What a turn tells the model, and what comes back into the room."""

from __future__ import annotations

import json
from typing import Any

import pytest

from devstack.scripted_model import (
    RecordedRequest,
    Reply,
    error_in_200,
    hang,
    http_error,
    raw,
    text,
    tool_calls,
)

from .world import Person, World


def data_of(request: RecordedRequest) -> dict[str, Any]:
    """What the model is told in the second system message."""
    data = json.loads(request.messages[1]["content"])
    assert isinstance(data, dict)
    return data


def said(request: RecordedRequest) -> list[tuple[str, str]]:
    """The conversation that the model is shown, without system messages."""
    return [(m["role"], m["content"]) for m in request.messages if m["role"] != "system"]


async def test_the_model_knows_who_speaks_where_and_when(world: World) -> None:
    ada = await world.person("ada", name="Engine room")
    await ada.member.client.set_displayname("Ada L.")
    await ada.member.wait_for(lambda event: event.content.get("displayname") == "Ada L.")
    await ada.tell("!ask hello")
    data = data_of(world.seen("chat")[0])
    assert data["room"] == "Engine room"
    assert data["person"] == "Ada L."
    assert data["your_name"] == "llmbot"
    assert data["memories"] == []
    assert len(data["date"].split("-")) == 3


async def test_the_conversation_so_far_per_room_thread_and_user(world: World, ada: Person) -> None:
    world.on("chat", lambda request: text(f"re {request.user_message}")(request))
    await ada.tell("!ask one")
    await ada.tell("!ask two")
    assert said(world.seen("chat")[-1]) == [
        ("user", "one"),
        ("assistant", "re one"),
        ("user", "two"),
    ]
    root = await ada.tell_silently("a thread")
    thread = {"m.relates_to": {"rel_type": "m.thread", "event_id": root}}
    await ada.tell("!ask three", **thread)
    assert said(world.seen("chat")[-1]) == [("user", "three")]
    await ada.tell("!ask four", **thread)
    assert said(world.seen("chat")[-1])[0] == ("user", "three")
    await ada.tell("!ask five")
    assert ("user", "three") not in said(world.seen("chat")[-1])


async def test_context_is_limited_and_can_be_switched_off(world: World, ada: Person) -> None:
    await world.configure(contextMaxMessages=4)
    world.on("chat", text("yes"))
    for number in range(4):
        await ada.tell(f"!ask {number}")
    assert [words for role, words in said(world.seen("chat")[-1]) if role == "user"] == [
        "1",
        "2",
        "3",
    ]
    await world.configure(contextMaxMessages=0)
    await ada.tell("!ask alone")
    assert said(world.seen("chat")[-1]) == [("user", "alone")]


async def test_forget_clears_the_conversation_and_not_the_memories(
    world: World, ada: Person
) -> None:
    await ada.tell("!ask Remember that I like tea.")
    await ada.until(memories=["Likes tea"])
    await ada.tell("!forget")
    await ada.tell("!ask hello")
    assert said(world.seen("chat")[-1]) == [("user", "hello")]
    assert await ada.rows("memories") == ["Likes tea"]


async def test_a_redacted_message_leaves_the_conversation(world: World, ada: Person) -> None:
    answer = await ada.tell("!ask a thing said in error")
    assert answer.replies_to is not None
    await ada.tell("!ask another")
    redaction = await ada.member.redact(ada.room_id, answer.replies_to)
    await ada.member.wait_for(lambda event: event.event_id == redaction)
    await ada.tell("!memories")
    await ada.tell("!ask what did I say?")
    last = world.seen("chat")[-1]
    assert "a thing said in error" not in json.dumps(last.messages)
    assert ("user", "another") in said(last)


async def test_a_quoted_message_is_someone_elses_words(world: World, ada: Person) -> None:
    bob = await world.stack.member("bob-quoted")
    await ada.member.client.invite_user(ada.room_id, bob.user_id)
    await bob.join(ada.room_id)
    pilot = await bob.say(ada.room_id, "I am an airline pilot.")
    await ada.member.wait_for(lambda event: event.event_id == pilot)
    relation = {"m.in_reply_to": {"event_id": pilot}}
    await ada.tell(
        f"> <{bob.user_id}> I am an airline pilot.\n\n!ask Is that a good job?",
        **{"m.relates_to": relation},
    )
    (request,) = world.seen("chat")
    assert request.user_message == "Is that a good job?"
    assert data_of(request)["quoted_message"] == {
        "sender": bob.user_id.removeprefix("@").partition(":")[0],
        "text": "I am an airline pilot.",
    }
    (extraction,) = await world.requested("extraction")
    assert "pilot" not in extraction.payload["user_message"]
    assert await ada.rows("memory_candidates") == []


async def test_code_has_its_own_model_and_prompt_and_extracts_like_ask(
    world: World, ada: Person
) -> None:
    await world.configure(codeSystemPrompt="You write code.")
    world.on("chat", text("```python\nprint('hello')\n```"))
    answer = await ada.tell("!code\nI work as a plumber. Print hello, please.")
    assert '<code class="language-python">' in answer.content["formatted_body"]
    (request,) = world.seen("chat")
    assert request.system_prompt.startswith("You write code.")
    await ada.until(candidates={"Works as a plumber": 1})


async def test_long_code_also_comes_as_a_file(world: World, ada: Person) -> None:
    code = "".join(f"print({number})\n" for number in range(80))
    world.on("chat", text(f"Here you are:\n\n```python\n{code}```"))
    await ada.tell("!code eighty prints")
    file = await ada.member.wait_for(
        lambda event: event.room_id == ada.room_id and event.content.get("msgtype") == "m.file"
    )
    assert file.content["filename"] == "code.py"
    assert file.content["info"] == {"mimetype": "text/x-python", "size": len(code)}
    content = await ada.member.client.download_media(file.content["url"])
    assert content.decode() == code


async def test_code_that_the_homeserver_takes_as_no_file_is_answered_and_remembered_all_the_same(
    world: World, ada: Person
) -> None:
    code = "print()\n" * 80
    world.on("chat", text(f"Here you are:\n\n```python\n{code}```"))
    # Where Synapse would make a folder for the file there is a file.
    kept = world.stack.synapse.folder / "media" / "local_content"
    aside = kept.with_name("aside")
    if kept.exists():
        kept.rename(aside)
    kept.write_text("in the way")
    try:
        event_id = await ada.tell_silently("!code I work as a plumber. Print eighty times!")
        await ada.member.wait_until(lambda: len(ada.member.replies(event_id)) == 2)
    finally:
        kept.unlink()
        if aside.exists():
            aside.rename(kept)
    answer, note = ada.member.replies(event_id)
    assert code in answer.body
    assert note.body == "The homeserver did not take the code as a file. It stands above."
    assert "A file with code was not sent" in world.log()
    await ada.until(candidates={"Works as a plumber": 1})


async def test_html_in_an_answer_is_shown_and_not_applied(world: World, ada: Person) -> None:
    world.on("chat", text("# Title\n\n- a\n- b\n\n> quote\n\n<b onclick='x'>bold</b> @room"))
    answer = await ada.tell("!ask hello")
    formatted = answer.content["formatted_body"]
    for tag in ("<h1>", "<ul>", "<li>", "<blockquote>", "&lt;b onclick="):
        assert tag in formatted
    assert "<b " not in formatted
    assert answer.content["m.mentions"] == {"user_ids": [ada.user_id]}


async def test_an_exhausted_tool_loop_says_so(world: World, ada: Person) -> None:
    await world.configure(maxToolSteps=2)
    call = {"fact": "Likes tea", "evidence": "I like tea"}
    world.on("chat", tool_calls([("save_memory", call), ("no_such_tool", {})]))
    answer = await ada.tell("!ask Remember that I like tea")
    assert "within 2 steps" in answer.body
    results = [m["content"] for m in world.seen("chat")[-1].messages if m["role"] == "tool"]
    assert results[0] == "Saved."
    assert "no tool 'no_such_tool'" in results[1]


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (http_error(401), "refuses the bot's API key"),
        (http_error(403), "refuses the bot's API key"),
        (http_error(404), "does not know the model"),
        (http_error(400), "did not accept the request"),
        (http_error(429, headers={"Retry-After": "0.01"}), "busy"),
        (http_error(503, headers={"Retry-After": "0.01"}), "busy"),
        (text("", finish_reason="content_filter"), "refused to answer"),
        (text(""), "empty answer"),
        (text("<think>hm</think>"), "empty answer"),
        (error_in_200(), "could not be read"),
        (raw("<html>"), "could not be read"),
    ],
)
async def test_each_failure_has_its_sentence(
    reply: Reply, sentence: str, world: World, ada: Person
) -> None:
    world.on("chat", reply)
    answer = await ada.tell("!ask hello")
    assert sentence in answer.body
    assert "\n" not in answer.body


async def test_a_time_out_says_how_long_it_waited(world: World, ada: Person) -> None:
    await world.configure(timeout=0.5)
    world.on("chat", hang())
    assert "within 0.5 seconds" in (await ada.tell("!ask hello")).body


async def test_what_is_missing_in_the_set_up_is_named(world: World, ada: Person) -> None:
    scripted: object = {"baseUrl": world.model.base_url, "apiKeyEnv": "LLMBOT_TEST_NO_SUCH_KEY"}
    cases: list[tuple[dict[str, object], str]] = [
        ({"assistantModel": ""}, "assistantModel"),
        ({"assistantModel": "nowhere/model"}, "nowhere"),
        ({"providers": {"scripted": scripted}}, "LLMBOT_TEST_NO_SUCH_KEY"),
    ]
    for settings, missing in cases:
        await world.configure(**settings)
        assert missing in (await ada.tell("!ask hello")).body


async def test_a_prompt_that_is_too_long_is_refused_with_the_limit(
    world: World, ada: Person
) -> None:
    await world.configure(maxPromptLength=10)
    assert "10 at most" in (await ada.tell("!ask 12345678901")).body
    await ada.tell("!ask 1234567890")
    assert len(world.seen("chat")) == 1
