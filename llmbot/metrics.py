"""The counters as Prometheus reads them (its text format 0.0.4), behind a token. Pure."""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from .counters import CAUSES, Counters

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def may_read(authorization: str, token: str) -> bool:
    """Say whether an Authorization header carries the token; its time tells nothing of it."""
    scheme, _, given = authorization.partition(" ")
    # Headers may hold what is no valid text.
    same = hmac.compare_digest(given.strip().encode(errors="surrogateescape"), token.encode())
    return scheme.lower() == "bearer" and same and token != ""


def exposition(counters: Counters, running: int, started: float) -> str:
    """Return all metrics; no user, no room and no text is in them.

    Args:
        counters: The counts.
        running: How many passes are running now.
        started: When the plugin was started, in seconds since 1970.
    """
    dropped = {"no_evidence": counters.dropped_no_evidence, "other": counters.dropped_other}
    return "".join(
        [
            _metric("turns_total", "Answers to !ask and !code that were sent.", counters.turns),
            _labelled(
                "failures_total",
                "What failed, by cause.",
                "cause",
                {cause: counters.failures[cause] for cause in CAUSES},
            ),
            _metric("passes_total", "Memory passes that were carried out.", counters.passes),
            _metric("promotions_total", "Memories that passes made.", counters.promotions),
            _labelled(
                "dropped_items_total", "Items of the extractor not believed.", "reason", dropped
            ),
            _metric("cleanups_total", "Cleanups that were carried out.", counters.cleanups),
            _metric("passes_running", "Memory passes running now.", running, "gauge"),
            _metric("start_time_seconds", "When the plugin was started.", started, "gauge"),
        ]
    )


def _metric(name: str, meaning: str, value: float, kind: str = "counter") -> str:
    return f"{_head(name, meaning, kind)}llmbot_{name} {value}\n"


def _labelled(name: str, meaning: str, label: str, values: Mapping[str, int]) -> str:
    lines = [f'llmbot_{name}{{{label}="{key}"}} {value}\n' for key, value in values.items()]
    return _head(name, meaning, "counter") + "".join(lines)


def _head(name: str, meaning: str, kind: str) -> str:
    return f"# HELP llmbot_{name} {meaning}\n# TYPE llmbot_{name} {kind}\n"
