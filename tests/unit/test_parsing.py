"""From a server's bytes to an answer: what is understood, and that nothing else is raised."""

from __future__ import annotations

import base64
import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmbot.models.parsing import (
    Completion,
    ShapeError,
    ToolCall,
    parse_completion,
    parse_drawing,
    parse_object,
    refuses_content,
)

from ..fuzzing import fuzzed

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
DEEP = "[" * 100_000 + "]" * 100_000


def body(message: object, **choice: object) -> bytes:
    return json.dumps({"choices": [{"index": 0, "message": message, **choice}]}).encode()


def text_of(content: object) -> str:
    return parse_completion(body({"role": "assistant", "content": content})).text


# --- texts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Hello", "Hello"),
        ("  Hello\n", "Hello"),
        ("", ""),
        (None, ""),
        ([], ""),
        ([{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}], "Hello"),
        ([{"text": "Hello"}], "Hello"),
        ([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Hello"}], "Hello"),
        ([{"type": "thinking", "text": "hm"}, {"type": "text", "text": None}, "x", 1], ""),
        (5, ""),
        (True, ""),
        ({"text": "Hello"}, ""),
        ("\ud83d\ude00 漢字 \0", "😀 漢字 \0"),
    ],
)
def test_content_is_a_string_or_parts_or_null(content: object, text: str) -> None:
    assert text_of(content) == text


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<think>They greet me.</think>Hello", "Hello"),
        ("\n<think>\nThey\n\ngreet me.\n</think>\n\nHello\n", "Hello"),
        ("<THINKING>hm</THINKING> Hello", "Hello"),
        ("<think></think><think>hm</think>Hello", "Hello"),
        ("<think>never ends", ""),
        ("<think>", ""),
        ("They greet me.\n</think>\n\nHello", "Hello"),
        ("I try:\n```\n1\n```\nGood.\n</think>\nHello", "Hello"),
        # An answer may speak of the tags.
        ("Models write <think> first.", "Models write <think> first."),
        ("It ends with `</think>`, see:", "It ends with `</think>`, see:"),
        ("Such as:\n```\n<think>\nhm\n</think>\n```", "Such as:\n```\n<think>\nhm\n</think>\n```"),
        ("I think > 3", "I think > 3"),
    ],
)
def test_reasoning_is_no_part_of_the_answer(content: str, text: str) -> None:
    assert text_of(content) == text


@pytest.mark.parametrize(
    ("message", "choice", "refused"),
    [
        ({"content": "Hello"}, {}, False),
        ({"content": "Hello"}, {"finish_reason": "stop"}, False),
        ({"content": "Hel"}, {"finish_reason": "length"}, False),
        ({"content": "Hello", "refusal": None}, {}, False),
        ({"content": "Hello", "refusal": "hm"}, {}, False),
        ({"content": None, "refusal": "I cannot help with that."}, {}, True),
        ({"content": "", "refusal": {"reason": "policy"}}, {}, True),
        ({"content": ""}, {"finish_reason": "content_filter"}, True),
        ({"content": "Hel"}, {"finish_reason": "content_filter"}, True),
    ],
)
def test_refusals(message: dict[str, Any], choice: dict[str, Any], refused: bool) -> None:
    assert parse_completion(body(message, **choice)).refused is refused


@pytest.mark.parametrize(
    ("given_reason", "reason"),
    [("stop", "stop"), ("length", "length"), (None, "stop"), (7, "stop"), ({}, "stop")],
)
def test_finish_reasons(given_reason: object, reason: str) -> None:
    answer = parse_completion(body({"content": "Hello"}, finish_reason=given_reason))
    assert answer == Completion("Hello", finish_reason=reason)


