"""`make bench`: how fast, how big and how lean llmbot is, as ratios taken within one run.

Each section that was measured is written at once: results, chart, and the docs' page.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from benchmarks import answers, footprint, growth, page, passes, results, tokens, turns
from benchmarks.measuring import Section
from devstack.process import StackError, run_until_signal

MEASUREMENTS: dict[str, Callable[[Path], Awaitable[Section]]] = {
    "answers": answers.measure,
    "passes": passes.measure,
    "turns": turns.measure,
    "growth": growth.measure,
    "tokens": tokens.measure,
    "footprint": footprint.measure,
}


def _parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument(
        "sections",
        nargs="*",
        metavar="section",
        help=f"of {', '.join(MEASUREMENTS)}; all without any, the results of the others stay",
    )
    options = parser.parse_args(arguments)
    for name in options.sections:
        if name not in MEASUREMENTS:
            parser.error(f"there is no section {name!r}")
    return options


async def _measure(names: list[str]) -> None:
    for name in names:
        with tempfile.TemporaryDirectory(prefix="llmbot-bench-") as folder:
            os.chmod(folder, 0o711)  # noqa: PTH101, S103 - as root, PostgreSQL runs as another user
            section = await MEASUREMENTS[name](Path(folder))
        print(results.section_text(section.as_json()), flush=True)
        results.write(section, [*MEASUREMENTS])
        page.PAGE.write_text(
            page.with_figures(page.PAGE.read_text(encoding="utf-8")), encoding="utf-8"
        )


def main() -> int:
    """Measure what the command line names, and write each result as soon as it is there."""
    options = _parse()
    logging.getLogger("benchmarks").setLevel(logging.ERROR)
    try:
        run_until_signal(_measure(options.sections or [*MEASUREMENTS]))
    except KeyboardInterrupt:
        return 130
    except StackError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
