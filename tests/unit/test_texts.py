"""What people read in replies: why there is no answer, and their memories as mere text."""

from __future__ import annotations

import datetime
import inspect
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmbot import models, texts
from llmbot.memory.facts import one_line
from llmbot.memory.store import Memory
from llmbot.models import (
    BadAnswerError,
    BadPictureError,
    BusyError,
    ContentRefusedError,
    DrawingRefusedError,
    EmptyAnswerError,
    KeyRefusedError,
    MissingKeyError,
    ModelError,
    NoModelError,
    NoPicturesError,
    OversizedPictureError,
    RequestRefusedError,
    TimedOutError,
    ToolLoopError,
    UnknownModelError,
    UnknownProviderError,
)

# --- why there is no answer (PRODUCT.md, section 8) ----------------------------------------------

ERRORS: list[tuple[ModelError, list[str]]] = [
    (NoModelError("codeModel"), ["codeModel"]),
    (NoModelError("imageModel"), ["imageModel", "Drawing is not set up"]),
    (UnknownProviderError("acme"), ["acme", "providers"]),
    (MissingKeyError("acme", "ACME_API_KEY"), ["acme", "ACME_API_KEY", "not set"]),
    (KeyRefusedError("acme", 401), ["acme", "refuses", "key"]),
    (UnknownModelError("acme", "gpt-9"), ["acme", "gpt-9", "not know"]),
    (RequestRefusedError("acme", 422), ["acme", "422"]),
    (BusyError("acme", "HTTP 503"), ["busy", "try again"]),
    (TimedOutError("acme", 30.0), ["30 seconds"]),
    (TimedOutError("acme", 2.5), ["2.5 seconds"]),
    (ContentRefusedError("acme"), ["refused"]),
    (DrawingRefusedError("acme"), ["refused to draw"]),
    (NoPicturesError("acme", "gpt-9", 404), ["acme", "gpt-9", "does not draw"]),
    (BadPictureError("acme", "no PNG"), ["No usable picture"]),
    (OversizedPictureError("acme", 20 * 2**20), ["too large", "20 MiB"]),
    (EmptyAnswerError("acme"), ["empty answer"]),
    (ToolLoopError(12), ["12 steps"]),
    (BadAnswerError("acme", "no JSON"), ["could not be read"]),
]


@pytest.mark.parametrize(("error", "parts"), ERRORS, ids=lambda part: type(part).__name__)
def test_each_error_tells_its_cause(error: ModelError, parts: list[str]) -> None:
    text = texts.model_error(error)
    assert text.html is None
    assert "\n" not in text.plain
    for part in parts:
        assert part in text.plain


def test_every_kind_of_error_has_a_sentence_of_its_own() -> None:
    kinds = {
        kind
        for kind in vars(models).values()
        if inspect.isclass(kind) and issubclass(kind, ModelError)
    }
    assert {type(error) for error, _ in ERRORS} == kinds - {ModelError}
    sentences = {texts.model_error(error).plain for error, _ in ERRORS}
    assert len(sentences) == len(ERRORS)
    assert texts.model_error(ModelError()).plain not in sentences


def test_an_internal_error_shows_its_id() -> None:
    assert "4fe1b2c3" in texts.internal_error("4fe1b2c3").plain


def test_limits_are_named() -> None:
    assert {"10001", "10000"} <= set(re.findall(r"\d+", texts.prompt_too_long(10001, 10000).plain))


# --- stories -------------------------------------------------------------------------------------

REFUSED = texts.model_error(DrawingRefusedError("acme"))
BUSY = texts.model_error(BusyError("acme", "HTTP 503"))
MANY_MISSING = "The story is told, with 1 picture; 3 pictures could not be drawn."


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        (("", 0, []), "The story is told."),
        (("Trees", 0, []), "The story “Trees” is told."),
        (("Trees", 1, []), "The story “Trees” is told, with 1 picture."),
        (("Trees", 3, []), "The story “Trees” is told, with 3 pictures."),
        (
            ("Trees", 1, [REFUSED]),
            f"The story “Trees” is told; 1 picture could not be drawn. {REFUSED.plain}",
        ),
        (
            ("", 4, [REFUSED, BUSY, REFUSED]),
            " ".join([MANY_MISSING, REFUSED.plain, BUSY.plain]),
        ),
    ],
)
def test_the_end_of_a_story_tells_what_is_missing(
    told: tuple[str, int, list[texts.Problem]], sentence: str
) -> None:
    assert texts.story_told(*told).plain == sentence