# --- what is no completion ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"   \n",
        b"Hello",
        b"<html><body>502 Bad Gateway</body></html>",
        b"null",
        b"[]",
        b'"text"',
        b"5",
        b"{}",
        b'{"choices": null}',
        b'{"choices": []}',
        b'{"choices": {}}',
        b'{"choices": [null]}',
        b'{"choices": ["Hello"]}',
        b'{"choices": [[]]}',
        b'{"choices": [{}]}',
        b'{"choices": [{"message": null}]}',
        b'{"choices": [{"message": "Hello"}]}',
        b'{"choices": [{"text": "Hello"}]}',
        b'{"error": {"message": "overloaded", "code": 503}}',
        b'{"error": "overloaded", "choices": [{"message": {"content": "Hello"}}]}',
        b'{"choices": [{"message": {"content": "Hel',
        b'{"choices": [{"message": {"content": "Hello"}}]} trailing',
        b'data: {"choices": []}\n\ndata: [DONE]\n\n',
        b"\xff\xfe\x00\x01",
        "{}".encode("utf-16"),
        b'{"choices": [{"message": \xff}]}',
        b'{"n": ' + b"9" * 10_000 + b"}",
        DEEP.encode(),
        b'{"a":' * 100_000,
        b'{"choices": ' + DEEP.encode() + b"}",
    ],
    ids=lambda broken: repr(broken[:40]),
)
def test_bodies_that_are_no_completion(broken: bytes) -> None:
    with pytest.raises(ShapeError):
        parse_completion(broken)


@pytest.mark.parametrize(
    "odd",
    [
        b'\xef\xbb\xbf{"choices": [{"message": {"content": "Hello"}}]}',
        b' \r\n {"choices": [{"message": {"content": "Hello"}}]} \n',
        b'{"choices": [{"message": {"content": "Hello"}}, {"message": 1}]}',
        b'{"choices": [{"message": {"content": "Hello"}}], "error": null, "usage": NaN}',
        b'{"choices": [{"message": {"content": "Hello"}, "logprobs": -Infinity}], "x": 1e999}',
        b'{"choices": 0, "choices": [{"message": {"content": "Hello"}}]}',
    ],
)
def test_odd_bodies_that_are_completions(odd: bytes) -> None:
    assert parse_completion(odd).text == "Hello"


def test_invalid_utf_8_costs_a_character_only() -> None:
    answer = parse_completion(b'{"choices": [{"message": {"content": "caf\xe9 au lait"}}]}')
    assert answer.text == "caf\ufffd au lait"


# --- tool calls --------------------------------------------------------------------------------


def calls_of(*calls: object) -> tuple[ToolCall, ...]:
    return parse_completion(body({"content": None, "tool_calls": list(calls)})).tool_calls


@pytest.mark.parametrize(
    ("arguments", "understood"),
    [
        ('{"fact": "Likes tea"}', {"fact": "Likes tea"}),
        ({"fact": "Likes tea"}, {"fact": "Likes tea"}),
        ('```json\n{"fact": "Likes tea"}\n```', {"fact": "Likes tea"}),
        ("{}", {}),
        ({}, {}),
        ("", {}),
        (None, {}),
        ("{", None),
        ("[]", None),
        ("null", None),
        ("fact=Likes tea", None),
        ('"{}"', None),
        ([], None),
        (5, None),
        (True, None),
        (DEEP, None),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_arguments(arguments: object, understood: dict[str, Any] | None) -> None:
    [call] = calls_of({"id": "a", "function": {"name": "save_memory", "arguments": arguments}})
    assert call == ToolCall("a", "save_memory", understood)


def test_missing_arguments_are_none_given() -> None:
    assert calls_of({"id": "a", "function": {"name": "f"}}) == (ToolCall("a", "f", {}),)


def test_malformed_calls_are_left_out() -> None:
    good = {"id": "a", "function": {"name": "f", "arguments": "{}"}}
    odd: list[Any] = [None, 1, "f", [], {}, {"function": None}, {"function": {"name": 1}}]
    assert calls_of(*odd, good, *odd) == (ToolCall("a", "f", {}),)
    assert parse_completion(body({"content": "Hello", "tool_calls": {"a": good}})).tool_calls == ()
    assert parse_completion(body({"content": "Hello", "tool_calls": None})).tool_calls == ()


def test_every_call_has_an_id_of_its_own() -> None:
    ids: list[object] = ["a", "a", None, "", 7, "b"]
    calls = calls_of(*({"id": id_, "function": {"name": "f"}} for id_ in ids))
    assert len({call.id for call in calls}) == len(calls) == 6
    assert [calls[0].id, calls[-1].id] == ["a", "b"]
    assert all(call.id for call in calls)


def test_an_answer_goes_back_as_the_message_that_it_was() -> None:
    answer = parse_completion(
        body(
            {
                "content": "<think>hm</think>One moment.",
                "tool_calls": [
                    {"id": "a", "function": {"name": "f", "arguments": {"x": "é"}}},
                    {"id": "b", "function": {"name": "g", "arguments": "broken"}},
                ],
            }
        )
    )
    assert answer.as_message() == {
        "role": "assistant",
        "content": "One moment.",
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": "é"}'}},
            {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}},
        ],
    }
    assert Completion("Hello").as_message() == {"role": "assistant", "content": "Hello"}


