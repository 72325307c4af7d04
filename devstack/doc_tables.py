"""Keep the docs' tables of settings and commands what the code says.

`python -m devstack.doc_tables` (`make tables`) writes the settings into docs/settings.md, from
the comments of base-config.yaml and the checks of llmbot/config.py. With `--check` it writes
nothing, and names what differs: that page, a default that another page tells, a setting that is
missing in base-config.yaml, a command that is missing in a table or that the code does not have,
a module or a rule that docs/architecture.md has elsewhere, and a link to a file that is not there.
"""

import ast
import dataclasses
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import unified_diff
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from devstack import doc_architecture
from devstack.build import ROOT
from llmbot.addressing import Command
from llmbot.config import InvalidValueError, Settings

SETTINGS_PAGE = "docs/settings.md"
COMMAND_PAGES = ("README.md", "docs/members.md")
BEGIN, END = "<!-- {} table: begin -->", "<!-- {} table: end -->"
SUBCOMMANDS = {"memories": "llmbot/memory_commands.py", "verse": "llmbot/verse.py"}
"""Where the words that may follow a command are told apart."""


@dataclasses.dataclass
class Entry:
    """Settings that stand together in base-config.yaml, and the comment above them."""

    comment: str
    keys: list[str]


@dataclasses.dataclass
class Section:
    """A part of base-config.yaml: its title, what is said of all of it, and its settings."""

    title: str
    comment: str
    entries: list[Entry]


# --- settings ----------------------------------------------------------------------------------


def sections(base_config: str) -> list[Section]:
    """Return how base-config.yaml is arranged.

    A comment belongs to the settings below it, up to the next empty line; one with no setting
    below it speaks of its whole section.
    """
    found: list[Section] = []
    parts = re.split(r"^# --- (.+?) -+\n", base_config, flags=re.MULTILINE)[1:]
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        section = Section(title, "", [])
        found.append(section)
        for paragraph in text.strip().split("\n\n"):
            lines = paragraph.splitlines()
            comment = " ".join(line[1:].strip() for line in lines if line.startswith("#"))
            keys = [line.partition(":")[0] for line in lines if re.match(r"\w+:", line)]
            if keys:
                section.entries.append(Entry(comment, keys))
            else:
                section.comment = comment
    return found


def rules() -> dict[str, str]:
    """Return for each setting of the code what its value must be, in the code's own words."""
    told = {}
    for field in dataclasses.fields(Settings):
        text = _rule(field.metadata["check"]).removeprefix("must be ")
        told[field.metadata["key"]] = re.sub(
            r"a whole number from (\d+) to \d+", r"a whole number, \1 or more", text
        ).replace(", at most 1000000000", "")
    return told


def _rule(check: Callable[[object], object]) -> str:
    """Return what a check says of a value that no setting can have."""
    try:
        check(object())
    except InvalidValueError as rule:
        return str(rule)
    raise TypeError


def shown_default(value: object) -> str:
    """Return a setting's default as the tables tell it."""
    match value:
        case "" | []:
            return "empty"
        case bool():
            return str(value).lower()
        case str() if "\n" in value:
            return "a text of its own"
        case str():
            return f"`{value}`"
        case Mapping():
            return "see below"
        case _:
            return str(value)


def settings_block(base_config: str) -> str:
    """Return what docs/settings.md says between its marks."""
    defaults = YAML(typ="safe").load(base_config)
    told = rules()
    lines = []
    for section in sections(base_config):
        lines += [f"## {section.title}", ""]
        if section.comment:
            lines += [_prose(section.comment, told), ""]
        lines += ["| setting | default | must be | meaning |", "|---|---|---|---|"]
        for entry in section.entries:
            cells = [
                ", ".join(f"`{key}`" for key in entry.keys),
                ", ".join(shown_default(defaults[key]) for key in entry.keys),
                "; ".join(dict.fromkeys(_prose(told[key], ()) for key in entry.keys)),
                _prose(entry.comment, told),
            ]
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    lines += ["| provider | `baseUrl` | `apiKeyEnv` |", "|---|---|---|"]
    for name, provider in defaults["providers"].items():
        variable = provider["apiKeyEnv"]
        lines.append(
            f"| `{name}` | `{provider['baseUrl']}` | {f'`{variable}`' if variable else 'empty'} |"
        )
    return "\n".join(lines)


def _prose(comment: str, keys: Iterable[str]) -> str:
    """Return a comment as Markdown that shows the same text, with settings and commands marked."""
    parts = comment.split("`")
    for number in range(0, len(parts), 2):
        words = re.sub(r"[\\*_\[<|]", r"\\\g<0>", parts[number])
        words = re.sub(r"!\w+", r"`\g<0>`", words)
        for key in keys:
            # One-word names are ordinary words as well.
            if key != key.lower():
                words = re.sub(rf"\b{key}\b", f"`{key}`", words)
        parts[number] = words
    return "`".join(parts)


def setting_problems(base_config: str) -> Iterator[str]:
    """Name the settings that only one of base-config.yaml and the code has."""
    written = {key for section in sections(base_config) for e in section.entries for key in e.keys}
    for key in sorted(written ^ set(rules())):
        where = "llmbot/config.py" if key in written else "base-config.yaml, with a comment"
        yield f"base-config.yaml: the setting {key} is missing in {where}"
    for section in sections(base_config):
        for entry in section.entries:
            if not entry.comment:
                yield f"base-config.yaml: {entry.keys[0]} has no comment"


