"""A person whose client encrypts, for encrypted rooms: mautrix's own, its keys in memory only."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import aiohttp
from mautrix.client import Client
from mautrix.client.state_store import MemoryStateStore, MemorySyncStore
from mautrix.crypto import OlmMachine
from mautrix.crypto.store import MemoryCryptoStore
from mautrix.types import (
    EncryptionAlgorithm,
    EventType,
    MessageEvent,
    MessageType,
    RoomEncryptionStateEventContent,
    RoomID,
    TextMessageEventContent,
    UserID,
)

from devstack.process import StackError
from devstack.synapse import Account

if TYPE_CHECKING:
    from typing_extensions import Self


class EncryptedMember:
    """A logged-in user with a device of their own; use it with `async with`.

    Args:
        homeserver_url: The homeserver's base address.
        account: Who this is.
    """

    def __init__(self, homeserver_url: str, account: Account) -> None:
        self.user_id = account.user_id
        self.messages: list[MessageEvent] = []
        self._http = aiohttp.ClientSession()
        self._news = asyncio.Condition()
        state_store = MemoryStateStore()
        self.client = Client(
            UserID(account.user_id),
            device_id=account.device_id,
            base_url=homeserver_url,
            token=account.access_token,
            client_session=self._http,
            state_store=state_store,
            sync_store=MemorySyncStore(),
        )
        self._crypto_store = MemoryCryptoStore(account.user_id, "pickle key")
        self.client.crypto = OlmMachine(self.client, self._crypto_store, state_store)
        # The state store in memory cannot tell which rooms that would concern.
        self.client.crypto.disable_device_change_key_rotation = True
        self.client.add_event_handler(EventType.ROOM_MESSAGE, self._take)

    async def __aenter__(self) -> "Self":
        await self._crypto_store.put_device_id(self.client.device_id)
        await self.client.crypto.load()
        await self.client.crypto.share_keys()
        self._sync = self.client.start(None)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.client.stop()
        with contextlib.suppress(asyncio.CancelledError):
            await self._sync
        await self._http.close()

    async def _take(self, event: MessageEvent) -> None:
        async with self._news:
            self.messages.append(event)
            self._news.notify_all()

    async def create_room(self, *invitees: str, is_direct: bool = False) -> str:
        """Make a private, encrypted room and return its id."""
        encryption = RoomEncryptionStateEventContent(EncryptionAlgorithm.MEGOLM_V1)
        room_id = await self.client.create_room(
            is_direct=is_direct,
            invitees=[UserID(user_id) for user_id in invitees],
            initial_state=[
                {
                    "type": "m.room.encryption",
                    "state_key": "",
                    "content": encryption.serialize(),
                }
            ],
        )
        await self._until(lambda: self._knows(room_id), 30, "the room's encryption")
        return str(room_id)

    def _knows(self, room_id: str) -> bool:
        return RoomID(room_id) in self.client.state_store.encryption

    async def say(self, room_id: str, text: str) -> str:
        """Send an encrypted text message and return its event id."""
        content = TextMessageEventContent(msgtype=MessageType.TEXT, body=text)
        return str(await self.client.send_message(RoomID(room_id), content))

    async def wait_for_reply(self, event_id: str, seconds: float = 30.0) -> MessageEvent:
        """Return the decrypted message from somebody else that is a reply to this event.

        Raises:
            StackError: None came in time.
        """

        def found() -> MessageEvent | None:
            replies = [m for m in self.messages if m.content.get_reply_to() == event_id]
            return replies[0] if replies else None

        await self._until(lambda: found() is not None, seconds, f"a reply to {event_id}")
        reply = found()
        assert reply is not None
        return reply

    async def _until(self, condition: Callable[[], bool], seconds: float, goal: str) -> None:
        # State comes by handlers that tell nobody, so look again now and then.
        end = asyncio.get_running_loop().time() + seconds
        while not condition():
            if asyncio.get_running_loop().time() > end:
                raise StackError(f"{self.user_id} waited {seconds:g} s for {goal}")
            with contextlib.suppress(asyncio.TimeoutError):
                async with self._news:
                    await asyncio.wait_for(self._news.wait(), 0.1)
