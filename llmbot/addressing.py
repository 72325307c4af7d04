"""Is a message for the bot, and as what? One pure function."""

from __future__ import annotations

import dataclasses
import enum
import re


class Command(enum.Enum):
    """What a message can ask the bot for."""

    ASK = "ask"
    CODE = "code"
    MEMORIES = "memories"
    FORGET = "forget"


@dataclasses.dataclass(frozen=True)
class Message:
    """What addressing needs to know of a room message."""

    sender: str
    body: str
    is_text: bool
    is_edit: bool


@dataclasses.dataclass(frozen=True)
class Request:
    """A message that is for the bot: the command, and the text after it."""

    command: Command
    text: str


_COMMAND = re.compile(r"!(?P<name>[a-z]+)(?:\s+(?P<text>.*))?", re.DOTALL | re.IGNORECASE)


def addressed(message: Message, own_user_id: str) -> Request | None:
    """Return what the message asks the bot for, or None if it is not for the bot.

    Never for the bot: its own messages, notices and everything else that is no plain text
    (other bots answer with notices), and edits.
    """
    if message.sender == own_user_id or not message.is_text or message.is_edit:
        return None
    command = _COMMAND.fullmatch(message.body)
    if command is None:
        return None
    try:
        name = Command(command["name"].lower())
    except ValueError:
        return None
    return Request(name, (command["text"] or "").strip())
