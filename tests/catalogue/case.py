"""What a case of the catalogue is: a short conversation and what is remembered of it."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any

ADA = "ada"
BOB = "bob"


class Guard(enum.Enum):
    """What keeps a case's wrong facts out of the durable memories."""

    EVIDENCE = "the evidence rule (M6)"
    THRESHOLD = "the second mention that never comes (M7 to M9), and the time to live (M4)"
    STORE = "how rows are matched and counted (M7 to M10)"
    FILTER = "what is never stored (M14)"
    SHAPE = "the reading of the model's answer (M12, M17)"
    NOTHING = "nothing: only a better model does"
    """The wrong fact becomes durable: a limit of the method, kept here so that it is known."""


class Kind(str, enum.Enum):
    """What goes wrong in a case."""

    RECALLED = "a recalled memory, then ok five times"
    ASSISTANT = "only the assistant said it"
    SYSTEM_PROMPT = "it stands in the system prompt"
    PROMPT_EXAMPLE = "it is the extractor's own prompt example"
    QUOTED = "it stands in a quoted message"
    THIRD_PERSON = "it is about somebody else"
    QUESTION = "it was asked about"
    INVENTED = "it was invented"
    TRANSIENT = "it is true today only"
    NUMBER = "a near-copy with another number"
    NEGATION = "negations, and: do not forget that"
    CHANGE = "a value that changed, a contradiction"
    PARAPHRASE = "one fact in five wordings"
    TWO_LANGUAGES = "one fact in two languages"
    DATE = "a date that does not keep"
    SECRET = "a secret"
    INSTRUCTION = "an instruction that poses as a fact"
    PASTE = "a pasted document"
    LONG_PASTE = "a very long paste"
    BROKEN = "an answer that is not what was agreed"
    OTHER_USER = "another user says the same words"
    PARALLEL = "two tellings at once"
    DELETED = "deleted, and told again"
    CLEANUP = "a cleanup that would do harm"
    FICTION = "a character says it in a scene"


@dataclasses.dataclass(frozen=True)
class Says:
    """A message, the answer it got, and what the extractor makes of it.

    The extractor also says all that the worst extractor always says (see `worst.py`), unless
    `raw` is its whole answer. `again` and `contradicted` name candidates by their facts.
    """

    prompt: str
    reply: str = "Fine."
    new: tuple[tuple[str, str], ...] = ()
    again: tuple[tuple[str, str], ...] = ()
    contradicted: tuple[tuple[str, str], ...] = ()
    raw: str | None = None
    user: str = ADA
    event: str | None = None
    """The event's id, where the same event comes more than once."""
    in_scene: bool = False
    """Whether the room plays a scene."""


@dataclasses.dataclass(frozen=True)
class Together:
    """Messages whose passes run at the same time."""

    messages: tuple[Says, ...]


@dataclasses.dataclass(frozen=True)
class CallsSave:
    """The assistant's model calls `save_memory`; it is told `result` or the beginning of it."""

    fact: str
    evidence: str
    messages: tuple[str, ...]
    result: str = "Saved."
    user: str = ADA


@dataclasses.dataclass(frozen=True)
class Knows:
    """A memory that is there already."""

    fact: str
    user: str = ADA


@dataclasses.dataclass(frozen=True)
class Deletes:
    """The user deletes a memory by its text."""

    fact: str
    user: str = ADA


@dataclasses.dataclass(frozen=True)
class Waits:
    """Time passes."""

    days: float


@dataclasses.dataclass(frozen=True)
class CleansUp:
    """A cleanup that the model answers so."""

    answer: object
    is_rejected: bool
    user: str = ADA


Step = Says | Together | CallsSave | Knows | Deletes | Waits | CleansUp


@dataclasses.dataclass(frozen=True)
class Remembered:
    """What both tables hold of a user: facts in the order stored, candidates with mentions."""

    memories: tuple[str, ...] = ()
    candidates: Mapping[str, int] = dataclasses.field(default_factory=dict)


NOTHING = Remembered()


@dataclasses.dataclass(frozen=True)
class Case:
    """One row of the catalogue.

    `after` is all that Ada's rows hold at the end, so whatever it does not name must not be
    there; `others` the same for other users. `languages` says what the messages are written in.
    """

    name: str
    kind: Kind
    guard: Guard
    steps: tuple[Step, ...]
    after: Remembered = NOTHING
    others: Mapping[str, Remembered] = dataclasses.field(default_factory=dict)
    languages: tuple[str, ...] = ("en",)
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    note: str = ""
    """Why this outcome is the right one, or, with `Guard.NOTHING`, the best one."""
