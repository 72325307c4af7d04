"""The settings that base-config.yaml gives."""

from __future__ import annotations

import logging

from mautrix.util.config import RecursiveDict
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from devstack.build import ROOT
from llmbot.config import Config, Settings


def default_settings() -> Settings:
    """Read them as the plugin does at its first start."""
    base = RecursiveDict(YAML().load((ROOT / "base-config.yaml").read_text()), CommentedMap)
    config = Config(CommentedMap, base.clone, lambda _: None)
    config.reload(logging.getLogger("test.config"))
    return config.settings
