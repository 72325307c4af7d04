"""Failures in the operator's log: each cause once, and nobody's text with it."""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections.abc import Callable, Iterator

import asyncpg
from mautrix.errors import MatrixError

REPORT_AGAIN_SECONDS = 3600.0


class FailureLog:
    """Logs a cause when it first appears, and again if it is still there an hour later."""

    def __init__(self, log: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        """Write to `log`; tell the time by `clock`, in seconds."""
        self._log = log
        self._clock = clock
        self._reported: dict[str, float] = {}

    def report(
        self, cause: str, level: int = logging.WARNING, error: Exception | None = None
    ) -> None:
        """Log `cause`, with the traceback of `error`, unless it was logged within the hour."""
        now = self._clock()
        if now - self._reported.get(cause, -REPORT_AGAIN_SECONDS) < REPORT_AGAIN_SECONDS:
            return
        self._reported[cause] = now
        self._log.log(
            level,
            "%s (logged once an hour, however often it happens)%s",
            cause,
            traceback_of(error),
        )


def traceback_of(error: BaseException | None) -> str:
    """Return what stands below a line of the log: where an error came from, and its kind.

    logging's own traceback would end with the error's message, which may quote what somebody
    said: PostgreSQL's shows the row that it refuses, asyncpg's the value that it cannot send.
    """
    return "".join(
        f"\n{''.join(traceback.format_tb(link.__traceback__))}{_kind(link)}{_message(link)}"
        for link in _chain(error)
    ).rstrip()


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error after those that led to it."""
    chain: list[BaseException] = []
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    yield from reversed(chain)


def _kind(error: BaseException) -> str:
    return f"{type(error).__module__}.{type(error).__qualname__}"


def _message(error: BaseException) -> str:
    """Return the message of an error whose messages speak of machines, and not of texts."""
    match error:
        # A value was not right: what was wrong with it cannot be told without it.
        case asyncpg.DataError() | ValueError():
            return ""
        case asyncpg.PostgresError(args=[message, *_]):
            # Without the details, which hold the row.
            return f": {message}"
        case asyncpg.InterfaceError() | OSError() | asyncio.TimeoutError() | MatrixError():
            return f": {error}"
        case _:
            return ""
