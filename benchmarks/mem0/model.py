"""One model server behind both: it speaks the shapes that llmbot and mem0 ask for, and counts.

Chat completions come from the dev stack's scripted model; embeddings, which only mem0 asks for,
from here: words hashed into a vector, so that texts with words in common are near each other.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from typing import Any

from aiohttp import web

from benchmarks.mem0.script import Extractor
from devstack.scripted_model import RecordedRequest, Response, completion

DIMENSIONS = 256
BYTES_PER_TOKEN = 4
_EXISTING = re.compile(r"^## Existing Memories\n(?P<json>.*)$", re.MULTILINE)
_NEW = re.compile(
    r"^## New Messages\nuser: (?P<words>.*?)\nassistant: .*?\n\n+## Observation Date$",
    re.MULTILINE | re.DOTALL,
)


def tokens(text: str) -> int:
    """Return about how many tokens a text has: one for four bytes of UTF-8, for both alike."""
    return math.ceil(len(text.encode()) / BYTES_PER_TOKEN)


@dataclasses.dataclass
class Counts:
    """What a model server was asked for."""

    chats: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    embeddings: int = 0
    embedded_texts: int = 0
    embedded_tokens: int = 0


class Answers:
    """Answers both kinds of extraction from the same script."""

    def __init__(self, extractor: Extractor) -> None:
        self._extractor = extractor
        self.counts = Counts()

    def chat(self, request: RecordedRequest) -> Response:
        """Answer a chat completion: extraction or cleanup of llmbot, or extraction of mem0."""
        if request.kind == "extraction":
            answer = self._llmbot(request.payload)
        elif request.kind == "cleanup":
            answer = {"drop": [], "merge": []}
        else:
            answer = self._mem0(request.user_message)
        content = json.dumps(answer, ensure_ascii=False)
        self.counts.chats += 1
        # A schema counts as prompt: providers put it there.
        asked = [str(message["content"]) for message in request.messages]
        asked += [json.dumps(request.body["response_format"])]
        self.counts.prompt_tokens += sum(map(tokens, asked))
        self.counts.answer_tokens += tokens(content)
        return completion(request, {"content": content})

    def _llmbot(self, payload: dict[str, Any]) -> dict[str, Any]:
        known = {self._extractor.key(fact) for fact in payload["known_memories"]}
        candidates = {self._extractor.key(one["fact"]): one["n"] for one in payload["candidates"]}
        new, reinforced = [], []
        for statement in self._extractor.stated(payload["user_message"]):
            if statement.key in candidates:
                number = candidates[statement.key]
                reinforced.append({"n": number, "evidence": statement.sentence})
            elif statement.key not in known:
                new.append({"fact": statement.facts[0], "evidence": statement.sentence})
        return {"new": new, "reinforced": reinforced, "contradicted": []}

    def _mem0(self, prompt: str) -> dict[str, Any]:
        existing, new = _EXISTING.search(prompt), _NEW.search(prompt)
        if not existing or not new:
            raise ValueError("mem0's prompt has another shape than that of the pinned version")
        known = {self._extractor.key(memory["text"]) for memory in json.loads(existing["json"])}
        stated = self._extractor.stated(new["words"])
        facts = [statement.facts[0] for statement in stated if statement.key not in known]
        return {
            "memory": [
                {"id": str(number), "text": fact, "attributed_to": "user"}
                for number, fact in enumerate(facts)
            ]
        }

    async def embed(self, http_request: web.Request) -> web.Response:
        """Answer an embeddings request."""
        body = await http_request.json()
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        self.counts.embeddings += 1
        self.counts.embedded_texts += len(texts)
        self.counts.embedded_tokens += sum(map(tokens, texts))
        data = [
            {"object": "embedding", "index": index, "embedding": vector(text)}
            for index, text in enumerate(texts)
        ]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        answer = {"object": "list", "data": data, "model": body["model"], "usage": usage}
        return web.json_response(answer)


def vector(text: str) -> list[float]:
    """Return a unit vector in which each word of a text has a direction of its own."""
    values = [0.0] * DIMENSIONS
    for word in re.findall(r"\w+", text.casefold()) or [""]:
        digest = hashlib.blake2b(word.encode(), digest_size=3).digest()
        values[digest[0] % DIMENSIONS] += 1.0 if digest[1] % 2 else -1.0
        values[digest[2] % DIMENSIONS] += 1.0
    length = math.sqrt(sum(value * value for value in values)) or 1.0
    return [value / length for value in values]
