import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from devstack import process
from devstack.process import Service, StackError, choose_port, empty_world, port_is_free

SERVER = """
import http.server, signal, sys, subprocess
from http.server import SimpleHTTPRequestHandler as Handler
if "stubborn" in sys.argv: signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "fail" in sys.argv: raise OSError("the disk is full")
child = subprocess.Popen(["sleep", "1000"], start_new_session="session" in sys.argv)
open("child", "w").write(str(child.pid))
server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
server.serve_forever()
"""


class Web(Service):
    def __init__(self, world: Path, *words: str) -> None:
        super().__init__("web server", world, choose_port("LLMBOT_PORT_WEB"))
        self.words = words

    def command(self) -> Sequence[str]:
        return [sys.executable, "-c", SERVER, str(self.port), *self.words]

    async def is_ready(self) -> bool:
        return await process.http_answers(f"http://127.0.0.1:{self.port}/")

    def child(self) -> int:
        return int((self.folder / "child").read_text())


def is_running(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[Path]:
    async with empty_world(tmp_path / "world"):
        yield tmp_path / "world"


async def test_a_service_is_ready_when_it_answers_and_stops_with_all_it_started(
    world: Path,
) -> None:
    web = Web(world)
    await web.start()
    pid, child = web.pid, web.child()
    assert pid is not None
    assert await web.is_ready()
    await web.stop()
    assert not is_running(pid)
    assert not is_running(child)
    assert not web.pid_file.exists()
    await web.stop()


async def test_a_killed_service_comes_back_on_the_same_port(world: Path) -> None:
    web = Web(world)
    await web.start()
    web.kill()
    web.check()  # Killed on purpose: nothing is wrong.
    await web.start()
    assert await web.is_ready()
    await web.restart()
    assert await web.is_ready()
    await web.stop()


async def test_a_killed_service_takes_along_what_went_into_a_session_of_its_own(
    world: Path,
) -> None:
    web = Web(world, "session")
    await web.start()
    child = web.child()
    assert os.getpgid(child) == child
    web.kill()
    assert not is_running(child)


async def test_a_service_that_ends_at_once_says_why(world: Path) -> None:
    web = Web(world, "fail")
    with pytest.raises(
        StackError, match=r"^web server ended with exit status 1: OSError: the disk is full"
    ):
        await web.start()
    await web.stop()


async def test_a_service_that_dies_is_noticed(world: Path) -> None:
    web = Web(world)
    await web.start()
    assert web.pid is not None
    os.kill(web.pid, signal.SIGKILL)

    async def wait_for_news() -> None:
        while True:
            web.check()
            await asyncio.sleep(0.01)

    with pytest.raises(StackError, match="web server was ended by signal SIGKILL"):
        await asyncio.wait_for(wait_for_news(), 10)
    await web.stop()


async def test_a_service_that_ignores_the_signal_is_killed(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "STOP_LIMIT_SECONDS", 0.2)
    web = Web(world, "stubborn")
    await web.start()
    pid = web.pid
    assert pid is not None
    await web.stop()
    assert not is_running(pid)


async def test_a_taken_port_is_one_clear_line(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert not port_is_free(port)
        monkeypatch.setenv("LLMBOT_PORT_WEB", str(port))
        with pytest.raises(StackError, match=rf"port {port} \(from LLMBOT_PORT_WEB\) is taken"):
            Web(world)
        monkeypatch.delenv("LLMBOT_PORT_WEB")
        web = Web(world)
        web.port = port
        with pytest.raises(StackError, match=f"web server: port {port} is taken"):
            await web.start()


async def test_the_next_start_stops_what_a_killed_one_left(tmp_path: Path) -> None:
    folder = tmp_path / "world"
    async with empty_world(folder):
        killed = Web(folder)
        await killed.start()
        pid = killed.pid
        assert pid is not None
        # As after kill -9 of the stack: the service runs on and its pid file stays.
    async with empty_world(folder):
        assert not is_running(pid)
        assert [path.name for path in folder.iterdir()] == [process.LOCK_NAME]
    await killed.stop()


async def test_a_process_that_got_a_recycled_pid_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "world"
    async with empty_world(folder):
        (folder / "run").mkdir()
        innocent = await asyncio.create_subprocess_exec("sleep", "1000")
        note = f'{{"pid": {innocent.pid}, "created": 1000.0, "signal": 15}}'
        (folder / "run" / "old.pid").write_text(note)
        (folder / "run" / "unfinished.pid").write_text("{")
    async with empty_world(folder):
        assert innocent.returncode is None
        assert is_running(innocent.pid)
    innocent.kill()
    await innocent.wait()


async def test_two_live_stacks_cannot_share_a_folder(world: Path) -> None:
    with pytest.raises(StackError, match=r"another stack is running in .*world; stop it first"):
        async with empty_world(world):
            pass


async def test_files_of_somebody_else_are_not_removed(tmp_path: Path) -> None:
    (tmp_path / "letter").touch()
    with pytest.raises(StackError, match="is not empty and was not made by the dev stack"):
        async with empty_world(tmp_path):
            pass
    assert (tmp_path / "letter").exists()


def test_a_signal_lets_the_program_clean_up() -> None:
    cleaned = []

    async def main() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)

    with pytest.raises(KeyboardInterrupt):
        process.run_until_signal(main())
    assert cleaned
