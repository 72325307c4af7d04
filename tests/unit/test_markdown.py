"""A model's Markdown as HTML, in parts, and its tables."""

from __future__ import annotations

import re
from html import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmbot.fences import fence_after
from llmbot.markdown import html, split
from llmbot.tables import MAX_WIDTH, readable_tables

from ..fuzzing import fuzzed

LIMIT = 1000


def parts_of(markdown: str, limit: int = LIMIT) -> list[str]:
    return split(markdown, len, limit)


# --- HTML --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("hello", "<p>hello</p>"),
        ("# Title\n\n## Part", "<h1>Title</h1>\n<h2>Part</h2>"),
        ("**b** *i* `c<d`", "<p><strong>b</strong> <em>i</em> <code>c&lt;d</code></p>"),
        ("roses\nviolets", "<p>roses<br />\nviolets</p>"),
        ("- a\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>"),
        ("3. a\n4. b", '<ol start="3">\n<li>a</li>\n<li>b</li>\n</ol>'),
        ("> q", "<blockquote>\n<p>q</p>\n</blockquote>"),
        ("```python\na < b\n```", '<pre><code class="language-python">a &lt; b\n</code></pre>'),
        ("```c++ x\na\n```", '<pre><code class="language-c++">a\n</code></pre>'),
        ("```\na\n```", "<pre><code>a\n</code></pre>"),
        ('```"><b>\na\n```', '<pre><code class="language-&quot;&gt;&lt;b&gt;">a\n</code></pre>'),
        ("[a](https://e.org/?x&y)", '<p><a href="https://e.org/?x&amp;y">a</a></p>'),
        ("<https://e.org>", '<p><a href="https://e.org">https://e.org</a></p>'),
        ("[a](mailto:a@e.org)", '<p><a href="mailto:a@e.org">a</a></p>'),
        ("![cat](https://e.org/c.png)", '<p><a href="https://e.org/c.png">cat</a></p>'),
        (
            "![](https://e.org/c.png)",
            '<p><a href="https://e.org/c.png">https://e.org/c.png</a></p>',
        ),
        ("[![a](https://i.org)](https://e.org)", '<p><a href="https://e.org">a</a></p>'),
    ],
)
def test_what_matrix_clients_show(markdown: str, expected: str) -> None:
    assert html(markdown) == expected


@pytest.mark.parametrize(
    "link",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:x",
        "data:text/html,x",
        "vbscript:x",
        "file:///etc",
        "x.html",
    ],
)
def test_links_that_lead_nowhere_are_text(link: str) -> None:
    for markdown in (f"[click]({link})", f"![click]({link})", f"[click]\n\n[click]: {link}"):
        assert html(markdown) == "<p>click</p>"


@pytest.mark.parametrize(
    "markdown",
    [
        "<b>x</b>",
        "<script>alert(1)</script>",
        "a <img src=x onerror=alert(1)> b",
        "<!-- x -->",
        "&lt;b&gt;",
    ],
)
def test_html_is_shown_and_not_applied(markdown: str) -> None:
    shown = html(markdown)
    assert set(re.findall(r"</?[a-z]+", shown)) <= {"<p", "</p"}
    if "&" not in markdown:
        assert escape(markdown, quote=False) in shown


OUR_TAG = re.compile(
    r"</?(?:p|h[1-6]|strong|em|ul|ol|li|blockquote|pre|code|a)>|<[bh]r />"
    r"|<ol start=\"\d+\">|<code class=\"language-[^\"<>]*\">"
    r"|<a href=\"(?:https?|mailto):[^\"<>]*\"(?: title=\"[^\"<>]*\")?>"
)
PIECES = (
    '<b> </p> <script> # - > 1. ``` ` * ** _ [a]( ![ ) ] < > " & word https://e.org javascript:x'
)
MARKDOWN = st.lists(
    st.sampled_from([*PIECES.split(), "# ", "- ", "> ", "1. ", " ", "    ", "\n", "\n\n"])
).map("".join)


