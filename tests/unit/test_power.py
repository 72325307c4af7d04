"""Who has the power to send a state event."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmbot.power import may_send_state

SETTINGS = "dev.llmbot.settings"
CREATOR = "@creator:example.org"
SECOND = "@second:example.org"
MODERATOR = "@moderator:example.org"
MEMBER = "@member:example.org"

# What a homeserver writes into a new room.
USUAL: dict[str, Any] = {
    "users": {CREATOR: 100, MODERATOR: 50},
    "users_default": 0,
    "events": {"m.room.name": 50, "m.room.power_levels": 100},
    "state_default": 50,
    "events_default": 0,
}


def create_event(version: object = "10", **content: object) -> dict[str, Any]:
    return {"sender": CREATOR, "content": {"room_version": version, **content}}


@pytest.mark.parametrize(
    ("changes", "user_id", "expected"),
    [
        ({}, CREATOR, True),
        ({}, MODERATOR, True),
        ({}, MEMBER, False),
        ({"events": {SETTINGS: 0}}, MEMBER, True),
        ({"events": {SETTINGS: -1}, "users_default": -1}, MEMBER, True),
        ({"events": {SETTINGS: 100}}, MODERATOR, False),
        ({"events": {SETTINGS: 100}}, CREATOR, True),
        ({"events": {SETTINGS: 101}}, CREATOR, False),
        ({"events": {"m.room.message": 0}}, MEMBER, False),
        ({"state_default": 0}, MEMBER, True),
        ({"state_default": 51}, MODERATOR, False),
        ({"users_default": 50}, MEMBER, True),
        ({"users": {MEMBER: 49}}, MEMBER, False),
        ({"users": {MEMBER: 50}}, MEMBER, True),
        ({"users": {}, "users_default": 50}, CREATOR, True),
        ({"users": {CREATOR: 0}, "users_default": 50}, CREATOR, False),
        ({"events_default": 100}, MODERATOR, True),
        # Rooms before version 10 may hold levels as texts.
        ({"users": {MEMBER: "50"}}, MEMBER, True),
        ({"users": {MEMBER: " 49 "}}, MEMBER, False),
        ({"events": {SETTINGS: "0"}}, MEMBER, True),
        # What is no level counts as if it were not there.
        ({"users": {MEMBER: "high"}}, MEMBER, False),
        ({"users": {MEMBER: True}}, MEMBER, False),
        ({"users": {MEMBER: None}}, MEMBER, False),
        ({"users": {MEMBER: [100]}}, MEMBER, False),
        ({"users": [MEMBER]}, MEMBER, False),
        ({"events": None}, MEMBER, False),
        ({"events": {SETTINGS: "low"}}, MEMBER, False),
        ({"state_default": "none"}, MEMBER, False),
    ],
)
@pytest.mark.parametrize("version", ["1", "9", "10", "11", "org.matrix.msc3757.10", None, 12])
def test_power_levels(
    version: object, changes: dict[str, Any], user_id: str, expected: bool
) -> None:
    levels = {**USUAL, **changes}
    assert may_send_state(user_id, SETTINGS, create_event(version), levels) is expected


@pytest.mark.parametrize(
    ("user_id", "expected"),
    [(CREATOR, True), (SECOND, True), (MODERATOR, True), (MEMBER, False)],
)
@pytest.mark.parametrize("version", ["12", "13", "100"])
def test_creators_of_newer_rooms_have_power_without_end(
    version: str, user_id: str, expected: bool
) -> None:
    created = create_event(version, additional_creators=[SECOND])
    levels = {**USUAL, "users": {MODERATOR: 50}}
    assert may_send_state(user_id, SETTINGS, created, levels) is expected
    locked = {**levels, "events": {SETTINGS: 1000}}
    assert may_send_state(user_id, SETTINGS, created, locked) is (user_id in {CREATOR, SECOND})


def test_additional_creators_of_older_rooms_mean_nothing() -> None:
    created = create_event("11", additional_creators=[MEMBER])
    assert not may_send_state(MEMBER, SETTINGS, created, USUAL)


@pytest.mark.parametrize("odd", [None, MEMBER, {MEMBER: 1}, 5])
def test_odd_additional_creators_give_nobody_power(odd: object) -> None:
    created = create_event("12", additional_creators=odd)
    assert not may_send_state(MEMBER, SETTINGS, created, USUAL)
    assert may_send_state(CREATOR, SETTINGS, created, {})


@pytest.mark.parametrize(
    "created",
    [create_event("10", creator=CREATOR), create_event("11"), create_event("12")],
    ids=["creator in the content", "creator is the sender", "version 12"],
)
def test_without_power_levels_the_creator_alone_decides(created: dict[str, Any]) -> None:
    assert may_send_state(CREATOR, SETTINGS, created, None)
    assert not may_send_state(MEMBER, SETTINGS, created, None)


def test_where_the_creation_cannot_be_read_in_full_the_levels_still_count() -> None:
    assert may_send_state(MODERATOR, SETTINGS, {"content": {"room_version": "12"}}, USUAL)
    assert not may_send_state(MEMBER, SETTINGS, {}, None)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=4), st.just(MEMBER)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.text(max_size=4), st.just(MEMBER)), inner, max_size=3),
    ),
    max_leaves=8,
)


@given(JSON, JSON, JSON, JSON, JSON)
def test_no_content_raises(
    version: object, creators: object, users: object, events: object, default: object
) -> None:
    created = create_event(version, additional_creators=creators)
    levels = {"users": users, "events": events, "state_default": default}
    assert may_send_state(MEMBER, SETTINGS, created, levels) in {True, False}
