"""mem0's side, run with the Python of its own environment: `peer.py JOB.json`.

It uses nothing but mem0's public interface, and SQLite to count the rows of its history.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

from mem0 import Memory


def main(job_file: str) -> None:
    """Let mem0 live through the exchanges; print what it took and holds as JSON."""
    job = json.loads(Path(job_file).read_text())
    folder = Path(job["folder"])
    history = folder / "history.db"
    memory = Memory.from_config(
        {
            "llm": {
                "provider": "openai",
                "config": {
                    "model": "scripted",
                    "api_key": "none",
                    "openai_base_url": job["chat_url"],
                },
            },
            "embedder": {
                "provider": "openai",
                "config": {
                    "model": "scripted",
                    "api_key": "none",
                    "openai_base_url": job["embeddings_url"],
                    "embedding_dims": job["dimensions"],
                },
            },
            "vector_store": {
                "provider": "qdrant",
                "config": {
                    "path": str(folder / "qdrant"),
                    "on_disk": True,
                    "embedding_model_dims": job["dimensions"],
                },
            },
            "history_db_path": str(history),
        }
    )
    adding, searching, recalled = 0.0, 0.0, []
    for exchange in job["exchanges"]:
        begin = time.perf_counter()
        found = memory.search(exchange["words"], filters={"user_id": exchange["user"]})
        middle = time.perf_counter()
        recalled.append([one["memory"] for one in found["results"]])
        messages = [
            {"role": "user", "content": exchange["words"]},
            {"role": "assistant", "content": exchange["reply"]},
        ]
        memory.add(messages, user_id=exchange["user"])
        searching += middle - begin
        adding += time.perf_counter() - middle
    users = {exchange["user"] for exchange in job["exchanges"]}
    memories = {
        user: [
            one["memory"]
            for one in memory.get_all(filters={"user_id": user}, top_k=10_000)["results"]
        ]
        for user in users
    }
    result: dict[str, Any] = {
        "adding": adding,
        "searching": searching,
        "recalled": recalled,
        "memories": memories,
        "rows": {
            "vectors": sum(map(len, memories.values())),
            "history": _count(history, "history"),
            "messages": _count(history, "messages"),
        },
        "versions": {
            name: importlib.metadata.version(name) for name in ("mem0ai", "qdrant-client")
        },
    }
    memory.close()
    print(json.dumps(result))


def _count(database: Path, table: str) -> int:
    with contextlib.closing(sqlite3.connect(database)) as connection:
        query = f"SELECT count(*) FROM {table}"  # noqa: S608 - a name of ours
        return int(connection.execute(query).fetchone()[0])


if __name__ == "__main__":
    main(sys.argv[1])
