"""The instance's config: from the text in maubot's web UI to one checked `Settings`.

maubot answers an exception on save with a bare HTTP 500 and disables an instance whose start
raises, so nothing here raises for what an admin wrote: a value that cannot be used is
reported in one line and the last good value stays in force.
"""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import yarl
from mautrix.util.config import BaseProxyConfig, ConfigUpdateHelper
from ruamel.yaml.comments import Comment, CommentedBase

from .conversation import ContextLimits
from .memory.facts import looks_secret
from .memory.rules import PassSettings
from .models.client import ClientSettings, Provider

_CONTEXT_PROMPTS = 4
"""Characters of conversation that a model sees, in longest prompts."""


_MAX_NUMBER = 1_000_000_000


class InvalidValueError(Exception):
    """A value cannot be used; the message is the rule that it breaks.

    Where only a part of the value breaks it, `part` says which (`.name` and so on) and `shown`
    what the log may show of it.
    """

    def __init__(self, rule: str, part: str = "", shown: str | None = None) -> None:
        super().__init__(rule)
        self.part = part
        self.shown = shown


Check = Callable[[object], Any]


def _integer(minimum: int) -> Check:
    def check(value: object) -> int:
        if (
            isinstance(value, bool)
            or not isinstance(value, int)
            or not minimum <= value <= _MAX_NUMBER
        ):
            raise InvalidValueError(f"must be a whole number from {minimum} to {_MAX_NUMBER}")
        return value

    return check


def _seconds(value: object) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not 0 < value <= _MAX_NUMBER
    ):
        raise InvalidValueError(f"must be a number of seconds above 0, at most {_MAX_NUMBER}")
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
    if looks_secret(value.partition("/")[0]):
        raise InvalidValueError("must be a model as provider/model, not a key", shown=_HIDDEN)
    return value


def _expressions(value: object) -> tuple[re.Pattern[str], ...]:
    if not isinstance(value, list):
        raise InvalidValueError("must be a list of regular expressions")
    return tuple(_expression(number, text) for number, text in enumerate(value))


def _user_ids(value: object) -> frozenset[str]:
    if not isinstance(value, list):
        raise InvalidValueError("must be a list of Matrix ids")
    for number, entry in enumerate(value):
        if not isinstance(entry, str) or not re.fullmatch(r"@[^:\s]+:\S+", entry):
            raise InvalidValueError(
                "must be a whole Matrix id, @name:server", f"[{number}]", _shown(entry)
            )
    return frozenset(value)


def _token(value: object) -> str:
    # What a header can hold after "Bearer", and long enough not to be guessed.
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9._~+/=-]{16,}|", value):
        raise InvalidValueError(
            "must be 16 or more letters, digits and -._~+/= in quotes, or empty", shown=_HIDDEN
        )
    return value


def _expression(number: int, text: object) -> re.Pattern[str]:
    part, shown = f"[{number}]", _shown(text)
    if not isinstance(text, str):
        raise InvalidValueError("must be a regular expression in quotes", part, shown)
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise InvalidValueError(f"is no regular expression ({error})", part, shown) from None


def _providers(value: object) -> dict[str, Provider]:
    if not isinstance(value, Mapping):
        raise InvalidValueError("must be a map from provider names to baseUrl and apiKeyEnv")
    return {name: _provider(name, entry) for name, entry in value.items()}


def _provider(name: object, entry: object) -> Provider:
    if not isinstance(name, str) or not re.fullmatch(r"[^/\s]+", name) or looks_secret(name):
        raise InvalidValueError(
            "is no provider name: text without / and spaces", shown=_shown(name)
        )
    if not isinstance(entry, Mapping):
        raise InvalidValueError(
            "must be a map of baseUrl and apiKeyEnv", f".{name}", _shown(entry)
        )
    for key in entry:
        if key not in {"baseUrl", "apiKeyEnv"}:
            raise InvalidValueError(
                "is not known here, only baseUrl and apiKeyEnv are", f".{name}", _shown(key)
            )
    base_url, variable = entry.get("baseUrl"), entry.get("apiKeyEnv") or ""
    if not isinstance(base_url, str) or not _is_base_url(base_url):
        raise InvalidValueError(
            "must be an address, https://… or http://…, without user name and query",
            f".{name}.baseUrl",
            _shown(base_url),
        )
    if not isinstance(variable, str) or not _is_variable(variable):
        # Not shown, since it may be the key itself.
        raise InvalidValueError(
            "must be the name of an environment variable, not the key itself, or empty",
            f".{name}.apiKeyEnv",
            _HIDDEN,
        )
    return Provider(base_url, variable)


def _is_base_url(text: str) -> bool:
    try:
        url = yarl.URL(text)
    except ValueError:
        return False
    is_http = url.scheme in {"http", "https"} and url.host is not None
    return is_http and url.user is None and not re.search(r"[\s?#]", text)


def _is_variable(text: str) -> bool:
    if not re.fullmatch(r"[A-Za-z_]\w*|", text, re.ASCII):
        return False
    # Keys of some providers have the form of a name; no name of a variable mixes letters so.
    return text.isupper() or not looks_secret(text)


def _setting(key: str, check: Check) -> Any:  # noqa: ANN401
    return dataclasses.field(metadata={"key": key, "check": check})


class ChosenModel(NamedTuple):
    """A model as `provider/model`, and the setting that it comes from."""

    name: str
    setting: str


