"""Every sentence that people read in replies."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence
from html import escape

from .counters import Counters
from .health import Key, KeyState, Setup, Work
from .memory.facts import Refusal
from .memory.store import CleanupOutcome, Memory
from .models import (
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


@dataclasses.dataclass(frozen=True)
class Text:
    """A reply's text: plain, and where it differs from that, as HTML."""

    plain: str
    html: str | None = None


class Problem(Text):
    """A text that tells why something was not done; docs/troubleshooting.md has each of them."""


ASK_USAGE = Problem("Usage: !ask <text>")
CODE_USAGE = Problem("Usage: !code <text>")
NOT_ALLOWED = Problem(
    "I answer only those whom this bot's operator allows to ask; you are not among them yet."
)
ONLY_FOR_ADMINS = Problem("Only this bot's operators can see that.")
CUT_OFF = Problem("*(The model had to stop here: its answer was too long.)*")
FILE_NOT_SENT = Problem("The homeserver did not take the code as a file. It stands above.")
FORGOTTEN = Text("I have forgotten our conversation here. Your memories are as they were.")
NOTHING_TO_FORGET = Problem("There is no conversation to forget here.")
MEMORIES_USAGE = Problem(
    "Usage: !memories [page] | del <id> [<id>…] | edit <id> <text> | clear | cleanup | undo"
    " | room [on|off]"
)
ROOM_USAGE = Problem("Usage: !memories room [on|off]")
ROOM_SENDER_LACKS_POWER = Problem(
    "You may not change this room's settings. Please ask a moderator of the room."
)
ROOM_BOT_LACKS_POWER = Problem(
    "I may not change this room's settings. Please make me a moderator of the room, or set "
    '{"memoryEnabled": true} or {"memoryEnabled": false} in its state event dev.llmbot.settings '
    "yourself."
)
DRAW_USAGE = Problem("Usage: !draw <text>")
STORY_USAGE = Problem("Usage: !story <text>")
STORY_BEGUN = Text("Writing the story …")
STORY_INTERRUPTED = Problem("The story was interrupted: the bot was stopped. Ask for it again.")
NOT_UPLOADED = Problem("The homeserver did not take the picture. Please try again.")
VERSE_USAGE = Problem("Usage: !verse [on <scene>|off]")
VERSE_OFF = Text("No scene is played in this room now. !verse on continues the last one.")
VERSE_SENDER_LACKS_POWER = Problem(
    "You may not change this room's scene. Please ask a moderator of the room."
)
VERSE_BOT_LACKS_POWER = Problem(
    "I may not change this room's scene. Please make me a moderator of the room, or set "
    '{"enabled": true, "scene": "…"} in its state event dev.llmbot.verse yourself.'
)
DELETE_USAGE = Problem("Usage: !memories del <id> [<id>…]")
EDIT_USAGE = Problem("Usage: !memories edit <id> <text>")
ALREADY_REMEMBERED = Problem("I remember exactly that already. Nothing was changed.")
CLEANUP_RUNNING = Problem("Your memories are being cleaned up already.")
CLEANUP_REJECTED = Problem(
    "The model's cleanup was not acceptable, so nothing was changed. Please try again later."
)
NO_MEMORIES = Problem("I do not remember anything about you yet.")


def internal_error(error_id: str) -> Problem:
    """Tell that something unforeseen happened; the log holds the same id."""
    return Problem(f"Internal error {error_id}. The bot's operator finds it in the log.")


def prompt_too_long(length: int, limit: int) -> Problem:
    """Tell the limit of a prompt."""
    return Problem(f"That message has {length} characters; I can take {limit} at most.")


def verse(scene: str) -> Text:
    """Tell the scene that is played in a room, or that there is none."""
    if not scene:
        return Text("No scene is played in this room. !verse on <scene> begins one.")
    return Text(f"This room is playing a scene: {scene}")


def scene_too_long(length: int, limit: int) -> Problem:
    """Tell the limit of a scene."""
    return Problem(f"That scene has {length} characters; {limit} is the most.")


