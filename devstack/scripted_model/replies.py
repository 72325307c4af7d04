"""What the server can answer: builders for good, odd and broken replies.

Each builder returns a responder for `ScriptedModel.on`. A test may write its own: a function of
the request that returns a `Response`, or an awaitable of one.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import itertools
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal

from devstack.scripted_model import paintings, persona
from devstack.scripted_model.requests import RecordedRequest


@dataclasses.dataclass(frozen=True)
class Response:
    """One HTTP answer, and where to cut the connection while it is sent."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    content_type: str = "application/json"
    chunked: bool = False
    """Whether the body is sent without saying its length first."""
    cut: Literal["before headers", "in body"] | None = None


Reply = Callable[[RecordedRequest], Response]
"""A responder that answers at once."""
Responder = Callable[[RecordedRequest], Response | Awaitable[Response]]
"""What a rule answers with."""

_numbers = itertools.count(1)


def json_response(
    value: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return `value` as a JSON answer."""
    return Response(json.dumps(value).encode(), status, headers or {})


def completion(
    request: RecordedRequest, message: Mapping[str, Any], finish_reason: str = "stop"
) -> Response:
    """Return a chat completion with this assistant message and plausible usage numbers."""
    prompt_tokens = 1 + request.size // 4
    completion_tokens = 1 + len(str(message)) // 4
    return json_response(
        {
            "id": f"chatcmpl-{next(_numbers)}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": request.model,
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", **message},
                    "finish_reason": finish_reason,
                }
            ],
            "usage": {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": completion_tokens,
                "total_tokens": prompt_tokens + completion_tokens,
            },
        }
    )


def persona_reply(request: RecordedRequest) -> Response:
    """Answer as the scripted persona does: the responder where no rule matches."""
    is_careless = request.model == persona.CARELESS
    if request.kind == "extraction":
        extract = persona.extract_carelessly if is_careless else persona.extract
        if not is_careless and "fiction" in request.system_prompt:
            extract = persona.extract_from_scene
        return completion(request, {"content": json.dumps(extract(request.payload))})
    if request.kind == "cleanup":
        clean_up = persona.clean_up_carelessly if is_careless else persona.clean_up
        return completion(request, {"content": json.dumps(clean_up(request.payload))})
    if request.kind == "image":
        return picture(paintings.paint(request.user_message))(request)
    if request.kind == "story":
        return completion(request, {"content": json.dumps(persona.story(request.payload))})
    message = persona.chat(request.messages, request.tool_names)
    return completion(request, message, "tool_calls" if message.get("tool_calls") else "stop")


# --- well-formed answers -------------------------------------------------------------------------


def message(fields: Mapping[str, Any], finish_reason: str = "stop") -> Reply:
    """Answer with an assistant message of any shape."""
    return lambda request: completion(request, fields, finish_reason)


def text(content: str | None, finish_reason: str = "stop", **fields: object) -> Reply:
    """Answer with a text, or null.

    Further fields of the message, such as `reasoning_content`, go in by name.
    """
    return message({"content": content, **fields}, finish_reason)


def parts(*texts: str) -> Reply:
    """Answer with a text as a list of content parts."""
    return message({"content": [{"type": "text", "text": part} for part in texts]})


def reply_json(value: object, *, fenced: bool = False) -> Reply:
    """Answer with a JSON text, as extraction and cleanup want it; `fenced`: in a code fence."""
    content = json.dumps(value)
    return text(f"```json\n{content}\n```" if fenced else content)


def tool_calls(
    calls: Sequence[tuple[str, Mapping[str, Any] | str]],
    *,
    content: str | None = None,
    as_objects: bool = False,
) -> Reply:
    """Answer with tool calls: pairs of a tool's name and its arguments.

    Arguments given as text are sent as they are, so they may be malformed. `as_objects` sends
    arguments as JSON objects instead of strings, as some servers do.
    """

    def encoded(arguments: Mapping[str, Any] | str) -> Mapping[str, Any] | str:
        return arguments if as_objects or isinstance(arguments, str) else json.dumps(arguments)

    return lambda request: completion(
        request,
        {
            "content": content,
            "tool_calls": [
                {
                    "id": f"call_{next(_numbers)}",
                    "type": "function",
                    "function": {"name": name, "arguments": encoded(arguments)},
                }
                for name, arguments in calls
            ],
        },
        "tool_calls",
    )


def picture(content: bytes) -> Reply:
    """Answer a request for a picture with these bytes, as base64."""
    data = [{"b64_json": base64.b64encode(content).decode()}]
    return lambda _: json_response({"created": int(time.time()), "data": data})


def picture_at(url: str) -> Reply:
    """Answer a request for a picture with its address."""
    return lambda _: json_response({"created": int(time.time()), "data": [{"url": url}]})


# --- errors and broken answers -------------------------------------------------------------------


def error_body(text: str, code: str | int | None = None) -> dict[str, Any]:
    """Return the JSON body of an error."""
    return {"error": {"message": text, "type": "scripted_error", "code": code}}


def http_error(
    status: int,
    body: Mapping[str, Any] | str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """Answer with an HTTP error; a body given as text is sent as it is."""
    if isinstance(body, str):
        return raw(body, status=status, headers=headers)
    content = error_body(f"scripted error {status}", status) if body is None else body
    return lambda _: json_response(content, status, headers)


def error_in_200(text: str = "scripted error", code: str | int | None = None) -> Reply:
    """Answer with status 200 and an error in place of choices, as some gateways do."""
    return lambda _: json_response(error_body(text, code))


def raw(
    body: bytes | str,
    *,
    status: int = 200,
    content_type: str = "application/json",
    headers: Mapping[str, str] | None = None,
    chunked: bool = False,
) -> Reply:
    """Answer with this body as it is: garbage, an HTML page, a huge text."""
    content = body.encode() if isinstance(body, str) else body
    response = Response(content, status, headers or {}, content_type, chunked)
    return lambda _: response


def drop(*, in_body: bool = True) -> Reply:
    """Close the connection in the middle of a body, or before any answer."""
    cut: Literal["before headers", "in body"] = "in body" if in_body else "before headers"
    return lambda request: dataclasses.replace(
        completion(request, {"content": "This answer never arrives whole."}), cut=cut
    )


# --- time and order ------------------------------------------------------------------------------


async def respond(responder: Responder, request: RecordedRequest) -> Response:
    """Return what `responder` answers, whether it does so at once or not."""
    response = responder(request)
    return response if isinstance(response, Response) else await response


def delay(seconds: float, then: Responder = persona_reply) -> Responder:
    """Answer after some seconds."""

    async def answer(request: RecordedRequest) -> Response:
        await asyncio.sleep(seconds)
        return await respond(then, request)

    return answer


def hang() -> Responder:
    """Never answer; `ScriptedModel.hold` makes requests wait that are answered later."""

    async def answer(_: RecordedRequest) -> Response:
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nothing completes this future")

    return answer


def in_turn(*responders: Responder) -> Responder:
    """Answer with one responder after another; the last one stays."""
    remaining = list(responders)

    async def answer(request: RecordedRequest) -> Response:
        responder = remaining.pop(0) if len(remaining) > 1 else remaining[0]
        return await respond(responder, request)

    return answer
