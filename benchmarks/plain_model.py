"""A model server that does next to nothing, and knows when it did it.

`python -m benchmarks.plain_model --port N` runs it as a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import json
import re
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from aiohttp import web

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


class PlainModel:
    """Answers each chat with `answer`, and finds a fact in each message with a house number.

    Args:
        seconds: How long it thinks.

    Attributes:
        chats: The requests for an answer, in the order in which they were answered.
        extractions: Those for a pass.
        base_url: Its address while it is open.
    """

    answer = "That is a long way up, but the view must be fine."

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.chats: list[Call] = []
        self.extractions: list[Call] = []
        self.base_url = ""

    @contextlib.asynccontextmanager
    async def open(self, port: int = 0) -> AsyncIterator[PlainModel]:
        """Listen on a loopback port, by default a free one, as long as the context lasts."""
        application = web.Application(client_max_size=2**20)
        application.router.add_post("/v1/chat/completions", self._complete)
        application.router.add_get("/v1/models", self._list_models)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.05)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", port).start()
            self.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
            yield self
        finally:
            await runner.cleanup()

    async def _list_models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": []})

    async def _complete(self, request: web.Request) -> web.Response:
        begin = time.perf_counter()
        body = await request.json()
        is_extraction = "response_format" in body
        content = extraction_of(body["messages"][-1]["content"]) if is_extraction else self.answer
        if self.seconds:
            await asyncio.sleep(self.seconds)
        response = web.json_response(completion(content))
        (self.extractions if is_extraction else self.chats).append(
            Call(begin, time.perf_counter())
        )
        return response


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
    async with PlainModel().open(port):
        await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="benchmarks.plain_model", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    asyncio.run(_serve(parser.parse_args().port))
