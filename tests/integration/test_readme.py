from devstack.readme import in_readme, transcript


async def test_the_readme_shows_what_the_demo_prints() -> None:
    """If the demo was changed on purpose: `python -m devstack.readme` brings README.md up to date."""
    assert in_readme() == await transcript()
