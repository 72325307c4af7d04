"""From a message in Matrix to an answer in Matrix and a row in PostgreSQL."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from devstack.build import build
from devstack.newer import newer
from devstack.process import StackError, wait_until
from devstack.scripted_model import Gate, Reply, http_error, reply_json, text, tool_calls
from devstack.stack import Stack

from .world import Person, World

# What maubot or asyncio say of a task or a connection that nobody ended.
TRACES = ("leaking", "Task was destroyed", "never retrieved", "never awaited")


async def holds(gate: Gate, count: int) -> bool:
    return len(gate.waiting) == count


def found(fact: str, evidence: str) -> Reply:
    return reply_json({"new": [{"fact": fact, "evidence": evidence}]})


async def test_said_once_a_candidate_said_again_a_memory_then_deleted(
    world: World, ada: Person
) -> None:
    answer = await ada.tell("!ask Hello! I work as a mechanical engineer.")
    assert answer.content["msgtype"] == "m.notice"
    assert answer.content["m.mentions"] == {"user_ids": [ada.user_id]}
    await ada.until(candidates={"Works as a mechanical engineer": 1}, memories=[])
    assert "do not remember" in (await ada.tell("!memories")).body

    await ada.tell("!ask I'm a mechanical engineer, which books are for me?")
    await ada.until(candidates={}, memories=["Works as a mechanical engineer"])
    listing = (await ada.tell("!memories")).body
    assert "Works as a mechanical engineer" in listing

    memory_id = await world.sql.fetchval("SELECT id FROM memories WHERE user_id = $1", ada.user_id)
    assert f"{memory_id}: " in listing
    assert (await ada.tell(f"!memories del {memory_id}")).body == f"Deleted: {memory_id}."
    await ada.until(memories=[])


async def test_recall_reaches_the_prompt_after_a_constant_system_prompt(
    world: World, ada: Person
) -> None:
    await ada.tell("!ask Remember that I am allergic to nuts.")
    await ada.until(memories=["Is allergic to nuts"])
    await ada.tell("!ask What may I eat?")
    requests = world.seen("chat")
    assert requests[0].messages[0] == requests[-1].messages[0]
    assert "Is allergic to nuts" not in requests[0].system_prompt
    assert '"fact": "Is allergic to nuts"' in requests[-1].messages[1]["content"]


@pytest.mark.parametrize("message", ["!ask\nwhat\n\nis this?", "!ASK what\n\nis this?"])
async def test_a_prompt_may_start_on_the_next_line_and_span_lines(
    message: str, world: World, ada: Person
) -> None:
    await ada.tell(message)
    assert world.seen("chat")[0].user_message == "what\n\nis this?"


async def test_save_memory_by_tool_skips_the_candidate_stage(world: World, ada: Person) -> None:
    call = {"fact": "Prefers short answers", "evidence": "I prefer short answers"}
    world.on("chat", text("Will do."))
    world.on("chat", tool_calls([("save_memory", call)]), times=1)
    world.on("extraction", reply_json({}))
    assert (await ada.tell("!ask Remember: I prefer short answers.")).body == "Will do."
    assert await ada.rows("memories") == ["Prefers short answers"]


async def test_two_users_in_one_room_have_their_own_memories(world: World, ada: Person) -> None:
    bob_member = await world.stack.member(f"bob-of-{ada.member.account.user_id[1:5]}")
    await ada.member.client.invite_user(ada.room_id, bob_member.user_id)
    await bob_member.join(ada.room_id)
    bob = Person(world, bob_member, ada.room_id)
    await ada.tell("!ask Remember that I live in Berlin.")
    await ada.until(memories=["Lives in Berlin"])
    assert "do not remember" in (await bob.tell("!memories")).body
    memory_id = await world.sql.fetchval("SELECT id FROM memories WHERE user_id = $1", ada.user_id)
    foreign = (await bob.tell(f"!memories del {memory_id}")).body
    absent = (await bob.tell("!memories del 999999")).body
    assert foreign.replace(str(memory_id), "999999") == absent
    assert await ada.rows("memories") == ["Lives in Berlin"]
    # The same person in another room is the same user.
    other_room = await ada.member.create_room(world.bot.user_id)
    await ada.member.wait_for_member(other_room, world.bot.user_id)
    there = Person(world, ada.member, other_room)
    assert "Lives in Berlin" in (await there.tell("!memories")).body


async def test_m16_two_parallel_asks_with_the_same_new_fact(world: World, ada: Person) -> None:
    await world.configure(memoryPromotionThreshold=3)
    world.on("extraction", found("Lives in Berlin", "I live in Berlin"))
    gate = world.hold("extraction")
    await asyncio.gather(ada.tell("!ask I live in Berlin."), ada.tell("!ask I live in Berlin!"))
    await world.requested("extraction", 2)
    gate.release()
    await ada.until(candidates={"Lives in Berlin": 2}, memories=[])


async def test_m1_the_answer_does_not_wait_for_the_memory(world: World, ada: Person) -> None:
    world.hold("extraction")
    await ada.tell("!ask I live in Berlin.")
    await world.requested("extraction")
    await ada.tell("!ask And again: I live in Berlin.")


async def test_m17_a_memory_that_fails_leaves_the_answer_alone(world: World, ada: Person) -> None:
    world.on("extraction", http_error(401))
    world.on("chat", text("Hello!"))
    assert (await ada.tell("!ask I live in Berlin.")).body == "Hello!"
    await world.requested("extraction")
    assert (await ada.tell("!ask I live in Berlin.")).body == "Hello!"
    assert await ada.rows("memory_candidates") == []


async def test_m1_errors_start_no_pass(world: World, ada: Person) -> None:
    world.on("chat", http_error(401), times=1)
    assert "refuses the bot's API key" in (await ada.tell("!ask I live in Berlin.")).body
    world.on("chat", text(""), times=1)
    assert "empty answer" in (await ada.tell("!ask I live in Berlin.")).body
    # The next pass is the first.
    await ada.tell("!ask Hello there")
    (request,) = await world.requested("extraction")
    assert request.payload["user_message"] == "Hello there"


async def test_m2_memory_off_in_a_room(world: World, ada: Person) -> None:
    switch = "dev.llmbot.settings"
    for closed in ({"memoryEnabled": False}, {"memoryEnabled": "yes"}, {"memoryEnabled": None}):
        await ada.member.send_state(ada.room_id, switch, closed)
        await ada.tell("!ask I live in Berlin.")
    await ada.tell("!ask Remember that I like tea.")
    await ada.until(memories=["Likes tea"], candidates={})
    assert world.seen("extraction") == []
    await ada.member.send_state(ada.room_id, switch, {"memoryEnabled": True})
    await ada.tell("!ask I live in Berlin.")
    await ada.until(candidates={"Lives in Berlin": 1})


async def test_m3_at_the_cap_no_extraction_request_reaches_the_model(
    world: World, ada: Person
) -> None:
    await world.configure(memoryMaxPerUser=1)
    await ada.tell("!ask Remember that I like tea.")
    await ada.until(memories=["Likes tea"])
    await ada.tell("!ask I live in Berlin.")
    await world.configure(memoryMaxPerUser=2)
    await ada.tell("!ask Just a question?")
    await world.requested("extraction")
    assert [r.payload["user_message"] for r in world.seen("extraction")] == ["Just a question?"]


async def test_wrong_use_gets_one_usage_line(world: World, ada: Person) -> None:
    for message in (
        "!ask",
        "!memories nonsense",
        "!memories del",
        "!memories del x",
        "!memories edit 1",
        "!memories edit x y",
        "!memories clear all",
        "!memories 1 2",
    ):
        answer = (await ada.tell(message)).body
        assert answer.startswith("Usage: !"), message
        assert "\n" not in answer
    assert world.seen("chat") == []


async def test_edits_notices_and_other_bots_get_no_answer(world: World, ada: Person) -> None:
    event_id = await ada.tell_silently("!frobnicate")
    await ada.member.edit(ada.room_id, event_id, "!ask edited")
    await ada.tell_silently("!ask as a notice", msgtype="m.notice")
    await ada.tell_silently("!ask as an emote", msgtype="m.emote")
    await ada.tell("!ask for real")
    assert [request.user_message for request in world.seen("chat")] == ["for real"]


async def test_a_reply_in_a_thread_stays_in_the_thread(ada: Person) -> None:
    root = await ada.tell_silently("the thread's root")
    relation = {"rel_type": "m.thread", "event_id": root}
    answer = await ada.tell("!ask hello", **{"m.relates_to": relation})
    assert answer.relation["rel_type"] == "m.thread"
    assert answer.relation["event_id"] == root


async def test_typing_shows_while_the_model_works_and_stops(world: World, ada: Person) -> None:
    gate = world.hold("chat")
    event_id = await ada.tell_silently("!ask hello")
    bot = world.bot.user_id
    await ada.member.wait_until(lambda: any(bot in n.user_ids for n in ada.member.typing))
    gate.release()
    await ada.member.wait_for_reply(event_id)
    await ada.member.wait_until(lambda: bot not in ada.member.typing[-1].user_ids)


async def test_an_unusable_setting_is_named_and_the_last_good_one_stays(
    world: World, ada: Person
) -> None:
    await world.configure(memoryPromotionThreshold=3)
    await world.configure(memoryPromotionThreshold="two")
    assert "memoryPromotionThreshold" in world.log()
    assert "'two'" in world.log()
    world.on("extraction", found("Lives in Berlin", "I live in Berlin"))
    for mention in (1, 2):
        await ada.tell("!ask I live in Berlin.")
        await ada.until(candidates={"Lives in Berlin": mention}, memories=[])
    await ada.tell("!ask I live in Berlin.")
    await ada.until(candidates={}, memories=["Lives in Berlin"])


async def test_m16_killed_between_reading_and_applying_nothing_is_half_done(
    world: World, ada: Person
) -> None:
    world.on("extraction", found("Lives in Berlin", "I live in Berlin"))
    await ada.tell("!ask I live in Berlin.")
    await ada.until(candidates={"Lives in Berlin": 1})
    world.hold("extraction")
    await ada.tell("!ask I live in Berlin.")
    await world.requested("extraction", 2)
    await world.stack.restart_maubot(kill=True)
    assert await ada.candidates() == {"Lives in Berlin": 1}
    await world.begin()
    world.on("extraction", found("Lives in Berlin", "I live in Berlin"))
    await ada.tell("!ask I live in Berlin.")
    await ada.until(candidates={}, memories=["Lives in Berlin"])


async def test_postgresql_stopped_in_the_middle_of_a_pass(world: World, ada: Person) -> None:
    await ada.tell("!ask Remember that I like tea.")
    await ada.until(memories=["Likes tea"])
    await world.requested("extraction")
    gate = world.hold("extraction")
    await ada.tell("!ask I live in Berlin.")
    await world.requested("extraction", 2)
    postgres = world.stack.postgres
    assert postgres is not None
    await world.sql.close()
    await postgres.stop()
    gate.release()
    failed = await ada.tell("!ask Are you there?")
    assert failed.body.startswith("Internal error")
    await postgres.start()
    await world.reconnect()

    async def answers() -> bool:
        return "Likes tea" in (await ada.tell("!memories")).body

    await wait_until(answers, 20, "the bot to find its database again")
    assert await ada.candidates() == {}


@pytest.mark.parametrize("is_update", [True, False], ids=["update", "reload"])
async def test_a_plugin_that_is_replaced_in_the_middle_of_turns_and_passes_ends_cleanly(
    is_update: bool, world: World, ada: Person, tmp_path: Path
) -> None:
    await ada.tell("!ask I live in Berlin.")
    await ada.until(candidates={"Lives in Berlin": 1})
    await ada.tell("!ask Remember that I like jazz.")
    await ada.until(memories=["Likes jazz"])
    await world.requested("extraction", 2)
    passes = world.hold("extraction")
    await ada.tell("!ask I like tea.")
    await wait_until(lambda: holds(passes, 1), 20, "a pass in the middle")
    turns = world.hold("chat")
    for _ in range(5):
        await ada.tell_silently("!ask Are you there?")
    await wait_until(lambda: holds(turns, 5), 20, "turns in the middle")
    log_before = len(world.log())
    admin, mbp = world.stack.admin, build(tmp_path)
    if is_update:
        uploaded = await admin.upload_plugin(newer(mbp, tmp_path, "98.0.0"))
        assert uploaded["version"] == "98.0.0"
    else:
        await admin.reload_plugin("dev.llmbot")
    # The model's server sees that nobody waits for its answers any more.
    await wait_until(lambda: holds(passes, 0), 20, "the pass to end")
    await wait_until(lambda: holds(turns, 0), 20, "the turns to end")
    assert await ada.candidates() == {"Lives in Berlin": 1}
    assert await ada.rows("memories") == ["Likes jazz"]
    await world.begin()
    await ada.tell("!ask I live in Berlin.")
    await ada.until(candidates={}, memories=["Likes jazz", "Lives in Berlin"])
    await admin.upload_plugin(mbp)
    log = world.log()[log_before:]
    for trace in TRACES:
        assert trace not in log
    assert "[ERROR@" not in log


NEWER_TABLES = """

