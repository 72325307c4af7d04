"""The conversation so far: whose it is, how much of it counts and for how long."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmbot.conversation import (
    MAX_CONVERSATIONS,
    ContextLimits,
    ConversationKey,
    Conversations,
    Exchanged,
    as_messages,
)

KEY = ConversationKey("!room:example.org", None, "@ada:example.org")
LIMITS = ContextLimits(max_messages=20, max_characters=40_000, timeout_minutes=5)


def said(number: int, size: int = 10) -> Exchanged:
    prompt = f"prompt {number}"
    return Exchanged(f"$event{number}", prompt, f"words {number}", "x" * (size - len(prompt)))


class Time:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def conversations(time: Time) -> Conversations:
    return Conversations(time)


def limits(**changes: int) -> ContextLimits:
    return dataclasses.replace(LIMITS, **changes)


def test_what_was_said_is_remembered_in_order(conversations: Conversations) -> None:
    assert conversations.so_far(KEY, LIMITS) == []
    for number in range(3):
        conversations.add(KEY, said(number), LIMITS)
    assert conversations.so_far(KEY, LIMITS) == [said(0), said(1), said(2)]


@pytest.mark.parametrize(
    "other",
    [
        KEY._replace(room_id="!other:example.org"),
        KEY._replace(thread_id="$thread"),
        KEY._replace(user_id="@bob:example.org"),
    ],
)
def test_each_room_thread_and_person_has_its_own(
    conversations: Conversations, other: ConversationKey
) -> None:
    conversations.add(KEY, said(1), LIMITS)
    conversations.add(other, said(2), LIMITS)
    assert conversations.so_far(KEY, LIMITS) == [said(1)]
    assert conversations.forget(other)
    assert conversations.so_far(other, LIMITS) == []
    assert conversations.so_far(KEY, LIMITS) == [said(1)]


@pytest.mark.parametrize(("most", "kept"), [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (20, 5)])
def test_only_the_last_messages_count(conversations: Conversations, most: int, kept: int) -> None:
    for number in range(5):
        conversations.add(KEY, said(number), LIMITS)
    everything = [said(number) for number in range(5)]
    assert conversations.so_far(KEY, limits(max_messages=most)) == everything[5 - kept :]
    conversations.add(KEY, said(5), limits(max_messages=most))
    # What a limit made it forget does not come back with a higher one.
    assert len(conversations.so_far(KEY, LIMITS)) == min(kept + 1, most // 2)


@pytest.mark.parametrize(
    ("most", "kept"), [(0, 0), (99, 0), (100, 1), (199, 1), (200, 2), (10_000, 5)]
)
def test_only_the_last_characters_count(
    conversations: Conversations, most: int, kept: int
) -> None:
    everything = [said(number, size=100) for number in range(5)]
    for exchanged in everything:
        conversations.add(KEY, exchanged, LIMITS)
    assert conversations.so_far(KEY, limits(max_characters=most)) == everything[5 - kept :]


def test_a_later_short_message_does_not_bring_back_what_a_long_one_hid(
    conversations: Conversations,
) -> None:
    narrow = limits(max_characters=50)
    conversations.add(KEY, said(1), narrow)
    conversations.add(KEY, said(2, size=100), narrow)
    conversations.add(KEY, said(3), narrow)
    assert conversations.so_far(KEY, narrow) == [said(3)]


def test_silence_ends_a_conversation(conversations: Conversations, time: Time) -> None:
    conversations.add(KEY, said(1), LIMITS)
    time.seconds += 300
    assert conversations.so_far(KEY, LIMITS) == [said(1)]
    conversations.add(KEY, said(2), LIMITS)
    time.seconds += 300
    assert conversations.so_far(KEY, LIMITS) == [said(1), said(2)]
    time.seconds += 1
    conversations.add(KEY, said(3), LIMITS)
    assert conversations.so_far(KEY, LIMITS) == [said(3)]
    time.seconds += 301
    assert conversations.so_far(KEY, LIMITS) == []
    # A longer time-out does not bring it back.
    assert conversations.so_far(KEY, limits(timeout_minutes=60)) == []


def test_a_conversation_is_forgotten_once(conversations: Conversations) -> None:
    assert not conversations.forget(KEY)
    conversations.add(KEY, said(1), LIMITS)
    assert conversations.forget(KEY)
    assert not conversations.forget(KEY)
    assert conversations.so_far(KEY, LIMITS) == []


def test_a_message_that_was_taken_back_is_forgotten(conversations: Conversations) -> None:
    thread = KEY._replace(thread_id="$thread")
    elsewhere = KEY._replace(room_id="!other:example.org")
    for key in (KEY, thread, elsewhere):
        conversations.add(key, said(1), LIMITS)
        conversations.add(key, said(2), LIMITS)
    conversations.redact(KEY.room_id, "$event1")
    conversations.redact(KEY.room_id, "$unknown")
    assert conversations.so_far(KEY, LIMITS) == [said(2)]
    assert conversations.so_far(thread, LIMITS) == [said(2)]
    assert conversations.so_far(elsewhere, LIMITS) == [said(1), said(2)]


def test_the_longest_silent_conversation_makes_room(conversations: Conversations) -> None:
    keys = [KEY._replace(user_id=f"@user{number}:example.org") for number in range(2001)]
    for key in keys[:-1]:
        conversations.add(key, said(1), LIMITS)
    conversations.add(keys[0], said(2), LIMITS)
    conversations.add(keys[-1], said(1), LIMITS)
    assert MAX_CONVERSATIONS == 2000
    assert [key for key in keys if not conversations.so_far(key, LIMITS)] == [keys[1]]


def test_a_model_is_sent_prompts_and_answers() -> None:
    assert as_messages([]) == []
    assert as_messages([Exchanged("$1", "> quoted\nhi", "hi", "Hello!"), said(2)]) == [
        {"role": "user", "content": "> quoted\nhi"},
        {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": "prompt 2"},
        {"role": "assistant", "content": "xx"},
    ]


@given(
    st.lists(st.tuples(st.integers(10, 60), st.integers(0, 400))),
    st.builds(
        ContextLimits,
        max_messages=st.integers(0, 12),
        max_characters=st.integers(0, 200),
        timeout_minutes=st.integers(0, 5),
    ),
)
def test_any_conversation_stays_within_its_limits(
    steps: list[tuple[int, int]], bounds: ContextLimits
) -> None:
    time = Time()
    conversations = Conversations(time)
    everything = []
    for number, (size, pause) in enumerate(steps):
        time.seconds += pause
        everything.append(said(number, size))
        conversations.add(KEY, everything[-1], bounds)
        found = conversations.so_far(KEY, bounds)
        assert len(found) * 2 <= bounds.max_messages
        assert sum(exchanged.size for exchanged in found) <= bounds.max_characters
        assert found == everything[len(everything) - len(found) :]


# --- shared by several people -------------------------------------------------------------------


def test_a_scene_has_one_conversation_that_is_nobodys_own(conversations: Conversations) -> None:
    own = KEY
    scene = ConversationKey(KEY.room_id, None, "", "A pub.")
    other_scene = scene._replace(scene="A ship.")
    conversations.add(own, said(1), LIMITS)
    conversations.add(scene, dataclasses.replace(said(2), user_id="@ada:example.org"), LIMITS)
    conversations.add(scene, dataclasses.replace(said(3), user_id="@bob:example.org"), LIMITS)
    assert len(conversations.so_far(scene, LIMITS)) == 2
    assert conversations.so_far(other_scene, LIMITS) == []
    assert conversations.so_far(own, LIMITS) == [said(1)]


def test_who_leaves_takes_their_own_words_only(conversations: Conversations) -> None:
    scene = ConversationKey(KEY.room_id, None, "", "A pub.")
    assert not conversations.leave(scene, "@ada:example.org")
    of_ada, of_bob = (
        dataclasses.replace(said(n), user_id=user)
        for n, user in ((1, "@ada:example.org"), (2, "@bob:example.org"))
    )
    for exchanged in (of_ada, of_bob):
        conversations.add(scene, exchanged, LIMITS)
    assert conversations.leave(scene, "@ada:example.org")
    assert conversations.so_far(scene, LIMITS) == [of_bob]
    assert not conversations.leave(scene, "@ada:example.org")
    conversations.redact(KEY.room_id, of_bob.event_id)
    assert conversations.so_far(scene, LIMITS) == []
