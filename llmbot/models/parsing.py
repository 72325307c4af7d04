"""From a server's bytes to an answer: pure, and forgiving where servers differ."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import json
import re
import string
from typing import Any
from urllib.parse import unquote_to_bytes

_REASONING = re.compile(
    r"(?:\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z))+", re.DOTALL | re.IGNORECASE
)
_FENCE = "```"


class ShapeError(Exception):
    """What came is not in the agreed shape; the message says in which way."""


@dataclasses.dataclass(frozen=True)
class ToolCall:
    """A model's wish to call a tool.

    `arguments` is None where they were no JSON object.
    """

    id: str
    name: str
    arguments: dict[str, Any] | None


@dataclasses.dataclass(frozen=True)
class Completion:
    """A model's answer: its text without reasoning, or the tools that it wants called."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = "stop"
    refused: bool = False

    def as_message(self) -> dict[str, Any]:
        """Return the answer as it goes back to the model in the next request."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text or None}
        if self.tool_calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {
                        "name": call.name,
                        "arguments": json.dumps(call.arguments or {}, ensure_ascii=False),
                    },
                }
                for call in self.tool_calls
            ]
        return message


def parse_completion(body: bytes) -> Completion:
    """Return the answer that the body of a successful chat completion holds.

    Raises:
        ShapeError: the body is no chat completion.
    """
    answer = parse_object(body)
    if answer.get("error"):
        raise ShapeError("an error inside a success")
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict) or not isinstance(choice.get("message"), dict):
        raise ShapeError("no choices")
    message = choice["message"]
    finish_reason = choice.get("finish_reason")
    text = _without_reasoning(_text_of(message.get("content")))
    return Completion(
        text=text,
        tool_calls=_tool_calls(message.get("tool_calls")),
        finish_reason=finish_reason if isinstance(finish_reason, str) else "stop",
        refused=finish_reason == "content_filter" or (not text and bool(message.get("refusal"))),
    )


# --- pictures ------------------------------------------------------------------------------------


def parse_drawing(body: bytes) -> bytes | str:
    """Return the picture that the body of a successful image generation holds, or its address.

    Raises:
        ShapeError: the body holds neither.
    """
    answer = parse_object(body)
    data = answer.get("data")
    drawing = data[0] if isinstance(data, list) and data else None
    if answer.get("error") or not isinstance(drawing, dict):
        raise ShapeError("no picture")
    for key in ("b64_json", "url"):
        value = drawing.get(key)
        if not isinstance(value, str) or not value.strip():
            continue
        value = value.strip()
        if value[:5].lower() == "data:":
            return _data_of(value)
        return _decoded(value.encode(errors="replace")) if key == "b64_json" else value
    raise ShapeError("no picture")


def _data_of(url: str) -> bytes:
    """Return the bytes that a `data:` address holds."""
    head, comma, content = url.partition(",")
    if not comma:
        raise ShapeError("a data address without data")
    data = unquote_to_bytes(content)
    return _decoded(data) if head.lower().rstrip().endswith(";base64") else data


def _decoded(encoded: bytes) -> bytes:
    # Servers break lines, and some leave the padding out.
    encoded = b"".join(encoded.split()).rstrip(b"=").translate(_FROM_URL_SAFE)
    try:
        return base64.b64decode(encoded + b"=" * (-len(encoded) % 4), validate=True)
    except binascii.Error:
        raise ShapeError("no base64") from None


_FROM_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_REFUSAL = re.compile(
    r"content.?policy|content.?filter|moderation|safety|nsfw|unsafe", re.IGNORECASE
)


def refuses_content(body: bytes) -> bool:
    """Say whether the body of an error tells that the content was refused.

    Servers agree on no code for it, and some send a list of errors.
    """
    try:
        errors = json.loads(body)
    except (ValueError, RecursionError):
        return False
    for answer in errors if isinstance(errors, list) else [errors]:
        error = answer.get("error") if isinstance(answer, dict) else None
        if _REFUSAL.search(json.dumps(error)):
            return True
    return False


def parse_object(text: str | bytes) -> dict[str, Any]:
    """Return the JSON object that `text` is, or that it holds in a code fence.

    Raises:
        ShapeError: it is no JSON object.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8-sig", errors="replace")
    try:
        value = json.loads(text if text.lstrip().startswith("{") else _inside_fence(text))
    except (ValueError, RecursionError):
        raise ShapeError("no JSON") from None
    if not isinstance(value, dict):
        raise ShapeError("no JSON object")
    return value


def _inside_fence(text: str) -> str:
    """Return what stands between the first code fence and the last one, or else the text."""
    _, fence, inside = text.partition(_FENCE)
    if not fence:
        return text
    inside = inside.rpartition(_FENCE)[0] or inside
    return inside.lstrip(string.ascii_letters)  # the language: json


def _text_of(content: object) -> str:
    """Return the text of a message's content: a string, a list of parts, or null."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict)]
        return "".join(
            part["text"]
            for part in parts
            if part.get("type", "text") == "text" and isinstance(part.get("text"), str)
        )
    return ""


def _without_reasoning(text: str) -> str:
    """Return a text without the reasoning that some models put in front of their answer."""
    reasoning = _REASONING.match(text)
    if reasoning:
        return text[reasoning.end() :].strip()
    # Some servers swallow the opening tag. What stands in a code fence is part of an answer.
    before, tag, after = text.partition("\n</think>")
    return (after if tag and before.count(_FENCE) % 2 == 0 else text).strip()


def _tool_calls(calls: object) -> tuple[ToolCall, ...]:
    found: dict[str, ToolCall] = {}
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            call_id = call.get("id")
            # Each needs an id of its own, to which its result can refer.
            if not isinstance(call_id, str) or not call_id or call_id in found:
                call_id = f"llmbot_{len(found)}"
            found[call_id] = ToolCall(
                call_id, function["name"], _arguments(function.get("arguments"))
            )
    return tuple(found.values())


def _arguments(arguments: object) -> dict[str, Any] | None:
    if isinstance(arguments, dict):
        return arguments
    if not isinstance(arguments, str):
        return {} if arguments is None else None
    try:
        return parse_object(arguments or "{}")
    except ShapeError:
        return None