@fuzzed
@given(MARKDOWN)
def test_no_markdown_makes_tags_of_its_own(markdown: str) -> None:
    assert "<" not in OUR_TAG.sub("", html(markdown))


@pytest.mark.parametrize("link", ["[a](", "![a]("])
def test_a_text_that_would_keep_the_parser_busy_for_a_minute_is_shown_as_it_is(link: str) -> None:
    text = link * 5000
    assert html(text) == text


# --- parts -------------------------------------------------------------------------------------


def test_what_fits_stays_whole() -> None:
    text = "a\n\n" * 300
    assert parts_of(text) == [text]


def test_paragraphs_stay_whole_and_headings_with_them() -> None:
    paragraph = "## Title\n\n" + "word " * 20
    parts = parts_of("\n\n".join([paragraph.strip()] * 30))
    assert len(parts) > 2
    for part in parts:
        assert set(part.split("\n\n")) == {"## Title", ("word " * 20).strip()}
        assert part.startswith("## Title")


def test_a_fence_that_is_cut_is_closed_and_opened_again() -> None:
    code = [f"line {number}" for number in range(200)]
    parts = parts_of("\n".join(["Look:", "", "```python", *code, "```", "", "Done."]))
    assert len(parts) > 2
    assert parts[0].startswith("Look:\n\n```python\nline 0\n")
    for part in parts[1:]:
        assert part.startswith("```python\nline ")
    for part in parts[:-1]:
        assert part.endswith("\n```")
    assert parts[-1].endswith("line 199\n```\n\nDone.")
    assert [line for part in parts for line in part.split("\n") if line.startswith("line")] == code


@pytest.mark.parametrize("fence", ["~~~", "````", "   ```"])
def test_any_fence_is_opened_again_as_it_was(fence: str) -> None:
    parts = parts_of(f"{fence} c++ title\n" + "```\nx\n" * 300 + fence)
    if fence.strip() != "```":
        assert all(part.startswith(f"{fence}c++\n") for part in parts[1:])
        assert all(part.endswith(f"\n{fence}") for part in parts)


def test_short_fences_stay_whole() -> None:
    block = "```sh\n" + "echo hello\n" * 8 + "```"
    for part in parts_of("\n".join([block] * 30)):
        assert part.count("```") % 2 == 0
        assert "```sh\n```" not in part
        assert part.startswith("```sh")


def test_a_long_line_is_cut_at_spaces_and_a_long_word_anywhere() -> None:
    words = [f"word{number}" for number in range(1000)]
    parts = parts_of(" ".join(words))
    assert [word for part in parts for word in part.split()] == words
    parts = parts_of("x" * 5000)
    assert "".join(parts) == "x" * 5000
    assert max(map(len, parts)) <= LIMIT


@pytest.mark.parametrize("character", ["e\u0301", "👍🏽", "👩\u200d💻", "☂\ufe0f", "นี้"], ids=ascii)
def test_what_is_seen_as_one_character_is_not_parted(character: str) -> None:
    for before in range(3):
        text = "x" * before + character * 2000
        parts = parts_of(text)
        assert "".join(parts) == text
        assert all(part.endswith(character) for part in parts)
        assert all(part.startswith(character) for part in parts[1:])


def visible(text: str) -> str:
    """Return a text without white space and fence lines."""
    lines = [line for line in text.split("\n") if not re.match(r"\s*(`{3,}|~{3,})", line)]
    return "".join("".join(lines).split())


LINES = st.lists(
    st.one_of(
        st.sampled_from(
            ["", "```", "```python", "~~~", "````", "  ```", "# Title", "- item", "> quote"]
        ),
        st.text(st.sampled_from("ab `~#-漢😀\u0301\u200d"), max_size=30).map(
            lambda text: f"w{text}"
        ),
        st.integers(1, 3000).map(lambda count: "w" * count),
        st.integers(1, 600).map(lambda count: "wörd " * count),
    ),
    max_size=60,
)


