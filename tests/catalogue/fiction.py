"""Cases of a room that plays a scene: characters say much, and people say some things aside."""

from __future__ import annotations

from .case import Case, Guard, Kind, Remembered, Says, Waits

_DIALOGUE = (
    (
        "en",
        '"I am the king of Denmark and I have two swords," he says. I open the door.',
        (("Is the king of Denmark", "I am the king of Denmark"), ("Has swords", "two swords")),
    ),
    (
        "en",
        "*I live in a tower by the sea* What do I see from here?",
        (("Lives in a tower", "I live in a tower by the sea"),),
    ),
    (
        "de",
        "„Ich bin Kapitän und habe drei Schiffe“, ruft Ada. Wer antwortet?",
        (("Ist Kapitän", "Ich bin Kapitän"), ("Hat drei Schiffe", "habe drei Schiffe")),
    ),
    (
        "fr",
        "« Je suis allergique au poison », dit la reine. Que fait le roi ?",
        (("Est allergique au poison", "Je suis allergique au poison"),),
    ),
    ("zh", "「我住在月亮上」她说。", (("住在月亮上", "我住在月亮上"),)),
)
_ASIDE = (
    (
        "en",
        '"I am a dragon," I roar. (OOC: I work as a nurse, so I leave at ten.)',
        (("Is a dragon", "I am a dragon"),),
        ("Works as a nurse", "I work as a nurse"),
    ),
    (
        "en",
        "*draws a sword* By the way, out of character: I am allergic to nuts.",
        (("Owns a sword", "draws a sword"),),
        ("Is allergic to nuts", "I am allergic to nuts"),
    ),
    (
        "de",
        "„Ich bin ein Drache!“ ((nebenbei: ich wohne in Köln))",
        (("Ist ein Drache", "Ich bin ein Drache"),),
        ("Wohnt in Köln", "ich wohne in Köln"),
    ),
    (
        "es",
        '«Soy un dragón» [fuera de personaje: mi perro se llama "Bruno"]',
        (("Es un dragón", "Soy un dragón"),),
        ("Su perro se llama Bruno", 'mi perro se llama "Bruno"'),
    ),
)

CASES = (
    *(
        Case(
            f"what a character says, three times: {said}",
            Kind.FICTION,
            Guard.EVIDENCE,
            (Says(said, new=new, in_scene=True),) * 3,
            languages=(language,),
        )
        for language, said, new in _DIALOGUE
    ),
    *(
        Case(
            f"what is said aside, twice: {said}",
            Kind.FICTION,
            Guard.EVIDENCE,
            (
                Says(said, new=(*wrong, right), in_scene=True),
                Says(said, new=wrong, again=(right,), in_scene=True),
            ),
            Remembered((right[0],)),
            languages=(language,),
        )
        for language, said, wrong, right in _ASIDE
    ),
    Case(
        "a character that is played in plain words, misread once",
        Kind.FICTION,
        Guard.THRESHOLD,
        (
            Says(
                "I am a dragon and guard my gold",
                new=(("Is a dragon", "I am a dragon"),),
                in_scene=True,
            ),
            Waits(15),
            Says("Hello there"),
        ),
        note="Only a model, which is told that it reads fiction, can tell who speaks; once, it"
        " expires.",
    ),
    Case(
        "a character that is played in plain words, misread twice",
        Kind.FICTION,
        Guard.NOTHING,
        (
            Says(
                "I am a dragon and guard my gold",
                new=(("Is a dragon", "I am a dragon"),),
                in_scene=True,
            ),
            Says(
                "As I am a dragon, I breathe fire",
                again=(("Is a dragon", "I am a dragon"),),
                in_scene=True,
            ),
        ),
        Remembered(("Is a dragon",)),
        note="The quotes are the person's own; that a character speaks only a model can tell.",
    ),
    Case(
        "the same words in a room without a scene are the person's",
        Kind.FICTION,
        Guard.STORE,
        (
            Says('My name is "Ada", as I said', new=(("Name is Ada", 'My name is "Ada"'),)),
            Says('My name is "Ada", as I said', again=(("Name is Ada", 'My name is "Ada"'),)),
        ),
        Remembered(("Name is Ada",)),
    ),
)
