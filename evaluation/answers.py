"""A real model's answers, saved by conversation: a run that was interrupted goes on from them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "answers"
"""Where answers are saved; git ignores what is in it."""


class SavedAnswers:
    """One model's answers, in a file for each conversation.

    An answer belongs to exactly one request, so a run with other prompts asks anew, and runs
    under other rules share what they ask alike.
    """

    def __init__(self, model: str, folder: Path = FOLDER) -> None:
        self._folder = folder / re.sub(r"[^\w.-]+", "_", model)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._read: dict[str, dict[str, str]] = {}

    def find(
        self, conversation: str, model: str, messages: Sequence[Mapping[str, Any]]
    ) -> str | None:
        """Return the answer that a request got before, or None."""
        return self._of(conversation).get(_digest(model, messages))

    def add(
        self, conversation: str, model: str, messages: Sequence[Mapping[str, Any]], answer: str
    ) -> None:
        """Save the answer to a request."""
        digest = _digest(model, messages)
        self._of(conversation)[digest] = answer
        with self._file(conversation).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"request": digest, "answer": answer}) + "\n")

    def _file(self, conversation: str) -> Path:
        return self._folder / f"{conversation}.jsonl"

    def _of(self, conversation: str) -> dict[str, str]:
        if conversation not in self._read:
            self._read[conversation] = dict(self._lines(conversation))
        return self._read[conversation]

    def _lines(self, conversation: str) -> list[tuple[str, str]]:
        file = self._file(conversation)
        if not file.exists():
            return []
        found = []
        for line in file.read_text(encoding="utf-8").splitlines():
            try:
                item = json.loads(line)
            except ValueError:
                continue  # cut off when the run was interrupted
            found.append((item["request"], item["answer"]))
        return found


def _digest(model: str, messages: Sequence[Mapping[str, Any]]) -> str:
    text = json.dumps([model, list(messages)], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
