"""Cases whose wrong facts the user never said: the evidence rule is there for these."""

from __future__ import annotations

from .case import NOTHING, CallsSave, Case, Guard, Kind, Knows, Remembered, Says, Waits

# What is true here, in the words of each language: fact, what the user says, how the bot repeats
# it, and the user's "ok".
_BERLIN = (
    (
        "en",
        "Lives in Berlin",
        "I live in Berlin",
        "Since you live in Berlin, take the S-Bahn.",
        "ok",
    ),
    (
        "de",
        "Wohnt in Berlin",
        "Ich wohne in Berlin",
        "Da du in Berlin wohnst, nimm die S-Bahn.",
        "Jawohl!",
    ),
    ("es", "Vive en Berlín", "Vivo en Berlín", "Como vives en Berlín, toma el S-Bahn.", "vale"),
    ("zh", "住在柏林", "我住在柏林市", "既然你住在柏林,就坐轻轨吧。", "好的"),
    ("ja", "ベルリン在住", "私はベルリンに住んでいます", "ベルリンにお住まいですね。", "はい"),
)

RECALLED = (
    *(
        Case(
            f"a candidate is not confirmed by the bot repeating it ({language})",
            Kind.RECALLED,
            Guard.EVIDENCE,
            (Says(said, new=((fact, said),)), *[Says(ok, reply=repeated)] * 5),
            Remembered(candidates={fact: 1}),
            languages=(language,),
        )
        for language, fact, said, repeated, ok in _BERLIN
    ),
    Case(
        "a memory that the bot recites is not stored again in its words",
        Kind.RECALLED,
        Guard.EVIDENCE,
        (
            Knows("Lives in Berlin"),
            *[Says("ok", reply="You live in Berlin. You like Berlin.")] * 5,
        ),
        Remembered(("Lives in Berlin",)),
    ),
    Case(
        "an emoji and a question mark confirm nothing",
        Kind.RECALLED,
        Guard.EVIDENCE,
        (
            Says("I live in Berlin", new=(("Lives in Berlin", "I live in Berlin"),)),
            *[
                Says(word, reply="You live in Berlin.", again=(("Lives in Berlin", word),))
                for word in ("👍 👍", "?", "ok 👍", "...", "ok!")
            ],
        ),
        Remembered(candidates={"Lives in Berlin": 1}),
    ),
)

# Two words that state nothing, each as the whole quote with which a candidate is confirmed.
_POLITE = (
    ("en", "ok thanks", "yes please", "thank you so much", "Sounds good, thanks!", "no, thanks"),
    ("de", "ok danke", "ja bitte", "vielen Dank", "alles klar, danke", "ja, genau"),
    ("es", "vale gracias", "sí, por favor", "muchas gracias", "de acuerdo", "claro que sí"),
    ("fr", "ok merci", "oui merci", "merci beaucoup", "d'accord, merci", "très bien"),
    ("zh", "好的谢谢", "谢谢你啊", "好的好的", "明白了谢谢", "是的是的"),
    ("ja", "ありがとう", "わかりました", "はい、ありがとう", "なるほど", "ありがとうございます"),
)

POLITE = tuple(
    Case(
        f"thanking for a wrong answer confirms nothing ({language})",
        Kind.RECALLED,
        Guard.EVIDENCE,
        (
            Says("Please tell me about boats", new=(("Owns a yacht", "tell me about boats"),)),
            *[
                Says(words, reply="As you own a yacht: yes.", again=(("Owns a yacht", words),))
                for words in polite
            ],
        ),
        Remembered(candidates={"Owns a yacht": 1}),
        languages=(language,),
        note="The invented fact is a candidate, since a model misquoted a real passage once; "
        "politeness must not make it a memory.",
    )
    for language, *polite in _POLITE
)

# What only the assistant said: the user's message and the answer with a made-up fact.
_ONLY_THE_ASSISTANT = (
    ("en", "Tell me about clouds", "As a pilot, you know clouds. You work as a pilot."),
    ("de", "Erzähl mir von Wolken", "Als Pilotin kennst du Wolken. Du arbeitest als Pilotin."),
    ("es", "Háblame de las nubes", "Como piloto conoces las nubes. Trabajas de piloto."),
    ("fr", "Parle-moi des nuages", "Tu es pilote. En tant que pilote, tu connais les nuages."),
    ("zh", "给我讲讲云吧", "你是飞行员,你了解云。"),
    ("ar", "أخبرني عن الغيوم", "أنت طيار، وأنت تعرف الغيوم."),
)

ASSISTANT = (
    *(
        Case(
            f"a profession that only the answer names, three times ({language})",
            Kind.ASSISTANT,
            Guard.EVIDENCE,
            (Says(said, reply=reply),) * 3,
            languages=(language,),
        )
        for language, said, reply in _ONLY_THE_ASSISTANT
    ),
    Case(
        "the answer repeats the user and adds to it",
        Kind.ASSISTANT,
        Guard.EVIDENCE,
        (
            Says(
                "I have a dog",
                reply="How nice that you have a dog called Rex.",
                new=(
                    ("Has a dog", "I have a dog"),
                    ("Dog is called Rex", "a dog called Rex"),
                    ("Has a dog called Rex", "you have a dog called Rex"),
                ),
            ),
        ),
        Remembered(candidates={"Has a dog": 1}),
    ),
    Case(
        "save_memory with the assistant's own words as evidence",
        Kind.ASSISTANT,
        Guard.EVIDENCE,
        (
            CallsSave(
                "Works as a pilot",
                "you work as a pilot",
                ("Tell me about clouds",),
                result="Not saved: evidence",
            ),
        ),
    ),
    Case(
        "a fact from the answer, with some real words of the user as evidence, twice",
        Kind.ASSISTANT,
        Guard.NOTHING,
        (
            Says(
                "Tell me about clouds",
                reply="You work as a pilot.",
                new=(("Works as a pilot", "Tell me about clouds"),),
            ),
        )
        * 2,
        Remembered(("Works as a pilot",)),
        note="The quote is real, it only shows something else; that a quote shows a fact can "
        "be judged only by a model. Once is harmless, twice the same is not.",
    ),
)

