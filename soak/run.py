"""One soak: the load, what is killed during it, and what is looked at after each blow."""

# mypy: allow-untyped-calls
# (asyncpg's methods carry no types.)
from __future__ import annotations

import asyncio
import dataclasses
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import aiohttp
import asyncpg

from devstack.build import ROOT, build
from devstack.newer import newer
from devstack.postgres import CANNOT_CONNECT, Postgres
from devstack.process import Service, StackError, wait_until
from devstack.stack import ScriptedModel, Stack
from soak.crowd import Crowd, Outage
from soak.invariants import (
    CLEANUP_INTERVAL,
    THRESHOLD,
    Broken,
    Question,
    Snapshot,
    broken_rules,
    lost,
)
from soak.script import LEAK

# What maubot's log never may hold: signs of tasks and connections that nobody ended.
TRACES = ("leaking", "Task was destroyed", "never retrieved", "never awaited")
SECONDS_TO_SETTLE = 60.0


class SoakModel(ScriptedModel):
    """The soak's own model server."""

    def command(self) -> Sequence[str]:
        """Return the command line of the model server."""
        return [sys.executable, "-m", "soak.model", "--port", str(self.port)]

    def environment(self) -> Mapping[str, str]:
        """Return the environment, in which the checkout's modules are found from any folder."""
        return {**super().environment(), "PYTHONPATH": str(ROOT)}


@dataclasses.dataclass(frozen=True)
class Size:
    """How much is asked: people, rooms, questions at once, and for how many seconds."""

    people: int = 200
    rooms: int = 20
    at_once: int = 24
    seconds: float = 210.0


@dataclasses.dataclass
class Report:
    """What a soak found."""

    size: Size
    questions: list[Question]
    lost: list[Question]
    """Unanswered though the bot was there."""
    broken: list[Broken]
    events: list[str]
    snapshots: int
    rows: dict[str, int]
    versions: dict[str, str]


async def soak(size: Size, tell: Callable[[str], None] = print) -> Report:
    """Run a soak in a world of its own and return what it found.

    Raises:
        StackError: The world could not be set up, or did not come back after a blow.
    """
    with tempfile.TemporaryDirectory(prefix="llmbot-soak-") as folder:
        # PostgreSQL may run as another user, who has to pass through.
        await asyncio.to_thread(Path(folder).chmod, 0o711)
        stack = Stack(Path(folder) / "world", progress=tell)
        stack.model = SoakModel(stack.folder)
        async with stack, aiohttp.ClientSession() as http:
            return await _Soak(stack, http, size, Path(folder), tell).run()


