"""Pictures and stories, in real rooms: what people see, and that nothing of it is remembered."""

from __future__ import annotations

import json
import struct
import sys
import zlib
from typing import Any

import pytest

from devstack.member import SeenEvent
from devstack.process import wait_until
from devstack.scripted_model import (
    Kind,
    Reply,
    error_in_200,
    http_error,
    in_turn,
    persona_reply,
    picture,
    picture_at,
    raw,
    reply_json,
    text,
)
from devstack.scripted_model.paintings import HEIGHT, WIDTH, paint

from .world import SECONDS, Person, World

LIGHTHOUSE = "A lighthouse at night"


def messages(person: Person, msgtype: str | None = None) -> list[SeenEvent]:
    """What the bot has sent in the person's room, edits aside."""
    return [
        event
        for event in person.member.events
        if event.room_id == person.room_id
        and event.sender == person.world.bot.user_id
        and event.type == "m.room.message"
        and not event.is_edit
        and msgtype in {None, event.content.get("msgtype")}
    ]


async def told(person: Person, wish: str, **content: object) -> tuple[SeenEvent, SeenEvent]:
    """Ask for a story; return its line of status as sent and as it was edited last."""
    status = await person.tell(f"!story {wish}", **content)
    last = await person.member.wait_for(
        lambda event: (
            event.is_edit
            and event.relation["event_id"] == status.event_id
            and not event.body.endswith("…")
        ),
        SECONDS,
    )
    return status, last


# --- draw --------------------------------------------------------------------------------------


async def test_a_picture_with_size_type_and_a_text_alternative(world: World, ada: Person) -> None:
    sent = await ada.tell(f"!draw {LIGHTHOUSE}")
    painting = paint(LIGHTHOUSE)
    assert sent.content["msgtype"] == "m.image"
    assert sent.content["info"] == {
        "mimetype": "image/png",
        "size": len(painting),
        "w": WIDTH,
        "h": HEIGHT,
    }
    assert sent.body == LIGHTHOUSE
    assert sent.content["filename"] == "picture.png"
    assert sent.content["m.mentions"] == {"user_ids": [ada.user_id]}
    assert await ada.member.client.download_media(sent.content["url"]) == painting
    (request,) = world.seen("image")
    assert request.body["prompt"] == LIGHTHOUSE


async def test_a_picture_at_an_address_is_fetched(world: World, ada: Person) -> None:
    world.on("image", picture_at(f"{world.model.base_url}/pictures/sea"))
    sent = await ada.tell("!draw the sea")
    assert await ada.member.client.download_media(sent.content["url"]) == paint("sea")


async def test_a_picture_stays_in_the_askers_thread(ada: Person) -> None:
    root = await ada.tell_silently("the thread's root")
    relation = {"rel_type": "m.thread", "event_id": root}
    sent = await ada.tell("!draw a tree", **{"m.relates_to": relation})
    assert (sent.relation["rel_type"], sent.relation["event_id"]) == ("m.thread", root)


def padded_png(size: int) -> bytes:
    """A whole picture with so many bytes of comment in it."""
    painting, comment = paint("a tree"), b"tEXt" + bytes(size)
    chunk = struct.pack(">I", size) + comment + struct.pack(">I", zlib.crc32(comment))
    return painting[:-12] + chunk + painting[-12:]


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (http_error(400, {"error": {"code": "content_policy_violation"}}), "refused to draw"),
        (http_error(400, {"error": {"code": "moderation_blocked"}}), "refused to draw"),
        (http_error(400), "did not accept the request"),
        (http_error(404), "does not know the model"),
        (http_error(405), "does not draw"),
        (http_error(401), "refuses the bot's API key"),
        (error_in_200(), "No usable picture"),
        (picture(b"GIF89a is what I am not"), "No usable picture"),
        (picture(paint("a tree")[:-20]), "No usable picture"),
        (raw('{"data": []}'), "No usable picture"),
        (picture_at("file:///etc/passwd"), "No usable picture"),
        (picture_at("http://127.0.0.1:1/picture.png"), "No usable picture"),
        (picture(padded_png(3 * 2**20)), "too much for this homeserver; 2 MiB is the most"),
    ],
)
async def test_each_failure_has_its_sentence(
    reply: Reply, sentence: str, world: World, ada: Person
) -> None:
    world.on("image", reply)
    answer = await ada.tell("!draw a tree")
    assert sentence in answer.body
    assert "\n" not in answer.body
    assert messages(ada, "m.image") == []


