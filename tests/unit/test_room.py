"""What a room decides, over a homeserver that is a table."""

from __future__ import annotations

import itertools
import logging
import types
from collections import Counter
from typing import Any

import pytest
from mautrix.errors import MForbidden, MLimitExceeded, MNotFound
from mautrix.types import Membership

from llmbot.room import Rooms, SwitchOutcome, mentioned_users

BOT = "@bot:example.org"
ADA = "@ada:example.org"
BOB = "@bob:example.org"
SETTINGS = "dev.llmbot.settings"
ROOM = "!room:example.org"
OLD = "!old:example.org"
OLDEST = "!oldest:example.org"


class Homeserver:
    """State, members and messages of rooms; stands in for maubot's client."""

    def __init__(self) -> None:
        self.mxid = BOT
        self.api = self
        self.state: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.members: dict[str, set[str]] = {}
        self.messages: dict[str, tuple[str, dict[str, Any]]] = {}
        self.unreadable: set[str] = set()
        self.down = False
        self.bot_may_send = True
        self.requests: Counter[str] = Counter()

    def make_room(self, room_id: str, *, replaces: str | None = None, version: str = "10") -> None:
        content: dict[str, Any] = {"room_version": version}
        if replaces:
            content["predecessor"] = {"room_id": replaces, "event_id": "$tombstone"}
        self.set_state(room_id, "m.room.create", content)
        self.set_state(room_id, "m.room.power_levels", {"users": {ADA: 50}})
        self.members[room_id] = {BOT, ADA}

    def set_state(
        self, room_id: str, event_type: str, content: dict[str, Any], state_key: str = ""
    ) -> None:
        self.state[room_id, event_type, state_key] = {"sender": ADA, "content": content}

    def _ask(self, kind: str) -> None:
        self.requests[kind] += 1
        if self.down:
            raise ConnectionError

    async def request(
        self, _method: object, path: object, *, query_params: object, metrics_method: str
    ) -> dict[str, Any]:
        self._ask("state")
        assert query_params == {"format": "event"}
        assert metrics_method
        place = str(path).removeprefix("_matrix/client/v3/rooms/").replace("%21", "!")
        room_id, _, event_type, state_key = place.replace("%3A", ":").split("/")
        if room_id in self.unreadable:
            raise MForbidden(403, "not in the room")
        try:
            return self.state[room_id, event_type, state_key.replace("%40", "@")]
        except KeyError:
            raise MNotFound(404, "no such event") from None

    async def send_state_event(
        self, room_id: str, event_type: object, content: dict[str, Any], state_key: str
    ) -> None:
        self._ask("send")
        if not self.bot_may_send:
            raise MForbidden(403, "no power")
        self.set_state(room_id, str(event_type), content, state_key)

    async def get_joined_members(self, room_id: str) -> dict[str, None]:
        self._ask("members")
        return dict.fromkeys(self.members[room_id])

    async def get_event(self, _room_id: str, event_id: str) -> object:
        self._ask("event")
        sender, content = self.messages[event_id]
        return types.SimpleNamespace(sender=sender, content=content)


@pytest.fixture
def homeserver() -> Homeserver:
    made = Homeserver()
    made.make_room(ROOM)
    return made


@pytest.fixture
def rooms(homeserver: Homeserver) -> Rooms:
    return Rooms(homeserver, logging.getLogger("test_room"))


def event(room_id: str = ROOM, **values: object) -> types.SimpleNamespace:
    return types.SimpleNamespace(room_id=room_id, **values)


_event_numbers = itertools.count(1)


def member_event(
    user_id: str, membership: Membership, room_id: str = ROOM
) -> types.SimpleNamespace:
    content = types.SimpleNamespace(membership=membership)
    event_id = f"$member{next(_event_numbers)}"
    return event(room_id, event_id=event_id, state_key=user_id, content=content)


