"""A real homeserver of our own: Synapse with SQLite on a loopback port, no federation."""

import hashlib
import hmac
import json
import secrets
import sys
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from devstack.process import Service, StackError, choose_port, http_answers

SERVER_NAME = "llmbot.localhost"
NO_LIMIT = {"per_second": 10000, "burst_count": 10000}
# More events than one sync of a test brings, so that none is left out of a timeline.
TIMELINE_LIMIT = 1000


@dataclass(frozen=True)
class Account:
    """A user of the homeserver, logged in."""

    user_id: str
    device_id: str
    password: str = field(repr=False)
    access_token: str = field(repr=False)


class Synapse(Service):
    """The homeserver; `server_name` is `llmbot.localhost`."""

    def __init__(self, world: Path) -> None:
        super().__init__("Synapse", world, choose_port("LLMBOT_PORT_SYNAPSE"))
        self._registration_secret = secrets.token_urlsafe(32)

    @property
    def url(self) -> str:
        """The base address of the client-server API."""
        return f"http://127.0.0.1:{self.port}"

    def prepare(self) -> None:
        """Write the configuration and the log configuration."""
        # Both are YAML files; JSON is YAML.
        (self.folder / "log.yaml").write_text(json.dumps(_log_config()))
        (self.folder / "homeserver.yaml").write_text(json.dumps(self._config(), indent=1))

    def _config(self) -> dict[str, object]:
        signing_seed = b64encode(secrets.token_bytes(32)).decode().rstrip("=")
        rate_limits: dict[str, object] = {
            "rc_message": NO_LIMIT,
            "rc_registration": NO_LIMIT,
            "rc_login": dict.fromkeys(("address", "account", "failed_attempts"), NO_LIMIT),
            "rc_admin_redaction": NO_LIMIT,
            "rc_joins": {"local": NO_LIMIT, "remote": NO_LIMIT},
            "rc_joins_per_room": NO_LIMIT,
            "rc_invites": dict.fromkeys(("per_room", "per_user", "per_issuer"), NO_LIMIT),
            "rc_room_creation": NO_LIMIT,
            "rc_presence": {"per_user": NO_LIMIT},
        }
        return {
            "server_name": SERVER_NAME,
            "public_baseurl": self.url,
            "listeners": [
                {
                    "port": self.port,
                    "bind_addresses": ["127.0.0.1"],
                    "type": "http",
                    "resources": [{"names": ["client"]}],
                }
            ],
            "database": {"name": "sqlite3", "args": {"database": "homeserver.db"}},
            "log_config": "log.yaml",
            "media_store_path": "media",
            "max_upload_size": "2M",
            "signing_key": f"ed25519 a_llmbot {signing_seed}",
            "registration_shared_secret": self._registration_secret,
            "macaroon_secret_key": secrets.token_urlsafe(32),
            "form_secret": secrets.token_urlsafe(32),
            # Alone in its world: it asks nobody and reports to nobody.
            "trusted_key_servers": [],
            "federation_domain_whitelist": [],
            "report_stats": False,
            "enable_metrics": False,
            # What a bot's tests do not need.
            "presence": {"enabled": False},
            "user_directory": {"enabled": False},
            "caches": {"global_factor": 0.1},
            "event_cache_size": "1K",
            # Passwords here guard throw-away accounts; the lowest cost makes log-ins quick.
            "bcrypt_rounds": 4,
            "filter_timeline_limit": TIMELINE_LIMIT,
            **rate_limits,
        }

    def command(self) -> Sequence[str]:
        """Return the command line of the homeserver."""
        return [sys.executable, "-m", "synapse.app.homeserver", "-c", "homeserver.yaml"]

    async def is_ready(self) -> bool:
        """Tell whether clients are served."""
        return await http_answers(f"{self.url}/_matrix/client/versions")

    async def register(self, name: str, *, admin: bool = False) -> Account:
        """Make a user, or an admin of the homeserver, with a random password and log it in.

        Raises:
            StackError: It refused, for example because the name is in use, or did not answer.
        """
        try:
            return await self._register(name, admin)
        except (aiohttp.ClientError, ValueError) as error:
            raise StackError(f"Synapse did not answer: {error}") from error

    async def _register(self, name: str, admin: bool) -> Account:
        password = secrets.token_urlsafe(9)
        address = f"{self.url}/_synapse/admin/v1/register"
        async with aiohttp.ClientSession() as http:
            async with http.get(address) as response:
                nonce = str((await response.json())["nonce"])
            fields = (nonce, name, password, "admin" if admin else "notadmin")
            mac = hmac.new(
                self._registration_secret.encode(), "\0".join(fields).encode(), hashlib.sha1
            )
            body = {"nonce": nonce, "username": name, "password": password, "admin": admin}
            async with http.post(address, json={**body, "mac": mac.hexdigest()}) as response:
                answer = await response.json()
                if response.status != 200:
                    raise StackError(f"Synapse did not register {name}: {answer.get('error')}")
        return Account(answer["user_id"], answer["device_id"], password, answer["access_token"])


def _log_config() -> dict[str, object]:
    return {
        "version": 1,
        "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"level": "WARNING", "handlers": ["console"]},
        "disable_existing_loggers": False,
    }