@upgrade_table.register(description="Something that only a newer llmbot knows")
async def upgrade_v3(connection: Connection, scheme: Scheme) -> None:
    await connection.execute("ALTER TABLE memories ADD COLUMN mood text")
"""


async def test_an_older_plugin_refuses_newer_tables_in_one_line_and_leaves_them_as_they_are(
    world: World, ada: Person, tmp_path: Path
) -> None:
    await ada.tell("!ask Remember that I like tea.")
    await ada.until(memories=["Likes tea"])
    admin, mbp, instance_id = world.stack.admin, build(tmp_path), world.bot.instance_id
    update = newer(mbp, tmp_path, "99.0.0", NEWER_TABLES)
    await admin.upload_plugin(update)
    assert "Likes tea" in (await ada.tell("!memories")).body
    log_before = len(world.log())
    await admin.upload_plugin(mbp)

    log = world.log()[log_before:]
    assert not (await admin.get_instance(instance_id))["started"]
    assert log.count("[ERROR@") == 1
    assert "NewerTablesError: A newer llmbot has used this instance's database" in log
    assert "v3 (latest known is v2). Nothing was changed." in log
    assert await world.sql.fetchval("SELECT version FROM version") == 3
    assert await ada.rows("memories") == ["Likes tea"]

    # What the line advises works.
    await admin.upload_plugin(update)
    await admin.put_instance(instance_id, enabled=True, started=True)
    assert "Likes tea" in (await ada.tell("!memories")).body
    await world.sql.execute(
        "ALTER TABLE memories DROP COLUMN mood; UPDATE version SET version = 2"
    )
    await admin.upload_plugin(mbp)
    assert "Likes tea" in (await ada.tell("!memories")).body


async def test_with_sqlite_it_does_not_start_and_says_which_setting_to_change(
    tmp_path: Path,
) -> None:
    mbp = build(tmp_path / "dist")
    async with Stack(tmp_path / "stack", scripted_model=False, sqlite_plugins=True) as stack:
        with pytest.raises(StackError):
            await stack.setup_bot(mbp, {})
        instance = await stack.admin.get_instance("llmbot")
        assert not instance["started"]
        log = stack.maubot.log
        assert log.count("[ERROR@") == 1
        assert "plugin_databases.postgres" in log
