"""Requests to a homeserver that limits their rate or is away for a moment: wait, try again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from mautrix.errors import MatrixConnectionError, MatrixRequestError, MLimitExceeded

Result = TypeVar("Result")

# Five minutes in all. mautrix tells that there is a limit but not how long it lasts: what the
# homeserver says in `retry_after_ms` is gone by the time the error arrives here.
WAITS = (1, 2, 4, 8, 15, 30, 60, 60, 60, 60)
"""Seconds to wait after each failed attempt."""


async def patiently(
    attempt: Callable[[], Awaitable[Result]],
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> Result:
    """Return what an attempt returns, and try again while it fails for the moment only.

    An attempt may have arrived although it failed, so all of them have to be the same request
    to the homeserver, with the same transaction id.

    Raises:
        MatrixError: it failed for good, or every time.
    """
    for wait in WAITS:
        try:
            return await attempt()
        except (MatrixRequestError, MatrixConnectionError) as error:
            if not _may_pass(error):
                raise
        await sleep(wait)
    return await attempt()


def _may_pass(error: MatrixRequestError | MatrixConnectionError) -> bool:
    return isinstance(error, (MLimitExceeded, MatrixConnectionError)) or error.http_status >= 500
