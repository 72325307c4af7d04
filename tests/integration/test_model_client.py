"""ModelClient against a server that misbehaves in every way, over real loopback connections."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import datetime
import email.utils
import gzip
import itertools
import logging
import os
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devstack.scripted_model import (
    RecordedRequest,
    Responder,
    Response,
    ScriptedModel,
    completion,
    delay,
    drop,
    error_in_200,
    hang,
    http_error,
    in_turn,
    message,
    parts,
    raw,
    text,
    tool_calls,
)
from llmbot.models import (
    BadAnswerError,
    BusyError,
    Completion,
    ContentRefusedError,
    KeyRefusedError,
    MissingKeyError,
    ModelClient,
    ModelError,
    NoModelError,
    Provider,
    RequestRefusedError,
    TimedOutError,
    ToolCall,
    UnknownModelError,
    UnknownProviderError,
    Urgency,
)
from llmbot.models.client import ClientSettings, _CallLimit, _retry_after

KEY = "sk-very-secret-0123456789"
VARIABLE = "LLMBOT_TEST_KEY"
SCHEMA = {"name": "test", "strict": True, "schema": {"type": "object"}}
TOOLS = [{"type": "function", "function": {"name": "save_memory", "parameters": {}}}]


class Clock:
    """The client's time."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


class Caller:
    """Calls a model through the client, with settings that a test may change."""

    def __init__(self, client: ModelClient, model: ScriptedModel, clock: Clock) -> None:
        self.client = client
        self.clock = clock
        self.settings = ClientSettings(
            {"local": Provider(model.base_url, ""), "keyed": Provider(model.base_url, VARIABLE)},
            timeout=10,
            max_concurrent_calls=16,
        )

    def change(self, **settings: object) -> None:
        self.settings = dataclasses.replace(self.settings, **settings)  # type: ignore[arg-type]

    async def __call__(
        self, words: str = "Hello", name: str = "local/m", **options: object
    ) -> Completion:
        messages = [{"role": "user", "content": words}]
        return await self.client.complete(
            name,
            messages,
            self.settings,
            **options,  # type: ignore[arg-type]
        )

    async def fails(self, kind: type[ModelError], **options: object) -> ModelError:
        with pytest.raises(kind) as caught:
            await self(**options)  # type: ignore[arg-type]
        assert type(caught.value) is kind
        return caught.value


@pytest.fixture
async def model() -> AsyncIterator[ScriptedModel]:
    async with ScriptedModel() as model:
        yield model


@pytest.fixture
async def call(model: ScriptedModel, clock: Clock) -> AsyncIterator[Caller]:
    async with aiohttp.ClientSession() as http:
        client = ModelClient(http, logging.getLogger("test.llmbot"), clock)
        yield Caller(client, model, clock)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> list[float]:
    """Retries do not wait; what they wanted to wait is in the list."""
    wanted: list[float] = []
    sleep = asyncio.sleep

    async def note(seconds: float) -> None:
        wanted.append(seconds)
        clock.seconds += seconds
        await sleep(0)

    monkeypatch.setattr("llmbot.models.client.asyncio.sleep", note)
    return wanted


async def settle() -> None:
    """Let everything that can go on without the network go on."""
    for _ in range(20):
        await asyncio.sleep(0)


def asked(model: ScriptedModel) -> list[tuple[str, bool]]:
    """The ways in which the model was asked so far: kind of JSON, and whether with tools."""
    ways = [
        (request.body.get("response_format", {}).get("type", "none"), request.uses("tools"))
        for request in model.requests
    ]
    return [way for way, _ in itertools.groupby(ways)]


# --- what is sent and understood -----------------------------------------------------------------


async def test_a_request_names_the_model_and_holds_the_messages(
    call: Caller, model: ScriptedModel
) -> None:
    model.on("any", text("Hello!"))
    assert await call("Hi", "local/org/model:free") == Completion("Hello!")
    [request] = model.requests
    assert request.body == {
        "model": "org/model:free",
        "messages": [{"role": "user", "content": "Hi"}],
    }
    assert "Authorization" not in request.headers
    assert request.headers["Content-Type"] == "application/json"


async def test_a_base_url_may_end_with_a_slash(call: Caller, model: ScriptedModel) -> None:
    call.change(providers={"local": Provider(model.base_url + "/", "")})
    assert (await call()).text


