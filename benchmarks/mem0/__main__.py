"""`make bench-mem0`: the same exchanges through llmbot and through mem0, side by side."""

# mypy: allow-untyped-calls
# (asyncpg's and maubot's methods carry no types.)
from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import datetime
import json
import logging
import os
import platform
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from maubot.lib.plugin_db import ProxyPostgresDatabase
from mautrix.util.async_db import Database

from benchmarks.mem0.model import BYTES_PER_TOKEN, DIMENSIONS, Answers, Counts, tokens
from benchmarks.mem0.script import EXCHANGES, SEED, Exchange, Extractor, exchanges
from devstack.build import ROOT
from devstack.postgres import Postgres
from devstack.process import StackError, empty_world, run_until_signal
from devstack.scripted_model import ScriptedModel
from evaluation.stage import default_settings
from llmbot.memory.migrations import upgrade_table
from llmbot.memory.pipeline import Exchange as PipelineExchange
from llmbot.memory.pipeline import MemoryPipeline
from llmbot.memory.rules import Mention
from llmbot.memory.store import MemoryStore
from llmbot.models import ModelClient, Provider

PAGE = ROOT / "benchmarks" / "results" / "mem0.md"
PEER = ROOT / "benchmarks" / "mem0" / "peer.py"
PYTHON = ROOT / ".venv-mem0" / "bin" / "python"
log = logging.getLogger("benchmarks.mem0")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What one side took and holds."""

    counts: Counts
    writing: float
    """Seconds for noting all exchanges."""
    reading: float
    """Seconds for recalling before all exchanges."""
    recalled: list[list[str]]
    memories: dict[str, list[str]]
    rows: dict[str, int]
    versions: dict[str, str]


@contextlib.asynccontextmanager
async def _servers(extractor: Extractor) -> AsyncIterator[tuple[Answers, str, str]]:
    """Start the model server; yield its answers and the addresses of chats and embeddings."""
    answers = Answers(extractor)
    application = web.Application()
    application.router.add_post("/v1/embeddings", answers.embed)
    runner = web.AppRunner(application, access_log=None)
    async with ScriptedModel(record=False) as model:
        model.on("any", answers.chat)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            yield answers, model.base_url, f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        finally:
            await runner.cleanup()


async def llmbot_side(script: Sequence[Exchange], folder: Path) -> Outcome:
    """Let llmbot's pipeline live through the exchanges, on a PostgreSQL as durable as in use."""
    world = folder / "world"
    world.mkdir(mode=0o711)
    async with empty_world(world):
        postgres = Postgres(world)
        await postgres.start()
        pool = Database.create(postgres.url, db_args={"min_size": 1, "max_size": 10}, log=log)
        await pool.start()
        try:
            # As maubot gives it to a plugin.
            database = ProxyPostgresDatabase(
                pool, instance_id="mem0", max_conns=3, upgrade_table=upgrade_table, log=log
            )
            await database.start()
            try:
                return await _live_through(script, database)
            finally:
                await database.stop()
        finally:
            await pool.stop()
            await postgres.stop()


async def _live_through(script: Sequence[Exchange], database: ProxyPostgresDatabase) -> Outcome:
    now = script[0].time
    store = MemoryStore(database, lambda: now)

    async def open_room(_: str) -> bool:
        return True

    recalled: list[list[str]] = []
    writing = reading = 0.0
    async with _servers(Extractor(script)) as (answers, url, _), aiohttp.ClientSession() as http:
        pipeline = MemoryPipeline(store, ModelClient(http, log), open_room, log)
        settings = dataclasses.replace(
            default_settings(),
            assistant_model="scripted/model",
            providers={"scripted": Provider(url, "")},
        )
        for exchange in script:
            now = exchange.time
            begin = time.perf_counter()
            recalled.append([memory.fact for memory in await store.memories(exchange.user)])
            middle = time.perf_counter()
            mention = Mention(exchange.user, "!room:example.org", f"${exchange.id}")
            await pipeline.run_pass(
                PipelineExchange(mention, exchange.words, exchange.reply), settings
            )
            reading += middle - begin
            writing += time.perf_counter() - middle
    users = {exchange.user for exchange in script}
    memories = {user: [memory.fact for memory in await store.memories(user)] for user in users}
    async with database.acquire() as connection:
        rows = {
            table: int(await connection.fetchval(f"SELECT count(*) FROM {table}"))  # noqa: S608
            for table in ("memories", "memory_candidates", "memory_cleanup_counters")
        }
        version = str(await connection.fetchval("SHOW server_version"))
    return Outcome(
        answers.counts, writing, reading, recalled, memories, rows, {"PostgreSQL": version}
    )


