"""What operators are told of how the bot is set up."""

from __future__ import annotations

import collections
import dataclasses

import pytest

from llmbot.config import Settings
from llmbot.counters import Counters
from llmbot.health import setup
from llmbot.models.client import Provider
from llmbot.texts import health
from llmbot.texts import setup_line as told

from .settings import default_settings

SETTINGS = dataclasses.replace(
    default_settings(),
    assistant_model="one/large",
    image_model="",
    providers={
        "one": Provider("http://one.example", "ONE_KEY"),
        "two": Provider("http://two.example", "TWO_KEY"),
        "local": Provider("http://local.example", ""),
    },
)


def setup_line(version: str, settings: Settings, environment: dict[str, str]) -> str:
    return told(setup(version, settings, environment))


def test_the_line_names_version_models_keys_and_memory_settings() -> None:
    assert setup_line("1.2.3", SETTINGS, {"ONE_KEY": "abc123"}) == (
        "llmbot 1.2.3; models: assistant/code/memory/verse one/large, image none; "
        "keys: one present; memory: threshold 2, candidate TTL 14 days, at most 50 a person, "
        "cleanup interval 3, mention gap 0 minutes, evidence required"
    )


def test_models_of_their_own_stand_apart_with_each_provider_once() -> None:
    settings = dataclasses.replace(
        SETTINGS, own_code_model="two/code", own_memory_model="local/small", image_model="two/art"
    )
    line = setup_line("1.2.3", settings, {"TWO_KEY": "abc123"})
    assert (
        "models: assistant/verse one/large, code two/code, memory local/small, image two/art; "
        "keys: one missing (ONE_KEY), two present, local needs none;"
    ) in line


def test_a_provider_that_does_not_exist_is_named() -> None:
    settings = dataclasses.replace(SETTINGS, own_verse_model="typo/large")
    assert "keys: one missing (ONE_KEY), typo is not in providers;" in setup_line(
        "1", settings, {}
    )


@pytest.mark.parametrize("key", ["", "  ", "two\nlines"])
def test_a_key_that_no_call_can_send_counts_as_missing(key: str) -> None:
    assert "one missing (ONE_KEY)" in setup_line("1", SETTINGS, {"ONE_KEY": key})


def test_no_key_is_ever_shown() -> None:
    assert "abc123" not in setup_line("1", SETTINGS, {"ONE_KEY": "abc123", "TWO_KEY": "abc123"})


def test_evidence_that_is_not_required_stands_out() -> None:
    settings = dataclasses.replace(SETTINGS, memory_require_evidence=False)
    assert setup_line("1", settings, {}).endswith("evidence NOT required")


def test_operators_are_told_the_same_and_the_counts_with_failures_by_cause() -> None:
    counters = Counters(turns=3, passes=2, promotions=1, cleanups=1)
    counters.failures.update({"timeout": 2, "busy": 1})
    counters.count_dropped(collections.Counter({"no evidence": 4, "malformed": 1, "secret": 2}))
    set_up = setup("1.2.3", SETTINGS, {})
    *lines, turns, passes = health(set_up, counters, 1, 3725.0).plain.splitlines()
    assert "; ".join(lines) == told(set_up)
    assert turns == "since the start 1 h 2 min ago: turns 3, failures busy 1, timeout 2"
    assert passes == (
        "passes 2 (running now 1), promotions 1, dropped for lack of evidence 4, "
        "for other reasons 3, cleanups 1"
    )
    assert "failures 0" in health(set_up, Counters(), 0, 0).plain
