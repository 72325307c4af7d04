"""docs/troubleshooting.md has all that goes wrong, in the code's own words."""

from __future__ import annotations

import re

from devstack.build import ROOT

from .spoken import all_texts, error_texts, log_lines, problems

PAGE = (ROOT / "docs/troubleshooting.md").read_text()
ENTRIES = [
    sentence.replace(r"\|", "|")
    for cell in re.findall(r"^\| (`.*?`) \|", PAGE, re.MULTILINE)
    for sentence in cell.strip("`").split("`<br>`")
]


def missing(said: set[str]) -> set[str]:
    """Return what has no entry.

    An entry in brackets, such as how often a line is logged, may stand behind any other.
    """
    behind = [entry for entry in ENTRIES if entry.startswith("(")]
    explained = {*ENTRIES, *(f"{entry} {end}" for entry in ENTRIES for end in behind)}
    return said - explained


def test_everything_that_members_are_told_is_explained() -> None:
    assert len(problems()) > 40
    assert missing(problems()) == set()


def test_everything_that_the_log_tells_operators_is_explained() -> None:
    assert len(log_lines()) > 15
    assert missing(log_lines()) == set()


def test_every_cause_that_the_log_names_is_explained() -> None:
    assert len(error_texts()) > 15
    assert missing(error_texts()) == set()


def test_every_quoted_sentence_is_one_that_the_code_says() -> None:
    said = all_texts()
    assert [entry for entry in ENTRIES if not any(entry in text for text in said)] == []
    assert len(ENTRIES) == len(set(ENTRIES))
