"""Counts what goes between a client and PostgreSQL, from outside of both."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import urlsplit, urlunsplit

_READY = b"Z"
_COMPLETE = b"C"


class Wire:
    """A PostgreSQL's address that counts; `url` is what a client connects to.

    A round trip ends with the server's `ReadyForQuery`, whatever library asks.
    """

    def __init__(self, url: str) -> None:
        self._server = urlsplit(url)
        self.round_trips = 0
        self.commits = 0
        self.url = ""

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[Wire]:
        """Listen as long as the context lasts."""
        listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        host = f"{self._server.username}:{self._server.password}@127.0.0.1:{port}"
        # Unencrypted, so that it can be read.
        self.url = urlunsplit(self._server._replace(netloc=host, query="sslmode=disable"))
        try:
            yield self
        finally:
            listener.close()

    def reset(self) -> None:
        """Count from 0 again."""
        self.round_trips = self.commits = 0

    async def _serve(self, client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        assert self._server.hostname is not None
        server, forth = await asyncio.open_connection(self._server.hostname, self._server.port)
        asking = asyncio.ensure_future(_copy(client, forth))
        try:
            await self._count(server, back)
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            forth.close()
            back.close()

    async def _count(self, server: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await server.readexactly(5)
                body = await server.readexactly(int.from_bytes(head[1:], "big") - 4)
                self.round_trips += head[:1] == _READY
                self.commits += head[:1] == _COMPLETE and body == b"COMMIT\0"
                back.write(head + body)
                await back.drain()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
        target.close()
