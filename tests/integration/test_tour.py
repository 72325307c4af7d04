"""The tour of the memory tells what really happens."""

from devstack.tour import TOUR, play


async def test_the_tour_tells_what_the_demo_shows() -> None:
    """After a wanted change, `python -m devstack.tour` brings docs/tour.md up to date."""
    tour = TOUR.read_text()
    assert await play(tour) == tour
