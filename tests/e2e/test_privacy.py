"""What docs/members.md says of privacy, looked for in the log, the tables and the requests."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from devstack.build import ROOT
from devstack.process import wait_until
from devstack.scripted_model import (
    Kind,
    Reply,
    drop,
    error_in_200,
    http_error,
    in_turn,
    raw,
    reply_json,
    text,
    tool_calls,
)

from .world import SECONDS, Person, World

WORD = "Quetzalburg"
"""A word that nothing but a test's own messages has."""

# As maubot's example config has it: everything from DEBUG on.
LINE = re.compile(r"^\[[-\d :,]+\] \[(?P<level>[A-Z]+)@(?P<logger>[^\]]+)\] ")


class Log:
    """What stands in maubot's log from a moment on."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._begin = len(world.log())

    def records(self) -> list[tuple[str, str, str]]:
        """Return level, logger and text of each record, with all that stands below its line."""
        found: list[tuple[str, str, str]] = []
        for line in self._world.log()[self._begin :].splitlines():
            if head := LINE.match(line):
                found.append((head["level"], head["logger"], line))
            elif found:
                level, logger, before = found[-1]
                found[-1] = (level, logger, f"{before}\n{line}")
        return found

    def quoting(self, word: str) -> list[str]:
        """Return the records that hold a word, apart from maubot's own of what the bot sends."""
        return [
            text
            for level, logger, text in self.records()
            if word in text and not is_request(level, logger, text)
        ]


def is_request(level: str, logger: str, line: str) -> bool:
    """Say whether this is maubot's DEBUG line on a request of the bot's to the homeserver."""
    is_on_it = re.search(r"\] req #\d+: (PUT|POST|GET) http", line) is not None
    return level == "DEBUG" and logger.startswith("maubot.client.") and is_on_it


@contextlib.asynccontextmanager
async def nothing_can_be_stored(world: World, table: str) -> AsyncIterator[None]:
    """Let the database refuse new rows in a table, which it quotes in its error."""
    await world.sql.execute(f"ALTER TABLE {table} ADD CONSTRAINT full_up CHECK (false) NOT VALID")
    try:
        yield
    finally:
        await world.sql.execute(f"ALTER TABLE {table} DROP CONSTRAINT full_up")


async def logged(log: Log, part: str) -> None:
    """Wait until a line is in the log."""

    async def is_there() -> bool:
        return any(part in text for _, _, text in log.records())

    await wait_until(is_there, SECONDS, f"{part!r} in the log")


# --- the log -------------------------------------------------------------------------------------


async def test_the_log_holds_no_text_of_anybodys_where_all_goes_well(
    world: World, ada: Person
) -> None:
    log = Log(world)
    save = tool_calls([("save_memory", {"fact": f"Likes {WORD}", "evidence": f"I like {WORD}"})])
    world.on("chat", save, times=1)
    await ada.tell(f"!ask Remember that I like {WORD}.")
    await ada.tell(f"!ask I live in {WORD}.")
    await ada.tell(f"!code I live in {WORD}.")
    await ada.until(memories=[f"Likes {WORD}", f"Lives in {WORD}"])
    world.on("cleanup", reply_json({"merge": [{"n": [1, 2], "fact": f"Lives in {WORD}, gladly"}]}))
    for command in (
        f"!draw a view of {WORD}",
        f"!story a day in {WORD}",
        f"!verse on A night in {WORD}",
        f'!ask "I am the king of {WORD}!"',
        "!memories",
        "!memories cleanup",
        "!memories undo",
        f"!memories edit 1 Lived in {WORD}",
        f"!memories del {WORD}",
        "!forget",
    ):
        await ada.tell(command)
    assert log.quoting(WORD) == []
    # What is logged at DEBUG is there as well.
    assert log.quoting("Memory pass: PassOutcome(")


