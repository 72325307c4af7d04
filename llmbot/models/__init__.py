"""Talking to OpenAI-compatible model servers: the only package that knows HTTP."""

from .client import ModelClient, Provider, Urgency
from .errors import (
    BadAnswerError,
    BadPictureError,
    BusyError,
    ContentRefusedError,
    DrawingRefusedError,
    EmptyAnswerError,
    KeyRefusedError,
    MissingKeyError,
    ModelError,
    NoModelError,
    NoPicturesError,
    OversizedPictureError,
    RequestRefusedError,
    TimedOutError,
    ToolLoopError,
    UnknownModelError,
    UnknownProviderError,
)
from .parsing import Completion, ToolCall

__all__ = [
    "BadAnswerError",
    "BadPictureError",
    "BusyError",
    "Completion",
    "ContentRefusedError",
    "DrawingRefusedError",
    "EmptyAnswerError",
    "KeyRefusedError",
    "MissingKeyError",
    "ModelClient",
    "ModelError",
    "NoModelError",
    "NoPicturesError",
    "OversizedPictureError",
    "Provider",
    "RequestRefusedError",
    "TimedOutError",
    "ToolCall",
    "ToolLoopError",
    "UnknownModelError",
    "UnknownProviderError",
    "Urgency",
]
