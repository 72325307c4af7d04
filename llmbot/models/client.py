"""Chat completions over aiohttp: one shared limit, time-outs, retries, servers' differences."""

from __future__ import annotations

import asyncio
import dataclasses
import email.utils
import enum
import heapq
import itertools
import logging
import os
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from .download import DownloadError, TooManyBytesError, download, read_at_most
from .errors import (
    BadAnswerError,
    BadPictureError,
    BusyError,
    ContentRefusedError,
    DrawingRefusedError,
    KeyRefusedError,
    MissingKeyError,
    NoModelError,
    NoPicturesError,
    OversizedPictureError,
    RequestRefusedError,
    TimedOutError,
    UnknownModelError,
    UnknownProviderError,
)
from .parsing import Completion, ShapeError, parse_completion, parse_drawing, refuses_content

Message = dict[str, Any]

_CONNECT_SECONDS = 10
_MAX_BODY_BYTES = 8 * 2**20
_MAX_ERROR_BYTES = 64 * 2**10
MAX_PICTURE_BYTES = 20 * 2**20
"""The largest picture that is taken from a provider."""
_MAX_ATTEMPTS = 3
_FIRST_RETRY_SECONDS = 0.5
_REMEMBER_SECONDS = 3600
# Statuses with which servers answer what they do not support; llama-cpp-python uses 500.
_MAYBE_UNSUPPORTED = frozenset({400, 404, 422, 500, 501})


@dataclasses.dataclass(frozen=True)
class Provider:
    """Where a provider's API is and which environment variable holds its key ("" = no key)."""

    base_url: str
    api_key_env: str


@dataclasses.dataclass(frozen=True)
class ClientSettings:
    """The settings that a call needs.

    `timeout` is in seconds and bounds a whole call with its retries, from the moment it may
    start; `providers` maps names to where they are.
    """

    providers: Mapping[str, Provider]
    timeout: float
    max_concurrent_calls: int


class Urgency(enum.IntEnum):
    """Who goes first when calls have to wait: somebody is waiting for an answer."""

    ANSWER = 0
    BACKGROUND = 1


class JSONMode(enum.IntEnum):
    """How a server can be asked for JSON, best first."""

    SCHEMA = 0
    OBJECT = 1
    NONE = 2


@dataclasses.dataclass(frozen=True)
class _Way:
    """One way to ask: what the request makes use of.

    Some models' templates allow one system message only, so several can be sent as one.
    """

    json_mode: JSONMode = JSONMode.SCHEMA
    tools: bool = True
    several_system_messages: bool = True

    def at_most(self, other: _Way) -> _Way:
        """Return this way without what `other` makes no use of."""
        return _Way(
            max(self.json_mode, other.json_mode),
            self.tools and other.tools,
            self.several_system_messages and other.several_system_messages,
        )


@dataclasses.dataclass(frozen=True)
class _Target:
    """One model on one server, with the key for this call."""

    provider: str
    model: str
    base_url: str
    path: str
    api_key: str

    @property
    def url(self) -> str:
        """Where the model is asked."""
        return self.base_url + self.path


class _StatusError(Exception):
    """The server answered with a status that is no success."""

    def __init__(self, status: int, retry_after: float | None, body: bytes = b"") -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.retry_after = retry_after
        self.body = body


