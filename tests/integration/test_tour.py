"""The tour of the memory tells what really happens."""

from pathlib import Path

from devstack.tour import TOUR, prompt_after_demo, sessions, take


async def test_the_tour_tells_what_the_demo_shows(tmp_path: Path) -> None:
    """After a wanted change, `python -m devstack.tour` brings docs/tour.md up to date."""
    async with prompt_after_demo(tmp_path / "stack") as prompt:
        for session in sessions(TOUR.read_text()):
            for step in session:
                assert str(await take(prompt, step)) == str(step)
