"""May this be answered now? Prompt length, rate limits per user, each event only once."""

from __future__ import annotations

import collections
import dataclasses
import time
from collections.abc import Callable

from . import texts
from .config import Settings
from .texts import Problem

_TELL_AGAIN_SECONDS = 60.0
_MAX_REMEMBERED_EVENTS = 10_000


@dataclasses.dataclass(frozen=True)
class TooMany:
    """A refusal: how long to wait, and whether the user was told in this window already."""

    wait_seconds: float
    told_before: bool


@dataclasses.dataclass
class _Window:
    """When one user's allowed requests were, and when the user was last told to wait."""

    times: collections.deque[float]
    told: float | None = None


class RateLimit:
    """A sliding window per user: so many requests within so many seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Tell the time by `clock`, in seconds."""
        self._clock = clock
        self._windows: dict[str, _Window] = {}
        self._next_sweep = 0.0

    def take(self, user_id: str, count: int, window_seconds: float) -> TooMany | None:
        """Count one request of the user, or return why it is one too many.

        A `count` of 0 allows everything.
        """
        if count == 0:
            return None
        now = self._clock()
        self._sweep(now, window_seconds)
        window = self._windows.setdefault(user_id, _Window(collections.deque()))
        while window.times and window.times[0] <= now - window_seconds:
            window.times.popleft()
        if len(window.times) < count:
            window.times.append(now)
            window.told = None
            return None
        told_before = window.told is not None and window.told > now - window_seconds
        if not told_before:
            window.told = now
        # The request that has to leave the window before another fits in.
        return TooMany(window.times[-count] + window_seconds - now, told_before)

    def _sweep(self, now: float, window_seconds: float) -> None:
        """Forget, once in a window, the users whose requests all lie before it."""
        if now < self._next_sweep:
            return
        self._next_sweep = now + window_seconds
        self._windows = {
            user_id: window
            for user_id, window in self._windows.items()
            if window.times and window.times[-1] > now - window_seconds
        }


@dataclasses.dataclass(frozen=True)
class Refusal:
    """Why something is not answered; silent where the user was told a moment ago."""

    text: Problem
    is_silent: bool = False


class Limits:
    """Decides whether a prompt is answered now."""

    def __init__(self) -> None:
        self._ask = RateLimit()
        self._code = RateLimit()
        self._draw = RateLimit()
        self._story = RateLimit()
        self._not_allowed = RateLimit()

    def refusal(
        self, user_id: str, prompt: str, settings: Settings, *, is_code: bool
    ) -> Refusal | None:
        """Count a prompt of `!ask` or `!code`, or return why it is refused."""
        usage = texts.CODE_USAGE if is_code else texts.ASK_USAGE
        refusal = self._prompt_refusal(user_id, prompt, settings, usage)
        if refusal is not None:
            return refusal
        if is_code:
            return _refusal(
                self._code.take(
                    user_id, settings.code_rate_limit_count, settings.code_rate_limit_window
                )
            )
        return self.ask_refusal(user_id, settings)

    def draw_refusal(self, user_id: str, prompt: str, settings: Settings) -> Refusal | None:
        """Count a `!draw`, or return why it is refused."""
        return self._prompt_refusal(user_id, prompt, settings, texts.DRAW_USAGE) or _refusal(
            self._draw.take(
                user_id, settings.draw_rate_limit_count, settings.draw_rate_limit_window
            )
        )

    def story_refusal(self, user_id: str, prompt: str, settings: Settings) -> Refusal | None:
        """Count a `!story`, or return why it is refused."""
        seconds = settings.story_cooldown_seconds
        return self._prompt_refusal(user_id, prompt, settings, texts.STORY_USAGE) or _refusal(
            self._story.take(user_id, min(seconds, 1), seconds), texts.next_story
        )

    def _prompt_refusal(
        self, user_id: str, prompt: str, settings: Settings, usage: Problem
    ) -> Refusal | None:
        if not settings.allows(user_id):
            told = self._not_allowed.take(user_id, 1, _TELL_AGAIN_SECONDS) is not None
            return Refusal(texts.NOT_ALLOWED, is_silent=told)
        if not prompt:
            return Refusal(usage)
        if len(prompt) > settings.max_prompt_length:
            return Refusal(texts.prompt_too_long(len(prompt), settings.max_prompt_length))
        return None

    def ask_refusal(self, user_id: str, settings: Settings) -> Refusal | None:
        """Count what costs as much as `!ask`, or return why it is refused."""
        return _refusal(
            self._ask.take(user_id, settings.ask_rate_limit_count, settings.ask_rate_limit_window)
        )


def _refusal(
    too_many: TooMany | None, tell: Callable[[float], Problem] = texts.too_many
) -> Refusal | None:
    if too_many is None:
        return None
    return Refusal(tell(too_many.wait_seconds), is_silent=too_many.told_before)


class SeenEvents:
    """Tells an event that was delivered before from a new one."""

    def __init__(self) -> None:
        self._event_ids: collections.OrderedDict[str, None] = collections.OrderedDict()

    def is_new(self, event_id: str) -> bool:
        """Note an event; say whether it was not noted before."""
        if event_id in self._event_ids:
            return False
        self._event_ids[event_id] = None
        if len(self._event_ids) > _MAX_REMEMBERED_EVENTS:
            self._event_ids.popitem(last=False)
        return True