async def test_tools_and_schema_are_sent_as_given(call: Caller, model: ScriptedModel) -> None:
    model.on("any", tool_calls([("save_memory", {"fact": "Likes tea"})]))
    answer = await call(tools=TOOLS, json_schema=SCHEMA)
    assert [(c.name, c.arguments) for c in answer.tool_calls] == [
        ("save_memory", {"fact": "Likes tea"})
    ]
    [request] = model.requests
    assert request.body["tools"] == TOOLS
    assert request.body["response_format"] == {"type": "json_schema", "json_schema": SCHEMA}


@pytest.mark.parametrize(
    ("responder", "answer"),
    [
        (parts("Hel", "lo!"), Completion("Hello!")),
        (text(None), Completion("")),
        (text("<think>hm</think>Hello!"), Completion("Hello!")),
        (text("Hel", "length"), Completion("Hel", finish_reason="length")),
        (
            message({"tool_calls": [{"id": "x", "function": {"name": "f", "arguments": "{"}}]}),
            Completion("", (ToolCall("x", "f", None),)),
        ),
    ],
)
async def test_odd_answers_are_understood(
    call: Caller, model: ScriptedModel, responder: Responder, answer: Completion
) -> None:
    model.on("any", responder)
    assert await call() == answer


# --- servers that lack something -----------------------------------------------------------------

UNSUPPORTED = [400, 404, 422, 500, 501]


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize("status", UNSUPPORTED)
class TestFallback:
    async def test_json_object_where_a_schema_is_refused_and_that_is_remembered(
        self, call: Caller, model: ScriptedModel, status: int
    ) -> None:
        model.refuses["json_schema"] = status
        assert (await call(json_schema=SCHEMA)).text
        assert asked(model) == [("json_schema", False), ("json_object", False)]
        model.requests.clear()
        assert (await call(json_schema=SCHEMA)).text
        assert [request.body["response_format"] for request in model.requests] == [
            {"type": "json_object"}
        ]

    async def test_no_format_where_both_are_refused_and_that_is_remembered(
        self, call: Caller, model: ScriptedModel, status: int
    ) -> None:
        model.refuses.update({"json_schema": status, "json_object": status})
        assert (await call(json_schema=SCHEMA)).text
        assert asked(model) == [("json_schema", False), ("json_object", False), ("none", False)]
        model.requests.clear()
        assert (await call(json_schema=SCHEMA)).text
        assert (len(model.requests), asked(model)) == (1, [("none", False)])

    async def test_no_tools_where_they_are_refused_and_that_is_remembered(
        self, call: Caller, model: ScriptedModel, status: int
    ) -> None:
        model.refuses["tools"] = status
        assert (await call(tools=TOOLS)).text
        assert asked(model) == [("none", True), ("none", False)]
        model.requests.clear()
        assert (await call(tools=TOOLS)).text
        assert (len(model.requests), asked(model)) == (1, [("none", False)])
        # It says nothing about JSON.
        assert (await call(json_schema=SCHEMA)).text
        assert asked(model)[-1] == ("json_schema", False)

    async def test_a_turn_is_answered_where_tools_are_refused(
        self, call: Caller, model: ScriptedModel, status: int
    ) -> None:
        model.refuses["tools"] = status
        messages = [
            {"role": "system", "content": "Be nice."},
            {"role": "system", "content": "{}"},
            {"role": "user", "content": "Hi"},
        ]
        answer = await call.client.complete("local/m", messages, call.settings, tools=TOOLS)
        assert answer.text
        assert not model.requests[-1].uses("tools")

    async def test_each_model_is_remembered_for_itself(
        self, call: Caller, model: ScriptedModel, status: int
    ) -> None:
        model.refuses["json_schema"] = status
        await call(json_schema=SCHEMA)
        model.reset()
        await call(name="local/other", json_schema=SCHEMA)
        await call(json_schema=SCHEMA)
        assert asked(model) == [("json_schema", False), ("json_object", False)]

    async def test_nothing_is_concluded_where_every_way_fails(
        self, call: Caller, model: ScriptedModel, status: int
    ) -> None:
        model.on("any", http_error(status))
        with pytest.raises(ModelError):
            await call(tools=TOOLS, json_schema=SCHEMA)
        assert asked(model)[0] == ("json_schema", True)
        assert asked(model)[-1] == ("none", False)
        model.reset()
        await call(tools=TOOLS, json_schema=SCHEMA)
        assert asked(model) == [("json_schema", True)]


