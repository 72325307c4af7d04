"""The people: they ask, as many at once as one wants, and somebody in every room reads along."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import itertools
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar
from urllib.parse import quote

import aiohttp
from mautrix.types import RoomCreatePreset, UserID

from devstack.member import Member
from devstack.process import POLL_SECONDS, wait_until
from devstack.stack import Stack
from devstack.synapse import Account
from soak.invariants import Question
from soak.script import Item, Kind, pair, question

PAIRS = 2
AT_ONCE_WHILE_SETTING_UP = 8
PATIENCE = 45.0
"""Seconds after which somebody stops waiting for an answer and asks something else."""
AFTER_AN_OUTAGE = 4.0
"""Seconds after which what was asked during an outage is given up."""
IN_FLIGHT = 15.0
"""Seconds for which a question may be on its way; an outage in them explains that it is lost."""
KINDS = {Kind.FACTS: 0.75, Kind.SAVE: 0.1, Kind.SECRET: 0.05, Kind.NOTHING: 0.1}

Result = TypeVar("Result")


@dataclasses.dataclass(frozen=True)
class Person:
    """Somebody who asks; `rooms` has one room or two."""

    name: str
    account: Account
    rooms: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Outage:
    """When the bot could not hear: from its end or its death until it listened again."""

    name: str
    began: float
    ended: float


async def in_parallel(
    work: Iterable[Callable[[], Awaitable[Result]]], limit: int = AT_ONCE_WHILE_SETTING_UP
) -> list[Result]:
    """Do pieces of work, so many at once, and return their results in order."""
    places = asyncio.Semaphore(limit)

    async def one(piece: Callable[[], Awaitable[Result]]) -> Result:
        async with places:
            return await piece()

    return list(await asyncio.gather(*(one(piece) for piece in work)))


class Crowd:
    """All people and all they asked.

    Attributes:
        questions: By event id, in the order sent.
        outages: When the bot could not hear, as far as it is over.
    """

    def __init__(self, stack: Stack, bot_id: str, http: aiohttp.ClientSession) -> None:
        self._stack = stack
        self._bot_id = bot_id
        self._http = http
        self._numbers = itertools.count(1)
        self._random = random.Random(1)  # noqa: S311
        self._observer: Member
        self._forgetful: set[str] = set()
        self._people: list[Person] = []
        self._read = 0
        self._answers: dict[str, list[tuple[float, str]]] = {}
        self._hurry = False
        self.questions: dict[str, Question] = {}
        self.outages: list[Outage] = []

    # --- setting up ----------------------------------------------------------------------------

    async def gather(self, people: int, rooms: int) -> None:
        """Register everybody, make the rooms, and let all join; the last room's memory is off."""
        self._observer = await self._stack.member("observer")
        room_ids = await in_parallel([self._make_room for _ in range(rooms)])
        self._forgetful = {room_ids[-1]}
        await self._observer.send_state(
            room_ids[-1], "dev.llmbot.settings", {"memoryEnabled": False}
        )
        names = [f"u{number}" for number in range(people)]
        accounts = await in_parallel(
            [functools.partial(self._stack.synapse.register, name) for name in names]
        )
        for number, (name, account) in enumerate(zip(names, accounts, strict=True)):
            # Every fourth is in two rooms: the same person in both.
            homes = room_ids[number % rooms], room_ids[(number + 1) % rooms]
            self._people.append(Person(name, account, homes if number % 4 == 0 else homes[:1]))
        await in_parallel(
            [
                functools.partial(self._join, person, room)
                for person in self._people
                for room in person.rooms
            ]
        )
        for room_id in room_ids:
            await self._observer.wait_for_member(room_id, self._bot_id)

    async def _make_room(self) -> str:
        room_id = await self._observer.client.create_room(
            preset=RoomCreatePreset.PUBLIC, invitees=[UserID(self._bot_id)]
        )
        return str(room_id)

    async def _join(self, person: Person, room_id: str) -> None:
        await self._request(person, "POST", f"join/{quote(room_id)}", {})

    async def _request(
        self, person: Person, method: str, path: str, body: Mapping[str, object]
    ) -> dict[str, str]:
        address = f"{self._stack.synapse.url}/_matrix/client/v3/{path}"
        headers = {"Authorization": f"Bearer {person.account.access_token}"}
        async with self._http.request(method, address, json=body, headers=headers) as response:
            response.raise_for_status()
            answer: dict[str, str] = await response.json()
            return answer

    # --- asking --------------------------------------------------------------------------------

    async def ask_until(self, end: float, at_once: int) -> None:
        """Let people ask, so many at once, until a moment of `time.monotonic`."""

        async def asking() -> None:
            while time.monotonic() < end:
                person = self._random.choice(self._people)
                # Now and then the same person asks twice at the same time.
                times = 2 if self._random.random() < 0.25 else 1
                pair_number = self._random.randrange(PAIRS)
                await asyncio.gather(*(self._ask(person, pair_number) for _ in range(times)))

        await asyncio.gather(*(asking() for _ in range(at_once)))

    async def _ask(self, person: Person, pair_number: int) -> None:
        number = next(self._numbers)
        kind = self._random.choices(list(KINDS), list(KINDS.values()))[0]
        items: tuple[Item, ...] = pair(person.name, pair_number) if kind is Kind.FACTS else ()
        if kind is Kind.SAVE:
            items = (dataclasses.replace(pair(person.name, 0)[0], pair=f"s{number}"),)
        room_id = self._random.choice(person.rooms)
        token = f"[{person.name}/{number}]"
        body = {"msgtype": "m.text", "body": question(token, kind, items)}
        path = f"rooms/{quote(room_id)}/send/m.room.message/{number}"
        sent = time.time()
        answer = await self._request(person, "PUT", path, body)
        asked = Question(
            answer["event_id"],
            token,
            kind,
            items,
            person.account.user_id,
            room_id not in self._forgetful,
            sent,
            self._answers.setdefault(answer["event_id"], []),
        )
        self.questions[asked.event_id] = asked

        async def over() -> bool:
            return bool(asked.answers) or self._given_up(asked)

        await wait_until(over, 2 * PATIENCE, "an answer")

    def _given_up(self, asked: Question) -> bool:
        now = time.time()
        return now > asked.sent + PATIENCE or any(
            asked.sent < outage.ended < now - AFTER_AN_OUTAGE for outage in self.outages
        )

    async def read_along(self) -> None:
        """Never return; keep what the bot answers."""
        while True:
            self.read_news()
            await asyncio.sleep(POLL_SECONDS)

    def read_news(self) -> None:
        """Keep what the bot answered since the last look."""
        events = self._observer.events
        for event in events[self._read :]:
            if event.sender == self._bot_id and event.replies_to and not event.is_edit:
                moment = event.raw["origin_server_ts"] / 1000
                self._answers.setdefault(event.replies_to, []).append((moment, event.body))
        self._read = len(events)

    def unexplained(self, questions: Sequence[Question]) -> list[Question]:
        """Return those of the unanswered questions that no outage explains."""
        return [
            asked
            for asked in questions
            if not any(
                asked.sent <= outage.ended and outage.began <= asked.sent + IN_FLIGHT
                for outage in self.outages
            )
        ]