class _CallLimit:
    """Lets so many calls run at once: answers first, each urgency first come, first served."""

    def __init__(self) -> None:
        self._limit = 0
        self._running = 0
        self._order = itertools.count()
        self._waiting: list[tuple[Urgency, int, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def place(self, urgency: Urgency, limit: int) -> AsyncIterator[None]:
        """Wait for a place among `limit` and hold it; the newest limit counts for all."""
        self._limit = limit
        if self._running >= limit or self._waiting:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiting, (urgency, next(self._order), turn))
            self._admit()
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._running -= 1
                    self._admit()
                raise
        else:
            self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            self._admit()

    def _admit(self) -> None:
        while self._waiting and self._running < self._limit:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                self._running += 1
                turn.set_result(None)


class ModelClient:
    """Asks models for completions."""

    def __init__(
        self,
        http: aiohttp.ClientSession,
        log: logging.Logger,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Tell the time by `clock`, in seconds."""
        self._http = http
        self._log = log
        self._clock = clock
        self._limit = _CallLimit()
        # The best way that each model takes, by address and name, and until when that counts.
        # Found by trying, and tried again in a while: a passing fault may look like a refusal.
        self._ways: dict[tuple[str, str], tuple[_Way, float]] = {}

    async def complete(
        self,
        name: str,
        messages: Sequence[Message],
        settings: ClientSettings,
        *,
        setting: str = "assistantModel",
        urgency: Urgency = Urgency.ANSWER,
        tools: Sequence[Mapping[str, Any]] = (),
        json_schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        """Ask the model `name` (`provider/model`) for the next message.

        Args:
            name: The model.
            messages: The conversation, in the API's own shape.
            settings: Providers and limits.
            setting: The setting that the name comes from, for the error text.
            urgency: Who goes first when calls have to wait.
            tools: Tools that the model may call; left out where the server takes none.
            json_schema: A `json_schema` object (name, schema, strict) that the answer is to
                follow; asked for in the best way that the server takes.

        Raises:
            ModelError: whatever went wrong, as one of its kinds.
        """
        target = _target(name, setting, settings.providers)
        async with self._limit.place(urgency, settings.max_concurrent_calls):
            try:
                completion = await asyncio.wait_for(
                    self._complete(target, messages, tools, json_schema, settings),
                    settings.timeout,
                )
            except asyncio.TimeoutError:
                raise TimedOutError(target.provider, settings.timeout) from None
        if completion.refused:
            raise ContentRefusedError(target.provider)
        return completion

    async def draw(self, name: str, description: str, settings: ClientSettings) -> bytes:
        """Ask the model `name` for a picture; return what came, which may be no picture at all.

        Raises:
            ModelError: whatever went wrong, as one of its kinds.
        """
        target = _target(name, "imageModel", settings.providers, "/images/generations")
        async with self._limit.place(Urgency.ANSWER, settings.max_concurrent_calls):
            try:
                return await asyncio.wait_for(
                    self._draw(target, description, settings), settings.timeout
                )
            except asyncio.TimeoutError:
                raise TimedOutError(target.provider, settings.timeout) from None

    async def _draw(self, target: _Target, description: str, settings: ClientSettings) -> bytes:
        # Servers differ in which further fields they take; all take these.
        body = {"model": target.model, "prompt": description, "n": 1}
        # In base64 four bytes hold three; what else stands in an answer is little.
        max_bytes = MAX_PICTURE_BYTES * 4 // 3 + _MAX_ERROR_BYTES
        try:
            answer = await self._post_with_retries(
                target, body, settings, is_plainest=True, max_bytes=max_bytes
            )
            drawing = parse_drawing(answer)
            if isinstance(drawing, str):
                drawing = await download(
                    drawing, provider=target.base_url, max_bytes=MAX_PICTURE_BYTES
                )
        except _StatusError as error:
            raise _as_drawing_error(target, error) from None
        except TooManyBytesError:
            raise OversizedPictureError(target.provider, MAX_PICTURE_BYTES) from None
        except ShapeError as error:
            if refuses_content(answer):
                raise DrawingRefusedError(target.provider) from None
            raise BadPictureError(target.provider, str(error)) from None
        except DownloadError as error:
            raise BadPictureError(target.provider, f"not to be had: {error}") from None
        if len(drawing) > MAX_PICTURE_BYTES:
            raise OversizedPictureError(target.provider, MAX_PICTURE_BYTES)
        return drawing

    async def _complete(
        self,
        target: _Target,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]],
        json_schema: Mapping[str, Any] | None,
        settings: ClientSettings,
    ) -> Completion:
        """Ask in the best way the model is known to take, then in plainer ways."""
        ways = _ways_to_ask(self._known_way(target), messages, tools, json_schema)
        first_error: _StatusError | None = None
        for way in ways:
            body = _body(target, way, messages, tools, json_schema)
            try:
                answer = await self._post_with_retries(
                    target, body, settings, is_plainest=way == ways[-1], max_bytes=_MAX_BODY_BYTES
                )
                completion = parse_completion(answer)
            except TooManyBytesError:
                raise BadAnswerError(target.provider, "more than 8 MiB") from None
            except ShapeError as error:
                raise BadAnswerError(target.provider, str(error)) from None
            except _StatusError as error:
                first_error = first_error or error
                if error.status not in _MAYBE_UNSUPPORTED:
                    raise _as_model_error(target, error) from None
                continue
            if way != ways[0]:
                self._ways[target.url, target.model] = (
                    self._known_way(target).at_most(way),
                    self._clock() + _REMEMBER_SECONDS,
                )
                self._log.info(
                    "%s/%s does not take everything; what works: JSON by %s, tools %s, "
                    "several system messages %s",
                    target.provider,
                    target.model,
                    way.json_mode.name.lower(),
                    way.tools,
                    way.several_system_messages,
                )
            return completion
        assert first_error is not None
        raise _as_model_error(target, first_error)

    def _known_way(self, target: _Target) -> _Way:
        way, until = self._ways.get((target.url, target.model), (_Way(), 0))
        return way if self._clock() < until else _Way()

    async def _post_with_retries(
        self,
        target: _Target,
        body: Message,
        settings: ClientSettings,
        *,
        is_plainest: bool,
        max_bytes: int,
    ) -> bytes:
        started = self._clock()
        attempts = _MAX_ATTEMPTS
        for attempt in itertools.count(1):
            try:
                return await self._post(target, body, settings, max_bytes)
            except (aiohttp.ClientError, ConnectionError) as error:
                wait = None
                failure: Exception = BusyError(target.provider, type(error).__name__)
            except _StatusError as error:
                wait = error.retry_after
                failure = error
                if error.status != 429 and error.status < 500:
                    raise
                if error.status in _MAYBE_UNSUPPORTED and not is_plainest:
                    attempts = 2  # once more, to tell a passing fault from a refusal
            left = settings.timeout - (self._clock() - started)
            if attempt >= attempts or (wait or 0) >= left:
                raise failure
            backoff = _FIRST_RETRY_SECONDS * 2 ** (attempt - 1)
            await asyncio.sleep(max(wait or 0, backoff * random.uniform(0.5, 1)))  # noqa: S311
        raise AssertionError("unreachable: count() does not end")

    async def _post(
        self, target: _Target, body: Message, settings: ClientSettings, max_bytes: int
    ) -> bytes:
        headers = {"Authorization": f"Bearer {target.api_key}"} if target.api_key else {}
        timeout = aiohttp.ClientTimeout(total=settings.timeout, sock_connect=_CONNECT_SECONDS)
        async with self._http.post(
            target.url, json=body, headers=headers, timeout=timeout
        ) as response:
            if response.status >= 400:
                cause = await _beginning(response)
                raise _StatusError(response.status, _retry_after(response.headers), cause)
            return await read_at_most(response, max_bytes)


async def _beginning(response: aiohttp.ClientResponse) -> bytes:
    """Return what an error's body says, as far as it has come at once."""
    try:
        return await asyncio.wait_for(response.content.read(_MAX_ERROR_BYTES), 1)
    except (aiohttp.ClientError, ConnectionError, asyncio.TimeoutError):
        return b""


def _target(
    name: str,
    setting: str,
    providers: Mapping[str, Provider],
    path: str = "/chat/completions",
) -> _Target:
    provider_name, slash, model = name.partition("/")
    if not (slash and provider_name and model):
        raise NoModelError(setting)
    provider = providers.get(provider_name)
    if provider is None:
        raise UnknownProviderError(provider_name)
    api_key = ""
    if provider.api_key_env:
        # Read at every call, so that a changed environment takes effect.
        api_key = os.environ.get(provider.api_key_env, "").strip()
        # No header can hold what is not printable, such as the end of a line.
        if not api_key or not api_key.isprintable():
            raise MissingKeyError(provider_name, provider.api_key_env)
    return _Target(provider_name, model, provider.base_url.rstrip("/"), path, api_key)


def _ways_to_ask(
    known: _Way,
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]],
    json_schema: Mapping[str, Any] | None,
) -> list[_Way]:
    """Return ways to ask, from the best that may work to the plainest.

    A way differs from the one before it only in what this request makes use of.
    """
    ways = [known]
    if _system_messages(messages) > 1 and known.several_system_messages:
        ways.append(dataclasses.replace(ways[-1], several_system_messages=False))
    if tools and known.tools:
        ways.append(dataclasses.replace(ways[-1], tools=False))
    if json_schema:
        ways += [
            dataclasses.replace(ways[-1], json_mode=mode)
            for mode in JSONMode
            if mode > known.json_mode
        ]
    return ways