def model_error(error: ModelError) -> Problem:  # noqa: PLR0911, PLR0912, C901 - a table
    """Tell why there is no answer, and what to do about it."""
    match error:
        case NoModelError(setting="imageModel"):
            return Problem("Drawing is not set up here: the setting imageModel must name a model.")
        case NoModelError(setting=setting):
            return Problem(f"No model is configured: the setting {setting} must name one.")
        case UnknownProviderError(provider=provider):
            return Problem(
                f"The provider {provider} is not known: it is missing in the setting providers."
            )
        case MissingKeyError(provider=provider, variable=variable):
            return Problem(
                f"The API key of {provider} is missing: the environment variable {variable} "
                "is not set."
            )
        case KeyRefusedError(provider=provider):
            return Problem(f"The provider {provider} refuses the bot's API key.")
        case UnknownModelError(provider=provider, model=model):
            return Problem(f"The provider {provider} does not know the model {model}.")
        case RequestRefusedError(provider=provider, status=status):
            return Problem(f"The provider {provider} did not accept the request (HTTP {status}).")
        case BusyError():
            return Problem("The model is busy at the moment. Please try again in a while.")
        case TimedOutError(seconds=seconds):
            return Problem(
                f"The model gave no answer within {seconds:g} seconds. Please try again."
            )
        case DrawingRefusedError():
            return Problem("The model refused to draw that.")
        case NoPicturesError(provider=provider, model=model):
            return Problem(
                f"The provider {provider} does not know the model {model} or does not draw."
            )
        case BadPictureError():
            return Problem("No usable picture came back. Please try again.")
        case OversizedPictureError(limit=limit):
            return Problem(f"The picture is too large: I can take {_megabytes(limit)} at most.")
        case ContentRefusedError():
            return Problem("The model refused to answer that.")
        case EmptyAnswerError():
            return Problem(
                "The model sent an empty answer. Please try again or put it differently."
            )
        case ToolLoopError(steps=steps):
            return Problem(
                f"The model gave no answer within {steps} steps. Please put it differently."
            )
        case BadAnswerError():
            return Problem("The model's answer could not be read. Please try again.")
        case _:
            return Problem("The model could not answer.")


# --- pictures and stories -----------------------------------------------------------------------


def _megabytes(size: int) -> str:
    return f"{size / 2**20:.3g} MiB"


def upload_too_large(size: int, limit: int | None) -> Problem:
    """Tell that the homeserver takes no pictures of this size, in bytes."""
    allowed = "" if limit is None else f"; {_megabytes(limit)} is the most"
    return Problem(f"The picture has {_megabytes(size)}, too much for this homeserver{allowed}.")


def story_written(pictures: int) -> Text:
    """Tell that the text is there and so many pictures are being drawn."""
    return Text(f"The story is written; drawing {_pictures(pictures)} …")


def story_told(title: str, pictures: int, failures: Sequence[Problem]) -> Text:
    """Tell that a story is complete, and which of its pictures are missing for which reasons."""
    told = f"The story “{title}” is told" if title else "The story is told"
    drawn = pictures - len(failures)
    if drawn:
        told += f", with {_pictures(drawn)}"
    if not failures:
        return Text(f"{told}.")
    reasons = " ".join(dict.fromkeys(failure.plain for failure in failures))
    return Problem(f"{told}; {_pictures(len(failures))} could not be drawn. {reasons}")


def _pictures(count: int) -> str:
    return "1 picture" if count == 1 else f"{count} pictures"


# --- memories ----------------------------------------------------------------------------------

# What clients make links or pills of: addresses, bare domains, Matrix ids, @room.
_LINK = re.compile(r"://|[@#!]|\w\.\w")


def memories_page(memories: Sequence[Memory], page: int, pages: int, total: int) -> Text:
    """List one page of memories: each with the id that del and edit take.

    A memory is shown as text: nothing in it takes effect.
    """
    title = f"What I remember about you ({total}):"
    hint = f"Page {page} of {pages}. Further ones: !memories <page>" if pages > 1 else ""
    if not memories:
        return Problem(f"There is no page {page}: your memories fill {pages}.")
    plain = [title, *(f"{memory.id}: {memory.fact}" for memory in memories)]
    items = "".join(
        f"<li><code>{memory.id}</code> {_inert(memory.fact)}</li>" for memory in memories
    )
    html = f"<p>{title}</p><ul>{items}</ul>"
    if hint:
        plain.append(hint)
        html += f"<p>{escape(hint)}</p>"
    return Text("\n".join(plain), html)


def _inert(fact: str) -> str:
    """Return a fact as HTML in which clients find no link, pill or @room."""
    text = escape(fact)
    return f"<code>{text}</code>" if _LINK.search(fact) else text


def deleted(found: Sequence[str], missing: Sequence[str]) -> Text:
    """Tell which memories are gone and which ids are none of the caller's."""
    parts: list[Text] = []
    if found:
        parts.append(Text(f"Deleted: {', '.join(found)}."))
    if missing:
        parts.append(Problem(f"Not found: {', '.join(missing)}."))
    return Text(" ".join(part.plain for part in parts))


def edited(memory_id: str) -> Text:
    """Tell that a memory has its new text."""
    return Text(f"Changed: {memory_id}.")


def not_stored(reason: Refusal) -> Problem:
    """Tell why a text is never stored (M14)."""
    return Problem(f"I cannot remember that: {reason.value}. Nothing was changed.")


