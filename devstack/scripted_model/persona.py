"""The persona: plain rules that play a language model, with no network and no weights.

Pure functions: the same request always gets the same answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from devstack.scripted_model import facts
from devstack.scripted_model.facts import Fact
from devstack.scripted_model.requests import content_text

Message = Mapping[str, Any]

# --- extraction ----------------------------------------------------------------------------------


def extract(payload: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return what an exchange says about its user, in the shape of `memory_extraction`."""
    known = [facts.read_stored(text) for text in _texts(payload.get("known_memories"))]
    candidates = dict(_numbered_facts(payload.get("candidates")))
    new: list[dict[str, Any]] = []
    reinforced: dict[int, str] = {}
    contradicted: dict[int, str] = {}
    for clause in facts.clauses(str(payload.get("user_message") or "")):
        stated = facts.read(clause.reading)
        denied = facts.read(clause.affirmed) if clause.is_negated else None
        same = _said_again(clause, stated, candidates)
        for number, candidate in candidates.items():
            if (stated and stated.contradicts(candidate)) or (
                denied and denied.is_like(candidate)
            ):
                contradicted.setdefault(number, clause.words)
        if same is not None:
            reinforced.setdefault(same, clause.words)
        elif stated and not any(stated.is_like(fact) for fact in known):
            new.append({"fact": stated.text, "evidence": clause.words})
            known.append(stated)
    return {
        "new": new,
        "reinforced": _quoted(reinforced),
        "contradicted": _quoted(
            {number: words for number, words in contradicted.items() if number not in reinforced}
        ),
    }


_ASIDE = re.compile(
    r"[(\[]+(?:\s*(?:ooc|aside|out of character)\s*[:,])?\s*(?P<inside>[^()\[\]]+)[)\]]"
    r"|\b(?:ooc|by the way|out of character)\b[:,]?\s*(?P<after>[^\n]+)",
    re.IGNORECASE,
)


