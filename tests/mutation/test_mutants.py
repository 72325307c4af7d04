"""The tests of the memory engine notice every fault in the list of mutants.

Of a mutant that breaks a numbered rule, a test that has the rule's number in its name must do so.
"""

from __future__ import annotations

import os
import queue
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from devstack.build import ROOT
from devstack.postgres import Postgres
from devstack.process import empty_world

from .mutants import MUTANTS, Mutant

# The run ends at the first failure.
TESTS = [
    "tests/integration/test_store.py",
    "tests/integration/test_pipeline.py",
    "tests/unit/test_facts.py",
    "tests/unit/test_small_talk.py",
]
WORKERS = os.cpu_count() or 1


class Workshop:
    """Copies of the checkout in which mutants are tested, so that it is never touched itself."""

    def __init__(self, folder: Path, database_url: str) -> None:
        self._database_url = database_url
        self._copies: queue.Queue[Path] = queue.Queue()
        for number in range(WORKERS):
            copy = folder / f"checkout{number}"
            for part in ("llmbot", "devstack", "tests"):
                shutil.copytree(ROOT / part, copy / part)
            for file in ("pyproject.toml", "base-config.yaml", "maubot.yaml"):
                shutil.copy(ROOT / file, copy)
            self._copies.put(copy)

    def test(self, mutant: Mutant) -> subprocess.CompletedProcess[str]:
        """Run the tests on a checkout with this fault."""
        copy = self._copies.get()
        file = copy / mutant.file
        source = file.read_text()
        try:
            assert source.count(mutant.right) == 1, "the mutant does not fit the code any more"
            file.write_text(source.replace(mutant.right, mutant.wrong))
            return self._run(mutant, copy)
        finally:
            file.write_text(source)
            self._copies.put(copy)

    def _run(self, mutant: Mutant, copy: Path) -> subprocess.CompletedProcess[str]:
        rule = re.match(r"M\d+", mutant.breaks)
        selection = ["-k", f"{rule[0].lower()}_"] if rule else []
        options = ["-x", "-q", "-p", "no:cacheprovider", *selection, *TESTS]
        return subprocess.run(
            [sys.executable, "-m", "pytest", *options],
            cwd=copy,
            env={
                **os.environ,
                "LLMBOT_POSTGRES": self._database_url,
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            check=False,
            capture_output=True,
            text=True,
        )


Outcomes = dict[str, Future[subprocess.CompletedProcess[str]]]


@pytest.fixture(scope="module")
async def outcomes(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Outcomes]:
    """Test all mutants, several at once; each test looks at the outcome of one."""
    world = tmp_path_factory.mktemp("postgres")
    async with empty_world(world):
        postgres = Postgres(world)
        await postgres.start()
        workshop = Workshop(tmp_path_factory.mktemp("mutated"), postgres.url)
        with ThreadPoolExecutor(WORKERS) as pool:
            yield {mutant.breaks: pool.submit(workshop.test, mutant) for mutant in MUTANTS}
            pool.shutdown(cancel_futures=True)
        await postgres.stop()


@pytest.mark.parametrize("breaks", [mutant.breaks for mutant in MUTANTS])
def test_a_broken_rule_is_noticed(breaks: str, outcomes: Outcomes) -> None:
    tested = outcomes[breaks].result()
    # 1 means that tests failed; anything else that they could not run.
    assert tested.returncode == 1, tested.stdout[-2000:]
