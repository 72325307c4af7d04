"""A scripted, offline, OpenAI-compatible model server for demo, tests and benchmarks."""

from devstack.scripted_model.replies import (
    Reply,
    Responder,
    Response,
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
    persona_reply,
    raw,
    reply_json,
    text,
    tool_calls,
)
from devstack.scripted_model.requests import Kind, RecordedRequest
from devstack.scripted_model.server import Gate, ScriptedModel

__all__ = [
    "Gate",
    "Kind",
    "RecordedRequest",
    "Reply",
    "Responder",
    "Response",
    "ScriptedModel",
    "completion",
    "delay",
    "drop",
    "error_in_200",
    "hang",
    "http_error",
    "in_turn",
    "json_response",
    "message",
    "parts",
    "persona_reply",
    "raw",
    "reply_json",
    "text",
    "tool_calls",
]
