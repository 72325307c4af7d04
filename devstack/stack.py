"""The whole world on this machine: PostgreSQL, Synapse, a scripted model and maubot."""

# mypy: allow-untyped-calls
# (asyncpg's methods carry no types.)
import asyncio
import io
import os
import sys
import time
import zipfile
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import aiohttp
import asyncpg
from ruamel.yaml import YAML

from devstack.build import ROOT
from devstack.maubot_admin import MaubotAdmin
from devstack.maubot_server import ADMIN, MaubotServer
from devstack.member import Member
from devstack.postgres import BUNDLED, Postgres, can_connect, connect
from devstack.process import (
    POLL_SECONDS,
    Service,
    StackError,
    choose_port,
    empty_world,
    http_answers,
    wait_until,
)
from devstack.synapse import Account, Synapse

if TYPE_CHECKING:
    from typing_extensions import Self

Result = TypeVar("Result")

DEFAULT_FOLDER = ROOT / ".devstack"
OWN_POSTGRES = "LLMBOT_POSTGRES"
SCHEMA_NOTE = "made by the llmbot dev stack, which may drop it"


class ScriptedModel(Service):
    """The offline model server that answers by rules."""

    def __init__(self, world: Path) -> None:
        super().__init__("scripted model", world, choose_port("LLMBOT_PORT_MODEL"))

    @property
    def url(self) -> str:
        """The base address for `providers.<name>.baseUrl`."""
        return f"http://127.0.0.1:{self.port}/v1"

    def command(self) -> Sequence[str]:
        """Return the command line of the model server."""
        return [sys.executable, "-m", "devstack.scripted_model", "--port", str(self.port)]

    def environment(self) -> Mapping[str, str]:
        """Return the environment, in which the checkout's modules are found from any folder."""
        return {**super().environment(), "PYTHONPATH": str(ROOT)}

    async def is_ready(self) -> bool:
        """Tell whether it lists its models."""
        return await http_answers(f"{self.url}/models")

    async def last_request(self, kind: str) -> list[dict[str, Any]]:
        """Return the messages of its last request of a kind, such as `chat` or `extraction`."""
        async with (
            aiohttp.ClientSession() as http,
            http.get(f"http://127.0.0.1:{self.port}/last/{kind}") as response,
        ):
            messages = await response.json()
        assert isinstance(messages, list)
        return messages


@dataclass(frozen=True)
class Bot:
    """A bot that was set up: its Matrix account and its maubot instance."""

    account: Account
    instance_id: str

    @property
    def user_id(self) -> str:
        """The bot's full Matrix id."""
        return self.account.user_id


def instance_config(changes: Mapping[str, Any]) -> str:
    """Return `base-config.yaml` as text with some keys changed and all comments kept.

    Args:
        changes: New values by key; a map is merged into the map that is there.
    """
    yaml = YAML()
    config = yaml.load((ROOT / "base-config.yaml").read_text())
    for key, value in changes.items():
        if isinstance(value, Mapping) and isinstance(config.get(key), dict):
            config[key].update(value)
        else:
            config[key] = value
    text = io.StringIO()
    yaml.dump(config, text)
    return text.getvalue()


