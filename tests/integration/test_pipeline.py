"""Passes, cleanups and explicit saves: real store, real HTTP to a scripted model (M1 to M18)."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import json
import logging
from collections.abc import AsyncIterator

import aiohttp
import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from maubot.lib.plugin_db import ProxyPostgresDatabase

from devstack.scripted_model import (
    Reply,
    ScriptedModel,
    drop,
    error_in_200,
    http_error,
    raw,
    reply_json,
    text,
)
from llmbot.config import Settings
from llmbot.memory.cleanup import RejectedCleanupError
from llmbot.memory.facts import is_evidence, one_line, refusal
from llmbot.memory.pipeline import CleanupRunningError, Exchange, MemoryPipeline
from llmbot.memory.rules import Mention
from llmbot.memory.store import MemoryStore, lock_statement
from llmbot.models import ModelClient, ModelError, Provider
from llmbot.models.parsing import parse_completion
from llmbot.prompts import SAVED, SAVED_BEFORE

from ..fuzzing import fuzzed
from ..unit.settings import default_settings
from .database import Clock

ADA = "@ada:example.org"
BOB = "@bob:example.org"
OPEN_ROOM = "!open:example.org"
CLOSED_ROOM = "!closed:example.org"


class Talk:
    """Exchanges whose passes run to their end before the next line of a test."""

    def __init__(self, pipeline: MemoryPipeline, settings: Settings) -> None:
        self.pipeline = pipeline
        self.settings = settings
        self._numbers = itertools.count(1)

    def change(self, **settings: object) -> None:
        self.settings = dataclasses.replace(self.settings, **settings)  # type: ignore[arg-type]

    async def __call__(
        self,
        words: str,
        *,
        reply: str = "Fine.",
        user: str = ADA,
        room: str = OPEN_ROOM,
        is_fiction: bool = False,
    ) -> None:
        mention = Mention(user, room, f"$event{next(self._numbers)}")
        exchange = Exchange(mention, words, reply, is_fiction)
        await self.pipeline.run_pass(exchange, self.settings)

    async def save(self, fact: object, evidence: object, *messages: str, user: str = ADA) -> str:
        mention = Mention(user, OPEN_ROOM, f"$event{next(self._numbers)}")
        arguments = {"fact": fact, "evidence": evidence}
        return await self.pipeline.save(mention, arguments, messages, self.settings)


@pytest.fixture
async def model() -> AsyncIterator[ScriptedModel]:
    async with ScriptedModel() as model:
        yield model


@pytest.fixture
async def talk(store: MemoryStore, model: ScriptedModel) -> AsyncIterator[Talk]:
    async def open_room(room_id: str) -> bool:
        return room_id == OPEN_ROOM

    log = logging.getLogger("test.llmbot")
    async with aiohttp.ClientSession() as http:
        pipeline = MemoryPipeline(store, ModelClient(http, log), open_room, log)
        settings = dataclasses.replace(
            default_settings(),
            assistant_model="scripted/answers",
            providers={"scripted": Provider(model.base_url, "")},
            timeout=5.0,
        )
        yield Talk(pipeline, settings)
        await pipeline.stop()


def found(*facts: tuple[str, str]) -> Reply:
    """An extractor that reports these facts, each with its evidence."""
    return reply_json({"new": [{"fact": fact, "evidence": quote} for fact, quote in facts]})


async def rows(committed: asyncpg.Connection, table: str, user: str = ADA) -> list[str]:
    found_rows = await committed.fetch(
        f"SELECT fact FROM {table} WHERE user_id = $1 ORDER BY id", user
    )
    return [row["fact"] for row in found_rows]


class TestExtractionCall:
    async def test_m5_the_extractor_sees_this_exchange_and_this_users_facts(
        self, talk: Talk, model: ScriptedModel, store: MemoryStore
    ) -> None:
        model.on(
            "extraction", found(("Of Bob", "I am Bob")), when=lambda r: "Bob" in r.user_message
        )
        await talk("I am Bob", user=BOB)
        await store.save(BOB, OPEN_ROOM, "Bob's secret")
        await store.save(ADA, OPEN_ROOM, "Likes tea")
        model.on("extraction", found(("Has a dog", "have a dog"), ("Is 42", "I am 42")), times=1)
        await talk("I am 42 and have a dog")
        await talk("Hello there", reply="Hello Ada!")
        (request,) = model.seen("extraction")[2:]
        assert json.loads(request.messages[-1]["content"]) == {
            "known_memories": ["Likes tea"],
            "candidates": [{"n": 1, "fact": "Is 42"}, {"n": 2, "fact": "Has a dog"}],
            "user_message": "Hello there",
            "assistant_reply": "Hello Ada!",
        }
        assert request.body["response_format"]["json_schema"]["name"] == "memory_extraction"
        assert "Bob" not in json.dumps(request.body)

    async def test_m5_memory_model_is_used_where_set(
        self, talk: Talk, model: ScriptedModel
    ) -> None:
        await talk("Hello there")
        talk.change(own_memory_model="scripted/extractor")
        await talk("Hello there")
        assert [request.model for request in model.requests] == ["answers", "extractor"]

    async def test_m7_to_m9_mentioned_again_in_other_words_is_remembered(
        self, talk: Talk, model: ScriptedModel, committed: asyncpg.Connection
    ) -> None:
        model.on("extraction", found(("Works as an engineer", "I work as an engineer")))
        await talk("I work as an engineer")
        model.on(
            "extraction", reply_json({"reinforced": [{"n": 1, "evidence": "my engineering job"}]})
        )
        await talk("About my engineering job ...")
        assert await rows(committed, "memories") == ["Works as an engineer"]
        assert await rows(committed, "memory_candidates") == []

    async def test_m6_what_the_user_did_not_say_is_dropped(
        self, talk: Talk, model: ScriptedModel, committed: asyncpg.Connection
    ) -> None:
        model.on(
            "extraction",
            found(
                ("From the answer", "you live in Paris"),
                ("Invented", "I own a yacht"),
                ("From a quote", "I am a pilot"),
                ("One word", "tea"),
                ("True", "I like TEA"),
            ),
        )
        await talk("I like tea", reply="And you live in Paris, you said.")
        assert await rows(committed, "memory_candidates") == ["True"]

    async def test_m6_recalled_memories_do_not_reinforce_themselves(
        self, talk: Talk, model: ScriptedModel, committed: asyncpg.Connection
    ) -> None:
        model.on("extraction", found(("Lives in Berlin", "I live in Berlin")))
        await talk("I live in Berlin")
        again = {"n": 1, "evidence": "you live in Berlin"}
        model.on("extraction", reply_json({"reinforced": [again, {"n": 1, "evidence": "ok"}]}))
        for _ in range(5):
            await talk("ok", reply="Since you live in Berlin, take the S-Bahn.")
        assert await committed.fetchval("SELECT mentions FROM memory_candidates") == 1

    async def test_m6_in_a_scene_what_a_character_says_is_no_evidence(
        self, talk: Talk, model: ScriptedModel, committed: asyncpg.Connection
    ) -> None:
        model.on(
            "extraction",
            found(("Is a queen", "I am a queen"), ("Works as a nurse", "I work as a nurse")),
        )
        await talk('"I am a queen!" (I work as a nurse)', is_fiction=True)
        assert await rows(committed, "memory_candidates") == ["Works as a nurse"]
        (request,) = model.seen("extraction")
        assert "fiction" in request.system_prompt

    async def test_m6_can_be_switched_off(
        self, talk: Talk, model: ScriptedModel, committed: asyncpg.Connection
    ) -> None:
        model.on("extraction", reply_json({"new": [{"fact": "Without evidence"}]}))
        await talk("hello there")
        assert await rows(committed, "memory_candidates") == []
        talk.change(memory_require_evidence=False)
        await talk("hello there")
        assert await rows(committed, "memory_candidates") == ["Without evidence"]

    async def test_m14_what_is_never_stored(
        self,
        talk: Talk,
        model: ScriptedModel,
        committed: asyncpg.Connection,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        caplog.set_level(logging.DEBUG)
        quote = "My password is hunter2"
        model.on(
            "extraction",
            found(
                ("Password is hunter2", quote),
                ("x" * 501, quote),
                (" \n\t ", quote),
                ("Key sk-abcdefghijklmnopqrst", quote),
                ("Is\ncareless", quote),
            ),
        )
        await talk(quote)
        assert await rows(committed, "memory_candidates") == ["Is careless"]
        assert "hunter2" not in caplog.text
        assert "sk-abc" not in caplog.text


class TestWhereNoPassHappens:
    async def test_m2_a_closed_room_makes_no_call_and_changes_nothing(
        self, talk: Talk, model: ScriptedModel, committed: asyncpg.Connection
    ) -> None:
        model.on("extraction", found(("Lives in Berlin", "I live in Berlin")))
        await talk("I live in Berlin", room=CLOSED_ROOM)
        assert model.requests == []
        await talk("I live in Berlin")
        await talk("I live in Berlin", room=CLOSED_ROOM)
        assert await rows(committed, "memory_candidates") == ["Lives in Berlin"]

    async def test_m3_at_the_cap_no_request_reaches_the_model(
        self, talk: Talk, model: ScriptedModel, store: MemoryStore
    ) -> None:
        talk.change(memory_max_per_user=1)
        await store.save(ADA, OPEN_ROOM, "Likes tea")
        await talk("I live in Berlin")
        assert model.requests == []
        talk.change(memory_max_per_user=2)
        await talk("I live in Berlin")
        assert len(model.requests) == 1

    async def test_m4_a_failing_extraction_still_prunes(
        self, talk: Talk, model: ScriptedModel, clock: Clock, committed: asyncpg.Connection
    ) -> None:
        model.on("extraction", found(("Lives in Berlin", "I live in Berlin")))
        await talk("I live in Berlin")
        clock.advance(days=15)
        model.on("extraction", http_error(400))
        await talk("Hello there")
        assert await rows(committed, "memory_candidates") == []

    async def test_a_pass_with_nothing_to_change_only_reads(
        self, talk: Talk, committed: asyncpg.Connection, database: ProxyPostgresDatabase
    ) -> None:
        async with committed.transaction():
            # Whoever wanted to change anything of Ada's had to wait for this.
            schema = await committed.fetchval("SELECT current_schema()")
            assert schema == database.schema_name
            await committed.execute(lock_statement(ADA))
            await asyncio.wait_for(talk("Hello there"), 10)


class TestFailures:
    @pytest.mark.parametrize(
        "answer",
        [
            http_error(401),
            http_error(404),
            text("I'm sorry, I cannot help with that."),
            text(""),
            text(None),
            text('{"new": [{"fact": "Lives in Berlin", "evi'),
            text("[]"),
            text('{"new": "Lives in Berlin"}'),
            text("", finish_reason="content_filter"),
            error_in_200(),
            raw("<html>gateway</html>"),
            drop(),
        ],
    )
    async def test_m17_failures_store_nothing_and_are_logged_once(
        self,
        answer: Reply,
        talk: Talk,
        model: ScriptedModel,
        committed: asyncpg.Connection,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        model.on("extraction", answer)
        for _ in range(3):
            await talk("I live in Berlin")
        assert await rows(committed, "memory_candidates") == []
        (record,) = [r for r in caplog.records if r.levelno >= logging.WARNING]
        assert "extraction failed" in record.getMessage()
        assert "Berlin" not in caplog.text

    async def test_m17_a_missing_key_is_named_in_the_log(
        self, talk: Talk, model: ScriptedModel, caplog: pytest.LogCaptureFixture
    ) -> None:
        talk.change(providers={"scripted": Provider(model.base_url, "LLMBOT_TEST_MISSING_KEY")})
        await talk("I live in Berlin")
        await talk("I live in Berlin")
        assert model.requests == []
        assert caplog.text.count("LLMBOT_TEST_MISSING_KEY") == 1

    async def test_m17_a_database_that_fails_is_logged_once(
        self,
        talk: Talk,
        database: ProxyPostgresDatabase,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        await database.execute("ALTER TABLE memories RENAME TO elsewhere")
        for _ in range(2):
            await talk("I live in Berlin")
        errors = [r for r in caplog.records if r.name == "test.llmbot"]
        assert len(errors) == 1


class TestParallel:
    async def test_m16_two_parallel_passes_make_one_candidate_with_two_mentions(
        self, talk: Talk, model: ScriptedModel, committed: asyncpg.Connection
    ) -> None:
        talk.change(memory_promotion_threshold=3)
        model.on("extraction", found(("Lives in Berlin", "I live in Berlin")))
        gate = model.hold("extraction")
        both = asyncio.gather(talk("I live in Berlin"), talk("Yes, I live in Berlin!"))
        await model.wait_for("extraction", 2)
        gate.release()
        await both
        assert await committed.fetchval("SELECT mentions FROM memory_candidates") == 2

    async def test_m16_no_connection_is_held_during_model_calls(
        self, talk: Talk, model: ScriptedModel, store: MemoryStore
    ) -> None:
        gate = model.hold("extraction")
        # More than the three connections that maubot gives a plugin.
        waiting = [asyncio.ensure_future(talk("Hello there")) for _ in range(6)]
        await model.wait_for("extraction", 6)
        await asyncio.wait_for(store.memories(ADA), 5)
        gate.release()
        await asyncio.gather(*waiting)

    async def test_m9_a_candidate_promoted_meanwhile_is_not_touched_again(
        self, talk: Talk, model: ScriptedModel, committed: asyncpg.Connection
    ) -> None:
        model.on("extraction", found(("Lives in Berlin", "I live in Berlin")), times=1)
        await talk("I live in Berlin")
        model.on("extraction", reply_json({"reinforced": [{"n": 1, "evidence": "in Berlin"}]}))
        gate = model.hold("extraction")
        both = asyncio.gather(talk("in Berlin, yes"), talk("in Berlin indeed"))
        await model.wait_for("extraction", 3)
        gate.release()
        await both
        assert await rows(committed, "memories") == ["Lives in Berlin"]
        assert await rows(committed, "memory_candidates") == []

    async def test_stop_ends_running_passes_and_stores_nothing(
        self, talk: Talk, model: ScriptedModel, committed: asyncpg.Connection
    ) -> None:
        model.on("extraction", found(("Lives in Berlin", "I live in Berlin")))
        model.hold("extraction")
        exchange = Exchange(Mention(ADA, OPEN_ROOM, "$event"), "I live in Berlin", "Fine.")
        talk.pipeline.start_pass(exchange, talk.settings)
        await model.wait_for("extraction")
        await talk.pipeline.stop()
        assert await rows(committed, "memory_candidates") == []


class TestCleanup:
    async def test_m11_m12_a_due_cleanup_runs_after_the_pass(
        self, talk: Talk, model: ScriptedModel, store: MemoryStore, committed: asyncpg.Connection
    ) -> None:
        await store.save(ADA, OPEN_ROOM, "Likes tea")
        talk.change(memory_promotion_threshold=1, memory_cleanup_interval=1)
        model.on("extraction", found(("Drinks tea", "I drink tea")))
        model.on("cleanup", reply_json({"merge": [{"n": [1, 2], "fact": "Drinks and likes tea"}]}))
        await talk("I drink tea")
        (request,) = model.seen("cleanup")
        assert request.body["response_format"]["json_schema"]["name"] == "memory_cleanup"
        assert json.loads(request.messages[-1]["content"]) == {
            "memories": [
                {"n": 1, "fact": "Drinks tea", "since": "2026-01-01"},
                {"n": 2, "fact": "Likes tea", "since": "2026-01-01"},
            ]
        }
        assert await rows(committed, "memories") == ["Drinks and likes tea"]

    async def test_m12_needs_two_memories(
        self, talk: Talk, model: ScriptedModel, store: MemoryStore
    ) -> None:
        assert await talk.pipeline.cleanup(ADA, talk.settings) is None
        await store.save(ADA, OPEN_ROOM, "Likes tea")
        assert await talk.pipeline.cleanup(ADA, talk.settings) is None
        assert model.requests == []

    @pytest.mark.parametrize(
        "answer",
        [
            {"drop": [1, 2, 3]},
            {"drop": [1, 2]},
            {"drop": [4]},
            {"drop": [0]},
            {"drop": [-1]},
            {"drop": [1, 1]},
            {"drop": [1], "merge": [{"n": [1, 2], "fact": "both"}]},
            {"merge": [{"n": [1, 2], "fact": "both"}, {"n": [2, 3], "fact": "those"}]},
            {"merge": [{"n": [1], "fact": "alone"}]},
            {"merge": [{"n": [], "fact": "nothing"}]},
            {"merge": [{"n": [1, 2], "fact": ""}]},
            {"merge": [{"n": [1, 2], "fact": "x" * 501}]},
            {"merge": [{"n": [1, 2], "fact": "Password is hunter2"}]},
            {"merge": [{"n": [1, 2]}]},
            {"merge": {"n": [1, 2], "fact": "both"}},
            {"drop": "1"},
            {"drop": [True]},
            ["drop"],
        ],
    )
    async def test_m12_a_harmful_answer_is_rejected_whole(
        self,
        answer: object,
        talk: Talk,
        model: ScriptedModel,
        store: MemoryStore,
    ) -> None:
        for fact in ("Likes tea", "Drinks tea", "Lives in Berlin"):
            await store.save(ADA, OPEN_ROOM, fact)
        before = await store.memories(ADA)
        model.on("cleanup", reply_json(answer))
        with pytest.raises(RejectedCleanupError):
            await talk.pipeline.cleanup(ADA, talk.settings)
        assert await store.memories(ADA) == before

    async def test_m12_one_cleanup_at_a_time_per_user(
        self, talk: Talk, model: ScriptedModel, store: MemoryStore
    ) -> None:
        for user in (ADA, BOB):
            for fact in ("Likes tea", "Drinks tea"):
                await store.save(user, OPEN_ROOM, fact)
        model.on("cleanup", reply_json({}))
        gate = model.hold("cleanup")
        first = asyncio.ensure_future(talk.pipeline.cleanup(ADA, talk.settings))
        await model.wait_for("cleanup")
        with pytest.raises(CleanupRunningError):
            await talk.pipeline.cleanup(ADA, talk.settings)
        other = asyncio.ensure_future(talk.pipeline.cleanup(BOB, talk.settings))
        await model.wait_for("cleanup", 2)
        gate.release()
        assert (await first) == (await other)
        assert await talk.pipeline.cleanup(ADA, talk.settings) is not None

    async def test_m12_an_edit_during_the_call_is_kept(
        self, talk: Talk, model: ScriptedModel, store: MemoryStore, committed: asyncpg.Connection
    ) -> None:
        for fact in ("Likes tea", "Drinks tea", "Lives in Berlin"):
            await store.save(ADA, OPEN_ROOM, fact)
        berlin, drinks, _ = await store.memories(ADA)
        model.on("cleanup", reply_json({"merge": [{"n": [2, 3], "fact": "Tea!"}]}))
        gate = model.hold("cleanup")
        cleanup = asyncio.ensure_future(talk.pipeline.cleanup(ADA, talk.settings))
        await model.wait_for("cleanup")
        await store.edit(ADA, drinks.id, "Drinks coffee")
        gate.release()
        outcome = await cleanup
        assert outcome is not None
        assert (outcome.merged, outcome.kept) == (0, 3)
        assert await rows(committed, "memories") == ["Likes tea", "Drinks coffee", berlin.fact]

    async def test_m12_a_model_that_fails_changes_nothing(
        self, talk: Talk, model: ScriptedModel, store: MemoryStore
    ) -> None:
        for fact in ("Likes tea", "Drinks tea"):
            await store.save(ADA, OPEN_ROOM, fact)
        model.on("cleanup", http_error(400))
        with pytest.raises(ModelError):
            await talk.pipeline.cleanup(ADA, talk.settings)
        assert len(await store.memories(ADA)) == 2


class TestSaveMemory:
    async def test_m13_straight_to_durable(
        self, talk: Talk, committed: asyncpg.Connection
    ) -> None:
        result = await talk.save("Is allergic to nuts", "allergic to nuts", "I'm allergic to nuts")
        assert result == "Saved."
        assert await rows(committed, "memories") == ["Is allergic to nuts"]
        again = await talk.save("is allergic to nuts.", "allergic to nuts", "I'm allergic to nuts")
        assert "before" in again
        assert len(await rows(committed, "memories")) == 1

    async def test_m13_past_the_cap_and_whatever_the_threshold(
        self, talk: Talk, committed: asyncpg.Connection
    ) -> None:
        talk.change(memory_max_per_user=1, memory_promotion_threshold=9)
        for fact in ("Likes tea", "Likes cake", "Likes pie"):
            await talk.save(fact, f"I {fact.lower()}", f"I {fact.lower()}, remember that")
        assert len(await rows(committed, "memories")) == 3

    async def test_m13_evidence_may_stand_in_an_earlier_message_but_in_one(
        self, talk: Talk, committed: asyncpg.Connection
    ) -> None:
        messages = ("remember that please", "I live in Berlin")
        assert await talk.save("Lives in Berlin", "live in Berlin", *messages) == "Saved."
        across = await talk.save("Across", "that please I live", *messages)
        assert "evidence" in across
        assert await rows(committed, "memories") == ["Lives in Berlin"]

    @pytest.mark.parametrize(
        ("fact", "evidence", "reason"),
        [
            ("Lives in Berlin", "I live in Paris", "evidence"),
            ("Lives in Berlin", None, "evidence"),
            ("Lives in Berlin", "Berlin", "evidence"),
            ("", "I live in Berlin", "empty"),
            ("x" * 501, "I live in Berlin", "500"),
            ("Key is sk-abcdefghijklmnopqrst", "I live in Berlin", "key or token"),
            (None, "I live in Berlin", "fact and evidence"),
            (["Lives in Berlin"], "I live in Berlin", "fact and evidence"),
        ],
    )
    async def test_m13_m14_a_refused_save_tells_the_model_why(
        self,
        fact: object,
        evidence: object,
        reason: str,
        talk: Talk,
        committed: asyncpg.Connection,
    ) -> None:
        result = await talk.save(fact, evidence, "I live in Berlin")
        assert result.startswith("Not saved")
        assert reason in result
        assert await rows(committed, "memories") == []


TOLD = ("I like tea with lemon", "I live in Köln")
ARGUMENTS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.sampled_from(
        [
            "Likes tea",
            "Lives in Köln",
            *TOLD,
            "I like",
            "a" * 501,
            "Password is swordfish",
            "\ud800 x",
        ]
    )
)
CALLS = st.dictionaries(st.sampled_from(["fact", "evidence", "x"]), ARGUMENTS) | ARGUMENTS


@fuzzed
@given(CALLS, st.booleans())
async def test_m13_m14_any_tool_call(
    talk: Talk, committed: asyncpg.Connection, call: object, as_text: bool
) -> None:
    function = {"name": "save_memory", "arguments": json.dumps(call) if as_text else call}
    answer = {"choices": [{"message": {"tool_calls": [{"function": function}]}}]}
    (parsed,) = parse_completion(json.dumps(answer).encode()).tool_calls
    before = await rows(committed, "memories")
    mention = Mention(ADA, OPEN_ROOM, "$event")
    result = await talk.pipeline.save(mention, parsed.arguments, TOLD, talk.settings)
    assert result in {SAVED, SAVED_BEFORE} or result.startswith("Not saved: ")
    stored = (await rows(committed, "memories"))[len(before) :]
    assert len(stored) == (result == SAVED)
    for fact in stored:
        assert fact == one_line(str((parsed.arguments or {})["fact"]))
        assert refusal(fact) is None
        evidence = str((parsed.arguments or {})["evidence"])
        assert any(is_evidence(evidence, words) for words in TOLD)


class TestStrangeText:
    # aiohttp warns of a request that a real message is never long enough to make.
    @pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
    async def test_a_message_of_five_megabytes(
        self, talk: Talk, model: ScriptedModel, committed: asyncpg.Connection
    ) -> None:
        model.on("extraction", found(("Lives in Berlin", "I live in Berlin")))
        await talk("word and " * 550_000 + "I live in Berlin")
        assert await rows(committed, "memory_candidates") == ["Lives in Berlin"]

    @pytest.mark.parametrize(
        ("proposed", "stored"),
        [
            ("Has a NUL \x00 in it", "Has a NUL in it"),
            ("Half a \ud83d surrogate", "Half a surrogate"),
            ("Two\nlines\x85three\u2028four", "Two lines three four"),
            ("</system>{}", "</system>{}"),
            ("גר בברלין", "גר בברלין"),
            ("🦊🦊", "🦊🦊"),
        ],
    )
    async def test_any_fact_is_stored_as_one_clean_line(
        self,
        proposed: str,
        stored: str,
        talk: Talk,
        model: ScriptedModel,
        committed: asyncpg.Connection,
    ) -> None:
        model.on("extraction", found((proposed, "I said so")))
        await talk("Well, I said\x00 so \ud83d")
        assert await rows(committed, "memory_candidates") == [stored]
        await talk("I said so again, I said so")
        assert await rows(committed, "memories") == [stored]
