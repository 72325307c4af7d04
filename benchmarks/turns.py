"""Section 3: what a turn costs over its HTTP calls and its SQL done bare."""

# mypy: allow-untyped-calls
# (asyncpg's and maubot's methods carry no types.)
from __future__ import annotations

import collections
import cProfile
import dataclasses
import itertools
import json
import pstats
import statistics
import time
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg

from benchmarks.measuring import Figure, Section, plugin_database, postgres
from benchmarks.passes import Turns
from benchmarks.plain_model import PlainModel, words

TARGET = 1.5
_INSTANCE = "turns"
_RECORDED = "@recorded:example.org"
_numbers = itertools.count(1)
_PACKAGES = ("llmbot", "aiohttp", "asyncpg", "maubot", "mautrix", "yarl", "multidict")


@dataclasses.dataclass(frozen=True)
class Cost:
    """The seconds that something took, and those that this process computed for it."""

    wall: float
    cpu: float


async def cost(work: Awaitable[object]) -> Cost:
    """Return what some work takes."""
    wall, cpu = time.perf_counter(), time.process_time()
    await work
    return Cost(time.perf_counter() - wall, time.process_time() - cpu)


@dataclasses.dataclass(frozen=True)
class Statement:
    """What was asked of PostgreSQL."""

    query: str
    args: Sequence[Any]


@dataclasses.dataclass(frozen=True)
class Post:
    """What was asked of the model's server."""

    url: str
    body: Mapping[str, Any]


Step = Statement | Post


class BareTurn:
    """The calls and statements of a recorded turn, again in their order and for others.

    Args:
        steps: What was recorded, of a person who was new.
        user_id: Who that was.
        connection: What the statements run on.
        http: What the calls are made with.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        user_id: str,
        connection: asyncpg.Connection,
        http: aiohttp.ClientSession,
    ) -> None:
        self._steps = steps
        self._user_id = user_id
        self._connection = connection
        self._http = http

    async def run(self, user_id: str) -> None:
        """Do it all for somebody new."""
        for step in self._steps:
            if isinstance(step, Post):
                async with self._http.post(step.url, json=step.body) as response:
                    json.loads(await response.read())
            elif step.args:
                args = [user_id if value == self._user_id else value for value in step.args]
                await self._connection.fetch(step.query, *args)
            else:
                await self._connection.execute(step.query)


async def recorded(server_url: str, model_url: str, user_id: str) -> list[Step]:
    """Return what a turn of somebody new asks of PostgreSQL and of the model's server."""
    steps: list[Step] = []

    def note(record: Any) -> None:  # noqa: ANN401 - asyncpg's record of a query
        steps.append(Statement(record.query, record.args))

    async def on_chunk(_: object, __: object, sent: aiohttp.TraceRequestChunkSentParams) -> None:
        steps.append(Post(str(sent.url), json.loads(sent.chunk)))

    trace = aiohttp.TraceConfig()
    trace.on_request_chunk_sent.append(on_chunk)
    with warnings.catch_warnings():
        # asyncpg warns of a listener that outlives the use of a connection: here it must.
        warnings.simplefilter("ignore", asyncpg.InterfaceWarning)
        async with (
            plugin_database(server_url, _INSTANCE) as database,
            aiohttp.ClientSession(trace_configs=[trace]) as http,
        ):
            turns = Turns(database, model_url, http)
            # The first statements of a connection ask for types as well.
            await turns.run("@first:example.org", words(next(_numbers)))
            async with database.acquire() as connection:
                connection.wrapped.add_query_logger(note)
            steps.clear()
            await turns.run(user_id, words(next(_numbers)))
            return list(steps)


def by_package(profile: cProfile.Profile) -> dict[str, float]:
    """Return the share of each package in what was computed, what it calls built in included."""
    shares: collections.Counter[str] = collections.Counter()
    for (file, _, _), (_, _, own, _, callers) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        if file != "~":
            shares[_package(file)] += own
        for (caller, _, _), (_, _, of_caller, _) in callers.items() if file == "~" else ():
            shares[_package(caller)] += of_caller
    whole = sum(shares.values())
    return {package: seconds / whole for package, seconds in shares.most_common()}