def default_problems(name: str, page: str, defaults: Mapping[str, Any]) -> Iterator[str]:
    """Name the rows of a page's tables that tell another default than base-config.yaml.

    Such a table has "default" as its second column. Prompts may be described in any words.
    """
    for rows in _tables(page):
        header, *others = rows
        if header[1:2] != ["default"]:
            continue
        for row in others:
            keys = re.findall(r"`(\w+)`", row[0])
            for key in keys:
                if key not in defaults:
                    yield f"{name}: there is no setting {key}"
            wanted = [defaults[key] for key in keys if key in defaults]
            if len(keys) == 1 and wanted:
                is_right = _is_text(wanted[0]) or row[1] == shown_default(wanted[0])
            else:
                is_right = [str(value) for value in wanted] == re.findall(r"\d+", row[1])
            if wanted and not is_right:
                shown = ", ".join(map(shown_default, wanted))
                yield f"{name}: the default of {', '.join(keys)} is {shown}, not {row[1]}"


def _is_text(value: object) -> bool:
    return isinstance(value, str) and "\n" in value


def _tables(page: str) -> Iterator[list[list[str]]]:
    """Yield a page's tables as rows of cells, without the line below the header."""
    for table in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        rows = [
            [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]
            for line in table.splitlines()
        ]
        yield [rows[0], *rows[2:]]


# --- commands ----------------------------------------------------------------------------------


def commands_of_the_code() -> dict[str, set[str]]:
    """Return each command with the words that may follow it."""
    return {
        command.value: (
            _matched_words((ROOT / SUBCOMMANDS[command.value]).read_text())
            if command.value in SUBCOMMANDS
            else set()
        )
        for command in Command
    }


def _matched_words(source: str) -> set[str]:
    """Return the words that a module's `match` statements compare with."""
    return {
        node.value.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.MatchValue)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        and node.value.value
    }


def commands_of_a_table(block: str) -> dict[str, set[str]]:
    """Return the commands that a table tells, with the words that may follow each.

    What stands between angle brackets, or alone between square ones, is an argument. A second
    form of a command's word may stand in the same row on its own, such as `delete`.
    """
    told: dict[str, set[str]] = {}
    for row in next(_tables(block), [[]])[1:]:
        command = ""
        for code in re.findall(r"`([^`]+)`", " ".join(row[:1])):
            command, _, rest = code.removeprefix("!").partition(" ")
            rest = re.sub(r"<[^>]*>|\[\w+\]", "", rest)
            told.setdefault(command, set()).update(re.findall(r"[a-z]+", rest))
        for code in re.findall(r"`([a-z]+)`", " ".join(row[1:])):
            told.setdefault(command, set()).add(code)
    return told


def command_problems(name: str, page: str) -> Iterator[str]:
    """Name the commands that only one of a page's table and the code has."""
    code, told = commands_of_the_code(), commands_of_a_table(_block(page, "commands"))
    for command in [*code, *(set(told) - set(code))]:
        if command not in told:
            yield f"{name}: the command !{command} is missing in the table"
        elif command not in code:
            yield f"{name}: the table has !{command}, which llmbot does not know"
        else:
            for word in sorted(code[command] - told[command]):
                yield f"{name}: !{command} {word} is missing in the table"
            for word in sorted(told[command] - code[command]):
                yield f"{name}: the table has !{command} {word}, which llmbot does not know"


# --- pages -------------------------------------------------------------------------------------


def _block(page: str, kind: str) -> str:
    """Return what stands between a page's marks; nothing where it has none."""
    _, begin, after = page.partition(BEGIN.format(kind))
    return after.partition(END.format(kind))[0] if begin else ""


def with_block(page: str, kind: str, block: str) -> str:
    """Return a page with another text between its marks.

    Raises:
        ValueError: It has no such marks.
    """
    begin, end = BEGIN.format(kind), END.format(kind)
    head, tail = page[: page.index(begin) + len(begin)], page[page.index(end) :]
    return f"{head}\n{block.strip()}\n\n{tail}"


def link_problems(root: Path, name: str) -> Iterator[str]:
    """Name the links of a page that lead to files which are not there."""
    text = re.sub(r"^```.*?^```$", "", (root / name).read_text(), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if not re.match(r"[a-z]+:", target) and not ((root / name).parent / target).exists():
            yield f"{name}: the link to {target} leads nowhere"


def problems(root: Path = ROOT) -> list[str]:
    """Return all that differs between the docs and the code, a line each."""
    base_config = (root / "base-config.yaml").read_text()
    defaults = YAML(typ="safe").load(base_config)
    found = list(setting_problems(base_config))
    page = (root / SETTINGS_PAGE).read_text()
    # Where the two do not agree on which settings there are, there is nothing to write.
    if not found and with_block(page, "settings", settings_block(base_config)) != page:
        wanted = settings_block(base_config).splitlines()
        difference = unified_diff(_block(page, "settings").strip().splitlines(), wanted, n=0)
        first = next(line for line in difference if re.match(r"[-+](?![-+])", line))
        found.append(f"{SETTINGS_PAGE}: run `make tables`; the first line that differs: {first}")
    names = ["README.md", "CHANGELOG.md", *_names(root / "docs", root)]
    for name in names:
        found += default_problems(name, (root / name).read_text(), defaults)
        found += link_problems(root, name)
    for name in COMMAND_PAGES:
        found += command_problems(name, (root / name).read_text())
    return [*found, *doc_architecture.problems(root)]


def _names(folder: Path, root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in folder.glob("**/*.md"))


def main(arguments: list[str]) -> int:
    """Write the settings into their page, or check all tables; return the exit status."""
    if "--check" not in arguments:
        path = ROOT / SETTINGS_PAGE
        block = settings_block((ROOT / "base-config.yaml").read_text())
        path.write_text(with_block(path.read_text(), "settings", block))
    found = problems()
    for problem in found:
        print(f"llmbot docs: {problem}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
