"""Keep docs/tour.md what the demo really shows: `python -m devstack.tour` plays it anew.

In the tour, a block whose first line begins with "> " is a part of a session: lines that begin
so are typed, the ones after them are what the demo then shows. A line "…" stands for any lines,
and where nothing stands after a command of the demo, it does not matter what it shows. Empty lines
do not count, and neither does which day it is. To add a step, write "?" for what it shows.
"""

import asyncio
import contextlib
import datetime
import io
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from devstack import demo
from devstack.build import ROOT
from devstack.demo_chat import LIMIT_SECONDS
from devstack.demo_prompt import NO_CHANGE, Prompt
from devstack.stack import Stack

TOUR = ROOT / "docs" / "tour.md"
TYPED, ANYTHING, UNTOLD = "> ", "…", "?"
# The tour is told as if it all happened on this day.
DAY = datetime.date(2026, 12, 1)
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
# To see that nothing changes, one cannot wait for ever; what comes later shows up in a later step.
UNCHANGED_SECONDS = 1.5
_BLOCK = re.compile(r"^```text\n(?P<session>> .*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Step:
    """One line that is typed, and what is shown after it."""

    line: str
    shown: str

    @property
    def expects_change(self) -> bool:
        """Whether something is shown that comes after the answer."""
        return " log | " in self.shown or not (NO_CHANGE in self.shown or self.shown == UNTOLD)

    def is_met_by(self, shown: str) -> bool:
        """Tell whether this is what was expected to be shown."""
        if self.line.startswith("/") and not self.shown:
            return True
        pattern = "".join(
            r"(?:.*\n)*" if line.strip() == ANYTHING else re.escape(line) + r"\n"
            for line in _lines(self.shown)
        )
        return re.fullmatch(pattern, "".join(f"{line}\n" for line in _lines(shown))) is not None

    def __str__(self) -> str:
        return f"{TYPED}{self.line}\n{self.shown}\n" if self.shown else f"{TYPED}{self.line}"


def _lines(text: str) -> list[str]:
    return [DATE.sub(str(DAY), line.rstrip()) for line in text.splitlines() if line.strip()]


def steps(session: str) -> list[Step]:
    """Return the steps of one block."""
    found = []
    for part in re.split(rf"^{TYPED}", session, flags=re.MULTILINE)[1:]:
        line, _, shown = part.partition("\n")
        found.append(Step(line, shown.strip("\n")))
    return found


def sessions(text: str) -> list[list[Step]]:
    """Return the steps of each block of the tour."""
    return [steps(block["session"]) for block in _BLOCK.finditer(text)]


def replaced(text: str, played: Sequence[Sequence[Step]]) -> str:
    """Return the tour with other blocks."""
    blocks = iter(played)

    def block(_: re.Match[str]) -> str:
        session = "\n".join(map(str, next(blocks))).rstrip("\n")
        return f"```text\n{session}\n```"

    return _BLOCK.sub(block, text)


async def take(prompt: Prompt, step: Step) -> Step:
    """Type a step's line; return the step as it is, or with what was shown if that differs."""
    loop = asyncio.get_running_loop()
    end = loop.time() + LIMIT_SECONDS
    prompt.patience = LIMIT_SECONDS if step.expects_change else UNCHANGED_SECONDS
    while True:
        with contextlib.redirect_stdout(io.StringIO()) as output:
            await prompt.enter(step.line)
        shown = output.getvalue()
        if step.is_met_by(shown):
            return step
        # A cleanup may take its time: looking at the tables again does no harm.
        if step.line != "/tables" or step.shown == UNTOLD or loop.time() > end:
            return Step(step.line, _as_told(shown).strip("\n"))


def _as_told(text: str) -> str:
    """Return a text with its dates as if today were the day of the tour."""
    today = datetime.datetime.now(datetime.timezone.utc).date()

    def told(match: re.Match[str]) -> str:
        return str(datetime.date.fromisoformat(match[0]) + (DAY - today))

    return "\n".join(line.rstrip() for line in DATE.sub(told, text).splitlines())


@contextlib.asynccontextmanager
async def prompt_after_demo(folder: Path) -> AsyncIterator[Prompt]:
    """Yield the demo's prompt as a person finds it: after the conversation."""
    async with Stack(folder) as stack:
        conversation = await demo.open_room(stack, {"assistantModel": demo.SCRIPTED})
        await demo.play(conversation)
        yield Prompt(conversation)


async def play(text: str) -> str:
    """Play a whole tour; return it with what was shown now."""
    with tempfile.TemporaryDirectory() as folder:
        async with prompt_after_demo(Path(folder) / "stack") as prompt:
            played = []
            for session in sessions(text):
                # Python 3.10 takes no asynchronous comprehension inside another one.
                taken = [await take(prompt, step) for step in session]
                played.append(taken)
    return replaced(text, played)


def main() -> int:
    """Bring the tour up to date."""
    TOUR.write_text(asyncio.run(play(TOUR.read_text())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