@given(LINES, st.integers(600, 3000))
def test_nothing_is_lost_and_every_part_fits(lines: list[str], limit: int) -> None:
    text = "\n".join(lines)
    parts = parts_of(text, limit)
    assert visible("\n".join(parts)) == visible(text)
    assert all(len(part) <= limit and part.strip() for part in parts)
    if len(parts) > 1:
        for part in parts[:-1]:
            fence = None
            for line in part.split("\n"):
                fence = fence_after(line, fence)
            assert fence is None


@given(LINES)
def test_sizes_that_grow_faster_than_the_text(lines: list[str]) -> None:
    text = "\n".join(lines)
    parts = split(text, lambda part: len(part) + 5 * part.count("w"), 2000)
    assert visible("\n".join(parts)) == visible(text)
    assert all(len(part) + 5 * part.count("w") <= 2000 for part in parts)


# --- tables ------------------------------------------------------------------------------------


def test_a_table_becomes_an_aligned_block() -> None:
    table = """Some languages:
| Language | Year | Typing |
|:---------|-----:|:------:|
| **Python** | 1991 | `dyn` |
| C | 1972 | static |
Old ones."""
    assert (
        readable_tables(table)
        == """Some languages:

```
Language | Year | Typing
---------|------|-------
Python   | 1991 |  dyn
C        | 1972 | static
```

Old ones."""
    )


def test_wide_characters_take_two_columns() -> None:
    assert readable_tables("a | b\n-|-\n漢字 | x\nyy | z").split("\n")[1:-1] == [
        "a    | b",
        "-----|--",
        "漢字 | x",
        "yy   | z",
    ]


def test_a_wide_table_and_one_with_links_become_lists() -> None:
    long = "word " * 12
    assert readable_tables(
        f"| A | B | C |\n|---|---|---|\n| x | {long}| |\n| **y** | z | 1<br>2 |"
    ) == (f"- **x**\n  - B: {long.strip()}\n- **y**\n  - B: z\n  - C: 1; 2")
    assert readable_tables("a | b\n--|--\nx | [t](https://e.org)") == (
        "- **x**\n  - b: [t](https://e.org)"
    )


def test_rows_of_other_lengths_lose_nothing() -> None:
    assert readable_tables("| a | b |\n|--|--|\n| 1 |\n| 1 | 2 | 3 |\n| p \\| q | |").split("\n")[
        1:-1
    ] == [
        "a     | b |",
        "------|---|--",
        "1     |   |",
        "1     | 2 | 3",
        "p | q |   |",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "a | b",
        "a | b\n---",
        "a\n---",
        "a | b\n--|x",
        "```\na | b\n--|--\n1 | 2\n```",
        "    a | b\n    --|--",
        "x || y\nz",
    ],
)
def test_what_is_no_table_stays(text: str) -> None:
    assert readable_tables(text) == text


CELLS = st.text(st.sampled_from("ab漢 -:`*\\"), max_size=8)


@given(st.lists(st.lists(CELLS, min_size=1, max_size=4), min_size=1, max_size=5))
def test_every_cell_of_a_table_is_kept(rows: list[list[str]]) -> None:
    header = ["head"] * len(rows[0])
    lines = ["| " + " | ".join(row) + " |" for row in (header, ["---"] * len(header), *rows)]
    read = readable_tables("\n".join(lines))
    for row in rows:
        for cell in row:
            assert re.sub(r"[^ab漢]", "", cell) in re.sub(r"[^ab漢\n|]", "", read)
    assert max(map(len, read.split("\n"))) <= MAX_WIDTH or "- **" in read


@fuzzed
@given(st.text(st.sampled_from("ab|-:\n` \\")))
def test_any_text_can_be_read(text: str) -> None:
    readable_tables(text)