async def test_without_an_image_model_nothing_is_drawn_and_stories_have_no_pictures(
    world: World, ada: Person
) -> None:
    await world.configure(imageModel="")
    assert "imageModel" in (await ada.tell("!draw a tree")).body
    _, last = await told(ada, "a tree")
    assert "is told." in last.body
    assert world.seen("image") == []


async def test_draw_and_story_have_limits_of_their_own(world: World, ada: Person) -> None:
    await world.configure(
        drawRateLimitCount=1, drawRateLimitWindow=600, storyCooldownSeconds=600, imageModel=""
    )
    await ada.tell("!draw a tree")
    assert "Please try again in" in (await ada.tell("!draw a tree")).body
    await told(ada, "a tree")
    assert "the next in" in (await ada.tell("!story a tree")).body
    await ada.tell("!ask hello")
    assert (await ada.tell("!draw")).body == "Usage: !draw <text>"
    assert (await ada.tell("!story")).body == "Usage: !story <text>"
    assert len(world.seen("story")) == 1


# --- story -------------------------------------------------------------------------------------


async def test_a_story_is_a_thread_of_texts_and_pictures_with_one_line_of_status(
    world: World, ada: Person
) -> None:
    status, last = await told(ada, "a lighthouse keeper")
    asked = status.replies_to
    assert status.body == "Writing the story …"
    assert last.content["m.new_content"]["body"].endswith("is told, with 3 pictures.")
    story = messages(ada)
    assert [event.content["msgtype"] for event in story] == [
        "m.notice",
        *(["m.notice", "m.image"] * 3),
    ]
    before = asked
    for event in story:
        assert event.relation == {
            "rel_type": "m.thread",
            "event_id": asked,
            "is_falling_back": True,
            "m.in_reply_to": {"event_id": before},
        }
        before = event.event_id
    # Only the first message rings a bell.
    assert [event.content["m.mentions"]["user_ids"] for event in story] == [
        [ada.user_id],
        *([[]] * 6),
    ]
    assert "<h3>The only story I know</h3>" in story[1].content["formatted_body"]
    assert story[2].body == "a lighthouse keeper, in the morning"
    edits = [event for event in ada.member.events if event.is_edit]
    assert len(edits) == 2
    assert len(world.seen("image")) == 3


async def test_a_story_that_is_asked_for_in_a_thread_stays_there(ada: Person) -> None:
    root = await ada.tell_silently("!of another bot")
    await told(ada, "a tree", **{"m.relates_to": {"rel_type": "m.thread", "event_id": root}})
    assert {event.relation["event_id"] for event in messages(ada)} == {root}


async def test_a_picture_that_fails_leaves_the_story_whole(world: World, ada: Person) -> None:
    refusal = http_error(400, {"error": {"code": "content_policy_violation"}})
    world.on("image", in_turn(persona_reply, refusal, persona_reply))
    _, last = await told(ada, "a tree")
    assert last.content["m.new_content"]["body"].endswith(
        "is told, with 2 pictures; 1 picture could not be drawn. The model refused to draw that."
    )
    assert len(messages(ada, "m.notice")) == 4
    assert len(messages(ada, "m.image")) == 2


async def test_a_model_that_answers_in_prose_has_told_a_story_too(
    world: World, ada: Person
) -> None:
    world.on("story", text("Once upon a time there was **a tree**."))
    _, last = await told(ada, "a tree")
    assert last.content["m.new_content"]["body"] == "The story is told."
    assert messages(ada)[-1].body == "Once upon a time there was **a tree**."


async def test_no_story_says_why(world: World, ada: Person) -> None:
    world.on("story", http_error(401))
    _, last = await told(ada, "a tree")
    assert "refuses the bot's API key" in last.body
    world.on("story", text('{"title": "cut o'))
    _, last = await told(ada, "a tree")
    assert "could not be read" in last.body


@pytest.mark.parametrize("kind", ["story", "image"])
async def test_a_story_that_a_stop_of_the_plugin_interrupts_says_so(
    kind: Kind, world: World, ada: Person
) -> None:
    gate = world.hold(kind)
    status = await ada.tell("!story a tree")

    async def is_in_the_middle() -> bool:
        return len(gate.waiting) > 0

    await wait_until(is_in_the_middle, SECONDS, "the model to be asked")
    await world.stack.admin.reload_plugin("dev.llmbot")
    last = await ada.member.wait_for(
        lambda event: event.is_edit and "interrupted" in event.body, SECONDS
    )
    assert last.relation["event_id"] == status.event_id
    await world.begin()
    assert (await told(ada, "a tree"))[1].body.endswith("is told, with 3 pictures.")


