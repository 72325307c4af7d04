"""A model server that does next to nothing, and knows when it did it.

`python -m benchmarks.plain_model --port N` runs it as a process of its own, so that its work is
nobody else's; all processes of a machine read the same `time.perf_counter`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import json
import re
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import aiohttp
from aiohttp import web

from devstack.stack import ScriptedModel

_NUMBER = re.compile(r"I live in house number (\d+)")


@dataclasses.dataclass(frozen=True)
class Call:
    """When a request came and when its answer was ready, by `time.perf_counter`."""

    begin: float
    end: float

    @property
    def seconds(self) -> float:
        """The model's own time."""
        return self.end - self.begin


class _Server:
    """Answers each chat alike, and finds a fact in each message with a house number."""

    answer = "That is a long way up, but the view must be fine."

    def __init__(self) -> None:
        self._seconds = 0.0
        self._chats: list[Call] = []
        self._extractions: list[Call] = []

    @contextlib.asynccontextmanager
    async def open(self, port: int) -> AsyncIterator[None]:
        """Listen on a loopback port as long as the context lasts."""
        application = web.Application(client_max_size=2**20)
        application.router.add_post("/v1/chat/completions", self._complete)
        application.router.add_get("/v1/models", self._list_models)
        application.router.add_post("/think", self._think)
        application.router.add_get("/calls", self._tell_calls)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.05)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", port).start()
            yield
        finally:
            await runner.cleanup()

    async def _list_models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": []})

    async def _think(self, request: web.Request) -> web.Response:
        self._seconds = await request.json()
        return web.json_response({})

    async def _tell_calls(self, _: web.Request) -> web.Response:
        every = {"chats": self._chats, "extractions": self._extractions}
        return web.json_response(
            {kind: [dataclasses.astuple(call) for call in calls] for kind, calls in every.items()}
        )

    async def _complete(self, request: web.Request) -> web.Response:
        begin = time.perf_counter()
        body = await request.json()
        is_extraction = "response_format" in body
        content = extraction_of(body["messages"][-1]["content"]) if is_extraction else self.answer
        if self._seconds:
            await asyncio.sleep(self._seconds)
        response = web.json_response(completion(content))
        (self._extractions if is_extraction else self._chats).append(
            Call(begin, time.perf_counter())
        )
        return response


@dataclasses.dataclass(frozen=True)
class Calls:
    """All calls so far: for answers and for passes, in the order in which they ended."""

    chats: Sequence[Call]
    extractions: Sequence[Call]


class PlainModel(ScriptedModel):
    """The server as a process."""

    def command(self) -> Sequence[str]:
        """Return the command line of the model server."""
        return [sys.executable, "-m", "benchmarks.plain_model", "--port", str(self.port)]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[PlainModel]:
        """Run as long as the context lasts."""
        await self.start()
        try:
            yield self
        finally:
            await self.stop()

    async def think(self, seconds: float) -> None:
        """Take so long for each call from now on."""
        async with (
            aiohttp.ClientSession() as http,
            http.post(f"http://127.0.0.1:{self.port}/think", json=seconds) as response,
        ):
            response.raise_for_status()

    async def calls(self) -> Calls:
        """Return what was asked so far."""
        async with (
            aiohttp.ClientSession() as http,
            http.get(f"http://127.0.0.1:{self.port}/calls") as response,
        ):
            every = await response.json()
        return Calls(*([Call(*call) for call in every[kind]] for kind in ("chats", "extractions")))


def words(number: int) -> str:
    """Return a message in which the model finds a fact."""
    return f"I live in house number {number}. How high is the tallest tower?"


def extraction_of(message: str) -> str:
    """Return what the model finds in a message of `words`."""
    found = _NUMBER.search(message)
    number = found[1] if found else "0"
    fact = {
        "fact": f"Lives in house number {number}",
        "evidence": f"I live in house number {number}",
    }
    return json.dumps({"new": [fact], "reinforced": [], "contradicted": []})


def completion(content: str) -> Mapping[str, Any]:
    """Return a chat completion as providers send it."""
    return {
        "id": "1",
        "object": "chat.completion",
        "model": "plain",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content},
                "finish_reason": "stop",
            }
        ],
    }


async def _serve(port: int) -> None:
    async with _Server().open(port):
        await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="benchmarks.plain_model", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    asyncio.run(_serve(parser.parse_args().port))
