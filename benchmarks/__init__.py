"""Measurements; see docs/contributing.md."""
