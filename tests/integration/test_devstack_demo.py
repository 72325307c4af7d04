"""The demo says that the promotion happened only if it did."""

from pathlib import Path

import pytest

from devstack import demo, demo_chat
from devstack.process import StackError
from devstack.stack import Stack


async def test_the_demo_shows_a_promotion_that_happened(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with Stack(tmp_path / "world") as stack:
        config = {"assistantModel": demo.SCRIPTED, "imageModel": demo.SCRIPTED}
        await demo.perform(stack, config, once=True)
        connection = await stack.connect()
        assert await connection.fetchval("SELECT count(*) FROM memories") == 1
        await connection.close()
    shown = capsys.readouterr().out
    assert "     Ada | !ask" in shown
    assert "  llmbot | " in shown
    assert shown.index("memory_candidates:\n") < shown.index("memories:\n")
    assert "[image/png, 320 × 200: A lighthouse on a stormy night]" in shown  # noqa: RUF001
    assert shown.endswith("is told, with 3 pictures.\n")
    assert "\nThe fact was promoted from candidate to memory.\n" in shown


async def test_the_demo_fails_if_nothing_is_promoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_chat, "LIMIT_SECONDS", 3)
    config = {"assistantModel": demo.SCRIPTED, "memoryPromotionThreshold": 3}
    async with Stack(tmp_path / "world") as stack:
        with pytest.raises(
            StackError,
            match=r"expected .* to move from memory_candidates to memories within 3 s,"
            r" but memory_candidates held .*, memories held ",
        ):
            await demo.perform(stack, config, once=True)
