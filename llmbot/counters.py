"""What happened since the start, in numbers: nothing of who, where or what."""

from __future__ import annotations

import collections
import dataclasses

from .models import (
    BusyError,
    ContentRefusedError,
    KeyRefusedError,
    ModelError,
    NoPicturesError,
    TimedOutError,
    UnknownModelError,
)

CAUSES = ("setup", "busy", "timeout", "refused", "answer", "upload", "memory", "internal")


@dataclasses.dataclass
class Counters:
    """Counts since the start.

    Attributes:
        turns: Answers to `!ask` and `!code` that were sent.
        failures: What failed, by cause: `setup`, `busy`, `timeout`, `refused`, `answer` (a model's
            answer that is no use), `upload` (the homeserver did not take a picture), `memory`
            (behind a turn) and `internal`.
        passes: Passes whose outcome is in the tables.
        promotions: Memories that passes made.
        dropped_no_evidence: Items of the extractor that quote nothing the person said.
        dropped_other: Items of the extractor that were dropped for another reason.
        cleanups: Cleanups that were carried out.
    """

    turns: int = 0
    failures: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    passes: int = 0
    promotions: int = 0
    dropped_no_evidence: int = 0
    dropped_other: int = 0
    cleanups: int = 0

    def count_dropped(self, dropped: collections.Counter[str]) -> None:
        """Count what an extraction dropped."""
        self.dropped_no_evidence += dropped["no evidence"]
        self.dropped_other += dropped.total() - dropped["no evidence"]


def cause(error: ModelError) -> str:
    """Return under which cause a failed answer is counted."""
    match error:
        case TimedOutError():
            return "timeout"
        case BusyError():
            return "busy"
        case ContentRefusedError():
            return "refused"
        case KeyRefusedError() | UnknownModelError() | NoPicturesError():
            return "setup"
        case _:
            return "setup" if error.is_set_up_wrong else "answer"
