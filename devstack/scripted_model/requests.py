"""What a client sent: parsing, checking and telling apart the requests of a chat model server."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

Kind = Literal["chat", "extraction", "cleanup", "story", "image"]
"""What a request is for; see `RecordedRequest.kind`."""

_KIND_BY_SCHEMA_NAME: dict[str, Kind] = {
    "memory_extraction": "extraction",
    "memory_cleanup": "cleanup",
    "story": "story",
}


class InvalidRequestError(Exception):
    """A request that a real server would answer with status 400; the text says why."""


@dataclasses.dataclass(frozen=True, eq=False)
class RecordedRequest:
    """One well-formed request for a chat completion or, with `is_image`, for a picture."""

    body: dict[str, Any]
    headers: Mapping[str, str]
    """Looked up in any case: `headers["Authorization"]`."""
    size: int
    """Length of the body in bytes."""
    is_image: bool = False

    @classmethod
    def parse(
        cls, raw: bytes, headers: Mapping[str, str], *, is_image: bool = False
    ) -> RecordedRequest:
        """Read and check a request's body."""
        try:
            body = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise InvalidRequestError("the body is not JSON") from error
        if not isinstance(body, dict):
            raise InvalidRequestError("the body is not a JSON object")
        if not isinstance(body.get("model"), str) or not body["model"]:
            raise InvalidRequestError("'model' must be a non-empty string")
        if body.get("stream"):
            raise InvalidRequestError("this server does not stream")
        if not is_image:
            _check_messages(body.get("messages"))
        elif not isinstance(body.get("prompt"), str) or not body["prompt"]:
            raise InvalidRequestError("'prompt' must be a non-empty string")
        return cls(body, headers, len(raw), is_image)

    @property
    def model(self) -> str:
        """The model that was asked for."""
        return str(self.body["model"])

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation, oldest first; empty in a request for a picture."""
        messages: list[dict[str, Any]] = self.body.get("messages", [])
        return messages

    @functools.cached_property
    def user_message(self) -> str:
        """The text of the last user message, or what the picture is to show, or ""."""
        if self.is_image:
            return str(self.body["prompt"])
        for message in reversed(self.messages):
            if message["role"] == "user":
                return content_text(message.get("content"))
        return ""

    @property
    def system_prompt(self) -> str:
        """The texts of all system messages, for a look at what the model was told."""
        return "\n\n".join(
            content_text(message.get("content"))
            for message in self.messages
            if message["role"] in {"system", "developer"}
        )

    @property
    def tool_names(self) -> list[str]:
        """The names of the tools that the model may call."""
        return list(_tool_names(self.body.get("tools")))

    @functools.cached_property
    def payload(self) -> dict[str, Any]:
        """The JSON object in the last user message; empty if it holds none."""
        try:
            payload = json.loads(self.user_message)
        except (ValueError, RecursionError):
            return {}
        return payload if isinstance(payload, dict) else {}

    @functools.cached_property
    def kind(self) -> Kind:
        """What the request is for.

        The name of the JSON schema tells. A client that fell back to less than a schema is
        recognised by the shape of its last user message.
        """
        if self.is_image:
            return "image"
        name = _mapping(_mapping(self.body.get("response_format")).get("json_schema")).get("name")
        if isinstance(name, str) and name in _KIND_BY_SCHEMA_NAME:
            return _KIND_BY_SCHEMA_NAME[name]
        if {"user_message", "assistant_reply"} <= self.payload.keys():
            return "extraction"
        if isinstance(self.payload.get("memories"), list):
            return "cleanup"
        if {"wish", "max_pictures"} <= self.payload.keys():
            return "story"
        return "chat"

    def uses(self, feature: str) -> bool:
        """Say whether it uses `feature`: a response format's type or a key of the body."""
        return (
            bool(self.body.get(feature))
            or _mapping(self.body.get("response_format")).get("type") == feature
        )


def content_text(content: object) -> str:
    """Return the text of a message's content: a string, a list of parts, or null."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(_mapping(part).get("text") or "") for part in content)
    return ""


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _tool_names(tools: object) -> Iterator[str]:
    for tool in tools if isinstance(tools, list) else ():
        name = _mapping(_mapping(tool).get("function")).get("name")
        if isinstance(name, str):
            yield name


def _check_messages(messages: object) -> None:
    """Raise unless `messages` is a conversation that providers accept.

    They refuse tool results that answer no call, and calls that were left without a result:
    the mistakes that a client makes when it trims a conversation.
    """
    if not isinstance(messages, list) or not messages:
        raise InvalidRequestError("'messages' must be a non-empty list")
    open_calls: set[str] = set()
    for position, message in enumerate(messages):
        role = _mapping(message).get("role")
        if role not in {"system", "developer", "user", "assistant", "tool"}:
            raise InvalidRequestError(f"messages[{position}] has no valid 'role'")
        if role == "tool":
            if message.get("tool_call_id") not in open_calls:
                raise InvalidRequestError(f"messages[{position}] answers no open tool call")
            open_calls.remove(message["tool_call_id"])
        elif open_calls:
            raise InvalidRequestError(f"messages[{position}] leaves tool calls unanswered")
        elif role == "assistant":
            open_calls = _call_ids(message.get("tool_calls"), position)
    if open_calls:
        raise InvalidRequestError("the last tool calls are unanswered")


def _call_ids(calls: object, position: int) -> set[str]:
    if calls is None:
        return set()
    if not isinstance(calls, Sequence) or not all(
        isinstance(_mapping(call).get("id"), str)
        and isinstance(_mapping(_mapping(call).get("function")).get("arguments"), str)
        for call in calls
    ):
        raise InvalidRequestError(
            f"messages[{position}]: each tool call needs an 'id' and 'function.arguments' as text"
        )
    return {call["id"] for call in calls}
