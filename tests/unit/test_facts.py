"""What a fact is: one line (M7), the same as another (M7), evident (M6), never a secret (M14)."""

# ruff: noqa: RUF001 - characters that look alike are what folding is about

from __future__ import annotations

import base64
import hashlib
import string
import unicodedata

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from llmbot.memory.facts import (
    MAX_FACT_LENGTH,
    MAX_TERMS,
    Refusal,
    fact_key,
    folded,
    is_evidence,
    looks_secret,
    one_line,
    out_of_character,
    own_words,
    refusal,
    terms,
)
from llmbot.memory.small_talk import is_small_talk

ANY_TEXT = st.text()
"""Every code point, lone surrogates too."""
ODD_TEXT = st.text(
    st.sampled_from("aAbB é´`'\"“”„‹«「」.。!>\n\r\t\0\u200d\u2028ßİǅﬁ①ｱ漢字가नमสวัส\ufe0f😀")
)
WORDS = st.text(st.sampled_from(string.ascii_letters + "äéßøñłж"), min_size=2, max_size=8)


# --- one line ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        (" \t\n ", ""),
        ("Lives in Berlin", "Lives in Berlin"),
        ("  Lives\tin \n\n Berlin\r\n", "Lives in Berlin"),
        ("a\u00a0b\u2003c\u3000d", "a b c d"),
        ("a\u2028b\u2029c\x85d\x0be\x0cf", "a b c d e f"),
        ("nul\0 bell\x07 escape\x1b[31m", "nul bell escape[31m"),
        ("half \ud800 of a pair", "half of a pair"),
        ("family 👨\u200d👩\u200d👧", "family 👨\u200d👩\u200d👧"),
        ("नमस्ते दुनिया", "नमस्ते दुनिया"),
    ],
)
def test_one_line(text: str, line: str) -> None:
    assert one_line(text) == line


@given(ANY_TEXT | ODD_TEXT)
def test_a_line_is_one_line_that_can_be_stored(text: str) -> None:
    line = one_line(text)
    assert line == one_line(line)
    assert len(line.splitlines()) <= 1
    assert line == " ".join(line.split())
    line.encode()
    assert not any(unicodedata.category(character) == "Cc" for character in line)


# --- the same fact -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Lives in Berlin", "lives in BERLIN"),
        ("Lives in Berlin", " Lives  in\nBerlin "),
        ("Lives in Berlin", "Lives in Berlin."),
        ("Lives in Berlin", "Lives in Berlin!…"),
        ("住在柏林", "住在柏林。"),
        ("Likes 'Dune'", "Likes ‘Dune’"),
        ("Likes 'Dune'", "Likes `Dune´"),
        ("Likes 'Dune'", "Likes ‹Dune›"),
        ('Likes "Dune"', "Likes “Dune”"),
        ('Likes "Dune"', "Likes „Dune“"),
        ('Likes "Dune"', "Likes «Dune»"),
        ('Likes "Dune"', "Likes ″Dune″"),
        ('Likes "Dune"', "Likes 「Dune」"),
        ("It's warm", "It´s warm"),
        ("Was born in Straße 5", "WAS BORN IN STRASSE 5"),
        ("Owns ﬁve cats", "Owns five cats"),
        ("Ｏｗｎｓ １０ cats", "Owns 10 cats"),
        ("Drinks café au lait", "Drinks cafe\u0301 au lait"),
        ("Drinks café au lait", "Drinks cafe\u200d\u0301 au lait"),
        ("Has a soft\u00adhyphen", "Has a softhyphen"),
        ("Has a zero\u200bwidth\ufeff space", "Has a zerowidth space"),
        ("I ❤\ufe0f tea", "I ❤ tea"),
    ],
)
def test_m7_texts_that_are_the_same_fact(left: str, right: str) -> None:
    assert fact_key(left) == fact_key(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Prefers Python over Node", "Prefers Node over Python"),
        ("Lives in Berlin", "Does not live in Berlin"),
        ("Has 1 cat", "Has 11 cats"),
        ("Likes C", "Likes C++"),
        ("Likes C", "Likes C#"),
        ("Resume is online", "Résumé is online"),
        ("Likes 🍎", "Likes 🍏"),
        ("有一只猫", "有一只狗"),
        ("Speaks हिन्दी", "Speaks हिन्द"),
        ("a b", "ab"),
    ],
)
def test_m7_texts_that_are_different_facts(left: str, right: str) -> None:
    assert fact_key(left) != fact_key(right)


