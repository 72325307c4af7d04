"""Long code also comes as a file with the right name and type."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from llmbot.code_files import MIN_LINES, CodeFile, code_files

from ..fuzzing import fuzzed

LONG = "".join(f"line {number}\n" for number in range(MIN_LINES + 1))
SHORT = "".join(f"line {number}\n" for number in range(MIN_LINES))


@pytest.mark.parametrize(
    ("answer", "files"),
    [
        ("no code at all", []),
        (f"```python\n{SHORT}```", []),
        (f"Look:\n\n```python\n{LONG}```\nDone.", [("code.py", "text/x-python")]),
        (f"~~~sh\n{LONG}~~~", [("code.sh", "text/x-shellscript")]),
        (f"```\n{LONG}```", [("code.txt", "text/plain")]),
        (f"```Klingon\n{LONG}```", [("code.txt", "text/plain")]),
        (f"```c++ title=x\n{LONG}```", [("code.cpp", "text/x-c++")]),
        (f"``` json\n{LONG}```", [("code.json", "application/json")]),
        (f"  ```rust\n{LONG}  ```", [("code.rs", "text/x-rust")]),
        # Cut off at the model's limit: no closing fence.
        (f"```go\n{LONG}", [("code.go", "text/x-go")]),
        (
            f"```html\n{LONG}```\n\n```js\n{SHORT}```\n\n```css\n{LONG}```",
            [("code.html", "text/html"), ("code-2.css", "text/css")],
        ),
        # A longer fence may hold shorter ones.
        (f"````md\n```py\n{LONG}```\n````", [("code.md", "text/markdown")]),
    ],
)
def test_files(answer: str, files: list[tuple[str, str]]) -> None:
    found = code_files(answer)
    assert [(file.name, file.media_type) for file in found] == files


def test_content_is_the_code_as_it_stands() -> None:
    code = LONG.replace("line 3", "Grüße, 世界 <&>")
    assert code_files(f"```text\n{code}```") == [CodeFile("code.txt", "text/plain", code.encode())]


FENCES = st.sampled_from(["```", "```python", "~~~", "````c++", "  ```", "``` js x", "~~~`"])
LINES = st.lists(
    FENCES
    | st.text(st.characters(exclude_categories=[]), max_size=5)
    | st.integers(MIN_LINES - 1, MIN_LINES + 2).map(lambda count: "\n".join(["x"] * count)),
    max_size=12,
)


@fuzzed
@given(LINES)
@example(["```", *["x"] * MIN_LINES, "half of a pair: \ud83d", "```"])
def test_any_answer(lines: list[str]) -> None:
    answer = "\n".join(lines)
    files = code_files(answer)
    assert len({file.name for file in files}) == len(files)
    for file in files:
        code = file.content.decode()
        assert code.count("\n") > MIN_LINES
        assert code in answer.encode(errors="replace").decode()
