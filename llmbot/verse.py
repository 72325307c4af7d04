"""A room's shared scene: what it is, and `!verse`, by which members see and set it."""

from __future__ import annotations

import dataclasses
import logging

from mautrix.types import EventType, RedactionEvent, StateEvent

from . import texts
from .reporting import FailureLog
from .room import Known, Rooms, SwitchOutcome
from .texts import Text

VERSE_EVENT = EventType.find("dev.llmbot.verse", EventType.Class.STATE)

MAX_SCENE_LENGTH = 2000
"""Characters of a scene; of a longer one, set by some other client, only the beginning counts."""


@dataclasses.dataclass(frozen=True)
class Verse:
    """What a room's `dev.llmbot.verse` says: a scene, which is kept also while it is off."""

    enabled: bool
    scene: str


class Verses:
    """Knows which scenes are played in which rooms.

    `on_verse_event` and `on_redaction` have to be told what comes by sync.
    """

    def __init__(self, rooms: Rooms, log: logging.Logger) -> None:
        self._rooms = rooms
        self._failures = FailureLog(log)
        self._verses = Known(self._read)

    async def scene(self, room_id: str) -> str:
        """Return the scene that a room plays; empty if there is none, or none to be read."""
        try:
            verse = await self._verses.get(room_id)
        # A question can be answered without the scene; it is read anew for the next one.
        except Exception as error:  # noqa: BLE001
            self._failures.report(f"No scene in {room_id}: {type(error).__name__} at reading it")
            return ""
        return verse.scene if verse.enabled else ""

    async def run(self, user_id: str, room_id: str, text: str) -> Text:
        """Carry out what follows `!verse` and return the reply.

        Raises:
            MatrixError: the homeserver did not tell or do what is needed.
        """
        word, scene = (*text.split(maxsplit=1), "", "")[:2]
        match word.lower():
            case "":
                verse = await self._verses.get(room_id)
                return texts.verse(verse.scene if verse.enabled else "")
            case "on":
                # Without a scene the one that was played last goes on.
                scene = scene or (await self._verses.get(room_id)).scene
                if not scene:
                    return texts.VERSE_USAGE
                if len(scene) > MAX_SCENE_LENGTH:
                    return texts.scene_too_long(len(scene), MAX_SCENE_LENGTH)
                return await self._set(user_id, room_id, Verse(True, scene))
            case "off" if not scene:
                kept = (await self._verses.get(room_id)).scene
                return await self._set(user_id, room_id, Verse(False, kept))
            case _:
                return texts.VERSE_USAGE

    async def _set(self, user_id: str, room_id: str, verse: Verse) -> Text:
        outcome = await self._rooms.change_state(
            room_id, user_id, VERSE_EVENT, dataclasses.asdict(verse)
        )
        self._verses.forget(room_id)
        match outcome:
            case SwitchOutcome.DONE:
                return texts.verse(verse.scene) if verse.enabled else texts.VERSE_OFF
            case SwitchOutcome.SENDER_LACKS_POWER:
                return texts.VERSE_SENDER_LACKS_POWER
            case SwitchOutcome.BOT_LACKS_POWER:
                return texts.VERSE_BOT_LACKS_POWER

    def on_verse_event(self, evt: StateEvent) -> None:
        """Follow a change of a room's scene, whatever it says."""
        self._verses.forget(evt.room_id)

    def on_redaction(self, evt: RedactionEvent) -> None:
        """Follow a redaction: it may have emptied the scene."""
        self._verses.forget(evt.room_id)

    async def _read(self, room_id: str) -> Verse:
        content = await self._rooms.content(room_id, VERSE_EVENT) or {}
        enabled, scene = content.get("enabled"), content.get("scene")
        scene = scene.strip()[:MAX_SCENE_LENGTH] if isinstance(scene, str) else ""
        if enabled is True and not scene:
            self._failures.report(f"No scene in {room_id}: dev.llmbot.verse is on without a text")
        # Whatever is no clear "on" is off.
        return Verse(enabled is True and scene != "", scene)
