"""From the model's answer to a cleanup that is safe to carry out (M12). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..models.parsing import ShapeError, parse_object
from .facts import one_line, refusal
from .store import CleanupPlan, Memory, Merge


class RejectedCleanupError(Exception):
    """The model's cleanup would harm the user's memories; the message says how."""


def parse_cleanup(answer: str, shown: Sequence[Memory]) -> CleanupPlan:
    """Return the cleanup that the model's answer describes.

    Args:
        answer: The model's text.
        shown: The memories that the model was shown, in that order.

    Raises:
        RejectedCleanupError: the answer as a whole is not acceptable.
    """
    try:
        data = parse_object(answer)
    except ShapeError as error:
        raise RejectedCleanupError(str(error)) from None
    named = _Named(shown)
    dropped = named.memories(_list(data, "drop"))
    plan = CleanupPlan(dropped, tuple(_merge(item, named) for item in _list(data, "merge")))
    # This is also what keeps a cleanup from leaving nothing.
    if len(dropped) * 2 > len(shown):
        raise RejectedCleanupError("it drops more than half")
    return plan


def _list(data: dict[str, Any], key: str) -> list[Any]:
    """Return a list of the answer; one that is missing is empty."""
    value = data.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise RejectedCleanupError(f"{key} is no list")
    return value


class _Named:
    """Turns numbers into the memories that were shown, each at most once."""

    def __init__(self, shown: Sequence[Memory]) -> None:
        self._shown = shown
        self._named: set[int] = set()

    def memories(self, numbers: Iterable[object]) -> tuple[Memory, ...]:
        return tuple(map(self._memory, numbers))

    def _memory(self, number: object) -> Memory:
        if not isinstance(number, int) or isinstance(number, bool):
            raise RejectedCleanupError("a number is no whole number")
        if not 0 < number <= len(self._shown):
            raise RejectedCleanupError("it names an unknown number")
        if number in self._named:
            raise RejectedCleanupError("it names a number twice")
        self._named.add(number)
        return self._shown[number - 1]


def _merge(item: object, named: _Named) -> Merge:
    if not isinstance(item, dict) or not isinstance(item.get("fact"), str):
        raise RejectedCleanupError("a merge is not in the agreed shape")
    merged, fact = named.memories(_list(item, "n")), one_line(item["fact"])
    if len(merged) < 2:
        raise RejectedCleanupError("it merges fewer than two")
    reason = refusal(fact)  # M14
    if reason is not None:
        raise RejectedCleanupError(f"it writes a text that is never stored: {reason.value}")
    return Merge(merged, fact)