SYSTEM_PROMPT = tuple(
    Case(
        f"the extractor reports its own instructions: {fact}",
        Kind.SYSTEM_PROMPT,
        Guard.EVIDENCE,
        (Says(said, new=((fact, quote),), reply=quote),) * 3,
        languages=(language,),
    )
    for language, said, fact, quote in (
        (
            "en",
            "Hello there",
            "Keeps notes about one person",
            "You keep the notes about one person",
        ),
        ("de", "Hallo zusammen", "Is a helpful assistant", "You are a helpful assistant"),
        ("es", "Hola a todos", "Is in a Matrix chat room", "in a Matrix chat room"),
        ("ja", "こんにちは", "Answers in JSON", "Answer with one JSON object of three lists"),
    )
)

PROMPT_EXAMPLE = tuple(
    Case(
        f"the prompt's example comes back as a fact, with this evidence: {quote!r}",
        Kind.PROMPT_EXAMPLE,
        Guard.EVIDENCE,
        (Says(said, new=((fact, quote),)),) * 3,
        languages=(language,),
    )
    for language, said, fact, quote in (
        ("en", "What is a gear?", "Works as a mechanical engineer", "mechanical engineer"),
        ("de", "Was ist ein Getriebe?", "Works as a mechanical engineer", "I am an engineer"),
        ("es", "¿Qué es una nuez?", "Is allergic to nuts", "Is allergic to nuts"),
    )
)

QUOTED = (
    *(
        Case(
            name,
            Kind.QUOTED,
            Guard.EVIDENCE,
            (Says(prompt, new=new),) * 3,
            languages=(language,),
        )
        for name, language, prompt, new in (
            (
                "a quoted message's fact is not the quoter's",
                "en",
                "> I work as a pilot\nWhat does he mean?",
                (("Works as a pilot", "I work as a pilot"),),
            ),
            (
                "a reply fallback with its sender",
                "de",
                "> <@bob:example.org> Ich wohne in Oslo\n> und habe drei Kinder\n\nStimmt das?",
                (("Wohnt in Oslo", "Ich wohne in Oslo"), ("Hat drei Kinder", "habe drei Kinder")),
            ),
            (
                "a quote within a quote",
                "es",
                ">> Soy vegano desde hace años\n> ¿De verdad?\n¿Qué opinas de esto?",
                (("Es vegano", "Soy vegano"), ("Es vegano", "¿De verdad?\n¿Qué opinas")),
            ),
            (
                "a quote that is indented, with evidence across its end",
                "en",
                "   > I am vegan\nso am I not",
                (("Is vegan", "I am vegan"), ("Is vegan too", "vegan so am I")),
            ),
        )
    ),
    Case(
        "somebody's words in quotation marks, said once",
        Kind.QUOTED,
        Guard.THRESHOLD,
        (
            Says('Bob wrote "I am vegan". Why?', new=(("Is vegan", "I am vegan"),)),
            Waits(15),
            Says("Hello there"),
        ),
        note="Nothing but a model can tell whose words these are; once, they expire.",
    ),
)

INVENTED = (
    *(
        Case(
            f"an invented name, three times ({language})",
            Kind.INVENTED,
            Guard.EVIDENCE,
            (Says(said, reply=reply, new=((fact, quote), (fact, name))),) * 3,
            languages=(language,),
        )
        for language, said, reply, fact, quote, name in (
            ("en", "Hi there, how are you?", "Hello John!", "Name is John", "I am John", "John"),
            (
                "de",
                "Guten Tag zusammen",
                "Hallo Peter!",
                "Heißt Peter",
                "Ich heiße Peter",
                "Peter",
            ),
            ("es", "Buenos días a todos", "¡Hola, Ana!", "Se llama Ana", "me llamo Ana", "Ana"),
            ("ru", "Добрый день всем", "Привет, Иван!", "Зовут Иван", "меня зовут Иван", "Иван"),
        )
    ),
    Case(
        "another invention for each message, each with a real quote",
        Kind.INVENTED,
        Guard.THRESHOLD,
        (
            Says("I like tea very much", new=(("Owns a tea shop", "I like tea"),)),
            Says("Tea with milk for me", new=(("Is from England", "Tea with milk"),)),
            Says("Two cups a day", new=(("Has two children", "Two cups"),)),
            Waits(15),
            Says("Hello there"),
        ),
        note="A real quote that shows something else: once each, so they expire.",
    ),
    Case(
        "evidence that begins or ends within a word",
        Kind.INVENTED,
        Guard.EVIDENCE,
        (
            Says(
                "I am unhappy here, and my carpet is red",
                new=(
                    ("Is happy here", "happy here"),
                    ("Has a car", "my car"),
                    ("Has a pet", "pet is red"),
                ),
            ),
        )
        * 2,
    ),
    Case(
        "words of the message in another order",
        Kind.INVENTED,
        Guard.EVIDENCE,
        (Says("My sister likes Ann", new=(("Is called Ann", "My Ann"), ("x y", "Ann likes"))),)
        * 2,
        NOTHING,
    ),
)

CASES = (
    *RECALLED,
    *POLITE,
    *ASSISTANT,
    *SYSTEM_PROMPT,
    *PROMPT_EXAMPLE,
    *QUOTED,
    *INVENTED,
)
