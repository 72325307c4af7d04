"""What people say in the soak, so that each text tells whose it is and which question it was.

A question bears a token, which the model repeats in its answer. Whoever states facts states two
at once, which one pass notes: in no moment may one of them stand without the other.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Iterable

TOKEN = re.compile(r"\[(u\d+)/(\d+)\]")
ITEM = re.compile(r"\bitem (u\d+)-(\w+)-(\w+)")
SAVED = "Saved."
LEAK = "LEAK"
"""What the model says where it was shown what belongs to somebody else."""
INVENTED = "invented"
PASSWORD = "swordfish"


class Kind(enum.Enum):
    """What a question is for."""

    FACTS = "states two facts"
    SAVE = "asks to remember one"
    SECRET = "gives a password away"
    NOTHING = "states nothing"


@dataclasses.dataclass(frozen=True)
class Item:
    """What a fact is about; `owner` is the name of its person."""

    owner: str
    pair: str
    side: str

    @property
    def name(self) -> str:
        """The words by which it is found in any text."""
        return f"item {self.owner}-{self.pair}-{self.side}"

    @property
    def fact(self) -> str:
        """How the extractor notes it."""
        return f"Owns {self.name}"


def items_in(text: str) -> list[Item]:
    """Return all items that a text names."""
    return [Item(*match) for match in ITEM.findall(text)]


def pair(owner: str, number: int) -> tuple[Item, Item]:
    """Return the two items of a pair."""
    return Item(owner, f"p{number}", "left"), Item(owner, f"p{number}", "right")


def question(token: str, kind: Kind, items: Iterable[Item]) -> str:
    """Return what somebody asks."""
    names = " and ".join(item.name for item in items)
    words = {
        Kind.FACTS: f"I own {names}.",
        Kind.SAVE: f"Remember that I own {names}.",
        Kind.SECRET: f"My password is {PASSWORD} 99.",
        Kind.NOTHING: "What do you think?",
    }[kind]
    return f"!ask {token} {words}"
