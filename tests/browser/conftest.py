"""A browser, and a stack in which nothing is set up yet, whose web UI it shows."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, async_playwright

from devstack.process import StackError
from devstack.stack import Stack

from .maubot_ui import MaubotUI
from .pictures import FOLDER, Pictures

# Without its sandbox it runs as root and in containers as well; the rest keeps it to itself.
ARGUMENTS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run"
    " --disable-background-networking --disable-component-update --disable-sync"
)


@pytest.fixture
async def stack(tmp_path: Path) -> AsyncIterator[Stack]:
    async with Stack(tmp_path / "stack") as stack:
        yield stack


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        raise StackError("chromium was not found; install your system's package of it")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=chromium, args=ARGUMENTS.split()
        )
        yield browser
        await browser.close()


@pytest.fixture
async def ui(stack: Stack, browser: Browser) -> MaubotUI:
    folder = os.environ.get(FOLDER, "")
    page = await browser.new_page(viewport={"width": 1200, "height": 800}, locale="en-GB")
    return MaubotUI(page, stack.maubot.url, Pictures(page, Path(folder) if folder else None))
