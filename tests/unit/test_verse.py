"""A room's scene, over a homeserver that is a table."""

from __future__ import annotations

import logging

import pytest

from llmbot import texts
from llmbot.room import Rooms
from llmbot.verse import MAX_SCENE_LENGTH, Verses

from .test_room import ADA, BOB, ROOM, Homeserver, event

VERSE = "dev.llmbot.verse"


@pytest.fixture
def homeserver() -> Homeserver:
    made = Homeserver()
    made.make_room(ROOM)
    return made


@pytest.fixture
def verses(homeserver: Homeserver) -> Verses:
    log = logging.getLogger("test_verse")
    return Verses(Rooms(homeserver, log), log)


@pytest.mark.parametrize(
    ("content", "scene"),
    [
        ({"enabled": True, "scene": "A pub."}, "A pub."),
        ({"enabled": True, "scene": "  A pub.\n"}, "A pub."),
        ({"enabled": True, "scene": "x" * 9999}, "x" * MAX_SCENE_LENGTH),
        ({"enabled": False, "scene": "A pub."}, ""),
        ({"enabled": True, "scene": " "}, ""),
        ({"enabled": True}, ""),
        ({"enabled": True, "scene": ["A pub."]}, ""),
        ({"enabled": "true", "scene": "A pub."}, ""),
        ({"enabled": 1, "scene": "A pub."}, ""),
        ({"scene": "A pub."}, ""),
        ({}, ""),
    ],
)
async def test_a_scene_is_played_where_it_is_switched_on_and_has_a_text(
    content: dict[str, object], scene: str, homeserver: Homeserver, verses: Verses
) -> None:
    assert await verses.scene(ROOM) == ""
    homeserver.set_state(ROOM, VERSE, content)
    verses.on_verse_event(event())
    assert await verses.scene(ROOM) == scene


async def test_it_is_read_once_and_again_when_something_changes(
    homeserver: Homeserver, verses: Verses
) -> None:
    for _ in range(3):
        await verses.scene(ROOM)
    assert homeserver.requests["state"] == 1
    verses.on_redaction(event())
    await verses.scene(ROOM)
    assert homeserver.requests["state"] == 2


async def test_a_scene_that_cannot_be_read_is_none_and_read_anew(
    homeserver: Homeserver, verses: Verses
) -> None:
    homeserver.set_state(ROOM, VERSE, {"enabled": True, "scene": "A pub."})
    homeserver.down = True
    assert await verses.scene(ROOM) == ""
    homeserver.down = False
    assert await verses.scene(ROOM) == "A pub."


async def test_begin_show_end_and_go_on(homeserver: Homeserver, verses: Verses) -> None:
    assert await verses.run(ADA, ROOM, "") == texts.verse("")
    assert await verses.run(ADA, ROOM, "on") == texts.VERSE_USAGE
    assert await verses.run(ADA, ROOM, "on\nA pub.\nRain.") == texts.verse("A pub.\nRain.")
    assert homeserver.state[ROOM, VERSE, ""]["content"] == {
        "enabled": True,
        "scene": "A pub.\nRain.",
    }
    assert "A pub.\nRain." in (await verses.run(BOB, ROOM, "")).plain
    assert await verses.run(ADA, ROOM, "OFF") == texts.VERSE_OFF
    assert await verses.scene(ROOM) == ""
    assert await verses.run(ADA, ROOM, "on") == texts.verse("A pub.\nRain.")


async def test_setting_needs_the_power_to_send_the_state_event(
    homeserver: Homeserver, verses: Verses
) -> None:
    assert await verses.run(BOB, ROOM, "on A pub.") == texts.VERSE_SENDER_LACKS_POWER
    homeserver.bot_may_send = False
    assert await verses.run(ADA, ROOM, "on A pub.") == texts.VERSE_BOT_LACKS_POWER
    assert await verses.scene(ROOM) == ""


@pytest.mark.parametrize("text", ["off now", "begin", "A pub.", "onward"])
async def test_anything_else_gets_the_usage(text: str, verses: Verses) -> None:
    assert await verses.run(ADA, ROOM, text) == texts.VERSE_USAGE


async def test_a_scene_has_a_limit(verses: Verses) -> None:
    assert await verses.run(ADA, ROOM, f"on {'x' * 2001}") == texts.scene_too_long(2001, 2000)
    assert await verses.run(ADA, ROOM, f"on {'x' * 2000}") == texts.verse("x" * 2000)
