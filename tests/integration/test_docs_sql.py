"""The SQL of all pages in docs/, on the real tables with rows in them."""

from __future__ import annotations

import re

import pytest
from maubot.lib.plugin_db import ProxyPostgresDatabase

from devstack.build import ROOT

PAGES = sorted((ROOT / "docs").glob("**/*.md"))
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
SQL = re.compile(
    r"\s*(SELECT|INSERT|UPDATE|DELETE|SET|WITH|ALTER|TRUNCATE)\s+\S+\s", re.IGNORECASE
)
"""How SQL begins, whatever its block says that it is."""

STATEMENTS = [
    pytest.param(statement.strip(), id=f"{page.name}-{number}")
    for page in PAGES
    for number, statement in enumerate(
        statement
        for _, language, block in BLOCK.findall(page.read_text())
        if language == "sql" or SQL.match(block)
        for statement in block.split(";")
        if statement.strip()
    )
]
INSTANCE = "mbp_llmbot"
"""The schema of the instance that the pages speak of."""

ROWS = """
    INSERT INTO memory_candidates (user_id, fact, fact_key, terms)
    VALUES ('@ada:example.org', 'a', 'a', '{a}'), ('@bob:example.org', 'a', 'a', '{a}');
    INSERT INTO memories (user_id, fact, fact_key)
    VALUES ('@ada:example.org', 'b', 'b'), ('@bob:example.org', 'b', 'b');
    INSERT INTO memory_cleanup_counters (user_id)
    VALUES ('@ada:example.org'), ('@bob:example.org');
    INSERT INTO memory_cleanup_undo (memory_id, user_id, fact, created_at, room_id)
    VALUES (7, '@ada:example.org', 'c', now(), ''), (8, '@bob:example.org', 'c', now(), '');
"""


def of(database: ProxyPostgresDatabase, statement: str) -> str:
    """Return a page's statement for the schema of the instance at hand."""
    return statement.replace(INSTANCE, database.schema_name)


@pytest.mark.parametrize("statement", STATEMENTS)
async def test_a_statement_finds_the_rows(database: ProxyPostgresDatabase, statement: str) -> None:
    await database.execute(ROWS)
    if statement.startswith("SELECT"):
        assert await database.fetch(of(database, statement))
    else:
        done = await database.execute(of(database, statement))
        assert done in {"DELETE 1", "SET"}


def test_every_page_with_sql_is_found() -> None:
    pages = {str(parameter.id).rpartition("-")[0] for parameter in STATEMENTS}
    assert {"admins.md", "memory.md"} <= pages
    for page in PAGES:
        assert ("```sql" in page.read_text()) <= (page.name in pages)


async def test_the_deletions_leave_nothing_of_the_person_and_everything_of_others(
    database: ProxyPostgresDatabase,
) -> None:
    await database.execute(ROWS)
    for parameter in STATEMENTS:
        statement = str(parameter.values[0])
        if statement.startswith("DELETE"):
            await database.execute(of(database, statement))
    tables = await database.fetch(
        """
        SELECT table_name FROM information_schema.columns
        WHERE table_schema = $1 AND column_name = 'user_id'
        """,
        database.schema_name,
    )
    assert len(tables) == 5
    for (table,) in tables:
        left = await database.fetch(f"SELECT DISTINCT user_id FROM {table}")
        assert [row["user_id"] for row in left] == ["@bob:example.org"], table


async def test_a_statement_about_a_column_that_is_not_there_fails(
    database: ProxyPostgresDatabase,
) -> None:
    with pytest.raises(Exception, match="does not exist"):
        await test_a_statement_finds_the_rows(database, "SELECT wish FROM memories")