@given(ANY_TEXT | ODD_TEXT)
@example("´")
@example("‴")
@example("e\u200d\u0301")
def test_folding_is_stable(text: str) -> None:
    assert folded(folded(text)) == folded(text) == folded(one_line(text))


@given(ANY_TEXT | ODD_TEXT)
def test_a_key_depends_on_the_folded_text_only(text: str) -> None:
    key = fact_key(text)
    assert key == fact_key(folded(text)) == fact_key(one_line(text)) == fact_key(text + ".")
    assert len(key) == 64


@given(st.lists(WORDS, min_size=1), st.sampled_from([" ", "\n", "\t  ", "\u00a0"]))
def test_case_and_white_space_do_not_make_another_fact(words: list[str], space: str) -> None:
    assert fact_key(space.join(words).upper()) == fact_key(" ".join(words))


# --- what is never stored (M14) ----------------------------------------------------------------


@pytest.mark.parametrize("fact", ["", " ", "\u200b", "\u200d\ufe0f", "\u2060 \ufeff", "\ue000"])
def test_m14_nothing_to_read_is_empty(fact: str) -> None:
    assert refusal(one_line(fact)) is Refusal.EMPTY


@pytest.mark.parametrize("letter", ["a", "漢", "😀", "é"])
def test_m14_500_characters_are_stored_and_501_are_not(letter: str) -> None:
    assert refusal(letter * 500) is None
    assert refusal(letter * 501) is Refusal.TOO_LONG
    assert MAX_FACT_LENGTH == 500


@given(ANY_TEXT | ODD_TEXT)
def test_m14_what_may_be_stored_says_something_in_at_most_500_characters(text: str) -> None:
    fact = one_line(text)
    if refusal(fact) is None:
        assert 0 < len(fact) <= MAX_FACT_LENGTH
        assert not looks_secret(fact)


KEY = "3fK9xQ2vLm8Zt5Rw7Yb1"
HEX = "9f86d081884c7d659a2feaa0c55ad015"

