"""How the bot behaves among people."""

from __future__ import annotations

import itertools
import json
import secrets
import sys
from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest
from mautrix.api import Method, Path
from mautrix.types import FilterID, RoomID, UserID

from devstack.member import Member, SeenEvent
from devstack.process import wait_until
from devstack.scripted_model import http_error, text

from .world import SECONDS, Person, World

SWITCH = "dev.llmbot.settings"


@pytest.fixture
async def pair(world: World) -> tuple[Person, Person]:
    """Two people in one room with the bot."""
    bob = await world.person("bob")
    ada = await world.person("ada", bob.member)
    return ada, Person(world, bob.member, ada.room_id)


def thread(root: str, last: str) -> dict[str, Any]:
    """What Element sends with a message in a thread."""
    return {
        "m.relates_to": {
            "rel_type": "m.thread",
            "event_id": root,
            "is_falling_back": True,
            "m.in_reply_to": {"event_id": last},
        }
    }


def reply_to(event_id: str) -> dict[str, Any]:
    return {"m.relates_to": {"m.in_reply_to": {"event_id": event_id}}}


def mentioning(*user_ids: str) -> dict[str, Any]:
    return {"m.mentions": {"user_ids": list(user_ids)}}


async def asked(world: World, person: Person) -> list[str]:
    """Ask one more thing, and return all prompts before it: nothing else was answered."""
    await person.tell("!ask the last")
    return [request.user_message for request in world.seen("chat")][:-1]


# --- addressing --------------------------------------------------------------------------------


async def test_among_people_the_bot_speaks_when_it_is_spoken_to(
    world: World, pair: tuple[Person, Person]
) -> None:
    ada, bob = pair
    bot = world.bot.user_id
    for plain in ("hello everybody", "llmbots are fun", "!other command", "I like llmbot"):
        await ada.tell_silently(plain)
    await bob.tell_silently("Ada?", **mentioning(ada.user_id))
    answer = await ada.tell("what is new?", **mentioning(bot))
    assert answer.content["m.mentions"] == {"user_ids": [ada.user_id]}
    await ada.tell("llmbot: what is old?")
    await bob.tell(f"{bot} what is blue?")
    pill = f'<a href="https://matrix.to/#/{bot}">llmbot</a>: what is green?'
    html = {"format": "org.matrix.custom.html", "formatted_body": pill}
    await bob.tell("llmbot: what is green?", **html, **mentioning(bot))
    answered = await bob.tell("and why?", **reply_to(answer.event_id))
    assert answered.content["m.mentions"] == {"user_ids": [bob.user_id]}
    own = await ada.tell_silently("my words")
    await bob.tell_silently("and why is that?", **reply_to(own))
    assert await asked(world, ada) == [
        "what is new?",
        "what is old?",
        "what is blue?",
        "what is green?",
        "and why?",
    ]


async def test_the_bot_answers_to_its_name_of_today(
    world: World, pair: tuple[Person, Person]
) -> None:
    ada, _ = pair
    bot = Member(world.stack.synapse.url, world.bot.account)

    async def rename(name: str) -> None:
        await bot.client.set_displayname(name)
        await ada.member.wait_for(
            lambda event: (
                event.room_id == ada.room_id
                and event.state_key == bot.user_id
                and event.content.get("displayname") == name
            )
        )

    try:
        await ada.tell("llmbot, one")
        await rename("Doctor Know")
        await ada.tell("Doctor Know, two")
        await ada.tell_silently("llmbot, three")
        assert await asked(world, ada) == ["one", "two"]
    finally:
        await rename("llmbot")
        await bot.close()


async def test_in_a_direct_chat_any_text_is_a_question_until_a_third_joins(
    world: World, ada: Person
) -> None:
    await ada.tell("hello")
    await ada.tell_silently("!other command")
    await ada.tell("> a quote of mine\n\nwhat of it?")
    bob = await world.stack.member(f"bob-of-{ada.user_id[1:].partition(':')[0]}")
    await ada.member.client.invite_user(RoomID(ada.room_id), UserID(bob.user_id))
    await bob.join(ada.room_id)
    await ada.member.wait_for_member(ada.room_id, bob.user_id)
    await ada.tell_silently("hello Bob")
    assert await asked(world, ada) == ["hello", "> a quote of mine\n\nwhat of it?"]
    await bob.client.leave_room(RoomID(ada.room_id))
    await ada.member.wait_for_member(ada.room_id, bob.user_id, "leave")
    await ada.tell("alone again")