# --- the memory's switch (M2) ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, True),
        ({}, True),
        ({"other": 1}, True),
        ({"memoryEnabled": True}, True),
        ({"memoryEnabled": False}, False),
        ({"memoryEnabled": None}, False),
        ({"memoryEnabled": 1}, False),
        ({"memoryEnabled": 0}, False),
        ({"memoryEnabled": "true"}, False),
        ({"memoryEnabled": ""}, False),
        ({"memoryEnabled": [True]}, False),
        ({"memoryEnabled": {}}, False),
        ({"memoryEnabled": False, "self": 1, "content": {}}, False),
    ],
)
async def test_m2_the_switch(
    content: dict[str, Any] | None, expected: bool, homeserver: Homeserver, rooms: Rooms
) -> None:
    if content is not None:
        homeserver.set_state(ROOM, SETTINGS, content)
    assert await rooms.memory_enabled(ROOM) is expected


async def test_the_switch_is_read_once_and_again_after_each_change(
    homeserver: Homeserver, rooms: Rooms
) -> None:
    homeserver.set_state(ROOM, SETTINGS, {"memoryEnabled": False})
    for _ in range(3):
        assert not await rooms.memory_enabled(ROOM)
    assert homeserver.requests["state"] == 1
    homeserver.set_state(ROOM, SETTINGS, {"memoryEnabled": True})
    rooms.on_settings_event(event())
    assert await rooms.memory_enabled(ROOM)
    homeserver.set_state(ROOM, SETTINGS, {"memoryEnabled": "yes"})
    rooms.on_settings_event(event())
    assert not await rooms.memory_enabled(ROOM)
    homeserver.set_state(ROOM, SETTINGS, {})
    rooms.on_redaction(event())
    assert await rooms.memory_enabled(ROOM)


async def test_m2_what_cannot_be_read_is_off_for_that_turn_only(
    homeserver: Homeserver, rooms: Rooms, caplog: pytest.LogCaptureFixture
) -> None:
    homeserver.down = True
    assert not await rooms.memory_enabled(ROOM)
    assert not await rooms.memory_enabled(ROOM)
    homeserver.down = False
    assert await rooms.memory_enabled(ROOM)
    assert len(caplog.records) == 1


