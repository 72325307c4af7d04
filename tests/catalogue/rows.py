"""Cases about rows: what is the same fact, whose it is, and how often it was said."""

from __future__ import annotations

from .case import (
    BOB,
    CallsSave,
    Case,
    CleansUp,
    Deletes,
    Guard,
    Kind,
    Knows,
    Remembered,
    Says,
    Together,
    Waits,
)

_TWO_CATS = Says("I have 2 cats", new=(("Has 2 cats", "I have 2 cats"),))
_THREE_CATS = Says("I have 3 cats", new=(("Has three cats", "I have 3 cats"),))
NUMBER = (
    Case(
        "two near-copies are two facts",
        Kind.NUMBER,
        Guard.STORE,
        (
            Says("I have 21 hens", new=(("Has 21 hens", "I have 21 hens"),)),
            Says("I have 12 hens", new=(("Has 12 hens", "I have 12 hens"),)),
        ),
        Remembered(candidates={"Has 21 hens": 1, "Has 12 hens": 1}),
    ),
    Case(
        "a number that the extractor got wrong once does not live on",
        Kind.NUMBER,
        Guard.THRESHOLD,
        (
            Says("I have 2 cats", new=(("Has 4 cats", "I have 2 cats"),)),
            _TWO_CATS,
            Says(
                "I have 2 cats, you know",
                again=(("Has 2 cats", "I have 2 cats"),),
                contradicted=(("Has 4 cats", "I have 2 cats"),),
            ),
        ),
        Remembered(("Has 2 cats",)),
    ),
    Case(
        "the same text but for case, dots and spaces is the same fact",
        Kind.NUMBER,
        Guard.STORE,
        (
            _TWO_CATS,
            Says("I do have 2 cats", new=(("has  2 CATS.", "have 2 cats"),)),
        ),
        Remembered(("Has 2 cats",)),
    ),
    Case(
        "a memory stays beside a candidate that differs in its number",
        Kind.NUMBER,
        Guard.STORE,
        (Knows("Has 2 cats"), _THREE_CATS),
        Remembered(("Has 2 cats",), {"Has three cats": 1}),
    ),
)

_MOVES = (
    ("en", "Lives in Oslo", "I live in Oslo", "Lives in Bergen", "I moved to Bergen"),
    ("de", "Wohnt in Graz", "Ich wohne in Graz", "Wohnt in Linz", "ich bin nach Linz gezogen"),
    ("es", "Vive en Vigo", "Vivo en Vigo", "Vive en Bilbao", "me he mudado a Bilbao"),
)
CHANGE = (
    *(
        Case(
            f"moved from A to B while A was a candidate ({language})",
            Kind.CHANGE,
            Guard.STORE,
            (
                Says(said_old, new=((old, said_old),)),
                Says(said_new, new=((new, said_new),), contradicted=((old, said_new),)),
                Says(f"{said_new}!", again=((new, said_new),)),
            ),
            Remembered((new,)),
            languages=(language,),
        )
        for language, old, said_old, new, said_new in _MOVES
    ),
    Case(
        "moved from A to B when A was a memory: both stay, the newer one wins by its date",
        Kind.CHANGE,
        Guard.STORE,
        (
            Says("I live in Oslo", new=(("Lives in Oslo", "I live in Oslo"),)),
            Says("I do live in Oslo", again=(("Lives in Oslo", "live in Oslo"),)),
            Waits(30),
            Says("I moved to Bergen", new=(("Lives in Bergen", "I moved to Bergen"),)),
            Says("Bergen, where I live", again=(("Lives in Bergen", "where I live"),)),
        ),
        Remembered(("Lives in Oslo", "Lives in Bergen")),
        note="Recall shows each with its date (M15); a cleanup may drop the older one (M12).",
    ),
    Case(
        "a single new statement does not replace a memory",
        Kind.CHANGE,
        Guard.THRESHOLD,
        (
            Knows("Lives in Oslo"),
            Says("I moved to Bergen", new=(("Lives in Bergen", "I moved to Bergen"),)),
        ),
        Remembered(("Lives in Oslo",), {"Lives in Bergen": 1}),
    ),
    Case(
        "a contradiction that the answer claims removes nothing",
        Kind.CHANGE,
        Guard.EVIDENCE,
        (
            Says("I live in Oslo", new=(("Lives in Oslo", "I live in Oslo"),)),
            Says(
                "What is up?",
                reply="You do not live in Oslo any more.",
                contradicted=(("Lives in Oslo", "You do not live in Oslo any more"),),
            ),
        ),
        Remembered(candidates={"Lives in Oslo": 1}),
    ),
)