# --- JSON objects in answers -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{}", {}),
        (' \n{"a": [1]}\n', {"a": [1]}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('```\n{"a": 1}\n```', {"a": 1}),
        ('\n\n```JSON  \n\n{"a": 1}\n\n```\n\n', {"a": 1}),
        ('``` json\n{"a": 1}```', None),
        ('```json {"a": 1} ```', {"a": 1}),
        ('```json\n{"a": 1}', {"a": 1}),
        ('```json\r\n{"a": 1}\r\n```', {"a": 1}),
        ('Here it is:\n\n```json\n{"a": 1}\n```\nAnything else?', {"a": 1}),
        ('{"a": "```"}', {"a": "```"}),
        ('```json\n{"a": "use ``` here"}\n```', {"a": "use ``` here"}),
        ("", None),
        ("```", None),
        ("``````", None),
        ("```json\n```", None),
        ("no facts", None),
        ("[]", None),
        ("```json\n[]\n```", None),
        ("null", None),
        ("5", None),
        ('{"a": 1} {"b": 2}', None),
        ('{"a": 1', None),
        ("{'a': 1}", None),
        ('{"a": 1,}', None),
        (DEEP, None),
        ('{"a": ' + DEEP + "}", None),
        ('{"a": ' + "9" * 10_000 + "}", None),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_objects(text: str, value: object) -> None:
    if value is None:
        with pytest.raises(ShapeError):
            parse_object(text)
    else:
        assert parse_object(text) == value


@pytest.mark.parametrize("space", [" ", "\n", "\r\n", "\t \n"])
def test_endless_white_space_is_read_in_no_time(space: str) -> None:
    # Models that lose the thread answer so; a pattern that tries again at each place would hang.
    for text in ("```json" + space * 500_000, "```\n" + space * 500_000 + "x```", space * 500_000):
        with pytest.raises(ShapeError):
            parse_object(text)
    assert text_of(f"hm{space * 500_000}\n</think>Hello") == "Hello"
    assert text_of(("<think>" + space) * 50_000) == ""


# --- anything ----------------------------------------------------------------------------------


@fuzzed
@given(st.binary())
def test_any_bytes(raw: bytes) -> None:
    try:
        answer = parse_completion(raw)
    except ShapeError:
        return
    assert isinstance(answer.text, str)


MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "content": JSON
        | st.lists(st.fixed_dictionaries({"type": JSON, "text": JSON}), max_size=3),
        "refusal": JSON,
        "tool_calls": JSON
        | st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "id": JSON,
                    "function": JSON
                    | st.fixed_dictionaries(
                        {}, optional={"name": JSON, "arguments": JSON | JSON.map(json.dumps)}
                    ),
                },
            ),
            max_size=4,
        ),
    },
)
ANSWERS = JSON | st.fixed_dictionaries(
    {},
    optional={
        "error": st.none() | JSON,
        "choices": JSON
        | st.lists(
            st.fixed_dictionaries(
                {}, optional={"message": MESSAGES | JSON, "finish_reason": JSON}
            ),
            max_size=2,
        ),
    },
)


@fuzzed
@given(ANSWERS)
def test_any_json(answer: object) -> None:
    raw = json.dumps(answer).encode()
    try:
        completion = parse_completion(raw)
    except ShapeError:
        return
    assert completion.text == completion.text.strip()
    assert len({call.id for call in completion.tool_calls}) == len(completion.tool_calls)
    sent_back = json.loads(json.dumps(completion.as_message()))
    assert sent_back["role"] == "assistant"
    for call in sent_back.get("tool_calls", ()):
        assert call["id"]
        assert isinstance(json.loads(call["function"]["arguments"]), dict)


