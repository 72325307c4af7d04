"""The same plugin as a newer version: what an admin uploads as an update."""

import zipfile
from pathlib import Path

from ruamel.yaml import YAML


def newer(mbp: Path, folder: Path, version: str) -> Path:
    """Write a copy of a built plugin that bears another version and return its path.

    Args:
        mbp: The built plugin.
        folder: Where the copy goes.
        version: The version that its `maubot.yaml` names.
    """
    with zipfile.ZipFile(mbp) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    old = str(YAML(typ="safe").load(contents["maubot.yaml"])["version"])
    metadata = contents["maubot.yaml"].decode().replace(f"version: {old}", f"version: {version}")
    copy = folder / f"{mbp.stem}-{version}.mbp"
    with zipfile.ZipFile(copy, "w") as archive:
        for name, content in {**contents, "maubot.yaml": metadata.encode()}.items():
            archive.writestr(name, content)
    return copy
