"""maubot's web UI as an admin uses it: by clicking, typing and reading."""

from __future__ import annotations

from pathlib import Path

from playwright.async_api import Locator, Page, expect

from .pictures import Pictures


class MaubotUI:
    """The UI in a browser's page.

    Args:
        page: An empty page.
        url: maubot's base address.
        pictures: Takes pictures of the page.
    """

    def __init__(self, page: Page, url: str, pictures: Pictures) -> None:
        self.page = page
        self.pictures = pictures
        self._url = f"{url}/_matrix/maubot/"

    async def open(self) -> None:
        """Open the UI's first page."""
        await self.page.goto(self._url)

    async def log_in(self, name: str, password: str) -> None:
        """Log in and wait for the dashboard."""
        await self.page.get_by_placeholder("Username").fill(name)
        await self.page.get_by_placeholder("Password").fill(password)
        await self.page.get_by_role("button", name="Log in").click()
        await expect(self.page.locator(".dashboard .user")).to_have_text(name)

    async def begin(self, what: str) -> None:
        """Click the plus beside `instances`, `clients` or `plugins`."""
        await self.page.locator(f".{what}.list .title a").click()

    async def upload(self, mbp: Path) -> None:
        """Give the file to the upload box."""
        await self.page.locator(".upload-box input").set_input_files(mbp)

    def field(self, label: str) -> Locator:
        """Return the input or switch with this label."""
        return self.page.locator(f'[id="{label}"]')

    async def choose(self, label: str, choice: str) -> None:
        """Choose something from the list with this label."""
        await self.field(label).click()
        await self.page.locator('[id*="-option-"]').filter(has_text=choice).click()
        await expect(self.field(label)).to_contain_text(choice)

    async def enter(self, label: str, value: str) -> None:
        """Enter something into the list with this label that is not in it yet."""
        await self.field(label).click()
        await self.page.keyboard.type(value)
        await self.page.keyboard.press("Enter")
        await expect(self.field(label)).to_contain_text(value)

    async def create(self) -> None:
        """Click the button under the form."""
        await self.page.get_by_role("button", name="Create").click()

    async def config(self) -> str:
        """Return the text in the config editor, which draws only the lines in view."""
        text = await self.page.locator("#config").evaluate("node => node.env.editor.getValue()")
        assert isinstance(text, str)
        return text

    async def go_to(self, key: str, after: str = "") -> str:
        """Put the cursor in front of the first line with a key, and return the line.

        Args:
            key: The setting, at any indentation.
            after: A key further up, for one that stands in the file more than once.
        """
        lines = (await self.config()).split("\n")
        keys = [line.lstrip().partition(":")[0] for line in lines]
        number = keys.index(key, keys.index(after) if after else 0)
        await self.page.locator("#config .ace_content").click()
        await self.page.keyboard.press("Control+Home")
        for _ in range(number):
            await self.page.keyboard.press("ArrowDown")
        return lines[number]

    async def retype(self, key: str, new: str, after: str = "") -> None:
        """Type something over a line, found as in `go_to`, at the same indentation."""
        line = await self.go_to(key, after)
        new = line[: len(line) - len(line.lstrip())] + new
        await self.page.keyboard.press("Shift+End")
        await self.page.keyboard.press("Delete")
        await self.page.keyboard.type(new)
        assert new in (await self.config()).split("\n")

    async def save(self) -> None:
        """Save the instance and wait until maubot has accepted it."""
        async with self.page.expect_response(
            lambda response: response.request.method == "PUT" and "/instance/" in response.url
        ) as answer:
            await self.page.get_by_role("button", name="Save").click()
        assert (await answer.value).ok
        await expect(self.page.get_by_role("button", name="Save")).to_be_enabled()
        await expect(self.page.locator(".instance > .error")).to_be_empty()

    async def open_log(self) -> None:
        """Open the log view by the button at the side: the one of an instance greys all lines."""
        await self.page.locator("nav .open-log").click()
        await expect(self.page.locator(".log")).to_be_visible()

    def log_line(self, level: str, text: str) -> Locator:
        """Return the lines of the log view with this level and text."""
        row = self.page.locator(f".log .row.{level.lower()}")
        return row.filter(has=self.page.get_by_text(level, exact=True), has_text=text)

    async def close_log(self) -> None:
        """Close the log view by a click beside it; its button is for narrow screens."""
        await self.page.mouse.click(5, 400)
        await expect(self.page.locator(".log")).to_have_count(0)

    async def open_database(self) -> None:
        """Open the database view from an instance's page."""
        await self.page.get_by_role("link", name="View database").click()

    async def open_table(self, name: str) -> None:
        """Open a table in the database view."""
        await self.page.locator(".tables").get_by_role("link", name=name, exact=True).click()
        await expect(self.page.locator(".query input")).to_have_value(
            f'SELECT * FROM "{name}" LIMIT 100'
        )

    def table_row(self, fact: str) -> Locator:
        """Return the rows of the open table with a cell that says this."""
        cell = self.page.get_by_role("cell", name=fact, exact=True)
        return self.page.locator(".table tbody tr").filter(has=cell)
