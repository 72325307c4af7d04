"""Who may send which state event in a room: pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def may_send_state(
    user_id: str,
    event_type: str,
    create_event: Mapping[str, Any],
    power_levels: Mapping[str, Any] | None,
) -> bool:
    """Say whether a member has the power to send a state event of a type.

    Args:
        user_id: The member.
        event_type: The type of the state event.
        create_event: The room's `m.room.create`, with `sender` and `content`.
        power_levels: The content of `m.room.power_levels`; None if the room has none.
    """
    return _power(user_id, create_event, power_levels) >= _needed(event_type, power_levels)


def _power(
    user_id: str, create_event: Mapping[str, Any], power_levels: Mapping[str, Any] | None
) -> float:
    content = _mapping(create_event.get("content"))
    if _creators_rule(content.get("room_version")):
        additional = content.get("additional_creators")
        others = additional if isinstance(additional, list) else []
        if user_id in (create_event.get("sender"), *others):
            return math.inf
    if power_levels is None:
        creator = content.get("creator", create_event.get("sender"))
        return 100 if user_id == creator else 0
    default = _level(power_levels.get("users_default"), 0)
    return _level(_mapping(power_levels.get("users")).get(user_id), default)


def _needed(event_type: str, power_levels: Mapping[str, Any] | None) -> float:
    levels = power_levels or {}
    default = _level(levels.get("state_default"), 50)
    return _level(_mapping(levels.get("events")).get(event_type), default)


def _creators_rule(room_version: object) -> bool:
    """Say whether creators have power without end: from version 12 on."""
    return (
        isinstance(room_version, str)
        and room_version.isascii()
        and room_version.isdigit()
        and len(room_version) < 10
        and int(room_version) >= 12
    )


def _level(value: object, default: float) -> float:
    """Return a power level; rooms before version 10 may hold it as text."""
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            return default
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
