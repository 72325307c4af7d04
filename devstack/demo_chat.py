"""The demo's room: people who talk to the bot, and what it keeps of them."""

# mypy: allow-untyped-calls
# (asyncpg's methods carry no types.)
import asyncio
from collections.abc import Callable

from mautrix.types import RoomID, UserID

from devstack.demo_view import Tables, quote
from devstack.member import Member, SeenEvent
from devstack.process import StackError
from devstack.stack import Bot, Stack

# How long an answer, or the extraction that follows it, may take with a slow real model.
LIMIT_SECONDS = 60.0
LOOK_SECONDS = 0.1


class Conversation:
    """A chat with the bot in one room, shown as it happens.

    Attributes:
        stack: Where it takes place.
        bot: Whom people talk to.
        speaker: Who speaks now, and whose tables are looked at; at first the room's owner.
    """

    def __init__(self, stack: Stack, owner: Member, bot: Bot, room_id: str) -> None:
        self.stack = stack
        self.bot = bot
        self.speaker = self._owner = owner
        self._room_id = room_id
        self._people = {_name(owner): owner}
        self._shown: set[str] = set()

    @property
    def speaker_name(self) -> str:
        """The name of who speaks now, as it is shown."""
        return _name(self.speaker).capitalize()

    async def speak_as(self, name: str) -> None:
        """Go on as somebody, who is registered and brought into the room if need be."""
        if name not in self._people:
            person = await self.stack.member(name)
            await self._owner.client.invite_user(RoomID(self._room_id), UserID(person.user_id))
            await person.join(self._room_id)
            await person.wait_for_member(self._room_id, person.user_id)
            self._people[name] = person
        self.speaker = self._people[name]

    async def ask(self, text: str, times: int = 1) -> SeenEvent:
        """Send a message, show the bot's reply, and return it.

        Args:
            text: What the speaker says.
            times: Send it so often at once; the first reply is returned.
        """
        speaker = self.speaker
        messages = (speaker.say(self._room_id, text) for _ in range(times))
        event_ids = await asyncio.gather(*messages)
        waiting = (speaker.wait_for_reply(event_id, LIMIT_SECONDS) for event_id in event_ids)
        replies = await asyncio.gather(*waiting)
        self.show_news()
        return replies[0]

    def show_news(self) -> None:
        """Show what the bot said since the last look."""
        for event in self.speaker.events:
            is_message = event.type == "m.room.message" and not event.is_edit
            is_bots = event.sender == self.bot.user_id and event.event_id not in self._shown
            if is_message and is_bots:
                self._shown.add(event.event_id)
                quote("llmbot", as_shown(event))

    async def until_told(self, status: SeenEvent) -> None:
        """Wait for the end of a story, show it and what became of its line of status.

        Raises:
            StackError: It was not told in time.
        """

        def is_end(event: SeenEvent) -> bool:
            is_edit = event.is_edit and event.relation.get("event_id") == status.event_id
            return is_edit and not event.body.endswith("…")

        end = await self.speaker.wait_for(is_end, LIMIT_SECONDS, "the end of the story")
        self.show_news()
        quote("llmbot", f"(first line, edited) {end.content['m.new_content']['body']}")

    async def play(self, text: str) -> SeenEvent:
        """Show a message, send it, show the bot's reply, and return it."""
        quote(self.speaker_name, text)
        return await self.ask(text)

    async def switch_memory(self, *, on: bool) -> None:
        """Set the room's switch, as the room's owner may."""
        await self._owner.send_state(self._room_id, "dev.llmbot.settings", {"memoryEnabled": on})

    async def tables(self) -> Tables:
        """Read what the database holds of the speaker."""
        connection = await self.stack.connect(self.bot.instance_id)
        user_id = self.speaker.user_id
        try:
            # All three see the same state of the database.
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                candidates = await connection.fetch(
                    "SELECT fact, mentions::text, to_char(last_seen, 'YYYY-MM-DD')"
                    " FROM memory_candidates WHERE user_id = $1 ORDER BY id",
                    user_id,
                )
                memories = await connection.fetch(
                    "SELECT fact, to_char(created_at, 'YYYY-MM-DD') FROM memories"
                    " WHERE user_id = $1 ORDER BY id",
                    user_id,
                )
                promoting_passes = await connection.fetchval(
                    "SELECT promoting_passes FROM memory_cleanup_counters WHERE user_id = $1",
                    user_id,
                )
        finally:
            await connection.close()
        return Tables(
            tuple(map(tuple, candidates)), tuple(map(tuple, memories)), promoting_passes or 0
        )

    async def let_time_pass(self, days: float) -> None:
        """Make everything in the memory, of all people, so many days older."""
        connection = await self.stack.connect(self.bot.instance_id)
        try:
            async with connection.transaction():
                for table, columns in (
                    ("memory_candidates", ("first_seen", "last_seen")),
                    ("memories", ("created_at",)),
                    ("memory_cleanup_undo", ("created_at",)),
                ):
                    changes = ", ".join(
                        f"{name} = {name} - $1 * interval '1 day'" for name in columns
                    )
                    await connection.execute(f"UPDATE {table} SET {changes}", days)  # noqa: S608
        finally:
            await connection.close()

    async def wait_for(self, condition: Callable[[Tables], bool], expected: str) -> Tables:
        """Wait until the tables are as expected: they change only after the answer was sent.

        Raises:
            StackError: They did not become so in time.
        """
        tables = await self.tables_once(condition, LIMIT_SECONDS)
        if not condition(tables):
            raise StackError(
                f"expected {expected} within {LIMIT_SECONDS:g} s, but {tables.in_short()}"
            )
        return tables

    async def tables_once(self, condition: Callable[[Tables], bool], seconds: float) -> Tables:
        """Return the tables as soon as they meet a condition, or as they are after some time."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while True:
            tables = await self.tables()
            if condition(tables) or loop.time() > end:
                return tables
            await asyncio.sleep(LOOK_SECONDS)


def as_shown(event: SeenEvent) -> str:
    """Return what the terminal shows of a message: of a picture, what is known of it."""
    if event.content.get("msgtype") != "m.image":
        return event.body
    info = event.content["info"]
    return f"[{info['mimetype']}, {info['w']} × {info['h']}: {event.body}]"  # noqa: RUF001


def _name(person: Member) -> str:
    return person.user_id[1:].partition(":")[0]
