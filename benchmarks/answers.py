"""Section 1: what llmbot adds to an answer, over a bare plugin that says everything again."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import random
import statistics
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measuring import Figure, Section
from benchmarks.plain_model import PlainModel, words
from devstack.build import build
from devstack.member import Member
from devstack.process import wait_until
from devstack.stack import Stack

TARGET = 1.25
SAME = 1.05
"""The most that memory on may be over memory off: what one run can tell apart."""
THINKS_SECONDS = 0.25
_SETTINGS_EVENT = "dev.llmbot.settings"
_ECHO = Path(__file__).parent / "echo"
_SECONDS = 30.0
# So long after one answer the next question is asked: what follows the answer is over by then.
_PAUSE_SECONDS = 0.1
_numbers = itertools.count(1)


@dataclasses.dataclass(frozen=True)
class Answered:
    """The seconds from when the homeserver had a message, and those of it that are the model's."""

    seconds: float
    before_model: float = 0.0
    in_model: float = 0.0

    @property
    def own(self) -> float:
        """The seconds without the model's."""
        return self.seconds - self.in_model

    @property
    def after_model(self) -> float:
        """The seconds from the model's answer to the bot's."""
        return self.own - self.before_model


def echo_plugin(folder: Path) -> Path:
    """Pack the plugin that says everything again; return the archive."""
    archive = folder / "echo.mbp"
    with zipfile.ZipFile(archive, "w") as packed:
        for name in ("maubot.yaml", "echobot.py"):
            packed.write(_ECHO / name, name)
    return archive


class Talk:
    """A member in three rooms: with llmbot, memory on or off, and with the echo."""

    def __init__(self, model: PlainModel, member: Member) -> None:
        self._model = model
        self._member = member
        self.rooms: dict[str, str] = {}

    async def open_room(self, name: str, bot_id: str, *, memory: bool = True) -> None:
        """Make a room with a bot."""
        state = [] if memory else [{"type": _SETTINGS_EVENT, "content": {"memoryEnabled": False}}]
        room_id = await self._member.create_room(bot_id, name=name, initial_state=state)
        await self._member.wait_for_member(room_id, bot_id)
        self.rooms[name] = room_id

    async def ask(self, name: str, command: str) -> Answered:
        """Ask in a room; return what the answer took."""
        before = await self._model.calls()
        room_id = self.rooms[name]
        event_id = await self._member.say(room_id, f"{command} {words(next(_numbers))}")
        begin = time.perf_counter()
        await self._member.wait_for_reply(event_id, _SECONDS)
        seconds = time.perf_counter() - begin
        if name == "on":
            await self._passed(len(before.extractions))
        await asyncio.sleep(_PAUSE_SECONDS)
        chats = (await self._model.calls()).chats[len(before.chats) :]
        if not chats:
            return Answered(seconds)
        (call,) = chats
        return Answered(seconds, call.begin - begin, call.seconds)

    async def _passed(self, before: int) -> None:
        """Wait until there was one more pass than before."""

        async def passed() -> bool:
            return len((await self._model.calls()).extractions) > before

        await wait_until(passed, _SECONDS, "the pass after the answer")


def ratio(above: Sequence[float], below: Sequence[float]) -> tuple[float, float, float]:
    """Return the ratio of two medians, and between which bounds it is in 95 of 100 resamples."""
    draw = random.Random(6)  # noqa: S311 - draws samples, no secrets

    def resampled(values: Sequence[float]) -> float:
        return statistics.median(draw.choices(values, k=len(values)))

    ratios = sorted(resampled(above) / resampled(below) for _ in range(1000))
    return statistics.median(above) / statistics.median(below), ratios[25], ratios[975]


_COMMANDS = {"on": "!ask", "off": "!ask", "echo": "!echo"}


async def take(talk: Talk, rounds: int, *, warm_up: int) -> dict[str, list[Answered]]:
    """Ask in all rooms in turns; return what was taken, by room."""
    taken: dict[str, list[Answered]] = {name: [] for name in _COMMANDS}
    for number in range(-warm_up, rounds):
        first = number % len(_COMMANDS)
        for name in (*[*_COMMANDS][first:], *[*_COMMANDS][:first]):
            answered = await talk.ask(name, _COMMANDS[name])
            if number >= 0:
                taken[name].append(answered)
    return taken


