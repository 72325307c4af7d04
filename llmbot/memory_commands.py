"""`!memories`: what members see and change of their own memories (M18)."""

from __future__ import annotations

from collections.abc import Sequence

from . import texts
from .memory.store import MemoryStore
from .texts import Text

PAGE_SIZE = 20


async def run(store: MemoryStore, user_id: str, text: str) -> Text:
    """Carry out what follows `!memories`; return the reply."""
    words = text.split()
    if not words or (len(words) == 1 and _is_number(words[0])):
        return await _list(store, user_id, int(words[0]) if words else 1)
    if words[0].lower() in {"del", "delete"} and len(words) > 1:
        return await _delete(store, user_id, words[1:])
    return texts.MEMORIES_USAGE


async def _list(store: MemoryStore, user_id: str, page: int) -> Text:
    memories, total = await store.page(user_id, max(page, 1), PAGE_SIZE)
    if not total:
        return texts.NO_MEMORIES
    return texts.memories_page(memories, max(page, 1), -(-total // PAGE_SIZE), total)


async def _delete(store: MemoryStore, user_id: str, words: Sequence[str]) -> Text:
    # "del 3, 4" and "del #3" are what people type.
    wanted = list(dict.fromkeys(word.strip(",#") for word in words))
    if not all(map(_is_number, wanted)):
        return texts.MEMORIES_USAGE
    found = await store.delete(user_id, map(int, wanted))
    return texts.deleted(
        [int(word) for word in wanted if int(word) in found],
        [word for word in wanted if int(word) not in found],
    )


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) < 40