SECRETS = [
    # Keys of model providers.
    f"sk-{KEY}T3BlbkFJ{KEY}",
    f"sk-proj-{KEY}_{KEY}",
    "sk-abcdefghijklmnop",
    f"Key is sk-ant-api03-{KEY}-{KEY}AA",
    f"sk-or-v1-{HEX}{HEX}",
    f"sk-{HEX}",
    f"gsk_{KEY}{KEY}",
    f"xai-{KEY}{KEY}",
    f"AIzaSyD-{KEY}_{KEY[:8]}",
    f"hf_{KEY}abcdefgh",
    f"pplx-{HEX}",
    f"r8_{KEY}{KEY}",
    f"nvapi-{KEY}-{KEY}",
    f"fw_{KEY}",
    f"My Mistral one: {KEY}aB3dE5fG7hJ9",
    f"Uses {HEX} with Azure",
    # Other services.
    "AKIAIOSFODNN7EXAMPLE",
    "AWS: wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    f"github_pat_11ABCDEFG0{KEY}_{KEY}",
    f"glpat-{KEY}",
    "xox" + "b-123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx",
    "xapp-1-A012BCDEFGH-1234567890123-abcdef",
    "https://hooks.slack.com/" + "services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
    "https://discord.com/api/webhooks/123456789012345678/abcdefGHIJKL",
    "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw",
    "sk_" + "live_4eC39HqLyjWDarjtT1zdp7dc",
    f"SG.{KEY}.{KEY}{KEY}",
    f"npm_{KEY}{KEY[:16]}",
    f"pypi-AgEIcHlwaS5vcmc{KEY}",
    f"dop_v1_{HEX}{HEX}",
    f"hvs.{KEY}{KEY}",
    f"GOCSPX-{KEY}abcdefgh",
    f"ya29.a0Af{KEY}{KEY}",
    # Matrix.
    "syt_YWRh_QwErTyUiOpAsDfGhJkLz_1a2B3c",
    "Uses syt_YWxpY2U_abcdefgh for the bot",
    "syr_YWRh_QwErTyUiOpAsDfGhJkLz_1a2B3c",
    "mct_8dJ3kLm2NpQ4rStUvWxYz5AbCdEf_6gH7iJ",
    "mat_8dJ3kLm2NpQ4rStUvWxYz5AbCdEf_6gH7iJ",
    "MDAxOGxvY2F0aW9uIGV4YW1wbGUub3JnCjAwMTNpZGVudGlmaWVyIGtleQo",
    "EsTc LW2K PGiF wKEA 3As5 g5c4 BXwk qeeJ ZJV8 Q9fu gUMN UE4d",
    # Formats.
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "-----BEGIN PRIVATE KEY----- MIIEvQ",
    "-----BEGIN OPENSSH PRIVATE KEY----- b3BlbnNzaC1rZXk -----END OPENSSH PRIVATE KEY-----",
    "-----BEGIN PGP PRIVATE KEY BLOCK----- lQVYBF",
    "-----BEGIN X509 CRL----- MIIBVjCBwAIBATAN",
    "Authorization: Basic YWRhOmh1bnRlcg==",
    "curl -H 'Authorization: Bearer abcdefgh'",
    "Bearer 8dJ3kLm2NpQ4",
    "postgres://ada:hunter@db.example.org/bot",
    "redis://:swordfish@localhost:6379/0",
    "https://api.example.org/?api_key=abcdef",
    "https://example.org/feed?token=Ab12Cd",
    "OPENAI_API_KEY=abcdef",
    "DB_PASSWORD=swordfish",
    "client_secret: abcdefgh",
    # Sentences.
    "Password is swordfish",
    "The password for the router is hunter2",
    "The password for example.org is swordfish",
    "Wifi password: correct horse battery staple",
    "PASSWORD: SWORDFISH",
    'Uses "swordfish" as password everywhere',
    "Changed the wifi password to swordfish",
    "Has the wifi password hunter2",
    "Passphrase = swordfish",
    "His passcode is 8361",
    "API key: abcdefgh",
    "API token is abcdefgh",
    "PIN: 4711",
    "The PIN of the debit card is 4711",
    "Card has PIN 4711",
    "Alarm code is 4711#",
    "token=abc",
    "Token for the bot is Ab12",
    "Recovery phrase is legal winner thank year wave sausage worth useful legal winner",
    "Das Passwort lautet Sommer",
    "Passwort fürs WLAN ist hunter2",
    "Mein Kennwort: geheim!",
    "Hat die Geheimzahl 4711",
    "Le mot de passe est soleil",
    "Mot de passe du wifi : soleil",
    "La contraseña es girasol",
    "La clave del wifi es sol123",
    "La password del wifi è girasole",
    "La parola segreta è Sole22",
    "A senha é girassol",
    "Het wachtwoord is zonnebloem",
    "Hasło do wifi to kotek",
    "Hasło: kotek",
    "Пароль: подсолнух",
    "Пароль от вайфая — подсолнух",
    "Lösenordet är solros",
    "密码是123456",
    "密码：abcdef",
    "密碼是向日葵花",
    "パスワードはhunter2です",
    "パスワード：ひまわり",
    "비밀번호는 1234",
    "비밀번호: 해바라기",
    "密钥是sk-abcdefghijklmnop",
    "我的sk-abcdefghijklmnop别告诉别人",
    # Disguises that the eye does not see.
    "ＰＡＳＳＷＯＲＤ： ｓｗｏｒｄｆｉｓｈ",
    "contrasen\u0303a: girasol",
]


@pytest.mark.parametrize("fact", SECRETS)
def test_m14_secrets(fact: str) -> None:
    assert looks_secret(fact)
    assert refusal(one_line(fact)[:500]) is Refusal.SECRET
    assert looks_secret(f"Told me this: {fact}")


