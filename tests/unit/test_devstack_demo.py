from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from devstack import demo, demo_view, tour
from devstack.build import ROOT
from devstack.demo import chosen_model
from devstack.demo_chat import Conversation
from devstack.demo_prompt import COMMANDS, BotLog, Prompt
from devstack.demo_view import Tables, draw, shortened
from devstack.member import SeenEvent
from devstack.process import StackError, choose_port
from devstack.scripted_model.persona import extract_carelessly


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


TABLES = Tables((("tea", "1", "2026-12-02"),), (("cake", "2026-12-01"),), promoting_passes=2)


def test_tables_name_their_facts() -> None:
    assert TABLES.candidate_facts == {"tea"}
    assert TABLES.memory_facts == {"cake"}


def test_tables_are_drawn_in_short_and_in_full() -> None:
    assert "2026-12-02" not in str(TABLES)
    assert str(TABLES).splitlines()[-1] == "      cake | 2026-12-01"
    assert TABLES.in_full().splitlines()[3] == "      tea  | 1        | 2026-12-02"
    assert TABLES.in_full().splitlines()[-1] == "    cleanup counter: 2"


def test_a_long_text_is_cut_for_display() -> None:
    for text in ("x" * 500, "word " * 100):
        assert len(shortened(text)) <= demo_view.CELL_WIDTH
        assert shortened(text).endswith(" …")
    assert shortened("just\n right") == "just right"


# --- the prompt ------------------------------------------------------------------------------


LOGGED = """\
[2026-12-01 10:00:00,000] [DEBUG@maubot.instance.llmbot] Memory pass: nothing
[2026-12-01 10:00:00,000] [ERROR@maubot.instance.llmbot] Config: no good
Traceback (most recent call last):
[2026-12-01 10:00:00,000] [WARNING@maubot.instance.llmbot.sub] [odd] text
[2026-12-01 10:00:00,000] [ERROR@maubot.instance.llmbot2] Somebody else's
[2026-12-01 10:00:00,000] [ERROR@maubot.server] Not the bot's
"""


def test_the_bots_warnings_are_taken_from_the_log(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text(LOGGED)
    log = BotLog(file, "llmbot")
    assert not log.has_news()
    with file.open("a") as more:
        more.write(LOGGED)
    assert log.has_news()
    assert log.take() == ["ERROR Config: no good", "WARNING [odd] text"]
    assert log.take() == []


def test_a_line_of_the_log_is_taken_once_it_is_complete(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.touch()
    log = BotLog(file, "llmbot")
    line = "[2026-12-01] [ERROR@maubot.instance.llmbot] no good"
    for part in (line[:20], line[20:]):
        with file.open("a") as more:
            more.write(part)
        assert not log.has_news()
    with file.open("a") as more:
        more.write("\n")
    assert log.take() == ["ERROR no good"]


@pytest.fixture
def prompt(tmp_path: Path) -> Prompt:
    """A prompt whose conversation must not be reached."""
    log_file = tmp_path / "maubot.log"
    log_file.touch()
    stack = SimpleNamespace(maubot=SimpleNamespace(log_file=log_file))
    bot = SimpleNamespace(instance_id="llmbot")
    return Prompt(cast("Conversation", SimpleNamespace(stack=stack, bot=bot)))


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("/set", "Usage: /set <key> <value>"),
        ("/set memoryMaxPerUser", "Usage: /set <key> <value>"),
        ("/set memoryMaxPerUser [", "Usage: /set <key> <value>  (the value is not YAML)"),
        ("/later", "Usage: /later <days>"),
        ("/later soon", "Usage: /later <days>"),
        ("/later nan", "Usage: /later <days>  (more than 0, at most 36500)"),
        ("/later -1", "Usage: /later <days>  (more than 0, at most 36500)"),
        ("/later 1e9", "Usage: /later <days>  (more than 0, at most 36500)"),
        ("/as", "Usage: /as <name>  (a name of plain letters and digits)"),
        ("/as b ob", "Usage: /as <name>  (a name of plain letters and digits)"),
        ("/as ../x", "Usage: /as <name>  (a name of plain letters and digits)"),
        ("/room", "Usage: /room on|off"),
        ("/room maybe", "Usage: /room on|off"),
        ("/twice", "Usage: /twice <text>"),
    ],
)
async def test_a_command_that_is_typed_wrong_gets_its_usage(
    prompt: Prompt, line: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    await prompt.enter(line)
    assert capsys.readouterr().out.strip() == shown


@pytest.mark.parametrize("line", ["/help", "/", "/nonsense", "/HELP me"])
async def test_help_lists_all_commands(
    prompt: Prompt, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    await prompt.enter(line)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(COMMANDS)


# --- the model that makes mistakes, for the tour ------------------------------------------------


def test_the_careless_model_takes_one_word_for_a_confirmation() -> None:
    candidates = [{"n": 1, "fact": "Speaks Danish"}, {"n": 2, "fact": "Likes tea"}]
    found = extract_carelessly({"candidates": candidates, "user_message": "ok"})
    assert found["reinforced"] == [{"n": 1, "evidence": "ok"}, {"n": 2, "evidence": "ok"}]


def test_the_careless_model_takes_the_answer_for_the_persons_words() -> None:
    exchange = {
        "candidates": [{"n": 1, "fact": "Speaks Danish"}],
        "user_message": "What do you know about me?",
        "assistant_reply": "- you speak Danish\n- your dog is called Bruno",
    }
    assert extract_carelessly(exchange) == {
        "new": [{"fact": "Dog is called Bruno", "evidence": "your dog is called Bruno"}],
        "reinforced": [{"n": 1, "evidence": "you speak Danish"}],
        "contradicted": [],
    }


# --- the tour --------------------------------------------------------------------------------


SESSION = """\
> /set a 1
> hello
  llmbot | Hi.

    memories: 2026-12-01
> > quoted
  …
  end
"""


def test_a_session_is_read_as_steps() -> None:
    first, second, third = tour.steps(SESSION)
    assert (first.line, first.shown) == ("/set a 1", "")
    assert (second.line, second.shown) == (
        "hello",
        "  llmbot | Hi.\n\n    memories: 2026-12-01",
    )
    assert third.line == "> quoted"


def test_a_step_is_met_by_what_it_tells() -> None:
    first, second, third = tour.steps(SESSION)
    assert first.is_met_by("anything")
    assert second.is_met_by("  llmbot | Hi.\n    memories: 2031-01-31 \n\n")
    assert not second.is_met_by("  llmbot | Hi.\n    memories: 2031-01-31\n  more\n")
    assert not second.is_met_by("")
    assert third.is_met_by("  end\n")
    assert third.is_met_by("  one\n  two\n  end\n")
    assert not third.is_met_by("  end\n  one\n")


def test_a_tour_with_the_same_steps_stays_as_it_is() -> None:
    text = tour.TOUR.read_text()
    assert len(tour.sessions(text)) > 10
    assert tour.replaced(text, tour.sessions(text)) == text


def test_a_long_line_keeps_the_speakers_margin(capsys: pytest.CaptureFixture[str]) -> None:
    demo_view.quote("Ada", "word " * 40 + "\n\nend")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("     Ada | word")
    assert all(f"{line} ".startswith("         | ") for line in lines[1:])
    assert all(len(line) <= demo_view.WIDTH for line in lines)


def test_the_scripted_model_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MODEL", raising=False)
    assert chosen_model() == (
        {"assistantModel": demo.SCRIPTED, "imageModel": demo.SCRIPTED},
        {},
    )


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
