"""Section 7: maubot's memory with and without llmbot, and how soon an upload runs."""

from __future__ import annotations

import dataclasses
import statistics
import time
from pathlib import Path

import psutil

from benchmarks.answers import echo_plugin
from benchmarks.measuring import Figure, Section
from benchmarks.plain_model import PlainModel, words
from devstack.build import build
from devstack.newer import newer
from devstack.stack import Stack, instance_config

_MIB = 1024 * 1024


@dataclasses.dataclass(frozen=True)
class Footprint:
    """Memory of a process, in MiB: resident, its share of it, and what is its alone."""

    resident: float
    proportional: float
    own: float


def footprint(pid: int) -> Footprint:
    """Return the memory of a process."""
    memory = psutil.Process(pid).memory_full_info()
    return Footprint(memory.rss / _MIB, memory.pss / _MIB, memory.uss / _MIB)


async def with_bot(
    folder: Path, mbp: Path, config: str, command: str, answers: int
) -> tuple[Footprint, Footprint]:
    """Return maubot's memory in a new stack, before there is a bot and after some answers."""
    async with Stack(folder, scripted_model=False) as stack:
        assert stack.maubot.pid is not None
        before = footprint(stack.maubot.pid)
        bot = await stack.setup_bot(mbp, config, "measured")
        member = await stack.member("member")
        room_id = await member.create_room(bot.user_id)
        await member.wait_for_member(room_id, bot.user_id)
        for number in range(answers):
            event_id = await member.say(room_id, f"{command} {words(number)}")
            await member.wait_for_reply(event_id)
        return before, footprint(stack.maubot.pid)


async def started_seconds(
    folder: Path, mbp: Path, config: str, updates: int
) -> tuple[float, float]:
    """Return the seconds that a first start and the median of those that an update takes.

    Each begins with the upload and ends when maubot says that the instance has started.
    """
    async with Stack(folder / "stack", scripted_model=False) as stack:
        account = await stack.synapse.register("llmbot")
        await stack.admin.put_client(
            account.user_id,
            homeserver=stack.synapse.url,
            access_token=account.access_token,
            device_id=account.device_id,
        )
        begin = time.perf_counter()
        await stack.admin.upload_plugin(mbp)
        instance = await stack.admin.put_instance(
            "llmbot", type="dev.llmbot", primary_user=account.user_id, config=config
        )
        first = time.perf_counter() - begin
        assert instance["started"]
        taken = []
        for number in range(updates):
            update = newer(mbp, folder, f"9.0.{number}")
            begin = time.perf_counter()
            # maubot answers when the instances have stopped and started again.
            await stack.admin.upload_plugin(update)
            taken.append(time.perf_counter() - begin)
            assert (await stack.admin.get_instance("llmbot"))["started"]
        return first, statistics.median(taken)


async def measure(folder: Path, *, answers: int = 50, updates: int = 15) -> Section:
    """Measure on real stacks below a folder."""
    mbp = build(folder / "dist")
    async with PlainModel(folder).running() as model:
        config = instance_config(
            {
                "assistantModel": "plain/m",
                "providers": {"plain": {"baseUrl": model.url, "apiKeyEnv": ""}},
                "askRateLimitCount": 0,
            }
        )
        bare, echo = await with_bot(folder / "echo", echo_plugin(folder), "{}", "!echo", answers)
        _, llmbot = await with_bot(folder / "llmbot", mbp, config, "!ask", answers)
        first, update = await started_seconds(folder, mbp, config, updates)
    rows = {
        "without a bot": bare,
        f"with the echo, after {answers} answers": echo,
        f"with llmbot, after {answers} answers": llmbot,
    }
    return Section(
        "footprint",
        "Footprint: memory, and how soon an upload runs",
        [
            Figure("memory that maubot has more with llmbot", llmbot.own - bare.own, "MiB"),
            Figure("memory that maubot has more with the echo", echo.own - bare.own, "MiB"),
            Figure("memory of maubot with llmbot over with the echo", llmbot.own / echo.own),
            Figure("from a first upload until started", first, "s"),
            Figure("from the upload of an update until started", update, "s"),
            Figure("size of the .mbp", mbp.stat().st_size / 1024, "KiB"),
        ],
        [
            (
                "Memory is what the process has for itself (USS), of one maubot with one bot; the"
                " echo shows what any plugin costs there: a client that follows rooms."
            ),
            (
                "A first start makes the tables; an update stops the running instance first. An"
                f" update's time is the median of {updates}."
            ),
        ],
        {
            "Memory of maubot, MiB": [
                ("", "resident (RSS)", "proportional (PSS)", "its own (USS)"),
                *(
                    (what, f"{one.resident:.1f}", f"{one.proportional:.1f}", f"{one.own:.1f}")
                    for what, one in rows.items()
                ),
            ]
        },
    )
