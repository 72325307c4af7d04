"""Run the built plugin in maubot on each Python, with the oldest and the newest libraries.

`make compatibility`, or `python -m compatibility python3.10 /path/to/python3.13 …` for some.
The unit tests run inside each Python as well. Writes `compatibility/results.md`, unless a
Python was left out.
"""

import datetime
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "compatibility"
ENVIRONMENTS = ROOT / ".compatibility"
RESULTS = HERE / "results.md"
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
IN_PARALLEL = ("-n", "2", "--dist", "loadfile")
LIBRARIES = ("aiohttp", "asyncpg", "mautrix")


class CompatibilityError(Exception):
    """Something that is needed for the trial is missing; the message says what."""


@dataclass(frozen=True)
class Outcome:
    """What came of the tests with one set of libraries on one Python."""

    python: str
    libraries: dict[str, str]
    passed: int
    skipped: int
    failed: int

    def row(self) -> str:
        """Return it as a row of the table."""
        versions = " | ".join(self.libraries[name] for name in LIBRARIES)
        return f"| {self.python} | {versions} | {self.passed} | {self.skipped} | {self.failed} |"


def output(*command: str | Path) -> str:
    """Return what a command prints; raise `CompatibilityError` with its last line otherwise."""
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except OSError as error:
        raise CompatibilityError(f"{command[0]}: {error.strerror}") from None
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise CompatibilityError(f"{command[0]}: {lines[-1] if lines else 'failed'}")
    return done.stdout.strip()


def version(python: str | Path) -> str:
    """Return a Python's whole version."""
    return output(python, "-c", "import platform; print(platform.python_version())")


def environment(python: str, name: str, lock: Path) -> Path:
    """Make an environment of just the locked packages and return its Python."""
    folder = ENVIRONMENTS / name
    output(python, "-m", "venv", "--clear", folder)
    inside = folder / "bin" / "python"
    pip = (inside, "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    output(*pip, "--require-hashes", "-r", lock)
    return inside


def libraries(python: Path) -> dict[str, str]:
    """Return the versions of what maubot brings."""
    program = (
        "import importlib.metadata as m, json, sys;"
        "print(json.dumps({n: m.version(n) for n in sys.argv[1:]}))"
    )
    found: dict[str, str] = json.loads(output(python, "-c", program, *LIBRARIES))
    return found


def run_tests(python: Path, maubot_python: Path, levels: Sequence[str]) -> tuple[int, int, int]:
    """Run tests by one Python against a maubot of another; return passed, skipped, failed."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        subprocess.run(
            [python, "-m", "pytest", "-q", *IN_PARALLEL, f"--junitxml={report}", *levels],
            check=False,
            cwd=ROOT,
            env={**os.environ, "LLMBOT_MAUBOT_PYTHON": str(maubot_python)},
        )
        if not report.exists():
            raise CompatibilityError(f"{python}: pytest did not run")
        # Written by the line above.
        (suite,) = ElementTree.parse(report).getroot().iter("testsuite")  # noqa: S314
    counts = {name: int(suite.get(name, 0)) for name in ("tests", "skipped", "failures", "errors")}
    failed = counts["failures"] + counts["errors"]
    return counts["tests"] - counts["skipped"] - failed, counts["skipped"], failed


def tried(python: str) -> Iterator[Outcome]:
    """Try one Python, with the oldest libraries and with the newest."""
    full = version(python)
    minor = ".".join(full.split(".")[:2])
    newest = environment(python, f"{minor}-newest", ROOT / "requirements.lock")
    oldest = environment(python, f"{minor}-oldest", HERE / f"oldest-{minor}.lock")
    yield Outcome(full, libraries(oldest), *run_tests(newest, oldest, ["tests/e2e"]))
    yield Outcome(full, libraries(newest), *run_tests(newest, newest, ["tests/unit", "tests/e2e"]))


def page(outcomes: Sequence[Outcome]) -> str:
    """Return the results as Markdown."""
    today = datetime.datetime.now(datetime.timezone.utc).date()
    rows = "\n".join(outcome.row() for outcome in outcomes)
    return f"""# What llmbot runs on

Tried on {today} by `make compatibility`, with maubot 0.6.0: the built `.mbp` in a real maubot,
with real Synapse and PostgreSQL. For each Python the first row has the oldest libraries that
maubot allows and that have wheels for it, and runs the end-to-end tests; the second has those
of `requirements.lock` and runs the unit tests as well.

| Python | aiohttp | asyncpg | mautrix | passed | skipped | failed |
|---|---|---|---|---:|---:|---:|
{rows}

Skipped are the tests of encrypted rooms where python-olm, which encrypts, has no wheel.
"""


def main(arguments: Sequence[str]) -> int:
    """Try the named Pythons, or all; return the exit status for the shell."""
    outcomes: list[Outcome] = []
    try:
        for python in arguments or [f"python{minor}" for minor in PYTHONS]:
            for outcome in tried(python):
                print(outcome.row(), flush=True)
                outcomes.append(outcome)
    except CompatibilityError as error:
        print(f"llmbot compatibility: {error}", file=sys.stderr)
        return 1
    found = {".".join(outcome.python.split(".")[:2]) for outcome in outcomes}
    if found >= set(PYTHONS):
        RESULTS.write_text(page(outcomes))
    return 1 if any(outcome.failed for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
