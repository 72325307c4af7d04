"""Cases about what is never stored: secrets, whole pages, and answers that are none."""

from __future__ import annotations

import json

from .case import CallsSave, Case, Guard, Kind, Remembered, Says

SECRETS = (
    ("en", "My password is swordfish", "Password is swordfish"),
    ("en", "The wifi password at home: hunter2", "Wifi password at home: hunter2"),
    ("de", "Mein Passwort lautet Sommer2024", "Passwort lautet Sommer2024"),
    ("es", "Mi contraseña es girasol9", "La contraseña es girasol9"),
    ("fr", "mon mot de passe est tournesol9", "Son mot de passe est tournesol9"),
    ("ru", "мой пароль: весна2024", "пароль: весна2024"),  # noqa: RUF001
    ("zh", "我的密码是abc12345", "密码是abc12345"),
    (
        "en",
        "my key is sk-proj-abcdefghijklmnopqrstuvwx12",
        "Key is sk-proj-abcdefghijklmnopqrstuvwx12",
    ),
    (
        "en",
        "use ghp_1234567890abcdefghijklmnopqrstuvwxyz please",
        "Uses ghp_1234567890abcdefghijklmnopqrstuvwxyz",
    ),
    ("en", "the card's PIN is 4711", "PIN is 4711"),
    (
        "en",
        "-----BEGIN PRIVATE KEY----- MIIEvQIBADAN",
        "-----BEGIN PRIVATE KEY----- MIIEvQIBADAN",
    ),
    (
        "en",
        "db is postgres://ada:swordfish@db.example.org/x",
        "Database is postgres://ada:swordfish@db.example.org/x",
    ),
)

SECRET = (
    *(
        Case(
            f"by ask and by save_memory: {said}",
            Kind.SECRET,
            Guard.FILTER,
            (
                *[Says(said, new=((fact, said), (said, said)))] * 2,
                CallsSave(fact, said, (said,), result="Not saved: it looks like"),
            ),
            languages=(language,),
        )
        for language, said, fact in SECRETS
    ),
    Case(
        "what only talks about passwords is no secret",
        Kind.SECRET,
        Guard.FILTER,
        (
            *[
                Says(
                    "I use a password manager on Linux",
                    new=(("Uses a password manager", "I use a password manager"),),
                )
            ]
            * 2,
        ),
        Remembered(("Uses a password manager",)),
    ),
)

_PAGE = "\n".join(f"{number}. A line of a long report about bees." for number in range(2000))
LONG_PASTE = (
    Case(
        "a whole page as a fact",
        Kind.LONG_PASTE,
        Guard.FILTER,
        (Says(_PAGE, new=((_PAGE, "A line of a long report"),)),) * 2,
    ),
    Case(
        "a fact at the end of a very long message is found",
        Kind.LONG_PASTE,
        Guard.STORE,
        (
            *[
                Says(
                    f"{_PAGE}\nI work as a beekeeper",
                    new=(("Works as a beekeeper", "I work as a beekeeper"),),
                )
            ]
            * 2,
        ),
        Remembered(("Works as a beekeeper",)),
    ),
    Case(
        "a hundred facts from one page, once",
        Kind.LONG_PASTE,
        Guard.THRESHOLD,
        (
            Says(
                _PAGE,
                new=tuple(
                    (f"Fact {number} about bees", f"{number}. A line") for number in range(100)
                ),
            ),
        ),
        Remembered(candidates={f"Fact {number} about bees": 1 for number in range(100)}),
        note="Candidates are many, but none of them is a memory, and they expire.",
    ),
    Case(
        "a text of 501 characters",
        Kind.LONG_PASTE,
        Guard.FILTER,
        (
            Says("I like tea", new=(("Likes " + "t" * 495, "I like tea"),)),
            CallsSave("t" * 501, "I like tea", ("I like tea",), result="Not saved: it is longer"),
        ),
    ),
)

_GOOD = {"fact": "Likes tea", "evidence": "I like tea"}
BROKEN = (
    *(
        Case(
            name,
            Kind.BROKEN,
            Guard.SHAPE,
            (Says("I like tea", raw=answer),) * 2,
        )
        for name, answer in (
            ("a refusal", "I'm sorry, but I cannot help with that."),
            ("prose", "The user likes tea. I would store: Likes tea."),
            ("prose around JSON without a fence", 'Here: {"new": []} as you asked'),
            ("truncated JSON", json.dumps({"new": [_GOOD]})[:-12]),
            ("a list in place of an object", json.dumps([_GOOD])),
            ("a text in place of a list", json.dumps({"new": "Likes tea"})),
            ("nothing at all", ""),
            ("keys of its own", json.dumps({"facts": [_GOOD], "memories": ["Likes tea"]})),
            ("facts as plain texts", json.dumps({"new": ["Likes tea", "I like tea"]})),
            ("well-formed nonsense", json.dumps({"new": [{"fact": "1,24", "evidence": "6000"}]})),
        )
    ),
    Case(
        "numbers out of range, and the worst answer otherwise",
        Kind.BROKEN,
        Guard.SHAPE,
        (
            Says("I like tea", new=(("Likes tea", "I like tea"),)),
            Says(
                "Oh well then",
                raw=json.dumps(
                    {
                        kind: [
                            {"n": number, "evidence": "Oh well then"}
                            for number in (0, 2, -1, 99, True, "1", 1.0, None, [1])
                        ]
                        for kind in ("reinforced", "contradicted")
                    }
                ),
            ),
        ),
        Remembered(candidates={"Likes tea": 1}),
    ),
    Case(
        "duplicated items count once",
        Kind.BROKEN,
        Guard.STORE,
        (
            Says("I like tea", new=(("Likes tea", "I like tea"),) * 5),
            Says(
                "Yes I like tea",
                new=(("Likes tea", "I like tea"), ("likes tea.", "I like tea")),
                again=(("Likes tea", "I like tea"),) * 5,
            ),
        ),
        Remembered(candidates={"Likes tea": 2}),
        settings={"memory_promotion_threshold": 3},
    ),
    Case(
        "good JSON in a code fence is read",
        Kind.BROKEN,
        Guard.SHAPE,
        (Says("I like tea", raw=f"```json\n{json.dumps({'new': [_GOOD]})}\n```"),) * 2,
        Remembered(("Likes tea",)),
    ),
)

CASES = (*SECRET, *LONG_PASTE, *BROKEN)
