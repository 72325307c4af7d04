"""What a room decides: whether its traffic may be remembered, who may say so, who is in it."""

from __future__ import annotations

import collections
import enum
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from maubot.matrix import MaubotMatrixClient
from mautrix.api import Method, Path
from mautrix.errors import MForbidden, MNotFound
from mautrix.types import EventID, EventType, Membership, RedactionEvent, RoomID, StateEvent

from .patience import patiently
from .power import may_send_state

SETTINGS_EVENT = EventType.find("dev.llmbot.settings", EventType.Class.STATE)

_SWITCH = "memoryEnabled"
_MAX_PREDECESSORS = 20
_MAX_KNOWN_MESSAGES = 2000
_MAX_KNOWN_MEMBERS = 10_000

Value = TypeVar("Value")


class SwitchOutcome(enum.Enum):
    """What became of the wish to switch a room's memory."""

    DONE = "done"
    SENDER_LACKS_POWER = "sender lacks power"
    BOT_LACKS_POWER = "bot lacks power"


class _Switch(NamedTuple):
    """A room's switch, and the rooms that were asked for it: its own, then its predecessors."""

    enabled: bool
    rooms: tuple[str, ...]


class Known(Generic[Value]):
    """What is known of rooms: read on first need, until something makes it doubtful."""

    def __init__(self, read: Callable[[str], Awaitable[Value]]) -> None:
        self.values: dict[str, Value] = {}
        self._read = read
        self._doubts = 0

    async def get(self, room_id: str) -> Value:
        """Return what is known of a room; raise what reading raises, and keep nothing then."""
        if room_id in self.values:
            return self.values[room_id]
        doubts = self._doubts
        value = await self._read(room_id)
        # What became doubtful while it was being read may be older than the doubt.
        if doubts == self._doubts:
            self.values[room_id] = value
        return value

    def forget(self, *room_ids: str) -> None:
        """Read rooms anew at the next need."""
        self._doubts += 1
        for room_id in room_ids:
            self.values.pop(room_id, None)


