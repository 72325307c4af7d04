"""Pictures of the page for the documentation, taken at the steps that the test goes through."""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image
from playwright.async_api import Locator, Page

# Names the folder for the pictures; without it none are taken (`make screenshots` sets it).
FOLDER = "LLMBOT_SCREENSHOTS"


class Pictures:
    """Takes pictures where there is a folder for them.

    Args:
        page: What is shown.
        folder: Where the files go; None takes no pictures.
    """

    def __init__(self, page: Page, folder: Path | None) -> None:
        self._page = page
        self._folder = folder

    async def take(self, name: str, *hidden: Locator) -> None:
        """Save what the browser shows as `<name>.png`.

        Args:
            name: The file's name without its ending.
            hidden: What nobody may read; it is covered.
        """
        if self._folder is None:
            return
        png = await self._page.screenshot(
            animations="disabled", caret="hide", mask=list(hidden), mask_color="#bbbbbb"
        )
        self._folder.mkdir(parents=True, exist_ok=True)
        with Image.open(io.BytesIO(png)) as picture:
            # 64 colours are plenty for a page of text, and a third of the bytes.
            few_colours = picture.convert("RGB").quantize(64, dither=Image.Dither.NONE)
            few_colours.save(self._folder / f"{name}.png", optimize=True)
