"""From a model's answer to a story."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmbot.models.parsing import ShapeError
from llmbot.story import Part, Story, parse_story

TREE = {"title": "Trees", "parts": [{"text": "One.", "picture": "an oak"}, {"text": "Two."}]}
TOLD = Story("Trees", (Part("One.", "an oak"), Part("Two.")))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["title", "parts", "text", "picture", "story"]), inner, max_size=4
        )
    ),
    max_leaves=15,
)


@pytest.mark.parametrize(
    ("answer", "story"),
    [
        (json.dumps(TREE), TOLD),
        (f"```json\n{json.dumps(TREE)}\n```", TOLD),
        ('{"parts": ["One.", " Two. "]}', Story("", (Part("One."), Part("Two.")))),
        (
            '{"title": 3, "parts": [{"text": "One.", "picture": 4}, null, {"picture": "x"}, 5]}',
            Story("", (Part("One."),)),
        ),
        ('{"title": "T", "text": "One."}', Story("T", (Part("One."),))),
        ('{"story": "One."}', Story("", (Part("One."),))),
        ("Once upon a time.\n\nThe end.\n", Story("", (Part("Once upon a time.\n\nThe end."),))),
        ("[A dark stage.]", Story("", (Part("[A dark stage.]"),))),
    ],
)
def test_stories(answer: str, story: Story) -> None:
    assert parse_story(answer, 3) == story


@pytest.mark.parametrize(
    "answer",
    ["", " \n", "{", '{"title": "T"}', '{"parts": []}', '{"parts": [{"text": " "}]}', "```\n```"],
)
def test_no_stories(answer: str) -> None:
    with pytest.raises(ShapeError):
        parse_story(answer, 3)


@pytest.mark.parametrize("most", range(5))
def test_the_first_pictures_are_drawn_and_all_text_stays(most: int) -> None:
    parts = [{"text": f"{n}", "picture": "x" if n != 1 else ""} for n in range(5)]
    story = parse_story(json.dumps({"parts": parts}), most)
    assert [part.text for part in story.parts] == list("01234")
    assert story.pictures == min(most, 4)
    drawn = [part.text for part in story.parts if part.picture]
    assert drawn == ["0", "2", "3", "4"][:most]


@given(JSON | st.text(), st.integers(0, 5))
def test_any_answer_is_a_story_or_a_shape_error(answer: Any, most: int) -> None:  # noqa: ANN401
    text = answer if isinstance(answer, str) else json.dumps(answer)
    try:
        story = parse_story(text, most)
    except ShapeError:
        return
    assert story.parts
    assert all(part.text.strip() for part in story.parts)
    assert story.pictures <= most
