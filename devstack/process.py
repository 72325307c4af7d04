"""Child processes: start them, know when they are ready, notice when they die, stop them."""

import abc
import asyncio
import contextlib
import fcntl
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO, TypeVar

import aiohttp
import psutil

Result = TypeVar("Result")

POLL_SECONDS = 0.05
# maubot does not end by itself if the signal meets it within certain calls, or if a plugin with a
# SQLite database failed to start: its database thread lives on. So this is no rare case.
STOP_LIMIT_SECONDS = 5.0
# Two processes with the same id whose start times differ by more than this are not the same.
SAME_PROCESS_SECONDS = 2.0
# Below the range from which systems take ports for outgoing connections, so that no connection
# can grab a port between the moment it was found free and the moment a service listens on it.
PORTS = range(20000, 32000)
LOCK_NAME = "devstack.lock"
TELLING_LINE = re.compile(r"\b(FATAL|PANIC|CRITICAL|ERROR|\w*Error|\w*Exception)\b")


class StackError(Exception):
    """Says in one line what failed and, where it is known, why."""


async def wait_until(condition: Callable[[], Awaitable[bool]], seconds: float, goal: str) -> None:
    """Wait until a condition holds, looking again every `POLL_SECONDS`.

    Args:
        condition: Looks once.
        seconds: How long to go on looking.
        goal: What is waited for, as the end of "waited 5 s for ...".

    Raises:
        StackError: It did not come to hold in time.
    """
    end = time.monotonic() + seconds
    while not await condition():
        if time.monotonic() > end:
            raise StackError(f"waited {seconds:g} s for {goal}")
        await asyncio.sleep(POLL_SECONDS)


async def http_answers(url: str) -> bool:
    """Tell whether a GET of this address is answered with status 200."""
    timeout = aiohttp.ClientTimeout(total=5)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as http, http.get(url) as response:
            return response.status == 200
    except (aiohttp.ClientError, OSError, asyncio.TimeoutError):
        return False


def port_is_free(port: int) -> bool:
    """Tell whether a service could listen on this loopback port now."""
    with socket.socket() as probe:
        # As servers do: connections that are still closing do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def choose_port(variable: str) -> int:
    """Return the port that an environment variable fixes, else a free one.

    Raises:
        StackError: The variable holds no port number, or a port that is taken.
    """
    wanted = os.environ.get(variable, "")
    if not wanted:
        return next(p for p in random.sample(PORTS, len(PORTS)) if port_is_free(p))
    if not wanted.isdecimal() or not 0 < int(wanted) < 65536:
        raise StackError(f"{variable} must be a port number, not {wanted!r}")
    if not port_is_free(int(wanted)):
        raise StackError(f"port {wanted} (from {variable}) is taken by another program")
    return int(wanted)


def _belongs(process: psutil.Process, group: int) -> bool:
    try:
        return os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE
    except (OSError, psutil.NoSuchProcess):
        return False


def _group_is_alive(group: int) -> bool:
    """Tell whether a process group has a member that still runs (a zombie does not)."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return any(_belongs(process, group) for process in psutil.process_iter())


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _descendants(pid: int) -> list[psutil.Process]:
    """Return what a process has started, and what that has, in whatever groups these are."""
    try:
        return list(psutil.Process(pid).children(recursive=True))
    except psutil.NoSuchProcess:
        return []


def _kill_outright(processes: Sequence[psutil.Process]) -> None:
    """Kill processes and wait until none of them runs any more."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    deadline = time.monotonic() + STOP_LIMIT_SECONDS
    while any(_runs(process) for process in processes) and time.monotonic() < deadline:
        time.sleep(0.01)


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


async def _stop_group(group: int, stop_signal: int, name: str) -> None:
    """Ask a group's leader to stop, at most `STOP_LIMIT_SECONDS` long, then kill what is left."""

    async def leader_gone() -> bool:
        return not (psutil.pid_exists(group) and _belongs(psutil.Process(group), group))

    async def gone() -> bool:
        return not _group_is_alive(group)

    with contextlib.suppress(ProcessLookupError):
        os.kill(group, stop_signal)
    with contextlib.suppress(StackError):
        await wait_until(leader_gone, STOP_LIMIT_SECONDS, f"{name} to stop")
    _kill_group(group)
    await wait_until(gone, STOP_LIMIT_SECONDS, f"{name} to stop after SIGKILL")


