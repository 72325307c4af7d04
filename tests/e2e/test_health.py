"""What operators learn from the running bot."""

from __future__ import annotations

import re

from devstack.build import ROOT

from .world import Person, World


async def test_the_start_is_one_info_line_that_says_how_the_bot_is_set_up(world: World) -> None:
    (version,) = re.findall(r"^version: (.+)$", (ROOT / "maubot.yaml").read_text(), re.MULTILINE)
    lines = [line for line in world.log().splitlines() if "Started: " in line]
    assert len(lines) == 1
    assert "INFO" in lines[0]
    assert f"Started: llmbot {version}; models: assistant/code/memory/verse " in lines[0]
    assert "; keys: " in lines[0]
    assert "; memory: threshold 2, candidate TTL 14 days" in lines[0]


def _turns(answer: str) -> int:
    (count,) = re.findall(r"turns (\d+)", answer)
    return int(count)


async def test_llmbot_tells_admins_alone_and_is_no_turn(world: World, ada: Person) -> None:
    assert (await ada.tell("!llmbot")).body == "Only this bot's operators can see that."
    await world.configure(admins=[ada.user_id])
    before = (await ada.tell("!llmbot")).body
    assert before.startswith("llmbot ")
    assert "threshold 2" in before
    assert _turns((await ada.tell("!llmbot")).body) == _turns(before)
    assert world.seen("chat") == []
    assert world.seen("extraction") == []
    await ada.tell("!ask hello")
    assert _turns((await ada.tell("!llmbot")).body) == _turns(before) + 1
