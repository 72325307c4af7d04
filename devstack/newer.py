"""The same plugin as a newer version: what an admin uploads as an update."""

import zipfile
from pathlib import Path

from ruamel.yaml import YAML

MIGRATIONS = "llmbot/memory/migrations.py"


def newer(mbp: Path, folder: Path, version: str, migration: str = "") -> Path:
    """Write a copy of a built plugin that bears another version and return its path.

    Args:
        mbp: The built plugin.
        folder: Where the copy goes.
        version: The version that its `maubot.yaml` names.
        migration: Source of one more version of the tables; as ever, none where it is empty.
    """
    with zipfile.ZipFile(mbp) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    old = str(YAML(typ="safe").load(contents["maubot.yaml"])["version"])
    metadata = contents["maubot.yaml"].decode().replace(f"version: {old}", f"version: {version}")
    migrations = contents[MIGRATIONS].decode() + migration
    contents |= {"maubot.yaml": metadata.encode(), MIGRATIONS: migrations.encode()}
    copy = folder / f"{mbp.stem}-{version}.mbp"
    with zipfile.ZipFile(copy, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return copy
