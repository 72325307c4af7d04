"""The demo's chat prompt: what is typed goes to the bot, or is one of the commands below."""

import asyncio
import io
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mautrix.errors import MatrixError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from devstack.demo_chat import Conversation
from devstack.demo_view import Tables, quote, say, shortened
from devstack.process import StackError

# How long to look for a change that may well not come.
CHANGE_SECONDS = 3.0
# One change may be followed by another, as a promotion is by a cleanup.
SETTLE_SECONDS = 0.5
NO_CHANGE = "(the tables did not change)"
LONG = 400
MOST_DAYS = 36500


class UsageError(Exception):
    """A command was not typed as it is meant to be; the message may say why."""


class BotLog:
    """The warnings and errors that the bot writes to maubot's log, from now on.

    Args:
        log_file: maubot's log.
        instance_id: The bot's instance, which names its logger.
    """

    def __init__(self, log_file: Path, instance_id: str) -> None:
        self._file = log_file
        self._position = log_file.stat().st_size
        self._line = re.compile(
            rf"\[[^]]*\] \[(WARNING|ERROR|CRITICAL)@maubot\.instance\.{re.escape(instance_id)}\b"
            r"[^]]*\] (.*)"
        )
        self._news: list[str] = []

    def has_news(self) -> bool:
        """Tell whether there is something that was not taken yet."""
        with self._file.open("rb") as log:
            log.seek(self._position)
            complete, end, _ = log.read().rpartition(b"\n")
        self._position += len(complete + end)
        matches = map(self._line.match, complete.decode(errors="replace").splitlines())
        self._news += [f"{match[1]} {match[2]}" for match in matches if match]
        return bool(self._news)

    def take(self) -> list[str]:
        """Return what was logged since the last time."""
        self.has_news()
        news, self._news = self._news, []
        return news


class Prompt:
    """Carries out what is typed, line by line.

    Attributes:
        conversation: The room that the lines go to.
        patience: Seconds to look for a change of the tables after a message.
    """

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.patience = CHANGE_SECONDS
        self._log = BotLog(conversation.stack.maubot.log_file, conversation.bot.instance_id)
        self._seen: Tables | None = None

    async def enter(self, line: str) -> None:
        """Carry out one line; what goes wrong with it is printed."""
        try:
            if line.startswith("/"):
                await self._run(line)
            elif line:
                await self.chat(line)
        except (StackError, MatrixError) as error:
            say(f"  ({error})")

    async def _run(self, line: str) -> None:
        name, _, argument = line.partition(" ")
        command = COMMANDS.get(name, COMMANDS["/help"])
        try:
            await command.run(self, argument.strip())
        except UsageError as error:
            say(f"  Usage: {name} {command.arguments}  {error}".rstrip())

    async def chat(self, line: str, times: int = 1) -> None:
        """Send a message, a question if it is no command, and show what came of it."""
        if self._seen is None:
            await self.look()
        is_answered_last = line.startswith(("!memories", "!draw", "!story", "!verse"))
        try:
            text = line if line.startswith("!") else f"!ask {line}"
            answer = await self.conversation.ask(text, times)
            if line.startswith("!story") and answer.body.endswith("…"):
                await self.conversation.until_told(answer)
        except StackError as error:
            say(f"  ({error})")
        await self._show_changes(0 if is_answered_last else self.patience)

    async def _show_changes(self, seconds: float) -> None:
        """Show the log and, if they changed, the tables; what changed more is awaited."""
        before = self._seen

        def happened(tables: Tables) -> bool:
            return self._log.has_news() or tables != before

        now = await self.conversation.tables_once(happened, seconds)
        if now != before:
            now = await self._settled(now)
        self.conversation.show_news()
        self.show_log()
        if now != before:
            say(f"\n{now}")
        elif seconds:
            say(f"\n    {NO_CHANGE}")
        self._seen = now

    async def _settled(self, now: Tables) -> Tables:
        while True:
            later = await self.conversation.tables_once(now.__ne__, SETTLE_SECONDS)
            if later == now:
                return now
            now = later

    def show_log(self) -> None:
        """Show what the bot has logged, which only its operator sees."""
        for message in self._log.take():
            quote("log", shortened(message, LONG))

    async def look(self) -> Tables:
        """Read the tables; later changes are told from these."""
        self._seen = await self.conversation.tables()
        return self._seen

    async def config(self) -> Any:  # noqa: ANN401 - as the YAML library has it
        """Return the instance's config: a map that keeps its comments."""
        conversation = self.conversation
        instance = await conversation.stack.admin.get_instance(conversation.bot.instance_id)
        return YAML().load(instance["config"])

    async def save_config(self, config: Any) -> None:  # noqa: ANN401
        """Save the instance's config, as an admin does, and show what the bot logs of it."""
        text = io.StringIO()
        YAML().dump(config, text)
        conversation = self.conversation
        await conversation.stack.admin.set_config(conversation.bot.instance_id, text.getvalue())
        self.show_log()


