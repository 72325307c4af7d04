"""The simulated extractor: right, except where it is wrong, as often and in the ways one sets.

It knows what each message means. With the probability `wrong` a pass holds one mistake, of a
kind that the message gives occasion to. Besides, a candidate that should never have been noted
draws it in: where its subject comes up again, it is confirmed with the probability `anchoring`.
"""

from __future__ import annotations

import dataclasses
import enum
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.dataset import Statement, Turn, facts_of
from evaluation.judge import recognise, topic_of
from evaluation.material import INVENTIONS, TOPICS, Label


class Mistake(enum.Enum):
    """What an extractor does wrong."""

    MISS = "leaves a fact out"
    NOT_RECOGNISED = "takes a known fact in other words for a new one"
    WRONG_VALUE = "notes another value or number"
    TRANSIENT = "takes a state of the day for lasting"
    THIRD_PERSON = "takes somebody else's fact for the person's"
    QUESTION = "takes a question for a fact"
    ASSISTANT = "takes the assistant's words for the person's"
    INVENTED = "invents a fact"
    WRONG_CONFIRMATION = "confirms a candidate that nobody mentioned"
    WRONG_CONTRADICTION = "contradicts a candidate that nobody mentioned"


WEIGHTS: Mapping[Mistake, float] = {
    Mistake.MISS: 3,
    Mistake.NOT_RECOGNISED: 2,
    Mistake.WRONG_VALUE: 1,
    Mistake.TRANSIENT: 3,
    Mistake.THIRD_PERSON: 3,
    Mistake.QUESTION: 2,
    Mistake.ASSISTANT: 2,
    Mistake.INVENTED: 2,
    Mistake.WRONG_CONFIRMATION: 1,
    Mistake.WRONG_CONTRADICTION: 1,
}


@dataclasses.dataclass(frozen=True)
class ErrorRates:
    """How the simulated extractor errs.

    `weights` share the mistakes out among those that a message gives occasion to.
    `plausible_evidence` is how often what has no evidence still quotes real words of the
    message; `stock_inventions` how often an invention is one of those that models make up
    again and again.
    """

    wrong: float = 0.4
    weights: Mapping[Mistake, float] = dataclasses.field(default_factory=lambda: dict(WEIGHTS))
    plausible_evidence: float = 0.5
    stock_inventions: float = 0.5
    anchoring: float = 0.5


@dataclasses.dataclass(frozen=True)
class ErrorCount:
    """How often an extractor was wrong, counted in three ways.

    Attributes:
        passes: Extractions answered.
        wrong_passes: Of them, those with some mistake.
        items: What was reported: new facts, confirmations and contradictions.
        wrong_items: Of them, those that the message does not bear out.
        facts: Lasting facts that people said.
        left_out: Of them, those that the answer left out or got wrong.
    """

    passes: int = 0
    wrong_passes: int = 0
    items: int = 0
    wrong_items: int = 0
    facts: int = 0
    left_out: int = 0

    def __add__(self, other: ErrorCount) -> ErrorCount:
        return ErrorCount(
            *map(sum, zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True))
        )

    def shares(self) -> dict[str, float]:
        """Return the wrong passes, wrong items and facts left out, from 0 to 1."""
        return {
            "wrong_passes": self.wrong_passes / max(1, self.passes),
            "wrong_items": self.wrong_items / max(1, self.items),
            "left_out": self.left_out / max(1, self.facts),
        }


Answer = dict[str, list[dict[str, Any]]]
_BY_LABEL = {
    Mistake.TRANSIENT: Label.TRANSIENT,
    Mistake.THIRD_PERSON: Label.THIRD_PERSON,
    Mistake.QUESTION: Label.QUESTION,
}