async def measure(folder: Path, *, rounds: int = 150, warm_up: int = 10) -> Section:
    """Measure on a real stack below a folder."""
    found = {}
    async with (
        PlainModel(folder).running() as model,
        Stack(folder / "stack", scripted_model=False) as stack,
    ):
        talk = await set_up(folder, stack, model)
        for seconds, times in ((THINKS_SECONDS, rounds), (0.0, (rounds + 1) // 2)):
            await model.think(seconds)
            found[seconds] = await take(talk, times, warm_up=warm_up)
    thinking, instant = found[THINKS_SECONDS], found[0.0]
    on, off, echo = (_own(thinking[name]) for name in _COMMANDS)
    compared = {
        "memory on over echo": ratio(on, echo),
        "memory off over echo": ratio(off, echo),
        "memory on over memory off": ratio(on, off),
        "memory on over echo, the model answers at once": ratio(
            _own(instant["on"]), _own(instant["echo"])
        ),
        "memory on over memory off, the model answers at once": ratio(
            _own(instant["on"]), _own(instant["off"])
        ),
    }
    shares = [value[0] for value in compared.values()]
    return Section(
        "answers",
        "An answer, over that of a plugin that only says everything again",
        [
            Figure("an answer over an echo, memory on", shares[0], target=TARGET),
            Figure("an answer over an echo, memory off", shares[1], target=TARGET),
            Figure("an answer with memory on over one with memory off", shares[2], target=SAME),
            Figure("an answer over an echo, the model answers at once", shares[3]),
            Figure("an answer without the model's time", _middle(on), "ms"),
            Figure("an echo", _middle(echo), "ms"),
        ],
        [
            (
                "From when the homeserver has taken a member's message until the member has the"
                " reply, without the time that the model's server had the request. Real Synapse,"
                " maubot, PostgreSQL and member, three rooms, in turns."
            ),
            (
                f"The model thinks for {THINKS_SECONDS:g} s. While it does, llmbot sends a read"
                " receipt and a typing notice. A model that answers at once, which none does, has"
                " the homeserver still at work with these two when the answer comes."
            ),
            "The echo is a maubot plugin with one command and one line, benchmarks/echo.",
            (
                "The bounds hold the ratio in 95 of 100 draws from what was measured. Memory on"
                " and off differ by what runs after the answer; the next question is asked when"
                " that is over."
            ),
        ],
        {
            "With the bounds of the ratios": [
                ("", "ratio", "between"),
                *(
                    (what, f"{value:.2f}", f"{low:.2f} and {high:.2f}")
                    for what, (value, low, high) in compared.items()
                ),
            ],
            "Where an answer's time goes, with memory on": [
                ("", "ms"),
                *_parts(thinking["on"], "with a model that thinks"),
                *_parts(instant["on"], "with one that answers at once"),
                ("the whole echo", f"{_middle(echo):.1f}"),
            ],
        },
    )


async def set_up(folder: Path, stack: Stack, model: PlainModel) -> Talk:
    """Upload both plugins and make the rooms."""
    providers = {"plain": {"baseUrl": model.url, "apiKeyEnv": ""}}
    changes = {"assistantModel": "plain/m", "providers": providers, "askRateLimitCount": 0}
    bot = await stack.setup_bot(build(folder / "dist"), changes)
    echo = await stack.setup_bot(echo_plugin(folder), "{}", "echo")
    talk = Talk(model, await stack.member("member"))
    await talk.open_room("on", bot.user_id)
    await talk.open_room("off", bot.user_id, memory=False)
    await talk.open_room("echo", echo.user_id)
    return talk


def _own(answers: Sequence[Answered]) -> list[float]:
    return [one.own for one in answers]


def _middle(seconds: Sequence[float]) -> float:
    return statistics.median(seconds) * 1000


def _parts(answers: Sequence[Answered], model: str) -> list[tuple[str, str]]:
    before = _middle([one.before_model for one in answers])
    after = _middle([one.after_model for one in answers])
    return [
        (f"until the model has the request, {model}", f"{before:.1f}"),
        (f"from the model's answer to the bot's, {model}", f"{after:.1f}"),
    ]
