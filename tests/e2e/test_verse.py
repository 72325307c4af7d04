"""A room's scene, between real people in a real room."""

from __future__ import annotations

import json

from devstack.scripted_model import reply_json, text

from .world import Person, World

VERSE = "dev.llmbot.verse"
SCENE = "A lighthouse in a storm."


async def test_a_moderator_sets_the_scene_and_all_play_in_it(world: World) -> None:
    bob = await world.person("bob")
    ada = await world.person(
        "ada", bob.member, power_levels={"users": {world.bot.user_id: 50}}, version="12"
    )
    bob = Person(world, bob.member, ada.room_id)
    assert "No scene" in (await bob.tell("!verse")).body
    assert "may not" in (await bob.tell(f"!verse on {SCENE}")).body
    assert SCENE in (await ada.tell(f"!verse on {SCENE}")).body
    assert SCENE in (await bob.tell("!verse")).body

    world.on("chat", text("The light goes out."))
    await ada.tell("!ask I climb the stairs.")
    await bob.tell("I follow her.", **{"m.mentions": {"user_ids": [world.bot.user_id]}})
    first, second = world.seen("chat")
    assert json.loads(second.messages[1]["content"])["scene"] == SCENE
    assert first.messages[0] == second.messages[0]
    # Bob's turn knows what Ada did: the scene is the room's.
    ada_name = ada.user_id[1:].partition(":")[0]
    assert second.messages[2:] == [
        {"role": "user", "content": f"{ada_name}: I climb the stairs."},
        {"role": "assistant", "content": "The light goes out."},
        {"role": "user", "content": "I follow her."},
    ]

    assert "No scene" in (await ada.tell("!verse off")).body
    await bob.tell("!ask What is the time?")
    last = world.seen("chat")[-1]
    assert "scene" not in json.loads(last.messages[1]["content"])
    assert [message["role"] for message in last.messages] == ["system", "system", "user"]


async def test_a_scene_has_its_own_model_and_a_prompt_on_top_of_the_assistants(
    world: World, ada: Person
) -> None:
    await ada.member.send_state(ada.room_id, VERSE, {"enabled": True, "scene": SCENE})
    await world.configure(assistantSystemPrompt="Be kind.", verseSystemPrompt="Narrate.")
    await ada.tell("!ask I knock.")
    assert world.seen("chat")[-1].system_prompt.startswith("Be kind.\n\nNarrate.")
    await ada.tell("!code knock")
    assert "Narrate." not in world.seen("chat")[-1].system_prompt
    await world.configure(verseModel="nowhere/poet")
    assert "nowhere" in (await ada.tell("!ask I knock.")).body


async def test_a_verse_turn_makes_one_memory_request_that_says_it_is_fiction(
    world: World, ada: Person
) -> None:
    await ada.member.send_state(ada.room_id, VERSE, {"enabled": True, "scene": SCENE})
    new = [
        {"fact": "Is a pirate", "evidence": "I am a pirate"},
        {"fact": "Works as a nurse", "evidence": "I work as a nurse"},
    ]
    world.on("extraction", reply_json({"new": new}))
    said = '"I am a pirate," I shout. (OOC: I work as a nurse.)'
    await ada.tell(f"!ask {said}")
    await ada.until(candidates={"Works as a nurse": 1}, memories=[])
    (request,) = world.seen("extraction")
    assert "fiction" in request.system_prompt
    assert request.payload["user_message"] == said
    assert set(request.payload) == {
        "known_memories",
        "candidates",
        "user_message",
        "assistant_reply",
    }
    assert world.seen("cleanup") == []
    await ada.member.send_state(ada.room_id, VERSE, {"enabled": False, "scene": SCENE})
    await ada.tell("!ask Hello again")
    assert "fiction" not in (await world.requested("extraction", 2))[-1].system_prompt


async def test_forget_takes_only_the_callers_part_out_of_the_scene(world: World) -> None:
    bob = await world.person("bob")
    ada = await world.person("ada", bob.member)
    bob = Person(world, bob.member, ada.room_id)
    await ada.member.send_state(ada.room_id, VERSE, {"enabled": True, "scene": SCENE})
    await ada.tell("!ask I climb the stairs.")
    await bob.tell("!ask I stay below.")
    await ada.tell("!forget")
    await bob.tell("!ask What happens?")
    told = json.dumps(world.seen("chat")[-1].messages)
    assert "I stay below." in told
    assert "I climb the stairs." not in told