class _Soak:
    def __init__(
        self,
        stack: Stack,
        http: aiohttp.ClientSession,
        size: Size,
        folder: Path,
        tell: Callable[[str], None],
    ) -> None:
        self._stack = stack
        self._http = http
        self._size = size
        self._folder = folder
        self._tell = tell
        self._broken: dict[Broken, None] = {}
        self._snapshots = 0
        self._last: Snapshot | None = None
        self._events: list[str] = []
        self._crowd: Crowd
        self._mbp: Path

    async def run(self) -> Report:
        self._mbp = await asyncio.to_thread(build, self._folder)
        model = self._stack.model
        assert model is not None
        bot = await self._stack.setup_bot(
            self._mbp,
            {
                "assistantModel": "scripted/soak",
                "providers": {"scripted": {"baseUrl": model.url, "apiKeyEnv": ""}},
                "askRateLimitCount": 0,
                "memoryPromotionThreshold": THRESHOLD,
                "memoryCleanupInterval": CLEANUP_INTERVAL,
            },
        )
        self._crowd = Crowd(self._stack, bot.user_id, self._http)
        self._tell(f"{self._size.people} people join {self._size.rooms} rooms ...")
        await self._crowd.gather(self._size.people, self._size.rooms)
        self._tell(f"the load begins, for {self._size.seconds:g} s")
        background = [
            asyncio.ensure_future(work)
            for work in (self._crowd.read_along(), self._look_again_and_again())
        ]
        begin = time.monotonic()
        try:
            await asyncio.gather(
                self._crowd.ask_until(begin + self._size.seconds, self._size.at_once),
                self._blows(begin),
            )
            await self._settle()
        finally:
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)
        return await self._report()

    # --- blows ---------------------------------------------------------------------------------

    async def _blows(self, begin: float) -> None:
        stack, postgres, model = self._stack, self._stack.postgres, self._stack.model
        assert model is not None
        plan: list[tuple[str, Callable[[], Awaitable[None]]]] = [
            (
                "maubot killed",
                lambda: self._without_bot("maubot", stack.restart_maubot(kill=True)),
            ),
            ("model server killed", lambda: self._kill(model)),
            ("plugin updated", lambda: self._without_bot("update", self._update("98.0.0"))),
            ("maubot restarted", lambda: self._without_bot("maubot", stack.restart_maubot())),
            ("plugin reloaded", lambda: self._without_bot("reload", self._reload())),
            ("model server restarted", model.restart),
            (
                "maubot killed again",
                lambda: self._without_bot("x", stack.restart_maubot(kill=True)),
            ),
        ]
        if isinstance(postgres, Postgres):
            plan.insert(1, ("PostgreSQL killed", lambda: self._kill(postgres)))
            plan.insert(5, ("PostgreSQL restarted", postgres.restart))
            plan.insert(7, ("PostgreSQL killed again", lambda: self._kill(postgres)))
        for number, (name, blow) in enumerate(plan, start=1):
            await asyncio.sleep(
                begin + number * self._size.seconds / (len(plan) + 1) - time.monotonic()
            )
            since = time.monotonic()
            await self._look()
            await blow()
            seconds = time.monotonic() - since
            self._events.append(f"{name} at {since - begin:.0f} s, back after {seconds:.1f} s")
            self._tell(f"  {self._events[-1]}")

    async def _without_bot(self, name: str, blow: Awaitable[None]) -> None:
        began = time.time()
        await blow
        self._crowd.outages.append(Outage(name, began, time.time()))

    @staticmethod
    async def _kill(service: Service) -> None:
        service.kill()

        async def back() -> bool:
            # Processes of a killed PostgreSQL may hold its data for a moment longer.
            try:
                await service.start()
            except StackError:
                service.kill()
                return False
            return True

        await wait_until(back, 30, f"{service.name} to come back")

    async def _update(self, version: str) -> None:
        await self._stack.admin.upload_plugin(newer(self._mbp, self._folder, version))

    async def _reload(self) -> None:
        await self._stack.admin.reload_plugin("dev.llmbot")

    # --- looking -------------------------------------------------------------------------------

    async def _look_again_and_again(self) -> None:
        while True:
            await asyncio.sleep(2)
            await self._look()

    async def _look(self) -> Snapshot | None:
        """Look at what is committed, unless the database is away."""
        try:
            connection = await self._stack.connect()
            try:
                snapshot = await _snapshot(connection)
            finally:
                await connection.close()
        except (*CANNOT_CONNECT, asyncpg.PostgresError, asyncpg.InterfaceError):
            return None
        self._check(snapshot, at_end=False)
        return snapshot

    def _check(self, snapshot: Snapshot, *, at_end: bool) -> None:
        found = list(broken_rules(snapshot, self._crowd.questions, at_end=at_end))
        if self._last is not None:
            found += lost(self._last, snapshot)
        for broken in found:
            if broken not in self._broken:
                self._tell(f"  BROKEN {broken}")
            self._broken[broken] = None
        self._last = snapshot
        self._snapshots += 1

    async def _settle(self) -> None:
        """Wait until no pass changes anything any more and all answers have been read."""
        quiet = 0
        last: Snapshot | None = None

        async def settled() -> bool:
            nonlocal quiet, last
            await asyncio.sleep(1)
            now = await self._look()
            quiet = quiet + 1 if now is not None and now == last else 0
            last = now
            return quiet >= 5

        await wait_until(settled, SECONDS_TO_SETTLE, "the last passes to end")
        self._crowd.read_news()

    async def _report(self) -> Report:
        connection = await self._stack.connect()
        try:
            snapshot = await _snapshot(connection)
            postgresql = str(await connection.fetchval("SHOW server_version"))
        finally:
            await connection.close()
        self._check(snapshot, at_end=True)
        log, model = self._stack.maubot.log, self._stack.model
        assert model is not None
        for line in [line for line in model.log.splitlines() if LEAK in line]:
            self._broken[Broken(f"M15: {line}")] = None
        for line in log.splitlines():
            if any(trace in line for trace in TRACES):
                self._broken[Broken(f"maubot's log: {line[:200]}")] = None
        questions = list(self._crowd.questions.values())
        unanswered = [question for question in questions if not question.answers]
        return Report(
            self._size,
            questions,
            self._crowd.unexplained(unanswered),
            list(self._broken),
            self._events,
            self._snapshots,
            {
                "candidates": len(snapshot.candidates),
                "memories": len(snapshot.memories),
                "merged by cleanups": len(snapshot.undo),
            },
            {"PostgreSQL": postgresql},
        )


async def _snapshot(connection: asyncpg.Connection) -> Snapshot:
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        return Snapshot(
            await _rows(connection, "SELECT * FROM memory_candidates ORDER BY id"),
            await _rows(connection, "SELECT * FROM memories ORDER BY id"),
            await _rows(connection, "SELECT * FROM memory_cleanup_counters ORDER BY user_id"),
            await _rows(connection, "SELECT * FROM memory_cleanup_undo ORDER BY memory_id"),
        )


async def _rows(connection: asyncpg.Connection, query: str) -> list[dict[str, object]]:
    return [dict(row) for row in await connection.fetch(query)]