async def test_a_thread_goes_on_between_the_bot_and_whom_it_answered(
    world: World, pair: tuple[Person, Person]
) -> None:
    ada, bob = pair
    root = await bob.tell_silently("a thread")
    await ada.tell_silently("in the thread, to people", **thread(root, root))
    first = await ada.tell("!ask one", **thread(root, root))
    assert first.relation["event_id"] == root
    second = await ada.tell("two", **thread(root, first.event_id))
    assert second.relation["rel_type"] == "m.thread"
    assert second.relation["event_id"] == root
    await bob.tell_silently("not for the bot", **thread(root, second.event_id))
    spoken = await bob.tell_silently("Ada, what do you think?", **thread(root, second.event_id))
    await ada.tell_silently("I think so", **thread(root, spoken))
    await ada.tell_silently("Bob?", **thread(root, second.event_id), **mentioning(bob.user_id))
    await ada.tell("three", **thread(root, spoken), **mentioning(world.bot.user_id))
    assert await asked(world, ada) == ["one", "two", "three"]


async def test_each_kind_of_address_can_be_switched_off(
    world: World, ada: Person, pair: tuple[Person, Person]
) -> None:
    crowd, _ = pair
    bot = world.bot.user_id
    await world.configure(answerMentions=False)
    await crowd.tell_silently("llmbot: one")
    await crowd.tell_silently("two", **mentioning(bot))
    await crowd.tell("!ask three")
    await ada.tell("four")
    await world.configure(answerDirectChats=False)
    await ada.tell_silently("five")
    await ada.tell("llmbot: six")
    await crowd.tell("seven", **mentioning(bot))
    assert await asked(world, crowd) == ["three", "four", "six", "seven"]


async def test_what_never_gets_an_answer(world: World, ada: Person) -> None:
    event_id = await ada.tell_silently("!other")
    mention = mentioning(world.bot.user_id)
    await ada.member.edit(ada.room_id, event_id, "!ask edited")
    for kind in ("m.notice", "m.emote", "m.image", "m.location", "org.example.odd"):
        await ada.tell_silently("!ask as something else", msgtype=kind, **mention)
    reaction = {"rel_type": "m.annotation", "event_id": event_id, "key": "!ask"}
    await ada.member.send(ada.room_id, {"m.relates_to": reaction}, "m.reaction")
    await ada.member.send_state(ada.room_id, "m.room.topic", {"topic": "!ask"})
    assert await asked(world, ada) == []


async def test_what_was_said_while_the_bot_was_away_stays_unanswered(
    world: World, ada: Person
) -> None:
    await world.stack.maubot.stop()
    await ada.tell_silently("!ask are you there?")
    await world.stack.restart_maubot()
    assert await asked(world, ada) == []


# --- the room's switch -------------------------------------------------------------------------


async def learns(person: Person) -> bool:
    """Say something about oneself; tell whether it became a candidate."""
    before = len(person.world.seen("extraction"))
    await person.tell("!ask I live in Berlin.")
    # In another room: this pass comes after the other one, if there is one.
    sentinel = await person.world.person("sentinel")
    await sentinel.tell("!ask I live in Hamburg.")
    await sentinel.until(candidates={"Lives in Hamburg": 1})
    messages = [r.payload["user_message"] for r in person.world.seen("extraction")[before:]]
    return "I live in Berlin." in messages


@pytest.mark.parametrize("version", ["10", "12"])
async def test_a_moderator_switches_the_memory_and_a_plain_member_cannot(
    world: World, version: str
) -> None:
    members = [(await world.person(who)).member for who in ("ada", "bob", "eve")]
    creator, moderator, plain = (member.user_id for member in members)
    # From version 12 on a creator's power is not written down.
    written = {creator: 100} if version == "10" else {}
    levels = {"users": {world.bot.user_id: 50, moderator: 50, **written}}
    room_id = await members[0].create_room(
        world.bot.user_id, moderator, plain, version=version, power_levels=levels
    )
    for member in members[1:]:
        await member.join(room_id)
    await members[0].wait_for_member(room_id, world.bot.user_id)
    ada, bob, eve = (Person(world, member, room_id) for member in members)

    assert "Memory is on" in (await eve.tell("!memories room")).body
    assert "ask a moderator" in (await eve.tell("!memories room off")).body
    assert switch_of(ada) is None
    for person in (bob, ada):
        assert "now off" in (await person.tell("!memories room OFF")).body
        assert switch_of(ada) == {"memoryEnabled": False}
        assert "Memory is off" in (await eve.tell("!memories room")).body
        assert "now on" in (await person.tell("!memories room on")).body
        assert switch_of(ada) == {"memoryEnabled": True}
    assert await learns(eve)
    await bob.tell("!memories room off")
    assert not await learns(eve)
    assert (await ada.tell("!memories room maybe")).body.startswith("Usage: !memories room")


