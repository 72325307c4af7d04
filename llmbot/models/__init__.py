"""Talking to OpenAI-compatible model servers: the only package that knows HTTP."""

from .client import ModelClient, Provider, Urgency
from .errors import (
    BadAnswerError,
    BusyError,
    ContentRefusedError,
    EmptyAnswerError,
    KeyRefusedError,
    MissingKeyError,
    ModelError,
    NoModelError,
    RequestRefusedError,
    TimedOutError,
    ToolLoopError,
    UnknownModelError,
    UnknownProviderError,
)
from .parsing import Completion, ToolCall

__all__ = [
    "BadAnswerError",
    "BusyError",
    "Completion",
    "ContentRefusedError",
    "EmptyAnswerError",
    "KeyRefusedError",
    "MissingKeyError",
    "ModelClient",
    "ModelError",
    "NoModelError",
    "Provider",
    "RequestRefusedError",
    "TimedOutError",
    "ToolCall",
    "ToolLoopError",
    "UnknownModelError",
    "UnknownProviderError",
    "Urgency",
]
