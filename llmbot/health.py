"""How the bot is set up, in one line for its operators."""

from __future__ import annotations

from collections.abc import Mapping

from .config import ChosenModel, Settings
from .counters import Counters


def setup_line(version: str, settings: Settings, environment: Mapping[str, str]) -> str:
    """Return version, models, keys and memory settings in one line; never a key itself.

    Args:
        version: The plugin's version.
        settings: The settings in force.
        environment: Where the providers' keys are, by the names in `apiKeyEnv`.
    """
    models = _models(settings)
    providers = dict.fromkeys(model.partition("/")[0] for model in models.values() if model)
    keys = [f"{name} {_key(name, settings, environment)}" for name in providers]
    return (
        f"llmbot {version}; models: {_listed_models(settings, models)}; "
        f"keys: {', '.join(keys) or 'none'}; memory: {_memory(settings)}"
    )


def counted(counters: Counters, running: int, seconds: float) -> list[str]:
    """Return the counts since the start, in lines.

    Args:
        counters: The counts.
        running: How many passes are running now.
        seconds: How long ago the start was.
    """
    hours, minutes = divmod(int(seconds) // 60, 60)
    failures = ", ".join(f"{cause} {count}" for cause, count in sorted(counters.failures.items()))
    return [
        (
            f"since the start {hours} h {minutes} min ago: turns {counters.turns}, "
            f"failures {failures or 0}"
        ),
        (
            f"passes {counters.passes} (running now {running}), promotions {counters.promotions}, "
            f"dropped for lack of evidence {counters.dropped_no_evidence}, "
            f"for other reasons {counters.dropped_other}, cleanups {counters.cleanups}"
        ),
    ]


def _models(settings: Settings) -> dict[str, str]:
    """Return the model for each kind of work; empty where there is none."""
    return {
        "assistant": settings.assistant_model,
        "code": settings.code_model.name,
        "memory": settings.memory_model.name,
        "verse": settings.verse_model.name,
        "image": settings.image_model,
    }


def _listed_models(settings: Settings, models: Mapping[str, str]) -> str:
    """Return the models by name; what has none of its own stands with the assistant."""
    chosen: dict[str, ChosenModel] = {
        "code": settings.code_model,
        "memory": settings.memory_model,
        "verse": settings.verse_model,
    }
    shared = [work for work, model in chosen.items() if model.setting == "assistantModel"]
    listed = {"/".join(["assistant", *shared]): models["assistant"]}
    listed.update({work: models[work] for work in models if work not in ["assistant", *shared]})
    return ", ".join(f"{work} {model or 'none'}" for work, model in listed.items())


def _key(provider_name: str, settings: Settings, environment: Mapping[str, str]) -> str:
    """Say whether a provider's key is there, by the same rule as a call to it."""
    provider = settings.providers.get(provider_name)
    if provider is None:
        return "is not in providers"
    if not provider.api_key_env:
        return "needs none"
    key = environment.get(provider.api_key_env, "").strip()
    return "present" if key and key.isprintable() else f"missing ({provider.api_key_env})"


def _memory(settings: Settings) -> str:
    evidence = "required" if settings.memory_require_evidence else "NOT required"
    return (
        f"threshold {settings.memory_promotion_threshold}, "
        f"candidate TTL {settings.memory_candidate_ttl_days} days, "
        f"at most {settings.memory_max_per_user} a person, "
        f"cleanup interval {settings.memory_cleanup_interval}, "
        f"mention gap {settings.memory_mention_gap_minutes} minutes, "
        f"evidence {evidence}"
    )
