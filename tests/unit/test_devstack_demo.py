from pathlib import Path

import pytest

from devstack import demo
from devstack.build import ROOT
from devstack.demo import Tables, chosen_model, draw
from devstack.member import SeenEvent
from devstack.process import StackError, choose_port


def test_a_table_is_drawn_in_columns() -> None:
    drawn = draw("memories", ("fact", "since"), [("Works as a beekeeper", "2026-12-01")])
    assert drawn.splitlines() == [
        "    memories:",
        "      fact                 | since",
        "      ---------------------+-----------",
        "      Works as a beekeeper | 2026-12-01",
    ]


def test_an_empty_table_says_so() -> None:
    assert draw("memories", ("fact",), []) == "    memories: (no rows)"


def test_tables_name_their_facts() -> None:
    tables = Tables(candidates=(("tea", "1"),), memories=(("cake", "2026-12-01"),))
    assert tables.candidate_facts == {"tea"}
    assert tables.memory_facts == {"cake"}


def test_a_long_line_keeps_the_speakers_margin(capsys: pytest.CaptureFixture[str]) -> None:
    demo.quote("Ada", "word " * 40 + "\n\nend")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("     Ada | word")
    assert all(line.startswith("         | ") for line in lines[1:])
    assert all(len(line) <= demo.WIDTH for line in lines)


def test_the_scripted_model_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MODEL", raising=False)
    assert chosen_model() == ({"assistantModel": demo.SCRIPTED}, {})


@pytest.mark.parametrize("model", ["gemini", "nobody/model", "gemini/", "/model"])
def test_an_unknown_model_is_refused(monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    monkeypatch.setenv("MODEL", model)
    with pytest.raises(StackError, match=r"MODEL must be provider/name with one of .*gemini"):
        chosen_model()


def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL", "gemini/gemini-flash-latest")
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    with pytest.raises(StackError, match="needs the API key in the variable GEMINI_API_KEY"):
        chosen_model()


def test_a_real_model_gets_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL", "gemini/gemini-flash-latest")
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    changes, variables = chosen_model()
    assert changes == {"assistantModel": "gemini/gemini-flash-latest"}
    assert variables["GEMINI_API_KEY"] == "k"


@pytest.mark.parametrize("value", ["maubot", "0", "70000", "-1"])
def test_a_port_must_be_a_port(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("LLMBOT_PORT_X", value)
    with pytest.raises(StackError, match="LLMBOT_PORT_X must be a port number"):
        choose_port("LLMBOT_PORT_X")


@pytest.mark.parametrize(
    ("relation", "replies_to", "is_edit"),
    [
        (None, None, False),
        ("nonsense", None, False),
        ({"m.in_reply_to": {"event_id": "$1"}}, "$1", False),
        ({"rel_type": "m.thread", "m.in_reply_to": {"event_id": "$1"}}, "$1", False),
        ({"rel_type": "m.replace", "event_id": "$1"}, None, True),
    ],
)
def test_an_events_relation_is_read(
    relation: object, replies_to: str | None, is_edit: bool
) -> None:
    content = {"m.relates_to": relation} if relation else {}
    event = SeenEvent("!r", "$e", "@a:b", "m.room.message", content, None, {})
    assert (event.replies_to, event.is_edit, event.body) == (replies_to, is_edit, "")


def test_no_path_of_one_machine_is_in_the_code() -> None:
    for path in Path(demo.__file__).parent.rglob("*.py"):
        assert str(ROOT) not in path.read_text(), path
