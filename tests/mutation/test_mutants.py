"""The tests of the memory engine notice every fault in the list of mutants.

Of a mutant that breaks a numbered rule, a test that has the rule's number in its name must do so.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from devstack.build import ROOT
from devstack.postgres import Postgres
from devstack.process import empty_world

from .mutants import MUTANTS, Mutant

# Fast ones first: the run ends at the first failure.
TESTS = [
    "tests/integration/test_store.py",
    "tests/integration/test_pipeline.py",
    "tests/integration/test_crash.py",
]


@pytest.fixture(scope="module")
async def database_url(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    world = tmp_path_factory.mktemp("postgres")
    async with empty_world(world):
        postgres = Postgres(world)
        await postgres.start()
        yield postgres.url
        await postgres.stop()


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy what the tests need of the checkout: mutants never touch the checkout itself."""
    target = tmp_path_factory.mktemp("mutated") / "checkout"
    for folder in ("llmbot", "devstack", "tests"):
        shutil.copytree(ROOT / folder, target / folder)
    for file in ("pyproject.toml", "base-config.yaml", "maubot.yaml"):
        shutil.copy(ROOT / file, target)
    return target


def run_tests(
    mutant: Mutant, checkout: Path, database_url: str
) -> subprocess.CompletedProcess[str]:
    rule = re.match(r"M\d+", mutant.breaks)
    selection = ["-k", f"{rule[0].lower()}_"] if rule else []
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *selection, *TESTS],
        cwd=checkout,
        env={**os.environ, "LLMBOT_POSTGRES": database_url, "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.breaks)
def test_a_broken_rule_is_noticed(mutant: Mutant, copy: Path, database_url: str) -> None:
    file = copy / mutant.file
    source = file.read_text()
    assert source.count(mutant.right) == 1, "the mutant does not fit the code any more"
    file.write_text(source.replace(mutant.right, mutant.wrong))
    try:
        tested = run_tests(mutant, copy, database_url)
    finally:
        file.write_text(source)
    # 1 means that tests failed; anything else that they could not run.
    assert tested.returncode == 1, tested.stdout[-2000:]
