"""What a room decides: whether its traffic may be remembered."""

from __future__ import annotations

import logging

from maubot.matrix import MaubotMatrixClient
from mautrix.errors import MNotFound
from mautrix.types import EventType, RoomID

SETTINGS_EVENT = EventType.find("dev.llmbot.settings", EventType.Class.STATE)


class Rooms:
    """Reads rooms' switches."""

    def __init__(self, client: MaubotMatrixClient, log: logging.Logger) -> None:
        self._client = client
        self._log = log
        self._warned: set[str] = set()

    async def memory_enabled(self, room_id: str) -> bool:
        """Say whether this room's traffic may be remembered (M2).

        A room that says nothing allows it. What is no boolean, and a state that cannot be
        read, forbids it.
        """
        try:
            content = await self._client.get_state_event(RoomID(room_id), SETTINGS_EVENT, "")
        except MNotFound:
            return True
        # Whatever keeps the state from being read: nothing is remembered for this turn.
        except Exception as error:  # noqa: BLE001
            self._warn_once(room_id, f"its settings cannot be read ({type(error).__name__})")
            return False
        if "memoryEnabled" not in content:
            return True
        enabled = content.get("memoryEnabled")
        if not isinstance(enabled, bool):
            self._warn_once(room_id, "memoryEnabled in dev.llmbot.settings is no boolean")
            return False
        return enabled

    def _warn_once(self, room_id: str, cause: str) -> None:
        if (warning := f"{room_id}: {cause}") not in self._warned:
            self._warned.add(warning)
            self._log.warning("No memory in %s", warning)
