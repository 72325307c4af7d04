"""The stack with a tiny plugin: what an admin sets up works, and outlives each service's crash."""

import asyncio
import os
import signal
import sqlite3
import zipfile
from pathlib import Path

import aiohttp
import psutil
import pytest

from devstack.process import StackError
from devstack.stack import Stack

ECHO = """
from maubot import Plugin
from maubot.handlers import command
from mautrix.util.async_db import UpgradeTable
from mautrix.util.config import BaseProxyConfig

tables = UpgradeTable()

@tables.register(description="First")
async def first(connection, scheme):
    await connection.execute("CREATE TABLE said (text TEXT)")

class Config(BaseProxyConfig):
    def do_update(self, helper):
        helper.copy("prefix")

class Echo(Plugin):
    @classmethod
    def get_config_class(cls):
        return Config

    @classmethod
    def get_db_upgrade_table(cls):
        return tables

    async def start(self):
        self.config.load_and_update()

    def on_external_config_update(self):
        self.config.load_and_update()

    @command.new("echo")
    @command.argument("text", pass_raw=True)
    async def echo(self, event, text):
        await self.database.execute("INSERT INTO said VALUES ($1)", text)
        await event.reply(self.config["prefix"] + text)
"""
META = """
maubot: 0.6.0
id: dev.llmbot.echo
version: 0.1.0
license: MIT
modules: [echo]
main_class: Echo
config: true
database: true
database_type: asyncpg
extra_files: [base-config.yaml]
"""


def echo_plugin(folder: Path, source: str = ECHO) -> Path:
    mbp = folder / "echo.mbp"
    with zipfile.ZipFile(mbp, "w") as archive:
        archive.writestr("maubot.yaml", META)
        archive.writestr("base-config.yaml", "prefix: ''\n")
        archive.writestr("echo/__init__.py", source)
    return mbp


async def test_a_bot_answers_before_and_after_each_crash(tmp_path: Path) -> None:
    mbp = echo_plugin(tmp_path)
    progress: list[str] = []
    async with Stack(tmp_path / "world", scripted_model=False, progress=progress.append) as stack:
        bot = await stack.setup_bot(mbp, "prefix: 'you said '\n", "echo")
        ada = await stack.member("ada")
        room_id = await ada.create_room(bot.user_id)
        await ada.wait_for_member(room_id, bot.user_id)

        async def answer(text: str) -> str:
            event_id = await ada.say(room_id, f"!echo {text}")
            return (await ada.wait_for_reply(event_id)).body

        assert await answer("one") == "you said one"
        await stack.admin.set_config("echo", "prefix: 'heard '\n")
        assert await answer("two") == "heard two"
        await stack.admin.upload_plugin(mbp)
        with pytest.raises(StackError, match="HTTP 409: A plugin with the same ID"):
            await stack.admin.upload_plugin(mbp, allow_override=False)
        await stack.restart_maubot()
        assert await answer("three") == "heard three"
        await stack.restart_maubot(kill=True)
        assert await answer("four") == "heard four"
        assert stack.postgres
        stack.postgres.kill()
        await stack.postgres.start()
        stack.synapse.kill()
        await stack.synapse.start()
        assert await answer("five") == "heard five"

        connection = await stack.connect("echo")
        said = [row["text"] for row in await connection.fetch("SELECT text FROM said")]
        await connection.close()
        assert said == ["one", "two", "three", "four", "five"]

        with pytest.raises(StackError, match="Synapse did not register ada: User ID already"):
            await stack.member("ada")
        await stack.admin.delete_instance("echo")
        with pytest.raises(StackError, match="HTTP 404: Plugin instance not found"):
            await stack.admin.get_instance("echo")

        pids = [service.pid for service in stack.services]
        assert stack.maubot.pid is not None
        os.kill(stack.maubot.pid, signal.SIGKILL)
        with pytest.raises(StackError, match="maubot was ended by signal SIGKILL"):
            await stack.watched(asyncio.sleep(60))
    assert not any(psutil.pid_exists(pid or 0) for pid in pids)
    assert progress[0] == "starting PostgreSQL, Synapse, maubot ..."
    assert len(progress) == 4


async def test_a_plugin_that_does_not_start_is_one_clear_line_and_sqlite_can_be_had(
    tmp_path: Path,
) -> None:
    async with Stack(tmp_path / "world", scripted_model=False, sqlite_plugins=True) as stack:
        await stack.setup_bot(echo_plugin(tmp_path), "prefix: ''\n", "echo")
        file = stack.maubot.folder / "plugins" / "echo.db"
        assert sqlite3.connect(file).execute("SELECT * FROM said").fetchall() == []

        broken = ECHO.replace("self.config.load_and_update()", "raise ValueError('no luck')", 1)
        mbp = echo_plugin(tmp_path, broken)
        with pytest.raises(
            StackError, match="maubot did not start the instance other: ValueError: no luck"
        ):
            await stack.setup_bot(mbp, "prefix: ''\n", "other")


async def test_an_own_postgres_keeps_what_is_not_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mbp = echo_plugin(tmp_path)
    async with Stack(tmp_path / "own", scripted_model=False) as own:
        monkeypatch.setenv("LLMBOT_POSTGRES", own.database_url)
        connection = await own.connect("echo")
        await connection.execute("CREATE SCHEMA mbp_real")
        schemas = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'mbp_%' ORDER BY 1"
        async with Stack(tmp_path / "world", scripted_model=False) as stack:
            assert stack.postgres is None
            await stack.setup_bot(mbp, "prefix: ''\n", "echo")
            found = [row[0] for row in await connection.fetch(schemas)]
            assert found == ["mbp_echo", "mbp_real"]
            with pytest.raises(StackError, match="already has a schema mbp_real"):
                await stack.setup_bot(mbp, "prefix: ''\n", "real")
        assert [row[0] for row in await connection.fetch(schemas)] == ["mbp_real"]
        await connection.close()
    with pytest.raises(StackError, match="the PostgreSQL that LLMBOT_POSTGRES names does not"):
        async with Stack(tmp_path / "world", scripted_model=False):
            pass


async def test_keys_of_the_shell_reach_maubot_only_when_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "of the shell")
    given = Stack(tmp_path, variables={"OPENAI_API_KEY": "given"}).maubot.environment()
    assert given["OPENAI_API_KEY"] == "given"
    assert "GEMINI_API_KEY" not in given
    assert given["PATH"]


async def test_the_scripted_model_lists_its_models(tmp_path: Path) -> None:
    async with Stack(tmp_path / "world") as stack, aiohttp.ClientSession() as http:
        assert stack.model
        async with http.get(f"{stack.model.url}/models") as response:
            assert (await response.json())["data"]
