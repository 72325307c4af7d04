"""What Prometheus reads, and who may read it."""

from __future__ import annotations

import hmac

import pytest
from prometheus_client.parser import text_string_to_metric_families

from devstack.build import ROOT
from llmbot.counters import CAUSES, Counters
from llmbot.metrics import exposition, may_read


def test_prometheus_reads_every_count() -> None:
    counters = Counters(
        turns=1, passes=2, promotions=3, dropped_no_evidence=4, dropped_other=5, cleanups=6
    )
    counters.failures["busy"] = 7
    families = text_string_to_metric_families(exposition(counters, 8, 9.5))
    found: dict[tuple[str, ...], float] = {
        (sample.name, *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }
    expected: dict[tuple[str, ...], float] = {
        ("llmbot_turns_total",): 1,
        ("llmbot_passes_total",): 2,
        ("llmbot_promotions_total",): 3,
        ("llmbot_dropped_items_total", "no_evidence"): 4,
        ("llmbot_dropped_items_total", "other"): 5,
        ("llmbot_cleanups_total",): 6,
        **{("llmbot_failures_total", cause): 7 * (cause == "busy") for cause in CAUSES},
        ("llmbot_passes_running",): 8,
        ("llmbot_start_time_seconds",): 9.5,
    }
    assert found == expected


def test_the_page_on_health_explains_every_metric_and_cause() -> None:
    page = (ROOT / "docs" / "health.md").read_text()
    for family in text_string_to_metric_families(exposition(Counters(), 0, 0)):
        for name in {sample.name for sample in family.samples}:
            assert f"| `{name}` |" in page
    for cause in CAUSES:
        assert f"| `{cause}` |" in page


@pytest.mark.parametrize(
    ("authorization", "token", "may"),
    [
        ("Bearer abc", "abc", True),
        ("bearer  abc ", "abc", True),
        ("Bearer abd", "abc", False),
        ("Basic abc", "abc", False),
        ("Bearer \udcff", "abc", False),
        ("Bearer ", "", False),
        ("", "", False),
    ],
)
def test_only_the_bearer_of_the_token_may_read(authorization: str, token: str, may: bool) -> None:
    assert may_read(authorization, token) is may


def test_the_token_is_compared_in_a_time_that_tells_nothing_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def compare(given: bytes, token: bytes) -> bool:
        compared.append((given, token))
        return False

    monkeypatch.setattr(hmac, "compare_digest", compare)
    # Equal, and yet refused: nothing but that comparison decides.
    assert may_read("Bearer the-token", "the-token") is False
    assert compared == [(b"the-token", b"the-token")]
