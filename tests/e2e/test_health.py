"""What operators learn from the running bot."""

from __future__ import annotations

import re

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from devstack.build import ROOT
from devstack.process import wait_until

from .world import SECONDS, Person, World


async def test_the_start_is_one_info_line_that_says_how_the_bot_is_set_up(world: World) -> None:
    (version,) = re.findall(r"^version: (.+)$", (ROOT / "maubot.yaml").read_text(), re.MULTILINE)
    log = world.log()
    lines = [line for line in log.splitlines() if "Started: llmbot " in line]
    # Other tests restart the instance.
    assert len(lines) == log.count("Started instance of dev.llmbot")
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


TOKEN = "a-token-of-16-or-more"


async def _metrics(world: World, authorization: str | None = None) -> tuple[int, str]:
    address = f"{world.stack.maubot.url}/_matrix/maubot/plugin/{world.bot.instance_id}/metrics"
    headers = {} if authorization is None else {"Authorization": authorization}
    async with aiohttp.ClientSession() as http, http.get(address, headers=headers) as response:
        return response.status, await response.text()


async def test_metrics_are_off_until_there_is_a_token_and_only_its_bearer_reads_them(
    world: World,
) -> None:
    assert (await _metrics(world, "Bearer "))[0] == 404
    await world.configure(metricsToken=TOKEN)
    for wrong in (None, "", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN):
        assert (await _metrics(world, wrong))[0] == 401
    assert (await _metrics(world, f"Bearer {TOKEN}"))[0] == 200
    await world.configure(metricsToken="")
    assert (await _metrics(world, f"Bearer {TOKEN}"))[0] == 404


async def test_metrics_count_a_turn_and_its_pass_and_name_nobody(
    world: World, ada: Person
) -> None:
    await world.configure(metricsToken=TOKEN, memoryPromotionThreshold=1)

    async def samples() -> dict[str, float]:
        _, text = await _metrics(world, f"Bearer {TOKEN}")
        assert ada.user_id not in text
        assert "Berlin" not in text
        families = text_string_to_metric_families(text)
        return {
            sample.name: sample.value
            for family in families
            for sample in family.samples
            if not sample.labels
        }

    before = await samples()
    await ada.tell("!ask I live in Berlin.")
    await ada.until(memories=["Lives in Berlin"])

    async def counted() -> bool:
        return (await samples())["llmbot_promotions_total"] > before["llmbot_promotions_total"]

    await wait_until(counted, SECONDS, "the pass to be counted")
    after = await samples()
    assert after["llmbot_turns_total"] == before["llmbot_turns_total"] + 1
    assert after["llmbot_start_time_seconds"] == before["llmbot_start_time_seconds"] > 0