FAILURES: list[tuple[Kind, Reply]] = [
    ("chat", http_error(401, {"error": {"message": f"no {WORD}"}})),
    ("chat", http_error(400, {"error": {"message": f"no {WORD}"}})),
    ("chat", http_error(404, f"no {WORD}")),
    ("chat", error_in_200(f"no {WORD}")),
    ("chat", raw(f"<html>{WORD}</html>")),
    ("chat", text(WORD, finish_reason="content_filter")),
    ("chat", text("")),
    ("chat", drop()),
    ("chat", tool_calls([(WORD, {WORD: WORD})])),
    ("chat", tool_calls([("save_memory", {"fact": 7, "evidence": WORD})])),
    ("extraction", text(f"I found {WORD}.")),
    ("extraction", http_error(400, {"error": {"message": f"no {WORD}"}})),
    ("extraction", reply_json({"new": {WORD: WORD}})),
    ("extraction", reply_json({"new": [WORD, {"fact": WORD, "evidence": WORD}]})),
    ("extraction", reply_json({WORD: [{"n": WORD}], "reinforced": [{"n": 9, "evidence": WORD}]})),
    ("image", http_error(400, {"error": {"message": f"no {WORD}"}})),
    ("image", raw(WORD)),
    ("story", text(f'{{"title": "{WORD}')),
    ("story", reply_json({"parts": [{"text": WORD, "picture": 7}]})),
    ("cleanup", text(WORD)),
    ("cleanup", reply_json({"merge": [{"n": [1, 2], "fact": f"Password is {WORD}"}]})),
    ("cleanup", reply_json({"drop": [WORD]})),
]


@pytest.mark.parametrize(("kind", "reply"), FAILURES)
async def test_the_log_holds_no_text_of_anybodys_where_a_model_fails(
    kind: Kind, reply: Reply, world: World, ada: Person
) -> None:
    await world.configure(maxToolSteps=1)
    log = Log(world)
    world.on(kind, reply)
    for fact in (f"Likes {WORD}", f"Knows {WORD}"):
        await world.sql.execute(
            "INSERT INTO memories (user_id, fact) VALUES ($1, $2)", ada.user_id, fact
        )
    command = {
        "image": f"!draw {WORD}",
        "story": f"!story {WORD}",
        "cleanup": "!memories cleanup",
    }.get(kind, f"!ask I live in {WORD}.")
    await ada.tell(command)
    if kind == "extraction":
        await world.requested("extraction")
        await ada.tell("!memories")
    # Something that comes later is in the log: so is all before it.
    await ada.tell("!llmbot")
    assert log.quoting(WORD) == []


async def test_the_log_holds_no_text_of_anybodys_where_the_database_fails(
    world: World, ada: Person
) -> None:
    log = Log(world)
    async with nothing_can_be_stored(world, "memory_candidates"):
        await ada.tell(f"!ask I live in {WORD}.")
        await logged(log, "Memory pass failed")
    save = tool_calls([("save_memory", {"fact": f"Likes {WORD}", "evidence": f"I like {WORD}"})])
    world.on("chat", in_turn(save, text("No.")))
    world.on("extraction", reply_json({}))
    async with nothing_can_be_stored(world, "memories"):
        await ada.tell(f"!ask Remember that I like {WORD}.")
        await logged(log, "save_memory failed")
    await world.sql.execute(
        "INSERT INTO memories (user_id, fact) VALUES ($1, 'Likes tea')", ada.user_id
    )
    (memory_id,) = await world.sql.fetchrow(
        "SELECT id FROM memories WHERE user_id = $1", ada.user_id
    )
    async with nothing_can_be_stored(world, "memories"):
        answer = await ada.tell(f"!memories edit {memory_id} Likes {WORD}")
    error_id = answer.body.split()[2].rstrip(".")
    await logged(log, error_id)
    (internal,) = log.quoting(f"Internal error {error_id}")
    assert "violates check constraint" in internal
    assert 'File "' in internal
    assert log.quoting(WORD) == []