def switch_of(person: Person) -> Mapping[str, Any] | None:
    """Return the content of the room's settings event as its members see it."""
    seen = [e for e in person.member.events if e.room_id == person.room_id and e.type == SWITCH]
    return seen[-1].content if seen else None


async def test_a_bot_without_power_says_what_to_do_and_follows_what_members_set(
    world: World, ada: Person
) -> None:
    answer = (await ada.tell("!memories room off")).body
    assert "make me a moderator" in answer
    assert SWITCH in answer
    await ada.member.send_state(ada.room_id, SWITCH, {"memoryEnabled": False, "note": "ours"})
    assert not await learns(ada)
    bot = UserID(world.bot.user_id)
    power = await ada.member.client.get_state_event(RoomID(ada.room_id), "m.room.power_levels")
    power.users[bot] = 50
    await ada.member.send_state(ada.room_id, "m.room.power_levels", power.serialize())
    assert "now on" in (await ada.tell("!memories room on")).body
    assert switch_of(ada) == {"memoryEnabled": True, "note": "ours"}
    event_id = await ada.member.send_state(ada.room_id, SWITCH, {"memoryEnabled": False})
    assert "Memory is off" in (await ada.tell("!memories room")).body
    await ada.member.redact(ada.room_id, event_id)
    assert "Memory is on" in (await ada.tell("!memories room")).body


async def upgraded(ada: Person, version: str) -> Person:
    """Upgrade a room, bring the bot into the new one, and return the person there."""
    answer = await ada.member.client.api.request(
        Method.POST, Path.v3.rooms[ada.room_id].upgrade, {"new_version": version}
    )
    there = Person(ada.world, ada.member, answer["replacement_room"])
    bot = ada.world.bot.user_id
    await ada.member.client.invite_user(RoomID(there.room_id), UserID(bot))
    await ada.member.wait_for_member(there.room_id, bot)
    return there


@pytest.mark.parametrize("version", ["11", "12"])
async def test_memory_that_was_off_stays_off_when_the_room_is_upgraded(
    world: World, version: str
) -> None:
    ada = await world.person("ada", version="10")
    await ada.member.send_state(ada.room_id, SWITCH, {"memoryEnabled": False})
    middle = await upgraded(ada, "10")
    new = await upgraded(middle, version)
    assert "Memory is off" in (await new.tell("!memories room")).body
    assert not await learns(new)
    # The old room's switch is followed as long as the new one has none.
    await ada.member.send_state(ada.room_id, SWITCH, {"memoryEnabled": True})
    assert "Memory is on" in (await new.tell("!memories room")).body
    await ada.member.send_state(new.room_id, SWITCH, {"memoryEnabled": False})
    assert "Memory is off" in (await new.tell("!memories room")).body


async def test_the_switch_of_a_room_that_the_bot_never_saw_counts_as_off(world: World) -> None:
    member = (await world.person("cleo")).member
    unseen = await member.create_room(version="10")
    cleo = await upgraded(Person(world, member, unseen), "11")
    assert "Memory is off" in (await cleo.tell("!memories room")).body
    await cleo.member.send_state(cleo.room_id, SWITCH, {"memoryEnabled": True})
    assert "Memory is on" in (await cleo.tell("!memories room")).body
    assert world.log().count(f"No memory in {cleo.room_id}") == 1


# --- access and limits -------------------------------------------------------------------------


async def test_who_asks_too_much_is_told_once_when_to_come_back(
    world: World, pair: tuple[Person, Person]
) -> None:
    ada, bob = pair
    await world.configure(askRateLimitCount=2, askRateLimitWindow=600)
    await ada.tell("!ask one")
    await ada.tell("llmbot: two")
    assert "try again in" in (await ada.tell("!ask three")).body
    silent = [await ada.tell_silently("!ask again") for _ in range(3)]
    await bob.tell("!ask me")
    assert [ada.member.replies(event_id) for event_id in silent] == [[], [], []]
    assert [r.user_message for r in world.seen("chat")] == ["one", "two", "me"]


async def test_only_those_who_are_allowed_get_answers(
    world: World, pair: tuple[Person, Person]
) -> None:
    ada, bob = pair
    await world.configure(allowedUsers=[f"@{ada.user_id[1:4]}.*:.*"])
    await ada.tell("!ask one")
    assert "not among them" in (await bob.tell("!ask two")).body
    await world.configure(allowedUsers=["("])
    assert "allowedUsers" in world.log()
    await bob.tell_silently("!ask three")
    # What comes after it in the room is answered: the bot has decided about it before the change.
    await ada.tell("!ask four")
    await world.configure(allowedUsers=[])
    await bob.tell("!ask five")
    assert [r.user_message for r in world.seen("chat")] == ["one", "four", "five"]


