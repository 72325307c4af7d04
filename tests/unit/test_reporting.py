from __future__ import annotations

import logging

import asyncpg
import pytest
from mautrix.errors import MatrixConnectionError

from devstack.build import ROOT
from llmbot.reporting import REPORT_AGAIN_SECONDS, FailureLog, traceback_of


def test_each_cause_is_logged_once_an_hour(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    failures = FailureLog(logging.getLogger("test.failures"), lambda: now)
    for _ in range(3):
        failures.report("the key is missing")
        failures.report("the model is unknown", logging.ERROR)
    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR"]
    now = REPORT_AGAIN_SECONDS
    failures.report("the key is missing")
    assert len(caplog.records) == 3


def raised(error: Exception, *, cause: Exception | None = None) -> Exception:
    """Return an error that was raised, as one that was caught."""
    try:
        raise error from cause  # noqa: TRY301
    except Exception as caught:  # noqa: BLE001
        return caught


def refused_row() -> Exception:
    fields = {
        "C": "23514",
        "M": 'new row for relation "memories" violates check constraint "full"',
        "D": "Failing row contains (7, @ada:example.org, Likes tea).",
    }
    error: Exception = asyncpg.PostgresError.new(fields)
    assert "Likes tea" in str(error)
    return error


def test_a_traceback_tells_where_and_what_and_quotes_nobody() -> None:
    told = traceback_of(raised(refused_row()))
    assert "in raised" in told
    assert told.endswith(
        "asyncpg.exceptions.CheckViolationError: "
        'new row for relation "memories" violates check constraint "full"'
    )
    assert "Likes tea" not in told


@pytest.mark.parametrize(
    "error",
    [
        KeyError("Likes tea"),
        ValueError("Likes tea"),
        RuntimeError("Likes tea"),
        UnicodeEncodeError("utf-8", "Likes tea\ud800", 9, 10, "surrogates not allowed"),
        asyncpg.DataError("invalid input: Likes tea"),
        asyncpg.exceptions._base.DataError("invalid input for query argument $1: 'Likes tea'"),
    ],
    ids=repr,
)
def test_what_may_quote_somebody_is_left_out(error: Exception) -> None:
    told = traceback_of(raised(RuntimeError(), cause=raised(error)))
    assert type(error).__qualname__ in told
    assert "Likes" not in told


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(111, "nobody listens"),
        asyncpg.InterfaceError("nobody listens"),
        asyncpg.ConnectionDoesNotExistError("nobody listens"),
        MatrixConnectionError("nobody listens"),
    ],
    ids=repr,
)
def test_what_speaks_of_machines_is_told(error: Exception) -> None:
    assert traceback_of(raised(error)).endswith("nobody listens")


def test_an_error_stands_below_the_one_that_led_to_it() -> None:
    told = traceback_of(raised(RuntimeError(), cause=raised(ConnectionResetError("gone"))))
    assert told.startswith("\n  File")
    assert told.index("ConnectionResetError: gone") < told.index("builtins.RuntimeError")


def test_without_an_error_nothing_stands_below() -> None:
    assert traceback_of(None) == ""


def test_no_line_of_the_log_has_a_traceback_of_loggings_own() -> None:
    for path in (ROOT / "llmbot").glob("**/*.py"):
        source = path.read_text()
        assert "exc_info" not in source, path
        assert ".exception(" not in source, path
