"""Rate limits and the memory of seen events."""

from __future__ import annotations

import dataclasses
import re

import pytest

from llmbot import limits, texts
from llmbot.config import Settings
from llmbot.limits import Limits, RateLimit, Refusal, SeenEvents, TooMany

from .settings import default_settings

ADA = "@ada:example.org"
BOB = "@bob:example.org"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def limit(clock: Clock) -> RateLimit:
    return RateLimit(clock)


def test_so_many_in_a_window_and_then_when_to_come_back(limit: RateLimit, clock: Clock) -> None:
    for _ in range(3):
        assert limit.take(ADA, 3, 60) is None
        clock.now += 10
    assert limit.take(ADA, 3, 60) == TooMany(30, told_before=False)
    clock.now += 29.9
    refused = limit.take(ADA, 3, 60)
    assert refused is not None
    assert refused.told_before
    clock.now += 0.1
    assert limit.take(ADA, 3, 60) is None


def test_the_window_slides(limit: RateLimit, clock: Clock) -> None:
    allowed = []
    for second in range(0, 120, 5):
        clock.now = 1000.0 + second
        if limit.take(ADA, 2, 30) is None:
            allowed.append(second)
    assert allowed == [0, 5, 30, 35, 60, 65, 90, 95]


def test_users_have_their_own_window(limit: RateLimit) -> None:
    assert limit.take(ADA, 1, 60) is None
    assert limit.take(ADA, 1, 60) is not None
    assert limit.take(BOB, 1, 60) is None


def test_zero_is_unlimited(limit: RateLimit) -> None:
    assert all(limit.take(ADA, 0, 60) is None for _ in range(1000))


def test_a_lower_count_takes_effect_at_once(limit: RateLimit, clock: Clock) -> None:
    for _ in range(5):
        assert limit.take(ADA, 5, 60) is None
        clock.now += 1
    # The last of the five has to leave before one more fits in.
    assert limit.take(ADA, 1, 60) == TooMany(59, told_before=False)


def test_told_again_in_a_later_window(limit: RateLimit, clock: Clock) -> None:
    told = []
    for second in range(0, 100, 2):
        clock.now = 1000.0 + second
        refused = limit.take(ADA, 1, 30)
        if refused and not refused.told_before:
            told.append(second)
    assert told == [2, 32, 62, 92]


def test_silent_users_are_forgotten(limit: RateLimit, clock: Clock) -> None:
    for number in range(100):
        limit.take(f"@user{number}:example.org", 3, 60)
    clock.now += 121
    limit.take(ADA, 3, 60)
    assert list(limit._windows) == [ADA]


def test_an_event_is_new_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_MAX_REMEMBERED_EVENTS", 3)
    seen = SeenEvents()
    assert seen.is_new("$a")
    assert not seen.is_new("$a")
    for event_id in ("$b", "$c"):
        assert seen.is_new(event_id)
    assert not seen.is_new("$a")
    assert seen.is_new("$d")
    assert seen.is_new("$a"), "the oldest made room"


class TestLimits:
    def ask(self, limits: Limits, settings: Settings, prompt: str = "hello") -> Refusal | None:
        return limits.refusal(ADA, prompt, settings, is_code=False)

    def test_an_empty_prompt_gets_the_usage(self) -> None:
        limits, settings = Limits(), default_settings()
        assert self.ask(limits, settings, "") == Refusal(texts.ASK_USAGE)
        refused = limits.refusal(ADA, "", settings, is_code=True)
        assert refused == Refusal(texts.CODE_USAGE)

    def test_a_long_prompt_is_told_the_limit(self) -> None:
        settings = dataclasses.replace(default_settings(), max_prompt_length=5)
        assert self.ask(Limits(), settings, "12345") is None
        assert self.ask(Limits(), settings, "123456") == Refusal(texts.prompt_too_long(6, 5))

    def test_ask_and_code_have_limits_of_their_own(self) -> None:
        limits = Limits()
        settings = dataclasses.replace(
            default_settings(), ask_rate_limit_count=1, code_rate_limit_count=2
        )
        assert self.ask(limits, settings) is None
        first, second = self.ask(limits, settings), limits.ask_refusal(ADA, settings)
        assert first is not None
        assert second is not None
        assert (first.is_silent, second.is_silent) == (False, True)
        allowed = [limits.refusal(ADA, "x", settings, is_code=True) for _ in range(3)]
        assert [refusal is None for refusal in allowed] == [True, True, False]

    def test_draw_and_story_have_limits_of_their_own(self) -> None:
        limits = Limits()
        settings = dataclasses.replace(
            default_settings(), ask_rate_limit_count=1, draw_rate_limit_count=2
        )
        assert limits.draw_refusal(ADA, "", settings) == Refusal(texts.DRAW_USAGE)
        assert limits.story_refusal(ADA, "", settings) == Refusal(texts.STORY_USAGE)
        drawn = [limits.draw_refusal(ADA, "x", settings) for _ in range(3)]
        assert [refusal is None for refusal in drawn] == [True, True, False]
        told = [limits.story_refusal(ADA, "x", settings) for _ in range(2)]
        assert [refusal is None for refusal in told] == [True, False]
        assert limits.story_refusal(BOB, "x", settings) is None
        assert self.ask(limits, settings) is None

    def test_a_cooldown_of_zero_is_none(self) -> None:
        limits = Limits()
        settings = dataclasses.replace(default_settings(), story_cooldown_seconds=0)
        assert all(limits.story_refusal(ADA, "x", settings) is None for _ in range(100))

    @pytest.mark.parametrize(
        ("expressions", "allowed"),
        [
            ([], True),
            (["@ada:example.org"], True),
            ([r"@.*:example\.org"], True),
            (["@bob:.*", "@ada:.*"], True),
            (["@ada"], False),
            ([r"@.*:example\.or"], False),
            (["@Ada:example.org"], False),
        ],
    )
    def test_an_expression_has_to_fit_the_whole_id(
        self, expressions: list[str], allowed: bool
    ) -> None:
        compiled = tuple(map(re.compile, expressions))
        settings = dataclasses.replace(default_settings(), allowed_users=compiled)
        limits = Limits()
        refusal = self.ask(limits, settings)
        assert (refusal is None) is allowed
        if not allowed:
            assert refusal == Refusal(texts.NOT_ALLOWED)
            assert self.ask(limits, settings) == Refusal(texts.NOT_ALLOWED, is_silent=True)
