"""How the bot is set up: what its operators are told, before it is put into words."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping, Sequence

from .config import Settings
from .memory.rules import PassSettings


class Work(enum.Enum):
    """What models are used for."""

    ASSISTANT = enum.auto()
    CODE = enum.auto()
    MEMORY = enum.auto()
    VERSE = enum.auto()
    IMAGE = enum.auto()


class KeyState(enum.Enum):
    """Whether a provider can be asked."""

    PRESENT = enum.auto()
    MISSING = enum.auto()
    NOT_NEEDED = enum.auto()
    NO_PROVIDER = enum.auto()


@dataclasses.dataclass(frozen=True)
class Key:
    """A provider's key, as far as anybody is told of it: where it would be, and if it is there."""

    provider: str
    state: KeyState
    variable: str = ""


@dataclasses.dataclass(frozen=True)
class Setup:
    """Version, models, keys and memory settings in force.

    Attributes:
        version: The plugin's version.
        models: The models, empty where there is none, each with the work that it does. What has
            no model of its own stands with the assistant.
        keys: The keys of the providers that these are of.
        memory: The settings of a pass.
        requires_evidence: Whether facts need evidence (M6).
    """

    version: str
    models: Sequence[tuple[Sequence[Work], str]]
    keys: Sequence[Key]
    memory: PassSettings
    requires_evidence: bool


def setup(version: str, settings: Settings, environment: Mapping[str, str]) -> Setup:
    """Return how the bot is set up; never a key itself.

    Args:
        version: The plugin's version.
        settings: The settings in force.
        environment: Where the providers' keys are, by the names in `apiKeyEnv`.
    """
    models = _models(settings)
    providers = dict.fromkeys(model.partition("/")[0] for _, model in models if model)
    return Setup(
        version,
        models,
        [_key(name, settings, environment) for name in providers],
        settings.memory_pass,
        settings.memory_require_evidence,
    )


def _models(settings: Settings) -> list[tuple[Sequence[Work], str]]:
    chosen = {
        Work.CODE: settings.code_model,
        Work.MEMORY: settings.memory_model,
        Work.VERSE: settings.verse_model,
    }
    shared = [work for work, model in chosen.items() if model.setting == "assistantModel"]
    return [
        ([Work.ASSISTANT, *shared], settings.assistant_model),
        *(([work], model.name) for work, model in chosen.items() if work not in shared),
        ([Work.IMAGE], settings.image_model),
    ]


def _key(provider_name: str, settings: Settings, environment: Mapping[str, str]) -> Key:
    """Say whether a provider's key is there, by the same rule as a call to it."""
    provider = settings.providers.get(provider_name)
    if provider is None:
        return Key(provider_name, KeyState.NO_PROVIDER)
    if not provider.api_key_env:
        return Key(provider_name, KeyState.NOT_NEEDED)
    key = environment.get(provider.api_key_env, "").strip()
    is_there = bool(key) and key.isprintable()
    state = KeyState.PRESENT if is_there else KeyState.MISSING
    return Key(provider_name, state, provider.api_key_env)
