"""Asking for pictures, and fetching them from where a provider says they are."""

from __future__ import annotations

import base64
import logging
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web

from devstack.scripted_model import (
    Responder,
    ScriptedModel,
    drop,
    hang,
    http_error,
    in_turn,
    json_response,
    persona_reply,
    picture,
    picture_at,
    raw,
)
from devstack.scripted_model.paintings import paint
from llmbot.models import (
    BadPictureError,
    BusyError,
    DrawingRefusedError,
    KeyRefusedError,
    ModelClient,
    ModelError,
    NoModelError,
    NoPicturesError,
    OversizedPictureError,
    Provider,
    RequestRefusedError,
    TimedOutError,
)
from llmbot.models import client as client_module
from llmbot.models.client import ClientSettings
from llmbot.models.download import DownloadError, TooManyBytesError, download

TREE = "a tree"


class Caller:
    """Asks the scripted model for pictures."""

    def __init__(self, client: ModelClient, model: ScriptedModel) -> None:
        self.client = client
        self.model = model
        self.timeout = 5.0

    async def __call__(
        self, responder: Responder | None = None, name: str = "own/painter"
    ) -> bytes:
        if responder:
            self.model.on("image", responder)
        providers = {"own": Provider(self.model.base_url, "")}
        return await self.client.draw(name, TREE, ClientSettings(providers, self.timeout, 4))


@pytest.fixture
async def draw() -> AsyncIterator[Caller]:
    async with ScriptedModel() as model, aiohttp.ClientSession() as http:
        yield Caller(ModelClient(http, logging.getLogger("test")), model)


async def test_the_request_names_model_and_description_only(draw: Caller) -> None:
    assert await draw() == paint(TREE)
    (request,) = draw.model.seen("image")
    assert request.body == {"model": "painter", "prompt": TREE, "n": 1}


@pytest.mark.parametrize(
    ("responder", "error"),
    [
        (http_error(400, {"error": {"code": "content_policy_violation"}}), DrawingRefusedError),
        (http_error(403, {"error": {"type": "safety_system"}}), DrawingRefusedError),
        (http_error(400, {"error": "Blocked by our content filter"}), DrawingRefusedError),
        (lambda _: json_response({"error": {"code": "moderation_blocked"}}), DrawingRefusedError),
        (http_error(400, "<html>content policy</html>"), RequestRefusedError),
        (http_error(401, {"error": {"message": "moderation"}}), KeyRefusedError),
        (http_error(404), NoPicturesError),
        (http_error(405), NoPicturesError),
        (http_error(501), NoPicturesError),
        (http_error(503), BusyError),
        (drop(), BusyError),
        (raw("<html>"), BadPictureError),
        (raw('{"data": [{"url": "ftp://example.org/x.png"}]}'), BadPictureError),
        (raw('{"data": [{"b64_json": "no base64!"}]}'), BadPictureError),
    ],
)
async def test_each_failure_is_one_of_the_kinds(
    draw: Caller, responder: Responder, error: type[ModelError]
) -> None:
    with pytest.raises(error) as raised:
        await draw(responder)
    assert type(raised.value) is error


async def test_a_passing_failure_is_tried_again(draw: Caller) -> None:
    assert await draw(in_turn(http_error(503), persona_reply)) == paint(TREE)


async def test_a_time_out(draw: Caller) -> None:
    draw.timeout = 0.2
    with pytest.raises(TimedOutError):
        await draw(hang())


async def test_without_a_model(draw: Caller) -> None:
    with pytest.raises(NoModelError, match="imageModel"):
        await draw(name="")


@pytest.mark.parametrize("kind", ["base64", "address", "data address"])
async def test_a_picture_that_is_too_large(
    draw: Caller, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "MAX_PICTURE_BYTES", len(paint("sea")) - 1)
    encoded = base64.b64encode(paint("sea")).decode()
    answers = {
        "base64": picture(paint("sea")),
        "address": picture_at(f"{draw.model.base_url}/pictures/sea"),
        "data address": picture_at(f"data:image/png;base64,{encoded}"),
    }
    with pytest.raises(OversizedPictureError):
        await draw(answers[kind])
    monkeypatch.setattr(client_module, "MAX_PICTURE_BYTES", len(paint("sea")))
    assert await draw(answers[kind]) == paint("sea")


# --- addresses ---------------------------------------------------------------------------------


class Elsewhere:
    """A server inside the network that is not the provider's; notes what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.redirect_to = ""
        self.port = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path)
        self.headers.append(dict(request.headers))
        if request.path.startswith("/away"):
            raise web.HTTPFound(self.redirect_to)
        return web.Response(body=b"secret")

    def url(self, path: str = "/x.png", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"


@pytest.fixture
async def elsewhere() -> AsyncIterator[Elsewhere]:
    server = Elsewhere()
    application = web.Application()
    application.router.add_get("/{path:.*}", server.answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.port = runner.addresses[0][1]
    yield server
    await runner.cleanup()


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "127.1", "0.0.0.0", "[::ffff:127.0.0.1]", "2130706433"]
)
async def test_nothing_inside_the_network_is_fetched_but_from_the_provider(
    elsewhere: Elsewhere, host: str
) -> None:
    with pytest.raises(DownloadError):
        await download(elsewhere.url(host=host), provider="https://p.example/v1", max_bytes=99)
    assert elsewhere.asked == []


async def test_from_the_provider_itself_it_is_fetched_without_a_key(elsewhere: Elsewhere) -> None:
    provider = elsewhere.url("/v1")
    assert await download(elsewhere.url(), provider=provider, max_bytes=6) == b"secret"
    assert "Authorization" not in elsewhere.headers[0]
    with pytest.raises(TooManyBytesError):
        await download(elsewhere.url(), provider=provider, max_bytes=5)


async def test_a_redirect_is_looked_at_like_the_address(elsewhere: Elsewhere) -> None:
    provider = elsewhere.url("/v1")

    async def fetched() -> bytes:
        return await download(elsewhere.url("/away"), provider=provider, max_bytes=99)

    elsewhere.redirect_to = "/x.png"
    assert await fetched() == b"secret"
    async with ScriptedModel() as other:
        for target in (f"{other.base_url}/pictures/sea", "file:///etc/passwd", "//[", ""):
            elsewhere.redirect_to = target or "/away"
            with pytest.raises(DownloadError):
                await fetched()


@pytest.mark.parametrize(
    "address",
    [
        "file:///etc/passwd",
        "ftp://example.org/x",
        "x.png",
        "",
        "http://",
        "//x/y",
        "http://[",
        "a:",
    ],
)
async def test_only_http(address: str) -> None:
    with pytest.raises(DownloadError):
        await download(address, provider="https://p.example/v1", max_bytes=99)


@pytest.mark.parametrize(
    "host",
    ["10.0.0.1", "192.168.1.1", "169.254.169.254", "[::1]", "[fe80::1]", "[fd00::1]", "224.0.0.1"],
)
async def test_numeric_addresses_of_inner_networks(host: str) -> None:
    with pytest.raises(DownloadError, match="inner"):
        await download(f"http://{host}/x.png", provider="https://p.example/v1", max_bytes=99)