# --- the commands --------------------------------------------------------------------------------


async def _set(prompt: Prompt, argument: str) -> None:
    key, _, text = argument.partition(" ")
    if not text:
        raise UsageError
    try:
        value = YAML(typ="safe").load(text)
    except YAMLError:
        raise UsageError("(the value is not YAML)") from None
    config = await prompt.config()
    config[key] = value
    say(f"  Saving the config with {key}: {shortened(text)}")
    await prompt.save_config(config)


async def _settings(prompt: Prompt, _: str) -> None:
    for key, value in (await prompt.config()).items():
        if key.startswith("memory"):
            shown = str(value).lower() if isinstance(value, bool) else value
            say(f"  {key}: {shortened(str(shown)) or '(empty)'}")
    say("  (Where the log refused a value, the one before it is in force.)")


async def _later(prompt: Prompt, argument: str) -> None:
    try:
        days = float(argument)
    except ValueError:
        raise UsageError from None
    if not 0 < days <= MOST_DAYS:
        raise UsageError(f"(more than 0, at most {MOST_DAYS})")
    await prompt.conversation.let_time_pass(days)
    await prompt.look()
    say(f"  For the memory, {days:g} {'day has' if days == 1 else 'days have'} passed.")


async def _as(prompt: Prompt, argument: str) -> None:
    name = argument.lower()
    if not re.fullmatch(r"[a-z][a-z0-9._-]{0,30}", name):
        raise UsageError("(a name of plain letters and digits)")
    await prompt.conversation.speak_as(name)
    await prompt.look()
    say(f"  You are {prompt.conversation.speaker_name} now: {prompt.conversation.speaker.user_id}")


async def _twice(prompt: Prompt, argument: str) -> None:
    if not argument:
        raise UsageError
    await prompt.chat(argument, times=2)


async def _room(prompt: Prompt, argument: str) -> None:
    if argument not in {"on", "off"}:
        raise UsageError
    await prompt.conversation.switch_memory(on=argument == "on")
    say(f"  Remembering is {argument} in this room.")


async def _tables(prompt: Prompt, _: str) -> None:
    say((await prompt.look()).in_full())


async def _sent(prompt: Prompt, _: str) -> None:
    model = prompt.conversation.stack.model
    if model is None:
        say("  Only the scripted model tells what it was sent.")
        return
    for kind in ("chat", "extraction"):
        for message in await model.last_request(kind):
            data = as_object(message.get("content"))
            if data is not None:
                say(f"  The last request for {kind} said:")
                for key, value in data.items():
                    say(f"    {key}: {shortened(json.dumps(value, ensure_ascii=False), LONG)}")


async def _help(_: Prompt, __: str) -> None:
    for name, command in COMMANDS.items():
        say(f"  {f'{name} {command.arguments}':<20} {command.does}")


@dataclass(frozen=True)
class Command:
    """A command: what follows its name, what it does in words, and how."""

    arguments: str
    does: str
    run: Callable[[Prompt, str], Awaitable[None]]


COMMANDS = {
    "/tables": Command("", "show what the tables hold of you", _tables),
    "/set": Command("<key> <value>", "change a setting in the bot's config, as an admin", _set),
    "/settings": Command("", "show the memory's settings in the config", _settings),
    "/later": Command("<days>", "let days pass for the memory; 0.5 is half a day", _later),
    "/as": Command("<name>", "go on as another person, such as /as bob; /as ada goes back", _as),
    "/room": Command("on|off", "switch remembering in this room, as its owner", _room),
    "/twice": Command("<text>", "send the same message twice at once", _twice),
    "/sent": Command("", "show what the models were given with the last message", _sent),
    "/help": Command("", "show this list", _help),
    "/quit": Command("", "end the demo", _help),
}


def as_object(text: object) -> dict[str, Any] | None:
    """Return the JSON object that a text is, or None."""
    try:
        value = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


# --- the terminal --------------------------------------------------------------------------------


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
    """Let the person at the terminal go on, until `/quit` or the end of the input."""
    keyboard = Keyboard()
    prompt = Prompt(conversation)
    async with keyboard.listening():
        while True:
            line = await keyboard.line(f"\n{conversation.speaker_name}> ")
            if line in {None, "/quit"}:
                return
            await prompt.enter(line or "")