@fuzzed
@given(
    st.text() | st.binary() | st.text(st.sampled_from('`{}[]":\njson 1\\')) | JSON.map(json.dumps)
)
def test_any_text_is_an_object_or_a_shape_error(text: str | bytes) -> None:
    try:
        value = parse_object(text)
    except ShapeError:
        return
    assert isinstance(value, dict)


@fuzzed
@given(st.dictionaries(st.text(), JSON, max_size=3), st.sampled_from(["", "json", "JSON"]))
def test_a_fence_changes_nothing(value: dict[str, Any], language: str) -> None:
    text = json.dumps(value)
    assert repr(parse_object(f"```{language}\n{text}\n```")) == repr(parse_object(text))


# --- pictures ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("drawing", "found"),
    [
        ({"b64_json": "aGk="}, b"hi"),
        ({"b64_json": "aG\nk"}, b"hi"),
        ({"b64_json": "_-8="}, b"\xff\xef"),
        ({"b64_json": "data:image/png;base64,aGk="}, b"hi"),
        ({"b64_json": None, "url": "https://x.example/a.png"}, "https://x.example/a.png"),
        ({"b64_json": "", "url": " https://x.example/a.png "}, "https://x.example/a.png"),
        ({"url": "data:image/png;base64,aGk%3D"}, b"hi"),
        ({"url": "DATA:,a%20b"}, b"a b"),
    ],
)
def test_a_picture_comes_as_base64_or_by_its_address(drawing: object, found: object) -> None:
    assert parse_drawing(json.dumps({"data": [drawing]}).encode()) == found


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"data": []},
        {"data": {}},
        {"data": [[]]},
        {"data": [{}]},
        {"data": [{"b64_json": 1, "url": []}]},
        {"data": [{"b64_json": "a"}]},
        {"data": [{"b64_json": "???"}]},
        {"data": [{"url": "data:image/png"}]},
        {"data": [{"b64_json": "aGk="}], "error": {"message": "no"}},
        [],
    ],
)
def test_bodies_without_a_picture(answer: object) -> None:
    with pytest.raises(ShapeError):
        parse_drawing(json.dumps(answer).encode())


DRAWINGS = st.fixed_dictionaries(
    {"data": st.lists(st.dictionaries(st.sampled_from(["b64_json", "url"]), JSON), max_size=2)}
)


@given(DRAWINGS | JSON)
def test_any_answer_is_a_picture_or_an_address_or_a_shape_error(answer: object) -> None:
    body = json.dumps(answer).encode()
    refuses_content(body)
    with contextlib.suppress(ShapeError):
        assert isinstance(parse_drawing(body), (bytes, str))


@given(st.binary(max_size=100))
def test_any_picture_comes_back_as_it_was(content: bytes) -> None:
    encoded = base64.b64encode(content).decode()
    if encoded:
        assert parse_drawing(json.dumps({"data": [{"b64_json": encoded}]}).encode()) == content


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        ({"code": "content_policy_violation"}, True),
        ({"code": "moderation_blocked", "message": None}, True),
        ({"type": "image_generation_user_error", "message": "Blocked by our safety system"}, True),
        ("rejected by the content filter", True),
        ({"code": 400, "details": [{"reason": "PUBLIC_ERROR_UNSAFE_GENERATION"}]}, True),
        ({"code": "invalid_size", "message": "size is not supported"}, False),
        ({"code": 400}, False),
        (None, False),
    ],
)
def test_refusals_of_content(error: object, refused: bool) -> None:
    assert refuses_content(json.dumps({"error": error}).encode()) is refused
    assert refuses_content(json.dumps([{"error": error}]).encode()) is refused


@pytest.mark.parametrize("raw", [b"", b"content policy", b"[[", b"[1]", b"\xff", b'"safety"'])
def test_what_is_no_error_refuses_nothing(raw: bytes) -> None:
    assert not refuses_content(raw)
