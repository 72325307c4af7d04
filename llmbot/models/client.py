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
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from .errors import (
    BadAnswerError,
    BusyError,
    ContentRefusedError,
    KeyRefusedError,
    MissingKeyError,
    NoModelError,
    RequestRefusedError,
    TimedOutError,
    UnknownModelError,
    UnknownProviderError,
)
from .parsing import Completion, ShapeError, parse_completion

Message = dict[str, Any]

_CONNECT_SECONDS = 10
_MAX_BODY_BYTES = 8 * 2**20
_MAX_ATTEMPTS = 3
_FIRST_RETRY_SECONDS = 0.5
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


@dataclasses.dataclass
class _Abilities:
    """What a model turned out to support; found by trying, remembered while llmbot runs."""

    json_mode: JSONMode = JSONMode.SCHEMA
    tools: bool = True


@dataclasses.dataclass(frozen=True)
class _Target:
    """One model on one server, with the key for this call."""

    provider: str
    model: str
    url: str
    api_key: str


class _StatusError(Exception):
    """The server answered with a status that is no success."""

    def __init__(self, status: int, retry_after: float | None) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.retry_after = retry_after


class _CallLimit:
    """Lets so many calls run at once: answers first, each urgency first come, first served."""

    def __init__(self) -> None:
        self._running = 0
        self._order = itertools.count()
        self._waiting: list[tuple[Urgency, int, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def place(self, urgency: Urgency, limit: int) -> AsyncIterator[None]:
        """Wait for a place among `limit` and hold it."""
        if self._running >= limit or self._waiting:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiting, (urgency, next(self._order), turn))
            self._admit(limit)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._running -= 1
                    self._admit(limit)
                raise
        else:
            self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            self._admit(limit)

    def _admit(self, limit: int) -> None:
        while self._waiting and self._running < limit:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                self._running += 1
                turn.set_result(None)


class ModelClient:
    """Asks models for completions."""

    def __init__(self, http: aiohttp.ClientSession, log: logging.Logger) -> None:
        self._http = http
        self._log = log
        self._limit = _CallLimit()
        self._abilities: dict[tuple[str, str], _Abilities] = {}

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
        abilities = self._abilities.setdefault((target.url, target.model), _Abilities())
        async with self._limit.place(urgency, settings.max_concurrent_calls):
            try:
                completion = await asyncio.wait_for(
                    self._complete(target, abilities, messages, tools, json_schema, settings),
                    settings.timeout,
                )
            except asyncio.TimeoutError:
                raise TimedOutError(target.provider, settings.timeout) from None
        if completion.refused:
            raise ContentRefusedError(target.provider)
        return completion

    async def _complete(
        self,
        target: _Target,
        abilities: _Abilities,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]],
        json_schema: Mapping[str, Any] | None,
        settings: ClientSettings,
    ) -> Completion:
        """Ask in the best way the server is known to take, then in plainer ways."""
        first_error: _StatusError | None = None
        for json_mode, with_tools in _ways_to_ask(abilities, tools, json_schema):
            body = {"model": target.model, "messages": list(messages)}
            if with_tools:
                body["tools"] = list(tools)
            body.update(_response_format(json_mode, json_schema))
            plainest = (json_mode is JSONMode.NONE or not json_schema) and not with_tools
            try:
                completion = await self._post_with_retries(
                    target, body, settings, retry_500=plainest
                )
            except _StatusError as error:
                first_error = first_error or error
                if error.status not in _MAYBE_UNSUPPORTED:
                    raise _as_model_error(target, error) from None
                if plainest:
                    raise _as_model_error(target, first_error) from None
                continue
            if first_error is not None:
                self._log.info(
                    "%s/%s: asking plainly works (JSON: %s, tools: %s)",
                    target.provider,
                    target.model,
                    json_mode.name.lower(),
                    "yes" if with_tools else "no",
                )
                if json_schema:
                    abilities.json_mode = json_mode
                if tools:
                    abilities.tools = with_tools
            return completion
        raise AssertionError("the plainest way either answers or raises")

    async def _post_with_retries(
        self, target: _Target, body: Message, settings: ClientSettings, *, retry_500: bool
    ) -> Completion:
        for attempt in itertools.count(1):
            try:
                return await self._post(target, body, settings)
            except (aiohttp.ClientError, ConnectionError) as error:
                wait = None
                failure: Exception = BusyError(target.provider, type(error).__name__)
            except _StatusError as error:
                wait = error.retry_after
                failure = error
                retry = error.status == 429 or error.status >= 500
                if not retry or (error.status in _MAYBE_UNSUPPORTED and not retry_500):
                    raise
            if attempt == _MAX_ATTEMPTS or (wait or 0) >= settings.timeout:
                raise failure
            backoff = _FIRST_RETRY_SECONDS * 2 ** (attempt - 1)
            await asyncio.sleep(max(wait or 0, backoff * random.uniform(0.5, 1)))  # noqa: S311
        raise AssertionError("unreachable: count() does not end")

    async def _post(self, target: _Target, body: Message, settings: ClientSettings) -> Completion:
        headers = {"Authorization": f"Bearer {target.api_key}"} if target.api_key else {}
        timeout = aiohttp.ClientTimeout(total=settings.timeout, sock_connect=_CONNECT_SECONDS)
        async with self._http.post(
            target.url, json=body, headers=headers, timeout=timeout
        ) as response:
            if response.status >= 400:
                raise _StatusError(response.status, _retry_after(response.headers))
            content = bytearray()
            async for chunk in response.content.iter_any():
                content += chunk
                if len(content) > _MAX_BODY_BYTES:
                    raise BadAnswerError(target.provider, "more than 8 MiB")
        try:
            return parse_completion(bytes(content))
        except ShapeError as error:
            raise BadAnswerError(target.provider, str(error)) from None


def _target(name: str, setting: str, providers: Mapping[str, Provider]) -> _Target:
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
        if not api_key:
            raise MissingKeyError(provider_name, provider.api_key_env)
    return _Target(
        provider_name, model, provider.base_url.rstrip("/") + "/chat/completions", api_key
    )


def _ways_to_ask(
    abilities: _Abilities,
    tools: Sequence[Mapping[str, Any]],
    json_schema: Mapping[str, Any] | None,
) -> list[tuple[JSONMode, bool]]:
    """Return JSON modes and whether to offer tools, from the best known way to the plainest."""
    json_modes = [mode for mode in JSONMode if mode >= abilities.json_mode]
    ways = [(mode, bool(tools) and abilities.tools) for mode in json_modes if json_schema]
    ways = ways or [(JSONMode.NONE, bool(tools) and abilities.tools)]
    if tools and abilities.tools:
        ways.append((JSONMode.NONE, False))
    return ways


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


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a Retry-After header asks to wait: a number or a date."""
    value = headers.get("Retry-After", "").strip()
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