@pytest.mark.usefixtures("no_waiting")
async def test_a_500_that_passes_is_no_refusal(call: Caller, model: ScriptedModel) -> None:
    model.on("any", http_error(500), times=1)
    assert (await call(tools=TOOLS, json_schema=SCHEMA)).text
    assert asked(model) == [("json_schema", True)]


@pytest.mark.usefixtures("no_waiting")
async def test_after_an_hour_everything_is_tried_again(call: Caller, model: ScriptedModel) -> None:
    # What looked like a refusal may have been a fault, or the server was changed meanwhile.
    model.on("any", http_error(400), when=lambda r: r.uses("tools") or r.uses("json_schema"))
    await call(tools=TOOLS, json_schema=SCHEMA)
    model.reset()
    call.clock.seconds += 3599
    await call(tools=TOOLS, json_schema=SCHEMA)
    call.clock.seconds += 2
    await call(tools=TOOLS, json_schema=SCHEMA)
    assert asked(model) == [("json_object", False), ("json_schema", True)]


async def test_several_calls_at_once_find_out_together(call: Caller, model: ScriptedModel) -> None:
    model.refuses.update({"json_schema": 400, "tools": 400})
    for answer in await asyncio.gather(
        *(call(tools=TOOLS) for _ in range(5)), *(call(json_schema=SCHEMA) for _ in range(5))
    ):
        assert answer.text
    model.requests.clear()
    await call(tools=TOOLS)
    await call(json_schema=SCHEMA)
    assert [request.uses("tools") for request in model.requests] == [False, False]
    assert asked(model) == [("none", False), ("json_object", False)]


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, RequestRefusedError),
        (401, KeyRefusedError),
        (402, RequestRefusedError),
        (403, KeyRefusedError),
        (404, UnknownModelError),
        (405, RequestRefusedError),
        (408, RequestRefusedError),
        (409, RequestRefusedError),
        (413, RequestRefusedError),
        (418, RequestRefusedError),
        (422, RequestRefusedError),
    ],
)
async def test_other_4xx_are_never_tried_again(
    call: Caller, model: ScriptedModel, status: int, kind: type[ModelError]
) -> None:
    model.on("any", http_error(status, headers={"Retry-After": "0"}))
    error = await call.fails(kind, name="local/gpt-9")
    assert len(model.requests) == 1
    assert "local" in str(error)
    assert str(status) in str(error)


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize("status", [401, 403, 429, 502, 503])
async def test_what_no_fallback_can_mend_is_asked_in_one_way_only(
    call: Caller, model: ScriptedModel, status: int
) -> None:
    model.on("any", http_error(status))
    with pytest.raises(ModelError):
        await call(tools=TOOLS, json_schema=SCHEMA)
    assert asked(model) == [("json_schema", True)]


PASSING = [
    *(http_error(status) for status in (429, 500, 501, 502, 503, 504, 529)),
    http_error(503, "<html>Service Unavailable</html>"),
    drop(in_body=True),
    drop(in_body=False),
]


@pytest.mark.parametrize("trouble", PASSING)
async def test_what_may_pass_is_tried_again_a_bounded_number_of_times(
    call: Caller, model: ScriptedModel, no_waiting: list[float], trouble: Responder
) -> None:
    model.on("any", trouble)
    error = await call.fails(BusyError)
    assert len(model.requests) == 3
    assert "local" in str(error)
    assert len(no_waiting) == 2
    assert all(0 < seconds <= 2 for seconds in no_waiting)
    model.reset()
    model.on("any", in_turn(trouble, trouble, text("Hello!")))
    assert (await call()).text == "Hello!"
    assert len(model.requests) == 3