async def test_what_maubot_logs_of_the_bots_own_messages_goes_with_the_setting_in_the_docs(
    world: World, ada: Person
) -> None:
    log = Log(world)
    await ada.tell(f"!ask I live in {WORD}.")
    quoted = [(level, logger) for level, logger, text in log.records() if WORD in text]
    assert set(quoted) == {("DEBUG", f"maubot.client.{world.bot.user_id}")}
    page = (ROOT / "docs/admins.md").read_text()
    assert "        maubot.client:\n            level: INFO\n" in page


# --- the tables ----------------------------------------------------------------------------------


async def test_the_database_holds_facts_and_no_messages(world: World, ada: Person) -> None:
    unheard = "Xylobrook"
    world.on("chat", text(f"An answer about {unheard}."))
    world.on(
        "extraction",
        reply_json({"new": [{"fact": "Has a boat", "evidence": f"I sail on {unheard}"}]}),
    )
    await ada.tell(f"!ask I sail on {unheard}")
    await ada.until(candidates={"Has a boat": 1})
    await ada.tell(f"!draw {unheard}")
    await ada.tell(f"!verse on {unheard}")
    tables = await world.sql.fetch(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = $1",
        world.stack.schema(world.bot.instance_id),
    )
    assert len(tables) > 5
    for (table,) in tables:
        rows = await world.sql.fetch(f"SELECT t::text FROM {table} AS t")
        assert [row for (row,) in rows if unheard in row] == [], table
    assert holding(world.stack.maubot.folder, unheard) == []


def holding(folder: Path, word: str) -> list[Path]:
    """Return the files of maubot's own database in which a word stands."""
    files = list(folder.glob("*.db*"))
    assert files
    return [path for path in files if word.encode() in path.read_bytes()]


async def test_each_row_holds_what_the_page_says(world: World) -> None:
    columns = await world.sql.fetch(
        """
        SELECT table_name, array_agg(column_name::text ORDER BY column_name) AS names
        FROM information_schema.columns
        WHERE table_schema = $1 AND table_name LIKE 'memor%' GROUP BY table_name
        """,
        world.stack.schema(world.bot.instance_id),
    )
    text_columns = ["fact", "fact_key", "terms", "term"]
    about = {"user_id", "room_id", "id", "memory_id", "candidate_id", "merged_into", *text_columns}
    dates = {"created_at", "first_seen", "last_seen"}
    counts = {"mentions", "event_ids", "promoting_passes"}
    for table, names in columns:
        assert set(names) <= about | dates | counts, table


# --- what models are sent -----------------------------------------------------------------------


async def test_no_request_has_a_matrix_id_another_persons_memories_or_other_messages(
    world: World,
) -> None:
    bob = await world.stack.member("bob-private")
    ada = await world.person("ada", bob, name="Harbour")
    await world.sql.execute(
        "INSERT INTO memories (user_id, fact) VALUES ($1, $2)", bob.user_id, f"Knows {WORD}"
    )
    await world.sql.execute(
        "INSERT INTO memory_candidates (user_id, fact) VALUES ($1, $2)",
        bob.user_id,
        f"Seeks {WORD}",
    )
    aside = await bob.say(ada.room_id, f"Nobody asks the bot about {WORD}.")
    await ada.member.wait_for(lambda event: event.event_id == aside)
    await ada.tell("!ask I live in Berlin.")
    await ada.tell("!code I live in Berlin.")
    await ada.until(memories=["Lives in Berlin"])
    await ada.tell("!draw a boat")
    await ada.tell("!story a boat")
    await world.sql.execute(
        "INSERT INTO memories (user_id, fact) VALUES ($1, 'Likes tea')", ada.user_id
    )
    await ada.tell("!memories cleanup")
    kinds: list[Kind] = ["chat", "extraction", "image", "story", "cleanup"]
    for kind in kinds:
        requests = world.seen(kind)
        assert requests, kind
        for request in requests:
            sent = json.dumps(request.body, ensure_ascii=False)
            for private in (ada.user_id, bob.user_id, ada.room_id, WORD, "$"):
                assert private not in sent, kind
            for name in ("Harbour", ada.user_id[1:].partition(":")[0]):
                assert (name in sent) <= (kind == "chat"), kind
