"""`make demo`: a conversation in which a fact becomes a candidate and then a memory.

`ONCE=1` (or no terminal) stops after it, with exit status 0 only if the promotion happened.
`MODEL=provider/name` asks a real provider instead of the scripted model.
"""

import asyncio
import os
import sys
import textwrap
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg
from mautrix.errors import MatrixError
from ruamel.yaml import YAML

from devstack.build import ROOT, build
from devstack.maubot_server import ADMIN
from devstack.member import Member, SeenEvent
from devstack.process import StackError, run_until_signal
from devstack.stack import Bot, Stack
from devstack.synapse import SERVER_NAME

WIDTH = 96
CELL_WIDTH = 64
SCRIPTED = "scripted/llmbot-demo"
# How long an answer, or the extraction that follows it, may take with a slow real model.
LIMIT_SECONDS = 60.0
# How long to look for a change that may well not come.
CHANGE_SECONDS = 3.0
LOOK_SECONDS = 0.1
CANDIDATES = "memory_candidates"
MEMORIES = "memories"

Row = tuple[str, ...]
"""One row of a table as text: the fact first, then the rest."""


@dataclass(frozen=True)
class Tables:
    """What both tables hold at one moment."""

    candidates: tuple[Row, ...]
    memories: tuple[Row, ...]

    @property
    def candidate_facts(self) -> set[str]:
        """The facts that are candidates."""
        return {row[0] for row in self.candidates}

    @property
    def memory_facts(self) -> set[str]:
        """The facts that are memories."""
        return {row[0] for row in self.memories}

    def __str__(self) -> str:
        return f"{draw(CANDIDATES, ('fact', 'mentions'), self.candidates)}\n{self._memories()}"

    def _memories(self) -> str:
        return draw(MEMORIES, ("fact", "since"), self.memories)

    def in_short(self) -> str:
        """Return the same in one line."""
        return f"{CANDIDATES} held {list(self.candidates)}, {MEMORIES} held {list(self.memories)}"


def draw(title: str, columns: Row, rows: Sequence[Row]) -> str:
    """Draw a table as text, indented below its title; long cells are cut."""
    if not rows:
        return f"    {title}: (no rows)"
    rows = [
        tuple(textwrap.shorten(cell, CELL_WIDTH, placeholder=" …") for cell in row) for row in rows
    ]
    widths = [max(len(cell) for cell in column) for column in zip(columns, *rows, strict=True)]
    lines = [
        " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (columns, *rows)
    ]
    lines.insert(1, "-+-".join("-" * width for width in widths))
    return "\n".join([f"    {title}:", *(f"      {line}" for line in lines)])


def say(text: str = "") -> None:
    """Print at once, also into a pipe."""
    print(text, flush=True)


def heading(text: str, explanation: str) -> None:
    """Print what comes next and why it happens."""
    say(f"\n--- {text} " + "-" * max(3, WIDTH - len(text) - 5))
    say(textwrap.fill(explanation, WIDTH))
    say()


def quote(speaker: str, text: str) -> None:
    """Print what somebody said."""
    margin, further = f"{speaker:>8} | ", " " * 8 + " | "
    for line in text.splitlines():
        filled = textwrap.fill(line, WIDTH, initial_indent=margin, subsequent_indent=further)
        say(filled or margin.rstrip())
        margin = further


