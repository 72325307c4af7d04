"""What a remembered text is worth: it is compared with what its person is known to have said."""

from __future__ import annotations

import enum
import functools
import re

from evaluation.dataset import Person, ended_key, topic_key
from evaluation.material import ASIDES, TOPICS, Label, Topic


class Verdict(enum.Enum):
    """What a text is."""

    TRUE = "true"
    OUTDATED = "was true once"
    WRONG_VALUE = "a wrong value"
    TRANSIENT = Label.TRANSIENT.value
    THIRD_PERSON = Label.THIRD_PERSON.value
    QUESTION = Label.QUESTION.value
    ASSISTANT = Label.ASSISTANT.value
    INVENTED = Label.INVENTED.value


_VERDICTS: dict[Label, Verdict] = {
    label: Verdict[label.name] for label in Label if label is not Label.DURABLE
}
_NUMBER_WORDS = {
    "two": "2", "three": "3", "four": "4", "five": "5", "zwei": "2", "drei": "3", "vier": "4",
    "fünf": "5", "dos": "2", "tres": "3", "cuatro": "4", "cinco": "5",
}  # fmt: skip
_OVER = re.compile(
    r"\b(?:no longer|not any ?more|stopped|gave up|quit|used to|nicht mehr|aufgehört|ya no)\b",
    re.IGNORECASE,
)


@functools.cache
def recognise(text: str) -> str | None:
    """Return the key of the fact that a text states, in whatever words; None if there is none."""
    plain = re.sub(
        r"\w+", lambda word: _NUMBER_WORDS.get(word[0].casefold(), word[0]), text.casefold()
    )
    for aside in ASIDES:
        if re.search(aside.words, plain):
            return aside.key
    for topic in TOPICS:
        for value in range(len(topic.values)):
            if _pattern(topic, value).search(plain):
                is_over = topic.ends and _OVER.search(plain)
                return (ended_key if is_over else topic_key)(topic.name, value)
    return None


def topic_of(key: str | None) -> str | None:
    """Return the topic of a fact, or None where it has none."""
    name = (key or "").partition(":")[0]
    return name if any(topic.name == name for topic in TOPICS) else None


@functools.cache
def _topic_value_pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(rf"\b{re.escape(word)}" for word in words))


def _pattern(topic: Topic, value: int) -> re.Pattern[str]:
    words = {
        re.sub(r"^(?:an?|ein|una) ", "", word.casefold()) for word in topic.values[value].values()
    }
    return _topic_value_pattern(tuple(sorted(words)))


def judge(text: str, person: Person) -> Verdict:
    """Return what a text is worth as a memory of `person` when all was said."""
    key = recognise(text)
    if key in person.true_at_end:
        return Verdict.TRUE
    if key in person.outdated:
        return Verdict.OUTDATED
    for aside in ASIDES:
        if aside.key == key:
            return _VERDICTS[aside.label]
    if topic_of(key) in {topic_of(known) for known in person.true_at_end}:
        return Verdict.WRONG_VALUE
    return Verdict.INVENTED
