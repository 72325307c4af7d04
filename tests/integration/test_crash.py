"""M16: cut off at any statement, a change is made as a whole or not at all."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import pytest
from maubot.lib.plugin_db import ProxyPostgresDatabase
from mautrix.util.async_db.connection import LoggingConnection

from devstack.build import ROOT
from devstack.process import wait_until
from llmbot.memory.rules import Mention, Proposals
from llmbot.memory.store import CleanupPlan, MemoryStore, Merge

from .database import DEFAULTS, Clock

ADA = "@ada:example.org"
ROOM = "!room:example.org"
STATEMENTS = ("execute", "fetch", "fetchval", "fetchrow")

Action = Callable[[MemoryStore], Awaitable[object]]


async def prepare(store: MemoryStore, clock: Clock) -> None:
    """Give Ada rows of every kind, so that each change has something to do."""

    async def told(event: str, *facts: str) -> None:
        await store.apply_pass(Mention(ADA, ROOM, event), Proposals(facts), DEFAULTS)

    await told("$1", "is stale")
    clock.advance(days=15)
    for fact in ("likes tea", "drinks tea", "has a dog", "lives in Berlin"):
        await store.save(ADA, ROOM, fact)
    tea = await store.memories(ADA)
    await store.apply_cleanup(ADA, CleanupPlan((tea[0],), (Merge((tea[1], tea[2]), "tea dog"),)))
    await told("$2", "is due", "is wrong", "is due as well", "is saved")


async def whole_pass(store: MemoryStore) -> None:
    ids = {c.fact: c.id for c in await _shown(store)}
    proposals = Proposals(
        new=("is new", "is new too"),
        reinforced=(ids["is due"],),
        contradicted=(ids["is wrong"],),
    )
    settings = dataclasses.replace(DEFAULTS, cleanup_interval=1)
    await store.apply_pass(Mention(ADA, ROOM, "$3"), proposals, settings)


async def _shown(store: MemoryStore) -> Any:  # noqa: ANN401
    view = await store.begin_pass(ADA, "x", dataclasses.replace(DEFAULTS, candidate_ttl_days=0))
    assert view is not None
    return view.candidates


async def cleanup(store: MemoryStore) -> None:
    memories = await store.memories(ADA)
    await store.apply_cleanup(ADA, CleanupPlan((), (Merge(tuple(memories[:2]), "is saved"),)))


async def save(store: MemoryStore) -> None:
    await store.save(ADA, ROOM, "is saved")


async def undo(store: MemoryStore) -> None:
    await store.undo_cleanup(ADA)


async def edit(store: MemoryStore) -> None:
    await store.edit(ADA, (await store.memories(ADA))[0].id, "is saved")


async def delete(store: MemoryStore) -> None:
    await store.delete(ADA, [memory.id for memory in await store.memories(ADA)])


async def clear(store: MemoryStore) -> None:
    await store.clear(ADA)


ACTIONS: dict[str, Action] = {
    action.__name__: action for action in (whole_pass, cleanup, save, undo, edit, delete, clear)
}


async def everything(committed: asyncpg.Connection) -> dict[str, list[tuple[Any, ...]]]:
    tables = (
        "memory_candidates",
        "memory_candidate_terms",
        "memories",
        "memory_cleanup_counters",
        "memory_cleanup_undo",
    )
    return {
        table: sorted(tuple(row) for row in await committed.fetch(f"SELECT * FROM {table}"))
        for table in tables
    }


class Statements:
    """Counts the statements inside transactions and can do something after each of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.after: Callable[[int, LoggingConnection], Awaitable[None]] | None = None
        for name in STATEMENTS:
            monkeypatch.setattr(LoggingConnection, name, self._watched(name))

    def _watched(self, name: str) -> Callable[..., Awaitable[Any]]:
        original = getattr(LoggingConnection, name)

        async def statement(connection: LoggingConnection, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            result = await original(connection, *args, **kwargs)
            # So also after the one that begins the transaction, but not after the commit.
            if connection.wrapped.is_in_transaction():
                self.count += 1
                if self.after:
                    await self.after(self.count, connection)
            return result

        return statement


@pytest.mark.parametrize("name", ACTIONS)
async def test_connection_cut_after_each_statement_so_also_before_the_commit(
    name: str,
    store: MemoryStore,
    clock: Clock,
    database: ProxyPostgresDatabase,
    committed: asyncpg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await prepare(store, clock)
    statements = Statements(monkeypatch)
    before = await everything(committed)
    cut_after = 1

    async def cut(number: int, connection: LoggingConnection) -> None:
        if number == cut_after:
            await committed.execute(
                "SELECT pg_terminate_backend($1)", connection.wrapped.get_server_pid()
            )

            async def noticed() -> bool:
                return bool(connection.wrapped.is_closed())

            await wait_until(noticed, 5, "the connection to break")

    statements.after = cut
    while True:
        statements.count = 0
        try:
            await ACTIONS[name](store)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            assert await everything(committed) == before, f"cut after statement {cut_after}"
            cut_after += 1
        else:
            break
    assert cut_after - 1 == statements.count >= 2
    assert await everything(committed) != before, "the action has something to do"


# To PostgreSQL a killed client is a cut connection, so the longest transactions are enough.
@pytest.mark.parametrize("name", ["whole_pass", "cleanup"])
async def test_process_killed_after_each_statement(
    name: str,
    store: MemoryStore,
    clock: Clock,
    database: ProxyPostgresDatabase,
    committed: asyncpg.Connection,
    postgres_url: str,
) -> None:
    await prepare(store, clock)
    before = await everything(committed)
    for killed_after in range(1, 30):
        child = await asyncio.to_thread(
            subprocess.run,
            [
                sys.executable,
                "-m",
                "tests.integration.killed_process",
                postgres_url,
                database.schema_name,
                name,
                str(killed_after),
                clock.now.isoformat(),
            ],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=False,
            capture_output=True,
            text=True,
        )
        if child.returncode == 0:
            break
        assert child.returncode == -signal.SIGKILL, child.stderr
        assert await everything(committed) == before, f"killed after statement {killed_after}"
    assert killed_after >= 3
    assert await everything(committed) != before
