"""What the measurements share: sections of figures, interleaved timing, a plugin's database."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from maubot.lib.plugin_db import ProxyPostgresDatabase
from mautrix.util.async_db import Database

from devstack.postgres import Postgres
from devstack.process import empty_world
from llmbot.memory.migrations import upgrade_table

log = logging.getLogger("benchmarks")

Work = Callable[[], Awaitable[float]]
"""Does something once and returns the seconds of what counts of it."""


@dataclasses.dataclass(frozen=True)
class Figure:
    """One figure; `target` is the most that it may be, `unit` is empty for a ratio."""

    what: str
    value: float
    unit: str = ""
    target: float | None = None

    @property
    def shown(self) -> str:
        """The value as people read it."""
        digits = 0 if self.value == int(self.value) or abs(self.value) >= 100 else 2
        return f"{self.value:,.{digits}f}{self.unit and ' '}{self.unit}"

    @property
    def is_met(self) -> bool:
        """Whether it is within its target, as both are shown."""
        return self.target is None or round(self.value, 2) <= self.target


@dataclasses.dataclass(frozen=True)
class Section:
    """What one measurement found.

    Attributes:
        name: By which the command line names it.
        title: Its heading.
        figures: What was measured; those with a target first.
        notes: How it was measured, a sentence each.
        details: Further tables, by heading: the first row names the columns.
        curves: Points (x, y) for the chart, by name.
    """

    name: str
    title: str
    figures: Sequence[Figure]
    notes: Sequence[str] = ()
    details: Mapping[str, Sequence[Sequence[str]]] = dataclasses.field(default_factory=dict)
    curves: Mapping[str, Sequence[tuple[float, float]]] = dataclasses.field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return it as what goes into the results file."""
        return dataclasses.asdict(self)


async def timed(work: Awaitable[object]) -> float:
    """Return the seconds that something takes."""
    begin = time.perf_counter()
    await work
    return time.perf_counter() - begin


async def interleaved(rounds: int, works: Sequence[Work], *, warm_up: int = 10) -> list[float]:
    """Return the median seconds of several works that are compared with each other.

    They take turns, and in each round another one begins: what else the machine does meets all
    of them alike.
    """
    taken: list[list[float]] = [[] for _ in works]
    for number in range(-warm_up, rounds):
        for step in range(len(works)):
            position = (number + step) % len(works)
            seconds = await works[position]()
            if number >= 0:
                taken[position].append(seconds)
    return [statistics.median(one) for one in taken]


@contextlib.asynccontextmanager
async def postgres(folder: Path) -> AsyncIterator[Postgres]:
    """Run a PostgreSQL whose commits are as durable as in production, below a folder."""
    world = folder / "world"
    async with empty_world(world):
        server = Postgres(world)
        await server.start()
        try:
            yield server
        finally:
            await server.stop()


@contextlib.asynccontextmanager
async def plugin_database(
    url: str, instance_id: str, settings: Mapping[str, str] | None = None, connections: int = 1
) -> AsyncIterator[ProxyPostgresDatabase]:
    """Give an instance its database as maubot does, tables and all.

    Args:
        url: The PostgreSQL.
        instance_id: Names the schema.
        settings: Of PostgreSQL, for these connections.
        connections: As many as there are at once; one makes all work share it.
    """
    args: dict[str, Any] = {"min_size": 1, "max_size": connections}
    args["server_settings"] = dict(settings or {})
    pool = Database.create(url, db_args=args, log=log)
    await pool.start()
    try:
        database = ProxyPostgresDatabase(
            pool, instance_id=instance_id, max_conns=3, upgrade_table=upgrade_table, log=log
        )
        await database.start()
        try:
            yield database
        finally:
            await database.stop()
    finally:
        await pool.stop()
