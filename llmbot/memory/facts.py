"""What a fact is: its one-line text, when two are the same, and which are never stored (M14).

Everything here is pure: text in, text or a verdict out.
"""

from __future__ import annotations

import enum
import hashlib
import itertools
import re
import unicodedata

from .small_talk import is_small_talk

MAX_FACT_LENGTH = 500
"""Characters that a stored fact may have (M14)."""

_QUOTE_MARKS = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛‹›′`´ʼ＇❛❜", "'"),  # noqa: RUF001
        **dict.fromkeys("“”„‟«»″＂❝❞〝〞〟「」『』｢｣", '"'),  # noqa: RUF001
    }
)
# Controls but for those that are white space, and halves of surrogate pairs.
_UNSTORABLE = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff]")
# What formats without being read: invisible characters, variants of emoji.
_NOT_READ = dict.fromkeys(
    code
    for code in (*range(0x20000), *range(0xE0000, 0xE1000))
    if unicodedata.category(chr(code)) == "Cf" or 0xFE00 <= code <= 0xFE0F
)
_ENDING_PUNCTUATION = " .!。！…"  # noqa: RUF001

# Scripts written without spaces between words, by the first word of their Unicode names.
_SPACELESS_SCRIPTS = frozenset(
    {"CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"}
)


class Refusal(enum.Enum):
    """Why a text is never stored as a fact, by any path (M14)."""

    EMPTY = "it is empty"
    TOO_LONG = f"it is longer than {MAX_FACT_LENGTH} characters"
    SECRET = "it looks like a password, key or token"


def one_line(text: str) -> str:
    """Return `text` as the single line that is stored.

    White space runs become one space. Characters that PostgreSQL or a reader cannot take
    (NUL and other controls, lone surrogates) are left out.
    """
    return " ".join(_UNSTORABLE.sub("", text).split())


def folded(text: str) -> str:
    """Return `text` without the differences that no reader means (M6, M7).

    Compatibility forms (NFKC), case, quotation marks, white space and what only formats
    (invisible characters, variants of emoji) are folded.
    """
    # Before the normalisation, which would take some quotation marks apart.
    text = one_line(text).translate(_QUOTE_MARKS).translate(_NOT_READ)
    text = unicodedata.normalize("NFKC", text).casefold()
    # Casefolding can undo the normalisation: once more makes folding stable.
    return one_line(unicodedata.normalize("NFKC", text).translate(_QUOTE_MARKS))


def fact_key(fact: str) -> str:
    """Return what two texts of the same fact share (M7): a digest of constant length.

    A digest, since a normalised fact may be longer than an index entry may be.
    """
    text = folded(fact).rstrip(_ENDING_PUNCTUATION)
    return hashlib.sha256(text.encode()).hexdigest()


def refusal(fact: str) -> Refusal | None:
    """Return why `fact`, already one line, must not be stored, or None if it may be (M14)."""
    if not any(unicodedata.category(character)[0] not in "CZM" for character in fact):
        return Refusal.EMPTY
    if len(fact) > MAX_FACT_LENGTH:
        return Refusal.TOO_LONG
    if looks_secret(fact):
        return Refusal.SECRET
    return None


# --- secrets -----------------------------------------------------------------------------------

_KNOWN_SECRET_FORMS = re.compile(
    r"""
      -----BEGIN\ [A-Z0-9 ]+-----                          # PEM blocks
    | \b(?:sk|gsk|xai|tskey|pplx|nvapi)[-_][\w-]{12,}      # model providers and others
    | \b(?:pk|rk|hf|r8|fw|key|secret|npm|pypi|dckr_pat|lin_api|ntn|shpat|whsec|dop_v1)
      [-_](?=[a-z_-]*\d)[\w-]{12,}                         # the same, also beginnings of words
    | \b(?:AIza|ya29\.|GOCSPX-|hvs\.|SG\.)[\w-]{16,}       # Google, Vault, SendGrid
    | \b(?-i:AKIA|ASIA)(?-i:[A-Z0-9]{12,})                 # AWS
    | \b(?:gh[oprsu]|github_pat|glpat|xox[a-z]|xapp)[-_]\w[\w-]{10,}    # GitHub, GitLab, Slack
    | hooks\.slack\.com/services/\S+ | discord(?:app)?\.com/api/webhooks/\S+
    | \b\d{8,10}:[\w-]{30,}                                # Telegram bots
    | \b(?:syt|syr|syl)_\w{8,}                             # Matrix access tokens: Synapse,
    | \b(?:mas|mat|mar|mct|mcr)_(?=[a-z_]*\d)\w{12,}       # Matrix Authentication Service,
    | \bEs[A-Z0-9]{2}(?:\ [A-Z0-9]{4}){11}                 # recovery key of encrypted messages
    | \beyJ[\w-]{8,}\.[\w-]{8,}                            # JSON web tokens
    | \bauthorization\s?:\s?\S+                            # HTTP headers
    | \bbearer\s(?=\S*\d)[\w.~+/-]{12,}
    | \b\w+://[^\s/:@]*:[^\s/@]+@                          # a password inside an address
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)


def _any_word_of(words: str) -> str:
    """Return a pattern for one of the words; not inside another: "opinion" holds "pin"."""
    return rf"(?<![^\W_])(?:{words})(?![^\W\d_])"


# What is called so is a secret, whatever it looks like; languages without spaces apart.
_PASSWORD_WORD = (
    "(?:"
    + _any_word_of(
        r"pass[\s-]?(?:word|phrase|code)s?|passwd|pwd|"
        r"(?:api|secret|private|access|recovery|encryption)[\s_-]?keys?|"
        r"(?:api|access|auth|session|bot)[\s_-]?tokens?|(?:client|app)[\s_-]?secrets?|"
        r"(?:seed|recovery)\sphrase|passw[oö]rt\w{0,3}|kennw[oö]rt\w{0,3}|mots?\sde\spasse|"
        r"contraseñas?|senhas?|palavras?-passe|wachtwoord(?:en)?|hasł\w{1,3}|парол\w{1,3}|"
        r"lösenord\w*|passord\w*|adgangskode\w*|salasana\w*|heslo|şifre\w*|mật\skhẩu|kata\ssandi|"
        r"סיסמה|كلمة\s(?:المرور|السر)"
    )
    + r"|密码|密碼|口令|密钥|パスワード|暗証番号|비밀번호|패스워드|암호|รหัสผ่าน|पासवर्ड)"
    r"(?![\s-]?(?:manager|generator|vault|reset|polic)|管理|マネージャ|\s?관리)"
)
# What is called so is one if it holds a digit: a token may as well be a coin, a pin a needle.
_PIN = _any_word_of(
    r"pin(?:[\s-]?code)?|geheimzahl|zugangscode|"
    r"(?:access|alarm|door|entry|gate|safe|security|unlock)\scode"
)
_CODE_WORD = f"(?:{_PIN}|{_any_word_of('pass|pw|token|secret|clave|parola')}|令牌|トークン|토큰)"

_IS = (
    r"(?:\s(?:is|are|was|=|ist|sind|lautet|heißt|est|es|é|è|to|är|это|[—–-])\s"  # noqa: RUF001
    r"|\s?[:=]\s?|是|为|は|が|[는은가이]\s)"
)
_FILLER = r"(?:[^.!?]|\.(?=\w)){0,50}?"
_PASSWORD_GIVEN = re.compile(
    # Such as: the password for the router is swordfish; password=swordfish
    rf"{_PASSWORD_WORD}{_FILLER}{_IS}\s?[\"'`“„«]?(?P<value>[^\s\"'`”“»]{{3,}})",
    re.IGNORECASE,
)
_CODE_GIVEN = re.compile(
    # Such as: the PIN of his card is 1234; token=abc; PIN 1234; password hunter2
    rf"{_CODE_WORD}(?:{_FILLER}{_IS}\s?(?=\S*\d)|=)\S{{3,}}"
    rf"|{_PIN}\s\d{{4,}}|{_PASSWORD_WORD}\s?(?=\S*\d)\S{{4,}}",
    re.IGNORECASE,
)
_PASSWORD_WORD_ANYWHERE = re.compile(_PASSWORD_WORD, re.IGNORECASE)
_QUOTED_WORD = re.compile(r"(?<!\w)[\"'`“„«‘][^\s\"'`“”„«»‘’]{4,}[\"'`“”»’]")  # noqa: RUF001
_WORD_LIKE_VALUES = frozenset(
    (
        "a an the not very too never always on in at for of to by with stored kept managed strong "
        "weak lost forgotten unknown important hard easy his her their my your something secure "
        "safe long short and but or log"
    ).split()
)
_LONG_TOKEN = re.compile(r"[A-Za-z0-9+/_=-]{20,}")


def looks_secret(text: str) -> bool:
    """Say whether `text` holds an API key, a token, a PEM block or a password (M14)."""
    text = " ".join(unicodedata.normalize("NFKC", text).split())
    return (
        _KNOWN_SECRET_FORMS.search(text) is not None
        or _gives_password(text)
        or any(_is_random(token) for token in _LONG_TOKEN.findall(text))
    )


def _gives_password(text: str) -> bool:
    """Say whether `text` calls something a password and seems to say which."""
    if _CODE_GIVEN.search(text):
        return True
    if not _PASSWORD_WORD_ANYWHERE.search(text):
        return False
    given = _PASSWORD_GIVEN.search(text)
    return (
        (given is not None and given["value"].casefold().strip(".,;") not in _WORD_LIKE_VALUES)
        or _QUOTED_WORD.search(text) is not None
        or any(_mixes_letters_and_digits(word) for word in text.split())
    )


def _mixes_letters_and_digits(word: str) -> bool:
    letters = sum(character.isascii() and character.isalpha() for character in word)
    digits = sum(map(str.isdigit, word))
    return letters > 0 and digits > 0 and letters + digits >= 5


def _is_random(token: str) -> bool:
    """Say whether a long run without spaces looks generated: it changes often between kinds.

    In words and names the only frequent change is from a capital to small letters.
    """
    changes = sum(
        left.isalnum() and right.isalnum() and _kind(left) != _kind(right)
        for left, right in itertools.pairwise(token)
        if not (left.isupper() and right.islower())
    )
    return any(map(str.isdigit, token)) and changes * 5 >= len(token)


def _kind(character: str) -> str:
    return "digit" if character.isdigit() else "capital" if character.isupper() else "small"


# --- evidence ----------------------------------------------------------------------------------


def own_words(message: str) -> str:
    """Return the part of a message that its sender wrote: all but quoted lines (M6)."""
    # Only "\n" ends a quotation: what else looks like a line's end may have been quoted with it.
    return "\n".join(line for line in message.split("\n") if not line.lstrip().startswith(">"))


# What a character says stands in quotation marks, what one does between asterisks. An apostrophe
# is no quotation mark, and what stands in brackets is said aside.
_IN_CHARACTER = re.compile(
    r"(?P<aside>\([^()\n]*\)|\[[^\[\]\n]*\])"
    r"|\"[^\"\n]*\"|“[^“”\n]*”|„[^„“”\n]*[“”]|«[^«»\n]*»|»[^«»\n]*«|「[^「」\n]*」|『[^『』\n]*』"
    r"|\*+[^*\n]+\*+"
)


def out_of_character(words: str) -> str:
    """Return what of a message in a scene can be meant of its sender: no dialogue, no action.

    What is left may still be fiction; which of it is said aside, only a model can tell.
    """
    # The mark keeps what stood on both sides of it from becoming one quote.
    return _IN_CHARACTER.sub(lambda found: found["aside"] or " * ", words)


class OwnWords:
    """Words of a user, to be searched for quotes."""

    def __init__(self, words: str) -> None:
        self._folded = folded(words)

    def hold(self, quote: str) -> bool:
        """Say whether `quote` stands in the words and states something (M6).

        The quote must begin and end where words do, so that "happy here" is no quote from
        "I am unhappy here".
        """
        quote = folded(quote).strip("\"' ")
        return (
            _states_something(quote)
            and not is_small_talk(quote)
            and _stands_in(quote, self._folded)
        )


def is_evidence(quote: str, words: str) -> bool:
    """Say whether `quote` stands in `words` and states something (M6)."""
    return OwnWords(words).hold(quote)


def _states_something(quote: str) -> bool:
    letters = [character for character in quote if character.isalnum()]
    if _has_spaceless("".join(letters)):
        return len(letters) >= 4
    return sum(any(map(str.isalnum, word)) for word in quote.split()) >= 2


def _stands_in(quote: str, words: str) -> bool:
    start = words.find(quote)
    while start >= 0:
        end = start + len(quote)
        if _is_word_border(words, start) and _is_word_border(words, end):
            return True
        start = words.find(quote, start + 1)
    return False


def _is_word_border(text: str, position: int) -> bool:
    if position in {0, len(text)}:
        return True
    left, right = text[position - 1], text[position]
    if unicodedata.category(right).startswith("M"):
        return not _is_in_word(left)  # vowel signs and accents belong to their letter
    if _is_spaceless(left) or _is_spaceless(right):
        return True
    return not (_is_in_word(left) and right.isalnum())


def _is_in_word(character: str) -> bool:
    return character.isalnum() or unicodedata.category(character).startswith("M")


def _is_spaceless(character: str) -> bool:
    if character < "\u0e00":
        return False
    return unicodedata.name(character, "").split(" ", 1)[0].split("-", 1)[0] in _SPACELESS_SCRIPTS


def _has_spaceless(text: str) -> bool:
    # Most texts are told at once.
    return not text.isascii() and any(map(_is_spaceless, text))


# --- likeness ----------------------------------------------------------------------------------

MAX_TERMS = 400
"""Terms kept of one text: enough for any fact, a bound for a pasted book."""


def terms(text: str) -> list[str]:
    """Return what a text is about, for choosing which candidates the extractor is shown.

    Words are cut to their first letters, so that "engineer" meets "engineering"; scripts
    without spaces give pairs of characters. Likeness only shortlists, it decides nothing.
    """
    found: dict[str, None] = {}
    for match in re.finditer(r"\w+", folded(text)):
        word = match[0]
        if _has_spaceless(word):
            pieces = [word[index : index + 2] for index in range(max(1, len(word) - 1))]
        else:
            pieces = [word[:5]] if len(word) > 2 else []
        for piece in pieces:
            found[piece] = None
            if len(found) == MAX_TERMS:
                return list(found)
    return list(found)