def _body(
    target: _Target,
    way: _Way,
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]],
    json_schema: Mapping[str, Any] | None,
) -> Message:
    count = _system_messages(messages)
    if not way.several_system_messages and count > 1:
        text = "\n\n".join(message["content"] for message in messages[:count])
        messages = [{"role": "system", "content": text}, *messages[count:]]
    body: Message = {"model": target.model, "messages": list(messages)}
    if tools and way.tools:
        body["tools"] = list(tools)
    return {**body, **_response_format(way.json_mode, json_schema)}


def _system_messages(messages: Sequence[Message]) -> int:
    """Return how many system messages the conversation begins with."""
    return sum(
        1 for _ in itertools.takewhile(lambda message: message["role"] == "system", messages)
    )


def _response_format(json_mode: JSONMode, json_schema: Mapping[str, Any] | None) -> dict[str, Any]:
    if json_schema is None or json_mode is JSONMode.NONE:
        return {}
    if json_mode is JSONMode.OBJECT:
        return {"response_format": {"type": "json_object"}}
    return {"response_format": {"type": "json_schema", "json_schema": dict(json_schema)}}


def _as_model_error(target: _Target, error: _StatusError) -> Exception:
    if error.status in {401, 403}:
        return KeyRefusedError(target.provider, error.status)
    if error.status == 404:
        return UnknownModelError(target.provider, target.model)
    if error.status == 429 or error.status >= 500:
        return BusyError(target.provider, f"HTTP {error.status}")
    return RequestRefusedError(target.provider, error.status)


def _as_drawing_error(target: _Target, error: _StatusError) -> Exception:
    if error.status in {400, 403, 422, 451} and refuses_content(error.body):
        return DrawingRefusedError(target.provider)
    if error.status in {404, 405, 501}:
        return NoPicturesError(target.provider, target.model, error.status)
    return _as_model_error(target, error)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a Retry-After header asks to wait: a number or a date."""
    value = headers.get("Retry-After", "").strip()
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None
