"""Build the `.mbp` as a packager would, with `mbc build`, and check what got into it.

`python -m devstack.build` writes it to `dist/` and prints its path.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from devstack.process import StackError

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "llmbot"
METADATA = ("maubot.yaml", "base-config.yaml", "LICENSE")


def source_files(root: Path) -> list[str]:
    """Return what belongs into the `.mbp`, as sorted paths relative to the checkout."""
    modules = (path.relative_to(root).as_posix() for path in (root / PACKAGE).rglob("*.py"))
    return sorted([*METADATA, *modules])


def build(target_folder: Path = ROOT / "dist", root: Path = ROOT) -> Path:
    """Build the plugin of a checkout and return the archive's path, replacing an older one.

    The same source gives the same bytes: files are in sorted order and carry the time of
    `SOURCE_DATE_EPOCH` or of the last commit.

    Raises:
        StackError: `mbc build` failed, or the archive holds anything but the source files.
    """
    wanted = source_files(root)
    with tempfile.TemporaryDirectory() as temporary:
        # `mbc` zips all it finds; a copy of just the sources keeps bytecode and caches out.
        export, result = Path(temporary, "export"), Path(temporary, "result")
        result.mkdir()
        for name in wanted:
            if not (root / name).is_file():
                raise StackError(f"cannot build the plugin: {name} is missing")
            (export / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, export / name)
        command = [sys.executable, "-m", "maubot.cli", "build", "--output", str(result)]
        done = subprocess.run([*command, str(export)], check=False, capture_output=True, text=True)
        built = list(result.glob("*.mbp"))
        if done.returncode != 0 or len(built) != 1:
            output = (done.stderr or done.stdout).split()
            raise StackError(f"mbc build failed: {' '.join(output)[-300:]}")
        with zipfile.ZipFile(built[0]) as archive:
            if sorted(archive.namelist()) != wanted:
                difference = ", ".join(sorted(set(wanted) ^ set(archive.namelist())))
                raise StackError(f"mbc build packed other files than expected: {difference}")
            contents = {name: archive.read(name) for name in wanted}
        target_folder.mkdir(parents=True, exist_ok=True)
        target = target_folder / built[0].name
        _write_archive(target, contents, _source_time(root))
    return target


def _write_archive(target: Path, contents: dict[str, bytes], seconds: int) -> None:
    """Write a zip file whose bytes depend on the arguments alone."""
    moment = time.gmtime(max(seconds, 315_532_800))[:6]  # Zip knows no time before 1980.
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in contents.items():
            entry = zipfile.ZipInfo(name, moment)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)


def _source_time(root: Path) -> int:
    """Return when the source was last changed, in seconds since 1970; 0 where nobody knows."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    if given.isdecimal():
        return int(given)
    command = ["git", "-C", str(root), "log", "-1", "--format=%ct"]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except OSError:
        return 0
    return int(done.stdout) if done.stdout.strip().isdecimal() else 0


def main() -> int:
    """Build into `dist/`; return the exit status for the shell."""
    try:
        print(build())
    except StackError as error:
        print(f"llmbot build: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
