"""Fetching a picture from where a provider says it is, and from nowhere that it should not be."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import Any

import aiohttp
import yarl
from aiohttp.abc import AbstractResolver

_MAX_REDIRECTS = 5
_CONNECT_SECONDS = 10


class DownloadError(Exception):
    """A file was not fetched; the message says why and holds no address."""


class TooManyBytesError(Exception):
    """A file, or an answer, has more bytes than are taken."""


class _InnerAddressError(OSError):
    """A name leads to an address inside the operator's network."""


async def download(address: str, *, provider: str, max_bytes: int) -> bytes:
    """Return what is at an address; it is asked for with no key and no cookie.

    Only http and https. An address inside the operator's own network is fetched only where the
    provider itself has it: an answer, which others may have had a hand in, must not make the bot
    look around in there.

    Args:
        address: Where the file is.
        provider: The provider's base address.
        max_bytes: The most bytes to take.

    Raises:
        DownloadError: it cannot be had.
        TooManyBytesError: it is larger.
    """
    own = yarl.URL(provider).origin()
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS)
    try:
        url = yarl.URL(address)
        for _ in range(_MAX_REDIRECTS + 1):
            is_own = _is_http(url) and url.origin() == own
            connector = None if is_own else aiohttp.TCPConnector(resolver=_OuterResolver())
            if not is_own:
                _check(url)
            async with (
                aiohttp.ClientSession(connector=connector, timeout=timeout) as http,
                http.get(url, allow_redirects=False) as response,
            ):
                if response.status in {301, 302, 303, 307, 308}:
                    url = url.join(yarl.URL(response.headers.get("Location", "")))
                    continue
                if response.status != 200:
                    raise DownloadError(f"HTTP {response.status}")
                return await read_at_most(response, max_bytes)
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise DownloadError(type(error).__name__) from None
    raise DownloadError("too many redirects")


async def read_at_most(response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    """Return a response's body.

    Raises:
        TooManyBytesError: it is longer.
    """
    content = bytearray()
    async for chunk in response.content.iter_any():
        content += chunk
        if len(content) > max_bytes:
            raise TooManyBytesError
    return bytes(content)


def _is_http(url: yarl.URL) -> bool:
    return url.scheme in {"http", "https"} and bool(url.host)


def _check(url: yarl.URL) -> None:
    if not _is_http(url):
        raise DownloadError("no http address")
    # Numeric addresses are not resolved, so they are looked at here.
    try:
        is_outer = _is_outer(url.host or "")
    except ValueError:
        return
    if not is_outer:
        raise DownloadError("an inner address")


def _is_outer(address: str) -> bool:
    """Say whether an address belongs to the internet.

    Raises:
        ValueError: it is no numeric address.
    """
    ip = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(ip, "ipv4_mapped", None)
    return (mapped or ip).is_global and not ip.is_multicast


class _OuterResolver(AbstractResolver):
    """Resolves names to addresses on the internet only."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[Any]:
        found = await asyncio.get_running_loop().getaddrinfo(
            host, port, family=family, type=socket.SOCK_STREAM
        )
        if not all(_is_outer(str(address[0])) for *_, address in found):
            raise _InnerAddressError
        return [
            {
                "hostname": host,
                "host": address[0],
                "port": port,
                "family": kind,
                "proto": protocol,
                "flags": socket.AI_NUMERICHOST,
            }
            for kind, _, protocol, _, address in found
        ]

    async def close(self) -> None:
        """Nothing to release."""