@pytest.mark.usefixtures("no_waiting")
async def test_a_server_that_is_not_there(call: Caller) -> None:
    async with ScriptedModel() as other:
        gone = other.base_url
    call.change(providers={"local": Provider(gone, "")})
    await call.fails(BusyError)


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        ("7", 7, 7),
        ("0.25", 0.25, 1),
        ("0", 0, 1),
        ("-5", 0, 1),
        ("soon", 0, 1),
        ("", 0, 1),
        ("nan", 0, 1),
        (lambda: in_seconds(8), 6, 8),
        (lambda: in_seconds(-100), 0, 1),
        ("Fri, 31 Dec 99999999999999999999 23:59:59 GMT", 0, 1),
    ],
    ids=itertools.count(),
)
async def test_retry_after_is_honoured(
    call: Caller,
    model: ScriptedModel,
    no_waiting: list[float],
    header: str | Callable[[], str],
    least: float,
    most: float,
) -> None:
    value = header if isinstance(header, str) else header()
    busy = http_error(429, headers={"Retry-After": value})
    model.on("any", in_turn(busy, text("Hello!")))
    assert (await call()).text == "Hello!"
    [waited] = no_waiting
    assert least <= waited <= most


def in_seconds(seconds: float) -> str:
    now = datetime.datetime.now(datetime.timezone.utc)
    return email.utils.format_datetime(now + datetime.timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize("header", ["10", "3600", "1e999", "inf", "Fri, 31 Dec 9999 23:59:59 GMT"])
async def test_nobody_waits_longer_than_the_time_out(
    call: Caller, model: ScriptedModel, no_waiting: list[float], header: str
) -> None:
    model.on("any", http_error(503, headers={"Retry-After": header}))
    await call.fails(BusyError)
    assert (len(model.requests), no_waiting) == (1, [])


async def test_a_wait_that_the_time_out_would_cut_short_is_not_begun(
    call: Caller, model: ScriptedModel, no_waiting: list[float]
) -> None:
    # The second wait does not fit any more: busy, said at once, and not a time-out later.
    model.on("any", http_error(429, headers={"Retry-After": "6"}))
    await call.fails(BusyError)
    assert (len(model.requests), no_waiting) == (2, [6])


@given(st.text() | st.floats().map(str) | st.integers().map(str))
def test_any_retry_after_is_a_number_of_seconds_or_nothing(value: str) -> None:
    seconds = _retry_after({"Retry-After": value})
    assert seconds is None or seconds >= 0


@given(
    st.from_regex(
        r"\A[A-Z][a-z]{2}, \d{1,3} (Jan|Feb|Xyz) \d{1,22} \d{1,3}:\d{1,3}(:\d{1,3})? "
        r"(GMT|[+-]\d{2,6}|[A-Z]{1,3})\Z"
    )
)
def test_any_date_like_retry_after(value: str) -> None:
    seconds = _retry_after({"Retry-After": value})
    assert seconds is None or seconds >= 0


# --- answers that are none -----------------------------------------------------------------------

HUGE = b'{"choices": [{"message": {"content": "' + b"x" * (9 * 2**20) + b'"}}]}'


@pytest.mark.parametrize(
    "responder",
    [
        raw(b""),
        raw("<html>hello</html>", content_type="text/html"),
        raw("Hello"),
        raw(b"\xff\xfe\x00"),
        raw("{"),
        raw("[]"),
        raw('{"choices": []}'),
        raw("[" * 100_000),
        raw('data: {"choices": []}\n\n', content_type="text/event-stream"),
        error_in_200("overloaded", 503),
        raw(HUGE),
        raw(HUGE, chunked=True),
        raw(gzip.compress(HUGE), headers={"Content-Encoding": "gzip"}),
    ],
    ids=lambda _: "",
)
async def test_garbage_is_no_answer_and_is_not_asked_for_again(
    call: Caller, model: ScriptedModel, responder: Responder
) -> None:
    model.on("any", responder)
    error = await call.fails(BadAnswerError)
    assert len(model.requests) == 1
    assert len(str(error)) < 200


@pytest.mark.usefixtures("no_waiting")
async def test_a_compression_that_is_none(call: Caller, model: ScriptedModel) -> None:
    for encoding in ("gzip", "deflate", "br", "unknown"):
        model.on("any", raw(b"not compressed", headers={"Content-Encoding": encoding}))
        with pytest.raises(ModelError):
            await call()


@pytest.mark.parametrize(
    "responder",
    [
        text("", "content_filter"),
        text("Hel", "content_filter"),
        text(None, refusal="I cannot help with that."),
    ],
)
async def test_refused_content(call: Caller, model: ScriptedModel, responder: Responder) -> None:
    model.on("any", responder)
    await call.fails(ContentRefusedError)
    assert len(model.requests) == 1


@contextlib.asynccontextmanager
async def tcp_server(*chunks: bytes, then_hang: bool) -> AsyncIterator[str]:
    """A server that reads a request and answers with these bytes; gives its base URL."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            for chunk in chunks:
                writer.write(chunk)
                await writer.drain()
            if then_hang:
                await reader.read(-1)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        server.close()
        await server.wait_closed()


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize(
    "answer",
    [b"", b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", b"\0" * 1000],
)
async def test_a_server_that_speaks_no_http(call: Caller, answer: bytes) -> None:
    async with tcp_server(answer, then_hang=False) as base_url:
        call.change(providers={"local": Provider(base_url, "")})
        await call.fails(BusyError)


# --- time-outs -----------------------------------------------------------------------------------


async def test_a_time_out_tells_how_long_it_waited(call: Caller, model: ScriptedModel) -> None:
    call.change(timeout=0.2)
    model.on("any", hang())
    error = await call.fails(TimedOutError)
    assert isinstance(error, TimedOutError)
    assert (error.seconds, len(model.requests)) == (0.2, 1)
    assert "0.2 s" in str(error)


async def test_an_answer_that_never_ends_is_a_time_out(call: Caller) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{"
    async with tcp_server(head, then_hang=True) as base_url:
        call.change(providers={"local": Provider(base_url, "")}, timeout=0.2)
        await call.fails(TimedOutError)


async def test_the_time_out_holds_for_all_tries_together(
    call: Caller, model: ScriptedModel
) -> None:
    call.change(timeout=0.3)
    model.on("any", in_turn(delay(0.2, http_error(400)), delay(0.2)))
    await call.fails(TimedOutError, json_schema=SCHEMA)


# --- keys ----------------------------------------------------------------------------------------


async def test_a_key_is_sent_as_bearer_and_read_anew_at_each_call(
    call: Caller, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in (KEY, f" {KEY}2 \n"):
        monkeypatch.setenv(VARIABLE, key)
        await call(name="keyed/m")
        assert model.requests[-1].headers["Authorization"] == f"Bearer {key.strip()}"
    monkeypatch.delenv(VARIABLE)
    await call.fails(MissingKeyError, name="keyed/m")
    assert len(model.requests) == 2


@pytest.mark.parametrize("key", [None, "", "  ", "\n", f"{KEY}\nX-Evil: 1", f"{KEY}\r", "a\x01b"])
async def test_without_a_usable_key_nothing_is_sent(
    call: Caller, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    if key is None or key.strip() == KEY:
        monkeypatch.delenv(VARIABLE, raising=False)
    else:
        monkeypatch.setenv(VARIABLE, key)
    error = await call.fails(MissingKeyError, name="keyed/m")
    assert VARIABLE in str(error)
    assert "keyed" in str(error)
    assert model.requests == []


async def test_a_key_of_bytes_that_are_no_text(
    call: Caller, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, os.fsdecode(b"key-\xff"))
    await call.fails(MissingKeyError, name="keyed/m")
    assert model.requests == []


@pytest.mark.parametrize(
    ("name", "kind", "part"),
    [
        ("", NoModelError, "codeModel"),
        ("gemini", NoModelError, "codeModel"),
        ("gemini/", NoModelError, "codeModel"),
        ("/flash", NoModelError, "codeModel"),
        ("nobody/flash", UnknownProviderError, "nobody"),
    ],
)
async def test_a_model_that_is_set_up_wrong(
    call: Caller, model: ScriptedModel, name: str, kind: type[ModelError], part: str
) -> None:
    error = await call.fails(kind, name=name, setting="codeModel")
    assert part in str(error)
    assert model.requests == []


async def test_a_key_does_not_follow_to_another_server(
    call: Caller, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, KEY)
    async with ScriptedModel() as other:
        there = {"Location": f"{other.base_url}/chat/completions"}
        for status in (301, 302, 303, 307, 308):
            model.on("any", http_error(status, headers=there))
            with contextlib.suppress(ModelError):
                await call(name="keyed/m")
        assert model.requests[0].headers["Authorization"] == f"Bearer {KEY}"
        for request in other.requests:
            assert "Authorization" not in request.headers
            assert KEY not in str(dict(request.headers))


def echo(status: int) -> Responder:
    """A server that repeats the key in its error, as some do."""

    def answer(request: RecordedRequest) -> Response:
        said = f"Incorrect API key provided: {request.headers['Authorization']}"
        return Response(said.encode(), status, {"X-Echo": said, "Retry-After": "0"})

    return answer


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize(
    "responder",
    [
        *map(echo, (200, 400, 401, 403, 404, 422, 429, 500, 503)),
        drop(in_body=True),
        drop(in_body=False),
        hang(),
        raw(b""),
        raw(HUGE),
        text("", "content_filter"),
        text("Hello!"),
    ],
)
async def test_no_key_reaches_the_log_or_an_error(
    call: Caller,
    model: ScriptedModel,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    responder: Responder,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv(VARIABLE, KEY)
    call.change(timeout=1)
    model.on("any", responder)
    try:
        await call(name="keyed/m", tools=TOOLS, json_schema=SCHEMA)
    except ModelError as error:
        logging.getLogger("test.llmbot").exception("No answer")
        told = "".join(traceback.format_exception(error)) + repr(error) + repr(error.__context__)
        for hidden in (KEY, "Authorization", "Bearer"):
            assert hidden not in told
    assert model.requests[0].headers["Authorization"] == f"Bearer {KEY}"
    for hidden in (KEY, "Authorization: ", "Bearer "):
        assert hidden not in caplog.text


async def test_what_works_is_logged_once_and_without_anybodys_text(
    call: Caller, model: ScriptedModel, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "test.llmbot")
    model.refuses["json_schema"] = 400
    for _ in range(3):
        await call("My cat is called Tom", json_schema=SCHEMA)
    [record] = caplog.records
    assert record.levelno == logging.INFO
    assert "local/m" in record.getMessage()
    assert "Tom" not in caplog.text


# --- the shared limit ----------------------------------------------------------------------------


class Tasks:
    """Calls that run beside the test and end with it."""

    def __init__(self, call: Caller) -> None:
        self.call = call
        self.all: list[asyncio.Task[Completion]] = []

    async def start(
        self, words: str, urgency: Urgency = Urgency.ANSWER
    ) -> asyncio.Task[Completion]:
        task = asyncio.create_task(self.call(words, urgency=urgency))
        self.all.append(task)
        await settle()
        return task


@pytest.fixture
async def tasks(call: Caller) -> AsyncIterator[Tasks]:
    tasks = Tasks(call)
    yield tasks
    for task in tasks.all:
        task.cancel()
    await asyncio.gather(*tasks.all, return_exceptions=True)


def heard(model: ScriptedModel) -> list[str]:
    return [request.user_message for request in model.requests]


async def test_never_more_calls_at_once_than_the_limit(call: Caller, model: ScriptedModel) -> None:
    running, most = 0, 0

    async def answer(request: RecordedRequest) -> Response:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await settle()
        running -= 1
        return completion(request, {"content": "Hello!"})

    model.on("any", answer)
    call.change(max_concurrent_calls=3)
    await asyncio.gather(*(call(str(number)) for number in range(30)))
    assert len(model.requests) == 30
    assert most == 3


async def test_answers_go_before_background_and_each_in_order(
    tasks: Tasks, model: ScriptedModel
) -> None:
    tasks.call.change(max_concurrent_calls=1)
    gate = model.hold("any")
    await tasks.start("first", Urgency.BACKGROUND)
    for words, urgency in (
        ("background 1", Urgency.BACKGROUND),
        ("answer 1", Urgency.ANSWER),
        ("background 2", Urgency.BACKGROUND),
        ("answer 2", Urgency.ANSWER),
        ("answer 3", Urgency.ANSWER),
    ):
        await tasks.start(words, urgency)
    await model.wait_for("any", 1)
    assert heard(model) == ["first"]
    gate.release()
    await asyncio.gather(*tasks.all)
    assert heard(model) == [
        "first",
        "answer 1",
        "answer 2",
        "answer 3",
        "background 1",
        "background 2",
    ]


async def test_who_gives_up_waiting_frees_the_place_in_the_queue(
    tasks: Tasks, model: ScriptedModel
) -> None:
    tasks.call.change(max_concurrent_calls=1)
    gate = model.hold("any")
    await tasks.start("first")
    second = await tasks.start("second")
    third = await tasks.start("third")
    await model.wait_for("any", 1)
    second.cancel()
    await settle()
    gate.release()
    await third
    assert heard(model) == ["first", "third"]


async def test_who_gives_up_while_being_answered_frees_the_place(
    tasks: Tasks, model: ScriptedModel
) -> None:
    tasks.call.change(max_concurrent_calls=1)
    gate = model.hold("any")
    first = await tasks.start("first")
    second = await tasks.start("second")
    await model.wait_for("any", 1)
    first.cancel()
    await model.wait_for("any", 2)
    gate.release()
    assert (await second).text
    assert first.cancelled()


async def test_who_gives_up_in_the_moment_of_its_turn_passes_it_on() -> None:
    limit = _CallLimit()
    order: list[str] = []

    async def take(name: str) -> None:
        async with limit.place(Urgency.ANSWER, 1):
            order.append(name)

    async with limit.place(Urgency.ANSWER, 1):
        second, third = asyncio.create_task(take("second")), asyncio.create_task(take("third"))
        await settle()
    # The place went to the second, which has not noticed yet.
    second.cancel()
    await asyncio.wait_for(third, 10)
    assert order == ["third"]
    await asyncio.gather(second, return_exceptions=True)
    await asyncio.wait_for(take("fourth"), 10)
    assert order == ["third", "fourth"]


async def test_a_higher_limit_lets_those_in_who_wait(tasks: Tasks, model: ScriptedModel) -> None:
    tasks.call.change(max_concurrent_calls=1)
    gate = model.hold("any")
    for words in ("1", "2", "3"):
        await tasks.start(words)
    await model.wait_for("any", 1)
    assert heard(model) == ["1"]
    tasks.call.change(max_concurrent_calls=3)
    await tasks.start("4")
    await model.wait_for("any", 3)
    await settle()
    assert sorted(heard(model)) == ["1", "2", "3"]
    gate.release()
    await asyncio.gather(*tasks.all)
    assert heard(model)[-1] == "4"


async def test_a_lower_limit_holds_for_the_next_calls(tasks: Tasks, model: ScriptedModel) -> None:
    tasks.call.change(max_concurrent_calls=3)
    gate = model.hold("any")
    running = [await tasks.start(words) for words in ("1", "2", "3")]
    await model.wait_for("any", 3)
    tasks.call.change(max_concurrent_calls=1)
    late = [await tasks.start(words) for words in ("4", "5")]
    for _ in range(2):
        gate.release_one()
        done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        running = [task for task in running if task not in done]
        await settle()
        assert len(model.requests) == 3
    gate.release_one()
    await model.wait_for("any", 4)
    await settle()
    assert len(model.requests) == 4
    gate.release()
    await asyncio.gather(*late)
    assert heard(model)[3:] == ["4", "5"]


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize(
    "responder",
    [
        http_error(401),
        http_error(404),
        http_error(429),
        http_error(500),
        drop(),
        hang(),
        raw(""),
        raw(HUGE),
        text("", "content_filter"),
    ],
    ids=lambda _: "",
)
async def test_a_call_that_fails_frees_its_place(
    call: Caller, model: ScriptedModel, responder: Responder
) -> None:
    call.change(max_concurrent_calls=1, timeout=0.3)
    model.on("any", responder)
    for _ in range(2):
        with pytest.raises(ModelError):
            await call()
    model.reset()
    call.change(timeout=10)
    waiting: list[Coroutine[Any, Any, Completion]] = [call("1"), call("2"), call("3")]
    assert len(await asyncio.gather(*waiting)) == 3


async def test_the_time_out_begins_with_the_turn(
    tasks: Tasks, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[float] = []
    wait_for = asyncio.wait_for

    async def note(call: Coroutine[Any, Any, Completion], seconds: float) -> Completion:
        begun.append(seconds)
        return await wait_for(call, seconds)

    monkeypatch.setattr("llmbot.models.client.asyncio.wait_for", note)
    gate = model.hold("any")
    tasks.call.change(max_concurrent_calls=1, timeout=11)
    await tasks.start("first")
    tasks.call.change(timeout=22)
    second = await tasks.start("second")
    assert begun == [11]
    gate.release()
    await second
    assert begun == [11, 22]
