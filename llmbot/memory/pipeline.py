"""What happens to the memory behind a turn: passes, cleanups, explicit saves."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from ..config import Settings
from ..counters import Counters
from ..models import ModelClient, ModelError, Urgency
from ..models.parsing import ShapeError
from ..prompts import (
    CLEANUP_SCHEMA,
    EXTRACTION_SCHEMA,
    NOT_SAVED_ARGUMENTS,
    NOT_SAVED_NO_EVIDENCE,
    SAVED,
    SAVED_BEFORE,
    cleanup_messages,
    extraction_messages,
    not_saved,
)
from ..reporting import FailureLog
from ..tasks import RunningTasks
from .cleanup import RejectedCleanupError, parse_cleanup
from .extraction import parse_extraction
from .facts import is_evidence, one_line, out_of_character, refusal
from .rules import Mention, Proposals
from .store import CleanupOutcome, MemoryStore, PassOutcome, PassView, Saved


@dataclasses.dataclass(frozen=True)
class Exchange:
    """What a pass reads: the user's own words and the answer they got (M5).

    `is_fiction` tells that they were said inside a scene.
    """

    mention: Mention
    words: str
    reply: str
    is_fiction: bool = False


class CleanupRunningError(Exception):
    """A cleanup of this user's memories is running already."""


RoomSwitch = Callable[[str], Awaitable[bool]]
"""Says whether a room's traffic may be remembered (M2)."""


class MemoryPipeline:
    """Carries out passes and cleanups; what fails in a pass reaches only the log (M17)."""

    def __init__(
        self,
        store: MemoryStore,
        models: ModelClient,
        room_switch: RoomSwitch,
        log: logging.Logger,
        counters: Counters | None = None,
    ) -> None:
        self._store = store
        self._models = models
        self._room_switch = room_switch
        self._log = log
        self._counters = counters or Counters()
        self._running = RunningTasks()
        self._failures = FailureLog(log)
        self._being_cleaned: set[str] = set()

    # --- passes --------------------------------------------------------------------------------

    def start_pass(self, exchange: Exchange, settings: Settings) -> None:
        """Start the pass of a turn whose answer was sent (M1); it never delays anything."""
        self._running.start(self.run_pass(exchange, settings))

    @property
    def running(self) -> int:
        """How many passes are running, waiting ones included."""
        return len(self._running)

    async def stop(self) -> None:
        """Cancel what is running: a pass commits as a whole or not at all (M16)."""
        await self._running.cancel()

    async def run_pass(self, exchange: Exchange, settings: Settings) -> None:
        """Carry out one pass; failures end in the log, once per cause (M17)."""
        mention = exchange.mention
        try:
            if not await self._room_switch(mention.room_id):  # M2
                return
            rules = settings.memory_pass
            view = await self._store.begin_pass(mention.user_id, exchange.words, rules)
            if view is None:  # M3
                return
            proposals = await self._extract(view, exchange, settings)
            outcome = PassOutcome()
            if not proposals.are_none or view.has_stale:
                outcome = await self._store.apply_pass(mention, proposals, rules)
            self._counters.passes += 1
            self._counters.promotions += outcome.promoted
            self._log.debug("Memory pass: %s", outcome)
            if outcome.cleanup_due:  # M11
                await self._periodic_cleanup(mention.user_id, settings)
        # Whatever fails here must stay invisible to users.
        except Exception as error:  # noqa: BLE001
            self._counters.failures["memory"] += 1
            self._failures.report(
                f"Memory pass failed, nothing was stored: {type(error).__name__}",
                logging.ERROR,
                error,
            )

    async def _extract(self, view: PassView, exchange: Exchange, settings: Settings) -> Proposals:
        """Return what the extractor found: nothing where it fails (M17)."""
        model = settings.memory_model
        # In a scene the person's own words are what they say aside, not what a character says.
        evidence = out_of_character(exchange.words) if exchange.is_fiction else exchange.words
        try:
            completion = await self._models.complete(
                model.name,
                extraction_messages(
                    view, exchange.words, exchange.reply, is_fiction=exchange.is_fiction
                ),
                settings.client,
                setting=model.setting,
                urgency=Urgency.BACKGROUND,
                json_schema=EXTRACTION_SCHEMA,
            )
            extraction = parse_extraction(
                completion.text,
                view.candidates,
                evidence,
                require_evidence=settings.memory_require_evidence,
            )
        except (ModelError, ShapeError) as error:
            self._report("Memory extraction", error)
            return Proposals()
        self._counters.count_dropped(extraction.dropped)
        if extraction.dropped:
            self._log.debug("Memory extraction: dropped %s", dict(extraction.dropped))
        return extraction.proposals

    def _report(self, what: str, error: Exception) -> None:
        """Log why nothing was stored, once per cause (M17)."""
        self._counters.failures["memory"] += 1
        self._failures.report(f"{what} failed, nothing was stored: {error}")

    # --- cleanup (M12) -------------------------------------------------------------------------

    async def cleanup(self, user_id: str, settings: Settings) -> CleanupOutcome | None:
        """Run one cleanup pass.

        Returns:
            What it changed; None where there are fewer than two memories.

        Raises:
            CleanupRunningError: one is running for this user.
            ModelError: the model gave no answer.
            RejectedCleanupError: the model's answer would harm the memories.
        """
        if user_id in self._being_cleaned:
            raise CleanupRunningError
        self._being_cleaned.add(user_id)
        try:
            memories = await self._store.memories(user_id)
            if len(memories) < 2:
                return None
            model = settings.memory_model
            completion = await self._models.complete(
                model.name,
                cleanup_messages(memories),
                settings.client,
                setting=model.setting,
                urgency=Urgency.BACKGROUND,
                json_schema=CLEANUP_SCHEMA,
            )
            plan = parse_cleanup(completion.text, memories)
            outcome = await self._store.apply_cleanup(user_id, plan)
            self._counters.cleanups += 1
            return outcome
        finally:
            self._being_cleaned.discard(user_id)

    async def _periodic_cleanup(self, user_id: str, settings: Settings) -> None:
        try:
            outcome = await self.cleanup(user_id, settings)
            self._log.debug("Periodic cleanup: %s", outcome)
        except CleanupRunningError:
            pass
        except (ModelError, RejectedCleanupError) as error:
            self._report("Memory cleanup", error)

    # --- save_memory (M13) ---------------------------------------------------------------------

    async def save(
        self,
        mention: Mention,
        arguments: dict[str, Any] | None,
        messages: Iterable[str],
        settings: Settings,
    ) -> str:
        """Store what the model wants remembered; return the tool result that it is told.

        Args:
            mention: The message that the turn answers.
            arguments: The tool's arguments, `fact` and `evidence`; None if they were no object.
            messages: The user's own words in this conversation, as evidence.
            settings: The turn's settings.
        """
        fact, evidence = (arguments or {}).get("fact"), (arguments or {}).get("evidence")
        if not isinstance(fact, str):
            return NOT_SAVED_ARGUMENTS
        fact = one_line(fact)
        reason = refusal(fact)
        if reason is not None:  # M14
            return not_saved(reason)
        if settings.memory_require_evidence and not (
            isinstance(evidence, str) and any(is_evidence(evidence, words) for words in messages)
        ):
            return NOT_SAVED_NO_EVIDENCE
        saved = await self._store.save(mention.user_id, mention.room_id, fact)
        return SAVED if saved is Saved.NEW else SAVED_BEFORE
