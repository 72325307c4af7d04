"""The site that MkDocs builds of the docs: what would be wrong on it fails the build."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from devstack.build import ROOT


class Site:
    """A site of a few pages in a checkout of its own, built as the real one is."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("docs/index.md", "# Start\n")

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def _build(self) -> tuple[int, str]:
        self.write(
            "mkdocs.yml",
            f"INHERIT: {ROOT / 'mkdocs.yml'}\n"
            f"hooks:\n  - {ROOT / 'devstack/site_hooks.py'}\n"
            "nav:\n  - index.md\n",
        )
        done = subprocess.run(
            [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", self.root / "mkdocs.yml"],
            check=False,
            capture_output=True,
            text=True,
            env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "NO_COLOR": "1"},
        )
        return done.returncode, done.stdout + done.stderr

    def build(self) -> None:
        """Build it, which has to succeed."""
        status, said = self._build()
        assert status == 0, said

    def refused(self) -> str:
        """Build it, which has to fail, and return why."""
        status, said = self._build()
        assert status == 1
        assert "Traceback" not in said
        return said

    def page(self, name: str) -> str:
        return (self.root / "site" / name).read_text()


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_a_link_to_no_page_is_refused(site: Site) -> None:
    site.write("docs/index.md", "[more](more.md)")
    assert "'more.md'" in site.refused()


def test_a_link_to_no_heading_is_refused(site: Site) -> None:
    site.write("docs/index.md", "# Start\n\n[below](#end)")
    assert "'#end'" in site.refused()


def test_a_page_that_the_navigation_lacks_is_refused(site: Site) -> None:
    site.write("docs/more.md", "# More\n")
    assert "more.md" in site.refused()


def test_files_of_the_checkout_are_taken_along(site: Site) -> None:
    site.write("docs/index.md", "[License](../LICENSE), ![chart](../results/chart.svg)")
    site.write("LICENSE", "Do what you like.")
    site.write("results/chart.svg", "<svg/>")
    site.build()
    page = site.page("index.html")
    assert 'href="repository/LICENSE.txt"' in page
    assert 'src="repository/results/chart.svg"' in page
    assert site.page("repository/LICENSE.txt") == "Do what you like."
    assert site.page("repository/results/chart.svg") == "<svg/>"


def test_their_own_links_lead_on(site: Site) -> None:
    site.write("docs/index.md", "[Results](../results/all.md)")
    site.write("results/all.md", "# All\n\n[start](../docs/index.md) [source](../code/all.py)")
    site.write("code/all.py", "pass\n")
    site.build()
    assert 'href="repository/results/all.html"' in site.page("index.html")
    page = site.page("repository/results/all.html")
    assert '<a href="../../index.html">start</a>' in page
    assert '<a href="../code/all.py.txt">source</a>' in page
    assert site.page("repository/code/all.py.txt") == "pass\n"


def test_a_link_to_no_file_of_the_checkout_is_refused(site: Site) -> None:
    site.write("docs/index.md", "[License](../LICENSE)")
    assert "the link to ../LICENSE leads to no file" in site.refused()


def test_what_stands_in_a_block_of_code_is_no_link(site: Site) -> None:
    site.write("docs/index.md", "```\n[License](../LICENSE)\n```\n")
    site.build()
    assert "[License](../LICENSE)" in site.page("index.html")


def test_code_in_a_table_has_its_bars(site: Site) -> None:
    site.write("docs/index.md", "| a | b |\n|---|---|\n| `[on\\|off]` | c |\n")
    site.build()
    assert "<td><code>[on|off]</code></td>\n<td>c</td>" in site.page("index.html")


@pytest.mark.parametrize(
    "text",
    [
        "![picture](https://example.org/a.png)",
        '<script src="//example.org/a.js"></script>',
        '<link rel="stylesheet" href="https://example.org/a.css">',
    ],
)
def test_what_comes_from_another_host_is_refused(site: Site, text: str) -> None:
    site.write("docs/index.md", f"# Start\n\n{text}\n")
    said = site.refused()
    assert "index.html loads from another host" in said
    assert "example.org" in said


def test_style_that_loads_from_another_host_is_refused(site: Site) -> None:
    site.write("docs/theme/site.css", "body { background: url('https://example.org/a.png') }")
    assert "theme/site.css loads from another host" in site.refused()


def test_a_link_to_another_host_is_fine(site: Site) -> None:
    site.write("docs/index.md", "[elsewhere](https://example.org/)")
    site.build()