@dataclasses.dataclass(frozen=True)
class Settings:
    """All settings, checked; `base-config.yaml` explains each under the key given here.

    A turn and a pass each take one and keep it, so that a save in between changes neither.
    """

    assistant_model: str = _setting("assistantModel", _model)
    own_memory_model: str = _setting("memoryModel", _model)
    own_code_model: str = _setting("codeModel", _model)
    own_verse_model: str = _setting("verseModel", _model)
    image_model: str = _setting("imageModel", _model)
    assistant_system_prompt: str = _setting("assistantSystemPrompt", _text)
    code_system_prompt: str = _setting("codeSystemPrompt", _text)
    verse_system_prompt: str = _setting("verseSystemPrompt", _text)
    providers: Mapping[str, Provider] = _setting("providers", _providers)
    timeout: float = _setting("timeout", _seconds)
    image_timeout: float = _setting("imageTimeout", _seconds)
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
    code_rate_limit_count: int = _setting("codeRateLimitCount", _integer(0))
    code_rate_limit_window: float = _setting("codeRateLimitWindow", _seconds)
    draw_rate_limit_count: int = _setting("drawRateLimitCount", _integer(0))
    draw_rate_limit_window: float = _setting("drawRateLimitWindow", _seconds)
    story_max_images: int = _setting("storyMaxImages", _integer(0))
    story_cooldown_seconds: int = _setting("storyCooldownSeconds", _integer(0))
    allowed_users: tuple[re.Pattern[str], ...] = _setting("allowedUsers", _expressions)
    answer_mentions: bool = _setting("answerMentions", _boolean)
    answer_direct_chats: bool = _setting("answerDirectChats", _boolean)
    admins: frozenset[str] = _setting("admins", _user_ids)
    metrics_token: str = _setting("metricsToken", _token)

    def allows(self, user_id: str) -> bool:
        """Say whether this user gets answers: everybody where the list is empty."""
        return not self.allowed_users or any(
            expression.fullmatch(user_id) for expression in self.allowed_users
        )

    @property
    def memory_model(self) -> ChosenModel:
        """The model for extraction and cleanup."""
        return self._own_or_assistants(self.own_memory_model, "memoryModel")

    @property
    def code_model(self) -> ChosenModel:
        """The model for `!code`."""
        return self._own_or_assistants(self.own_code_model, "codeModel")

    @property
    def verse_model(self) -> ChosenModel:
        """The model for answers inside a scene."""
        return self._own_or_assistants(self.own_verse_model, "verseModel")

    def _own_or_assistants(self, own: str, setting: str) -> ChosenModel:
        if own:
            return ChosenModel(own, setting)
        return ChosenModel(self.assistant_model, "assistantModel")

    @property
    def context(self) -> ContextLimits:
        """How much of a conversation a model sees."""
        return ContextLimits(
            max_messages=self.context_max_messages,
            max_characters=self.max_prompt_length * _CONTEXT_PROMPTS,
            timeout_minutes=self.context_timeout_minutes,
        )

    @property
    def client(self) -> ClientSettings:
        """What a call to a model needs."""
        return ClientSettings(self.providers, self.timeout, self.max_concurrent_calls)

    @property
    def image_client(self) -> ClientSettings:
        """What a call for a picture needs."""
        return ClientSettings(self.providers, self.image_timeout, self.max_concurrent_calls)

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
        if not isinstance(helper.source._data, Mapping):  # noqa: SLF001
            raise InvalidValueError("the text must be a map of settings")
        for key, value in helper.source._data.items():  # noqa: SLF001
            _drop_comments(value)
            for inner in value.values() if isinstance(value, Mapping) else ():
                _drop_comments(inner)
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
            log.error(
                "Config: not usable as YAML settings, all settings stay as they were: %s",
                _problem(error),
            )
            return
        changes = {}
        for key, (name, check) in _KEYS.items():
            value = self._data.get(key)
            try:
                changes[name] = check(value)
            except InvalidValueError as rule:
                log.error(
                    "Config: %s%s: %s %s; the last good value stays in force",
                    key,
                    rule.part,
                    _shown(value) if rule.shown is None else rule.shown,
                    rule,
                )
        for key in self._data:
            if key not in _KEYS:
                log.warning("Config: %s is not a setting of llmbot; it has no effect", _shown(key))
        self.settings = dataclasses.replace(self.settings, **changes)
        for key, model in (
            ("assistantModel", self.settings.assistant_model),
            ("codeModel", self.settings.own_code_model),
            ("memoryModel", self.settings.own_memory_model),
            ("verseModel", self.settings.own_verse_model),
            ("imageModel", self.settings.image_model),
        ):
            provider = model.partition("/")[0]
            if provider and provider not in self.settings.providers:
                log.warning("Config: %s: %r is not a name in providers", key, provider)


def _drop_comments(value: object) -> None:
    """Drop an admin's comments in a map or list: some belong to the base config's next key."""
    if isinstance(value, CommentedBase):
        setattr(value, Comment.attrib, Comment())


def _problem(error: Exception) -> str:
    """Return what is wrong with a text, and where, without showing any of it."""
    if isinstance(error, InvalidValueError):
        return str(error)
    mark = getattr(error, "problem_mark", None)
    where = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return type(error).__name__ + where


_HIDDEN = "(hidden: it may be a secret)"


def _shown(value: object) -> str:
    """Return a value for the log: short, and never a secret that was pasted into the config."""
    try:
        text = " ".join(repr(value).split())
    # Some values have no text, such as a number of 5,000 digits.
    except (ValueError, RecursionError):
        return f"(a value of type {type(value).__name__})"
    if looks_secret(text[:10_000]):
        return _HIDDEN
    return text if len(text) <= 120 else text[:120] + "…"