HARMLESS = [
    "Lives at 221B Baker Street, London NW1 6XE",
    "Lives in 10115 Berlin, Invalidenstraße 44a",
    "Phone number is +49 170 1234567",
    "Reachable at ada.lovelace@example.org",
    "Matrix ID is @ada:example.org",
    "Bank account is DE89370400440532013000",
    "Born on 1815-12-10",
    "Meets the team on 2026-12-01T10:00:00Z",
    "Flight LH2037 leaves at 06:45",
    "Drives a VW ID.3 with number plate B-AB 1234",
    "Owns an iPhone 15 Pro Max and a MacBook-Pro-16-M3-Max-2023",
    "Has an RTX4090 and a Ryzen 9 7950X3D",
    "Uses a ThinkPad X1 Carbon Gen 11",
    "Prefers the keyboard layout de-nodeadkeys",
    "Uses 1Password",
    "Uses 1Password on Windows11",
    "Uses a password manager",
    "Password manager is Bitwarden",
    "Keeps passwords in KeePass",
    "Thinks that a strong password is important",
    "The password is stored in a vault",
    "Hates password rules",
    "Forgets passwords all the time",
    "Nutzt einen Passwortmanager",
    "Works at 1&1",
    "Plays the piano",
    "Has a strong opinion: tabs, not spaces",
    "Likes shopping: shoes and hats",
    "Loves spinning: 3 classes a week",
    "Collects enamel pins: cats and dogs",
    "Develops ERC20 tokens in Solidity",
    "Knows OAuth2 and OpenID",
    "Has a ski pass: Ikon",
    "Favourite film is Top Secret",
    "La clave del éxito es trabajar",
    "La sua parola preferita è ciao",
    "Plays in the key of B-flat, key_signature_two_flats",
    "Likes key-lime-pie",
    "Zip code is 90210",
    "Dress code is black tie",
    "Writes at https://example.org/blog/2026/12/01/how-i-learned-python3.html",
    "Code is at https://github.com/Octo/Hello-World2/tree/main",
    "Maintains npm-check-updates-helper",
    "Watches https://www.youtube.com/watch?v=dQw4w9WgXcQ",
    "Server has the address 192.168.178.42 and fe80::1ff:fe23:4567:890a",
    "Standard bearer of the club",
    "Runs Mixtral-8x7B-Instruct-v0.1 at home",
    "Works as Donaudampfschifffahrtskapitän",
    "Researches 1-ethyl-3-methylimidazolium",
    "Uses the hashtag #IchLiebeDichSoSehrDuAuch",
    "Wears size 42/44 and shoe size 43",
    "Weighs 82 kg at 1.85 m",
    "Time zone is UTC+02:00",
    "Speaks C++17, Python 3.12 and ES2023",
    "喜欢喝茶",
    "東京に住んでいます",
    "서울에 살고 있습니다",
    "Живёт в Москве",
    "मुंबई में रहता हूँ",
    "يعيش في القاهرة",
    "Likes 🎹 and 🐈\u200d⬛",
    "👍",
]


@pytest.mark.parametrize("fact", HARMLESS)
def test_m14_harmless_facts(fact: str) -> None:
    assert refusal(fact) is None


# A generated key may by chance look like a name; of these none does.
@pytest.mark.parametrize("seed", range(50))
def test_m14_random_keys_are_secrets(seed: int) -> None:
    key = hashlib.sha256(f"seed {seed}".encode()).digest()
    for text in (
        key.hex(),
        base64.b64encode(key).decode(),
        base64.urlsafe_b64encode(key).decode(),
    ):
        assert looks_secret(f"Uses {text} somewhere")


@given(st.lists(WORDS, max_size=30).map(" ".join), st.integers(0, 10**6))
def test_m14_spoken_words_and_numbers_are_no_secret(words: str, number: int) -> None:
    assert not looks_secret(f"Knows {words} since {number}")


# --- evidence (M6) -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("I live in Berlin", "I live in Berlin"),
        ("> I live in Rome\nI live in Berlin", "I live in Berlin"),
        ("  > I live in Rome\n\nme too", "\nme too"),
        (">I live in Rome", ""),
        ("> <@bob:example.org> I live in Rome\n> and like it\n\nme too", "\nme too"),
        ("5 > 3\nis true", "5 > 3\nis true"),
        ("a\r\n> b\r\nc", "a\r\nc"),
        # What only looks like a new line still belongs to the quotation.
        ("> Bob\u2028I am a thief\nlol", "lol"),
        ("> Bob\rI am a thief\nlol", "lol"),
        ("> Bob\x0bI am a thief\x85I am\x1cso\nlol", "lol"),
    ],
)
def test_m6_quoted_lines_are_not_own_words(message: str, words: str) -> None:
    assert own_words(message) == words


@given(ANY_TEXT | ODD_TEXT, ANY_TEXT | ODD_TEXT)
def test_m6_nothing_of_a_quoted_line_is_own(quoted: str, own: str) -> None:
    quoted = quoted.replace("\n", " ")
    assert own_words(f"> {quoted}\n{own}") == own_words(own)


