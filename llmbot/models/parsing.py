"""From a server's bytes to an answer: pure, and forgiving where servers differ."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

_REASONING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_CODE_FENCE = re.compile(r"\A\s*```[\w-]*\s*\n(?P<inside>.*?)\n?\s*```\s*\Z", re.DOTALL)


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
    text = _REASONING.sub("", _text_of(message.get("content"))).strip()
    return Completion(
        text=text,
        tool_calls=_tool_calls(message.get("tool_calls")),
        finish_reason=finish_reason if isinstance(finish_reason, str) else "stop",
        refused=finish_reason == "content_filter" or (not text and bool(message.get("refusal"))),
    )


def parse_object(text: str | bytes) -> dict[str, Any]:
    """Return the JSON object that `text` is, also inside a code fence.

    Raises:
        ShapeError: it is no JSON object.
    """
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    fenced = _CODE_FENCE.match(text)
    try:
        value = json.loads(fenced["inside"] if fenced else text)
    except (ValueError, RecursionError):
        raise ShapeError("no JSON") from None
    if not isinstance(value, dict):
        raise ShapeError("no JSON object")
    return value


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


def _tool_calls(calls: object) -> tuple[ToolCall, ...]:
    found = []
    for index, call in enumerate(calls if isinstance(calls, list) else []):
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            call_id = call.get("id")
            found.append(
                ToolCall(
                    call_id if isinstance(call_id, str) and call_id else f"call_{index}",
                    function["name"],
                    _arguments(function.get("arguments")),
                )
            )
    return tuple(found)


def _arguments(arguments: object) -> dict[str, Any] | None:
    if isinstance(arguments, dict):
        return arguments
    if not isinstance(arguments, str):
        return {} if arguments is None else None
    try:
        return parse_object(arguments or "{}")
    except ShapeError:
        return None
