from devstack.readme import in_readme, transcript


async def test_the_readme_shows_what_the_demo_prints() -> None:
    """After a wanted change of the demo, `python -m devstack.readme` brings it up to date."""
    assert in_readme() == await transcript()
