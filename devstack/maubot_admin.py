"""What a homeserver admin does in maubot's web UI, over the same management API."""

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp

from devstack.process import StackError


class MaubotAdmin:
    """A client of maubot's management API; `close` it at the end.

    Every call raises `StackError` with the server's own message where the server refuses.

    Args:
        url: maubot's base address.
        username: An admin of maubot's config.
        password: The admin's password.
    """

    def __init__(self, url: str, username: str, password: str) -> None:
        self._api = f"{url}/_matrix/maubot/v1"
        self._login: dict[str, object] = {"username": username, "password": password}
        self._http = aiohttp.ClientSession()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    async def _call(
        self,
        method: str,
        path: str,
        *,
        json: dict[str, object] | None = None,
        data: bytes | None = None,
    ) -> dict[str, Any]:
        try:
            async with self._http.request(
                method, f"{self._api}/{path}", json=json, data=data
            ) as response:
                text = await response.text()
                answer = await response.json(content_type=None) if text else {}
                if response.status >= 400:
                    message = answer.get("error", text) if isinstance(answer, dict) else text
                    raise StackError(
                        f"maubot answered {method} {path} with HTTP {response.status}: {message}"
                    )
        except (aiohttp.ClientError, ValueError) as error:
            raise StackError(f"maubot did not answer {method} {path}: {error}") from error
        assert isinstance(answer, dict)
        return answer

    async def login(self) -> None:
        """Log in; everything else needs this first."""
        answer = await self._call("POST", "auth/login", json=self._login)
        self._http.headers["Authorization"] = f"Bearer {answer['token']}"

    async def upload_plugin(self, mbp: Path, *, allow_override: bool = True) -> dict[str, Any]:
        """Upload a built plugin; with `allow_override` an installed one is replaced."""
        query = "?allow_override=true" if allow_override else ""
        content = await asyncio.to_thread(mbp.read_bytes)
        return await self._call("POST", f"plugins/upload{query}", data=content)

    async def reload_plugin(self, plugin_id: str) -> None:
        """Read a plugin's archive anew, as the *Reload* button does; its instances restart."""
        await self._call("POST", f"plugin/{quote(plugin_id, safe='')}/reload")

    async def put_client(self, user_id: str, **fields: object) -> dict[str, Any]:
        """Make or change the client of a bot user.

        Args:
            user_id: The bot user's full Matrix id.
            fields: As in the API: `homeserver`, `access_token`, `device_id`, `autojoin`, ...
        """
        return await self._call("PUT", f"client/{quote(user_id, safe='')}", json=fields)

    async def get_client(self, user_id: str) -> dict[str, Any]:
        """Return a client as the API describes it."""
        return await self._call("GET", f"client/{quote(user_id, safe='')}")

    async def put_instance(self, instance_id: str, **fields: object) -> dict[str, Any]:
        """Make or change a plugin instance.

        Args:
            instance_id: The instance's id.
            fields: As in the API: `type`, `primary_user`, `config` (YAML text), `enabled`,
                `started`.
        """
        return await self._call("PUT", f"instance/{quote(instance_id, safe='')}", json=fields)

    async def set_config(self, instance_id: str, config: str) -> dict[str, Any]:
        """Save an instance's config, as the *Save* button does."""
        return await self.put_instance(instance_id, config=config)

    async def get_instance(self, instance_id: str) -> dict[str, Any]:
        """Return an instance as the API describes it."""
        return await self._call("GET", f"instance/{quote(instance_id, safe='')}")

    async def delete_instance(self, instance_id: str) -> None:
        """Delete an instance and its database schema."""
        await self._call("DELETE", f"instance/{quote(instance_id, safe='')}")
