"""The site of the docs, read from the file system in a real browser."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Request, expect

from devstack.build import ROOT

SECONDS = 30.0


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Build the site into a folder of its own."""
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"],
        check=True,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    return tmp_path / "site"


def pages(site: Path) -> list[Path]:
    found = sorted(path for path in site.rglob("*.html") if path.name != "404.html")
    assert site / "index.html" in found
    return found


@pytest.fixture
async def page(browser: Browser) -> Page:
    return await browser.new_page(viewport={"width": 400, "height": 800})


async def test_every_page_is_whole_without_a_network_and_fits_a_phone(
    site: Path, page: Page
) -> None:
    asked: list[str] = []
    failed: list[str] = []

    def note(request: Request) -> None:
        # The next page may come before a page has read its search index.
        if request.failure != "net::ERR_ABORTED":
            failed.append(f"{request.url}: {request.failure}")

    page.on("request", lambda request: asked.append(request.url))
    page.on("requestfailed", note)
    page.on("pageerror", lambda error: failed.append(str(error)))
    for path in pages(site):
        await page.goto(path.as_uri())
        assert await page.evaluate("document.documentElement.scrollWidth") == 400, path
    assert failed == []
    assert [url for url in asked if not url.startswith(site.as_uri())] == []


async def test_the_search_finds_a_setting(site: Path, browser: Browser) -> None:
    page = await browser.new_page(viewport={"width": 1280, "height": 800})
    await page.goto((site / "index.html").as_uri())
    await page.get_by_role("textbox", name="Search").click()
    await page.keyboard.type("memoryMentionGapMinutes")
    found = page.locator("a.md-search-result__link[href*='/settings.html']").first
    await expect(found).to_be_visible(timeout=SECONDS * 1000)
    await found.click()
    await expect(page).to_have_url(re.compile(re.escape((site / "settings.html").as_uri())))
