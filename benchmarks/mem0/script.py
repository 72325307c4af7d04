"""The script behind both: the exchanges, and what a model that makes no mistake notes of each."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
from collections.abc import Iterable

from evaluation.dataset import Statement, people
from evaluation.judge import recognise
from evaluation.material import Label

SEED = 1
EXCHANGES = 500


@dataclasses.dataclass(frozen=True)
class Exchange:
    """One message with its answer."""

    user: str
    id: str
    time: datetime.datetime
    words: str
    reply: str
    statements: tuple[Statement, ...]
    """The lasting facts that the message states."""


def exchanges(count: int = EXCHANGES) -> list[Exchange]:
    """Return the first exchanges of the evaluation's data set, each person's in order."""
    everything = (
        Exchange(
            person.name,
            turn.id,
            turn.time,
            turn.words,
            turn.reply,
            tuple(one for one in turn.said if one.label is Label.DURABLE),
        )
        for person in people(SEED)
        for turn in person.turns
    )
    return list(itertools.islice(everything, count))


class Extractor:
    """A model that knows what each message states; it recognises a fact in whatever words."""

    def __init__(self, script: Iterable[Exchange]) -> None:
        self._by_words = {exchange.words: exchange.statements for exchange in script}

    def stated(self, words: str) -> tuple[Statement, ...]:
        """Return the lasting facts that a message of the script states.

        Raises:
            KeyError: It is no message of the script.
        """
        return self._by_words[words]

    @staticmethod
    def key(text: str) -> str | None:
        """Return which fact a remembered text is."""
        return recognise(text)
