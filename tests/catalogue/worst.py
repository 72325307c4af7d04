"""The worst plausible extractor: it says all that bad models have been seen to say.

It takes facts from the answer, from what is known, from the prompt's own examples, from quoted
lines and from nowhere; it confirms and contradicts every candidate. Its evidence is what bad
models offer: the answer, the fact itself, a quoted line, one word, a passage cut within a word,
something made up, something that is no text, or none. None of that is a quote of several whole
words of the user's own. What it could do with such a quote a case says itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from .case import Says

PROMPT_EXAMPLES = ("Works as a mechanical engineer", "Is allergic to nuts")
INVENTED = ("Name is John Doe", "Works as a software developer", "Has 3 cats")
NUMBERS_OUT_OF_RANGE = (0, -1, 10_000, True, None, "1", 1.5, [1])


def answer(payload: Mapping[str, Any], message: Says) -> str:
    """Return the answer to one extraction request about `message`."""
    if message.raw is not None:
        return message.raw
    texts = {candidate["fact"]: candidate["n"] for candidate in payload["candidates"]}
    bad_quotes = list(_bad_quotes(payload, message))
    wrong_facts = list(_wrong_facts(payload, message))
    new = [_fact(fact, quote) for fact in wrong_facts for quote in bad_quotes]
    everywhere = [_number(n, quote) for n in texts.values() for quote in bad_quotes]
    nowhere = [_number(n, message.prompt) for n in NUMBERS_OUT_OF_RANGE]
    return json.dumps(
        {
            "new": new + [_fact(*item) for item in message.new] + ["no object", None],
            "reinforced": everywhere + nowhere + _named(texts, message.again),
            "contradicted": everywhere + nowhere + _named(texts, message.contradicted),
        }
    )


def _fact(fact: object, quote: object) -> dict[str, Any]:
    return {"fact": fact, "evidence": quote}


def _number(number: object, quote: object) -> dict[str, Any]:
    return {"n": number, "evidence": quote}


def _named(numbers: Mapping[str, int], items: tuple[tuple[str, str], ...]) -> list[dict[str, Any]]:
    """Return items that name candidates by their facts, where they are shown."""
    return [_number(numbers[fact], quote) for fact, quote in items if fact in numbers]


def _quoted_lines(message: Says) -> list[str]:
    lines = (line.strip() for line in message.prompt.splitlines())
    return [line.lstrip("> ") for line in lines if line.startswith(">")]


def _statements(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"[.,!?。，！？\n]", text) if part.strip()]  # noqa: RUF001


def _wrong_facts(payload: Mapping[str, Any], message: Says) -> Iterator[object]:
    yield from _statements(message.reply)
    for fact in payload["known_memories"]:
        yield fact
        yield f"The user: {fact}"
    yield from _quoted_lines(message)
    yield from PROMPT_EXAMPLES
    yield from INVENTED


def _bad_quotes(payload: Mapping[str, Any], message: Says) -> Iterator[object]:
    yield message.reply
    yield from _statements(message.reply)
    yield from payload["known_memories"]
    yield from (candidate["fact"] for candidate in payload["candidates"])
    yield from _quoted_lines(message)
    yield from PROMPT_EXAMPLES
    yield from ("I am John Doe, a software developer", "", " ", "…", None, 7, ["I am"], {})
    words = str(payload["user_message"])
    if words.isascii():
        yield words.split(maxsplit=1)[0] if words.split() else ""
        if words[-2:].isalpha():
            yield words[:-1]  # cut within its last word
        if words[:2].isalpha():
            yield words[1:]
    else:
        yield words[:3]