class NoisyExtractor:
    """Answers extraction and cleanup requests about the turn that it was told of."""

    def __init__(self, seed: int, rates: ErrorRates | None = None) -> None:
        self._seed = seed
        self._rates = rates or ErrorRates()
        self._turn: Turn | None = None
        self._cleanups = random.Random(f"{seed}/cleanup")  # noqa: S311
        self.errors = ErrorCount()
        """How often it was wrong so far."""

    def read(self, turn: Turn) -> None:
        """Tell it what the next request is about."""
        self._turn = turn

    def extract(self, payload: Mapping[str, Any]) -> Answer:
        """Return the answer to an extraction request.

        The chances of a turn are the same whatever the settings are, so that runs compare.
        """
        assert self._turn is not None
        chances = random.Random(f"{self._seed}/{self._turn.id}")  # noqa: S311
        one = _Pass(self._turn, payload, self._rates, chances)
        answer = one.answer()
        self.errors += one.errors()
        return answer

    def clean_up(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a cleanup request, wrong as often as an extraction is."""
        memories = [(memory["n"], memory["fact"]) for memory in payload["memories"]]
        if self._cleanups.random() < self._rates.wrong:
            return self._clean_up_wrongly([number for number, _ in memories])
        return clean_up(memories)

    def _clean_up_wrongly(self, numbers: Sequence[int]) -> dict[str, Any]:
        return self._cleanups.choice(
            (
                {"drop": []},
                {"drop": [self._cleanups.choice(numbers)]},
                {"drop": list(numbers)},
            )
        )


def clean_up(memories: Sequence[tuple[int, str]]) -> dict[str, Any]:
    """Return a right cleanup of numbered memories, newest first.

    It merges what says the same and drops what a newer one has replaced.
    """
    groups: dict[str, list[tuple[int, str]]] = {}
    drop: list[int] = []
    settled: set[str] = set()
    for number, fact in memories:
        key = recognise(fact)
        topic = topic_of(key)
        if key is None or topic is None or key in groups:
            groups.setdefault(key or fact, []).append((number, fact))
            continue
        if topic in settled:
            drop.append(number)
            continue
        if key.endswith("ended") or _is_single(topic):
            settled.add(topic)
        groups[key] = [(number, fact)]
    merge = [
        {"n": [number for number, _ in group], "fact": group[-1][1]}
        for group in groups.values()
        if len(group) > 1
    ]
    return {"drop": drop, "merge": merge}


def _is_single(topic: str) -> bool:
    return any(one.name == topic and one.is_single for one in TOPICS)


class _Pass:
    """One extraction: what is right first, then a mistake."""

    def __init__(
        self,
        turn: Turn,
        payload: Mapping[str, Any],
        rates: ErrorRates,
        chances: random.Random,
    ) -> None:
        self._turn = turn
        self._rates = rates
        self._chances = chances
        self._known = {recognise(fact) for fact in payload["known_memories"]}
        self._candidates = [
            (candidate["n"], recognise(candidate["fact"]), candidate["fact"])
            for candidate in payload["candidates"]
        ]
        self._lasting = [one for one in turn.said if one.label is Label.DURABLE]
        self._answer: Answer = {"new": [], "reinforced": [], "contradicted": []}
        self._right_items = 0
        self._left_out = 0
        self._is_wrong = False

    def answer(self) -> Answer:
        # Drawn first, so that the draws are the same whatever the candidates are.
        errs = self._chances.random() < self._rates.wrong
        is_drawn_in = self._chances.random() < self._rates.anchoring
        mistake = self._draw_mistake() if errs else None
        spoiled = self._draw_spoiled(mistake)
        self._left_out = int(mistake in {Mistake.MISS, Mistake.WRONG_VALUE})
        for statement in self._lasting:
            if statement is not spoiled:
                self._report(statement)
        self._right_items = self._items()
        if is_drawn_in:
            self._confirm_wrong_candidates()
        if mistake is not None:
            self._is_wrong = True
            self._make(mistake, spoiled)
        if mistake is Mistake.NOT_RECOGNISED:
            self._right_items += 1  # The fact is true; only that it was known went unseen.
        return self._answer

    def errors(self) -> ErrorCount:
        """Return how wrong the answer given is."""
        items = self._items()
        return ErrorCount(
            1,
            int(self._is_wrong),
            items,
            items - self._right_items,
            len(self._lasting),
            self._left_out,
        )

    def _items(self) -> int:
        return sum(map(len, self._answer.values()))

    # --- what is right -------------------------------------------------------------------------

    def _report(self, statement: Statement) -> None:
        same = [number for number, key, _ in self._candidates if key == statement.key]
        if same:
            self._add_number("reinforced", same[0], statement.sentence)
        elif statement.key not in self._known:
            self._add_fact(self._chances.choice(statement.facts), statement.sentence)
        for number, key, _ in self._candidates:
            if _contradicts(statement, key):
                self._add_number("contradicted", number, statement.sentence)

    # --- what is wrong -------------------------------------------------------------------------

    def _draw_mistake(self) -> Mistake:
        labels = {statement.label for statement in self._turn.said}
        occasions = {
            Mistake.MISS: bool(self._lasting),
            Mistake.NOT_RECOGNISED: bool(self._lasting),
            Mistake.WRONG_VALUE: any(_is_single(one.topic) for one in self._lasting),
            Mistake.ASSISTANT: bool(self._turn.said_by_assistant),
            Mistake.INVENTED: True,
            Mistake.WRONG_CONFIRMATION: bool(self._candidates),
            Mistake.WRONG_CONTRADICTION: bool(self._candidates),
            **{mistake: label in labels for mistake, label in _BY_LABEL.items()},
        }
        possible = [mistake for mistake in Mistake if occasions[mistake]]
        weights = [self._rates.weights[mistake] for mistake in possible]
        (drawn,) = self._chances.choices(possible, weights)
        return drawn

    def _draw_spoiled(self, mistake: Mistake | None) -> Statement | None:
        """Return the lasting fact that the mistake spoils, if it is of such a kind."""
        if mistake is Mistake.WRONG_VALUE:
            return self._chances.choice([one for one in self._lasting if _is_single(one.topic)])
        if mistake in {Mistake.MISS, Mistake.NOT_RECOGNISED}:
            return self._chances.choice(self._lasting)
        return None

    def _make(self, mistake: Mistake, spoiled: Statement | None) -> None:
        match mistake:
            case Mistake.NOT_RECOGNISED:
                assert spoiled is not None
                self._add_fact(self._chances.choice(spoiled.facts), spoiled.sentence)
            case Mistake.WRONG_VALUE:
                assert spoiled is not None
                self._note_wrong_value(spoiled)
            case Mistake.ASSISTANT:
                statement = self._turn.said_by_assistant[0]
                self._add_fact(statement.facts[0], self._evidence(statement.sentence))
            case Mistake.INVENTED:
                self._add_fact(self._invention(), self._evidence("I told you so before"))
            case Mistake.WRONG_CONFIRMATION | Mistake.WRONG_CONTRADICTION:
                kind = "reinforced" if mistake is Mistake.WRONG_CONFIRMATION else "contradicted"
                number, _, fact = self._chances.choice(self._candidates)
                self._add_number(kind, number, self._evidence(fact))
            case Mistake.TRANSIENT | Mistake.THIRD_PERSON | Mistake.QUESTION:
                label = _BY_LABEL[mistake]
                statement = next(one for one in self._turn.said if one.label is label)
                self._add_fact(statement.facts[0], statement.sentence)

    def _confirm_wrong_candidates(self) -> None:
        asides = {one.key: one for one in self._turn.said if one.label is not Label.DURABLE}
        for number, key, _ in self._candidates:
            if key in asides:
                self._add_number("reinforced", number, asides[key].sentence)
                self._is_wrong = True

    def _note_wrong_value(self, statement: Statement) -> None:
        (topic,) = [one for one in TOPICS if one.name == statement.topic]
        others = [
            facts_of(topic, value, statement.language)
            for value in range(len(topic.values))
            if facts_of(topic, value, statement.language) != statement.facts
        ]
        self._add_fact(self._chances.choice(others)[0], statement.sentence)

    def _invention(self) -> str:
        if self._chances.random() < self._rates.stock_inventions:
            return self._chances.choice(INVENTIONS)
        return f"Owns boat number {self._chances.randrange(10_000)}"

    def _evidence(self, made_up: str) -> str:
        """Return a real quote of the message that shows nothing, or made-up evidence."""
        if self._chances.random() >= self._rates.plausible_evidence:
            return made_up
        clauses = [part for part in re.split(r"[.,:?¿]\s*", self._turn.words) if " " in part]
        return self._chances.choice(clauses) if clauses else self._turn.words

    def _add_fact(self, fact: str, evidence: str) -> None:
        self._answer["new"].append({"fact": fact, "evidence": evidence})

    def _add_number(self, kind: str, number: int, evidence: str) -> None:
        self._answer[kind].append({"n": number, "evidence": evidence})


def _contradicts(statement: Statement, key: str | None) -> bool:
    """Say whether a statement shows that a candidate is wrong or outdated."""
    is_over = statement.key == f"{key} ended"
    is_other_value = (
        topic_of(key) == statement.topic and _is_single(statement.topic) and key != statement.key
    )
    return is_over or is_other_value