async def test_a_change_while_the_switch_is_being_read_is_not_missed(
    homeserver: Homeserver, rooms: Rooms, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = homeserver.request

    async def overtaken(method: object, path: object, **more: str) -> dict[str, Any]:
        answer = await request(method, path, **more)
        homeserver.set_state(ROOM, SETTINGS, {"memoryEnabled": True})
        rooms.on_settings_event(event())
        return answer

    homeserver.set_state(ROOM, SETTINGS, {"memoryEnabled": False})
    with monkeypatch.context() as patch:
        patch.setattr(homeserver, "request", overtaken)
        assert not await rooms.memory_enabled(ROOM)
    assert await rooms.memory_enabled(ROOM)


async def test_a_room_that_the_bot_left_and_joined_again_is_read_anew(
    homeserver: Homeserver, rooms: Rooms
) -> None:
    assert await rooms.memory_enabled(ROOM)
    assert await rooms.own_name(ROOM) == ""
    rooms.on_member_event(member_event(BOT, Membership.LEAVE))
    homeserver.set_state(ROOM, SETTINGS, {"memoryEnabled": False})
    homeserver.set_state(ROOM, "m.room.member", {"displayname": "Bot"}, BOT)
    assert not await rooms.memory_enabled(ROOM)
    assert await rooms.own_name(ROOM) == "Bot"


# --- room upgrades -----------------------------------------------------------------------------


@pytest.mark.parametrize("inherited", [True, False])
async def test_a_replacement_inherits_until_it_sets_its_own(
    inherited: bool, homeserver: Homeserver, rooms: Rooms
) -> None:
    homeserver.make_room(OLDEST)
    homeserver.make_room(OLD, replaces=OLDEST)
    homeserver.make_room(ROOM, replaces=OLD)
    homeserver.set_state(OLDEST, SETTINGS, {"memoryEnabled": inherited})
    homeserver.set_state(OLD, SETTINGS, {"something": "else"})
    assert await rooms.memory_enabled(ROOM) is inherited
    # The room that it does as changes its mind.
    homeserver.set_state(OLD, SETTINGS, {"memoryEnabled": not inherited})
    rooms.on_settings_event(event(OLD))
    assert await rooms.memory_enabled(ROOM) is not inherited
    homeserver.set_state(ROOM, SETTINGS, {"memoryEnabled": inherited})
    rooms.on_settings_event(event())
    assert await rooms.memory_enabled(ROOM) is inherited
    homeserver.requests.clear()
    rooms.on_settings_event(event(OLD))
    await rooms.memory_enabled(ROOM)
    assert homeserver.requests["state"] == 0


async def test_nothing_to_inherit_is_on(homeserver: Homeserver, rooms: Rooms) -> None:
    homeserver.make_room(OLD)
    homeserver.make_room(ROOM, replaces=OLD)
    assert await rooms.memory_enabled(ROOM)


@pytest.mark.parametrize("missing", ["hidden", "unknown"])
async def test_a_predecessor_that_cannot_be_read_means_off_and_is_named_once(
    missing: str, homeserver: Homeserver, rooms: Rooms, caplog: pytest.LogCaptureFixture
) -> None:
    homeserver.make_room(ROOM, replaces=OLD)
    if missing == "hidden":
        homeserver.unreadable.add(OLD)
    assert not await rooms.memory_enabled(ROOM)
    rooms.on_redaction(event())
    assert not await rooms.memory_enabled(ROOM)
    (record,) = caplog.records
    assert OLD in record.getMessage()
    homeserver.set_state(ROOM, SETTINGS, {"memoryEnabled": True})
    rooms.on_settings_event(event())
    assert await rooms.memory_enabled(ROOM)


async def test_a_predecessor_that_is_away_for_a_moment_is_asked_again(
    homeserver: Homeserver, rooms: Rooms, monkeypatch: pytest.MonkeyPatch
) -> None:
    homeserver.make_room(ROOM, replaces=OLD)
    homeserver.make_room(OLD)
    request = homeserver.request

    async def limited(method: object, path: object, **more: str) -> dict[str, Any]:
        if "old" in str(path):
            raise MLimitExceeded(429, "slow down")
        return await request(method, path, **more)

    with monkeypatch.context() as patch:
        patch.setattr(homeserver, "request", limited)
        assert not await rooms.memory_enabled(ROOM)
    assert await rooms.memory_enabled(ROOM)


@pytest.mark.parametrize("predecessor", [OLD, ROOM, None, 5, [], {"room_id": 5}, {"room_id": ""}])
async def test_odd_predecessors(predecessor: object, homeserver: Homeserver, rooms: Rooms) -> None:
    content = {"room_version": "10", "predecessor": predecessor}
    homeserver.set_state(ROOM, "m.room.create", content)
    assert await rooms.memory_enabled(ROOM)


async def test_rooms_that_replace_each_other_are_off(homeserver: Homeserver, rooms: Rooms) -> None:
    homeserver.make_room(OLD, replaces=ROOM)
    homeserver.make_room(ROOM, replaces=OLD)
    assert not await rooms.memory_enabled(ROOM)
    requests = homeserver.requests["state"]
    assert not await rooms.memory_enabled(ROOM)
    assert homeserver.requests["state"] == requests < 100


# --- !memories room ----------------------------------------------------------------------------


async def test_who_has_the_power_switches_and_other_keys_stay(
    homeserver: Homeserver, rooms: Rooms
) -> None:
    homeserver.set_state(ROOM, SETTINGS, {"memoryEnabled": True, "other": {"a": [1]}})
    assert await rooms.memory_enabled(ROOM)
    assert await rooms.set_memory_enabled(ROOM, ADA, enabled=False) is SwitchOutcome.DONE
    expected = {"memoryEnabled": False, "other": {"a": [1]}}
    assert homeserver.state[ROOM, SETTINGS, ""]["content"] == expected
    assert not await rooms.memory_enabled(ROOM)
    assert await rooms.set_memory_enabled(ROOM, ADA, enabled=True) is SwitchOutcome.DONE
    assert await rooms.memory_enabled(ROOM)


async def test_who_lacks_the_power_changes_nothing(homeserver: Homeserver, rooms: Rooms) -> None:
    outcome = await rooms.set_memory_enabled(ROOM, BOB, enabled=False)
    assert outcome is SwitchOutcome.SENDER_LACKS_POWER
    assert homeserver.requests["send"] == 0
    homeserver.bot_may_send = False
    outcome = await rooms.set_memory_enabled(ROOM, BOB, enabled=False)
    assert outcome is SwitchOutcome.SENDER_LACKS_POWER


async def test_the_bot_may_lack_the_power(homeserver: Homeserver, rooms: Rooms) -> None:
    homeserver.bot_may_send = False
    outcome = await rooms.set_memory_enabled(ROOM, ADA, enabled=False)
    assert outcome is SwitchOutcome.BOT_LACKS_POWER
    assert await rooms.memory_enabled(ROOM)


async def test_the_creator_of_a_room_of_version_12_has_the_power(
    homeserver: Homeserver, rooms: Rooms
) -> None:
    homeserver.make_room(ROOM, version="12")
    homeserver.set_state(ROOM, "m.room.power_levels", {"events": {SETTINGS: 100}})
    assert await rooms.set_memory_enabled(ROOM, ADA, enabled=False) is SwitchOutcome.DONE
    del homeserver.state[ROOM, "m.room.power_levels", ""]
    assert await rooms.set_memory_enabled(ROOM, ADA, enabled=True) is SwitchOutcome.DONE
    outcome = await rooms.set_memory_enabled(ROOM, BOB, enabled=False)
    assert outcome is SwitchOutcome.SENDER_LACKS_POWER


# --- who is in a room --------------------------------------------------------------------------


async def test_a_chat_is_direct_while_two_are_in_it(homeserver: Homeserver, rooms: Rooms) -> None:
    async def direct_after(user_id: str, membership: Membership) -> bool:
        if membership is Membership.JOIN:
            homeserver.members[ROOM].add(user_id)
        else:
            homeserver.members[ROOM].discard(user_id)
        rooms.on_member_event(member_event(user_id, membership))
        return await rooms.is_direct(ROOM)

    assert await rooms.is_direct(ROOM)
    assert await direct_after(BOB, Membership.INVITE)
    assert not await direct_after(BOB, Membership.JOIN)
    assert await direct_after(BOB, Membership.LEAVE)
    assert not await direct_after(BOB, Membership.JOIN)
    assert await direct_after(BOB, Membership.BAN)
    assert not await direct_after(ADA, Membership.LEAVE)
    assert await direct_after(BOB, Membership.JOIN)


async def test_members_are_counted_once_and_a_large_room_not_for_each_who_comes_or_goes(
    homeserver: Homeserver, rooms: Rooms
) -> None:
    for _ in range(3):
        assert await rooms.is_direct(ROOM)
    assert homeserver.requests["members"] == 1
    crowd = [f"@user{number}:example.org" for number in range(100)]
    homeserver.members[ROOM].update(crowd)
    for user_id in crowd:
        rooms.on_member_event(member_event(user_id, Membership.JOIN))
    homeserver.requests.clear()
    assert not await rooms.is_direct(ROOM)
    for user_id in crowd:
        homeserver.members[ROOM].discard(user_id)
        rooms.on_member_event(member_event(user_id, Membership.LEAVE))
        assert await rooms.is_direct(ROOM) is (user_id == crowd[-1])
    assert homeserver.requests["members"] <= 3


async def test_member_events_that_come_again_beside_each_message_cost_no_request(
    homeserver: Homeserver, rooms: Rooms
) -> None:
    async def read_all() -> None:
        assert await rooms.is_direct(ROOM)
        assert await rooms.memory_enabled(ROOM)
        await rooms.own_name(ROOM)

    known = [member_event(user_id, Membership.JOIN) for user_id in (ADA, BOT)]
    for one in known:
        rooms.on_member_event(one)
    await read_all()
    homeserver.requests.clear()
    for one in known * 3:
        rooms.on_member_event(one)
        await read_all()
    assert not homeserver.requests
    # Each new event counts, also one that goes back to what was there before.
    for one in (member_event(BOT, Membership.JOIN), known[1]):
        rooms.on_member_event(one)
        await read_all()
        assert homeserver.requests["members"] == 1
        homeserver.requests.clear()


async def test_a_chat_that_cannot_be_counted_is_not_direct(
    homeserver: Homeserver, rooms: Rooms
) -> None:
    homeserver.down = True
    assert not await rooms.is_direct(ROOM)
    homeserver.down = False
    assert await rooms.is_direct(ROOM)


@pytest.mark.parametrize(("name", "expected"), [("LLM Bot", "LLM Bot"), (None, ""), (5, "")])
async def test_the_bots_name_in_a_room(
    name: object, expected: str, homeserver: Homeserver, rooms: Rooms
) -> None:
    homeserver.set_state(ROOM, "m.room.member", {"displayname": name}, BOT)
    assert await rooms.own_name(ROOM) == expected
    homeserver.set_state(ROOM, "m.room.member", {"displayname": "Renamed"}, BOT)
    assert await rooms.own_name(ROOM) == expected
    rooms.on_member_event(member_event(BOT, Membership.JOIN))
    assert await rooms.own_name(ROOM) == "Renamed"
    homeserver.down = True
    rooms.on_member_event(member_event(BOT, Membership.JOIN))
    assert await rooms.own_name(ROOM) == ""


# --- the bot's own messages --------------------------------------------------------------------


async def test_own_messages_are_known_by_sync_or_read(
    homeserver: Homeserver, rooms: Rooms
) -> None:
    to_ada = {"m.mentions": {"user_ids": [ADA]}}
    homeserver.messages = {
        "$own": (BOT, to_ada),
        "$ada": (ADA, {"m.mentions": {"user_ids": [BOT]}}),
    }
    rooms.note_own_message("$noted", frozenset({BOB}))
    for _ in range(2):
        assert await rooms.is_own_message(ROOM, "$noted")
        assert await rooms.is_own_message(ROOM, "$own")
        assert not await rooms.is_own_message(ROOM, "$ada")
    assert homeserver.requests["event"] == 2
    assert await rooms.is_answer_to(ROOM, "$own", ADA)
    assert not await rooms.is_answer_to(ROOM, "$own", BOB)
    assert await rooms.is_answer_to(ROOM, "$noted", BOB)
    assert not await rooms.is_answer_to(ROOM, "$ada", BOT)


async def test_a_message_that_cannot_be_read_is_nobodys(
    homeserver: Homeserver, rooms: Rooms
) -> None:
    assert not await rooms.is_own_message(ROOM, "$unknown")
    homeserver.messages["$unknown"] = (BOT, {})
    assert await rooms.is_own_message(ROOM, "$unknown")


async def test_old_own_messages_are_read_again(homeserver: Homeserver, rooms: Rooms) -> None:
    for number in range(5000):
        rooms.note_own_message(f"${number}", frozenset())
    assert await rooms.is_own_message(ROOM, "$4999")
    assert homeserver.requests["event"] == 0
    assert not await rooms.is_own_message(ROOM, "$0")
    assert homeserver.requests["event"] == 1


@pytest.mark.parametrize(
    ("mentions", "expected"),
    [
        ({"user_ids": [ADA, BOB]}, {ADA, BOB}),
        ({"user_ids": [ADA, 5, None, {}]}, {ADA}),
        ({"user_ids": ADA}, set()),
        ({"user_ids": None}, set()),
        ({"room": True}, set()),
        ({}, set()),
        ([ADA], set()),
        (None, set()),
    ],
)
def test_mentioned_users(mentions: object, expected: set[str]) -> None:
    assert mentioned_users({"m.mentions": mentions}) == expected
    assert mentioned_users({}) == frozenset()
