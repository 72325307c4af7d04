"""The instance's config, loaded and saved as maubot does it: what is in force, said and kept."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import io
import logging
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mautrix.util.config import RecursiveDict
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from devstack.build import ROOT
from llmbot.config import ChosenModel, Config, InvalidValueError, Settings
from llmbot.models import Provider

BASE_TEXT = (ROOT / "base-config.yaml").read_text()
FIELDS = {field.metadata["key"]: field.name for field in dataclasses.fields(Settings)}
KEYS = sorted(FIELDS)

yaml = YAML()
yaml.indent(4)
yaml.width = 200
BASE = RecursiveDict(yaml.load(BASE_TEXT), CommentedMap)


class Instance(logging.Handler):
    """An instance in maubot: its config text, its log, and what is in force."""

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self.text = text
        self.records: list[logging.LogRecord] = []
        self.log = logging.Logger("instance")  # noqa: LOG001 - one that nobody else shares
        self.log.addHandler(self)
        self.config = Config(lambda: yaml.load(self.text), BASE.clone, self._save)
        self.config.reload(self.log)

    def _save(self, data: Any) -> None:  # noqa: ANN401 - as in maubot
        buffer = io.StringIO()
        yaml.dump(data, buffer)
        self.text = buffer.getvalue()

    def save(self, text: str) -> None:
        """What a click on Save in the web UI does; the log starts anew."""
        self.text = text
        self.records.clear()
        self.config.reload(self.log)

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def said(self, level: int) -> list[str]:
        return [record.getMessage() for record in self.records if record.levelno == level]

    @property
    def errors(self) -> list[str]:
        return self.said(logging.ERROR)

    @property
    def warnings(self) -> list[str]:
        return self.said(logging.WARNING)

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401 - a setting of any type
        return getattr(self.config.settings, FIELDS[key])


@pytest.fixture
def instance() -> Instance:
    return Instance()


@functools.cache
def default_settings() -> Settings:
    return Instance().config.settings


# --- defaults ----------------------------------------------------------------------------------

# PRODUCT.md, section 4.
DEFAULTS = {
    "assistantModel": "gemini/gemini-flash-latest",
    "codeModel": "",
    "memoryModel": "",
    "verseModel": "",
    "imageModel": "",
    "memoryPromotionThreshold": 2,
    "memoryCandidateTTLDays": 14,
    "memoryMaxPerUser": 50,
    "memoryCleanupInterval": 3,
    "memoryRequireEvidence": True,
    "memoryMentionGapMinutes": 0,
    "timeout": 30,
    "imageTimeout": 120,
    "maxConcurrentCalls": 16,
    "maxToolSteps": 12,
    "contextMaxMessages": 20,
    "contextTimeoutMinutes": 5,
    "maxPromptLength": 10000,
    "askRateLimitCount": 15,
    "askRateLimitWindow": 60,
    "codeRateLimitCount": 10,
    "codeRateLimitWindow": 60,
    "drawRateLimitCount": 5,
    "drawRateLimitWindow": 300,
    "storyMaxImages": 3,
    "storyCooldownSeconds": 120,
    "answerMentions": True,
    "answerDirectChats": True,
    "admins": frozenset(),
    "metricsToken": "",
}
PROVIDERS = ["openai", "anthropic", "gemini", "xai", "mistral", "groq", "deepseek", "openrouter"]
OTHER_KEYS = {
    "assistantSystemPrompt",
    "codeSystemPrompt",
    "verseSystemPrompt",
    "providers",
    "allowedUsers",
}


def test_defaults(instance: Instance) -> None:
    assert (instance.errors, instance.warnings) == ([], [])
    assert set(KEYS) <= DEFAULTS.keys() | OTHER_KEYS
    for key in DEFAULTS.keys() & FIELDS.keys():
        assert (key, instance[key]) == (key, DEFAULTS[key])
    assert set(PROVIDERS) | {"ollama"} == set(instance["providers"])
    for name in PROVIDERS:
        provider = instance["providers"][name]
        assert provider.base_url.startswith("https://")
        assert provider.api_key_env == f"{name.upper()}_API_KEY"
    assert instance["providers"]["ollama"] == Provider("http://localhost:11434/v1", "")
    assert instance["assistantSystemPrompt"].strip()


def test_the_base_config_explains_every_setting_and_has_no_others() -> None:
    lines = BASE_TEXT.splitlines()
    assert sorted(BASE._data) == KEYS
    before: dict[str, str] = {}
    for index, line in enumerate(lines):
        key = line.partition(":")[0]
        if key in FIELDS:
            before[key] = lines[index - 1]
    for key in KEYS:
        is_explained = before[key].startswith("# ")
        assert is_explained or re.fullmatch("(ask|code|draw)RateLimitWindow", key), key


@pytest.mark.parametrize("use", ["memory", "code", "verse"])
def test_an_empty_model_setting_means_the_assistants_model(instance: Instance, use: str) -> None:
    def chosen() -> ChosenModel:
        model: ChosenModel = getattr(instance.config.settings, f"{use}_model")
        return model

    assert chosen() == ChosenModel(str(DEFAULTS["assistantModel"]), "assistantModel")
    instance.save(f"{use}Model: openai/small")
    assert chosen() == ChosenModel("openai/small", f"{use}Model")


# --- good values -------------------------------------------------------------------------------

MORE_PROVIDERS = (
    "{gemini: {baseUrl: 'https://g.example/v1'}, own: {baseUrl: 'http://[::1]:8/v1/'}}"
)
ANOTHER: dict[str, tuple[str, object]] = {
    "assistantModel": ("openai/gpt-9", "openai/gpt-9"),
    "codeModel": ("openrouter/qwen/coder:free", "openrouter/qwen/coder:free"),
    "memoryModel": ("groq/small-8b", "groq/small-8b"),
    "verseModel": ("groq/poet", "groq/poet"),
    "imageModel": ("openai/gpt-image-1", "openai/gpt-image-1"),
    "verseSystemPrompt": ("Tell tales.", "Tell tales."),
    "imageTimeout": ("300", 300),
    "drawRateLimitCount": ("0", 0),
    "drawRateLimitWindow": ("60", 60),
    "storyMaxImages": ("0", 0),
    "storyCooldownSeconds": ("0", 0),
    "assistantSystemPrompt": ("Be brief.", "Be brief."),
    "codeSystemPrompt": ("|\n  Write code.\n  Only code.", "Write code.\nOnly code."),
    "memoryPromotionThreshold": ("3", 3),
    "memoryCandidateTTLDays": ("0", 0),
    "memoryMaxPerUser": ("1", 1),
    "memoryCleanupInterval": ("0", 0),
    "memoryRequireEvidence": ("false", False),
    "memoryMentionGapMinutes": ("1_000", 1000),
    "providers": (
        MORE_PROVIDERS,
        {
            "gemini": Provider("https://g.example/v1", ""),
            "own": Provider("http://[::1]:8/v1/", ""),
        },
    ),
    "timeout": ("0.5", 0.5),
    "maxConcurrentCalls": ("1", 1),
    "maxToolSteps": ("0", 0),
    "contextMaxMessages": ("0", 0),
    "contextTimeoutMinutes": ("0x10", 16),
    "maxPromptLength": ("1000000000", 1_000_000_000),
    "askRateLimitCount": ("0", 0),
    "askRateLimitWindow": ("3600", 3600),
    "codeRateLimitCount": ("1", 1),
    "codeRateLimitWindow": ("1.5", 1.5),
    "allowedUsers": ("['@ada:example\\.org']", None),
    "answerMentions": ("false", False),
    "answerDirectChats": ("false", False),
    "admins": (
        "['@ada:example.org', '@bo:[::1]:8448']",
        frozenset({"@ada:example.org", "@bo:[::1]:8448"}),
    ),
    "metricsToken": ("0123456789abcdef-._~+/=", "0123456789abcdef-._~+/="),
}


@pytest.mark.parametrize("key", KEYS)
def test_a_saved_value_is_in_force_at_once(instance: Instance, key: str) -> None:
    text, value = ANOTHER[key]
    assert instance[key] != value
    instance.save(f"{key}: {text}")
    assert instance.errors == []
    if value is not None:
        assert instance[key] == value
    # What is not in the text is at its default.
    name = FIELDS[key]
    unchanged = {name: getattr(default_settings(), name)}
    assert dataclasses.replace(instance.config.settings, **unchanged) == default_settings()


def test_all_values_together_survive_a_restart() -> None:
    instance = Instance("\n".join(f"{key}: {ANOTHER[key][0]}" for key in KEYS))
    assert instance.errors == []
    assert Instance(instance.text).config.settings == instance.config.settings
    assert Instance(instance.text).text == instance.text


# --- bad values --------------------------------------------------------------------------------

NO_INTEGERS = ["null", "true", "false", "'3'", "three", "1.0", "2.5", ".nan", ".inf", "-1", "[]",
               "[3]", "{}", "{a: 1}", "2026-12-01", "1000000001", "1" + "0" * 400,
               "0x" + "f" * 5000]  # fmt: skip
NO_SECONDS = ["null", "true", "'30'", "30s", "0", "-1", "-0.5", ".nan", ".inf", "-.inf", "[30]",
              "{}", "1e10", "1" + "0" * 400, "0x" + "f" * 5000]  # fmt: skip
NO_BOOLEANS = ["null", "'true'", "yes", "1", "0", "1.0", "[]", "[true]", "{}"]
NO_MODELS = ["gemini", "gemini/", "/flash", "a b/c", "gemini/flash latest", "1", "1.5", "true",
             "[a/b]", "{a: b}", "' '", "/"]  # fmt: skip
NO_TEXTS = ["null", "1", "true", "[a]", "{a: b}", "2026-12-01"]
NO_PROVIDERS = [
    "null", "1", "true", "openai", "[]", "[openai]",
    "{openai: null}", "{openai: 'https://x.example'}", "{openai: []}", "{openai: {}}",
    "{openai: {baseUrl: null}}", "{openai: {baseUrl: 1}}", "{openai: {baseUrl: x.example}}",
    "{openai: {baseUrl: 'ftp://x.example'}}", "{openai: {baseUrl: 'https://'}}",
    "{openai: {baseUrl: 'https://x.example:99999'}}", "{openai: {baseUrl: 'https://[x'}}",
    "{openai: {baseUrl: 'https://x.example/v 1'}}",
    "{openai: {baseUrl: 'https://x.example/v1?version=2'}}",
    "{openai: {baseUrl: 'https://ada@x.example/v1'}}",
    "{openai: {baseUrl: 'https://ada:pw@x.example/v1'}}",
    "{openai: {baseUrl: 'https://x.example', apiKeyEnv: 1}}",
    "{openai: {baseUrl: 'https://x.example', apiKeyEnv: [A]}}",
    "{openai: {baseUrl: 'https://x.example', apiKeyEnv: A-B}}",
    "{openai: {baseUrl: 'https://x.example', apiKeyEnv: $A}}",
    "{openai: {baseUrl: 'https://x.example', apiKeyEnv: 1A}}",
    "{openai: {baseUrl: 'https://x.example', apiKey: A}}",
    "{openai: {baseUrl: 'https://x.example', 1: 2}}",
    "{1: {baseUrl: 'https://x.example'}}", "{'': {baseUrl: 'https://x.example'}}",
    "{a/b: {baseUrl: 'https://x.example'}}", "{a b: {baseUrl: 'https://x.example'}}",
    "{null: {baseUrl: 'https://x.example'}}",
    "{good: {baseUrl: 'https://x.example'}, openai: {}}",
]  # fmt: skip

INTEGERS_FROM_1 = [
    "memoryPromotionThreshold",
    "memoryMaxPerUser",
    "maxConcurrentCalls",
    "maxPromptLength",
]
INTEGERS_FROM_0 = [
    "memoryCandidateTTLDays",
    "memoryCleanupInterval",
    "memoryMentionGapMinutes",
    "maxToolSteps",
    "contextMaxMessages",
    "contextTimeoutMinutes",
    "askRateLimitCount",
    "codeRateLimitCount",
    "drawRateLimitCount",
    "storyMaxImages",
    "storyCooldownSeconds",
]
SECONDS = [
    "timeout",
    "imageTimeout",
    "askRateLimitWindow",
    "codeRateLimitWindow",
    "drawRateLimitWindow",
]
BOOLEANS = ["memoryRequireEvidence", "answerMentions", "answerDirectChats"]
MODELS = ["assistantModel", "codeModel", "memoryModel", "verseModel", "imageModel"]
TEXTS = ["assistantSystemPrompt", "codeSystemPrompt", "verseSystemPrompt"]
KINDS = [
    (INTEGERS_FROM_1, ["0", *NO_INTEGERS], "must be a whole number from 1"),
    (INTEGERS_FROM_0, NO_INTEGERS, "must be a whole number from 0"),
    (SECONDS, NO_SECONDS, "must be a number of seconds above 0"),
    (BOOLEANS, NO_BOOLEANS, "must be true or false"),
    (MODELS, NO_MODELS, "must be a model as provider/model"),
    (TEXTS, NO_TEXTS, "must be text"),
    (["providers"], NO_PROVIDERS, ""),
    (
        ["admins"],
        [
            "null",
            "1",
            "'@ada:example.org'",
            "{}",
            "[1]",
            "[ada]",
            "['@ada']",
            "['ada:example.org']",
            "['@a b:example.org']",
            "['@ada:example.org ']",
            "['']",
            "['@ada:example.org', null]",
        ],
        "must be a",
    ),
    (
        ["metricsToken"],
        [
            "null",
            "1234567890123456",
            "true",
            "[0123456789abcdef]",
            "0123456789abcde",
            "0123456789 abcdef",
            "0123456789abcdefü",
            '"0123456789abcdef\\n"',
        ],
        "must be 16 or more letters",
    ),
    (["allowedUsers"], ["null", "1", "'@ada:example.org'", "{}", "[1]", "['(']"], ""),
]
BAD = [
    (key, value, rule)
    for keys, values, rule in KINDS
    for key in keys
    if key in FIELDS
    # All bad values for one key of each kind, some for the others.
    for value in (values if key == keys[0] else values[::4])
]


def test_every_setting_has_bad_values() -> None:
    assert {key for key, _, _ in BAD} == set(KEYS)


@pytest.mark.parametrize(("key", "value", "rule"), BAD, ids=lambda part: str(part)[:60])
def test_a_bad_value_is_named_once_and_the_last_good_one_stays(
    key: str, value: str, rule: str
) -> None:
    other = "memoryMaxPerUser" if key != "memoryMaxPerUser" else "maxToolSteps"
    bad = f"{key}: {value}\n{other}: 7\n"
    instance = Instance(bad)
    errors = instance.errors
    assert len(errors) == 1
    assert key in errors[0]
    assert rule in errors[0]
    assert "last good value stays" in errors[0]
    assert "\n" not in errors[0]
    assert len(errors[0]) < 400
    # At the first start, the default is in force; what else the admin changed is, too.
    assert instance[key] == getattr(default_settings(), FIELDS[key])
    assert instance[other] == 7
    instance.save(f"{key}: {ANOTHER[key][0]}")
    last_good = instance[key]
    assert last_good != getattr(default_settings(), FIELDS[key])
    instance.save(bad)
    assert (instance.errors, instance[key], instance[other]) == (errors, last_good, 7)
    # The text stays as the admin wrote it, to be corrected.
    assert Instance(instance.text).errors == errors


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("timeout: fast", "'fast'"),
        ("timeout: -1", "-1"),
        ("memoryMaxPerUser: true", "True"),
        ("memoryMaxPerUser: [1, 2]", "[1, 2]"),
        ("assistantModel: gemini", "'gemini'"),
        ("assistantSystemPrompt: null", "None"),
        ("providers: {openai: {baseUrl: x.example}}", "providers.openai.baseUrl: 'x.example'"),
        ("providers: {openai: {baseUrl: 'https://x', url: y}}", "providers.openai: 'url'"),
        ("providers: {openai: 7}", "providers.openai: 7"),
        ("providers: {a/b: {}}", "providers: 'a/b'"),
        ("timeout: " + "x" * 5000, "'" + "x" * 100),
    ],
)
def test_an_error_shows_the_value(instance: Instance, text: str, shown: str) -> None:
    instance.save(text)
    assert shown in instance.errors[0]


def test_several_bad_values_are_several_errors(instance: Instance) -> None:
    instance.save("timeout: x\nmaxToolSteps: x\nmemoryMaxPerUser: 9\nproviders: x\n")
    assert len(instance.errors) == 3
    assert instance["memoryMaxPerUser"] == 9
    assert "gemini" in instance["providers"]


def test_a_corrected_value_is_in_force(instance: Instance) -> None:
    instance.save("timeout: x")
    instance.save("timeout: 9")
    assert (instance.errors, instance["timeout"]) == ([], 9)


def test_an_empty_model_is_no_error(instance: Instance) -> None:
    for text in ("assistantModel:", "assistantModel: ''", "assistantModel: null"):
        instance.save(text)
        assert (instance.errors, instance["assistantModel"]) == ([], "")


@pytest.mark.parametrize("key", ["assistantModel", "codeModel", "memoryModel"])
def test_a_model_of_an_unknown_provider_is_a_warning(instance: Instance, key: str) -> None:
    instance.save(f"{key}: nobody/model")
    assert instance.errors == []
    [warning] = instance.warnings
    assert key in warning
    assert "'nobody'" in warning


# --- texts that are no settings ----------------------------------------------------------------

NO_YAML = [
    "timeout: [",
    "timeout: 'x",
    "a: b: c",
    "\ttimeout: 9",
    "timeout: 9\ntimeout: 10",
    "timeout: *nowhere",
    "%YAML 9.9\n---\ntimeout: 9",
    "---\ntimeout: 9\n---\ntimeout: 10",
    "timeout: \x00",
    "timeout: !!binary 'ä'",
    "[" * 500,
    "]",
    "- timeout: 9",
    "[timeout, 9]",
    "timeout",
    "9",
    "true",
    "2026-12-01",
    "!!set {timeout, 9}",
]


@pytest.mark.parametrize("text", NO_YAML, ids=lambda text: repr(text[:30]))
def test_a_text_that_is_no_settings_changes_nothing(text: str) -> None:
    instance = Instance("timeout: 7")
    instance.save(text)
    assert len(instance.errors) == 1
    assert instance["timeout"] == 7
    assert instance.text == text
    instance.save("timeout: 8")
    assert (instance.errors, instance["timeout"]) == ([], 8)
    # At a start all defaults are in force.
    started = Instance(text)
    assert len(started.errors) == 1
    assert started.config.settings == default_settings()


def test_an_error_in_yaml_is_found_by_line_and_column(instance: Instance) -> None:
    instance.save("timeout: 9\nmemoryModel: a: b\n")
    assert "line 2, column 15" in instance.errors[0]


@pytest.mark.parametrize("text", ["", "\n", "# nothing", "null", "{}", "---", "~"])
def test_an_empty_text_restores_the_base_config(text: str) -> None:
    instance = Instance("timeout: 7")
    instance.save(text)
    assert (instance.errors, instance.warnings) == ([], [])
    assert instance.config.settings == default_settings()
    assert instance.text == Instance().text


# --- what is kept ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("memoryMaxPerUsr: 9", "'memoryMaxPerUsr'"),
        ("timeout.seconds: 9", "'timeout.seconds'"),
        ("Timeout: 9", "'Timeout'"),
        ("1: 9", "1"),
        ("null: 9", "None"),
        ("[a, b]: 9", "('a', 'b')"),
        ("1.5: {a: [b, {c: d}]}", "1.5"),
    ],
)
def test_an_unknown_key_is_a_warning_and_stays(instance: Instance, line: str, name: str) -> None:
    instance.save(f"{line}\nmaxToolSteps: 7\n")
    assert instance.errors == []
    [warning] = instance.warnings
    assert name in warning
    assert instance["maxToolSteps"] == 7
    [key] = yaml.load(line)
    assert yaml.load(instance.text)[key] == yaml.load(line)[key]
    assert Instance(instance.text).warnings == [warning]


def test_values_merged_in_from_elsewhere_count(instance: Instance) -> None:
    instance.save("x: &x {timeout: 7, maxToolSteps: 3}\n<<: *x\nmaxToolSteps: 4\n")
    assert (instance["timeout"], instance["maxToolSteps"]) == (7, 4)


def comments(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("#")]


@pytest.mark.parametrize("key", KEYS)
def test_comments_of_the_base_config_survive(instance: Instance, key: str) -> None:
    instance.save(f"{key}: {ANOTHER[key][0]}")
    assert comments(instance.text) == comments(BASE_TEXT)
    uncommented = "".join(
        f"{line}\n" for line in instance.text.splitlines() if not line.startswith("#")
    )
    instance.save(uncommented)
    assert comments(instance.text) == comments(BASE_TEXT)


def test_comments_are_not_doubled_by_another_order(instance: Instance) -> None:
    blocks = instance.text.split("\n\n")
    instance.save("\n\n".join([*blocks[5:], *blocks[:5]]))
    assert instance.errors == []
    assert sorted(comments(instance.text)) == sorted(comments(BASE_TEXT))


def test_a_provider_that_the_admin_adds_is_kept(instance: Instance) -> None:
    own = "    own:\n        baseUrl: http://own.example/v1\n        apiKeyEnv: OWN_KEY\n"
    for text in (
        instance.text.replace("    ollama:", f"{own}    ollama:"),
        instance.text.rstrip() + "\n" + own,
        instance.text.replace("providers:\n", f"providers:\n{own}"),
    ):
        fresh = Instance(text)
        assert (fresh.errors, fresh.warnings) == ([], [])
        assert fresh["providers"]["own"] == Provider("http://own.example/v1", "OWN_KEY")
        assert set(fresh["providers"]) == {*PROVIDERS, "ollama", "own"}
        assert own in fresh.text
        assert comments(fresh.text) == comments(BASE_TEXT)


def test_a_provider_that_the_admin_deletes_stays_deleted(instance: Instance) -> None:
    instance.save("providers:\n  gemini:\n    baseUrl: https://g.example\n")
    assert set(instance["providers"]) == {"gemini"}
    assert set(Instance(instance.text)["providers"]) == {"gemini"}


# --- secrets -----------------------------------------------------------------------------------

SECRETS = [
    "sk-proj-3fK9xQ2vLm8Zt5Rw7Yb1",
    "sk-abcdefghijklmnop",
    "gsk_3fK9xQ2vLm8Zt5Rw7Yb1abcdefgh",
    "hf_3fK9xQ2vLm8Zt5Rw7Yb1abcdefgh",
    "AIzaSyD3fK9xQ2vLm8Zt5Rw7Yb1abcdefgh",
    "xai-3fK9xQ2vLm8Zt5Rw7Yb1",
    "3fK9xQ2vLm8Zt5Rw7Yb13fK9xQ2vLm8Z",
    "syt_YWRh_QwErTyUiOpAsDfGhJkLz_1a2B3c",
]
PLACES = [
    "timeout: {}",
    "timeout: [1, '{}']",
    "memoryRequireEvidence: {{a: {{b: '{}'}}}}",
    "assistantModel: {}",
    "assistantModel: {}/gpt-9",
    "memoryModel: '{}/'",
    "assistantSystemPrompt: ['{}']",
    "providers: {}",
    "providers: ['{}']",
    "providers: {{'{}': {{baseUrl: 'https://x.example'}}}}",
    "providers: {{'{}': null}}",
    "providers: {{a: '{}'}}",
    "providers: {{a: {{baseUrl: '{}'}}}}",
    "providers: {{a: {{baseUrl: 'https://ada:{}@x.example'}}}}",
    "providers: {{a: {{baseUrl: 'https://x.example/?key={}'}}}}",
    "providers: {{a: {{baseUrl: 'https://x.example', apiKeyEnv: {}}}}}",
    "providers: {{a: {{baseUrl: 'https://x.example', apiKey: '{}'}}}}",
    "providers: {{a: {{baseUrl: 'https://x.example', '{}': 1}}}}",
    "{}: 1",
    "apiKey: {}",
    "{}",
    "- {}",
    "timeout: '{}",
    "timeout: 1\n{}\nx: 2",
    "timeout: *{}",
    "a: {}\na: {}",
    "timeout: !{} 1",
    "%{}\n---\na: 1",
]


@pytest.mark.parametrize(
    ("secret", "place"),
    [
        *((SECRETS[0], place) for place in PLACES),
        *((secret, place) for secret in SECRETS[1:] for place in PLACES[::6]),
    ],
)
def test_a_secret_in_the_config_never_reaches_the_log(
    instance: Instance, secret: str, place: str
) -> None:
    instance.save(place.replace("{}", secret).replace("{{", "{").replace("}}", "}"))
    assert instance.records
    for record in instance.records:
        assert secret not in record.getMessage()
        assert secret[4:16] not in record.getMessage()
        assert record.exc_info is None


@pytest.mark.parametrize(
    "secret", ["swordfish", "my-own-key", "Key of ours", "äöü", "12345", "hunter2!"]
)
def test_what_stands_in_place_of_a_variables_name_is_never_shown(
    instance: Instance, secret: str
) -> None:
    instance.save(f"providers: {{a: {{baseUrl: 'https://x.example', apiKeyEnv: '-{secret}'}}}}")
    [error] = instance.errors
    assert "providers.a.apiKeyEnv" in error
    assert secret not in error


@pytest.mark.parametrize("key", [key for key in SECRETS if key.isidentifier()])
def test_a_key_that_could_be_the_name_of_a_variable_is_refused(
    instance: Instance, key: str
) -> None:
    # Else replies would say: the environment variable <key> is not set.
    instance.save(f"providers: {{gemini: {{baseUrl: 'https://x.example', apiKeyEnv: {key}}}}}")
    [error] = instance.errors
    assert "providers.gemini.apiKeyEnv" in error
    assert "not the key itself" in error


@pytest.mark.parametrize(
    "name", ["OPENAI_API_KEY", "API_KEY_2", "KEY_FOR_THE_BOT_1", "my_key", "openai_key2", "_", ""]
)
def test_names_of_variables(instance: Instance, name: str) -> None:
    instance.save(f"providers: {{gemini: {{baseUrl: 'https://x.example', apiKeyEnv: '{name}'}}}}")
    assert instance.errors == []
    assert instance["providers"]["gemini"].api_key_env == name


# --- anything ----------------------------------------------------------------------------------

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.dates()
    | st.datetimes(timezones=st.none() | st.just(datetime.timezone.utc))
    | st.binary(max_size=20)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=8) | st.integers(), inner, max_size=3)
        | st.fixed_dictionaries({}, optional={"baseUrl": inner, "apiKeyEnv": inner})
    ),
    max_leaves=6,
)
DOCUMENTS = st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=8), VALUES, max_size=5)


def check_in_force(in_force: Settings) -> None:
    """Whatever was saved, the settings are such that the bot can work with them."""
    for key in INTEGERS_FROM_1:
        value = getattr(in_force, FIELDS[key])
        assert type(value) is not bool
        assert 1 <= value <= 1_000_000_000
    for key in INTEGERS_FROM_0:
        assert 0 <= getattr(in_force, FIELDS[key]) <= 1_000_000_000
    assert 0 < in_force.timeout <= 1_000_000_000
    assert in_force.memory_require_evidence in {True, False}
    for name, provider in in_force.providers.items():
        assert isinstance(name, str)
        assert isinstance(provider, Provider)
        assert provider.base_url.startswith("http")


def written(document: dict[Any, Any]) -> str:
    buffer = io.StringIO()
    yaml.dump(document, buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("key", KEYS)
@settings(deadline=None)
@given(value=VALUES)
def test_any_value_is_checked(key: str, value: object) -> None:
    [check] = [
        field.metadata["check"]
        for field in dataclasses.fields(Settings)
        if field.metadata["key"] == key
    ]
    try:
        checked = check(value)
    except InvalidValueError:
        return
    check_in_force(dataclasses.replace(default_settings(), **{FIELDS[key]: checked}))


@settings(max_examples=80, deadline=None)
@given(DOCUMENTS.map(written))
def test_nothing_that_is_saved_raises(text: str) -> None:
    instance = Instance(text)
    check_in_force(instance.config.settings)
    assert len(instance.errors) <= len(KEYS)
    in_force = instance.config.settings
    instance.save(instance.text)
    for name in FIELDS.values():
        before, after = getattr(in_force, name), getattr(instance.config.settings, name)
        # The YAML library rounds the last digit of some tiny numbers when it writes them.
        assert after == (pytest.approx(before) if isinstance(before, float) else before)


@settings(max_examples=200, deadline=None)
@given(st.text() | st.text(st.sampled_from("timeout: 9\n-[]{}&*!|>'\"%@`#,?\t")))
def test_no_text_raises(text: str) -> None:
    instance = Instance(text)
    check_in_force(instance.config.settings)


def test_a_misspelt_setting_is_mended_by_deleting_it_not_by_renaming_it(
    instance: Instance,
) -> None:
    instance.save(instance.text.replace("timeout: 30", "timeuot: 60"))
    assert len(instance.warnings) == 1
    # The right name is back, with its default.
    assert "\ntimeout: 30\n" in instance.text
    misspelt = instance.text
    instance.save(misspelt.replace("timeuot: 60", "timeout: 60"))
    assert len(instance.errors) == 1
    assert "stay as they were: DuplicateKeyError in line" in instance.errors[0]
    instance.save(misspelt.replace("timeuot: 60\n", "").replace("timeout: 30", "timeout: 60"))
    assert instance.errors == []
    assert instance.warnings == []
    assert instance["timeout"] == 60
