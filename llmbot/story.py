"""`!story`: a short illustrated story, told in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
from collections.abc import Sequence

from maubot import MessageEvent

from . import texts
from .config import Settings
from .counters import Counters, cause
from .files import UploadTooLargeError
from .models import BadAnswerError, BadPictureError, EmptyAnswerError, ModelClient, ModelError
from .models.parsing import ShapeError, parse_object
from .picture_header import Picture
from .pictures import Painter, picture_message
from .prompts import STORY_SCHEMA, story_messages
from .replies import Thread, notice, rendered
from .reporting import traceback_of
from .texts import Problem

_PICTURES_AT_ONCE = 2
_LAST_EDIT_SECONDS = 5.0


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of a story, and what its picture shows; empty where it has none."""

    text: str
    picture: str = ""


@dataclasses.dataclass(frozen=True)
class Story:
    """A story in parts; the title may be empty."""

    title: str
    parts: tuple[Part, ...]

    @property
    def pictures(self) -> int:
        """How many pictures it wants."""
        return sum(part.picture != "" for part in self.parts)


def parse_story(answer: str, max_pictures: int) -> Story:
    """Return the story that a model's answer holds, with at most so many pictures.

    A model that answers in prose has told a story without pictures.

    Raises:
        ShapeError: it holds none.
    """
    if not answer.lstrip().startswith(("{", "```")):
        return Story("", (Part(answer.strip()),)) if answer.strip() else _no_story()
    data = parse_object(answer)
    items = data.get("parts")
    parts: list[Part] = []
    for item in items if isinstance(items, list) else [data.get("text"), data.get("story")]:
        fields = item if isinstance(item, dict) else {"text": item}
        text, picture = _text(fields.get("text")), _text(fields.get("picture"))
        if text:
            is_drawn = picture and sum(part.picture != "" for part in parts) < max_pictures
            parts.append(Part(text, picture if is_drawn else ""))
    return Story(_text(data.get("title")), tuple(parts)) if parts else _no_story()


def _no_story() -> Story:
    raise ShapeError("no story")


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


class Storyteller:
    """Tells stories; none of it is ever extracted."""

    def __init__(
        self, models: ModelClient, painter: Painter, log: logging.Logger, counters: Counters
    ) -> None:
        self._models = models
        self._painter = painter
        self._log = log
        self._failures = counters.failures

    async def tell(self, event: MessageEvent, wish: str, settings: Settings) -> None:
        """Tell a story in a thread: a line on how far it is, then texts and pictures in turn.

        Raises:
            ModelError: there is no story; the line says why.
            RoomGoneError: the bot may not write there (any more).
        """
        thread = Thread(event)
        status = await thread.send(notice(texts.STORY_BEGUN), notifies=True)
        try:
            story = await self._write(wish, settings)
            if story.pictures:
                await thread.edit(status, notice(texts.story_written(story.pictures)))
            failures = await self._send_parts(thread, story, settings)
            told = texts.story_told(story.title, story.pictures, failures)
            await thread.edit(status, notice(told))
        except ModelError as error:
            await thread.edit(status, notice(texts.model_error(error)))
            raise
        except asyncio.CancelledError:
            # The plugin stops or is updated, which must neither fail nor wait long for this.
            with contextlib.suppress(Exception):
                edit = thread.edit(status, notice(texts.STORY_INTERRUPTED))
                await asyncio.wait_for(edit, _LAST_EDIT_SECONDS)
            raise

    async def _send_parts(self, thread: Thread, story: Story, settings: Settings) -> list[Problem]:
        """Send texts and pictures in turn; return why pictures are missing."""
        at_once = asyncio.Semaphore(_PICTURES_AT_ONCE)
        drawings = [
            asyncio.create_task(self._draw(part.picture, settings, at_once))
            if part.picture
            else None
            for part in story.parts
        ]
        failures: list[Problem] = []
        try:
            for number, (part, drawing) in enumerate(zip(story.parts, drawings, strict=True)):
                heading = f"### {story.title}\n\n" if story.title and number == 0 else ""
                for text in await asyncio.to_thread(rendered, heading + part.text):
                    await thread.send(notice(text))
                if drawing is not None:
                    failure = await self._show(thread, await drawing, part.picture)
                    failures += [failure] if failure else []
        finally:
            await _cancel([drawing for drawing in drawings if drawing])
        return failures

    async def _write(self, wish: str, settings: Settings) -> Story:
        max_pictures = settings.story_max_images if settings.image_model else 0
        completion = await self._models.complete(
            settings.assistant_model,
            story_messages(wish, max_pictures),
            settings.client,
            json_schema=STORY_SCHEMA,
        )
        provider = settings.assistant_model.partition("/")[0]
        if not completion.text:
            raise EmptyAnswerError(provider)
        try:
            return parse_story(completion.text, max_pictures)
        except ShapeError as error:
            raise BadAnswerError(provider, str(error)) from None

    async def _draw(
        self, description: str, settings: Settings, at_once: asyncio.Semaphore
    ) -> Picture | ModelError:
        async with at_once:
            try:
                return await self._painter.draw(description, settings)
            except ModelError as error:
                self._failures[cause(error)] += 1
                self._log.log(error.log_level, "No picture for a story: %s", error)
                return error
            # The story stays whole whatever happens to a picture.
            except Exception as error:  # noqa: BLE001
                self._failures["internal"] += 1
                self._log.error("A picture of a story was not drawn%s", traceback_of(error))
                return BadPictureError(settings.image_model, "unforeseen")

    async def _show(
        self, thread: Thread, drawn: Picture | ModelError, description: str
    ) -> Problem | None:
        """Send a picture; return why there is none: the story goes on without it."""
        if isinstance(drawn, ModelError):
            return texts.model_error(drawn)
        event = thread.event
        try:
            message = await picture_message(event.client, event.room_id, drawn, description)
        except UploadTooLargeError as error:
            self._failures["upload"] += 1
            self._log.warning("A picture was not sent: %s", error)
            return texts.upload_too_large(error.size, error.limit)
        # Whatever the homeserver has against the picture, the story stays whole.
        except Exception as error:  # noqa: BLE001
            self._failures["upload"] += 1
            self._log.error("A picture of a story was not uploaded%s", traceback_of(error))
            return texts.NOT_UPLOADED
        await thread.send(message)
        return None


async def _cancel(tasks: Sequence[asyncio.Task[Picture | ModelError]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