EVIDENCE = [
    # Folding: NFKC, case, white space, quotation marks.
    ("I live in Berlin", "Hello, I live in Berlin now"),
    ("i LIVE in berlin", "Hello, I live in Berlin now"),
    ("I live  in\nBerlin", "I live\tin Berlin"),
    ("I live in Berlin", "I\u00a0live in\u200b Berlin"),
    ("'I live in Berlin'", "I live in Berlin"),
    ('"I live in Berlin"', "I live in Berlin"),
    ("„Ich wohne in Köln“", "Ich wohne in Köln"),
    ("«J'habite à Paris»", "J’habite à Paris"),
    ("「私は東京に住んでいます」", "私は東京に住んでいます"),
    ("I'm a nurse", "I’m a nurse"),
    ("I'm a nurse", "I´m a nurse"),
    ('my "best" friend', "my “best” friend"),
    ("I own five cats", "I own ﬁve cats"),
    ("I own 10 cats", "I own １０ cats"),
    ("I drink café", "I drink cafe\u0301"),
    ("in der STRASSE", "in der Straße"),
    # Borders of words.
    ("habite à Paris", "Oui, j'habite à Paris."),
    ("live in Berlin", "(live in Berlin)"),
    ("live in Berlin", "I live in Berlin, and you?"),
    ("live in Berlin", "I relive in Berlin. I live in Berlin!"),
    ("I like C++", "Yes I like C++."),
    ("am 42 years", "I am 42 years old"),
    # Scripts: two words, or four characters where there are no spaces.
    ("저는 서울에 살아요", "안녕하세요 저는 서울에 살아요"),
    ("أعيش في القاهرة", "أنا أعيش في القاهرة الآن"),
    ("मुंबई में रहता हूँ", "मैं मुंबई में रहता हूँ।"),
    ("住在柏林", "我住在柏林。"),
    ("住んでいます", "私は東京に住んでいます。"),
    ("ผมอยู่กรุงเทพ", "สวัสดีครับผมอยู่กรุงเทพ"),
    ("我用Linux", "我用Linux系统"),
    # Emoji stand between words or for none.
    ("I ❤ tea", "I ❤\ufe0f tea"),
    ("love tea 🍵", "I love tea 🍵🍵"),
]
NO_EVIDENCE = [
    ("I live in Rome", "I live in Berlin"),
    ("live in Berlin I", "I live in Berlin"),
    ("I live in Berlin", "I live in"),
    ("I live in Berlin", ""),
    # Nothing.
    ("", "I live in Berlin"),
    (" ", "I live in Berlin"),
    ("\u200b\u200b", "I live in Berlin"),
    ("'' \"\"", "I live '' \"\" in Berlin"),
    ("...  ...", "I live ... ... in Berlin"),
    ("😀 😀", "😀 😀 I live in Berlin"),
    # A single word, or too few characters in scripts without spaces.
    ("ok", "ok"),
    ("yes", "yes, I live in Berlin"),
    ("Berlin", "I live in Berlin"),
    ("Berlin !", "I live in Berlin !"),
    ("🎉 Berlin", "I live in 🎉 Berlin"),
    ("살아요", "저는 서울에 살아요"),
    ("القاهرة", "أعيش في القاهرة"),
    ("मुंबई", "मैं मुंबई में रहता हूँ"),
    ("柏林", "我住在柏林"),
    ("住柏林", "我住柏林"),
    ("好 的", "好 的"),
    ("はい。", "はい。"),
    ("ใช่", "ใช่"),
    # Not at the borders of words.
    ("happy here", "I am unhappy here"),
    ("am 4", "I am 42"),
    ("live in Ber", "I live in Berlin"),
    ("저는 서울", "저는 서울에 살아요"),
    ("मैं मुंब", "मैं मुंबई में रहता हूँ"),
    ("मैं बर्लि", "मैं बर्लिन में हूँ"),
    ("في القاهر", "أعيش في القاهرة"),
    ("I drink cafe", "I drink cafe\u0301"),
    ("ผมอย", "ผมอยู่กรุงเทพ"),
    # In one message means in one line of thought: words must follow each other.
    ("I Berlin", "I live in Berlin"),
]


@pytest.mark.parametrize(("quote", "words"), EVIDENCE)
def test_m6_evidence(quote: str, words: str) -> None:
    assert is_evidence(quote, words)


