"""What operators learn from the running bot."""

from __future__ import annotations

import re

from devstack.build import ROOT

from .world import World


async def test_the_start_is_one_info_line_that_says_how_the_bot_is_set_up(world: World) -> None:
    (version,) = re.findall(r"^version: (.+)$", (ROOT / "maubot.yaml").read_text(), re.MULTILINE)
    lines = [line for line in world.log().splitlines() if "Started: " in line]
    assert len(lines) == 1
    assert "INFO" in lines[0]
    assert f"Started: llmbot {version}; models: assistant/code/memory/verse " in lines[0]
    assert "; keys: " in lines[0]
    assert "; memory: threshold 2, candidate TTL 14 days" in lines[0]
