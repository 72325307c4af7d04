"""`!memories`: what members see and change of their own memories (M18)."""

from __future__ import annotations

from collections.abc import Sequence

from . import texts
from .config import Settings
from .limits import Limits, Refusal
from .memory.facts import one_line, refusal
from .memory.pipeline import CleanupRunningError, MemoryPipeline
from .memory.store import Edited, MemoryStore
from .room import Rooms, SwitchOutcome
from .texts import Text

PAGE_SIZE = 20


class MemoryCommands:
    """Carries out what follows `!memories`, for the caller alone."""

    def __init__(
        self, store: MemoryStore, pipeline: MemoryPipeline, limits: Limits, rooms: Rooms
    ) -> None:
        self._store = store
        self._pipeline = pipeline
        self._limits = limits
        self._rooms = rooms

    async def run(  # noqa: PLR0911, C901 - one return for each command
        self, user_id: str, room_id: str, text: str, settings: Settings
    ) -> Text | Refusal:
        """Return the reply, or why there is none now.

        Raises:
            ModelError: the model gave no answer to a cleanup.
            RejectedCleanupError: its answer would harm the memories.
        """
        words = text.split()
        match [word.lower() for word in words]:
            case []:
                return await self._list(user_id, 1)
            case [page] if _is_number(page):
                return await self._list(user_id, max(1, int(page)))
            case ["del" | "delete", _, *_]:
                return await self._delete(user_id, words[1:])
            case ["edit", memory_id, _, *_]:
                new_text = text.split(maxsplit=2)[2]
                return await self._edit(user_id, memory_id.strip("#:"), new_text)
            case ["clear"]:
                return texts.cleared(await self._store.clear(user_id))
            case ["cleanup"]:
                return await self._cleanup(user_id, settings)
            case ["undo"]:
                return texts.undone(await self._store.undo_cleanup(user_id))
            case ["room"]:
                return texts.room_memory(enabled=await self._rooms.memory_enabled(room_id))
            case ["room", "on" | "off" as wanted]:
                return await self._switch_room(user_id, room_id, enabled=wanted == "on")
            case ["room", *_]:
                return texts.ROOM_USAGE
            case _:
                return texts.MEMORIES_USAGE

    async def _switch_room(self, user_id: str, room_id: str, *, enabled: bool) -> Text:
        match await self._rooms.set_memory_enabled(room_id, user_id, enabled=enabled):
            case SwitchOutcome.DONE:
                return texts.room_memory_switched(enabled=enabled)
            case SwitchOutcome.SENDER_LACKS_POWER:
                return texts.ROOM_SENDER_LACKS_POWER
            case SwitchOutcome.BOT_LACKS_POWER:
                return texts.ROOM_BOT_LACKS_POWER

    async def _list(self, user_id: str, page: int) -> Text:
        memories, total = await self._store.page(user_id, page, PAGE_SIZE)
        if not total:
            return texts.NO_MEMORIES
        return texts.memories_page(memories, page, -(-total // PAGE_SIZE), total)

    async def _delete(self, user_id: str, words: Sequence[str]) -> Text:
        # "del 3, 4" and "del #3" are what people type.
        wanted = list(dict.fromkeys(word.strip(",#") for word in words))
        if not all(map(_is_number, wanted)):
            return texts.DELETE_USAGE
        found = await self._store.delete(user_id, map(int, wanted))
        return texts.deleted(
            [word for word in wanted if int(word) in found],
            [word for word in wanted if int(word) not in found],
        )

    async def _edit(self, user_id: str, memory_id: str, new_text: str) -> Text:
        if not _is_number(memory_id):
            return texts.EDIT_USAGE
        fact = one_line(new_text)
        reason = refusal(fact)
        if reason is not None:  # M14
            return texts.not_stored(reason)
        match await self._store.edit(user_id, int(memory_id), fact):
            case Edited.DONE:
                return texts.edited(memory_id)
            case Edited.KNOWN:
                return texts.ALREADY_REMEMBERED
            case Edited.NOT_FOUND:
                return texts.deleted([], [memory_id])

    async def _cleanup(self, user_id: str, settings: Settings) -> Text | Refusal:
        refusal_now = self._limits.ask_refusal(user_id, settings)
        if refusal_now is not None:
            return refusal_now
        try:
            outcome = await self._pipeline.cleanup(user_id, settings)
        except CleanupRunningError:
            return texts.CLEANUP_RUNNING
        return texts.cleaned_up(outcome)


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) < 40
