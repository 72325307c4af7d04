"""The scripted model server, by its rules, over real loopback connections."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from devstack.scripted_model import (
    RecordedRequest,
    Reply,
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
    json_response,
    message,
    parts,
    raw,
    reply_json,
    text,
    tool_calls,
)

EXTRACTION: dict[str, Any] = {
    "known_memories": [],
    "candidates": [],
    "user_message": "I live in Berlin.",
    "assistant_reply": "Noted.",
}
CLEANUP: dict[str, Any] = {"memories": []}


class Client:
    """The least that a client of the server needs."""

    def __init__(self, model: ScriptedModel, session: aiohttp.ClientSession) -> None:
        self._model = model
        self._session = session

    async def post(self, data: bytes) -> tuple[int, Any]:
        url = f"{self._model.base_url}/chat/completions"
        async with self._session.post(url, data=data) as response:
            body = await response.read()
            is_json = response.content_type == "application/json"
            return response.status, json.loads(body) if is_json else body

    async def send(self, user: object = "hello", **fields: object) -> tuple[int, Any]:
        body = {"model": "m", "messages": [{"role": "user", "content": user}], **fields}
        return await self.post(json.dumps(body).encode())

    async def reply(self, user: object = "hello", **fields: object) -> str:
        status, body = await self.send(user, **fields)
        assert status == 200
        return str(body["choices"][0]["message"]["content"])


@pytest.fixture
async def model() -> AsyncIterator[ScriptedModel]:
    async with ScriptedModel() as server:
        yield server


@pytest.fixture
async def client(model: ScriptedModel) -> AsyncIterator[Client]:
    async with aiohttp.ClientSession() as session:
        yield Client(model, session)


def schema(name: str) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": name, "schema": {}}}


# --- what a request is ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("user", "response_format", "kind"),
    [
        ("hello", None, "chat"),
        ('{"a": 1}', None, "chat"),
        ("{", {"type": "json_object"}, "chat"),
        ("anything", schema("memory_extraction"), "extraction"),
        ("anything", schema("memory_cleanup"), "cleanup"),
        (json.dumps(EXTRACTION), {"type": "json_object"}, "extraction"),
        (json.dumps(EXTRACTION), None, "extraction"),
        (json.dumps(CLEANUP), {"type": "json_object"}, "cleanup"),
        ([{"type": "text", "text": json.dumps(CLEANUP)}], None, "cleanup"),
    ],
)
async def test_requests_are_told_apart(
    model: ScriptedModel, client: Client, user: object, response_format: object, kind: str
) -> None:
    await client.send(user, response_format=response_format)
    assert model.requests[0].kind == kind


async def test_requests_are_recorded(model: ScriptedModel, client: Client) -> None:
    await client.send(json.dumps(EXTRACTION), tools=[{"function": {"name": "save_memory"}}])
    [request] = model.requests
    assert request.model == "m"
    assert request.payload == EXTRACTION
    assert json.loads(request.user_message) == EXTRACTION
    assert request.tool_names == ["save_memory"]
    assert request.headers["content-type"] == request.headers["Content-Type"]
    assert request.system_prompt == ""


CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    "messages",
    [
        None,
        [],
        ["hello"],
        [{"role": "robot", "content": "hello"}],
        [{"role": "tool", "tool_call_id": "a", "content": "done"}],
        [{"role": "assistant", "tool_calls": [CALL]}],
        [{"role": "assistant", "tool_calls": [CALL]}, {"role": "user", "content": "hello"}],
        [{"role": "assistant", "tool_calls": [{**CALL, "function": {"arguments": {}}}]}],
    ],
)
async def test_conversations_that_providers_refuse(
    model: ScriptedModel, client: Client, messages: object
) -> None:
    status, body = await client.send(messages=messages)
    assert (status, model.requests) == (400, [])
    assert body["error"]["message"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b'{"messages": 1}'])
async def test_bad_bodies(client: Client, body: bytes) -> None:
    status, answer = await client.post(body)
    assert status == 400
    assert answer["error"]["message"]


async def test_answered_tool_calls_are_accepted(client: Client) -> None:
    messages = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "tool_calls": [CALL, {**CALL, "id": "b"}]},
        {"role": "tool", "tool_call_id": "b", "content": "done"},
        {"role": "tool", "tool_call_id": "a", "content": "done"},
    ]
    status, _ = await client.send(messages=messages)
    assert status == 200


async def test_models_are_listed(model: ScriptedModel) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{model.base_url}/models") as response,
    ):
        assert [entry["id"] for entry in (await response.json())["data"]] == ["scripted"]


# --- rules ---------------------------------------------------------------------------------------


async def test_the_newest_matching_rule_answers(model: ScriptedModel, client: Client) -> None:
    model.on("chat", text("always"))
    model.on("chat", text("weather"), when=lambda request: "weather" in request.user_message)
    model.on("chat", text("twice"), times=2)
    model.on("extraction", text("never"))
    questions = ["weather", "weather", "weather", "other"]
    answers = [await client.reply(question) for question in questions]
    assert answers == ["twice", "twice", "weather", "always"]


async def test_a_rule_for_any_kind(model: ScriptedModel, client: Client) -> None:
    model.on("any", text("same"))
    assert await client.reply(json.dumps(CLEANUP)) == "same"
    assert await client.reply("hello") == "same"


async def test_answers_in_turn(model: ScriptedModel, client: Client) -> None:
    model.on("chat", in_turn(http_error(503), text("first"), text("second")))
    assert (await client.send())[0] == 503
    assert [await client.reply() for _ in range(3)] == ["first", "second", "second"]


async def test_own_responders(model: ScriptedModel, client: Client) -> None:
    def echo(request: RecordedRequest) -> Response:
        return completion(request, {"content": request.user_message.upper()})

    model.on("chat", echo)
    assert await client.reply("hello") == "HELLO"
    model.on("chat", lambda _: json_response({"a": 1}, 418))
    assert await client.send() == (418, {"a": 1})


async def test_the_persona_answers_without_a_rule(client: Client) -> None:
    answer = json.loads(await client.reply(json.dumps(EXTRACTION)))
    assert [item["fact"] for item in answer["new"]] == ["Lives in Berlin"]
    answer = json.loads(await client.reply(json.dumps(CLEANUP)))
    assert answer == {"drop": [], "merge": []}
    assert "scripted" in await client.reply("hello")


async def test_reset(model: ScriptedModel, client: Client) -> None:
    model.on("chat", text("a rule"))
    model.refuses["tools"] = 400
    model.hold("chat")
    waiting = asyncio.create_task(client.reply())
    await model.wait_for("chat")
    model.reset()
    assert "scripted" in await waiting
    assert model.requests == []
    assert (await client.send(tools=[{}]))[0] == 200


# --- good and odd answers ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "expected", "finish_reason"),
    [
        (text("hello"), {"content": "hello"}, "stop"),
        (text("cut", "length"), {"content": "cut"}, "length"),
        (text(None, "content_filter"), {"content": None}, "content_filter"),
        (text("a", reasoning_content="b"), {"content": "a", "reasoning_content": "b"}, "stop"),
        (message({"refusal": "no"}), {"refusal": "no"}, "stop"),
        (
            parts("a", "b"),
            {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            "stop",
        ),
        (reply_json({"a": 1}), {"content": '{"a": 1}'}, "stop"),
        (reply_json([], fenced=True), {"content": "```json\n[]\n```"}, "stop"),
    ],
)
async def test_messages(
    model: ScriptedModel,
    client: Client,
    reply: Reply,
    expected: dict[str, Any],
    finish_reason: str,
) -> None:
    model.on("chat", reply)
    status, body = await client.send()
    [choice] = body["choices"]
    assert (status, choice["finish_reason"]) == (200, finish_reason)
    assert choice["message"] == {"role": "assistant", **expected}
    usage = body["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert min(usage.values()) > 0


async def test_tool_calls(model: ScriptedModel, client: Client) -> None:
    model.on("chat", tool_calls([("save_memory", {"fact": "a"}), ("save_memory", "{broken")]))
    _, body = await client.send()
    [choice] = body["choices"]
    calls = choice["message"]["tool_calls"]
    assert choice["finish_reason"] == "tool_calls"
    assert [call["function"]["arguments"] for call in calls] == ['{"fact": "a"}', "{broken"]
    assert len({call["id"] for call in calls}) == 2
    model.on("chat", tool_calls([("f", {"a": 1})], as_objects=True))
    _, body = await client.send()
    assert body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == {"a": 1}


# --- misbehaviour --------------------------------------------------------------------------------


async def test_http_errors(model: ScriptedModel) -> None:
    model.on("chat", http_error(429, {"error": "slow down"}, headers={"Retry-After": "1"}))
    body = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{model.base_url}/chat/completions", json=body) as response,
    ):
        assert response.status == 429
        assert response.headers["Retry-After"] == "1"
        assert await response.json() == {"error": "slow down"}


@pytest.mark.parametrize(
    ("reply", "status", "body"),
    [
        (raw("<html>", content_type="text/html"), 200, b"<html>"),
        (raw(b"x" * 3_000_000, chunked=True, content_type="text/plain"), 200, b"x" * 3_000_000),
        (http_error(502, "oops"), 502, None),
        (error_in_200("no", "quota"), 200, {"message": "no", "code": "quota"}),
    ],
)
async def test_garbage(
    model: ScriptedModel, client: Client, reply: Reply, status: int, body: object
) -> None:
    model.on("chat", reply)
    if body is None:
        with pytest.raises(json.JSONDecodeError):
            await client.send()
        return
    got_status, got_body = await client.send()
    assert got_status == status
    if isinstance(body, dict):
        assert body.items() <= got_body["error"].items()
    else:
        assert got_body == body


@pytest.mark.parametrize(
    ("responder", "error"),
    [
        (drop(), aiohttp.ClientPayloadError),
        (drop(in_body=False), aiohttp.ServerDisconnectedError),
    ],
)
async def test_dropped_connections(
    model: ScriptedModel, client: Client, responder: Responder, error: type[Exception]
) -> None:
    model.on("chat", responder, times=1)
    with pytest.raises(error):
        await client.send()
    assert (await client.send())[0] == 200


async def test_hanging_ends_with_the_client_or_the_server(client: Client) -> None:
    async with ScriptedModel() as model, aiohttp.ClientSession() as session:
        model.on("chat", hang())
        impatient = asyncio.create_task(Client(model, session).send())
        await model.wait_for("chat")
        impatient.cancel()
        patient = asyncio.create_task(Client(model, session).send())
        await model.wait_for("chat", 2)
        await model.close()
        with pytest.raises(aiohttp.ClientError):
            await patient


async def test_delays(model: ScriptedModel, client: Client) -> None:
    model.on("chat", delay(0, then=text("later")))
    assert await client.reply() == "later"
    model.on("chat", delay(0))
    assert "scripted" in await client.reply()


@pytest.mark.parametrize(
    ("feature", "fields"),
    [
        ("json_schema", {"response_format": schema("memory_extraction")}),
        ("json_object", {"response_format": {"type": "json_object"}}),
        ("tools", {"tools": [{"type": "function", "function": {"name": "f"}}]}),
        ("max_tokens", {"max_tokens": 5}),
    ],
)
@pytest.mark.parametrize("status", [400, 422, 500])
async def test_servers_that_lack_something(
    model: ScriptedModel, client: Client, feature: str, fields: dict[str, Any], status: int
) -> None:
    model.refuses[feature] = status
    got, body = await client.send(**fields)
    assert got == status
    assert feature in body["error"]["message"]
    assert (await client.send())[0] == 200
    assert len(model.requests) == 2


async def test_a_failing_responder_fails_the_test() -> None:
    def fail(_: RecordedRequest) -> Response:
        raise ValueError("wrong expectation")

    async def use_it() -> None:
        async with ScriptedModel() as model, aiohttp.ClientSession() as session:
            model.on("chat", fail)
            assert (await Client(model, session).send())[0] == 500

    with pytest.raises(RuntimeError, match="responder"):
        await use_it()


# --- waiting -------------------------------------------------------------------------------------


async def test_held_requests_can_be_answered_in_any_order(
    model: ScriptedModel, client: Client
) -> None:
    gate = model.hold("chat", when=lambda request: request.user_message != "free")
    tasks = {}
    for number, name in enumerate("abc", 1):
        tasks[name] = asyncio.create_task(client.reply(name))
        await model.wait_for("chat", number)
    assert await client.reply("free")
    assert [request.user_message for request in gate.waiting] == ["a", "b", "c"]
    model.on("chat", text("second"), times=1)
    model.on("chat", text("first"), times=1)
    gate.release_one(1)
    assert await tasks["b"] == "first"
    gate.release_one()
    assert await tasks["a"] == "second"
    gate.release()
    assert await tasks["c"]
    assert await client.reply("later")
    assert gate.waiting == []


async def test_a_client_that_gives_up_leaves_the_gate(
    model: ScriptedModel, client: Client
) -> None:
    gate = model.hold("chat")
    impatient = asyncio.create_task(client.reply("a"))
    await model.wait_for("chat")
    impatient.cancel()
    patient = asyncio.create_task(client.reply("b"))
    await model.wait_for("chat", 2)
    gate.release()
    assert await patient
    assert gate.waiting == []


async def test_waiting_returns_the_requests(model: ScriptedModel, client: Client) -> None:
    waiting = asyncio.create_task(
        model.wait_for("chat", 2, when=lambda request: request.user_message != "other")
    )
    for user in ("a", "other", "b"):
        await client.send(user)
    assert [request.user_message for request in await waiting] == ["a", "b"]


async def test_waiting_has_a_limit(model: ScriptedModel, client: Client) -> None:
    await client.send()
    with pytest.raises(TimeoutError, match=r"2 'extraction' requests, got 0 \(1 of all"):
        await model.wait_for("extraction", 2, timeout=0.01)


# --- the process ---------------------------------------------------------------------------------


async def _start_process(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "devstack.scripted_model",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_the_process_serves_and_ends_cleanly(number: signal.Signals) -> None:
    process = await _start_process("--port", "0", "--refuse", "tools=422")
    try:
        assert process.stdout is not None
        line = (await asyncio.wait_for(process.stdout.readline(), 30)).decode()
        url = line.split()[-1]
        body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": [{}]}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{url}/chat/completions", json=body) as response,
        ):
            assert response.status == 422
        process.send_signal(number)
        output, errors = await asyncio.wait_for(process.communicate(), 30)
        assert (process.returncode, output, errors) == (0, b"", b"")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_an_occupied_port_gives_one_line(model: ScriptedModel) -> None:
    process = await _start_process("--port", str(model.port))
    _, errors = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 1
    assert errors.decode().count("\n") == 1
    assert str(model.port) in errors.decode()