@pytest.mark.parametrize(("quote", "words"), NO_EVIDENCE)
def test_m6_no_evidence(quote: str, words: str) -> None:
    assert not is_evidence(quote, words)


@given(st.lists(WORDS, min_size=2, max_size=12), st.data())
def test_m6_consecutive_words_are_evidence_and_others_are_not(
    words: list[str], data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(words) - 2))
    end = data.draw(st.integers(start + 2, len(words)))
    quote = words[start:end]
    assume(not is_small_talk(folded(" ".join(quote))))
    message = " ".join(words)
    assert is_evidence("  ".join(quote).upper(), message)
    assert not is_evidence(" ".join([*quote, "zzzzzzzzzz"]), message)
    assert not is_evidence(quote[0], message)


@given(ANY_TEXT | ODD_TEXT, ANY_TEXT | ODD_TEXT)
def test_m6_evidence_stands_in_the_words(quote: str, words: str) -> None:
    if is_evidence(quote, words):
        assert folded(quote).strip("\"' ") in folded(words)
        assert any(map(str.isalnum, quote))


@given(ANY_TEXT | ODD_TEXT)
@example("\u0e31abc \u0f00def")
def test_m6_evidence_survives_what_surrounds_it(text: str) -> None:
    if is_evidence(text, text):
        assert is_evidence(text, f"Hello. {text} Bye.")
        assert is_evidence(f'"{text}"', text)


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("I open the door.", "I open the door."),
        ('"I am a king," I say', " *  I say"),
        ("“I am a king” and „ich auch“ and „so do I”", " *  and  *  and  * "),
        ("«Je suis roi» »Ich auch« 「我」『也』", " *   *   *  * "),
        ("*bows* hello **there**", " *  hello  * "),
        ('("not said", he adds) "said"', '("not said", he adds)  * '),
        ("((OOC: I'm a nurse)) [really *am*]", "((OOC: I'm a nurse)) [really *am*]"),
        ("I don't mind\n\"an open quote\nand a line", "I don't mind\n\"an open quote\nand a line"),
        ("2 * 3", "2 * 3"),
    ],
)
def test_m6_in_a_scene_dialogue_and_actions_are_a_characters(said: str, left: str) -> None:
    assert out_of_character(said) == left


@given(ODD_TEXT, WORDS, WORDS)
def test_m6_nothing_across_a_characters_words_is_evidence(
    said: str, left: str, right: str
) -> None:
    assume("\n" not in said and not set(said) & set('"“”„«»‹›()[]*'))
    kept = out_of_character(f'{left} "{said}" {right}')
    assert not is_evidence(f"{left} {right}", kept)


def test_a_long_scene_is_read_at_once() -> None:
    for text in ('"' * 99_999, "(" * 99_999, "«" * 99_999, "*" * 99_999, "„" * 99_999):
        assert len(out_of_character(text)) < 300_000


# --- likeness ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Works in engineering", "I am an ENGINEER"),
        ("Likes Café", "the cafe\u0301!"),
        ("住在柏林", "我现在住在北京"),
        ("กรุงเทพ", "ผมอยู่กรุงเทพ"),
        ("서울에 산다", "저는 서울에 살아요"),
    ],
)
def test_like_texts_share_terms(left: str, right: str) -> None:
    assert set(terms(left)) & set(terms(right))


@pytest.mark.parametrize("text", ["", "  ", "!?", "😀", "is it so"[:2]])
def test_texts_about_nothing_have_no_terms(text: str) -> None:
    assert terms(text) == []


def test_terms_of_one_text() -> None:
    assert terms("My dog, my DOG and engineering") == ["dog", "and", "engin"]
    assert terms("住在柏林") == ["住在", "在柏", "柏林"]
    assert terms("猫") == ["猫"]


def test_a_pasted_book_has_a_bounded_number_of_terms() -> None:
    assert len(terms(" ".join(f"w{number}" for number in range(100, 10_000)))) == MAX_TERMS


@given(ANY_TEXT | ODD_TEXT)
def test_terms_are_few_short_and_different(text: str) -> None:
    found = terms(text)
    assert len(found) == len(set(found)) <= MAX_TERMS
    assert all(0 < len(term) <= 5 for term in found)
    assert found == terms(folded(text))
