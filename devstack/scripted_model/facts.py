"""Finding facts in plain first-person sentences, and comparing them.

A sentence and a stored fact are both brought into the first person ("Works as a nurse" becomes
"I work as a nurse"), so that one table of patterns reads both. A pattern puts what it finds into
a slot. Two facts of one slot with like values are the same fact; in a slot that holds a single
value, such as where one lives, unlike values contradict each other.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator
from typing import NamedTuple

# --- words ---------------------------------------------------------------------------------------

_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an the i my me am is are be been was were do does did have has had of in at to for on "
        "with by from as and or but that this it its their his her really very too also now still "
        "just there here about so currently called named over than user you your what which who "
        "where when how tell know remember name s",
    )
)
_SYNONYMS = {
    word: canonical
    for canonical, words in {
        "job": "work works working profession occupation",
        "child": "children kid kids",
        "like": "likes love loves loving enjoy enjoys adore adores",
        "hate": "hates dislike dislikes detest detests",
        "favourite": "favorite",
        "colour": "color",
        "dog": "puppy",
        "cat": "kitten",
        "programmer": "developer coder",
        "doctor": "physician",
        "bicycle": "bike",
        "language": "speak speaks",
        "vegetarian": "veggie",
    }.items()
    for word in words.split()
}
_ENDING = re.compile(r"(?<=\w{3})(?:ment|ing|ies|er|or|es|ed|s|e|y)$")


def _stem(word: str) -> str:
    word = _SYNONYMS.get(word, word)
    while ending := _ENDING.search(word):
        word = word[: ending.start()]
    return word


@functools.lru_cache(maxsize=4096)
def content_words(text: str) -> frozenset[str]:
    """Return the stems of the words that carry the meaning of `text`.

    The stems are what "engineer" and "engineering", or "child" and "kids", have in common.
    """
    words = re.findall(r"\w{1,40}", text.casefold())
    return frozenset(_stem(word) for word in words if word not in _STOP_WORDS)


# --- persons: "I work", "works", "you work" ------------------------------------------------------

_SHORT_FORMS = {
    r"[‘’]": "'",  # noqa: RUF001 - the apostrophes that phones type
    r"\bi'm\b": "I am",
    r"\bi've\b": "I have",
    r"\b(do|am|have)n't\b": r"\1 not",
    r"\bmy (\w+)'s (?=called\b|named\b)": r"my \1 is ",
    # How often or how much changes nothing in what is stated.
    r"^i( am| have)? (?:really|currently|also|still|now|actually|just|always|mostly|usually|"
    r"mainly|generally|recently|truly|totally) ": r"I\1 ",
}
_SUBJECT = re.compile(r"(?:the )?(?:user(?:'s)?|they|he|she|their)\s+", re.IGNORECASE)
_VERB_FORMS = {"am": "is", "have": "has", "do": "does"}
_BASE_FORMS = {form: verb for verb, form in _VERB_FORMS.items()}


def _plain(clause: str) -> str:
    for form, full in _SHORT_FORMS.items():
        clause = re.sub(form, full, clause, flags=re.IGNORECASE)
    return " ".join(clause.split())


def _conjugated(verb: str) -> str:
    if re.search(r"(?:s|x|z|ch|sh|o)$", verb):
        return f"{verb}es"
    return re.sub(r"(?<=[^aeiou])y$", "ie", verb) + "s"


def _base_form(verb: str) -> str:
    verb = re.sub(r"ies$", "ys", verb)
    return re.sub(r"(?<=s|x|z|h|o)es$|s$", "", verb)


def third_person(clause: str) -> str:
    """Return a first-person clause as a fact is written: "I have two cats" → "Has two cats"."""
    clause = _plain(clause)
    verb, _, rest = re.sub(r"^i ", "", clause, flags=re.IGNORECASE).partition(" ")
    if re.match(r"i ", clause, re.IGNORECASE):
        verb = verb.casefold()
        clause = f"{_VERB_FORMS.get(verb) or _conjugated(verb)} {rest}"
    clause = re.sub(r"^my ", "", clause, flags=re.IGNORECASE)
    clause = re.sub(r"\bmy\b", "their", clause, flags=re.IGNORECASE)
    return re.sub(r"\b(?:i|me)\b", "them", clause[:1].upper() + clause[1:].rstrip())


def first_person(fact: str) -> str:
    """Return a fact as its person would say it: "Has two cats" → "I have two cats"."""
    fact = _SUBJECT.sub("", _plain(fact), count=1) if _SUBJECT.match(fact) else _plain(fact)
    if re.match(r"(?:i|my) ", fact, re.IGNORECASE):
        return fact
    verb, _, rest = fact.partition(" ")
    lower = verb[:1].lower() + verb[1:]
    if lower.endswith("s") and not re.match(r"(?:is|are|was)\b", rest):
        base = "was" if lower == "was" else _BASE_FORMS.get(lower) or _base_form(lower)
        return f"I {base} {rest}"
    return f"my {lower} {rest}"


def second_person(fact: str) -> str:
    """Return a fact as said to its person: "Has two cats" → "you have two cats"."""
    text = re.sub(r"^I am\b", "you are", first_person(fact))
    text = re.sub(r"^I was\b", "you were", text)
    return re.sub(r"\b(?:my|their)\b", "your", re.sub(r"^I\b", "you", text)).rstrip(" .")


# --- the table -----------------------------------------------------------------------------------


class _Pattern(NamedTuple):
    """One kind of sentence; of several that match, the first one counts."""

    slot: str
    """Its first word names the slot, the rest its content; "!" if it holds a single value."""
    pattern: str
    """Over a whole first-person clause; what it names `thing` and `value` goes into the texts."""
    fact: str = ""
    """How the fact is written, if not as the clause in the third person."""
    compared: str = "{value}"


_JOBS = (
    r"(?:engineer|teacher|nurse|doctor|developer|programmer|designer|student|lawyer|baker|cook|"
    r"chef|writer|journalist|musician|artist|architect|carpenter|electrician|plumber|farmer|"
    r"scientist|physicist|biologist|chemist|librarian|manager|accountant|consultant|analyst|"
    r"administrator|driver|pilot|photographer|translator|researcher|professor|mechanic|dentist|"
    r"pharmacist|gardener|paramedic|firefighter|barista|waiter|waitress|therapist|technician)\b"
)
_PERSONS = (
    r"(?:brother|sister|mother|father|mum|mom|dad|son|daughter|wife|husband|partner|girlfriend|"
    r"boyfriend|friend|boss|colleague|neighbou?r|cousin|uncle|aunt|parent|kid|child|children|"
    r"family|team|grandmother|grandfather)s?\b"
)
# "My question is …" and "I have an idea" say nothing about a person.
_TALK = (
    r"(?:question|point|problem|issue|guess|idea|code|turn|fault|answer|plan|feeling|request|"
    r"server|script|program|error|bug|suggestion|doubt|clue|look|\w+ question)s?\b"
)
# "I am looking for …" and "I am sure" are ways to speak, no states.
_WAYS_TO_SPEAK = (
    r"(?:not|no|sorry|sure|fine|okay?|glad|afraid|curious|able|interested|done|here|back|in|at|on|"
    r"\w+ing|about|only|the|your|my|this|that|it|of|to|for|into|out|up|off|by|good|well|an?|"
    r"you|what|like|from|with)\b"
)
_SOME = (
    r"(?:an?|\d+|one|two|three|four|five|six|seven|several|many|no|kids|children|asthma|diabetes)"
)
_THING = r"(?P<thing>[\w-]+(?: [\w-]+){0,2}?)"
_VALUE = r"(?P<value>(?!(?:it|that|this|them|you|him|her|what|how|when|to)\b).+)"
_NAME = r"(?P<value>(?-i:[A-Z])[\w'-]+)"

_TABLE = (
    _Pattern(
        "name!", rf"(?:my name is|i am called|(?:please )?call me) {_VALUE}", "Name is {value}"
    ),
    _Pattern("called {thing}!", rf"my {_THING} (?:is|are) (?:called|named) {_VALUE}"),
    _Pattern("called {thing}!", rf"my {_THING}'s name is {_VALUE}", "{Thing} is called {value}"),
    _Pattern("called {thing}!", rf"i have an? {_THING} (?:called|named) {_VALUE}"),
    _Pattern("called {thing}!", rf"{_NAME}, my {_THING}(?:,.*)?", "{Thing} is called {value}"),
    _Pattern(
        "called {thing}!",
        rf"my (?P<thing>dog|cat|horse|rabbit|parrot),? {_NAME}\b.*",
        "{Thing} is called {value}",
    ),
    _Pattern("favourite {thing}!", rf"my favou?rite {_THING} (?:is|are) {_VALUE}"),
    _Pattern(
        "favourite {thing}!",
        rf"(?P<value>[\w-]+(?: [\w-]+)?) is my favou?rite {_THING}",
        "Favourite {thing} is {value}",
    ),
    _Pattern("age!", r"i am (?P<value>\d+)(?: years old)?", "Is {value} years old"),
    _Pattern(
        "birthday!",
        rf"(?:my birthday is|i was born) (?:on )?(?!in\b){_VALUE}",
        "Birthday is {value}",
    ),
    _Pattern("birthplace!", rf"i was born in {_VALUE}", "Was born in {value}"),
    _Pattern("origin!", rf"i (?:am|come) (?:originally )?from {_VALUE}", "Is from {value}"),
    _Pattern(
        "home!",
        r"i (?:live|(?:am|have been) (?:living|based)|(?:have )?(?:moved|relocated)) (?:in|to) "
        rf"{_VALUE}",
        "Lives in {value}",
    ),
    _Pattern("allergy", rf"i am allergic to {_VALUE}"),
    _Pattern("allergy", r"i have an? (?P<value>.+) allergy", "Is allergic to {value}"),
    _Pattern(
        "is!", rf"i (?:am|work as) (?P<value>an? (?:[\w-]+ )*?{_JOBS}.*)", "Works as {value}"
    ),
    _Pattern(
        "is!",
        rf"my (?:\w+ )?(?:job|profession|occupation) is (?:being )?{_VALUE}",
        "Job is {value}",
    ),
    _Pattern(
        "is!", r"(?P<value>[\w-]+(?: [\w-]+){0,2}) is my (?:job|profession)", "Job is {value}"
    ),
    _Pattern("is!", r"i (?:work in|do) (?P<value>.+) for a living", "Works in {value}"),
    _Pattern("is", rf"i work (?:as|in) {_VALUE}"),
    _Pattern("employer!", rf"i work (?:at|for) {_VALUE}", "Works at {value}"),
    _Pattern(
        "prefer {value} {thing}!", rf"i prefer {_VALUE} (?:over|to|rather than) (?P<thing>.+)"
    ),
    _Pattern(
        "taste {value}!",
        rf"i (?P<thing>like|love|enjoy|adore|hate|dislike) (?:to )?{_VALUE}",
        "",
        "{thing}",
    ),
    _Pattern("taste {value}!", rf"i do not (?:like|enjoy) (?:to )?{_VALUE}", "", "hate"),
    _Pattern("is", r"i do not eat meat", "", "vegetarian"),
    _Pattern("not {thing}", rf"i do not (?P<thing>eat|drink|smoke|drive|have|own|speak) {_VALUE}"),
    _Pattern("have", rf"i have (?P<value>(?!(?:[\w-]+ )?{_TALK}){_SOME}\b.*)"),
    _Pattern("is", rf"i am an? (?!{_TALK})(?P<value>.+)"),
    _Pattern("is", rf"i (?:am|feel) (?P<value>(?!{_WAYS_TO_SPEAK})\w+(?: [\w'-]+){{0,4}})"),
    _Pattern(
        "do {thing}",
        r"i (?P<thing>prefer|speak|play|use|drive|ride|study|collect|drink|eat|own|teach|run|grow|"
        rf"write|cook|bake|practi[sc]e|follow|support|work) {_VALUE}",
    ),
    _Pattern("my {thing}", rf"my (?!(?:\w+ )?(?:{_TALK}|{_PERSONS})){_THING} (?:is|are) {_VALUE}"),
    _Pattern(
        "called {thing}!", rf"{_NAME} is my (?!{_TALK}){_THING}", "{Thing} is called {value}"
    ),
)
_COMPILED = tuple((row, re.compile(row.pattern, re.IGNORECASE)) for row in _TABLE)


# --- facts ---------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Fact:
    """A fact as text, and what it is compared by."""

    text: str
    slot: str
    value: frozenset[str]
    is_single: bool = False

    def is_like(self, other: Fact) -> bool:
        """Say whether both state the same, one perhaps with more detail."""
        if self.slot != other.slot or not self.value or not other.value:
            return self.text.casefold() == other.text.casefold()
        return self.value <= other.value or other.value <= self.value

    def contradicts(self, other: Fact) -> bool:
        """Say whether both cannot be true together."""
        single = self.is_single and other.is_single
        return single and self.slot == other.slot and not self.is_like(other)


@dataclasses.dataclass(frozen=True)
class Clause:
    """A part of a message that states one thing."""

    words: str
    """As written."""
    reading: str
    """In the first person, in full forms, without an end that changes nothing."""

    @property
    def is_negated(self) -> bool:
        """Whether it says that something is not so."""
        return re.search(r"\b(?:not|no longer|never)\b", self.reading, re.IGNORECASE) is not None

    @property
    def affirmed(self) -> str:
        """The reading without its negation."""
        plain = re.sub(
            r"\b(?:do not|not|no longer|any ?more|any longer)\b", "", self.reading, flags=re.I
        )
        return " ".join(plain.split())


_MAX_CLAUSE_LENGTH = 200
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n+")
_QUESTION = (
    r"(?:what|who|whose|where|when|why|how|which|do|does|did|can|could|would|will|should|is|are|"
    r"am)"
)
_ASKING = re.compile(rf"{_QUESTION}\b", re.IGNORECASE)
_STATEMENT = r"(?:i|i'm|i've|i’m|my [\w ]{1,30}? (?:is|are))"  # noqa: RUF001 - as typed by phones
_VERB = (
    r"(?:live|work|like|love|hate|prefer|speak|have|play|use|drive|drink|eat|study|am|moved|own|"
    r"do not|don't)"
)
_GAP = r"(?:,|(?<=\S))\s+"
_CLAUSE_BORDER = re.compile(
    rf"{_GAP}(?:and|but|so|because|since)\s+(?={_STATEMENT}\b)"
    rf"|,\s+(?=(?:{_STATEMENT}|{_QUESTION}|please)\b)"
    rf"|{_GAP}(?P<shared>(?:and|but)\s+)(?={_VERB}\b)",
    re.IGNORECASE,
)
_LEAD_IN = re.compile(
    r"(?:(?:well|hi|hello|hey|ok|okay|so|and|but|also|actually|oh|yes|no|yeah|btw|again|besides|"
    r"because|since|today|currently|by the way|for the record|fyi|in fact|to be clear|please|"
    r"(?:as|like) (?:i|you) (?:said|mentioned|know|told you)(?: before)?|"
    r"(?:please )?(?:remember|note|don['’]t forget)(?: that)?)\b[,:!]?\s+)+",  # noqa: RUF001
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"(?:,? (?:because|which|who|when|while|if|although|that) .*"
    r"|,? (?:now|these days|again|any ?more|too|as well|at the moment|by the way|currently|btw|"
    r"last \w+|since \w+|for \d+ years|\d+ years ago|as you know|as i said|recently))+$",
    re.IGNORECASE,
)


def clauses(message: str) -> Iterator[Clause]:
    """Yield the statements of a message: no questions, no quoted lines, no code."""
    lines = [line for line in _CODE.sub("\n", message).splitlines() if line.lstrip()[:1] != ">"]
    for sentence in _SENTENCE_END.split("\n".join(lines)):
        parts = list(_parts(sentence))
        subject = ""
        for number, (part, shares_subject) in enumerate(parts, 1):
            words = (
                _LEAD_IN.sub("", part.strip(), count=1) if _LEAD_IN.match(part.strip()) else part
            )
            words = words.strip(" \t,;:!.*_")
            is_asked = number == len(parts) and words.endswith("?")
            if is_asked or (not shares_subject and _ASKING.match(words)):
                continue
            reading = _plain(f"{subject}{words}" if shares_subject else words)
            subject = "I " if re.match(r"i ", reading, re.IGNORECASE) else ""
            if len(words.split()) > 1 and len(words) <= _MAX_CLAUSE_LENGTH:
                yield Clause(words, _TAIL.sub("", reading))


def _parts(sentence: str) -> Iterator[tuple[str, bool]]:
    """Yield the clauses of a sentence, each with whether it shares the last one's subject."""
    start, shares_subject = 0, False
    for border in _CLAUSE_BORDER.finditer(sentence):
        yield sentence[start : border.start()], shares_subject
        start, shares_subject = border.end(), border["shared"] is not None
    yield sentence[start:], shares_subject


def read(reading: str) -> Fact | None:
    """Return the fact that a first-person clause states, or None."""
    for row, pattern in _COMPILED:
        match = pattern.fullmatch(reading)
        if match is None:
            continue
        found = {"value": "", "thing": "", **match.groupdict()}
        found["Thing"] = found["thing"][:1].upper() + found["thing"][1:]
        name, _, content = row.slot.rstrip("!").partition(" ")
        return Fact(
            third_person(row.fact.format(**found) or reading),
            " ".join([name, *sorted(content_words(content.format(**found)))]),
            content_words(row.compared.format(**found)),
            row.slot.endswith("!"),
        )
    return None


@functools.lru_cache(maxsize=4096)
def read_stored(text: str) -> Fact:
    """Return a stored fact as what it is compared by, whoever wrote it."""
    fact = read(first_person(text.strip(" .")))
    if fact is None:
        return Fact(text, "other", content_words(text))
    return dataclasses.replace(fact, text=text)


def find(message: str) -> Iterator[tuple[Fact, Clause]]:
    """Yield the facts that a message states about its writer, each with its clause."""
    for clause in clauses(message):
        fact = read(clause.reading)
        if fact is not None:
            yield fact, clause