class Stack:
    """All services, running from `async with` on until its end, whatever ends it.

    Every start begins with an empty world: what an earlier run left running in the folder is
    stopped and its data is removed.

    Args:
        folder: Where all data and logs go; at most one live stack can have it.
        scripted_model: Whether to run the scripted model; `model.url` is its address.
        postgres_bin_dir: Another PostgreSQL's `bin` folder.
        sqlite_plugins: Give plugins SQLite instead of PostgreSQL, as a wrong set-up would.
        variables: Environment variables for maubot, such as API keys.
        progress: Is told in a line what starts and what is ready.

    Attributes:
        postgres: None where `LLMBOT_POSTGRES` names one that runs already.
        synapse: The homeserver.
        maubot: The bot framework.
        model: None without the scripted model.
        admin: A logged-in client of maubot's management API.
        database_url: The PostgreSQL address, for any client.
    """

    def __init__(
        self,
        folder: Path = DEFAULT_FOLDER,
        *,
        scripted_model: bool = True,
        postgres_bin_dir: Path = BUNDLED,
        sqlite_plugins: bool = False,
        variables: Mapping[str, str] | None = None,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._progress = progress
        self._cleanup = AsyncExitStack()
        self._own_schemas: set[str] = set()
        self._bots: dict[str, Bot] = {}
        self.folder = folder = folder.resolve()
        own_postgres = os.environ.get(OWN_POSTGRES, "")
        self.postgres = None if own_postgres else Postgres(folder, postgres_bin_dir)
        self.database_url = self.postgres.url if self.postgres else own_postgres
        self.synapse = Synapse(folder)
        self.model = ScriptedModel(folder) if scripted_model else None
        self.maubot = MaubotServer(
            folder, None if sqlite_plugins else self.database_url, variables or {}
        )
        self.admin: MaubotAdmin

    @property
    def services(self) -> list[Service]:
        """The services in the order in which they are stopped."""
        services = (self.maubot, self.model, self.synapse, self.postgres)
        return [service for service in services if service]

    async def __aenter__(self) -> "Self":
        try:
            await self._cleanup.enter_async_context(empty_world(self.folder))
            self._cleanup.push_async_callback(self._stop_services)
            await self._start_services()
            self.admin = MaubotAdmin(self.maubot.url, ADMIN, self.maubot.admin_password)
            self._cleanup.push_async_callback(self.admin.close)
            await self.admin.login()
        except BaseException:
            await self._cleanup.aclose()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._cleanup.aclose()

    async def _start_services(self) -> None:
        names = [service.name for service in reversed(self.services)]
        self._progress(f"starting {', '.join(names)} ...")
        others = (self._start(service) for service in (self.synapse, self.model) if service)
        tasks = [asyncio.ensure_future(c) for c in (self._start_database_and_maubot(), *others)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _start_database_and_maubot(self) -> None:
        if self.postgres:
            await self._start(self.postgres)
        elif not await can_connect(self.database_url):
            raise StackError(f"the PostgreSQL that {OWN_POSTGRES} names does not answer")
        await self._start(self.maubot)

    async def _start(self, service: Service) -> None:
        begin = time.monotonic()
        await service.start()
        self._progress(f"  {service.name} is ready ({time.monotonic() - begin:.1f} s)")

    async def _stop_services(self) -> None:
        try:
            for service in self.services:
                await service.stop()
            for schema in self._own_schemas:
                await self._drop_own_schema(schema)
        finally:
            # Also when this is interrupted, nothing may stay behind.
            for service in self.services:
                service.kill()

    async def watch(self) -> None:
        """Never return; raise `StackError` as soon as a service has died unasked."""
        while True:
            for service in self.services:
                service.check()
            await asyncio.sleep(POLL_SECONDS)

    async def watched(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Do some work and return its result, but give up as soon as a service has died.

        Raises:
            StackError: A service died; otherwise whatever the work raises.
        """
        task, watcher = asyncio.ensure_future(work), asyncio.ensure_future(self.watch())
        try:
            await asyncio.wait({task, watcher}, return_when=asyncio.FIRST_COMPLETED)
            if not watcher.done() and task.exception():
                # A service that dies breaks connections first; its death is the better reason.
                await asyncio.wait({watcher}, timeout=1)
            if watcher.done():
                await watcher
            return await task
        finally:
            for pending in (task, watcher):
                pending.cancel()
            await asyncio.gather(task, watcher, return_exceptions=True)

    async def member(self, name: str) -> Member:
        """Register a person and return them, syncing; they are closed with the stack."""
        member = Member(self.synapse.url, await self.synapse.register(name))
        self._cleanup.push_async_callback(member.close)
        return member

    async def setup_bot(
        self,
        mbp: Path,
        config: Mapping[str, Any] | str,
        instance_id: str = "llmbot",
        username: str | None = None,
    ) -> Bot:
        """Do what an admin does to get a bot: account, plugin, client, instance.

        Args:
            mbp: The built plugin.
            config: The instance's config as YAML text, or what to change in the base config.
            instance_id: The instance's id, which gives the database schema its name.
            username: The bot's name on the homeserver; None for the instance's id.

        Raises:
            StackError: A step was refused, or the instance did not start.
        """
        text = config if isinstance(config, str) else instance_config(config)
        await self._take_schema(self.schema(instance_id))
        account = await self.synapse.register(username or instance_id)
        await self.admin.upload_plugin(mbp)
        await self.admin.put_client(
            account.user_id,
            homeserver=self.synapse.url,
            access_token=account.access_token,
            device_id=account.device_id,
            autojoin=True,
        )
        bot = self._bots[instance_id] = Bot(account, instance_id)
        instance = await self.admin.put_instance(
            instance_id, type=_plugin_id(mbp), primary_user=account.user_id, config=text
        )
        if not instance["started"]:
            raise self.maubot.error(f"did not start the instance {instance_id}")
        await self._until_listening(bot, "")
        return bot

    async def _until_listening(self, bot: Bot, position: str) -> None:
        """Wait until a client's sync has got past a position: maubot ignores the first one."""

        async def listening() -> bool:
            return self.maubot.sync_position(bot.user_id) != position

        await wait_until(listening, 30, f"maubot to follow {bot.user_id}'s rooms")

    async def restart_maubot(self, *, kill: bool = False) -> None:
        """Stop maubot (or kill it outright), start it, and wait until its bots listen again.

        maubot ignores what the first sync after a start brings, and that sync waits for news.
        So each bot's own account data is touched: what is sent after this is heard.
        """
        if kill:
            self.maubot.kill()
        else:
            await self.maubot.stop()
        positions = {bot: self.maubot.sync_position(bot.user_id) for bot in self._bots.values()}
        await self.maubot.start()
        for bot, position in positions.items():
            await self._touch_account(bot)
            await self._until_listening(bot, position)

    async def _touch_account(self, bot: Bot) -> None:
        account = Member(self.synapse.url, bot.account)
        try:
            await account.client.set_account_data("dev.llmbot.devstack", {"at": time.time()})
        finally:
            await account.close()

    @staticmethod
    def schema(instance_id: str = "llmbot") -> str:
        """Return the name of the database schema that maubot gives an instance."""
        return f"mbp_{instance_id}"

    async def connect(self, instance_id: str = "llmbot") -> asyncpg.Connection:
        """Return a new connection that sees an instance's tables; the caller closes it."""
        return await connect(self.database_url, self.schema(instance_id))

    async def _take_schema(self, schema: str) -> None:
        """In somebody's own PostgreSQL, make an instance's schema and mark it as made here.

        Raises:
            StackError: The schema exists and no dev stack made it: it may be a real bot's.
        """
        if self.postgres:
            return
        await self._drop_own_schema(schema)
        connection = await connect(self.database_url)
        try:
            await connection.execute(
                f'CREATE SCHEMA "{schema}"; COMMENT ON SCHEMA "{schema}" IS \'{SCHEMA_NOTE}\''
            )
            self._own_schemas.add(schema)
        except asyncpg.exceptions.DuplicateSchemaError:
            raise StackError(
                f"the database that {OWN_POSTGRES} names already has a schema {schema};"
                " name an empty database"
            ) from None
        finally:
            await connection.close()

    async def _drop_own_schema(self, schema: str) -> None:
        connection = await connect(self.database_url)
        try:
            note = await connection.fetchval(
                "SELECT obj_description(oid) FROM pg_namespace WHERE nspname = $1", schema
            )
            if note == SCHEMA_NOTE:
                await connection.execute(f'DROP SCHEMA "{schema}" CASCADE')
        finally:
            await connection.close()


def _plugin_id(mbp: Path) -> str:
    with zipfile.ZipFile(mbp) as archive:
        return str(YAML(typ="safe").load(archive.read("maubot.yaml"))["id"])