class Conversation:
    """Ada's chat with the bot in one room, shown as it happens."""

    def __init__(self, stack: Stack, ada: Member, bot: Bot, room_id: str) -> None:
        self._stack = stack
        self._ada = ada
        self._bot = bot
        self._room_id = room_id
        self._shown = 0

    async def ask(self, text: str) -> SeenEvent:
        """Send a message as Ada, show the bot's reply, and return it."""
        event_id = await self._ada.say(self._room_id, text)
        reply = await self._ada.wait_for_reply(event_id, LIMIT_SECONDS)
        self.show_news()
        return reply

    def show_news(self) -> None:
        """Show what the bot said since the last look."""
        for event in self._ada.events[self._shown :]:
            is_message = event.type == "m.room.message" and not event.is_edit
            if is_message and event.sender == self._bot.user_id:
                quote("llmbot", event.body)
        self._shown = len(self._ada.events)

    async def play(self, text: str) -> SeenEvent:
        """Show a message of Ada's, send it, show the bot's reply, and return it."""
        quote("Ada", text)
        return await self.ask(text)

    async def tables(self) -> Tables:
        """Read both tables from the database."""
        connection = await self._stack.connect(self._bot.instance_id)
        try:
            candidates = await connection.fetch(
                "SELECT fact, mentions::text FROM memory_candidates"
                " WHERE user_id = $1 ORDER BY id",
                self._ada.user_id,
            )
            memories = await connection.fetch(
                "SELECT fact, to_char(created_at, 'YYYY-MM-DD') FROM memories"
                " WHERE user_id = $1 ORDER BY id",
                self._ada.user_id,
            )
        finally:
            await connection.close()
        return Tables(tuple(map(tuple, candidates)), tuple(map(tuple, memories)))

    async def wait_for(self, condition: Callable[[Tables], bool], expected: str) -> Tables:
        """Wait until the tables are as expected: they change only after the answer was sent.

        Raises:
            StackError: They did not become so in time.
        """
        tables = await self.tables_once(condition, LIMIT_SECONDS)
        if not condition(tables):
            raise StackError(
                f"expected {expected} within {LIMIT_SECONDS:g} s, but {tables.in_short()}"
            )
        return tables

    async def tables_once(self, condition: Callable[[Tables], bool], seconds: float) -> Tables:
        """Return the tables as soon as they meet a condition, or as they are after some time."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while True:
            tables = await self.tables()
            if condition(tables) or loop.time() > end:
                return tables
            await asyncio.sleep(LOOK_SECONDS)


async def play(conversation: Conversation) -> None:
    """Play the conversation in which a fact is promoted.

    Raises:
        StackError: The promotion did not happen.
    """
    heading(
        "1. Ada mentions something about herself",
        "The bot answers. Then, in the background, it looks for facts in what she said. What is"
        " mentioned once is only a candidate: kept aside, not used in answers.",
    )
    await conversation.play("!ask I work as a beekeeper. What should I plant for my bees?")
    first = await conversation.wait_for(
        lambda tables: bool(tables.candidates), "a candidate after the first mention"
    )
    say(f"\n{first}")

    heading(
        "2. Small talk",
        "What is true only today is best not remembered. It becomes a candidate at most; nobody"
        " mentions it again, so it never becomes a memory and is dropped after some days.",
    )
    await conversation.play("!ask I am tired today. Any idea for a quick dinner?")
    second = await conversation.tables_once(lambda tables: tables != first, CHANGE_SECONDS)
    say(f"\n{second}")

    heading(
        "3. Ada mentions the first fact again, in other words",
        "The same fact for the second time: it leaves the candidates and becomes a memory, under"
        " the wording first recorded. From now on the bot knows it whenever she talks to it.",
    )
    await conversation.play("!ask My job is beekeeper, so I am up early. When do bees wake up?")
    facts = first.candidate_facts
    third = await conversation.wait_for(
        lambda tables: bool((tables.memory_facts & facts) - tables.candidate_facts),
        f"one of {sorted(facts)} to move from {CANDIDATES} to {MEMORIES}",
    )
    say(f"\n{third}")

    heading(
        "4. Ada looks at what the bot remembers of her",
        "Everybody sees their own memories, and only theirs, and can delete them.",
    )
    listing = await conversation.play("!memories")
    promoted = third.memory_facts & facts
    if not all(fact in listing.body for fact in promoted):
        raise StackError(f"expected !memories to list {sorted(promoted)}, got {listing.body!r}")
    say("\nThe fact was promoted from candidate to memory.")


class Keyboard:
    """Lines typed at the terminal, read without blocking anything else."""

    def __init__(self) -> None:
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._unfinished = b""

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Read lines from standard input until the end of the block."""
        loop = asyncio.get_running_loop()
        loop.add_reader(sys.stdin.fileno(), self._read)
        try:
            yield
        finally:
            loop.remove_reader(sys.stdin.fileno())

    def _read(self) -> None:
        data = os.read(sys.stdin.fileno(), 65536)
        *lines, self._unfinished = (self._unfinished + data).split(b"\n")
        for line in lines:
            self._lines.put_nowait(line.decode(errors="replace").strip())
        if not data:
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
            self._lines.put_nowait(None)

    async def line(self, prompt: str) -> str | None:
        """Return the next line without its end; None after the last one."""
        print(prompt, end="", flush=True)
        return await self._lines.get()