async def mem0_side(script: Sequence[Exchange], folder: Path) -> Outcome:
    """Let mem0 live through the exchanges, in a process and an environment of its own.

    Raises:
        StackError: mem0 is not installed, or failed.
    """
    if not PYTHON.exists():
        raise StackError("mem0 is not installed; use `make bench-mem0`")
    async with _servers(Extractor(script)) as (answers, chat_url, embeddings_url):
        job = {
            "folder": str(folder),
            "chat_url": chat_url,
            "embeddings_url": embeddings_url,
            "dimensions": DIMENSIONS,
            "exchanges": [
                {"user": one.user, "words": one.words, "reply": one.reply} for one in script
            ],
        }
        job_file = folder / "job.json"
        job_file.write_text(json.dumps(job))
        inherited = {n: v for n, v in os.environ.items() if not n.endswith("_API_KEY")}
        # It keeps a folder for itself, and would report each call to its makers.
        own = {"MEM0_DIR": str(folder / "mem0"), "MEM0_TELEMETRY": "False"}
        process = await asyncio.create_subprocess_exec(
            PYTHON,
            PEER,
            job_file,
            env={**inherited, **own},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            output, errors = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
        if process.returncode != 0:
            raise StackError(f"mem0 failed: {' '.join(errors.decode().split())[-400:]}")
    found: dict[str, Any] = json.loads(output.splitlines()[-1])
    return Outcome(
        answers.counts,
        found["adding"],
        found["searching"],
        found["recalled"],
        found["memories"],
        found["rows"],
        found["versions"],
    )


def table(script: Sequence[Exchange], llmbot: Outcome, mem0: Outcome) -> str:
    """Return the figures side by side, per exchange, as a Markdown table."""
    count = len(script)
    lines = ["| per exchange | llmbot | mem0 |", "|---|---|---|"]

    def line(name: str, figures: Sequence[float], digits: int = 2) -> None:
        values = " | ".join(f"{figure / count:,.{digits}f}" for figure in figures)
        lines.append(f"| {name} | {values} |")

    sides = (llmbot, mem0)
    line("chat completions", [side.counts.chats for side in sides])
    line("embedding requests", [side.counts.embeddings for side in sides])
    line("prompt tokens, about", [side.counts.prompt_tokens for side in sides], 0)
    line("answer tokens, about", [side.counts.answer_tokens for side in sides], 0)
    line("tokens embedded, about", [side.counts.embedded_tokens for side in sides], 0)
    line("tokens recalled into the next prompt, about", [_recalled(side) for side in sides], 0)
    line("milliseconds to note it", [side.writing * 1000 for side in sides], 1)
    line("milliseconds to recall before it", [side.reading * 1000 for side in sides], 1)
    line("rows stored", [sum(side.rows.values()) for side in sides])
    lines += ["", "| at the end | llmbot | mem0 |", "|---|---|---|"]
    counts = [sum(map(len, side.memories.values())) for side in sides]
    lines.append(f"| memories that recall may use | {counts[0]} | {counts[1]} |")
    again = [_said_again(script, side) for side in sides]
    lines.append(f"| of these, said in two messages or more | {again[0]} | {again[1]} |")
    rows = [", ".join(f"{n} {name}" for name, n in side.rows.items()) for side in sides]
    lines.append(f"| rows | {rows[0]} | {rows[1]} |")
    return "\n".join(lines)


def _recalled(side: Outcome) -> int:
    return sum(tokens("\n".join(facts)) for facts in side.recalled)


def _said_again(script: Sequence[Exchange], side: Outcome) -> int:
    times: dict[tuple[str, str], int] = {}
    for exchange in script:
        for key in {statement.key for statement in exchange.statements}:
            times[exchange.user, key] = times.get((exchange.user, key), 0) + 1
    return sum(
        times.get((user, Extractor.key(fact) or ""), 0) >= 2
        for user, facts in side.memories.items()
        for fact in facts
    )


def page(script: Sequence[Exchange], llmbot: Outcome, mem0: Outcome) -> str:
    """Return the whole result page."""
    today = datetime.datetime.now(datetime.timezone.utc).date()
    versions = {"Python": platform.python_version(), **llmbot.versions, **mem0.versions}
    listed = ", ".join(f"{name} {version}" for name, version in versions.items())
    facts = sum(len(exchange.statements) for exchange in script)
    people = len({exchange.user for exchange in script})
    return f"""# llmbot and mem0

Written by `make bench-mem0` on {today}, with {listed}; {os.cpu_count()} cores.

{len(script)} exchanges of {people} people (data set of `make eval`, seed {SEED}), which state
{facts} lasting facts, one after another through both. Before each exchange the memory is recalled,
after it the exchange is noted: llmbot with its pipeline and store on PostgreSQL, every commit
durable; mem0 with `Memory.search` and `Memory.add`, its default settings, Qdrant on local disk and
its SQLite history.

{table(script, llmbot, mem0)}

## How to read it

- One scripted model answers both from the same script: it reports each lasting fact that a
  message states and that it is not shown as known already, and nothing else. It takes no time, so
  the milliseconds are what the two spend themselves, on a machine that does other work as well.
- A token is taken as {BYTES_PER_TOKEN} bytes of UTF-8, for both. llmbot's JSON schema counts as
  part of its prompt. Recall counts the bare facts: llmbot gives all memories of the person, mem0
  at most the 20 nearest ones.
- The embeddings are hashed words. They find texts with words in common, and nothing by meaning; a
  real embedding model would show mem0's extractor more of what is known, and stop more
  repetitions.
- The two want different things. mem0 keeps everything memorable at its first mention, the
  assistant's words too, and leaves what is outdated to recall; llmbot waits for a second mention
  within {default_settings().memory_candidate_ttl_days} days, by the script's own dates. So
  "memories" is no score, and fewer rows are no virtue in themselves: what of a memory is true is
  measured by `make eval`.
- The model makes no mistakes here, so nothing is said about how well either withstands a bad one.
- mem0 runs without its optional packages: no entity links and no keyword search, as after
  `pip install mem0ai`. They add work per exchange.
"""


async def compare(count: int) -> str:
    """Run both sides and return the page."""
    script = exchanges(count)
    with tempfile.TemporaryDirectory(prefix="llmbot-mem0-") as folder:
        # PostgreSQL may run as another user, who has to pass through.
        await asyncio.to_thread(Path(folder).chmod, 0o711)
        print(f"{len(script)} exchanges through llmbot ...")
        llmbot = await llmbot_side(script, Path(folder))
        print(f"{len(script)} exchanges through mem0 ...")
        mem0 = await mem0_side(script, Path(folder))
    print(f"\n{table(script, llmbot, mem0)}")
    return page(script, llmbot, mem0)


def main() -> int:
    """Run the comparison; return the exit status for the shell."""
    parser = argparse.ArgumentParser(prog="benchmarks.mem0", description=__doc__)
    parser.add_argument("--exchanges", type=int, default=EXCHANGES)
    options = parser.parse_args()
    try:
        text = run_until_signal(compare(options.exchanges))
    except StackError as error:
        print(f"bench-mem0: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    if options.exchanges == EXCHANGES:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