_ENGINEER = "Works as a mechanical engineer"
PARAPHRASE = (
    Case(
        "five wordings make one memory, in the words of the first",
        Kind.PARAPHRASE,
        Guard.STORE,
        (
            Says("I work as a mechanical engineer", new=((_ENGINEER, "I work as a mechanical"),)),
            Says("My job is mechanical engineering", again=((_ENGINEER, "My job is mechanical"),)),
            Says("As an engineer for machines I know"),
            Says("I design machines for a living"),
            Says("Being in mechanical engineering, I care"),
        ),
        Remembered((_ENGINEER,)),
    ),
    Case(
        "five wordings, with a threshold of five",
        Kind.PARAPHRASE,
        Guard.STORE,
        (
            Says("I am a vegetarian", new=(("Is a vegetarian", "I am a vegetarian"),)),
            *[
                Says(words, again=(("Is a vegetarian", words),))
                for words in ("I eat no meat", "Meat is not for me", "no meat for me, as ever")
            ],
            Says(
                "I live on plants",
                again=(("Is a vegetarian", "I live on plants"), ("Is a vegetarian", "on plants")),
            ),
        ),
        Remembered(("Is a vegetarian",)),
        settings={"memory_promotion_threshold": 5},
    ),
    Case(
        "wordings that the extractor does not recognise stay apart",
        Kind.PARAPHRASE,
        Guard.THRESHOLD,
        tuple(
            Says(words, new=((fact, words),))
            for words, fact in (
                ("I eat no meat", "Eats no meat"),
                ("I am a vegetarian", "Is a vegetarian"),
                ("I live on plants", "Lives on plants"),
            )
        ),
        Remembered(
            candidates={"Eats no meat": 1, "Is a vegetarian": 1, "Lives on plants": 1},
        ),
        note="A weak model costs recall here, not truth.",
    ),
)

TWO_LANGUAGES = tuple(
    Case(
        f"said in {first}, said again in {second}",
        Kind.TWO_LANGUAGES,
        Guard.STORE,
        (Says(said, new=((fact, said),)), Says(said_again, again=((fact, said_again),))),
        Remembered((fact,)),
        languages=(first, second),
    )
    for first, fact, said, second, said_again in (
        ("en", "Plays the cello", "I play the cello", "de", "Ich spiele Cello"),
        ("de", "Hat zwei Katzen", "Ich habe zwei Katzen", "es", "Tengo dos gatos"),
        ("zh", "住在柏林", "我住在柏林市", "en", "I live in Berlin"),
        ("fr", "Est infirmière", "Je suis infirmière", "ja", "私は看護師です"),
    )
)

OTHER_USER = (
    Case(
        "two people say the same: each has one mention",
        Kind.OTHER_USER,
        Guard.STORE,
        (
            Says("I live in Berlin", new=(("Lives in Berlin", "I live in Berlin"),)),
            Says("I live in Berlin", new=(("Lives in Berlin", "I live in Berlin"),), user=BOB),
        ),
        Remembered(candidates={"Lives in Berlin": 1}),
        {BOB: Remembered(candidates={"Lives in Berlin": 1})},
    ),
    Case(
        "what one remembers does not stop another from telling it",
        Kind.OTHER_USER,
        Guard.STORE,
        (
            Knows("Lives in Berlin", user=BOB),
            Says("I live in Berlin", new=(("Lives in Berlin", "I live in Berlin"),)),
        ),
        Remembered(candidates={"Lives in Berlin": 1}),
        {BOB: Remembered(("Lives in Berlin",))},
    ),
    Case(
        "one deletes, the other keeps",
        Kind.OTHER_USER,
        Guard.STORE,
        (
            Knows("Lives in Berlin"),
            Knows("Lives in Berlin", user=BOB),
            Deletes("Lives in Berlin", user=BOB),
        ),
        Remembered(("Lives in Berlin",)),
        {BOB: Remembered()},
    ),
)