# --- sending -----------------------------------------------------------------------------------


async def all_replies(person: Person, event_id: str, last: str) -> list[SeenEvent]:
    """Wait for the reply that ends like this; return all of them."""
    await person.member.wait_for(
        lambda event: event.replies_to == event_id and event.body.endswith(last),
        SECONDS * 3,
        f"the reply that ends with {last}",
    )
    return person.member.replies(event_id)


async def test_a_long_answer_comes_in_parts_that_lose_nothing(world: World, ada: Person) -> None:
    paragraphs = [f"Paragraph {number}: " + "some words " * 40 for number in range(230)]
    code = [f"print({number})" for number in range(5000)]
    answer = "\n\n".join(paragraphs) + "\n\n```python\n" + "\n".join(code) + "\n```\n\nThe end."
    assert len(answer) > 150_000
    world.on("chat", text(answer))
    event_id = await ada.tell_silently("!ask all of it")
    parts = await all_replies(ada, event_id, "The end.")
    assert len(parts) > 3
    assert "".join("".join(part.body for part in parts).split()).replace(
        "``````python", ""
    ) == "".join(answer.split())
    for part in parts:
        assert part.body.count("```") % 2 == 0
        assert len(json.dumps(part.raw)) < 48_000
        assert part.content["m.mentions"] == {"user_ids": [ada.user_id]}
        assert part.content["msgtype"] == "m.notice"
    assert '<pre><code class="language-python">' in parts[-1].content["formatted_body"]


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="python-olm has no wheel for this Python")
@pytest.mark.parametrize("paragraph", ["word " * 200, "漢字" * 200, '"<&>" ' * 100, "😀" * 200])
async def test_a_long_answer_fits_into_encrypted_events_too(world: World, paragraph: str) -> None:
    from devstack.encrypted_member import EncryptedMember  # noqa: PLC0415 - needs python-olm

    answer = "\n\n".join([paragraph.strip()] * 100)
    world.on("chat", text(f"{answer}\n\nThe end."))
    account = await world.stack.synapse.register(f"eve{secrets.token_hex(4)}")
    async with EncryptedMember(world.stack.synapse.url, account) as eve:
        room_id = await eve.create_room(world.bot.user_id)

        async def bot_is_in() -> bool:
            return world.bot.user_id in await eve.client.get_joined_members(RoomID(room_id))

        await wait_until(bot_is_in, SECONDS, "the bot to join")
        event_id = await eve.say(room_id, "!ask all of it")

        def parts() -> list[str]:
            replies = [m for m in eve.messages if m.content.get_reply_to() == event_id]
            return [message.content.body for message in replies]

        async def complete() -> bool:
            return any(part.endswith("The end.") for part in parts())

        await wait_until(complete, SECONDS, "the last part")
        assert len(parts()) > 1
        assert "".join("".join(parts()).split()) == "".join(f"{answer}The end.".split())


async def test_markdown_and_html_in_an_answer(world: World, ada: Person) -> None:
    table = "| a | b |\n|---|---|\n| 1 | 2 |"
    world.on("chat", text(f"# Title\n\n<b>no</b> [x](javascript:alert(1))\n\n{table}"))
    html = (await ada.tell("!ask")).content.get("formatted_body")
    assert html is None
    html = (await ada.tell("!ask it")).content["formatted_body"]
    assert "<h1>Title</h1>" in html
    assert "&lt;b&gt;no&lt;/b&gt; x" in html
    assert "<pre><code>a | b\n--|--\n1 | 2\n</code></pre>" in html


async def limit_bot(world: World, limit: Mapping[str, int]) -> None:
    """Limit how fast the homeserver lets the bot send; an empty limit takes it away."""
    admin = await world.stack.synapse.register(f"root{secrets.token_hex(4)}", admin=True)
    address = (
        f"{world.stack.synapse.url}/_synapse/admin/v1/users/{world.bot.user_id}/override_ratelimit"
    )
    headers = {"Authorization": f"Bearer {admin.access_token}"}
    async with aiohttp.ClientSession(headers=headers) as http:
        send = http.post(address, json=limit) if limit else http.delete(address)
        async with send as response:
            response.raise_for_status()


