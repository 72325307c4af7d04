"""How many inputs the parsers of what models write are tried with.

`make test` takes the profile "test"; `make fuzz` sets `LLMBOT_HYPOTHESIS_PROFILE` to "fuzz".
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# What a test's fixtures give may serve all its inputs: each is told what it has to look at.
EASY = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile("test", max_examples=2000, deadline=None, suppress_health_check=EASY)
settings.register_profile(
    "fuzz", max_examples=100_000, deadline=None, suppress_health_check=EASY, print_blob=True
)
PROFILE = settings.get_profile(os.environ.get("LLMBOT_HYPOTHESIS_PROFILE") or "test")


def fuzzed(test: Callable[..., Any]) -> Callable[..., Any]:
    """Try a property of something that reads a model's output with the profile's many inputs."""
    marked: Callable[..., Any] = pytest.mark.fuzz(PROFILE(test))
    return marked