class Rooms:
    """Knows the rooms that the bot is in.

    `on_settings_event`, `on_redaction` and `on_member_event` have to be told what comes by sync.
    """

    def __init__(self, client: MaubotMatrixClient, log: logging.Logger) -> None:
        self._client = client
        self._log = log
        self._warned: set[tuple[str, str]] = set()
        self._switches = Known(self._read_switch)
        # How many have joined: exact up to two, at least so many beyond that.
        self._joined = Known(self._read_joined)
        self._own_names = Known(self._read_own_name)
        # The last member event of each member, by room and member.
        self._member_events: collections.OrderedDict[tuple[str, str], str] = (
            collections.OrderedDict()
        )
        # Whom a message of the bot's mentions; None for a message of somebody else's.
        self._messages: collections.OrderedDict[str, frozenset[str] | None] = (
            collections.OrderedDict()
        )

    # --- the memory's switch (M2) --------------------------------------------------------------

    async def memory_enabled(self, room_id: str) -> bool:
        """Say whether this room's traffic may be remembered (M2).

        A room that says nothing does as the room that it replaces, and allows it if there is
        none. What is no boolean, and a state that cannot be read, forbids it.
        """
        try:
            return (await self._switches.get(room_id)).enabled
        # Whatever keeps the state from being read: nothing is remembered for this turn.
        except Exception as error:  # noqa: BLE001
            self._warn_once(room_id, f"its settings cannot be read ({type(error).__name__})")
            return False

    async def set_memory_enabled(
        self, room_id: str, user_id: str, *, enabled: bool
    ) -> SwitchOutcome:
        """Switch a room's memory on behalf of a member who has the power to do it.

        Raises:
            MatrixError: the homeserver did not tell or do what is needed.
        """
        outcome = await self.change_state(room_id, user_id, SETTINGS_EVENT, {_SWITCH: enabled})
        self._forget_switch(room_id)
        return outcome

    def on_settings_event(self, evt: StateEvent) -> None:
        """Follow a change of a room's settings, whatever it says."""
        self._forget_switch(evt.room_id)

    def on_redaction(self, evt: RedactionEvent) -> None:
        """Follow a redaction: it may have emptied the settings."""
        self._forget_switch(evt.room_id)

    def _forget_switch(self, room_id: str) -> None:
        """Read a room's switch anew, and that of the rooms which did as this one says."""
        known = self._switches.values.items()
        self._switches.forget(*[room for room, switch in known if room_id in switch.rooms])

    async def _read_switch(self, room_id: str) -> _Switch:
        rooms = [room_id]
        while len(rooms) <= _MAX_PREDECESSORS:
            try:
                decision = await self._decision(rooms[-1])
            except (MForbidden, MNotFound):
                if len(rooms) == 1:
                    raise
                return self._undecided(rooms, f"the bot cannot read the settings of {rooms[-1]}")
            if not isinstance(decision, str):
                return _Switch(decision, tuple(rooms))
            rooms.append(decision)
        return self._undecided(rooms, "there is no end to these")

    async def _decision(self, room_id: str) -> bool | str:
        """Return what a room decides, or the room that it replaces if it leaves it to that one."""
        settings = await self.content(room_id, SETTINGS_EVENT) or {}
        if _SWITCH not in settings:
            create_event = await self._state_event(room_id, EventType.ROOM_CREATE)
            return _predecessor(create_event) or True
        enabled = settings[_SWITCH]
        if not isinstance(enabled, bool):
            self._warn_once(room_id, "memoryEnabled in dev.llmbot.settings is no boolean")
            return False
        return enabled

    def _undecided(self, rooms: list[str], cause: str) -> _Switch:
        """Return what is safe until somebody decides."""
        self._warn_once(
            rooms[0],
            f"it does as the rooms that it replaces, and {cause}; "
            "!memories room on (or off) decides for itself",
        )
        return _Switch(enabled=False, rooms=tuple(rooms))

    # --- what members set through the bot ------------------------------------------------------

    async def change_state(
        self, room_id: str, user_id: str, event_type: EventType, changes: Mapping[str, Any]
    ) -> SwitchOutcome:
        """Change keys of a room's state event on behalf of a member who may send that event.

        Raises:
            MatrixError: the homeserver did not tell or do what is needed.
        """
        create_event = await self._state_event(room_id, EventType.ROOM_CREATE)
        levels = await self.content(room_id, EventType.ROOM_POWER_LEVELS)
        if not may_send_state(user_id, str(event_type), create_event, levels):
            return SwitchOutcome.SENDER_LACKS_POWER
        # What others keep there stays.
        content = {**(await self.content(room_id, event_type) or {}), **changes}
        try:
            await patiently(
                lambda: self._client.send_state_event(RoomID(room_id), event_type, content, "")
            )
        except MForbidden:
            return SwitchOutcome.BOT_LACKS_POWER
        return SwitchOutcome.DONE

    # --- who is in a room ----------------------------------------------------------------------

    async def is_direct(self, room_id: str) -> bool:
        """Say whether exactly one person and the bot are in a room; no, if that is not known.

        What a room was made as counts for nothing: where three are, people talk to people.
        """
        try:
            return await self._joined.get(room_id) == 2
        except Exception:  # noqa: BLE001 - in doubt the bot keeps out of a conversation
            return False

    async def own_name(self, room_id: str) -> str:
        """Return the bot's display name in a room; empty if it has none, or it is not known."""
        try:
            return await self._own_names.get(room_id)
        except Exception:  # noqa: BLE001 - there are other ways to call the bot
            return ""

    def on_member_event(self, evt: StateEvent) -> None:
        """Follow somebody's joining, leaving or new name, and the bot's own."""
        if not self._is_new_member_event(evt):
            return
        room_id = evt.room_id
        if evt.state_key == self._client.mxid:
            self._forget_switch(room_id)
            self._joined.forget(room_id)
            self._own_names.forget(room_id)
            return
        has_left = evt.content.membership in {Membership.LEAVE, Membership.BAN}
        remaining = self._joined.values.get(room_id, 0) - has_left
        if remaining > 2:
            # A large room is not counted anew for each who comes or goes.
            self._joined.values[room_id] = remaining
        else:
            self._joined.forget(room_id)

    def _is_new_member_event(self, evt: StateEvent) -> bool:
        """Say whether a member event tells anything new.

        maubot asks for members only as they are needed, so a homeserver sends the same event
        again beside each message of a member's. To read all anew each time would make every
        answer wait for it.
        """
        member = (evt.room_id, evt.state_key)
        last = self._member_events.pop(member, None)
        self._member_events[member] = evt.event_id
        if len(self._member_events) > _MAX_KNOWN_MEMBERS:
            self._member_events.popitem(last=False)
        return bool(last != evt.event_id)

    async def _read_joined(self, room_id: str) -> int:
        return len(await self._client.get_joined_members(RoomID(room_id)))

    async def _read_own_name(self, room_id: str) -> str:
        member = await self.content(room_id, EventType.ROOM_MEMBER, self._client.mxid) or {}
        name = member.get("displayname")
        return name if isinstance(name, str) else ""

    # --- the bot's own messages ----------------------------------------------------------------

    def note_own_message(self, event_id: str, mentioned: frozenset[str]) -> None:
        """Remember a message of the bot's and whom it mentions."""
        self._remember(event_id, mentioned)

    async def is_own_message(self, room_id: str, event_id: str) -> bool:
        """Say whether an event is the bot's; no, if it cannot be read."""
        return await self._mentioned_by_own(room_id, event_id) is not None

    async def is_answer_to(self, room_id: str, event_id: str, user_id: str) -> bool:
        """Say whether an event is the bot's answer to somebody; no, if it cannot be read."""
        return user_id in (await self._mentioned_by_own(room_id, event_id) or ())

    async def _mentioned_by_own(self, room_id: str, event_id: str) -> frozenset[str] | None:
        if event_id in self._messages:
            self._messages.move_to_end(event_id)
            return self._messages[event_id]
        try:
            event = await self._client.get_event(RoomID(room_id), EventID(event_id))
            is_own = event.sender == self._client.mxid
            mentioned = mentioned_users(event.content) if is_own else None
        except Exception:  # noqa: BLE001 - gone, hidden or not to be decrypted
            return None
        self._remember(event_id, mentioned)
        return mentioned

    def _remember(self, event_id: str, mentioned: frozenset[str] | None) -> None:
        self._messages[event_id] = mentioned
        while len(self._messages) > _MAX_KNOWN_MESSAGES:
            self._messages.popitem(last=False)

    # --- reading -------------------------------------------------------------------------------

    async def content(
        self, room_id: str, event_type: EventType, state_key: str = ""
    ) -> Mapping[str, Any] | None:
        """Return the content of a room's state event; None if there is no such event."""
        try:
            event = await self._state_event(room_id, event_type, state_key)
        except MNotFound:
            return None
        content = event["content"]
        assert isinstance(content, dict)
        return content

    async def _state_event(
        self, room_id: str, event_type: EventType, state_key: str = ""
    ) -> Mapping[str, Any]:
        """Return a room's state event as the homeserver sends it.

        mautrix's own reading gives typed contents, which drop or refuse what they do not know.
        """
        event: dict[str, Any] = await self._client.api.request(
            Method.GET,
            Path.v3.rooms[room_id].state[event_type][state_key],
            query_params={"format": "event"},
            metrics_method="getStateEvent",
        )
        # A homeserver that does not know `format` sends the bare content.
        return event if isinstance(event.get("content"), dict) else {"content": event}

    def _warn_once(self, room_id: str, cause: str) -> None:
        if (room_id, cause) not in self._warned:
            self._warned.add((room_id, cause))
            self._log.warning("No memory in %s: %s", room_id, cause)


def _predecessor(create_event: Mapping[str, Any]) -> str | None:
    """Return the room that a room replaces."""
    predecessor = create_event["content"].get("predecessor")
    room_id = predecessor.get("room_id") if isinstance(predecessor, dict) else None
    return room_id if isinstance(room_id, str) and room_id else None


def mentioned_users(content: Any) -> frozenset[str]:  # noqa: ANN401 - whatever was sent
    """Return the users in a message's `m.mentions`."""
    mentions = content.get("m.mentions", None)
    user_ids = mentions.get("user_ids") if isinstance(mentions, dict) else None
    if not isinstance(user_ids, list):
        return frozenset()
    return frozenset(user_id for user_id in user_ids if isinstance(user_id, str))
