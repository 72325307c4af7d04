"""A real maubot of our own, on a loopback port, with plugin databases in PostgreSQL."""

import contextlib
import json
import os
import secrets
import sqlite3
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from devstack.process import Service, choose_port, http_answers

ADMIN = "admin"
OWN_PYTHON = "LLMBOT_MAUBOT_PYTHON"
# Not inherited, so that a key in a developer's shell cannot turn a test into a call to a real
# provider; those of base-config.yaml all end so.
KEY_SUFFIX = "_API_KEY"


class MaubotServer(Service):
    """The bot framework, configured as an admin would.

    Args:
        world: The stack's data folder.
        plugin_database_url: The PostgreSQL for plugins; None gives them SQLite.
        variables: Environment variables for it. API keys are given here or not at all.
    """

    def __init__(
        self, world: Path, plugin_database_url: str | None, variables: Mapping[str, str]
    ) -> None:
        super().__init__("maubot", world, choose_port("LLMBOT_PORT_MAUBOT"))
        self.plugin_database_url = plugin_database_url
        self.variables = variables
        self.admin_password = secrets.token_urlsafe(9)

    @property
    def url(self) -> str:
        """The base address; the management UI and API are below `/_matrix/maubot`."""
        return f"http://127.0.0.1:{self.port}"

    def prepare(self) -> None:
        """Write the configuration and make the plugin folders."""
        for name in ("plugins", "trash"):
            (self.folder / name).mkdir()
        # maubot's own tables stay in SQLite: PostgreSQL then holds nothing but the plugin's, and
        # stopping it in a test stops the plugin's storage only.
        config = {
            "database": "sqlite:maubot.db",
            "plugin_databases": {
                "sqlite": "./plugins",
                "postgres": self.plugin_database_url,
                # Else maubot ends itself (and, with its own tables in SQLite, hangs in doing so)
                # if a statement meets the moment in which a stopping PostgreSQL says goodbye.
                "postgres_opts": {"min_size": 1, "max_size": 10, "meow_exit_on_ice": False},
            },
            "server": {
                "hostname": "127.0.0.1",
                "port": self.port,
                "public_url": self.url,
                "unshared_secret": secrets.token_urlsafe(32),
            },
            "homeservers": {},
            "admins": {"root": "", ADMIN: self.admin_password},
            "logging": _log_config(),
        }
        (self.folder / "config.yaml").write_text(json.dumps(config, indent=1))

    def command(self) -> Sequence[str]:
        """Return the command line of maubot, which may have a Python of its own."""
        python = os.environ.get(OWN_PYTHON) or sys.executable
        return [python, "-m", "maubot", "-c", "config.yaml"]

    def environment(self) -> Mapping[str, str]:
        """Return this process's environment with the given API keys only."""
        inherited = super().environment().items()
        kept = {name: value for name, value in inherited if not name.endswith(KEY_SUFFIX)}
        return {**kept, **self.variables}

    async def is_ready(self) -> bool:
        """Tell whether the management API is served."""
        return await http_answers(f"{self.url}/_matrix/maubot/v1/features")

    def sync_position(self, user_id: str) -> str:
        """Return how far a client's sync has come: an opaque token, empty before the first."""
        database = sqlite3.connect(f"file:{self.folder / 'maubot.db'}?mode=ro", uri=True)
        with contextlib.closing(database):
            row = database.execute("SELECT next_batch FROM client WHERE id = ?", (user_id,))
            found = row.fetchone()
        return str(found[0]) if found else ""


def _log_config() -> dict[str, object]:
    line = "[%(asctime)s] [%(levelname)s@%(name)s] %(message)s"
    return {
        "version": 1,
        "formatters": {"normal": {"format": line}},
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "normal"}},
        "loggers": {
            "maubot": {"level": "DEBUG"},
            "mau": {"level": "DEBUG"},
            "aiohttp": {"level": "INFO"},
        },
        "root": {"level": "DEBUG", "handlers": ["console"]},
    }
