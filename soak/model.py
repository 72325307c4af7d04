"""The soak's model server: `python -m soak.model --port N`.

It repeats the token of a question, notes what a message states, and tempts the plugin on every
occasion with an invented fact and, where there is one, a password. It is slow at times, out of
order at others, and says so on stderr if it is ever shown two people's data at once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import sys
from typing import Any

from devstack.scripted_model import (
    RecordedRequest,
    Responder,
    ScriptedModel,
    delay,
    http_error,
    raw,
    reply_json,
    text,
    tool_calls,
)
from devstack.scripted_model.replies import respond
from soak.script import INVENTED, ITEM, LEAK, PASSWORD, TOKEN, Item, items_in

_random = random.Random()  # noqa: S311


def _owners(words: str) -> set[str]:
    return {owner for pattern in (TOKEN, ITEM) for owner, *_ in pattern.findall(words)}


def _checked(request: RecordedRequest) -> bool:
    """Say whether all that a request holds belongs to one person; complain if not."""
    owners = _owners(json.dumps(request.messages))
    if len(owners) > 1:
        print(f"{LEAK}: {request.kind} request with data of {sorted(owners)}", file=sys.stderr)
    return len(owners) <= 1


def chat(request: RecordedRequest) -> Responder:
    """Return the answer to a question, in which its token stands."""
    said = request.user_message
    token = match[0] if (match := TOKEN.search(said)) else "[no token]"
    if not _checked(request):
        return text(f"{LEAK} {token}")
    last = request.messages[-1]
    if last["role"] == "tool":
        return text(f"{token} {last['content']}")
    if "Remember that" in said and "save_memory" in request.tool_names:
        (item,) = items_in(said)
        return tool_calls([("save_memory", {"fact": item.fact, "evidence": f"I own {item.name}"})])
    return text(f"{token} Understood.")


def extract(payload: dict[str, Any]) -> dict[str, Any]:
    """Return what a message states, and what it does not."""
    message = str(payload["user_message"])
    known = {item for fact in payload["known_memories"] for item in items_in(fact)}
    candidates = {
        item: entry["n"] for entry in payload["candidates"] for item in items_in(entry["fact"])
    }
    new, reinforced = [], []
    for item in items_in(message):
        if item in candidates:
            reinforced.append({"n": candidates[item], "evidence": item.name})
        elif item not in known:
            new.append({"fact": item.fact, "evidence": item.name})
    owner = next(iter(_owners(message)), "u0")
    new.append({"fact": Item(owner, INVENTED, "x").fact, "evidence": "I own what I never named"})
    if PASSWORD in message:
        new.append({"fact": f"Password is {PASSWORD} 99", "evidence": f"password is {PASSWORD}"})
    return {"new": new, "reinforced": reinforced, "contradicted": []}


def clean_up(payload: dict[str, Any]) -> dict[str, Any]:
    """Return a cleanup that merges each pair."""
    single = {
        items[0]: entry["n"]
        for entry in payload["memories"]
        if len(items := items_in(entry["fact"])) == 1
    }
    merges = []
    for item, number in single.items():
        other = Item(item.owner, item.pair, "right")
        if item.side == "left" and other in single:
            fact = f"{item.fact} and {other.name}"
            merges.append({"n": [number, single[other]], "fact": fact})
    return {"drop": [], "merge": merges}


def answer(request: RecordedRequest) -> Responder:
    """Return what answers a request, in time or late, and at times an error."""
    chance = _random.random()
    if chance < 0.02:
        good: Responder = http_error(503, headers={"Retry-After": "0.2"})
    elif chance < 0.04 and request.kind != "chat":
        good = raw('{"choices": [{"message": {"content": "{\\"new\\": [{"}}]}')
    elif request.kind == "chat":
        good = chat(request)
    else:
        _checked(request)
        read = extract if request.kind == "extraction" else clean_up
        good = reply_json(read(request.payload), fenced=chance > 0.8)
    return delay(_random.uniform(0.02, 0.3) if chance < 0.9 else _random.uniform(0.5, 2), good)


async def _serve(port: int) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with ScriptedModel(port=port, record=False) as model:
        model.on("any", lambda request: respond(answer(request), request))
        await stop.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="soak.model", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    asyncio.run(_serve(parser.parse_args().port))