_BERLIN = (("Lives in Berlin", "live in Berlin"),)
PARALLEL = (
    Case(
        "two tellings at once are two mentions of one fact",
        Kind.PARALLEL,
        Guard.STORE,
        (
            Together(
                (Says("I live in Berlin", new=_BERLIN), Says("yes, I live in Berlin", new=_BERLIN))
            ),
        ),
        Remembered(("Lives in Berlin",)),
    ),
    Case(
        "three tellings at once, with a threshold of four",
        Kind.PARALLEL,
        Guard.STORE,
        (
            Together(
                tuple(
                    Says(words, new=_BERLIN)
                    for words in ("I live in Berlin", "we live in Berlin", "to live in Berlin")
                )
            ),
        ),
        Remembered(candidates={"Lives in Berlin": 3}),
        settings={"memory_promotion_threshold": 4},
    ),
    Case(
        "the same event twice at once is one mention",
        Kind.PARALLEL,
        Guard.STORE,
        (Together((Says("I live in Berlin", new=_BERLIN, event="$same"),) * 2),),
        Remembered(candidates={"Lives in Berlin": 1}),
    ),
)

DELETED = (
    Case(
        "deleted, and told again once",
        Kind.DELETED,
        Guard.THRESHOLD,
        (
            Says("I live in Berlin", new=_BERLIN),
            Says("Still I live in Berlin", new=_BERLIN),
            Deletes("Lives in Berlin"),
            Says("I live in Berlin", new=_BERLIN),
        ),
        Remembered(candidates={"Lives in Berlin": 1}),
        note="What was deleted counts from one again.",
    ),
    Case(
        "deleted, and only recited by the bot",
        Kind.DELETED,
        Guard.EVIDENCE,
        (
            Knows("Lives in Berlin"),
            Deletes("Lives in Berlin"),
            *[Says("ok", reply="You live in Berlin.", new=_BERLIN)] * 3,
        ),
    ),
    Case(
        "deleted, and asked to be remembered again",
        Kind.DELETED,
        Guard.STORE,
        (
            Knows("Lives in Berlin"),
            Deletes("Lives in Berlin"),
            CallsSave("Lives in Berlin", "I live in Berlin", ("Remember: I live in Berlin",)),
        ),
        Remembered(("Lives in Berlin",)),
    ),
)

_FOUR = tuple(
    map(Knows, ("Likes tea", "Drinks tea every morning", "Lives in Berlin", "Has a dog"))
)
_ALL_FOUR = Remembered(tuple(memory.fact for memory in _FOUR))
CLEANUP = (
    *(
        Case(
            name,
            Kind.CLEANUP,
            Guard.SHAPE,
            (*_FOUR, CleansUp(answer, is_rejected=True)),
            _ALL_FOUR,
        )
        for name, answer in (
            ("drops everything", {"drop": [1, 2, 3, 4]}),
            ("drops three of four", {"drop": [1, 2, 3]}),
            ("numbers from 0", {"drop": [0], "merge": [{"n": [1, 2], "fact": "Likes dogs"}]}),
            ("drops what it merges", {"drop": [1], "merge": [{"n": [1, 2], "fact": "Both"}]}),
            (
                "merges into a whole page",
                {"merge": [{"n": [3, 4], "fact": "Likes tea and drinks it. " * 30}]},
            ),
            (
                "writes a password",
                {"merge": [{"n": [3, 4], "fact": "Likes tea, password is swordfish7"}]},
            ),
        )
    ),
    Case(
        "merges two that overlap",
        Kind.CLEANUP,
        Guard.SHAPE,
        (
            *_FOUR,
            CleansUp(
                {"merge": [{"n": [3, 4], "fact": "Likes tea, drinks it every morning"}]},
                is_rejected=False,
            ),
        ),
        Remembered(("Lives in Berlin", "Has a dog", "Likes tea, drinks it every morning")),
    ),
    Case(
        "merges everything into something that says nothing",
        Kind.CLEANUP,
        Guard.NOTHING,
        (
            *_FOUR,
            CleansUp({"merge": [{"n": [1, 2, 3, 4], "fact": "Is nice"}]}, is_rejected=False),
        ),
        Remembered(("Is nice",)),
        note="M12 lets a merge say anything; !memories undo brings the four back.",
    ),
)

CASES = (
    *NUMBER,
    *CHANGE,
    *PARAPHRASE,
    *TWO_LANGUAGES,
    *OTHER_USER,
    *PARALLEL,
    *DELETED,
    *CLEANUP,
)