async def test_a_story_has_at_most_so_many_pictures(world: World, ada: Person) -> None:
    await world.configure(storyMaxImages=1)
    parts = [{"text": f"Part {n}.", "picture": "a tree"} for n in range(3)]
    world.on("story", reply_json({"title": "Trees", "parts": parts}))
    await told(ada, "trees")
    assert len(messages(ada, "m.image")) == 1
    assert world.seen("story")[0].payload == {"wish": "trees", "max_pictures": 1}


# --- the memory --------------------------------------------------------------------------------


async def test_draw_and_story_never_make_a_memory_request_and_a_verse_turn_makes_one(
    world: World, ada: Person
) -> None:
    scene = {"enabled": True, "scene": "A harbour."}
    for verse in ({"enabled": False, "scene": ""}, scene):
        await ada.member.send_state(ada.room_id, "dev.llmbot.verse", verse)
        await ada.tell("!draw I live in Berlin and remember that I like tea")
        await told(ada, "I live in Berlin and remember that I like tea")
    # The next turn's request is the first one, so none came before it.
    await ada.tell("!ask (I live in Berlin)")
    await ada.until(candidates={"Lives in Berlin": 1}, memories=[])
    (request,) = world.seen("extraction")
    assert request.payload["user_message"] == "(I live in Berlin)"
    assert world.seen("cleanup") == []
    assert all("Lives in Berlin" not in json.dumps(r.body) for r in world.seen("story"))


# --- encrypted rooms ---------------------------------------------------------------------------


@pytest.mark.skipif(
    sys.version_info >= (3, 13),
    reason="python-olm, which encrypts, has no wheel for this Python and needs a compiler there",
)
async def test_verse_draw_and_story_in_an_encrypted_room(world: World) -> None:
    from mautrix.crypto.attachments import decrypt_attachment  # noqa: PLC0415

    from devstack.encrypted_member import EncryptedMember  # noqa: PLC0415 - needs python-olm

    account = await world.stack.synapse.register("eve-pictures")
    async with EncryptedMember(world.stack.synapse.url, account) as eve:
        room_id = await eve.create_room(world.bot.user_id)

        async def bot_is_in() -> bool:
            return world.bot.user_id in await eve.client.get_joined_members(room_id)

        await wait_until(bot_is_in, SECONDS, "the bot to join")

        async def shown(content: Any) -> bytes:  # noqa: ANN401 - mautrix's
            assert content.url is None
            ciphertext = await eve.client.download_media(content.file.url)
            assert b"PNG" not in ciphertext[:16]
            key = content.file
            return bytes(decrypt_attachment(ciphertext, key.key.key, key.hashes["sha256"], key.iv))

        drawn = await eve.wait_for_reply(await eve.say(room_id, f"!draw {LIGHTHOUSE}"))
        assert str(drawn.content.msgtype) == "m.image"
        assert drawn.content.info.mimetype == "image/png"
        assert await shown(drawn.content) == paint(LIGHTHOUSE)
        stored = await eve.client.api.request(
            "GET", f"/_matrix/client/v3/rooms/{room_id}/event/{drawn.event_id}"
        )
        assert stored["type"] == "m.room.encrypted"
        assert "lighthouse" not in str(stored)

        asked = await eve.say(room_id, "!story a tree")

        def story() -> list[Any]:
            return [m.content for m in eve.messages if m.content.get_thread_parent() == asked]

        async def is_told() -> bool:
            edits = [m for m in eve.messages if m.content.get_edit()]
            return any("with 3 pictures" in m.content.body for m in edits)

        await wait_until(is_told, SECONDS, "the story")
        pictures = [c for c in story() if str(c.msgtype) == "m.image"]
        assert len(story()) == 7
        assert await shown(pictures[-1]) == paint("a tree, at night")

        await eve.client.send_state_event(
            room_id, "dev.llmbot.verse", {"enabled": True, "scene": "A harbour."}
        )
        scene = await eve.wait_for_reply(await eve.say(room_id, "!verse"))
        assert "A harbour." in scene.content.body
        said = await eve.say(room_id, '!ask "I live at sea" (I live in Berlin)')
        assert "harbour" in (await eve.wait_for_reply(said)).content.body

        async def noted() -> bool:
            query = "SELECT fact FROM memory_candidates WHERE user_id = $1"
            facts = [row["fact"] for row in await world.sql.fetch(query, eve.user_id)]
            return facts == ["Lives in Berlin"]

        await wait_until(noted, SECONDS, "the candidate")
        assert len(world.seen("extraction")) == 1
