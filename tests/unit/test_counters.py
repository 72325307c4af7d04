"""Under which cause a failure is counted."""

from __future__ import annotations

import pytest

from llmbot.counters import CAUSES, cause
from llmbot.models import ModelError

from .test_texts import ERRORS

SET_UP_WRONG = {
    "NoModelError",
    "UnknownProviderError",
    "MissingKeyError",
    "KeyRefusedError",
    "UnknownModelError",
    "NoPicturesError",
}
CAUSE = {
    **dict.fromkeys(SET_UP_WRONG, "setup"),
    "BusyError": "busy",
    "TimedOutError": "timeout",
    "ContentRefusedError": "refused",
    "DrawingRefusedError": "refused",
    "RequestRefusedError": "answer",
    "BadPictureError": "answer",
    "OversizedPictureError": "answer",
    "EmptyAnswerError": "answer",
    "ToolLoopError": "answer",
    "BadAnswerError": "answer",
}


@pytest.mark.parametrize("error", [error for error, _ in ERRORS], ids=repr)
def test_each_kind_of_error_has_its_cause(error: ModelError) -> None:
    assert cause(error) == CAUSE[type(error).__name__]
    assert cause(error) in CAUSES