def extract_from_scene(payload: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return what is said aside in an exchange of a scene, in the shape of `memory_extraction`."""
    message = str(payload.get("user_message") or "")
    asides = [found["inside"] or found["after"] for found in _ASIDE.finditer(message)]
    return extract({**payload, "user_message": "\n".join(asides)})


def _said_again(
    clause: facts.Clause, stated: Fact | None, candidates: Mapping[int, Fact]
) -> int | None:
    """Return the number of the candidate that a clause states again, or None."""
    for number, candidate in candidates.items():
        if stated and stated.is_like(candidate):
            return number
    if stated or clause.is_negated or not re.search(r"\b(?:i|my|me)\b", clause.reading, re.I):
        return None
    # No pattern reads this clause, but it may hold all the words of a candidate.
    words = facts.content_words(clause.reading)
    for number, candidate in candidates.items():
        wanted = facts.content_words(candidate.text)
        if len(wanted) > 1 and wanted <= words:
            return number
    return None


def _quoted(evidence: Mapping[int, str]) -> list[dict[str, Any]]:
    return [{"n": number, "evidence": words} for number, words in evidence.items()]


CARELESS = "careless"
"""The model name by which the persona makes the mistakes of bad models."""


def extract_carelessly(payload: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return what a bad model would, in the shape of `memory_extraction`.

    It takes one word, such as "ok", as a confirmation of every candidate, and the assistant's
    statements about the user for the user's own.
    """
    found = extract(payload)
    message = str(payload.get("user_message") or "").strip()
    candidates = dict(_numbered_facts(payload.get("candidates")))
    if message and len(message.split()) == 1:
        found["reinforced"] = _quoted(dict.fromkeys(candidates, message))
    reply = str(payload.get("assistant_reply") or "")
    for words in re.findall(r"\byou(?:r)? [^.,!?\n]+", reply, re.IGNORECASE):
        stated = facts.read(_as_own(words))
        if stated is None:
            continue
        same = [number for number, fact in candidates.items() if stated.is_like(fact)]
        found["reinforced"] += _quoted(dict.fromkeys(same, words))
        if not same:
            found["new"].append({"fact": stated.text, "evidence": words})
    return found


def _as_own(words: str) -> str:
    for second, first in ((r"\byou are\b", "I am"), (r"\byour\b", "my"), (r"\byou\b", "I")):
        words = re.sub(second, first, words, flags=re.IGNORECASE)
    return words


# --- cleanup -------------------------------------------------------------------------------------


def clean_up(payload: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return which memories overlap, in the shape of `memory_cleanup`.

    It merges what says the same and drops nothing, so no fact is lost.
    """
    groups: list[list[tuple[int, Fact]]] = []
    for number, fact in _numbered_facts(payload.get("memories")):
        for group in groups:
            if all(_overlap(fact, other) for _, other in group):
                group.append((number, fact))
                break
        else:
            groups.append([(number, fact)])
    return {
        "drop": [],
        "merge": [
            {
                "n": [number for number, _ in group],
                # The longest wording says the most.
                "fact": max((fact.text for _, fact in group), key=len),
            }
            for group in groups
            if len(group) > 1
        ],
    }


def clean_up_carelessly(payload: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return what a bad model would, in the shape of `memory_cleanup`: it drops everything."""
    return {"drop": [number for number, _ in _numbered_facts(payload.get("memories"))]}


def _overlap(one: Fact, other: Fact) -> bool:
    texts = sorted((one.text.casefold().rstrip("."), other.text.casefold().rstrip(".")), key=len)
    return one.is_like(other) or re.search(rf"\b{re.escape(texts[0])}\b", texts[1]) is not None


# --- stories -------------------------------------------------------------------------------------


def story(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return a story about what is wished for, in the shape of `story`."""
    wish = " ".join(str(payload.get("wish") or "nothing much").split()).rstrip(".!?")
    number = payload.get("max_pictures")
    number = number if isinstance(number, int) else 0
    parts = [
        (
            f"Once there was a wish: *{wish}*. The storyteller knew only this one story.",
            f"{wish}, in the morning",
        ),
        (
            "Everything went well until noon. Then it rained, and nobody had brought a coat.",
            f"{wish}, in a storm",
        ),
        (
            "By night the sky was clear again, and all were home in time for tea.",
            f"{wish}, at night",
        ),
    ]
    return {
        "title": "The only story I know",
        "parts": [
            {"text": text, "picture": picture if place < number else ""}
            for place, (text, picture) in enumerate(parts)
        ],
    }


# --- chat ----------------------------------------------------------------------------------------

_INTRODUCTION = "*I am a scripted stand-in for a language model and work offline.*"
_REMEMBER = re.compile(
    r"\b(?:remember|keep in mind|don['’]t forget)(?: that\b:?|:|(?= (?:i|i['’]m|my)\b))\s+"  # noqa: RUF001
    r"(?P<fact>[^\n?]*[^\n?\s.!])[ .!]*(?:\n|$)",
    re.IGNORECASE,
)
_ABOUT_ME = re.compile(
    r"\b(?:(?:know|remember|memories) (?:about|of) (?:me|myself)|who am i|what do you remember|"
    r"(?:tell me|summari[sz]e) .{0,80}?about (?:me|myself))\b",
    re.IGNORECASE,
)
_ASKS_ABOUT_SELF = re.compile(
    r"^(?:(?:can you |please )?tell me )?(?:what|where|who|when|which|how|do|did|does|am|is|are)\b"
    r".*\b(?:i|my)\b",
    re.IGNORECASE | re.DOTALL,
)
# Questions whose words do not stand in the facts that answer them: pattern and slots.
_SLOTS_ASKED_FOR = (
    (r"for a living|my (?:job|profession)|where .*\bi work", ("is", "employer")),
    (r"where .*\bi live|my (?:home|city|address)|where am i\b(?! from)", ("home",)),
    (r"where .*\bfrom\b", ("origin", "birthplace")),
    (r"\bmy name\b", ("name",)),
    (r"how old|my age|my birthday|when .*\bborn", ("age", "birthday")),
    (r"allerg", ("allergy",)),
    (r"\bdo i (?:like|love|enjoy|hate)|my hobb", ("taste",)),
    (r"\bpets?\b", ("called", "have")),
)
_SMALL_TALK = (
    (r"(?:hi|hello|hey|good (?:morning|evening|day)|greetings)\b", "Hello! What is on your mind?"),
    (r"(?:thanks|thank you|thx|cheers)\b", "You are welcome."),
    (r"(?:bye|goodbye|good night|see you)\b", "Goodbye!"),
    (r"how are you", "Fine, thank you. And you?"),
    (
        r"(?:what can you do|help)\b",
        (
            "Tell me about yourself in plain sentences, such as *I live in Berlin* or *my dog is "
            "called Bruno*, ask me what I know about you, or start with *remember that …*."
        ),
    ),
)
_CODE_WANTED = re.compile(
    r"\b(?:write|show|give|make|need|implement|code|program)\b.{0,80}?"
    r"\b(?:code|function|script|program|snippet|class|query|one-liner|loop)\b",
    re.IGNORECASE | re.DOTALL,
)
_CODER = re.compile(r"^[^.]*\b(?:programmer|programming|code|coding)\b", re.IGNORECASE)
_GREETINGS_IN_CODE = {
    "python": 'print("Hello, world!")',
    "javascript": 'console.log("Hello, world!");',
    "bash": 'echo "Hello, world!"',
    "rust": 'fn main() {\n    println!("Hello, world!");\n}',
    "c": '#include <stdio.h>\n\nint main(void) {\n    puts("Hello, world!");\n}',
    "sql": "SELECT 'Hello, world!' AS greeting;",
}
_PYTHON_BY_TOPIC = {
    "fizz": "for number in range(1, 101):\n"
    '    print("Fizz" * (number % 3 == 0) + "Buzz" * (number % 5 == 0) or number)',
    "fibonacci": "def fibonacci(count):\n    first, second = 0, 1\n    for _ in range(count):\n"
    "        yield first\n        first, second = second, first + second",
    "reverse": "def reverse(text):\n    return text[::-1]",
    "sort": "def sort(items):\n    return sorted(items)",
    "prime": "def is_prime(number):\n"
    "    return number > 1 and all(number % divisor for divisor in range(2, number))",
}


def chat(messages: Sequence[Message], tool_names: Sequence[str]) -> dict[str, Any]:
    """Return the assistant message that answers a conversation."""
    last_user = max(
        (place for place, message in enumerate(messages) if message["role"] == "user"), default=-1
    )
    results = [message for message in messages[last_user + 1 :] if message["role"] == "tool"]
    said = content_text(messages[last_user].get("content")) if last_user >= 0 else ""
    if not results and "save_memory" in tool_names and (call := _save_call(said, len(messages))):
        return {"content": None, "tool_calls": [call]}
    if results:
        answer = " ".join(dict.fromkeys(_after_saving(result) for result in results))
    else:
        answer = _answer(said, messages[:last_user])
    is_first = not any(message["role"] == "assistant" for message in messages[: last_user + 1])
    return {"content": f"{_INTRODUCTION}\n\n{answer}" if is_first else answer}


def _save_call(said: str, number: int) -> dict[str, Any] | None:
    """Return a call of `save_memory` if the user asks for it."""
    match = _REMEMBER.search(said)
    if match is None:
        return None
    wanted = match["fact"]
    stated = next((fact.text for fact, _ in facts.find(wanted)), None)
    arguments = {
        "fact": stated or facts.third_person(wanted),
        # One word alone states nothing; the whole request does.
        "evidence": wanted if " " in wanted else match[0].strip(),
    }
    return {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": "save_memory", "arguments": json.dumps(arguments)},
    }


def _after_saving(result: Message) -> str:
    text = content_text(result.get("content")).strip()
    if re.search(r"\b(?:not|no|error|failed|refused|cannot|unable|false)\b", text, re.IGNORECASE):
        return f"I could not save that: {re.sub(r'^not saved: *', '', text, flags=re.I)}"
    if re.search(r"\b(?:before|already)\b", text, re.IGNORECASE):
        return "I remembered that already."
    return "Saved: I will remember that."


def _answer(said: str, earlier: Sequence[Message]) -> str:
    if _CODE_WANTED.search(said) or _CODER.match(_system_text(earlier)):
        return _code(said)
    told = _told_facts(earlier)
    if scene := _scene(_system_text(earlier)):
        return _played(scene, said)
    if _ABOUT_ME.search(said):
        return _all_known(told)
    stated = [fact for fact, _ in facts.find(said)]
    if stated:
        return " ".join(_noted(fact, told) for fact in stated)
    if _ASKS_ABOUT_SELF.search(said.strip()):
        return _recalled(said, told)
    return _small_talk(said.strip())


def _scene(text: str) -> str:
    """Return the scene that the data in a system text names; empty if there is none."""
    for data in _objects(text):
        if isinstance(data.get("scene"), str):
            return str(data["scene"])
    return ""


def _played(scene: str, said: str) -> str:
    aside = " (Noted, what you say in brackets is really you.)" if "(" in said else ""
    doing = "A voice answers from the dark" if '"' in said else "For a moment nothing happens"
    return f"*{scene.rstrip('.')}.* {doing}. Then the wind turns. What do you do next?{aside}"


def _small_talk(said: str) -> str:
    for pattern, answer in _SMALL_TALK:
        if re.match(pattern, said, re.IGNORECASE):
            return answer
    if said.endswith("?"):
        return "A real model would know; I only follow a script. Ask me what I know about you."
    return "I see. Tell me more about yourself, or ask me what I know about you."


def _noted(fact: Fact, told: Sequence[Fact]) -> str:
    verb = "Yes, I remember" if any(fact.is_like(other) for other in told) else "Noted"
    return f"{verb}, {facts.second_person(fact.text)}."


def _all_known(told: Sequence[Fact]) -> str:
    if not told:
        return "Nothing yet. Tell me something about yourself."
    lines = [f"- {facts.second_person(fact.text)}" for fact in told]
    return "\n".join(["This is what I know:", "", *lines])


def _recalled(question: str, told: Sequence[Fact]) -> str:
    """Answer a question about the user by the facts whose slot or words it names."""
    slots = [
        slot
        for pattern, slots in _SLOTS_ASKED_FOR
        if re.search(pattern, question, re.IGNORECASE)
        for slot in slots
    ]
    found = [fact for fact in told if fact.slot.split(" ")[0] in slots]
    if not found:
        words = facts.content_words(question)
        by_overlap = [(len(words & facts.content_words(fact.text)), fact) for fact in told]
        best = max((overlap for overlap, _ in by_overlap), default=0)
        found = [fact for overlap, fact in by_overlap if overlap == best > 0]
    if not found:
        return "I remember nothing that answers this; tell me, and I will know."
    said = " and ".join(facts.second_person(fact.text) for fact in found)
    return f"{said[:1].upper()}{said[1:]}."


def _code(said: str) -> str:
    language = next(
        (name for name in _GREETINGS_IN_CODE if re.search(rf"\b{name}\b", said, re.IGNORECASE)),
        "python",
    )
    source = _GREETINGS_IN_CODE[language]
    if language == "python":
        topics = (text for topic, text in _PYTHON_BY_TOPIC.items() if topic in said.casefold())
        source = next(topics, source)
    return f"```{language}\n{source}\n```"


# --- reading what came ---------------------------------------------------------------------------


def _system_text(messages: Sequence[Message]) -> str:
    return "\n".join(
        content_text(message.get("content"))
        for message in messages
        if message["role"] in {"system", "developer"}
    )


def _told_facts(messages: Sequence[Message]) -> list[Fact]:
    """Return what memories and earlier messages say of the user.

    Of two that disagree only the newer one stays.
    """
    told: list[Fact] = []
    memories = sorted(_recalled_memories(_system_text(messages)), key=lambda item: item[0])
    found = [facts.read_stored(text) for _, text in memories]
    for message in messages:
        if message["role"] == "user":
            found += [fact for fact, _ in facts.find(content_text(message.get("content")))]
    for fact in found:
        told = [old for old in told if not (fact.contradicts(old) or fact.is_like(old))]
        told.append(fact)
    return told


def _recalled_memories(text: str) -> Iterator[tuple[str, str]]:
    """Yield date and text of the memories in any JSON object inside a system text."""
    for value in _objects(text):
        if isinstance(value.get("memories"), list):
            for item in value["memories"]:
                if isinstance(item, dict) and isinstance(item.get("fact"), str):
                    yield str(item.get("since") or ""), item["fact"]
                elif isinstance(item, str):
                    yield "", item
            return


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects inside a text, the outer before the inner."""
    for start in re.finditer(r"\{", text):
        try:
            value, _ = json.JSONDecoder().raw_decode(text, start.start())
        except (ValueError, RecursionError):
            continue
        yield value


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _numbered_facts(value: object) -> Iterator[tuple[int, Fact]]:
    for item in value if isinstance(value, list) else ():
        if (
            isinstance(item, dict)
            and isinstance(item.get("n"), int)
            and isinstance(item.get("fact"), str)
        ):
            yield item["n"], facts.read_stored(item["fact"])
