"""The model behind `make bench-mem0` answers llmbot and mem0 from one script."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from benchmarks.mem0.model import DIMENSIONS, Answers, tokens, vector
from benchmarks.mem0.script import EXCHANGES, Exchange, Extractor, exchanges
from devstack.scripted_model import RecordedRequest

SCRIPT = exchanges()
TWO_FACTS = next(exchange for exchange in SCRIPT if len(exchange.statements) == 2)


def request(content: str, response_format: dict[str, Any]) -> RecordedRequest:
    messages = [{"role": "user", "content": content}]
    body = {"model": "scripted", "messages": messages, "response_format": response_format}
    return RecordedRequest.parse(json.dumps(body).encode(), {})


def by_llmbot(
    exchange: Exchange, *, known: tuple[str, ...] = (), candidates: tuple[str, ...] = ()
) -> RecordedRequest:
    payload = {
        "known_memories": known,
        "candidates": [{"n": n, "fact": fact} for n, fact in enumerate(candidates, start=1)],
        "user_message": exchange.words,
        "assistant_reply": exchange.reply,
    }
    schema = {"type": "json_schema", "json_schema": {"name": "memory_extraction"}}
    return request(json.dumps(payload), schema)


def by_mem0(exchange: Exchange, *existing: str) -> RecordedRequest:
    memories = [{"id": str(n), "text": text} for n, text in enumerate(existing)]
    prompt = (
        f"## Last k Messages\n\n\n## Existing Memories\n{json.dumps(memories)}\n\n"
        f"## New Messages\nuser: {exchange.words}\nassistant: {exchange.reply}\n\n\n"
        "## Observation Date\n2026-01-01\n\n# Output:"
    )
    return request(prompt, {"type": "json_object"})


def answer(answers: Answers, asked: RecordedRequest) -> dict[str, Any]:
    message = json.loads(answers.chat(asked).body)["choices"][0]["message"]
    found = json.loads(message["content"])
    assert isinstance(found, dict)
    return found


def test_500_exchanges_each_with_one_meaning() -> None:
    assert len(SCRIPT) == EXCHANGES
    extractor = Extractor(SCRIPT)
    for exchange in SCRIPT:
        keys = {statement.key for statement in exchange.statements}
        assert {statement.key for statement in extractor.stated(exchange.words)} == keys
        # A fact is known again by the wording in which it is noted.
        assert {extractor.key(statement.facts[0]) for statement in exchange.statements} == keys


def test_both_are_told_the_same_facts_and_none_twice() -> None:
    answers = Answers(Extractor(SCRIPT))
    one, two = (statement.facts[0] for statement in TWO_FACTS.statements)
    assert [item["fact"] for item in answer(answers, by_llmbot(TWO_FACTS))["new"]] == [one, two]
    assert [item["text"] for item in answer(answers, by_mem0(TWO_FACTS))["memory"]] == [one, two]
    again = answer(answers, by_llmbot(TWO_FACTS, known=(one,), candidates=(two,)))
    assert again["new"] == []
    assert [item["n"] for item in again["reinforced"]] == [1]
    assert answer(answers, by_mem0(TWO_FACTS, two, one)) == {"memory": []}


def test_a_prompt_of_another_mem0_is_an_error() -> None:
    with pytest.raises(ValueError, match="another shape"):
        Answers(Extractor(SCRIPT)).chat(request("Extract facts: hello", {"type": "json_object"}))


def test_what_is_counted() -> None:
    answers = Answers(Extractor(SCRIPT))
    asked = by_mem0(TWO_FACTS)
    answers.chat(asked)
    assert answers.counts.chats == 1
    schema = tokens('{"type": "json_object"}')
    assert answers.counts.prompt_tokens == tokens(asked.user_message) + schema
    assert tokens("") == 0
    assert tokens("vier") == 1
    assert tokens("Köln!") == 2


def test_texts_with_words_in_common_are_near_each_other() -> None:
    def likeness(left: str, right: str) -> float:
        return sum(a * b for a, b in zip(vector(left), vector(right), strict=True))

    assert len(vector("")) == DIMENSIONS
    assert math.isclose(likeness("Has two cats", "two cats: has"), 1)
    near, far = "I have two cats at home", "Works as a nurse in Leipzig"
    assert likeness("Has two cats", near) > likeness("Has two cats", far)
