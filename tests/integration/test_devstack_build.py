import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from devstack.build import ROOT, build, source_files
from devstack.process import StackError


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Copy what a packager checks out: the plugin's files, without anything generated."""
    target = tmp_path / "checkout"
    shutil.copytree(
        ROOT / "llmbot", target / "llmbot", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in ("maubot.yaml", "base-config.yaml", "LICENSE"):
        shutil.copy(ROOT / name, target)
    return target


def names(mbp: Path) -> list[str]:
    with zipfile.ZipFile(mbp) as archive:
        return sorted(archive.namelist())


def test_the_archive_holds_the_source_files_only(checkout: Path, tmp_path: Path) -> None:
    caches = checkout / "llmbot" / "__pycache__"
    caches.mkdir()
    (caches / "bot.cpython-311.pyc").touch()
    (checkout / "llmbot" / "notes.txt").touch()
    mbp = build(tmp_path / "dist", checkout)
    assert names(mbp) == source_files(checkout)
    assert mbp.name.startswith("dev.llmbot-v")


def test_a_plain_mbc_build_packs_the_same(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    command = [sys.executable, "-m", "maubot.cli", "build", "-o", str(tmp_path / "plain")]
    subprocess.run([*command, str(checkout)], check=True, capture_output=True)
    (plain,) = (tmp_path / "plain").iterdir()
    assert names(plain) == names(build(tmp_path / "dist", checkout))


def test_the_same_source_gives_the_same_bytes(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    first = build(tmp_path / "dist", checkout).read_bytes()
    for name in source_files(checkout):
        (checkout / name).touch()
    assert build(tmp_path / "dist", checkout).read_bytes() == first


def test_a_missing_file_is_one_clear_line(checkout: Path, tmp_path: Path) -> None:
    (checkout / "base-config.yaml").unlink()
    with pytest.raises(StackError, match=r"base-config\.yaml is missing"):
        build(tmp_path / "dist", checkout)


def test_a_broken_description_is_one_clear_line(checkout: Path, tmp_path: Path) -> None:
    (checkout / "maubot.yaml").write_text("id: [")
    with pytest.raises(StackError, match=r"mbc build failed: .*not YAML"):
        build(tmp_path / "dist", checkout)