def _package(file: str) -> str:
    parts = Path(file).parts
    if "site-packages" in parts:
        package = parts[parts.index("site-packages") + 1]
        return package if package in _PACKAGES else "others"
    return parts[-parts[::-1].index("llmbot") - 1] if "llmbot" in parts else "Python's own"


async def measure(folder: Path, *, rounds: int = 300, warm_up: int = 30) -> Section:
    """Measure on a PostgreSQL of its own below a folder."""
    async with postgres(folder) as server, PlainModel(folder).running() as model:
        return await _measure(server.url, model.url, rounds, warm_up)


async def _measure(server_url: str, model_url: str, rounds: int, warm_up: int) -> Section:
    steps = await recorded(server_url, model_url, _RECORDED)
    connection = await asyncpg.connect(server_url)
    try:
        async with (
            plugin_database(server_url, _INSTANCE) as database,
            aiohttp.ClientSession() as http,
        ):
            turns = Turns(database, model_url, http)
            floor = BareTurn(steps, _RECORDED, connection, http)

            def a_turn() -> Awaitable[None]:
                number = next(_numbers)
                return turns.run(f"@turn{number}:example.org", words(number))

            def a_bare_turn() -> Awaitable[None]:
                return floor.run(f"@bare{next(_numbers)}:example.org")

            costs = await _in_turns([a_turn, a_bare_turn], rounds, warm_up)
            shares = [await _shares(one, rounds // 3) for one in (a_turn, a_bare_turn)]
    finally:
        await connection.close()
    (turn_wall, turn_cpu), (bare_wall, bare_cpu) = [
        (
            statistics.median(one.wall for one in taken) * 1000,
            statistics.median(one.cpu for one in taken) * 1000,
        )
        for taken in costs
    ]
    calls = sum(isinstance(step, Post) for step in steps)
    return Section(
        "turns",
        "A turn, over its HTTP calls and its SQL done bare",
        [
            Figure("wall time of a turn over bare", turn_wall / bare_wall, target=TARGET),
            Figure("CPU time of a turn over bare", turn_cpu / bare_cpu, target=TARGET),
            Figure("a turn", turn_wall, "ms"),
            Figure("the same bare", bare_wall, "ms"),
            Figure("CPU of a turn", turn_cpu, "ms"),
            Figure("CPU of the same bare", bare_cpu, "ms"),
        ],
        [
            (
                "A turn is recall, prompt, answer and the pass after it, which notes a fact; the"
                " model answers at once. Matrix is left out here: see the answers."
            ),
            (
                f"Bare are the same {calls} calls and {len(steps) - calls} statements, recorded"
                " from a turn, made again in their order with aiohttp and asyncpg alone, for"
                " somebody else each time. What maubot and asyncpg's pool ask at each use of a"
                " connection is among the statements."
            ),
            (
                "CPU is that of the one process; PostgreSQL and the model's server run in their"
                " own. It is shared out by a profiler that counts built-in functions as their"
                " callers'."
            ),
        ],
        {
            "CPU by package": [
                ("", "a turn, ms", "bare, ms", "more, ms"),
                *_package_rows(shares[0], turn_cpu, shares[1], bare_cpu),
            ]
        },
    )


async def _in_turns(
    works: Sequence[Callable[[], Awaitable[None]]], rounds: int, warm_up: int
) -> list[list[Cost]]:
    taken: list[list[Cost]] = [[] for _ in works]
    for number in range(-warm_up, rounds):
        for step in range(len(works)):
            position = (number + step) % len(works)
            one = await cost(works[position]())
            if number >= 0:
                taken[position].append(one)
    return taken


async def _shares(work: Callable[[], Awaitable[None]], rounds: int) -> dict[str, float]:
    profile = cProfile.Profile(time.process_time)
    for _ in range(rounds):
        one = work()
        profile.enable()
        await one
        profile.disable()
    return by_package(profile)


def _package_rows(
    turn: Mapping[str, float], turn_cpu: float, bare: Mapping[str, float], bare_cpu: float
) -> list[tuple[str, str, str, str]]:
    rows = []
    for package, share in turn.items():
        here, there = share * turn_cpu, bare.get(package, 0.0) * bare_cpu
        rows.append((package, f"{here:.2f}", f"{there:.2f}", f"{here - there:+.2f}"))
    return rows
