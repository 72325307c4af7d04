"""The scripted model server: an OpenAI-compatible server that chats and draws by rules.

Prompts and answers are never logged.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Literal, final

from aiohttp import web

from devstack.scripted_model import paintings
from devstack.scripted_model.replies import (
    Responder,
    Response,
    error_body,
    json_response,
    persona_reply,
    respond,
)
from devstack.scripted_model.requests import InvalidRequestError, Kind, RecordedRequest

AnyKind = Kind | Literal["any"]
Condition = Callable[[RecordedRequest], bool]

_HOST = "127.0.0.1"
_MODEL_NAMES = ("scripted",)
_MAX_REQUEST_BYTES = 64 * 1024 * 1024
# Requests that still hang when the server stops are cut off after this many seconds.
_SHUTDOWN_SECONDS = 0.05


def _matches(kind: AnyKind, when: Condition | None, request: RecordedRequest) -> bool:
    return kind in {"any", request.kind} and (when is None or when(request))


@dataclasses.dataclass
class _Rule:
    kind: AnyKind
    responder: Responder
    when: Condition | None
    times: int | None


class Gate:
    """Holds matching requests until it is released; made by `ScriptedModel.hold`."""

    def __init__(self, kind: AnyKind, when: Condition | None) -> None:
        self._kind = kind
        self._when = when
        self._is_open = False
        self._queue: list[tuple[RecordedRequest, asyncio.Future[None]]] = []

    @property
    def waiting(self) -> list[RecordedRequest]:
        """The requests held at this moment, in the order they came."""
        return [request for request, _ in self._queue]

    def release(self) -> None:
        """Let all held requests through, and all later ones."""
        self._is_open = True
        while self._queue:
            self.release_one()

    def release_one(self, position: int = 0) -> None:
        """Let one held request through: by default the one that waited longest."""
        _, future = self._queue.pop(position)
        future.set_result(None)

    async def pass_through(self, request: RecordedRequest) -> None:
        """Return when `request` may be answered."""
        if self._is_open or not _matches(self._kind, self._when, request):
            return
        entry = (request, asyncio.get_running_loop().create_future())
        self._queue.append(entry)
        try:
            await entry[1]
        finally:
            # A client that gives up leaves the queue.
            if entry in self._queue:
                self._queue.remove(entry)


@final
class ScriptedModel:
    """The server on a loopback port; `async with` starts and stops it in the running loop.

    `refuses` plays servers that lack something: it maps a response format's type
    (`json_schema`, `json_object`) or a key of the request (`tools`, `max_tokens`) to the HTTP
    status that requests with it get. It may be changed at any time. `record` off keeps no
    requests but the last of each kind, for a server that runs for long; `GET /last/{kind}` gives
    that one's messages. `GET /v1/pictures/{what}` draws what it names, for answers that give a
    picture's address.
    """

    def __init__(
        self, *, port: int = 0, refuses: Mapping[str, int] | None = None, record: bool = True
    ) -> None:
        self.refuses = dict(refuses or {})
        self.requests: list[RecordedRequest] = []
        self._wanted_port = port
        self._record = record
        self._last: dict[str, RecordedRequest] = {}
        self._rules: list[_Rule] = []
        self._gates: list[Gate] = []
        self._failure: Exception | None = None
        self._arrival = asyncio.Event()
        application = web.Application(client_max_size=_MAX_REQUEST_BYTES)
        application.router.add_post("/v1/chat/completions", self._complete)
        application.router.add_post("/v1/images/generations", self._complete)
        application.router.add_get("/v1/pictures/{what}", self._show_picture)
        application.router.add_get("/v1/models", self._list_models)
        application.router.add_get("/last/{kind}", self._tell_last)
        self._runner = web.AppRunner(
            application,
            access_log=None,
            handler_cancellation=True,
            shutdown_timeout=_SHUTDOWN_SECONDS,
        )

    # --- for tests -------------------------------------------------------------------------------

    def on(
        self,
        kind: AnyKind,
        responder: Responder,
        *,
        when: Condition | None = None,
        times: int | None = None,
    ) -> None:
        """Answer requests of `kind` with `responder` from now on.

        The newest rule that matches answers; `times` bounds how often. Where none matches the
        persona answers.
        """
        self._rules.append(_Rule(kind, responder, when, times))

    def hold(self, kind: AnyKind, *, when: Condition | None = None) -> Gate:
        """Let requests of `kind` wait until the gate is released; rules apply after that."""
        gate = Gate(kind, when)
        self._gates.append(gate)
        return gate

    def seen(
        self, kind: AnyKind = "any", *, when: Condition | None = None
    ) -> list[RecordedRequest]:
        """Return the recorded requests of `kind` that fulfil the condition."""
        return [request for request in self.requests if _matches(kind, when, request)]

    async def wait_for(
        self,
        kind: AnyKind = "any",
        count: int = 1,
        *,
        when: Condition | None = None,
        timeout: float = 10,
    ) -> list[RecordedRequest]:
        """Wait until `count` such requests have arrived since the start, and return them all."""

        async def arrived() -> None:
            while len(self.seen(kind, when=when)) < count:
                await self._arrival.wait()

        try:
            await asyncio.wait_for(arrived(), timeout)
        except asyncio.TimeoutError:
            raise TimeoutError(
                f"waited {timeout} s for {count} {kind!r} requests, "
                f"got {len(self.seen(kind, when=when))} ({len(self.requests)} of all kinds)"
            ) from None
        return self.seen(kind, when=when)

    def reset(self) -> None:
        """Forget all rules, refusals and recorded requests, and release what is held."""
        for gate in self._gates:
            gate.release()
        self._gates.clear()
        self._rules.clear()
        self.refuses.clear()
        self.requests.clear()

    # --- starting and stopping -------------------------------------------------------------------

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        return int(self._runner.addresses[0][1])

    @property
    def base_url(self) -> str:
        """What a client takes as the provider's base URL."""
        return f"http://{_HOST}:{self.port}/v1"

    async def start(self) -> None:
        """Listen; raises OSError if the port is taken, OverflowError if there is no such port."""
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, _HOST, self._wanted_port).start()
        except OSError:
            await self._runner.cleanup()
            raise

    async def close(self) -> None:
        """Stop, cutting off requests that still wait."""
        await self._runner.cleanup()

    async def __aenter__(self) -> ScriptedModel:
        await self.start()
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
        # The client only saw status 500, which a robust one hides from the test.
        if self._failure is not None and error is None:
            raise RuntimeError("a responder or condition of this test raised") from self._failure

    # --- answering -------------------------------------------------------------------------------

    async def _list_models(self, _: web.Request) -> web.StreamResponse:
        models = [
            {"id": name, "object": "model", "created": 0, "owned_by": "llmbot"}
            for name in _MODEL_NAMES
        ]
        return web.json_response({"object": "list", "data": models})

    async def _tell_last(self, http_request: web.Request) -> web.StreamResponse:
        request = self._last.get(http_request.match_info["kind"])
        return web.json_response(request.messages if request else [])

    async def _show_picture(self, http_request: web.Request) -> web.StreamResponse:
        painting = paintings.paint(http_request.match_info["what"])
        return web.Response(body=painting, content_type="image/png")

    async def _complete(self, http_request: web.Request) -> web.StreamResponse:
        try:
            request = RecordedRequest.parse(
                await http_request.read(),
                http_request.headers,
                is_image=http_request.path.endswith("/images/generations"),
            )
        except InvalidRequestError as error:
            return await _send(http_request, json_response(error_body(str(error)), 400))
        self._last[request.kind] = request
        if self._record:
            self.requests.append(request)
            self._arrival.set()
            self._arrival = asyncio.Event()
        try:
            for gate in list(self._gates):
                await gate.pass_through(request)
            response = self._refusal(request) or await respond(self._responder(request), request)
        except Exception as error:  # noqa: BLE001 - kept for the test, see __aexit__
            self._failure = self._failure or error
            response = json_response(error_body("a scripted responder failed"), 500)
        return await _send(http_request, response)

    def _refusal(self, request: RecordedRequest) -> Response | None:
        for feature, status in self.refuses.items():
            if request.uses(feature):
                return json_response(error_body(f"{feature!r} is not supported", status), status)
        return None

    def _responder(self, request: RecordedRequest) -> Responder:
        for rule in reversed(self._rules):
            if rule.times != 0 and _matches(rule.kind, rule.when, request):
                if rule.times is not None:
                    rule.times -= 1
                return rule.responder
        return persona_reply


async def _send(http_request: web.Request, response: Response) -> web.StreamResponse:
    headers = {"Content-Type": response.content_type, **response.headers}
    if response.cut is None and not response.chunked:
        return web.Response(body=response.body, status=response.status, headers=headers)
    stream = web.StreamResponse(status=response.status, headers=headers)
    transport = http_request.transport
    if response.cut == "before headers":
        if transport is not None:
            transport.close()
        return stream
    if response.chunked:
        stream.enable_chunked_encoding()
    else:
        stream.content_length = len(response.body)
    await stream.prepare(http_request)
    if response.cut == "in body":
        await stream.write(response.body[: len(response.body) // 2])
        if transport is not None:
            transport.close()
        return stream
    await stream.write(response.body)
    return stream
