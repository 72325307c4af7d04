"""Waiting for a homeserver."""

from __future__ import annotations

import pytest
from mautrix.errors import (
    MatrixConnectionError,
    MatrixUnknownRequestError,
    MForbidden,
    MLimitExceeded,
    MTooLarge,
)

from llmbot.patience import WAITS, patiently

LIMITED = MLimitExceeded(429, "too many")


class Homeserver:
    """Fails in a given way, then answers; notes how long it was given."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.waits: list[float] = []

    async def answer(self) -> str:
        if self.failures:
            raise self.failures.pop(0)
        return "sent"

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


async def test_what_succeeds_is_done_once() -> None:
    homeserver = Homeserver()
    assert await patiently(homeserver.answer, homeserver.sleep) == "sent"
    assert homeserver.waits == []


@pytest.mark.parametrize(
    "failure",
    [LIMITED, MatrixConnectionError("gone"), MatrixUnknownRequestError(502, "bad gateway")],
)
async def test_what_may_pass_is_waited_for_longer_and_longer(failure: Exception) -> None:
    homeserver = Homeserver(failure, failure, failure)
    assert await patiently(homeserver.answer, homeserver.sleep) == "sent"
    assert homeserver.waits == list(WAITS[:3])
    assert homeserver.waits == sorted(set(homeserver.waits))


@pytest.mark.parametrize(
    "failure",
    [MForbidden(403, "no"), MTooLarge(413, "large"), MatrixUnknownRequestError(400, "what?")],
)
async def test_what_will_not_pass_is_not_waited_for(failure: Exception) -> None:
    homeserver = Homeserver(failure)
    with pytest.raises(type(failure)):
        await patiently(homeserver.answer, homeserver.sleep)
    assert homeserver.waits == []


async def test_patience_ends_after_five_minutes() -> None:
    homeserver = Homeserver(*[LIMITED] * 100)
    with pytest.raises(MLimitExceeded):
        await patiently(homeserver.answer, homeserver.sleep)
    assert sum(homeserver.waits) == 300