def cleared(count: int) -> Text:
    """Tell how many memories are gone."""
    if not count:
        return NO_MEMORIES
    return Text(f"Deleted: {'all ' if count > 1 else ''}{_memories(count)}.")


def cleaned_up(outcome: CleanupOutcome | None) -> Text:
    """Tell what a cleanup did (M12)."""
    if outcome is None:
        return Problem("There is nothing to clean up: you have fewer than two memories.")
    if not outcome.dropped and not outcome.merged:
        return Text(f"Nothing to clean up: dropped 0, merged 0, kept {outcome.kept}.")
    merged = f"merged {outcome.merged}"
    if outcome.merged:
        merged += f" into {outcome.merged_into}"
    return Text(
        f"Cleaned up: dropped {outcome.dropped}, {merged}, kept {outcome.kept}. "
        "!memories undo brings back what was there before."
    )


def undone(count: int) -> Text:
    """Tell what an undo brought back."""
    return Text(f"Brought back: {_memories(count)}.") if count else Problem("Nothing to undo.")


def _memories(count: int) -> str:
    return "1 memory" if count == 1 else f"{count} memories"


def room_memory(*, enabled: bool) -> Text:
    """Tell whether I learn from what is said in a room (M2)."""
    if enabled:
        return Text(
            "Memory is on in this room: I learn about people from what they ask me here. "
            "Moderators switch it off with !memories room off."
        )
    return Text(
        "Memory is off in this room: I learn nothing about people from what they ask me here, "
        "unless they ask me to remember it. Moderators switch it on with !memories room on."
    )


def room_memory_switched(*, enabled: bool) -> Text:
    """Tell that a room's memory was switched."""
    return Text(f"Memory is now {'on' if enabled else 'off'} in this room.")


# --- limits ------------------------------------------------------------------------------------


def too_many(wait_seconds: float) -> Problem:
    """Tell when to come back."""
    return Problem(f"That was a lot at once. Please try again in {_seconds(wait_seconds)}.")


def next_story(wait_seconds: float) -> Problem:
    """Tell when the next story can be asked for, whether or not the last one came about."""
    return Problem(
        f"You have just asked for a story. You can ask for the next in {_seconds(wait_seconds)}."
    )


def _seconds(duration: float) -> str:
    seconds = max(1, math.ceil(duration))
    return "1 second" if seconds == 1 else f"{seconds} seconds"


# --- how the bot is doing ----------------------------------------------------------------------

_WORK = {
    Work.ASSISTANT: "assistant",
    Work.CODE: "code",
    Work.MEMORY: "memory",
    Work.VERSE: "verse",
    Work.IMAGE: "image",
}


def setup_line(setup: Setup) -> str:
    """Tell how the bot is set up, in one line for the log."""
    return "; ".join(_setup(setup))


def health(setup: Setup, counters: Counters, running: int, seconds: float) -> Text:
    """Tell how the bot is set up, and what was counted since the start.

    Args:
        setup: How it is set up now.
        counters: The counts.
        running: How many passes are running now.
        seconds: How long ago the start was.
    """
    hours, minutes = divmod(int(seconds) // 60, 60)
    failures = ", ".join(f"{cause} {count}" for cause, count in sorted(counters.failures.items()))
    turns = (
        f"since the start {hours} h {minutes} min ago: turns {counters.turns}, "
        f"failures {failures or 0}"
    )
    passes = (
        f"passes {counters.passes} (running now {running}), promotions {counters.promotions}, "
        f"dropped for lack of evidence {counters.dropped_no_evidence}, "
        f"for other reasons {counters.dropped_other}, cleanups {counters.cleanups}"
    )
    return Text("\n".join([*_setup(setup), turns, passes]))


def _setup(setup: Setup) -> list[str]:
    models = [
        f"{'/'.join(_WORK[work] for work in works)} {model or 'none'}"
        for works, model in setup.models
    ]
    keys = [f"{key.provider} {_key(key)}" for key in setup.keys]
    evidence = "required" if setup.requires_evidence else "NOT required"
    return [
        f"llmbot {setup.version}",
        f"models: {', '.join(models)}",
        f"keys: {', '.join(keys) or 'none'}",
        (
            f"memory: threshold {setup.memory.promotion_threshold}, "
            f"candidate TTL {setup.memory.candidate_ttl_days} days, "
            f"at most {setup.memory.max_per_user} a person, "
            f"cleanup interval {setup.memory.cleanup_interval}, "
            f"mention gap {setup.memory.mention_gap_minutes} minutes, "
            f"evidence {evidence}"
        ),
    ]


def _key(key: Key) -> str:
    match key.state:
        case KeyState.PRESENT:
            return "present"
        case KeyState.MISSING:
            return f"missing ({key.variable})"
        case KeyState.NOT_NEEDED:
            return "needs none"
        case KeyState.NO_PROVIDER:
            return "is not in providers"
