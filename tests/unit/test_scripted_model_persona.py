"""The scripted model's persona: what it finds, what it recognises, what it says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devstack.scripted_model import facts
from devstack.scripted_model.persona import (
    chat,
    clean_up,
    extract,
    extract_from_scene,
    story,
)

ENGINEER = "Works as a mechanical engineer"


def extraction(
    message: str, candidates: Sequence[str] = (), known: Sequence[str] = ()
) -> dict[str, Any]:
    numbered = [{"n": number, "fact": fact} for number, fact in enumerate(candidates, 1)]
    return extract(
        {
            "known_memories": list(known),
            "candidates": numbered,
            "user_message": message,
            "assistant_reply": "I live in Rome.",
        }
    )


STATEMENTS = [
    ("I am a mechanical engineer", ENGINEER),
    ("I work as a mechanical engineer.", ENGINEER),
    ("As I said, my job is mechanical engineering", "Job is mechanical engineering"),
    ("My actual job is mechanical engineering", "Job is mechanical engineering"),
    ("I work in finance", "Works in finance"),
    ("I work at Siemens", "Works at Siemens"),
    ("i work for the city", "Works at the city"),
    ("I work from home", "Works from home"),
    ("I'm a vegetarian", "Is a vegetarian"),
    ("I live in Berlin!", "Lives in Berlin"),
    ("I've been living in Berlin for 3 years", "Lives in Berlin"),
    ("I moved to Hamburg last year", "Lives in Hamburg"),
    ("I’m from Spain", "Is from Spain"),  # noqa: RUF001 - the apostrophe that phones type
    ("I was born in Kiel", "Was born in Kiel"),
    ("My birthday is on 5 May", "Birthday is 5 May"),
    ("I am 34 years old", "Is 34 years old"),
    ("My name is Ada", "Name is Ada"),
    ("call me Ada", "Name is Ada"),
    ("My dog is called Bruno", "Dog is called Bruno"),
    ("my dog's name is Bruno", "Dog is called Bruno"),
    ("Bruno, my dog, ate my shoes", "Dog is called Bruno"),
    ("My cats are named Tim and Tom", "Cats are named Tim and Tom"),
    ("I have a dog called Bruno", "Has a dog called Bruno"),
    ("I have two children", "Has two children"),
    ("I prefer Python over Node", "Prefers Python over Node"),
    ("I prefer short answers", "Prefers short answers"),
    ("I really love hiking", "Loves hiking"),
    ("I like to cook", "Likes to cook"),
    ("I don't like coffee", "Does not like coffee"),
    ("I hate Mondays", "Hates Mondays"),
    ("I don't eat meat", "Does not eat meat"),
    ("I am allergic to nuts", "Is allergic to nuts"),
    ("I have a nut allergy", "Is allergic to nut"),
    ("I speak German and French", "Speaks German and French"),
    ("I study physics", "Studies physics"),
    ("I play the guitar", "Plays the guitar"),
    ("My favourite colour is blue", "Favourite colour is blue"),
    ("Blue is my favorite color", "Favourite color is Blue"),
    ("My timezone is CET", "Timezone is CET"),
    ("I am tired today", "Is tired today"),
    ("Please remember that I have a cat", "Has a cat"),
]


@pytest.mark.parametrize(("message", "fact"), STATEMENTS)
def test_a_statement_is_found_and_known_again(message: str, fact: str) -> None:
    [item] = extraction(message)["new"]
    assert item["fact"] == fact
    assert item["evidence"] in message
    assert " " in item["evidence"]
    again = extraction(message, candidates=["Collects stamps", fact])
    assert again == {
        "new": [],
        "reinforced": [{"n": 2, "evidence": item["evidence"]}],
        "contradicted": [],
    }
    assert extraction(message, known=[fact])["new"] == []


@pytest.mark.parametrize(
    ("message", "found"),
    [
        (
            "Hello! I live in Berlin and my dog is called Bruno. I speak German.",
            ["Lives in Berlin", "Dog is called Bruno", "Speaks German"],
        ),
        ("I live in Berlin and work as a baker", ["Lives in Berlin", "Works as a baker"]),
        ("I live in Berlin, what is the weather like?", ["Lives in Berlin"]),
        ("I love hiking. I like hiking!", ["Loves hiking"]),
        ("I like tea, but I hate coffee", ["Likes tea", "Hates coffee"]),
        ("> I live in Rome\nI live in Berlin", ["Lives in Berlin"]),
        ("```\nI live in Rome\n```\nI live in Berlin", ["Lives in Berlin"]),
    ],
)
def test_messages_with_several_statements(message: str, found: list[str]) -> None:
    assert [item["fact"] for item in extraction(message)["new"]] == found


@pytest.mark.parametrize(
    "message",
    [
        "",
        "ok",
        "Do I live in Berlin?",
        "what is my dog called",
        "> I live in Rome",
        "my brother is vegan",
        "My friend lives in Paris and works as a cook",
        "He said I live in Rome",
        "I am looking for a book",
        "I'm not sure",
        "I have a question about Python",
        "My question is how to sort a list",
        "If I live in Berlin, I pay rent",
        "I like it",
        "I no longer live in Berlin",
        "Write a function that sorts",
    ],
)
def test_messages_that_state_nothing(message: str) -> None:
    assert extraction(message)["new"] == []


@pytest.mark.parametrize(
    ("message", "candidate"),
    [
        ("As I said, my job is mechanical engineering", ENGINEER),
        ("I'm a mechanical engineer", ENGINEER),
        ("I am an engineer", ENGINEER),
        ("mechanical engineering is my job", ENGINEER),
        ("I do mechanical engineering for a living", ENGINEER),
        ("I work as a mechanical engineer", "The user is a mechanical engineer"),
        ("Bruno, my dog, ate my shoes", "Dog is called Bruno"),
        ("I have a dog named Bruno", "User's dog is called Bruno"),
        ("I have two kids", "Has two children"),
        ("I love hiking", "Likes hiking"),
        ("I'm vegetarian", "Does not eat meat"),
        ("My favorite color is blue", "Favourite colour is blue"),
        ("Long walks on the beach are what I enjoy", "Enjoys long walks on the beach"),
    ],
)
def test_other_words_reinforce(message: str, candidate: str) -> None:
    result = extraction(message, ["Plays chess", candidate])
    assert [item["n"] for item in result["reinforced"]] == [2]
    assert result["reinforced"][0]["evidence"] in message
    assert (result["new"], result["contradicted"]) == ([], [])


@pytest.mark.parametrize(
    ("message", "candidate", "is_new"),
    [
        ("I live in Hamburg", "Lives in Berlin", True),
        ("I am a nurse", ENGINEER, True),
        ("My dog is called Rex", "Dog is called Bruno", True),
        ("I prefer Node over Python", "Prefers Python over Node", True),
        ("I hate hiking", "Loves hiking", True),
        ("I don't live in Berlin anymore", "Lives in Berlin", False),
        ("I'm no longer a mechanical engineer", ENGINEER, False),
    ],
)
def test_contradictions(message: str, candidate: str, is_new: bool) -> None:
    result = extraction(message, ["Plays chess", candidate])
    assert result["contradicted"] == [{"n": 2, "evidence": message}]
    assert result["reinforced"] == []
    assert len(result["new"]) == is_new


@pytest.mark.parametrize(
    ("message", "candidate"),
    [
        ("I have a cat", "Has a dog"),
        ("I speak French", "Speaks German"),
        ("I am tired today", ENGINEER),
        ("My cat is called Tom", "Dog is called Bruno"),
        ("I like tea", "Likes coffee"),
    ],
)
def test_different_facts_live_side_by_side(message: str, candidate: str) -> None:
    result = extraction(message, [candidate])
    assert len(result["new"]) == 1
    assert (result["reinforced"], result["contradicted"]) == ([], [])


_fragments = st.lists(
    st.one_of(
        st.sampled_from([message for message, _ in STATEMENTS]),
        st.sampled_from([".", "?", ",", "\n", "> ", " and ", "```", "not", "my", "I", "  "]),
        st.text(max_size=8),
    ),
    max_size=8,
).map(" ".join)


@given(_fragments, st.lists(_fragments, max_size=4))
def test_any_message_gives_well_formed_items(message: str, candidates: list[str]) -> None:
    result = extraction(message, candidates)
    for item in [*result["new"], *result["reinforced"], *result["contradicted"]]:
        assert item["evidence"] in message
        assert " " in item["evidence"]
    assert all(item["fact"] == " ".join(item["fact"].split()) for item in result["new"])
    touched = [item["n"] for item in result["reinforced"] + result["contradicted"]]
    assert len(touched) == len(set(touched))
    assert set(touched) <= set(range(1, len(candidates) + 1))


@pytest.mark.parametrize(
    "payload", [{}, {"candidates": 1, "known_memories": {}, "user_message": None}, {"memories": 1}]
)
def test_odd_payloads(payload: dict[str, Any]) -> None:
    assert not any(extract(payload).values())
    assert not any(clean_up(payload).values())


# --- cleanup -------------------------------------------------------------------------------------


def test_cleanup_merges_what_says_the_same_and_keeps_the_rest() -> None:
    texts = [
        ENGINEER,
        "Lives in Berlin",
        "Is a mechanical engineer",
        "Lives in Hamburg",
        "Speaks German",
        "Speaks German and French",
        "Collects stamps",
        "Collects stamps from Japan in winter",
    ]
    memories = [
        {"n": number, "fact": text, "since": "2026-01-01"} for number, text in enumerate(texts, 1)
    ]
    assert clean_up({"memories": memories}) == {
        "drop": [],
        "merge": [
            {"n": [1, 3], "fact": ENGINEER},
            {"n": [5, 6], "fact": "Speaks German and French"},
            {"n": [7, 8], "fact": "Collects stamps from Japan in winter"},
        ],
    }


# --- chat ----------------------------------------------------------------------------------------

MEMORIES = [
    ("Lives in Hamburg", "2026-05-01"),
    ("Lives in Berlin", "2026-01-01"),
    (ENGINEER, "2026-01-01"),
    ("Dog is called Bruno", "2026-01-01"),
    ("Is allergic to nuts", "2026-01-01"),
    ("Name is Ada", "2026-01-01"),
    ("Favourite colour is blue", "2026-01-01"),
]


def conversation(*turns: str, memories: Sequence[tuple[str, str]] = MEMORIES) -> list[Any]:
    data = {"room": "Test", "memories": [{"fact": fact, "since": day} for fact, day in memories]}
    return [
        {"role": "system", "content": "You are a helpful assistant. Write code in fences."},
        {"role": "system", "content": f"Data {{not JSON}}: {json.dumps(data)}"},
        *(
            {"role": "assistant" if number % 2 else "user", "content": turn}
            for number, turn in enumerate(turns)
        ),
    ]


def said(*turns: str, memories: Sequence[tuple[str, str]] = MEMORIES) -> str:
    return str(chat(conversation(*turns, memories=memories), [])["content"])


def test_only_the_first_answer_introduces_the_model() -> None:
    assert said("Hi!").startswith("*I am a scripted stand-in")
    assert said("Hi!", "Hello!", "Hi!") == "Hello! What is on your mind?"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Where do I live?", "You live in Hamburg."),
        ("what is my dog called", "Your dog is called Bruno."),
        ("What's my dog's name?", "Your dog is called Bruno."),
        ("What is my name?", "Your name is Ada."),
        ("what do I do for a living?", "You work as a mechanical engineer."),
        ("What am I allergic to?", "You are allergic to nuts."),
        ("Do you remember that I live in Hamburg?", "You live in Hamburg."),
        ("what's my favorite color?", "Your favourite colour is blue."),
        ("How old am I?", "I remember nothing that answers this; tell me, and I will know."),
        ("I live in Hamburg.", "Yes, I remember, you live in Hamburg."),
        ("I live in Kiel and I have a cat", "Noted, you live in Kiel. Noted, you have a cat."),
        ("I am tired today", "Noted, you are tired today."),
        ("Thanks a lot", "You are welcome."),
        ("write a fibonacci function", "```python\ndef fibonacci(count):"),
        ("Show me a program in Rust", "```rust\nfn main() {"),
        ("Why is the sky blue?", "A real model would know; I only follow a script."),
        ("blah", "I see."),
    ],
)
def test_answers(question: str, answer: str) -> None:
    assert said("Hi!", "Hello!", question).startswith(answer)


def test_all_that_is_known_is_listed() -> None:
    answer = said("What do you know about me?")
    assert answer.endswith("- you live in Hamburg")
    assert "- you work as a mechanical engineer\n" in answer
    assert "Berlin" not in answer
    assert "Nothing yet" in said("What do you know about me?", memories=[])


def test_earlier_messages_of_the_conversation_count() -> None:
    assert said("I live in Kiel", "Noted", "Where do I live?") == "You live in Kiel."


def test_a_coder_always_answers_with_code() -> None:
    system = {"role": "system", "content": "You are a programmer. Answer with code only."}
    user = {"role": "user", "content": [{"type": "text", "text": "reverse a text"}]}
    assert "```python\ndef reverse(" in chat([system, user], [])["content"]


@pytest.mark.parametrize(
    ("request_", "fact", "evidence"),
    [
        (
            "Please remember that I'm allergic to nuts!",
            "Is allergic to nuts",
            "I'm allergic to nuts",
        ),
        ("Hi. Don't forget that my wife's birthday is soon.", "Wife's birthday is soon", None),
        ("remember: I paint tiny houses", "Paints tiny houses", "I paint tiny houses"),
        ("remember that dinner is at 8", "Dinner is at 8", "dinner is at 8"),
        ("remember that: Bach", "Bach", "remember that: Bach"),
    ],
)
def test_what_to_remember_becomes_a_tool_call(
    request_: str, fact: str, evidence: str | None
) -> None:
    message = chat(conversation(request_), ["save_memory"])
    [call] = message["tool_calls"]
    arguments = json.loads(call["function"]["arguments"])
    assert (message["content"], call["function"]["name"]) == (None, "save_memory")
    assert arguments["fact"] == fact
    assert arguments["evidence"] in request_
    assert evidence in {None, arguments["evidence"]}
    assert "tool_calls" not in chat(conversation(request_), [])


@pytest.mark.parametrize("question", ["Do you remember that I live in Berlin?", "I remember you"])
def test_what_is_no_wish_to_remember(question: str) -> None:
    assert "tool_calls" not in chat(conversation(question), ["save_memory"])


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ("Saved.", "Saved: I will remember that."),
        ("This was remembered before; nothing to do.", "I remembered that already."),
        ("Not saved: it looks like a password.", "I could not save that: it looks like a passw"),
    ],
)
def test_the_result_of_saving_is_passed_on(result: str, answer: str) -> None:
    messages = conversation("remember that I have a cat")
    call = chat(messages, ["save_memory"])
    messages += [
        {"role": "assistant", **call},
        {"role": "tool", "tool_call_id": call["tool_calls"][0]["id"], "content": result},
    ]
    content = chat(messages, ["save_memory"])["content"]
    assert content.startswith("*I am a scripted stand-in")
    assert content.split("\n\n")[1].startswith(answer)


@given(_fragments)
def test_any_message_is_answered(message: str) -> None:
    reply = chat(conversation(message), ["save_memory"])
    assert reply["content"] or reply["tool_calls"]


@pytest.mark.parametrize(
    ("fact", "first", "second"),
    [
        ("Works as a nurse", "I work as a nurse", "you work as a nurse"),
        ("The user has two cats.", "I have two cats.", "you have two cats"),
        ("Studies physics", "I study physics", "you study physics"),
        ("Was born in Kiel", "I was born in Kiel", "you were born in Kiel"),
        ("Dog is called Bruno", "my dog is called Bruno", "your dog is called Bruno"),
        ("Lives with their cat", "I live with their cat", "you live with your cat"),
        ("Does not eat meat", "I do not eat meat", "you do not eat meat"),
    ],
)
def test_persons(fact: str, first: str, second: str) -> None:
    assert facts.first_person(fact) == first
    assert facts.second_person(fact) == second


# --- scenes and stories --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "fact", "evidence"),
    [
        ('"I live at sea." (I live in Berlin)', "Lives in Berlin", "I live in Berlin"),
        ("I am a pirate. ((OOC: I live in Berlin.))", "Lives in Berlin", "I live in Berlin"),
        ("[aside, I live in Berlin] I live at sea", "Lives in Berlin", "I live in Berlin"),
        ("I am a pirate! By the way, I live in Berlin", "Lives in Berlin", "I live in Berlin"),
    ],
)
def test_in_a_scene_only_asides_are_facts(message: str, fact: str, evidence: str) -> None:
    found = extract_from_scene({"user_message": message})
    assert found["new"] == [{"fact": fact, "evidence": evidence}]
    assert evidence in message


def test_in_a_scene_the_persona_plays() -> None:
    data = json.dumps({"memories": [], "scene": "A pub."})
    messages = [{"role": "system", "content": data}, {"role": "user", "content": "I live at sea"}]
    assert "*A pub.*" in chat(messages, [])["content"]


@pytest.mark.parametrize("most", range(5))
def test_a_story_has_as_many_pictures_as_it_may(most: int) -> None:
    told = story({"wish": "a tree", "max_pictures": most})
    assert sum(part["picture"] != "" for part in told["parts"]) == min(most, 3)
    assert "a tree" in told["parts"][0]["text"]
