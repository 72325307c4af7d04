"""Section 5: what the memory adds to the prompts of a turn."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measuring import Figure, Section, plugin_database, postgres
from benchmarks.mem0.model import tokens
from evaluation.stage import default_settings
from llmbot.memory.rules import Mention, PassSettings, Proposals
from llmbot.memory.store import MemoryStore, PassView
from llmbot.prompts import (
    EXTRACTION_SCHEMA,
    SAVE_MEMORY_TOOL,
    Message,
    Surroundings,
    assistant_messages,
    extraction_messages,
)

MEMORIES = (0, 5, 20, 50)
CANDIDATES = (0, 10, 60, 10_000)
TARGET = 4_000
_ROOM = "!room:example.org"
_WORDS = "I have been playing the cello for a year now, which piece should I learn next?"
_REPLY = "The first suite by Bach is a good one to begin with."
_KINDS = (
    "Works as a nurse on ward {}",
    "Has a friend in house number {} of the same street",
    "Owns {} books about the history of trains",
    "Grew up in a village of {} people by the sea",
    "Would rather be told about prices in units of {}",
)
_SETTINGS = PassSettings(
    promotion_threshold=2,
    candidate_ttl_days=14,
    max_per_user=1_000,
    cleanup_interval=0,
    mention_gap_minutes=0,
)


def facts(count: int) -> list[str]:
    """Return so many different facts of usual length."""
    return [_KINDS[number % len(_KINDS)].format(number) for number in range(count)]


async def assistant_prompt(store: MemoryStore, user_id: str, date: datetime.date) -> list[Message]:
    """Return the messages of a turn of somebody's on a day."""
    place = Surroundings("bot", "Room", "Somebody", date)
    system = default_settings().assistant_system_prompt
    return assistant_messages(system, await store.memories(user_id), place, [], _WORDS)


async def extraction_prompt(store: MemoryStore, user_id: str) -> tuple[PassView, list[Message]]:
    """Return what the extractor is shown of somebody, and the messages of that."""
    view = await store.begin_pass(user_id, _WORDS, _SETTINGS)
    assert view is not None
    return view, extraction_messages(view, _WORDS, _REPLY)


async def note(store: MemoryStore, user_id: str, *, memories: int, candidates: int) -> None:
    """Let the memory hold so many facts of somebody."""
    every = facts(memories + candidates)
    for fact in every[:memories]:
        await store.save(user_id, _ROOM, fact)
    proposals = Proposals(new=tuple(every[memories:]))
    await store.apply_pass(Mention(user_id, _ROOM, "$event"), proposals, _SETTINGS)


def size(messages: Sequence[Message]) -> int:
    """Return the tokens of a prompt."""
    return sum(tokens(message["content"]) for message in messages)


def constant_share(messages: Sequence[Message]) -> float:
    """Return how much of a prompt its first message is, which is the same for everybody."""
    length = sum(len(message["content"].encode()) for message in messages)
    return len(messages[0]["content"].encode()) / length


async def measure(folder: Path) -> Section:
    """Count on a PostgreSQL of its own below a folder."""
    day = datetime.date(2026, 1, 1)
    async with (
        postgres(folder) as server,
        plugin_database(server.url, "tokens") as database,
    ):
        store = MemoryStore(database)
        bare = await assistant_prompt(store, "@nobody:example.org", day)
        turns = [("memories", "prompt, tokens", "of that for memories", "constant prefix")]
        for count in MEMORIES:
            user_id = f"@memories{count}:example.org"
            await note(store, user_id, memories=count, candidates=0)
            prompt = await assistant_prompt(store, user_id, day)
            share = constant_share(prompt)
            added = size(prompt) - size(bare)
            turns.append((f"{count}", f"{size(prompt):,}", f"{added:,}", f"{share:.0%}"))
        passes = [("candidates", "shown", "prompt, tokens", "constant prefix")]
        for count in CANDIDATES:
            user_id = f"@candidates{count}:example.org"
            await note(store, user_id, memories=0, candidates=count)
            view, messages = await extraction_prompt(store, user_id)
            share = constant_share(messages)
            shown = str(len(view.candidates))
            passes.append((f"{count:,}", shown, f"{size(messages):,}", f"{share:.0%}"))
        await note(store, "@all:example.org", memories=MEMORIES[-1], candidates=CANDIDATES[-1])
        _, largest = await extraction_prompt(store, "@all:example.org")
    return Section(
        "tokens",
        "Tokens that the memory adds to a turn",
        [
            Figure("largest extraction prompt here", size(largest), "tokens", TARGET),
            Figure("a turn's prompt with 50 memories", size(prompt), "tokens"),
            Figure("a turn's prompt without memories", size(bare), "tokens"),
            Figure("the tool save_memory", tokens(json.dumps(SAVE_MEMORY_TOOL)), "tokens"),
            Figure("the extraction's schema", tokens(json.dumps(EXTRACTION_SCHEMA)), "tokens"),
        ],
        [
            "A token is counted as 4 bytes of UTF-8. A pass is one more request for each turn.",
            (
                "The largest is that of a user with 50 memories and 10,000 candidates: what is"
                " shown is limited by number and by length."
            ),
            (
                "The constant prefix is the first message, the same for everybody: providers may"
                " bill it at a lower price. The tool save_memory and the extraction's schema come"
                " on top of the prompts; they are constant as well."
            ),
        ],
        {"The answer's prompt": turns, "The extraction's prompt": passes},
    )
