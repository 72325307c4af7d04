"""The data set: invented people who talk for some weeks, each statement labelled.

Everything follows from one seed. What is drawn, and how often, stands in the constants.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
import random
from collections.abc import Iterator, Sequence

from evaluation.material import (
    ASIDES,
    OPENINGS,
    REPLIES,
    REQUESTS,
    SMALL_TALK,
    TOPICS,
    Aside,
    Label,
    Topic,
)

PEOPLE = 30
START = datetime.datetime(2026, 9, 1, 8, tzinfo=datetime.timezone.utc)
DAYS = 35
CONVERSATIONS = range(5, 9)
"""How many conversations a person has."""
TOPICS_OF_A_PERSON = 8
MENTIONS = {1: 0.25, 2: 0.2, 3: 0.2, 4: 0.15, 5: 0.2}
"""In how many conversations a lasting fact comes up, with its probability."""
SAID_TWICE_AT_ONCE = 0.15
"""How probable it is that a fact comes up once more in one of its conversations."""
CHANGES = 0.5
"""How probable it is that a value that can change does so."""
ENDS = 0.3
"""How probable it is that something that can end does so."""
ASIDES_OF_A_PERSON = {
    Label.TRANSIENT: 5,
    Label.THIRD_PERSON: 3,
    Label.QUESTION: 3,
    Label.ASSISTANT: 2,
}
ASIDE_AGAIN = {
    Label.TRANSIENT: 0.25,
    Label.THIRD_PERSON: 0.3,
    Label.QUESTION: 0.3,
    Label.ASSISTANT: 0.5,
}
"""How probable it is that an aside comes up in a second conversation."""
LANGUAGES_OF_PEOPLE = (
    *[("en",)] * 6,
    ("de",),
    ("es",),
    ("en", "de"),
    ("en", "es"),
)
"""The languages of ten people; who has two speaks one in each conversation."""


@dataclasses.dataclass(frozen=True)
class Statement:
    """One thing that is said, and how an extractor may note it.

    `key` is the same for the same fact in whatever words; `sentence` stands in the message (or,
    for what the assistant says, in the reply) word for word.
    """

    key: str
    label: Label
    topic: str
    language: str
    sentence: str
    facts: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Turn:
    """One message with its answer."""

    id: str
    time: datetime.datetime
    words: str
    reply: str
    said: tuple[Statement, ...] = ()
    said_by_assistant: tuple[Statement, ...] = ()


@dataclasses.dataclass(frozen=True)
class Conversation:
    """Turns of one day."""

    id: str
    turns: tuple[Turn, ...]


@dataclasses.dataclass(frozen=True)
class Person:
    """Somebody and all they said.

    `true_at_end` holds the keys of the lasting facts that hold when the last word is said;
    `outdated` those that held once; `updates` the keys that took the place of another one.
    """

    name: str
    conversations: tuple[Conversation, ...]
    true_at_end: frozenset[str]
    outdated: frozenset[str]
    updates: frozenset[str]

    @property
    def turns(self) -> Iterator[Turn]:
        """All turns, oldest first."""
        for conversation in self.conversations:
            yield from conversation.turns

    @property
    def mentions(self) -> dict[str, list[datetime.datetime]]:
        """When each lasting fact was said."""
        found: dict[str, list[datetime.datetime]] = collections.defaultdict(list)
        for turn in self.turns:
            for statement in turn.said:
                if statement.label is Label.DURABLE:
                    found[statement.key].append(turn.time)
        return found


def topic_key(topic: str, value: int) -> str:
    """Return the key of the fact that a topic has this value."""
    return f"{topic}:{value}"


def ended_key(topic: str, value: int) -> str:
    """Return the key of the fact that it is over."""
    return f"{topic}:{value} ended"


def people(seed: int, count: int = PEOPLE) -> tuple[Person, ...]:
    """Return the data set of a seed."""
    return tuple(_PersonMaker(seed, number).make() for number in range(count))


class _PersonMaker:
    """Draws one person; the same seed and number give the same person."""

    def __init__(self, seed: int, number: int) -> None:
        self._random = random.Random(f"{seed}/{number}")  # noqa: S311
        self._name = f"p{number:02}"
        self._languages = LANGUAGES_OF_PEOPLE[number % len(LANGUAGES_OF_PEOPLE)]
        self._count = self._random.choice(CONVERSATIONS)
        self._spoken = [self._random.choice(self._languages) for _ in range(self._count)]
        self._said: list[list[Statement]] = [[] for _ in range(self._count)]
        self._true: set[str] = set()
        self._outdated: set[str] = set()
        self._updates: set[str] = set()

    def make(self) -> Person:
        for topic in self._random.sample(TOPICS, TOPICS_OF_A_PERSON):
            self._live_through(topic)
        for label, count in ASIDES_OF_A_PERSON.items():
            choice = [aside for aside in ASIDES if aside.label is label]
            for aside in self._random.sample(choice, count):
                self._say_aside(aside)
        days = sorted(self._random.sample(range(DAYS), self._count))
        return Person(
            self._name,
            tuple(self._conversation(number, day) for number, day in enumerate(days)),
            frozenset(self._true),
            frozenset(self._outdated),
            frozenset(self._updates),
        )

    def _live_through(self, topic: Topic) -> None:
        """Say a topic's value, and that it changed or ended if it does."""
        first, second = self._random.sample(range(len(topic.values)), 2)
        probability = CHANGES if topic.changes else ENDS if topic.ends else 0.0
        all_days = range(self._count)
        if self._random.random() >= probability:
            self._mention(topic, first, all_days)
            self._true.add(topic_key(topic.name, first))
            return
        turning_point = self._random.randrange(2, self._count - 1)
        self._mention(topic, first, range(turning_point))
        self._outdated.add(topic_key(topic.name, first))
        new = topic_key(topic.name, second) if topic.changes else ended_key(topic.name, first)
        after = all_days[turning_point:]
        if topic.changes:
            self._mention(topic, second, after, is_new=True)
        else:
            for place in self._places(after):
                self._said[place].append(self._end(topic, first, self._spoken[place]))
        self._true.add(new)
        self._updates.add(new)

    def _places(self, days: Sequence[int]) -> list[int]:
        """Draw the conversations in which a lasting fact comes up, some of them twice."""
        (mentions,) = self._random.choices(list(MENTIONS), list(MENTIONS.values()))
        places = sorted(self._random.sample(days, min(mentions, len(days))))
        if self._random.random() < SAID_TWICE_AT_ONCE:
            places.append(self._random.choice(places))
        return sorted(places)

    def _mention(
        self, topic: Topic, value: int, days: Sequence[int], *, is_new: bool = False
    ) -> None:
        for number, place in enumerate(self._places(days)):
            language = self._spoken[place]
            text = (
                topic.changes[language]
                if is_new and number == 0
                else self._random.choice(topic.sentences[language])
            )
            self._said[place].append(
                Statement(
                    topic_key(topic.name, value),
                    Label.DURABLE,
                    topic.name,
                    language,
                    text.format(v=topic.values[value][language]),
                    facts_of(topic, value, language),
                )
            )

    def _end(self, topic: Topic, value: int, language: str) -> Statement:
        word = topic.values[value][language]
        return Statement(
            ended_key(topic.name, value),
            Label.DURABLE,
            topic.name,
            language,
            topic.ends[language].format(v=word),
            (topic.ended[language].format(v=word),),
        )

    def _say_aside(self, aside: Aside) -> None:
        times = 2 if self._random.random() < ASIDE_AGAIN[aside.label] else 1
        for number, place in enumerate(sorted(self._random.sample(range(self._count), times))):
            language = self._spoken[place]
            self._said[place].append(
                Statement(
                    aside.key,
                    aside.label,
                    "",
                    language,
                    aside.sentences[language][number],
                    (aside.fact[language],),
                )
            )

    # --- conversations -------------------------------------------------------------------------

    def _conversation(self, number: int, day: int) -> Conversation:
        language = self._spoken[number]
        said = self._said[number]
        from_assistant = [one for one in said if one.label is Label.ASSISTANT]
        own = [one for one in said if one.label is not Label.ASSISTANT]
        self._random.shuffle(own)
        messages: list[tuple[Statement, ...]] = [()] * self._random.randint(1, 2)
        while own:
            together = 2 if len(own) > 1 and self._random.random() < 0.3 else 1
            messages.append(tuple(own[:together]))
            own = own[together:]
        self._random.shuffle(messages)
        time = START + datetime.timedelta(days=day, hours=self._random.randrange(12))
        turns = []
        for place, statements in enumerate(messages):
            time += datetime.timedelta(minutes=self._random.randint(1, 6))
            # The assistant says its own where it falls.
            falls = from_assistant if place == len(messages) - 1 else from_assistant[:1]
            if falls:
                from_assistant = from_assistant[len(falls) :]
            turns.append(
                Turn(
                    f"{self._name}/{number}/{place}",
                    time,
                    self._words(statements, language),
                    self._reply(falls, language),
                    statements,
                    tuple(falls),
                )
            )
        return Conversation(f"{self._name}-{number}", tuple(turns))

    def _words(self, statements: Sequence[Statement], language: str) -> str:
        choose = self._random.choice
        if not statements:
            return choose(SMALL_TALK[language])
        parts = [choose(OPENINGS[language])]
        for statement in statements:
            mark = "?" if statement.label is Label.QUESTION else "."
            parts.append(f"{statement.sentence}{mark}")
        parts.append(choose(REQUESTS[language]))
        return " ".join(part for part in parts if part)

    def _reply(self, statements: Sequence[Statement], language: str) -> str:
        parts = [f"{statement.sentence}." for statement in statements]
        return " ".join([*parts, self._random.choice(REPLIES[language])])


def facts_of(topic: Topic, value: int, language: str) -> tuple[str, ...]:
    """Return the wordings in which a topic's value may be noted."""
    word = topic.values[value][language]
    return tuple(fact.format(v=word) for fact in topic.facts[language])
