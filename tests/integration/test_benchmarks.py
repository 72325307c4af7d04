"""What `make bench` counts, whatever the machine; and that each of its sections works."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import settings

from benchmarks import answers, footprint, growth, page, passes, results, tokens, turns
from benchmarks.__main__ import MEASUREMENTS
from benchmarks.measuring import Figure, Section, postgres
from benchmarks.passes import Counts

from .. import fuzzing  # noqa: F401 - names the profiles

SMALL: dict[str, Callable[[Path], Awaitable[Section]]] = {
    "answers": partial(answers.measure, rounds=1, warm_up=0),
    "passes": partial(passes.measure, rounds=4),
    "turns": partial(turns.measure, rounds=4, warm_up=1),
    "growth": partial(growth.measure, users=200, candidates=1_000, memories=200, rounds=2),
    "tokens": tokens.measure,
    "footprint": partial(footprint.measure, answers=1, updates=1),
}


async def test_round_trips_and_commits(tmp_path: Path) -> None:
    async with postgres(tmp_path) as server:
        assert await passes.count_all(server.url) == {
            # Begin and lock, read, write, commit; and three that maubot makes.
            "applying a pass (2 new, 1 reinforced, 1 promoted)": Counts(7, 1),
            "a pass that notes a fact, with its reading": Counts(11, 1),
            "a turn that notes a fact": Counts(15, 1),
            "a pass that finds nothing, with its reading": Counts(4, 0),
            "a turn that notes nothing": Counts(8, 0),
        }


def figure(section: Section, what: str) -> float:
    (value,) = [one.value for one in section.figures if one.what == what]
    return value


async def test_the_extraction_prompt_is_bounded_however_many_candidates_there_are(
    tmp_path: Path,
) -> None:
    section = await SMALL["growth"](tmp_path)
    assert 2_000 < figure(section, "extraction prompt of the user with many candidates") <= 4_000
    assert figure(section, "the same prompt, three bytes to a token") <= 4_000
    check(section, "growth")


@pytest.mark.parametrize("name", [name for name in SMALL if name != "growth"])
async def test_each_section_runs_and_is_well_formed(name: str, tmp_path: Path) -> None:
    check(await SMALL[name](tmp_path), name)


def check(section: Section, name: str) -> None:
    assert section.name == name
    assert section.title
    assert all(note.endswith(".") for note in section.notes)
    assert section.figures
    assert all(math.isfinite(one.value) for one in section.figures)
    assert len({one.what for one in section.figures}) == len(section.figures)
    for rows in section.details.values():
        assert len(rows) > 1
        assert len({len(row) for row in rows}) == 1
    as_json = json.loads(json.dumps(section.as_json()))
    assert section.title in results.section_text(as_json)
    assert [one.shown for one in results.figures(as_json)] == [
        one.shown for one in section.figures
    ]


def test_every_section_of_make_bench_is_run_here() -> None:
    assert SMALL.keys() == MEASUREMENTS.keys()


def test_a_figure_is_met_up_to_its_target_as_both_are_shown() -> None:
    figures = [Figure("a", value, target=1.2) for value in (1.0, 1.2049, 1.206)]
    assert [one.is_met for one in figures] == [True, True, False]
    assert Figure("a", 100.0).is_met


class TestWhatIsPublished:
    RESULTS = results.load()

    def test_it_is_all_of_make_bench(self) -> None:
        assert [one["name"] for one in self.RESULTS["sections"]] == [*MEASUREMENTS]

    def test_the_report_shows_the_figures_of_the_results(self) -> None:
        report = results.JSON.with_suffix(".md").read_text(encoding="utf-8")
        assert report == results.report(self.RESULTS)

    def test_the_chart_names_each_figure_that_has_a_target(self) -> None:
        chart = results.JSON.with_suffix(".svg").read_text(encoding="utf-8")
        for section in self.RESULTS["sections"]:
            for one in results.figures(section):
                assert (f">{one.what}<" in chart) == (one.target is not None)
                assert one.target is None or f">{one.shown} (" in chart

    def test_the_page_shows_the_figures_of_the_results(self) -> None:
        text = page.PAGE.read_text(encoding="utf-8")
        assert page.with_figures(text) == text
        for name in ("summary", "missed", "soak", "mem0", *MEASUREMENTS):
            assert f"<!-- figures: {name} -->" in text

    def test_the_page_says_why_each_figure_misses_its_target(self) -> None:
        missed = [
            one.what
            for section in self.RESULTS["sections"]
            for one in results.figures(section)
            if not one.is_met
        ]
        assert set(missed) <= page.REASONS.keys()

    def test_between_the_figures_the_page_names_only_how_many_inputs_the_parsers_get(self) -> None:
        text = page.PAGE.read_text(encoding="utf-8")
        prose = re.sub(
            r"<!-- figures: [\w-]+ -->\n.*?<!-- figures: end -->", "", text, flags=re.DOTALL
        )
        profiles = [settings.get_profile(name) for name in ("test", "fuzz")]
        assert re.findall(r"(?<![\w])\d[\d,.]*\d", prose) == [
            f"{one.max_examples:,}" for one in profiles
        ]