async def test_the_homeservers_rate_limit_loses_nothing_and_doubles_nothing(
    world: World, ada: Person
) -> None:
    answer = "\n\n".join(f"Paragraph {number}: " + "word " * 1500 for number in range(8))
    world.on("chat", text(f"{answer}\n\nThe end."))
    refused = world.log().count("with status 429")
    await limit_bot(world, {"messages_per_second": 1, "burst_count": 1})
    try:
        event_id = await ada.tell_silently("!ask all of it")
        parts = await all_replies(ada, event_id, "The end.")
    finally:
        await limit_bot(world, {})
    assert world.log().count("with status 429") > refused
    assert "".join("".join(part.body for part in parts).split()) == "".join(
        f"{answer}The end.".split()
    )


async def test_typing_stops_after_an_error_too(world: World, ada: Person) -> None:
    world.on("chat", http_error(401))
    gate = world.hold("chat")
    event_id = await ada.tell_silently("!ask hello")
    bot = world.bot.user_id
    await ada.member.wait_until(lambda: any(bot in n.user_ids for n in ada.member.typing))
    gate.release()
    await ada.member.wait_for_reply(event_id)
    await ada.member.wait_until(lambda: bot not in ada.member.typing[-1].user_ids)


async def test_typing_goes_on_until_the_last_of_two_answers(world: World, ada: Person) -> None:
    bot = world.bot.user_id
    slow = world.hold("chat")
    first = await ada.tell_silently("!ask one")
    await world.requested("chat")
    await ada.member.wait_until(lambda: any(bot in n.user_ids for n in ada.member.typing))
    # Another turn ends while the first is at work.
    await ada.tell("!memories")
    assert bot in ada.member.typing[-1].user_ids
    slow.release()
    await ada.member.wait_for_reply(first)
    await ada.member.wait_until(lambda: bot not in ada.member.typing[-1].user_ids)


_limits = itertools.count(1)


async def room_now(person: Person) -> Mapping[str, Any]:
    """Return what the homeserver tells this person's client of a room, as if just started.

    Synapse keeps answers to a starting client for minutes and gives the same one to the same
    question, hence another limit each time.
    """
    question = {"room": {"timeline": {"limit": next(_limits)}}}
    data = await person.member.client.sync(timeout=0, filter_id=FilterID(json.dumps(question)))
    assert isinstance(data, dict)
    room: Mapping[str, Any] = data["rooms"]["join"][person.room_id]
    return room


async def receipts(person: Person) -> Mapping[str, Any]:
    """Return the read receipts in a room: whose, by event."""
    found: dict[str, Any] = {}
    for event in (await room_now(person))["ephemeral"]["events"]:
        if event["type"] == "m.receipt":
            found.update(event["content"])
    return found


async def notifications(person: Person) -> int:
    """Return how many messages in a room the homeserver would notify this person of."""
    count = (await room_now(person))["unread_notifications"]["notification_count"]
    assert isinstance(count, int)
    return count


async def test_answers_notify_nobody(world: World, pair: tuple[Person, Person]) -> None:
    ada, bob = pair
    await ada.tell("!ask Am I here?")
    # Bob is notified of the question, nobody of the answer.
    assert (await notifications(ada), await notifications(bob)) == (0, 1)


async def test_what_is_answered_is_marked_as_read(world: World, ada: Person) -> None:
    event_id = await ada.tell_silently("!ask hello")
    await ada.member.wait_for_reply(event_id)

    async def marked() -> bool:
        return world.bot.user_id in (await receipts(ada)).get(event_id, {}).get("m.read", {})

    await wait_until(marked, SECONDS, "the read receipt")


async def test_a_bot_that_is_removed_in_mid_turn_ends_quietly(world: World, ada: Person) -> None:
    errors = world.log().count("Internal error")
    gate = world.hold("chat")
    event_id = await ada.tell_silently("!ask I live in Berlin.")
    await world.requested("chat")
    await ada.member.client.kick_user(RoomID(ada.room_id), UserID(world.bot.user_id))
    gate.release()

    async def ended() -> bool:
        return f"No answer to {event_id}" in world.log()

    await wait_until(ended, SECONDS, "the turn to end")
    assert world.log().count("Internal error") == errors
    # No answer was sent, so nothing is remembered (M1).
    other = await world.person("other")
    await other.tell("!ask I live in Hamburg.")
    await other.until(candidates={"Lives in Hamburg": 1})
    assert len(world.seen("extraction")) == 1
    # Back in the room, it answers again.
    await ada.member.client.invite_user(RoomID(ada.room_id), UserID(world.bot.user_id))
    await ada.member.wait_until(
        lambda: (
            [
                event.content["membership"]
                for event in ada.member.events
                if event.room_id == ada.room_id and event.state_key == world.bot.user_id
            ][-1]
            == "join"
        )
    )
    await ada.tell("!ask hello again")
