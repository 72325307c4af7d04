"""Is a message for the bot, and as what? One pure function."""

from __future__ import annotations

import dataclasses
import enum
import html
import re
from collections.abc import Iterator
from urllib.parse import unquote


class Command(enum.Enum):
    """What a message can ask the bot for."""

    ASK = "ask"
    CODE = "code"
    MEMORIES = "memories"
    FORGET = "forget"
    VERSE = "verse"
    DRAW = "draw"
    STORY = "story"
    LLMBOT = "llmbot"


@dataclasses.dataclass(frozen=True)
class Message:
    """What addressing needs to know of a room message.

    Attributes:
        sender: The sender's full Matrix id.
        body: The text, without a reply fallback.
        is_text: Whether it is `m.text`: no notice, emote, file or the like.
        is_edit: Whether it replaces an earlier message.
        formatted_body: The text as HTML, if there is any.
        sent: When it was sent, in milliseconds by the bot's clock.
        mentions: The users in `m.mentions`.
        replies_to_own: Whether it is a reply, more than a thread's fallback, to one of the
            bot's messages.
        continues_own_answer: Whether it stands in a thread, and the thread's last message before
            it is one in which the bot answered this very sender.
        is_direct: Whether nobody but the sender and the bot is in the room.
    """

    sender: str
    body: str
    is_text: bool = True
    is_edit: bool = False
    formatted_body: str | None = None
    sent: int = 0
    mentions: frozenset[str] = frozenset()
    replies_to_own: bool = False
    continues_own_answer: bool = False
    is_direct: bool = False


@dataclasses.dataclass(frozen=True)
class Request:
    """A message that is for the bot: the command, and the text after it."""

    command: Command
    text: str


def addressed(
    message: Message,
    own_user_id: str,
    own_name: str = "",
    *,
    started: int = 0,
    answers_mentions: bool = True,
    answers_direct_chats: bool = True,
) -> Request | None:
    """Return what the message asks the bot for, or None if it is not for the bot.

    For the bot is:

    - one of its commands, on one line or several;
    - with `answers_mentions`: a mention in `m.mentions`; a text that begins with the bot's name
      or id, which does not become part of the prompt; a reply to one of the bot's messages;
    - with `answers_direct_chats`: any text in a direct chat.

    In a thread the same holds, and one thing more, with `answers_mentions`: who writes right
    below an answer that the bot gave them in that thread goes on talking with it, unless they
    mention somebody else. Whoever else writes there, and whoever writes after somebody else,
    talks with people; the bot waits to be mentioned again.

    Never for the bot, however addressed: its own messages, edits, everything but plain text
    (bots answer with notices), what was sent before the bot was `started` (in milliseconds), and
    commands of other bots.
    """
    if (
        message.sender == own_user_id
        or not message.is_text
        or message.is_edit
        or message.sent < started
    ):
        return None
    text = message.body.strip()
    if _ANY_COMMAND.match(text):
        return _own_command(text)
    after_name = _after_name(message, text, own_user_id, own_name)
    is_mentioned = (
        after_name is not None
        or own_user_id in message.mentions
        or message.replies_to_own
        or (message.continues_own_answer and not message.mentions - {message.sender})
    )
    if not ((is_mentioned and answers_mentions) or (message.is_direct and answers_direct_chats)):
        return None
    prompt = text if after_name is None else after_name
    if _ANY_COMMAND.match(prompt):
        return _own_command(prompt)
    # A bare name is a call; a bare nothing is nothing.
    return Request(Command.ASK, prompt) if text else None


_ANY_COMMAND = re.compile(r"!\w")
_COMMAND = re.compile(r"!(?P<name>\w+)(?:\s+(?P<text>.*))?", re.DOTALL)


def _own_command(text: str) -> Request | None:
    command = _COMMAND.fullmatch(text)
    if command is None:
        return None
    try:
        name = Command(command["name"].lower())
    except ValueError:
        return None
    return Request(name, (command["text"] or "").strip())


# --- the bot's name at the start of a text -----------------------------------------------------


def _after_name(message: Message, text: str, own_user_id: str, own_name: str) -> str | None:
    """Return what follows the bot's name at the start of a text; None if it is not there."""
    link = _MARKDOWN_PILL.match(text)
    if link and _user_id(link["link"]) == own_user_id:
        return _SEPARATOR.sub("", text[link.end() :], count=1)
    for name in _names(message, own_user_id, own_name):
        start, rest = text[: len(name)], text[len(name) :]
        if start.casefold() == name.casefold() and _ends_name(name, rest):
            return _SEPARATOR.sub("", rest, count=1)
    return None


_SEPARATOR = re.compile(r"\s*[:,\uff1a\uff0c\u3001]?\s*")


def _ends_name(name: str, rest: str) -> bool:
    if rest[:1] == ":" and name.startswith("@"):
        # "@bot:elsewhere.org" is somebody else, and so is "@bot:example.org:8448".
        return not rest[1:2] or rest[1].isspace()
    return not rest or rest[0].isspace() or rest[0] in ":,\uff1a\uff0c\u3001"


def _names(message: Message, own_user_id: str, own_name: str) -> Iterator[str]:
    """Yield what the bot may be called at the start of this message, longest id first."""
    yield own_user_id
    yield own_user_id.partition(":")[0]
    # A pill shows the name that the sender's client knows, whatever the bot is called now.
    pill = _HTML_PILL.match(message.formatted_body or "")
    for name in (own_name.strip(), _pill_name(pill, own_user_id) if pill else ""):
        if name:
            yield name
            yield f"@{name}"


_LINK = r"(?:https?://matrix\.to/#/|matrix:u/)"
_MARKDOWN_PILL = re.compile(rf"\[[^\]\n]*\]\((?P<link>{_LINK}[^)\s]*)\)")
_HTML_PILL = re.compile(
    rf"\s*(?:<p>\s*)?<a\s[^<>]*?href=[\"'](?P<link>{_LINK}[^\"'<>]*)[\"'][^<>]*>(?P<name>[^<]*)</a>",
    re.IGNORECASE,
)


def _pill_name(pill: re.Match[str], own_user_id: str) -> str:
    """Return the name that a pill shows; empty if it is not the bot's pill."""
    return html.unescape(pill["name"]).strip() if _user_id(pill["link"]) == own_user_id else ""


def _user_id(link: str) -> str:
    """Return whom a `matrix.to` or `matrix:` link leads to."""
    target = unquote(re.sub(_LINK, "", link, count=1).partition("?")[0])
    return f"@{target}" if link.startswith("matrix:") else target