def test_a_cooldown_tells_when_the_next_story_is_due() -> None:
    assert texts.next_story(0.2).plain.endswith("in 1 second.")
    assert texts.next_story(119.2).plain.endswith("in 120 seconds.")


# --- memories as text ----------------------------------------------------------------------------

SINCE = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


def page(*facts: str, number: int = 1, pages: int = 1) -> texts.Text:
    memories = [Memory(index, fact, SINCE) for index, fact in enumerate(facts, start=11)]
    return texts.memories_page(memories, number, pages, len(facts))


class Shown(HTMLParser):
    """What a client shows of a page: tags, list items as text, and what is in <code>."""

    def __init__(self, text: texts.Text) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.items: list[str] = []
        self.code: list[str] = []
        self._open: list[str] = []
        assert text.html is not None
        self.feed(text.html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert attrs == []
        self.tags.add(tag)
        self._open.append(tag)
        if tag == "li":
            self.items.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "li" in self._open:
            self.items[-1] += data
        if "code" in self._open:
            self.code.append(data)


def test_a_page_lists_ids_and_facts_in_order() -> None:
    text = page("Likes tea", "Has a cat")
    assert text.plain.splitlines() == [
        "What I remember about you (2):",
        "11: Likes tea",
        "12: Has a cat",
    ]
    assert text.html == (
        "<p>What I remember about you (2):</p>"
        "<ul><li><code>11</code> Likes tea</li><li><code>12</code> Has a cat</li></ul>"
    )


def test_further_pages_are_told_of() -> None:
    text = page("Likes tea", number=2, pages=3)
    assert "Page 2 of 3" in text.plain
    assert text.html is not None
    assert "Page 2 of 3" in text.html
    assert "&lt;page&gt;" in text.html
    assert "3" in page(number=9, pages=3).plain


# Markdown and HTML stand as they are; what clients would turn into a link or pill is in <code>.
@pytest.mark.parametrize(
    "fact",
    [
        "Likes **bold** and _thin_ letters",
        "# Likes headings",
        "- Likes lists",
        "> Likes quotes",
        "Likes `code` and ```fences```",
        "<b>Likes bold</b>",
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "</code></li></ul><h1>Likes headings</h1>",
        "Likes &lt;b&gt; and &amp;",
        "Likes \"quotes\" and 'quotes'",
        "<!-- Likes secrets -->",
        "<mx-reply>Likes replies</mx-reply>",
    ],
)
def test_a_fact_is_shown_as_text(fact: str) -> None:
    text = page(fact)
    assert text.plain.endswith(f"\n11: {fact}")
    shown = Shown(text)
    assert shown.tags == {"p", "ul", "li", "code"}
    assert shown.items == [f"11 {fact}"]


@pytest.mark.parametrize(
    "fact",
    [
        "@room come here",
        "Knows @bob:example.org",
        '<a href="https://matrix.to/#/@bob:example.org">Bob</a>',
        "https://matrix.to/#/@bob:example.org",
        "Lives in #room:example.org",
        "Lives in !abc:example.org",
        "[here](https://evil.example)",
        "<https://evil.example>",
        "Writes at https://example.org/?a=1&b=2",
        "Writes at www.example.org",
        "mailto:ada@example.org",
        "![x](mxc://example.org/abc)",
    ],
)
def test_links_pills_and_room_pings_have_no_effect(fact: str) -> None:
    shown = Shown(page(fact))
    assert shown.tags == {"p", "ul", "li", "code"}
    assert fact in shown.code


FACTS = st.text().map(one_line).filter(bool)
ODD_FACTS = st.text(st.sampled_from("<>&\"'/abc!-@#:; "), min_size=1).map(one_line).filter(bool)


@given(st.lists(FACTS | ODD_FACTS, min_size=1, max_size=4))
def test_any_fact_is_shown_as_it_is(facts: list[str]) -> None:
    shown = Shown(page(*facts))
    assert shown.tags == {"p", "ul", "li", "code"}
    assert shown.items == [f"{number} {fact}" for number, fact in enumerate(facts, start=11)]
