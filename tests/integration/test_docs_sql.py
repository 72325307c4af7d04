"""The SQL and the quoted sentences of docs/admins.md and docs/troubleshooting.md."""

import ast
import re

import pytest
from maubot.lib.plugin_db import ProxyPostgresDatabase

from devstack.build import ROOT

STATEMENTS = [
    statement.strip()
    for block in re.findall(
        r"^```sql\n(.*?)^```", (ROOT / "docs/admins.md").read_text(), re.M | re.S
    )
    for statement in block.split(";")
    if statement.strip()
]
ROWS = """
    INSERT INTO memory_candidates (user_id, fact, fact_key) VALUES ('@ada:example.org', 'a', 'a');
    INSERT INTO memories (user_id, fact, fact_key) VALUES ('@ada:example.org', 'b', 'b');
    INSERT INTO memory_cleanup_counters (user_id) VALUES ('@ada:example.org');
    INSERT INTO memory_cleanup_undo (memory_id, user_id, fact, created_at, room_id)
    VALUES (7, '@ada:example.org', 'c', now(), '');
"""


@pytest.mark.parametrize("statement", STATEMENTS)
async def test_a_statement_finds_the_rows(database: ProxyPostgresDatabase, statement: str) -> None:
    await database.execute(ROWS)
    if statement.startswith("SELECT"):
        assert await database.fetch(statement)
    else:
        assert await database.execute(statement) == "DELETE 1"


async def test_the_deletions_leave_nothing_of_the_person(database: ProxyPostgresDatabase) -> None:
    await database.execute(ROWS)
    for statement in STATEMENTS:
        if statement.startswith("DELETE"):
            await database.execute(statement)
    tables = await database.fetch(
        """
        SELECT table_name FROM information_schema.columns
        WHERE table_schema = $1 AND column_name = 'user_id'
        """,
        database.schema_name,
    )
    assert len(tables) == 5
    for (table,) in tables:
        assert await database.fetchval(f"SELECT count(*) FROM {table}") == 0, table


def _sentences() -> str:
    """Return all texts of the code, a line each, with … for what differs."""
    found = []
    for path in (ROOT / "llmbot").glob("**/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                parts = (p.value if isinstance(p, ast.Constant) else "…" for p in node.values)
                found.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(re.sub(r"%[sdr]", "…", node.value))
    return "\n".join(found)


def test_each_quoted_sentence_occurs_in_the_code() -> None:
    page = (ROOT / "docs/troubleshooting.md").read_text()
    quoted = re.findall(r"^\| `([^`]+)`", page, re.MULTILINE)
    assert len(quoted) > 15
    sentences = _sentences()
    assert [sentence for sentence in quoted if sentence not in sentences] == []
