"""From the extractor's answer to proposals whose evidence was checked (M6). Pure."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from ..models.parsing import ShapeError, parse_object
from .facts import OwnWords, one_line, refusal
from .rules import Proposals
from .store import ShownCandidate


@dataclasses.dataclass(frozen=True)
class Extraction:
    """What one extraction proposes, and how many of its items were dropped for which reason."""

    proposals: Proposals
    dropped: collections.Counter[str]


def parse_extraction(
    answer: str, shown: Sequence[ShownCandidate], words: str, *, require_evidence: bool
) -> Extraction:
    """Return what of the model's answer may be believed.

    Args:
        answer: The model's text.
        shown: The candidates that the model was shown, in that order.
        words: The user's own words of this message.
        require_evidence: Whether each item must quote them.

    Raises:
        ShapeError: the answer is not the agreed JSON object.
    """
    data = parse_object(answer)
    reader = _Reader(data, words, require_evidence=require_evidence)
    proposals = Proposals(
        new=reader.facts("new"),
        reinforced=reader.candidate_ids("reinforced", shown),
        contradicted=reader.candidate_ids("contradicted", shown),
    )
    return Extraction(proposals, reader.dropped)


class _Reader:
    """Reads the lists of an answer and counts what it drops."""

    def __init__(self, data: dict[str, Any], words: str, *, require_evidence: bool) -> None:
        self._data = data
        self._words = OwnWords(words)
        self._require_evidence = require_evidence
        self.dropped: collections.Counter[str] = collections.Counter()

    def facts(self, kind: str) -> tuple[str, ...]:
        """Return the facts of a list that may be stored, each as one line."""
        found: dict[str, None] = {}
        for item in self._believable(kind):
            fact = one_line(item["fact"]) if isinstance(item.get("fact"), str) else ""
            reason = refusal(fact)  # M14
            if reason is None:
                found[fact] = None
            else:
                self.dropped[reason.name.lower()] += 1
        return tuple(found)

    def candidate_ids(self, kind: str, shown: Sequence[ShownCandidate]) -> tuple[int, ...]:
        """Return the ids of the candidates that a list names by number."""
        found: dict[int, None] = {}
        for item in self._believable(kind):
            number = item.get("n")
            if isinstance(number, int) and number is not True and 0 < number <= len(shown):
                found[shown[number - 1].id] = None
            else:
                self.dropped["unknown number"] += 1
        return tuple(found)

    def _believable(self, kind: str) -> Iterator[dict[str, Any]]:
        """Yield the items of a list whose evidence stands in the user's words (M6)."""
        items = self._data.get(kind)
        if items is None:
            return
        if not isinstance(items, list):
            raise ShapeError(f"{kind} is no list")
        for item in items:
            if not isinstance(item, dict):
                self.dropped["malformed"] += 1
            elif self._require_evidence and not self._is_evident(item.get("evidence")):
                self.dropped["no evidence"] += 1
            else:
                yield item

    def _is_evident(self, evidence: object) -> bool:
        return isinstance(evidence, str) and self._words.hold(evidence)
