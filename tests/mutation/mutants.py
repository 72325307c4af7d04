"""Small faults in the memory engine, each of which breaks one rule."""

from __future__ import annotations

import dataclasses

RULES = "llmbot/memory/rules.py"
STORE = "llmbot/memory/store.py"
FACTS = "llmbot/memory/facts.py"
EXTRACTION = "llmbot/memory/extraction.py"
CLEANUP = "llmbot/memory/cleanup.py"
PIPELINE = "llmbot/memory/pipeline.py"
PROMPTS = "llmbot/prompts.py"


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One fault: in `file`, `right` (which stands there once) becomes `wrong`."""

    breaks: str
    file: str
    right: str
    wrong: str


MUTANTS = [
    Mutant(
        "M2: a closed room is extracted",
        PIPELINE,
        "if not await self._room_switch(mention.room_id):",
        "if await self._room_switch(mention.room_id) is None:",
    ),
    Mutant(
        "M6: what a character says in a scene is evidence",
        PIPELINE,
        "out_of_character(exchange.words) if exchange.is_fiction else exchange.words",
        "exchange.words",
    ),
    Mutant(
        "M6: what is said aside in a scene is no evidence",
        FACTS,
        'found["aside"] or " * "',
        '" * "',
    ),
    Mutant(
        "M3: a user at the cap gets a model call",
        STORE,
        'if row["number_of_memories"] >= settings.max_per_user:',
        'if row["number_of_memories"] > settings.max_per_user:',
    ),
    Mutant(
        "M3: a user who reached the cap meanwhile gets a pass",
        STORE,
        "if memories.count >= settings.max_per_user:",
        "if False:",
    ),
    Mutant(
        "M3: a user who reached the cap meanwhile loses what is stale",
        STORE,
        "AND last_seen < $4 AND (SELECT number FROM memory) < $5",
        "AND last_seen < $4 AND $5::integer IS NOT NULL",
    ),
    Mutant(
        "M4: candidates live for ever",
        STORE,
        "WHERE user_id = $1 AND last_seen < $4",
        "WHERE user_id = $1 AND last_seen < $4 AND false",
    ),
    Mutant(
        "M4: what a pass prunes it rescues",
        STORE,
        "ON $4::timestamptz IS NULL OR last_seen >= $4",
        "ON $4::timestamptz IS NULL OR true",
    ),
    Mutant(
        "M4: one at the cutoff is pruned",
        STORE,
        "WHERE user_id = $1 AND last_seen < $4",
        "WHERE user_id = $1 AND last_seen <= $4",
    ),
    Mutant(
        "M4: a TTL of 0 prunes everything",
        RULES,
        "if self.candidate_ttl_days == 0:",
        "if self.candidate_ttl_days < 0:",
    ),
    Mutant(
        "M4: pruning touches other users",
        STORE,
        "WHERE user_id = $1 AND last_seen < $4",
        "WHERE last_seen < $4",
    ),
    Mutant(
        "M4: a pass without proposals prunes nothing",
        STORE,
        "        async with self._locked(mention.user_id) as connection:\n",
        "        if proposals == Proposals():\n            return PassOutcome()\n"
        "        async with self._locked(mention.user_id) as connection:\n",
    ),
    Mutant(
        "M4: a pass that finds nothing never prunes",
        PIPELINE,
        "if not proposals.are_none or view.has_stale:",
        "if not proposals.are_none:",
    ),
    Mutant(
        "M4: others' stale candidates are taken for one's own",
        STORE,
        "WHERE user_id = $1 AND last_seen < $2) AS has_stale",
        "WHERE last_seen < $2) AS has_stale",
    ),
    Mutant(
        "M4: a failed extraction prunes nothing",
        PIPELINE,
        "            return Proposals()\n",
        "            raise\n",
    ),
    Mutant(
        "M4: stale candidates are shown",
        STORE,
        "WHERE user_id = $1 AND ($2::timestamptz IS NULL OR last_seen >= $2)",
        "WHERE user_id = $1 AND ($2::timestamptz IS NULL OR true)",
    ),
    Mutant(
        "M4: stale candidates that are like the message are shown",
        STORE,
        "user_id = $1\n"
        "                              AND ($2::timestamptz IS NULL OR last_seen >= $2)",
        "user_id = $1\n                              AND ($2::timestamptz IS NULL OR true)",
    ),
    Mutant(
        "M5: the extractor sees other users' candidates",
        STORE,
        "SELECT id, fact, last_seen FROM memory_candidates\n"
        "                    WHERE user_id = $1",
        "SELECT id, fact, last_seen FROM memory_candidates\n"
        "                    WHERE $1::text <> ''",
    ),
    Mutant(
        "M5: the prompt grows without bound",
        STORE,
        "        if room < 0:\n            break\n",
        "",
    ),
    Mutant(
        "M5: likeness does not count",
        STORE,
        "ORDER BY likeness DESC, last_seen DESC, id DESC",
        "ORDER BY last_seen DESC, id DESC",
    ),
    Mutant(
        "M5: numbers are database ids",
        PROMPTS,
        '{"n": number, "fact": candidate.fact}',
        '{"n": candidate.id, "fact": candidate.fact}',
    ),
    Mutant(
        "M6: evidence is not looked at",
        EXTRACTION,
        "elif self._require_evidence and not",
        "elif not self._require_evidence and not",
    ),
    Mutant(
        "M6: the answer counts as the user's words",
        PIPELINE,
        "                evidence,\n                require_evidence",
        "                evidence + exchange.reply,\n                require_evidence",
    ),
    Mutant(
        "M6: one word is evidence",
        FACTS,
        "for word in quote.split()) >= 2",
        "for word in quote.split()) >= 1",
    ),
    Mutant(
        "M6: small talk is evidence",
        FACTS,
        "            and not is_small_talk(quote)\n",
        "",
    ),
    Mutant(
        "M6: quoted lines are the user's words",
        FACTS,
        'if not line.lstrip().startswith(">")',
        "if line is not None",
    ),
    Mutant(
        "M6: a quote may begin within a word",
        FACTS,
        "if _is_word_border(words, start) and _is_word_border(words, end):",
        "if _is_word_border(words, end):",
    ),
    Mutant(
        "M7: a known memory becomes a candidate again",
        RULES,
        "elif key not in memories.keys:",
        "else:",
    ),
    Mutant(
        "M7: the same text makes a second candidate",
        RULES,
        "if key in by_key:",
        "if key in by_key and fact == by_key[key].fact:",
    ),
    Mutant(
        "M7: a threshold of 1 still makes candidates",
        RULES,
        "if settings.promotion_threshold == 1 else 0",
        "if settings.promotion_threshold == 0 else 0",
    ),
    Mutant(
        "M8: each event counts as often as it is delivered",
        RULES,
        "if event_id in candidate.event_ids:",
        "if event_id in candidate.event_ids[:0]:",
    ),
    Mutant(
        "M8: only the last event is remembered",
        STORE,
        "event_ids = event_ids || $4::text",
        "event_ids = ARRAY[$4::text]",
    ),
    Mutant(
        "M8: a mention does not move last_seen",
        STORE,
        "mentions = mentions + 1, last_seen = $2,",
        "mentions = mentions + 1, last_seen = LEAST(last_seen, $2),",
    ),
    Mutant(
        "M8: a mention counts twice",
        STORE,
        "SET mentions = mentions + 1,",
        "SET mentions = mentions + 2,",
    ),
    Mutant(
        "M8: mentions within the gap count",
        RULES,
        "settings.mention_gap_minutes == 0 or minutes_since",
        "settings.mention_gap_minutes >= 0 or minutes_since",
    ),
    Mutant(
        "M9: promotion comes one mention late",
        RULES,
        "c.mentions + 1 >= settings.promotion_threshold",
        "c.mentions >= settings.promotion_threshold",
    ),
    Mutant(
        "M9: promotion crosses the cap",
        RULES,
        "promoted = due[:room]",
        "promoted = due[: room + 1]",
    ),
    Mutant(
        "M9: without room the mention is lost",
        RULES,
        "reinforced=[candidate for candidate in counted if candidate not in promoted],",
        "reinforced=[candidate for candidate in counted if candidate not in due],",
    ),
    Mutant(
        "M9: a promoted fact stays a candidate",
        STORE,
        "for candidate in (*changes.contradicted, *changes.promoted)]",
        "for candidate in (*changes.contradicted, *changes.promoted[:0])]",
    ),
    Mutant(
        "M10: what is contradicted stays",
        RULES,
        "contradicted=contradicted,",
        "contradicted=contradicted[:0],",
    ),
    Mutant(
        "M10: what is contradicted and reinforced is reinforced",
        RULES,
        "by_id.pop(id_) for id_ in dict.fromkeys(proposals.contradicted)",
        "by_id.get(id_) for id_ in dict.fromkeys(proposals.contradicted)",
    ),
    Mutant(
        "M11: two promotions in one pass count twice",
        STORE,
        "promoting_passes + 1 >= $13 THEN 0",
        "promoting_passes + 2 >= $13 THEN 0",
    ),
    Mutant(
        "M11: passes without a promotion count",
        STORE,
        "WHERE cardinality($6::text[]) > 0",
        "WHERE cardinality($6::text[]) >= 0",
    ),
    Mutant(
        "M11: an interval of 0 cleans up",
        STORE,
        "CASE WHEN $13 = 1 THEN 0 ELSE 1 END",
        "CASE WHEN $13 <= 1 THEN 0 ELSE 1 END",
    ),
    Mutant(
        "M11: counters are shared",
        STORE,
        "SELECT $1, CASE WHEN $13",
        "SELECT left($1, 0), CASE WHEN $13",
    ),
    Mutant(
        "M12: a single memory is cleaned up",
        PIPELINE,
        "if len(memories) < 2:",
        "if len(memories) < 1:",
    ),
    Mutant(
        "M12: a cleanup may drop more than half",
        CLEANUP,
        "if len(dropped) * 2 > len(shown):",
        "if len(dropped) > len(shown):",
    ),
    Mutant(
        "M12: a number may be named twice",
        CLEANUP,
        "        self._named.add(number)\n",
        "",
    ),
    Mutant(
        "M12: a merge of one is accepted",
        CLEANUP,
        "if len(merged) < 2:",
        "if len(merged) < 1:",
    ),
    Mutant(
        "M12: an edit during the call is overwritten",
        STORE,
        "for memory in plan.dropped if now_there.get(memory.id) == memory]",
        "for memory in plan.dropped if memory.id in now_there]",
    ),
    Mutant(
        "M12: a merge takes memories that changed",
        STORE,
        "if all(now_there.get(memory.id) == memory for memory in merge.merged)",
        "if all(memory.id in now_there for memory in merge.merged)",
    ),
    Mutant(
        "M12: an undo works again and again",
        STORE,
        "DELETE FROM memory_cleanup_undo WHERE user_id = $1\n                RETURNING",
        "UPDATE memory_cleanup_undo SET user_id = user_id WHERE user_id = $1\n"
        "                RETURNING",
    ),
    Mutant(
        "M12: two cleanups of one user run at once",
        PIPELINE,
        "        self._being_cleaned.add(user_id)\n",
        "",
    ),
    Mutant(
        "M13: a save asks for no evidence",
        PIPELINE,
        "if settings.memory_require_evidence and not (",
        "if not settings.memory_require_evidence and not (",
    ),
    Mutant(
        "M13: a saved fact stays a candidate",
        STORE,
        "            await _delete_candidates(connection, user_id, [key])\n"
        "            await _insert_memories",
        "            await _insert_memories",
    ),
    Mutant(
        "M13: an equal memory is stored twice or fails",
        STORE,
        "                return Saved.KNOWN\n",
        "                pass\n",
    ),
    Mutant(
        "M14: secrets are stored",
        FACTS,
        "    if looks_secret(fact):\n        return Refusal.SECRET\n",
        "",
    ),
    Mutant(
        "M14: 501 characters are stored",
        FACTS,
        "if len(fact) > MAX_FACT_LENGTH:",
        "if len(fact) > MAX_FACT_LENGTH + 1:",
    ),
    Mutant(
        "M16: passes of one user run side by side",
        STORE,
        "SELECT pg_advisory_xact_lock(hashtextextended(current_schema(), {number}))",
        "SELECT hashtextextended(current_schema(), {number})",
    ),
    Mutant(
        "M16: each statement commits alone",
        STORE,
        'f"{_BEGIN} {lock_statement(user_id)}"',
        "lock_statement(user_id)",
    ),
    Mutant(
        "M18: others' memories can be deleted",
        STORE,
        "DELETE FROM memories WHERE user_id = $1 AND id = ANY ($2::bigint[]) RETURNING id",
        "DELETE FROM memories WHERE $1::text <> '' AND id = ANY ($2::bigint[]) RETURNING id",
    ),
    Mutant(
        "M18: others' memories are listed",
        STORE,
        "SELECT id, fact, created_at FROM memories WHERE user_id = $1\n"
        "                ORDER BY created_at DESC, id DESC OFFSET",
        "SELECT id, fact, created_at FROM memories WHERE $1::text <> ''\n"
        "                ORDER BY created_at DESC, id DESC OFFSET",
    ),
    Mutant(
        "ids are reused",
        "llmbot/memory/migrations.py",
        "CREATE TABLE memories (\n            id         bigint GENERATED BY DEFAULT AS IDENTITY",
        "CREATE SEQUENCE reused MINVALUE 1 MAXVALUE 3 CYCLE;\n"
        "        CREATE TABLE memories (\n            id         bigint DEFAULT nextval('reused')",
    ),
    Mutant(
        "what a candidate was about outlives it",
        "llmbot/memory/migrations.py",
        "WHERE user_id = OLD.user_id AND term = ANY (OLD.terms) AND candidate_id = OLD.id",
        "WHERE user_id = OLD.user_id AND term = ANY (OLD.terms) AND candidate_id < OLD.id",
    ),
    Mutant(
        "clear takes candidates as well",
        STORE,
        '"DELETE FROM memories WHERE user_id = $1 RETURNING id", user_id',
        '"WITH c AS (DELETE FROM memory_candidates WHERE user_id = $1)"\n'
        '                " DELETE FROM memories WHERE user_id = $1 RETURNING id", user_id',
    ),
]
