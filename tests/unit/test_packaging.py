"""What the plugin needs at run time, and what docs/packagers.md says of it."""

import ast
import importlib.metadata
import re
import sys

from devstack.build import ROOT

PAGE = (ROOT / "docs" / "packagers.md").read_text()


def imported_packages() -> set[str]:
    """Return what the plugin imports from outside itself and Python."""
    names: set[str] = set()
    for path in (ROOT / "llmbot").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Import():
                    names.update(alias.name for alias in node.names)
                case ast.ImportFrom(level=0, module=str(module)):
                    names.add(module)
    packages = {"ruamel.yaml" if name.startswith("ruamel.") else name for name in names}
    tops = {name if name == "ruamel.yaml" else name.partition(".")[0] for name in packages}
    return tops - sys.stdlib_module_names


def brought_by_maubot() -> set[str]:
    """Return what a plain `pip install maubot` brings, and maubot itself."""
    wanted = importlib.metadata.requires("maubot") or []
    plain = [line for line in wanted if "extra ==" not in line]
    return {"maubot", *(re.split(r"[^\w.-]", line)[0] for line in plain)}


def test_the_plugin_imports_only_what_stock_maubot_brings() -> None:
    assert imported_packages() <= brought_by_maubot()


def test_the_page_names_what_the_plugin_imports() -> None:
    (row,) = re.findall(r"^\| imported \| (.*) \|$", PAGE, re.MULTILINE)
    assert set(re.findall(r"`([^`]+)`", row)) == imported_packages()


def test_the_page_names_the_oldest_libraries_of_the_lock_files() -> None:
    table = re.findall(r"^\| (3\.\d+) \|(.*)\|$", PAGE, re.MULTILINE)
    header = re.findall(r"^\| Python \|(.*mautrix.*)\|$", PAGE, re.MULTILINE)
    libraries = [name.strip() for name in header[0].split("|")]
    told = {minor: [cell.strip() for cell in cells.split("|")] for minor, cells in table}
    locked = {}
    for path in (ROOT / "compatibility").glob("oldest-*.lock"):
        versions = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", path.read_text(), re.MULTILINE))
        row = [versions.get(library, "none") for library in libraries]
        locked[path.stem.removeprefix("oldest-")] = row
    assert told == locked


def test_the_version_stands_in_one_place() -> None:
    (version,) = re.findall(r"^version: (.+)$", (ROOT / "maubot.yaml").read_text(), re.MULTILINE)
    elsewhere = ["pyproject.toml", "base-config.yaml"]
    elsewhere += [path.relative_to(ROOT).as_posix() for path in (ROOT / "llmbot").rglob("*.py")]
    assert [name for name in elsewhere if version in (ROOT / name).read_text()] == []
    assert f"## {version} " in (ROOT / "CHANGELOG.md").read_text()
