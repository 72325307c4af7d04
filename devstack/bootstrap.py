"""Make `.venv` from the lock file, using nothing but the standard library.

`make` runs this with the system's Python before anything else, so it must start on any
Python 3 and tell in one line what is missing.
"""

import hashlib
import pathlib
import shutil
import subprocess
import sys

OLDEST_PYTHON = (3, 10)
ROOT = pathlib.Path(__file__).resolve().parent.parent
LOCK_FILE = ROOT / "requirements.lock"
VENV = ROOT / ".venv"
# Holds the lock file's hash: an unfinished or outdated installation has no matching stamp.
STAMP = VENV / ".installed"


class BootstrapError(Exception):
    """Says in one line what is missing on this machine."""


def fingerprint() -> str:
    """Tell one wanted installation from another: the lock file and the Python it is for."""
    text = LOCK_FILE.read_bytes() + sys.version.encode()
    return hashlib.sha256(text).hexdigest()


def make_venv() -> None:
    """Create an empty virtual environment, replacing one that an interrupted run left."""
    if VENV.exists():
        shutil.rmtree(str(VENV))
    try:
        # Imported here because some distributions split it off.
        import venv  # noqa: PLC0415

        venv.EnvBuilder(with_pip=True, symlinks=True).create(str(VENV))
    except (ImportError, subprocess.CalledProcessError):
        shutil.rmtree(str(VENV), ignore_errors=True)
        raise BootstrapError(
            "this Python cannot make virtual environments; on Debian and Ubuntu "
            "install python3-venv"
        ) from None


def install_packages() -> None:
    """Install the locked packages, printing each name as pip comes to it.

    Raises:
        BootstrapError: pip failed; its own last lines say why.
    """
    locked = [line for line in LOCK_FILE.read_text().splitlines() if "==" in line]
    print(
        "Installing up to %d packages into .venv (once; a minute or two) ..." % len(locked),
        flush=True,
    )
    command = [str(VENV / "bin" / "python"), "-m", "pip", "install", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar", "off"]
    command += ["--require-hashes", "-r", str(LOCK_FILE)]
    pip = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True
    )
    last_lines = []  # type: list[str]
    seen = 0
    assert pip.stdout is not None
    for line in pip.stdout:
        last_lines = [*last_lines[-5:], line.rstrip()]
        if line.startswith("Collecting "):
            seen += 1
            print("  %3d  %s" % (seen, line.split()[1]), flush=True)
        elif line.startswith("Installing collected"):
            print("  unpacking ...", flush=True)
    if pip.wait() != 0:
        errors = [line for line in last_lines if line.startswith("ERROR")] or last_lines[-1:]
        raise BootstrapError(
            "pip could not install the packages (is there a network?): " + " ".join(errors)
        )


def main() -> int:
    """Bring `.venv` up to date; return the exit status for the shell."""
    if sys.version_info < OLDEST_PYTHON:
        print(
            "llmbot: needs Python %d.%d or newer, this is %s; name another with PYTHON=..."
            % (OLDEST_PYTHON[0], OLDEST_PYTHON[1], sys.version.split()[0]),
            file=sys.stderr,
        )
        return 1
    wanted = fingerprint()
    if STAMP.exists() and STAMP.read_text() == wanted:
        STAMP.touch()
        return 0
    try:
        make_venv()
        install_packages()
    except BootstrapError as error:
        print("llmbot: %s" % error, file=sys.stderr)
        return 1
    STAMP.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