async def chat(conversation: Conversation) -> None:
    """Let the person at the terminal go on as Ada, until `/quit` or the end of the input."""
    keyboard = Keyboard()
    before = await conversation.tables()
    async with keyboard.listening():
        while (line := await keyboard.line("\nAda> ")) not in {None, "/quit"}:
            if not line:
                continue
            if line == "/tables":
                say(str(await conversation.tables()))
                continue
            try:
                await conversation.ask(line if line.startswith("!") else f"!ask {line}")
            except StackError as error:
                say(f"  ({error})")
            before = await show_changes(conversation, before)


async def show_changes(conversation: Conversation, before: Tables) -> Tables:
    """Show and return the tables, or say that they did not change."""
    now = await conversation.tables_once(lambda tables: tables != before, CHANGE_SECONDS)
    say(f"\n{now}" if now != before else "\n    (the tables did not change)")
    return now


def chosen_model() -> tuple[dict[str, Any], Mapping[str, str]]:
    """Return what `MODEL` asks for: changes to the config, and variables for maubot.

    Raises:
        StackError: The provider is unknown, or its key is not set.
    """
    model = os.environ.get("MODEL", "")
    if not model:
        return {"assistantModel": SCRIPTED}, {}
    provider, _, name = model.partition("/")
    known = YAML(typ="safe").load((ROOT / "base-config.yaml").read_text())["providers"]
    if not name or provider not in known:
        raise StackError(f"MODEL must be provider/name with one of {', '.join(known)}: {model!r}")
    variable = known[provider].get("apiKeyEnv") or ""
    if variable and not os.environ.get(variable):
        raise StackError(f"MODEL={model} needs the API key in the variable {variable}")
    return {"assistantModel": model}, os.environ


def introduce(stack: Stack, ada: Member) -> None:
    """Print how to go on: the prompt, the addresses and the log-ins."""
    heading(
        "Your turn",
        "Type to talk to the bot as Ada. A line that starts with ! is sent as it is; any other is"
        " sent as a question (!ask). /tables shows both tables, /quit ends the demo.",
    )
    say(f"  maubot's web UI  {stack.maubot.url}/_matrix/maubot/")
    say(f"                   user {ADMIN}, password {stack.maubot.admin_password}")
    say(f"  homeserver       {stack.synapse.url} (any Matrix client on this machine)")
    say(f"                   user {ada.user_id}, password {ada.account.password}")
    say(f"  logs             {stack.folder / 'logs'}")


async def perform(stack: Stack, config: dict[str, Any], *, once: bool) -> None:
    """Set the bot up, play the conversation and, unless `once`, hand over to the terminal."""
    if stack.model:
        config["providers"] = {"scripted": {"baseUrl": stack.model.url, "apiKeyEnv": ""}}
    mbp = await asyncio.to_thread(build)
    bot = await stack.setup_bot(mbp, config)
    say(f"  {mbp.name} is uploaded and runs as {bot.user_id}")
    ada = await stack.member("ada")
    room_id = await ada.create_room(bot.user_id, name="llmbot demo")
    await ada.wait_for_member(room_id, bot.user_id)
    say(f"  @ada:{SERVER_NAME} and the bot are in a room; model: {config['assistantModel']}")
    conversation = Conversation(stack, ada, bot, room_id)
    await play(conversation)
    if not once:
        introduce(stack, ada)
        await chat(conversation)


async def demo(*, once: bool) -> None:
    """Run the whole demo.

    Raises:
        StackError: It could not be run, or the promotion did not happen.
    """
    config, variables = chosen_model()
    scripted = config["assistantModel"] == SCRIPTED
    async with Stack(scripted_model=scripted, variables=variables, progress=say) as stack:
        try:
            await stack.watched(perform(stack, config, once=once))
        finally:
            say("\nstopping everything ...")


def main() -> int:
    """Run the demo; return the exit status for the shell."""
    once = os.environ.get("ONCE", "") not in {"", "0"} or not (sys.stdin and sys.stdin.isatty())
    try:
        run_until_signal(demo(once=once))
    except (StackError, MatrixError, asyncpg.exceptions.PostgresError, OSError) as error:
        print(f"llmbot demo: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130 if once else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
