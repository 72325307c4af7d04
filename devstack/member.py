"""A person in a Matrix room, for the demo and the tests."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
from mautrix.client import ClientAPI
from mautrix.errors import MatrixConnectionError, MatrixResponseError
from mautrix.types import EventID, EventType, FilterID, RoomID, SyncToken, UserID

from devstack.process import POLL_SECONDS, StackError
from devstack.synapse import TIMELINE_LIMIT, Account

SYNC_FILTER = FilterID(f'{{"room": {{"timeline": {{"limit": {TIMELINE_LIMIT}}}}}}}')
SYNC_MILLISECONDS = 30_000


@dataclass(frozen=True)
class SeenEvent:
    """An event as the homeserver sent it, nothing left out or filled in."""

    room_id: str
    event_id: str
    sender: str
    type: str
    content: Mapping[str, Any]
    state_key: str | None
    raw: Mapping[str, Any]

    @property
    def body(self) -> str:
        """The text of a message; empty where there is none."""
        return str(self.content.get("body", ""))

    @property
    def relation(self) -> Mapping[str, Any]:
        """What `m.relates_to` holds; empty where there is none."""
        relation = self.content.get("m.relates_to")
        return relation if isinstance(relation, Mapping) else {}

    @property
    def replies_to(self) -> str | None:
        """The id of the event that this one is a reply to."""
        return (self.relation.get("m.in_reply_to") or {}).get("event_id")

    @property
    def is_edit(self) -> bool:
        """Whether this event replaces an earlier one."""
        return self.relation.get("rel_type") == "m.replace"


@dataclass(frozen=True)
class TypingNotice:
    """Who was typing in a room from one moment on; `position` orders it among `events`."""

    room_id: str
    user_ids: tuple[str, ...]
    position: int


class Member:
    """A logged-in user that syncs all the time and keeps every event seen.

    `client` is mautrix's own client for whatever has no shortcut here.

    Args:
        homeserver_url: The homeserver's base address.
        account: Who this is.
    """

    def __init__(self, homeserver_url: str, account: Account) -> None:
        self.account = account
        self.user_id = account.user_id
        self.events: list[SeenEvent] = []
        self.invites: set[str] = set()
        self.typing: list[TypingNotice] = []
        self._http = aiohttp.ClientSession()
        self.client = ClientAPI(
            UserID(account.user_id),
            base_url=homeserver_url,
            token=account.access_token,
            client_session=self._http,
        )
        self._news = asyncio.Condition()
        self._sync = asyncio.create_task(self._sync_forever())

    async def close(self) -> None:
        """Stop syncing and close the connections."""
        self._sync.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._sync
        await self._http.close()

    async def _sync_forever(self) -> None:
        position: SyncToken | None = None
        while True:
            try:
                data = await self.client.sync(position, SYNC_MILLISECONDS, SYNC_FILTER)
            except (MatrixConnectionError, MatrixResponseError, asyncio.TimeoutError):
                # The homeserver is down or restarting: tests do that on purpose.
                await asyncio.sleep(POLL_SECONDS)
                continue
            assert isinstance(data, dict)
            position = data["next_batch"]
            async with self._news:
                self._take(data.get("rooms", {}))
                self._news.notify_all()

    def _take(self, rooms: Mapping[str, Any]) -> None:
        self.invites |= set(rooms.get("invite", {}))
        for room_id, room in rooms.get("join", {}).items():
            self.invites.discard(room_id)
            for raw in room["timeline"]["events"]:
                self.events.append(
                    SeenEvent(
                        room_id=room_id,
                        event_id=raw["event_id"],
                        sender=raw["sender"],
                        type=raw["type"],
                        content=raw.get("content", {}),
                        state_key=raw.get("state_key"),
                        raw=raw,
                    )
                )
            for raw in room["ephemeral"]["events"]:
                if raw["type"] == "m.typing":
                    users = tuple(raw["content"]["user_ids"])
                    self.typing.append(TypingNotice(room_id, users, len(self.events)))

    async def create_room(
        self,
        *invitees: str,
        name: str | None = None,
        version: str | None = None,
        is_direct: bool = False,
        initial_state: Iterable[Mapping[str, Any]] = (),
        power_levels: Mapping[str, Any] | None = None,
    ) -> str:
        """Make a private, unencrypted room and return its id.

        Args:
            invitees: User ids to invite.
            name: The room's name.
            version: The room version; None for the homeserver's default.
            is_direct: Whether this is a direct chat with the invitees.
            initial_state: Further state events, as `type`, `state_key` and `content`.
            power_levels: What to change in the default power levels.
        """
        room_id = await self.client.create_room(
            name=name,
            is_direct=is_direct,
            invitees=[UserID(user_id) for user_id in invitees],
            room_version=version,
            initial_state=[dict(event) for event in initial_state],
            power_level_override=dict(power_levels) if power_levels else None,
        )
        return str(room_id)

    async def join(self, room_id: str) -> None:
        """Join a room that this member was invited to."""
        await self.client.join_room_by_id(RoomID(room_id))

    async def say(self, room_id: str, text: str, **content: object) -> str:
        """Send a text message and return its event id.

        Args:
            room_id: Where.
            text: The body.
            content: Further or other content; see `send` for keys that are no Python names.
        """
        return await self.send(room_id, {"msgtype": "m.text", "body": text, **content})

    async def send(
        self, room_id: str, content: Mapping[str, Any], event_type: str = "m.room.message"
    ) -> str:
        """Send any message event as it is and return its event id."""
        kind = EventType.find(event_type, EventType.Class.MESSAGE)
        return str(await self.client.send_message_event(RoomID(room_id), kind, dict(content)))

    async def send_state(
        self, room_id: str, event_type: str, content: Mapping[str, Any], state_key: str = ""
    ) -> str:
        """Send any state event as it is and return its event id."""
        kind = EventType.find(event_type, EventType.Class.STATE)
        sent = self.client.send_state_event(RoomID(room_id), kind, dict(content), state_key)
        return str(await sent)

    async def edit(self, room_id: str, event_id: str, text: str) -> str:
        """Replace the text of an own message and return the new event's id."""
        new = {"msgtype": "m.text", "body": text}
        relation = {"rel_type": "m.replace", "event_id": event_id}
        content = {**new, "body": f"* {text}", "m.new_content": new, "m.relates_to": relation}
        return await self.send(room_id, content)

    async def redact(self, room_id: str, event_id: str) -> str:
        """Remove an event's content and return the redaction's event id."""
        return str(await self.client.redact(RoomID(room_id), EventID(event_id)))

    async def wait_until(
        self, condition: Callable[[], bool], seconds: float = 30.0, goal: str = "a condition"
    ) -> None:
        """Wait until a condition over what was seen holds; it is tried after every sync.

        Raises:
            StackError: It did not come to hold in time.
        """

        async def wait() -> None:
            async with self._news:
                await self._news.wait_for(condition)

        try:
            await asyncio.wait_for(wait(), seconds)
        except asyncio.TimeoutError:
            raise StackError(f"{self.user_id} waited {seconds:g} s for {goal}") from None

    async def wait_for(
        self,
        predicate: Callable[[SeenEvent], bool],
        seconds: float = 30.0,
        goal: str = "an event",
    ) -> SeenEvent:
        """Return the first event seen, now or earlier, that a predicate accepts.

        Raises:
            StackError: None came in time.
        """

        def matching() -> SeenEvent | None:
            return next(filter(predicate, self.events), None)

        await self.wait_until(lambda: matching() is not None, seconds, goal)
        found = matching()
        assert found is not None
        return found

    async def wait_for_reply(self, event_id: str, seconds: float = 30.0) -> SeenEvent:
        """Return the first message from somebody else that is a reply to this event.

        Raises:
            StackError: None came in time.
        """
        return await self.wait_for(
            lambda event: self._is_reply(event, event_id), seconds, f"a reply to {event_id}"
        )

    def replies(self, event_id: str) -> list[SeenEvent]:
        """Return all replies by others to an event that were seen so far, oldest first."""
        return [event for event in self.events if self._is_reply(event, event_id)]

    def _is_reply(self, event: SeenEvent, event_id: str) -> bool:
        return event.replies_to == event_id and event.sender != self.user_id and not event.is_edit

    async def wait_for_member(
        self, room_id: str, user_id: str, membership: str = "join", seconds: float = 30.0
    ) -> None:
        """Wait until somebody's membership in a room has had this value.

        Raises:
            StackError: It did not in time.
        """
        await self.wait_for(
            lambda event: (
                event.room_id == room_id
                and event.type == "m.room.member"
                and event.state_key == user_id
                and event.content.get("membership") == membership
            ),
            seconds,
            f"{user_id} to {membership} {room_id}",
        )
