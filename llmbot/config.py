"""The instance's config: from the text in maubot's web UI to one checked `Settings`.

maubot answers an exception on save with a bare HTTP 500 and disables an instance whose start
raises, so nothing here raises for what an admin wrote: a value that cannot be used is
reported in one line and the last good value stays in force.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from mautrix.util.config import BaseProxyConfig, ConfigUpdateHelper
from ruamel.yaml.comments import Comment, CommentedBase

from .memory.facts import looks_secret
from .memory.rules import PassSettings
from .models.client import ClientSettings, Provider


class InvalidValueError(Exception):
    """A value cannot be used; the message is the rule that it breaks."""


Check = Callable[[object], Any]


def _integer(minimum: int) -> Check:
    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            raise InvalidValueError(f"must be a whole number, {minimum} or more")
        return value

    return check


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidValueError("must be a number of seconds above 0")
    if not (math.isfinite(value) and value > 0):
        raise InvalidValueError("must be a number of seconds above 0")
    return float(value)


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidValueError("must be true or false")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidValueError("must be text")
    return value


def _model(value: object) -> str:
    value = "" if value is None else value
    if not isinstance(value, str) or not re.fullmatch(r"[^/\s]+/\S+|", value):
        raise InvalidValueError("must be a model as provider/model, or empty")
    return value


def _providers(value: object) -> dict[str, Provider]:
    if not isinstance(value, Mapping):
        raise InvalidValueError("must be a map from provider names to baseUrl and apiKeyEnv")
    providers = {}
    for name, entry in value.items():
        if not isinstance(name, str) or "/" in name or not name.strip():
            raise InvalidValueError(f"{name!r} is no provider name: text without /")
        if not isinstance(entry, Mapping) or not set(entry) <= {"baseUrl", "apiKeyEnv"}:
            raise InvalidValueError(f"{name} must have baseUrl and apiKeyEnv and nothing else")
        base_url, variable = entry.get("baseUrl"), entry.get("apiKeyEnv") or ""
        if not isinstance(base_url, str) or not re.match(r"https?://[^\s/]+", base_url):
            raise InvalidValueError(f"{name}.baseUrl must be an address: https://… or http://…")
        if not isinstance(variable, str) or not re.fullmatch(r"[A-Za-z_]\w*|", variable):
            raise InvalidValueError(
                f"{name}.apiKeyEnv must be the name of an environment variable, or empty"
            )
        providers[name] = Provider(base_url, variable)
    return providers


def _setting(key: str, check: Check) -> Any:  # noqa: ANN401
    return dataclasses.field(metadata={"key": key, "check": check})


@dataclasses.dataclass(frozen=True)
class Settings:
    """All settings, checked; `base-config.yaml` explains each under the key given here.

    A turn and a pass each take one and keep it, so that a save in between changes neither.
    """

    assistant_model: str = _setting("assistantModel", _model)
    own_memory_model: str = _setting("memoryModel", _model)
    assistant_system_prompt: str = _setting("assistantSystemPrompt", _text)
    providers: Mapping[str, Provider] = _setting("providers", _providers)
    timeout: float = _setting("timeout", _seconds)
    max_concurrent_calls: int = _setting("maxConcurrentCalls", _integer(1))
    max_tool_steps: int = _setting("maxToolSteps", _integer(0))
    memory_promotion_threshold: int = _setting("memoryPromotionThreshold", _integer(1))
    memory_candidate_ttl_days: int = _setting("memoryCandidateTTLDays", _integer(0))
    memory_max_per_user: int = _setting("memoryMaxPerUser", _integer(1))
    memory_cleanup_interval: int = _setting("memoryCleanupInterval", _integer(0))
    memory_require_evidence: bool = _setting("memoryRequireEvidence", _boolean)
    memory_mention_gap_minutes: int = _setting("memoryMentionGapMinutes", _integer(0))
    context_max_messages: int = _setting("contextMaxMessages", _integer(0))
    context_timeout_minutes: int = _setting("contextTimeoutMinutes", _integer(0))
    max_prompt_length: int = _setting("maxPromptLength", _integer(1))
    ask_rate_limit_count: int = _setting("askRateLimitCount", _integer(0))
    ask_rate_limit_window: float = _setting("askRateLimitWindow", _seconds)

    @property
    def memory_model(self) -> str:
        """The model for extraction and cleanup."""
        return self.own_memory_model or self.assistant_model

    @property
    def memory_model_setting(self) -> str:
        """The setting that `memory_model` comes from."""
        return "memoryModel" if self.own_memory_model else "assistantModel"

    @property
    def client(self) -> ClientSettings:
        """What a call to a model needs."""
        return ClientSettings(self.providers, self.timeout, self.max_concurrent_calls)

    @property
    def memory_pass(self) -> PassSettings:
        """What a pass needs (M3: read once)."""
        return PassSettings(
            promotion_threshold=self.memory_promotion_threshold,
            candidate_ttl_days=self.memory_candidate_ttl_days,
            max_per_user=self.memory_max_per_user,
            cleanup_interval=self.memory_cleanup_interval,
            mention_gap_minutes=self.memory_mention_gap_minutes,
        )


_KEYS: dict[str, tuple[str, Check]] = {
    field.metadata["key"]: (field.name, field.metadata["check"])
    for field in dataclasses.fields(Settings)
}


class Config(BaseProxyConfig):
    """The config as maubot stores it; `settings` is what is in force."""

    settings: Settings

    def do_update(self, helper: ConfigUpdateHelper) -> None:
        """Bring the admin's values into the newest base config.

        Comments come from the base config. Keys that llmbot does not know stay, so that a
        mistyped key can still be seen and corrected.
        """
        for key in helper.source._data:  # noqa: SLF001
            value = helper.source.get(key, None, allow_recursion=False)
            if isinstance(value, CommentedBase):
                # Comments inside a value belong to the base config's next key.
                setattr(value, Comment.attrib, Comment())
            helper.base.set(key, value, allow_recursion=False)

    def reload(self, log: logging.Logger) -> None:
        """Read the config again and put in force what can be used of it.

        Reports each value that cannot be used with one ERROR: key, value and rule.
        """
        base = self.load_base()
        assert base is not None, "base-config.yaml is part of the .mbp"
        defaults: Mapping[str, Any] = base._data  # noqa: SLF001
        if not hasattr(self, "settings"):
            self.settings = Settings(
                **{name: check(defaults[key]) for key, (name, check) in _KEYS.items()}
            )
        try:
            self.load_and_update()
        # Whatever YAML an admin wrote must not take the bot down.
        except Exception as error:  # noqa: BLE001
            problem = " ".join(str(error).split())[:300]
            log.error(
                "Config: not usable as YAML settings, all settings stay as they were: %s: %s",
                type(error).__name__,
                "(hidden: it may hold a secret)" if looks_secret(problem) else problem,
            )
            return
        changes = {}
        for key, (name, check) in _KEYS.items():
            value = self._data.get(key)
            try:
                changes[name] = check(value)
            except InvalidValueError as rule:
                log.error(
                    "Config: %s: %s %s; the last good value stays in force",
                    key,
                    _shown(value),
                    rule,
                )
        for key in self._data:
            if key not in _KEYS:
                log.warning("Config: %s is not a setting of llmbot; it has no effect", key)
        self.settings = dataclasses.replace(self.settings, **changes)
        for key, model in (
            ("assistantModel", self.settings.assistant_model),
            ("memoryModel", self.settings.own_memory_model),
        ):
            provider = model.partition("/")[0]
            if provider and provider not in self.settings.providers:
                log.warning("Config: %s: %r is not a name in providers", key, provider)


def _shown(value: object) -> str:
    """Return a value for the log: short, and never a secret that was pasted into the config."""
    text = " ".join(repr(value).split())
    if looks_secret(text):
        return "(hidden: it looks like a secret)"
    return text if len(text) <= 120 else text[:120] + "…"
