"""Keep the transcript in README.md what the demo really prints: `python -m devstack.readme`."""

import asyncio
import contextlib
import io
import re
import sys
import tempfile
from pathlib import Path

from devstack.build import ROOT
from devstack.demo import SCRIPTED, perform
from devstack.stack import Stack

README = ROOT / "README.md"
BEGIN, END = "<!-- demo transcript: begin -->", "<!-- demo transcript: end -->"
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


async def transcript() -> str:
    """Play the demo and return its conversation, with the same date whenever it is played."""
    output = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(output):
        async with Stack(Path(folder) / "stack") as stack:
            config = {"assistantModel": SCRIPTED, "imageModel": SCRIPTED}
            await perform(stack, config, once=True)
    text = output.getvalue()
    return DATE.sub("2026-12-01", text[text.index("--- 1.") :]).rstrip()


def in_readme() -> str:
    """Return the transcript that README.md shows."""
    text = README.read_text()
    block = text[text.index(BEGIN) + len(BEGIN) : text.index(END)]
    return block.strip().removeprefix("```text").removesuffix("```").strip("\n")


def main() -> int:
    """Put a new transcript into README.md."""
    text = README.read_text()
    before, after = text[: text.index(BEGIN)], text[text.index(END) :]
    block = f"{BEGIN}\n```text\n{asyncio.run(transcript())}\n```\n"
    README.write_text(before + block + after)
    return 0


if __name__ == "__main__":
    sys.exit(main())
