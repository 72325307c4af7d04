"""The docs' tables: what differs from the code is found (`make lint`)."""

import re
import shutil
from pathlib import Path

import pytest

from devstack.build import ROOT
from devstack.doc_tables import problems

# Links lead to these from the pages.
COPIED = ("README.md", "CHANGELOG.md", "LICENSE", "base-config.yaml", "docs")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a copy of the files that are checked, and of all that they link to."""
    links = re.compile(r"\]\(\.\./([^)#\s]+)")
    linked = {
        target
        for page in (ROOT / "docs").glob("*.md")
        for target in links.findall(page.read_text())
    }
    for name in {*COPIED, *linked}:
        source, copy = ROOT / name, tmp_path / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copy, dirs_exist_ok=True)
        else:
            shutil.copy(source, copy)
    return tmp_path


def change(root: Path, name: str, old: str, new: str) -> None:
    """Replace a text that a file has."""
    text = (root / name).read_text()
    assert old in text
    (root / name).write_text(text.replace(old, new, 1))


def test_the_docs_tell_what_the_code_says() -> None:
    assert problems() == []


def test_a_changed_default_is_found(root: Path) -> None:
    change(root, "base-config.yaml", "memoryMaxPerUser: 50", "memoryMaxPerUser: 60")
    found = "\n".join(problems(root))
    assert "docs/settings.md: run `make tables`" in found
    assert "docs/memory.md: the default of memoryMaxPerUser is 60, not 50" in found


def test_a_changed_comment_is_found(root: Path) -> None:
    change(root, "base-config.yaml", "Seconds to wait for", "How long to wait for")
    (found,) = problems(root)
    assert "docs/settings.md: run `make tables`" in found


def test_a_setting_that_the_config_lacks_is_found(root: Path) -> None:
    change(root, "base-config.yaml", "storyMaxImages: 3\n", "")
    assert any("the setting storyMaxImages is missing" in found for found in problems(root))


def test_a_setting_that_the_code_lacks_is_found(root: Path) -> None:
    change(root, "base-config.yaml", "timeout: 30\n", "timeout: 30\npatience: 3\n")
    assert any(
        "the setting patience is missing in llmbot/config.py" in found for found in problems(root)
    )


@pytest.mark.parametrize("page", ["README.md", "docs/members.md"])
def test_a_missing_command_is_found(root: Path, page: str) -> None:
    change(root, page, "| `!forget` |", "| `!forgive` |")
    assert problems(root) == [
        f"{page}: the command !forget is missing in the table",
        f"{page}: the table has !forgive, which llmbot does not know",
    ]


def test_a_missing_word_after_a_command_is_found(root: Path) -> None:
    change(root, "docs/members.md", "| `!memories undo` |", "| `!memories redo` |")
    assert problems(root) == [
        "docs/members.md: !memories undo is missing in the table",
        "docs/members.md: the table has !memories redo, which llmbot does not know",
    ]


def test_a_table_that_lost_its_marks_is_found(root: Path) -> None:
    change(root, "README.md", "<!-- commands table: begin -->", "")
    assert "README.md: the command !ask is missing in the table" in problems(root)


def test_a_link_to_no_file_is_found(root: Path) -> None:
    change(root, "docs/members.md", "(memory.md)", "(memories.md)")
    assert problems(root) == ["docs/members.md: the link to memories.md leads nowhere"]


def test_a_module_that_the_architecture_lacks_is_found(root: Path) -> None:
    (root / "llmbot/memory/dreams.py").write_text("")
    assert problems(root) == [
        "docs/architecture.md: llmbot/memory/dreams.py is missing in the tables of modules"
    ]


def test_a_module_that_is_gone_is_found(root: Path) -> None:
    (root / "llmbot/limits.py").unlink()
    assert problems(root) == [
        "docs/architecture.md: the link to ../llmbot/limits.py leads nowhere",
        "docs/images/architecture.svg: there is no limits.py",
    ]


def test_a_module_that_stands_twice_is_found(root: Path) -> None:
    change(root, "docs/architecture.md", "../llmbot/power.py", "../llmbot/room.py")
    assert problems(root) == [
        "docs/architecture.md: llmbot/power.py is missing in the tables of modules",
        "docs/architecture.md: llmbot/room.py stands 2 times in the tables of modules",
    ]


def test_a_rule_that_went_elsewhere_is_found(root: Path) -> None:
    change(root, "llmbot/memory/small_talk.py", "M6", "rule of evidence")
    assert problems(root) == [
        "docs/architecture.md: llmbot/memory/small_talk.py does not name the rule M6"
    ]


def test_a_rule_without_a_place_is_found(root: Path) -> None:
    change(root, "docs/architecture.md", "| M9 |", "| 9 |")
    assert problems(root) == ["docs/architecture.md: the table of rules does not say where M9 is"]
