"""An admin's first ten minutes with llmbot, in maubot's real web UI in a real browser."""

from __future__ import annotations

from pathlib import Path

from playwright.async_api import expect
from ruamel.yaml import YAML

from devstack.build import ROOT, build
from devstack.maubot_server import ADMIN
from devstack.member import Member
from devstack.process import wait_until
from devstack.stack import Stack

from .maubot_ui import MaubotUI

BASE_CONFIG = (ROOT / "base-config.yaml").read_text()
PLUGIN = "dev.llmbot"
SECONDS = 30.0


def comments(config: str) -> list[str]:
    return [line for line in config.splitlines() if line.lstrip().startswith("#")]


async def test_from_the_login_to_both_tables(ui: MaubotUI, stack: Stack, tmp_path: Path) -> None:
    assert stack.model is not None
    mbp = build(tmp_path)
    account = await stack.synapse.register("llmbot")
    ada = await stack.member("ada")

    async def ask(text: str) -> str:
        event_id = await ada.say(room_id, text)
        return (await ada.wait_for_reply(event_id, SECONDS)).body

    await ui.open()
    await ui.log_in(ADMIN, stack.maubot.admin_password)

    await ui.begin("plugins")
    await ui.upload(mbp)
    await expect(ui.field("ID")).to_have_value(PLUGIN)
    await ui.pictures.take("maubot-plugin")

    await ui.begin("clients")
    await ui.field("User ID").fill(account.user_id)
    await ui.enter("Homeserver", stack.synapse.url)
    await ui.field("Access token").fill(account.access_token)
    await ui.field("Device ID").fill(account.device_id)
    await ui.pictures.take("maubot-client", ui.field("Access token"))
    await ui.create()
    await expect(ui.page.locator(".started-container")).to_have_text("Started")

    await ui.begin("instances")
    await ui.field("ID").fill("llmbot")
    await ui.choose("Primary user", "llmbot")
    await ui.choose("Type", PLUGIN)
    await ui.pictures.take("maubot-instance")
    await ui.create()

    # The editor shows base-config.yaml, which is the manual; maubot may quote values otherwise.
    await expect(ui.page.locator("#config")).to_contain_text("# llmbot's settings.")
    shown = await ui.config()
    assert comments(shown) == comments(BASE_CONFIG)
    yaml = YAML(typ="safe")
    assert yaml.load(shown) == yaml.load(BASE_CONFIG)
    await ui.retype("baseUrl", f"baseUrl: {stack.model.url}", after="ollama")
    await ui.retype("assistantModel", "assistantModel: ollama/scripted")
    await ui.pictures.take("maubot-config")
    await ui.save()

    room_id = await first_room(stack, ada, account.user_id)
    assert "Noted, you work as a beekeeper." in await ask("!ask I work as a beekeeper.")

    # What cannot be used is named in the log, and the bot goes on with the last good value.
    await ui.retype("memoryPromotionThreshold", "memoryPromotionThreshold: many")
    await ui.retype("memoryCandidateTTLDays", "memoryCandidateDays: 14")
    await ui.save()
    await ui.open_log()
    bad = "Config: memoryPromotionThreshold: 'many'"
    await expect(ui.log_line("ERROR", bad)).to_have_count(1)
    unknown = "Config: 'memoryCandidateDays' is not a setting of llmbot"
    await expect(ui.log_line("WARNING", unknown)).to_have_count(1)
    await ui.log_line("WARNING", unknown).scroll_into_view_if_needed()
    await ui.pictures.take("maubot-log")
    await ui.close_log()
    assert "Noted, you are tired today." in await ask("!ask I am tired today.")

    # Mended, it is in force at once, and the comments are all still there.
    await ui.retype("memoryPromotionThreshold", "memoryPromotionThreshold: 1")
    # The setting that was misspelt has come back with its default; only the other is to go.
    await ui.retype("memoryCandidateDays", "")
    await ui.save()
    await ui.page.reload()
    await expect(ui.page.locator("#config")).to_contain_text("# llmbot's settings.")
    saved = await ui.config()
    assert comments(saved) == comments(BASE_CONFIG)
    assert "memoryPromotionThreshold: 1" in saved.splitlines()
    await ui.go_to("memoryPromotionThreshold")
    await ui.pictures.take("maubot-mended")
    assert "Noted, you live in Hamburg." in await ask("!ask I live in Hamburg.")
    await until_remembered(stack, "Lives in Hamburg")

    await ui.open_database()
    await expect(ui.page.locator(".tables")).to_contain_text("memory_candidates")
    await ui.open_table("memory_candidates")
    await expect(ui.table_row("Works as a beekeeper")).to_have_count(1)
    await expect(ui.table_row("Is tired today")).to_have_count(1)
    await expect(ui.table_row("Lives in Hamburg")).to_have_count(0)
    await ui.pictures.take("maubot-candidates")
    await ui.open_table("memories")
    await expect(ui.table_row("Lives in Hamburg")).to_have_count(1)
    await expect(ui.page.locator(".table tbody tr")).to_have_count(1)
    await ui.pictures.take("maubot-memories")


async def first_room(stack: Stack, member: Member, bot_id: str) -> str:
    """Make a room with the bot, once it listens: maubot ignores what its first sync brings."""

    async def listening() -> bool:
        return bool(stack.maubot.sync_position(bot_id))

    await wait_until(listening, SECONDS, "maubot to follow the bot's rooms")
    room_id = await member.create_room(bot_id)
    await member.wait_for_member(room_id, bot_id)
    return room_id


async def until_remembered(stack: Stack, fact: str) -> None:
    """Wait for the pass over a message, which begins after its answer, to make a memory."""
    connection = await stack.connect()

    async def remembered() -> bool:
        return bool(await connection.fetchval("SELECT 1 FROM memories WHERE fact = $1", fact))

    try:
        await wait_until(remembered, SECONDS, f"the memory {fact!r}")
    finally:
        await connection.close()
