"""Each counter rises by what happened, and by nothing else: read as Prometheus reads them."""

from __future__ import annotations

import contextlib
import re
import struct
import zlib
from collections.abc import AsyncIterator

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from devstack.process import StackError, wait_until
from devstack.scripted_model import (
    Kind,
    Reply,
    hang,
    http_error,
    in_turn,
    persona_reply,
    picture,
    raw,
    reply_json,
    text,
    tool_calls,
)
from devstack.scripted_model.paintings import paint

from .world import SECONDS, Person, World

TOKEN = "a-token-of-16-or-more"
Counts = dict[str, float]


async def exposition(world: World) -> str:
    """Return what the bot tells Prometheus."""
    address = f"{world.stack.maubot.url}/_matrix/maubot/plugin/{world.bot.instance_id}/metrics"
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with aiohttp.ClientSession() as http, http.get(address, headers=headers) as response:
        assert response.status == 200
        return await response.text()


async def counts(world: World) -> Counts:
    """Return all counters by name, and those with a label by its value too."""
    return {
        " ".join([sample.name.removeprefix("llmbot_"), *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(await exposition(world))
        for sample in family.samples
        if sample.name != "llmbot_start_time_seconds"
    }


class Counted:
    """What has been counted since a moment in which the bot was at rest."""

    def __init__(self, world: World, before: Counts) -> None:
        self._world = world
        self._before = before

    async def __call__(self, **expected: int) -> None:
        """Wait until exactly this was counted; names as in the metrics, `__` for a space."""
        wanted = {name.replace("__", " "): float(count) for name, count in expected.items()}
        risen: Counts = {}

        async def is_so() -> bool:
            nonlocal risen
            now = await counts(self._world)
            risen = {
                name: now[name] - self._before[name]
                for name in now
                if now[name] > self._before[name]
            }
            return risen == wanted

        try:
            await wait_until(is_so, SECONDS, "the counters")
        except StackError:
            assert risen == wanted

    async def with_running(self, number: int) -> None:
        """Wait until so many passes are running."""

        async def is_so() -> bool:
            return (await counts(self._world))["passes_running"] == number

        await wait_until(is_so, SECONDS, f"{number} passes to be running")


@pytest.fixture
async def counted(world: World) -> Counted:
    """The counters from here on, when the passes of other tests are over."""
    await world.configure(metricsToken=TOKEN)
    await Counted(world, {}).with_running(0)
    return Counted(world, await counts(world))


@contextlib.asynccontextmanager
async def nothing_can_be_stored(world: World, table: str) -> AsyncIterator[None]:
    """Let the database refuse new rows in a table."""
    await world.sql.execute(
        f"ALTER TABLE {table} ADD CONSTRAINT out_of_order CHECK (false) NOT VALID"
    )
    try:
        yield
    finally:
        await world.sql.execute(f"ALTER TABLE {table} DROP CONSTRAINT out_of_order")


async def remember(ada: Person, *facts: str) -> None:
    """Put memories into the table."""
    for fact in facts:
        await ada.world.sql.execute(
            "INSERT INTO memories (user_id, fact) VALUES ($1, $2)", ada.user_id, fact
        )


# --- failures -----------------------------------------------------------------------------------


def png_of(size: int) -> bytes:
    """Return a whole picture with so many bytes of comment in it."""
    painting, comment = paint("a tree"), b"tEXt" + bytes(size)
    chunk = struct.pack(">I", size) + comment + struct.pack(">I", zlib.crc32(comment))
    return painting[:-12] + chunk + painting[-12:]


TOO_LARGE = picture(png_of(3 * 2**20))
BUSY = {"Retry-After": "0.01"}
NOT_TO_BE_DRAWN = http_error(400, {"error": {"code": "content_policy_violation"}})
ENDLESS = tool_calls([("no_such_tool", {})])


@pytest.mark.parametrize(
    ("command", "kind", "reply", "cause"),
    [
        ("!ask hello", "chat", http_error(401), "setup"),
        ("!ask hello", "chat", http_error(404), "setup"),
        ("!ask hello", "chat", http_error(429, headers=BUSY), "busy"),
        ("!ask hello", "chat", http_error(503, headers=BUSY), "busy"),
        ("!ask hello", "chat", text("", finish_reason="content_filter"), "refused"),
        ("!ask hello", "chat", text(""), "answer"),
        ("!ask hello", "chat", raw("<html>"), "answer"),
        ("!ask hello", "chat", http_error(400), "answer"),
        ("!ask hello", "chat", ENDLESS, "answer"),
        ("!code hello", "chat", http_error(401), "setup"),
        ("!draw a tree", "image", http_error(405), "setup"),
        ("!draw a tree", "image", NOT_TO_BE_DRAWN, "refused"),
        ("!draw a tree", "image", picture(b"no picture"), "answer"),
        ("!draw a tree", "image", TOO_LARGE, "upload"),
        ("!story a tree", "story", http_error(401), "setup"),
        ("!story a tree", "story", text('{"title": "cut o'), "answer"),
        ("!memories cleanup", "cleanup", http_error(401), "setup"),
        ("!memories cleanup", "cleanup", text("I would rather not."), "answer"),
        ("!memories cleanup", "cleanup", reply_json({"drop": [1, 2]}), "answer"),
    ],
)
async def test_what_people_are_told_has_failed_counts_once_under_its_cause(
    command: str, kind: Kind, reply: Reply, cause: str, world: World, ada: Person, counted: Counted
) -> None:
    await remember(ada, "Likes tea", "Likes green tea")
    world.on(kind, reply)
    await ada.tell(command)
    await counted(**{f"failures_total__{cause}": 1})


async def test_what_is_missing_in_the_config_counts_as_setup(
    world: World, ada: Person, counted: Counted
) -> None:
    for number, model in enumerate(["", "nowhere/model"], start=1):
        await world.configure(metricsToken=TOKEN, assistantModel=model)
        await ada.tell("!ask hello")
        await counted(failures_total__setup=number)


async def test_a_model_that_takes_too_long_counts_as_timeout(
    world: World, ada: Person, counted: Counted
) -> None:
    await world.configure(metricsToken=TOKEN, timeout=0.5)
    world.on("chat", hang())
    await ada.tell("!ask hello")
    await counted(failures_total__timeout=1)


async def test_each_picture_that_a_story_lacks_counts(
    world: World, ada: Person, counted: Counted
) -> None:
    world.on("image", in_turn(NOT_TO_BE_DRAWN, TOO_LARGE, persona_reply))
    await ada.tell("!story a tree")
    await counted(failures_total__refused=1, failures_total__upload=1)


@pytest.mark.parametrize(
    "reply", [http_error(401), http_error(503, headers=BUSY), raw("<html>"), text("no JSON")]
)
async def test_an_extraction_that_fails_counts_as_memory_whatever_failed(
    reply: Reply, world: World, ada: Person, counted: Counted
) -> None:
    world.on("extraction", reply)
    await ada.tell("!ask I live in Berlin.")
    # The pass is carried out all the same, with nothing found: it drops what is too old.
    await counted(turns_total=1, passes_total=1, failures_total__memory=1)


async def test_a_pass_that_cannot_store_counts_as_memory_and_not_as_a_pass(
    world: World, ada: Person, counted: Counted
) -> None:
    async with nothing_can_be_stored(world, "memory_candidates"):
        await ada.tell("!ask I live in Berlin.")
        await counted(turns_total=1, failures_total__memory=1)


async def test_a_cleanup_that_fails_behind_a_turn_counts_as_memory(
    world: World, ada: Person, counted: Counted
) -> None:
    await world.configure(metricsToken=TOKEN, memoryPromotionThreshold=1, memoryCleanupInterval=1)
    await remember(ada, "Likes tea")
    world.on("cleanup", reply_json({"drop": [1, 2]}))
    await ada.tell("!ask I live in Berlin.")
    await counted(turns_total=1, passes_total=1, promotions_total=1, failures_total__memory=1)


async def test_something_that_could_not_be_saved_counts_as_memory(
    world: World, ada: Person, counted: Counted
) -> None:
    save = tool_calls([("save_memory", {"fact": "Likes tea", "evidence": "I like tea"})])
    world.on("chat", in_turn(save, text("That did not work.")))
    world.on("extraction", reply_json({}))
    async with nothing_can_be_stored(world, "memories"):
        await ada.tell("!ask Remember that I like tea.")
        await counted(turns_total=1, passes_total=1, failures_total__memory=1)


async def test_what_nobody_foresaw_counts_as_internal(
    world: World, ada: Person, counted: Counted
) -> None:
    await world.sql.execute("ALTER TABLE memories RENAME TO memories_elsewhere")
    try:
        answer = await ada.tell("!ask hello")
    finally:
        await world.sql.execute("ALTER TABLE memories_elsewhere RENAME TO memories")
    assert answer.body.startswith("Internal error ")
    await counted(failures_total__internal=1)


@pytest.mark.parametrize(
    ("command", "settings"),
    [
        ("!ask 12345678901", {"maxPromptLength": 10}),
        ("!ask hello", {"allowedUsers": ["nobody"]}),
        ("!ask", {}),
        ("!verse on", {}),
        ("!memories del x", {}),
        ("!llmbot", {}),
        ("!memories cleanup", {}),
    ],
)
async def test_what_is_refused_or_done_without_a_model_counts_as_nothing(
    command: str, settings: dict[str, object], world: World, ada: Person, counted: Counted
) -> None:
    await world.configure(metricsToken=TOKEN, **settings)
    await ada.tell(command)
    await counted()


# --- turns and the memory behind them -----------------------------------------------------------


async def test_a_fact_from_its_first_mention_to_its_promotion(
    world: World, ada: Person, counted: Counted
) -> None:
    await ada.tell("!ask I live in Berlin.")
    await counted(turns_total=1, passes_total=1)
    await ada.tell("!code I live in Berlin.")
    await counted(turns_total=2, passes_total=2, promotions_total=1)
    assert await ada.rows("memories") == ["Lives in Berlin"]


async def test_pictures_stories_and_commands_are_no_turns(ada: Person, counted: Counted) -> None:
    for command in ("!draw a tree", "!story a tree", "!forget", "!memories", "!verse"):
        await ada.tell(command)
    await counted()


async def test_where_no_pass_is_due_none_is_counted(
    world: World, ada: Person, counted: Counted
) -> None:
    switch = "dev.llmbot.settings"
    await ada.member.send_state(ada.room_id, switch, {"memoryEnabled": False})
    await ada.tell("!ask I live in Berlin.")
    await counted(turns_total=1)
    await ada.member.send_state(ada.room_id, switch, {"memoryEnabled": True})
    await world.configure(metricsToken=TOKEN, memoryMaxPerUser=1)
    await remember(ada, "Likes tea")
    await ada.tell("!ask I live in Berlin.")
    await counted(turns_total=2)


async def test_items_that_were_not_believed_count_by_reason(
    world: World, ada: Person, counted: Counted
) -> None:
    true = {"fact": "Lives in Berlin", "evidence": "I live in Berlin"}
    invented = {"fact": "Owns a yacht", "evidence": "I own a yacht"}
    secret = {"fact": "Password is hunter2", "evidence": "I live in Berlin"}
    world.on(
        "extraction",
        reply_json(
            {
                "new": [true, invented, secret, "malformed"],
                "reinforced": [{"n": 7, "evidence": "I live in Berlin"}],
            }
        ),
    )
    await ada.tell("!ask I live in Berlin.")
    await counted(
        turns_total=1,
        passes_total=1,
        dropped_items_total__no_evidence=1,
        dropped_items_total__other=3,
    )
    assert await ada.candidates() == {"Lives in Berlin": 1}


async def test_cleanups_count_asked_for_or_not(
    world: World, ada: Person, counted: Counted
) -> None:
    await world.configure(metricsToken=TOKEN, memoryPromotionThreshold=1, memoryCleanupInterval=1)
    await remember(ada, "Likes tea", "Likes green tea")
    world.on("cleanup", reply_json({"drop": [1]}))
    await ada.tell("!memories cleanup")
    await counted(cleanups_total=1)
    await ada.tell("!ask I live in Berlin.")
    await counted(turns_total=1, passes_total=1, promotions_total=1, cleanups_total=2)


async def test_passes_that_wait_are_counted_as_running_until_they_are_over(
    world: World, ada: Person, counted: Counted
) -> None:
    gate = world.hold("extraction")
    for number in range(3):
        await ada.tell(f"!ask I have {number + 2} cats.")
    await counted(turns_total=3, passes_running=3)
    await world.configure(metricsToken=TOKEN, admins=[ada.user_id])
    assert "running now 3" in (await ada.tell("!llmbot")).body
    gate.release()
    await counted(turns_total=3, passes_total=3)
    assert "running now 0" in (await ada.tell("!llmbot")).body


# --- nobody is in them --------------------------------------------------------------------------

LINE = re.compile(
    r"# HELP llmbot_[a-z_]+ [A-Z][A-Za-z !&,.]+"
    r"|# TYPE llmbot_[a-z_]+ (counter|gauge)"
    r"|llmbot_[a-z_]+(\{(cause|reason)=\"[a-z_]+\"\})? \d+(\.\d+)?"
)


async def test_after_all_that_people_did_the_metrics_hold_names_of_counters_and_numbers_alone(
    world: World, ada: Person, counted: Counted
) -> None:
    bob = await world.person("bob", ada.member)
    await bob.member.client.set_displayname("Bob the Builder")
    world.on("image", TOO_LARGE)
    world.on("extraction", in_turn(persona_reply, http_error(401), persona_reply))
    for person in (ada, bob):
        await person.tell("!ask I live in Berlin.")
        await person.tell("!draw a tree")
    await counted(
        turns_total=2,
        passes_total=2,
        failures_total__upload=2,
        failures_total__memory=1,
    )
    shown = await exposition(world)
    assert [line for line in shown.splitlines() if not LINE.fullmatch(line)] == []
    for person in (ada, bob):
        assert person.user_id not in shown
        assert person.room_id not in shown
