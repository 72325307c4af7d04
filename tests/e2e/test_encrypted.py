"""The same conversation in an encrypted room."""

from __future__ import annotations

import sys

import pytest

from devstack.process import wait_until

from .world import World

pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 13),
    reason="python-olm, which encrypts, has no wheel for this Python and needs a compiler there",
)


async def test_ask_answer_memory_and_list_in_an_encrypted_room(world: World) -> None:
    from devstack.encrypted_member import EncryptedMember  # noqa: PLC0415 - needs python-olm

    account = await world.stack.synapse.register("eve-encrypted")
    log_before = len(world.log())
    async with EncryptedMember(world.stack.synapse.url, account) as eve:
        room_id = await eve.create_room(world.bot.user_id)

        async def bot_is_in() -> bool:
            members = await eve.client.get_joined_members(room_id)
            return world.bot.user_id in members

        await wait_until(bot_is_in, 20, "the bot to join")
        for text in ("!ask I work as a beekeeper.", "!ask My job is beekeeper, you know."):
            answer = await eve.wait_for_reply(await eve.say(room_id, text))
            assert answer.sender == world.bot.user_id
            assert "beekeeper" in answer.content.body

        async def remembered() -> bool:
            fact = await world.sql.fetchval(
                "SELECT fact FROM memories WHERE user_id = $1", eve.user_id
            )
            return bool(fact == "Works as a beekeeper")

        await wait_until(remembered, 20, "the memory")
        listing = await eve.wait_for_reply(await eve.say(room_id, "!memories"))
        assert "Works as a beekeeper" in listing.content.body
        # The homeserver has seen none of it.
        for event in (answer, listing):
            stored = await eve.client.api.request(
                "GET", f"/_matrix/client/v3/rooms/{room_id}/event/{event.event_id}"
            )
            assert stored["type"] == "m.room.encrypted"
            assert "beekeeper" not in str(stored)
        # Neither has maubot's log, where it tells at DEBUG what the bot sends.
        assert "/send/m.room.encrypted/" in world.log()[log_before:]
        assert "beekeeper" not in world.log()[log_before:]
