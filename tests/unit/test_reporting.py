from __future__ import annotations

import logging

import pytest

from llmbot.reporting import REPORT_AGAIN_SECONDS, FailureLog


def test_each_cause_is_logged_once_an_hour(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    failures = FailureLog(logging.getLogger("test.failures"), lambda: now)
    for _ in range(3):
        failures.report("the key is missing")
        failures.report("the model is unknown", logging.ERROR)
    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR"]
    now = REPORT_AGAIN_SECONDS
    failures.report("the key is missing")
    assert len(caplog.records) == 3
