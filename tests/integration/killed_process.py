"""A process that changes the memory and kills itself after a given statement (test_crash.py)."""

from __future__ import annotations

import asyncio
import datetime
import logging
import os
import signal
import sys

import pytest
from maubot.lib.plugin_db import ProxyPostgresDatabase
from mautrix.util.async_db import Database
from mautrix.util.async_db.connection import LoggingConnection

from llmbot.memory.store import MemoryStore

from .database import Clock
from .test_crash import ACTIONS, Statements


async def main(url: str, schema: str, action: str, killed_after: int, now: str) -> None:
    """Run one action of test_crash.py."""
    pool = Database.create(url, db_args={"min_size": 1, "max_size": 2})
    await pool.start()
    instance = schema.removeprefix("mbp_")
    database = ProxyPostgresDatabase(pool, instance, 2, None, logging.getLogger("test"))
    clock = Clock()
    clock.now = datetime.datetime.fromisoformat(now)
    with pytest.MonkeyPatch.context() as monkeypatch:
        statements = Statements(monkeypatch)

        async def kill(number: int, _: LoggingConnection) -> None:
            if number == killed_after:
                os.kill(os.getpid(), signal.SIGKILL)

        statements.after = kill
        await ACTIONS[action](MemoryStore(database, clock))
    await pool.stop()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5]))