class Service(abc.ABC):
    """A child process that leads its own session, so that it and all it starts stop together.

    Its output goes to `log_file`. Its `pid_file` lets a later run stop it if this process is
    killed outright. A subclass says how to run it and how to see that it is ready.

    Args:
        name: What people call it, e.g. "PostgreSQL".
        world: The stack's data folder; the service's own folder is made inside.
        port: The loopback port it listens on, the same after every restart.
        stop_signal: What makes it stop in good order.
    """

    def __init__(
        self, name: str, world: Path, port: int, stop_signal: int = signal.SIGTERM
    ) -> None:
        self.name = name
        self.port = port
        self.stop_signal = stop_signal
        short_name = name.lower().replace(" ", "-")
        self.folder = world / short_name
        self.log_file = world / "logs" / f"{short_name}.log"
        self.pid_file = world / "run" / f"{short_name}.pid"
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    @abc.abstractmethod
    def command(self) -> Sequence[str]:
        """Return the command line; it runs in `folder` and must stay in the foreground."""

    @abc.abstractmethod
    async def is_ready(self) -> bool:
        """Tell whether it does its work now; called again and again during start."""

    def environment(self) -> Mapping[str, str]:
        """Return the environment of the process."""
        return {**os.environ, "PYTHONUNBUFFERED": "1"}

    def prepare(self) -> None:  # noqa: B027 - some have nothing to prepare
        """Write what the process needs in `folder` before its first start; may block."""

    @property
    def log(self) -> str:
        """Everything it has written so far, over all its starts."""
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    @property
    def pid(self) -> int | None:
        """The process id while it is meant to run."""
        return self._process.pid if self._process else None

    async def start(self, seconds: float = 60.0) -> None:
        """Start it and wait until it is ready, at most so many seconds.

        Raises:
            StackError: Its port is taken, it ended, or it did not become ready in time.
        """
        if not port_is_free(self.port):
            raise StackError(f"{self.name}: port {self.port} is taken by another program")
        for parent in (self.log_file.parent, self.pid_file.parent):
            parent.mkdir(mode=0o700, exist_ok=True)
        if not self.folder.exists():
            self.folder.mkdir(mode=0o700)
            await asyncio.to_thread(self.prepare)
        self._launch()
        end = time.monotonic() + seconds
        while not await self.is_ready():
            self.check()
            if time.monotonic() > end:
                raise self.error(f"was not ready after {seconds:g} s")
            await asyncio.sleep(POLL_SECONDS)

    def _launch(self) -> None:
        with self.log_file.open("ab") as log:
            self._log_start = log.tell()
            try:
                self._process = subprocess.Popen(
                    self.command(),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=self.folder,
                    env=self.environment(),
                    start_new_session=True,
                )
            except OSError as error:
                raise StackError(f"{self.name} cannot be run: {error}") from error
        with contextlib.suppress(psutil.NoSuchProcess):
            created = psutil.Process(self._process.pid).create_time()
            note = {"pid": self._process.pid, "created": created, "signal": self.stop_signal}
            self.pid_file.write_text(json.dumps(note))

    def check(self) -> None:
        """Raise `StackError` if the process has ended without being asked to."""
        status = self._process.poll() if self._process else None
        if status is not None and status < 0:
            name = signal.Signals(-status).name
            raise StackError(f"{self.name} was ended by signal {name} (log: {self.log_file})")
        if status is not None:
            raise self.error(f"ended with exit status {status}")

    def error(self, what: str) -> StackError:
        """Return an error that says in one line what happened and what the log says of it."""
        text = self.log_file.read_bytes()[self._log_start :].decode(errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        telling = [line for line in lines if TELLING_LINE.search(line)] or lines
        reason = f": {telling[-1][:300]}" if telling else ""
        return StackError(f"{self.name} {what}{reason} (log: {self.log_file})")

    async def stop(self) -> None:
        """Stop it in good order, or by force if that takes too long; does nothing if stopped."""
        if not self._process:
            return
        if self._process.poll() is None:
            await _stop_group(self._process.pid, self.stop_signal, self.name)
        self.kill()

    def kill(self) -> None:
        """Kill it and all it started outright, as a crash would; does nothing if stopped."""
        if self._process:
            # PostgreSQL puts each of its processes into a group of its own, and a server that is
            # started before all have gone refuses the data that they still hold.
            started = _descendants(self._process.pid)
            _kill_group(self._process.pid)
            _kill_outright(started)
            self._forget()

    def _forget(self) -> None:
        assert self._process is not None
        self._process.wait()
        self._process = None
        self.pid_file.unlink(missing_ok=True)

    async def restart(self) -> None:
        """Stop it in good order and start it again, on the same port and data."""
        await self.stop()
        await self.start()


async def _stop_leftovers(world: Path) -> None:
    """Stop what an earlier run left running, by the pid files it left."""
    for pid_file in sorted((world / "run").glob("*.pid")):
        try:
            note = json.loads(pid_file.read_text())
            created = psutil.Process(note["pid"]).create_time()
        except (ValueError, psutil.NoSuchProcess):
            continue  # It was killed while it wrote the file, or its service is gone.
        if abs(created - note["created"]) < SAME_PROCESS_SECONDS:
            await _stop_group(note["pid"], note["signal"], pid_file.stem)


def _lock(folder: Path) -> TextIO:
    """Make a data folder if need be and take its lock, which lasts until the file is closed."""
    lock_file = folder / LOCK_NAME
    try:
        if folder.exists() and not lock_file.exists() and any(folder.iterdir()):
            raise StackError(f"{folder} is not empty and was not made by the dev stack")
        # Others may pass through but not look around: as root, PostgreSQL runs as another user.
        folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        lock = lock_file.open("a")
    except OSError as error:
        raise StackError(f"cannot keep data in {folder}: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise StackError(f"another stack is running in {folder}; stop it first") from None
    return lock


def _clear(folder: Path) -> None:
    """Remove all from a data folder but its lock."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != LOCK_NAME:
            path.unlink()


@contextlib.asynccontextmanager
async def empty_world(folder: Path) -> AsyncIterator[None]:
    """Take a data folder for this process alone, stop what still runs from it, and empty it.

    Raises:
        StackError: Another live stack has it, or it holds files that no stack made.
    """
    with _lock(folder):
        await _stop_leftovers(folder)
        await asyncio.to_thread(_clear, folder)
        yield


def run_until_signal(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a program's main coroutine; SIGINT and SIGTERM cancel it, so that it cleans up.

    Raises:
        KeyboardInterrupt: One of the two signals came.
    """

    async def with_signals() -> Result:
        task = asyncio.ensure_future(main)
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        return await task

    try:
        return asyncio.run(with_signals())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
