"""`make soak`: load with kills and restarts in it; exit status 1 where a target is missed."""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import platform
import statistics
import sys
from pathlib import Path

from devstack.build import ROOT
from devstack.process import StackError, run_until_signal
from soak.run import Report, Size, soak

PAGE = ROOT / "soak" / "results" / "soak.md"


def figures(report: Report) -> dict[str, int]:
    """Return the counts of a report by name; the last six must be 0."""
    questions = report.questions
    answered = [question for question in questions if question.is_answered]
    silent = [question for question in questions if not question.answers]
    return {
        "questions": len(questions),
        "answered": len(answered),
        "answered with an error sentence": len(questions) - len(answered) - len(silent),
        "lost with a bot that was down or cut off": len(silent) - len(report.lost),
        "lost otherwise": len(report.lost),
        "wrong answers": sum(question.is_wrong for question in questions),
        "doubled answers": sum(len(question.answers) > 1 for question in questions),
        "broken rules": len(report.broken),
    }


TARGETS = ("lost otherwise", "wrong answers", "doubled answers", "broken rules")


def missed(report: Report) -> list[str]:
    """Return the targets that were missed: all of them are 0, and something was answered."""
    counts = figures(report)
    nothing = [] if counts["answered"] else ["answered"]
    return [name for name in TARGETS if counts[name]] + nothing


def waits(report: Report) -> list[float]:
    """Return the seconds that people waited for an answer of any kind, shortest first."""
    return sorted(
        question.answers[0][0] - question.sent for question in report.questions if question.answers
    )


def table(report: Report) -> str:
    """Return the figures as a Markdown table."""
    lines = ["| | |", "|---|---|"]
    for name, count in figures(report).items():
        target = " (target: 0)" if name in TARGETS else ""
        lines.append(f"| {name}{target} | {count} |")
    seconds = waits(report)
    if seconds:
        lines.append(f"| middle wait | {statistics.median(seconds):.2f} s |")
        lines.append(f"| 99 of 100 waited at most | {seconds[len(seconds) * 99 // 100]:.2f} s |")
        lines.append(f"| longest wait | {seconds[-1]:.2f} s |")
    lines += [f"| {name} at the end | {count} |" for name, count in report.rows.items()]
    lines.append(f"| looks at all rows during the load | {report.snapshots} |")
    return "\n".join(lines)


def page(report: Report) -> str:
    """Return the whole result page."""
    size = report.size
    versions = {
        "Python": platform.python_version(),
        **{
            name: importlib.metadata.version(name)
            for name in ("maubot", "mautrix", "matrix-synapse")
        },
        **report.versions,
    }
    today = datetime.datetime.now(datetime.timezone.utc).date()
    broken = "".join(f"- {rule}\n" for rule in report.broken)
    return f"""# Soak

Written by `make soak` on {today}, with {", ".join(f"{n} {v}" for n, v in versions.items())}.

{size.people} people in {size.rooms} rooms ask {size.at_once} questions at once for \
{size.seconds:g} seconds; every part that can die does, while passes and turns are under way:

{"".join(f"- {event}{chr(10)}" for event in report.events)}
{table(report)}

{f"Broken:{chr(10)}{chr(10)}{broken}" if broken else "No rule was broken."}

An answer is wrong if it does not bear the token of its question, or if anything of another person
was shown to the model. What is asked while the bot is down stays unanswered: maubot does not
replay it. All rows are looked at every two seconds, before every blow and at the end: each
mention belongs to one event of that person that states the fact, in a room with memory on, and
was answered (M1, M2, M6, M8); no memory without its mentions or the wish to save it, and every
"Saved." is kept (M9, M13); of two facts in one message never one without the other (M16); nothing
once committed is gone or counts less; nobody has another's rows (M15); no text twice (M7), no
password (M14), no half cleanup (M12). `soak/invariants.py` is the whole list. The seconds are
those of one loaded machine with two cores, with a model that is slow on purpose.
"""


def main() -> int:
    """Run it; return the exit status for the shell."""
    size = Size()
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--people", type=int, default=size.people)
    parser.add_argument("--rooms", type=int, default=size.rooms)
    parser.add_argument("--at-once", type=int, default=size.at_once)
    parser.add_argument("--seconds", type=float, default=size.seconds)
    parser.add_argument("--page", type=Path, help="where to write the results as a page")
    options = parser.parse_args()
    size = Size(options.people, options.rooms, options.at_once, options.seconds)
    try:
        report = run_until_signal(soak(size))
    except StackError as error:
        print(f"soak: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    target = options.page or (PAGE if size == Size() else None)
    if target:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page(report))
    print(f"\n{table(report)}")
    for rule in report.broken:
        print(f"BROKEN {rule}")
    for name in missed(report):
        print(f"MISSED the target: {name}", file=sys.stderr)
    return 1 if missed(report) else 0


if __name__ == "__main__":
    sys.exit(main())
