"""Failures in the operator's log: each cause once, not once for every message."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

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
            level, "%s (logged once an hour, however often it happens)", cause, exc_info=error
        )
