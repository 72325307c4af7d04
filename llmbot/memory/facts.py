"""What a fact is: its one-line text, when two are the same, and which are never stored (M14).

Everything here is pure: text in, text or a verdict out.
"""

from __future__ import annotations

import enum
import hashlib
import itertools
import re
import unicodedata

MAX_FACT_LENGTH = 500
"""Characters that a stored fact may have (M14)."""

_QUOTE_MARKS = str.maketrans(
    {**dict.fromkeys("‘’‚‛′`´ʼ＇", "'"), **dict.fromkeys("“”„‟″«»＂", '"')}  # noqa: RUF001
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
    visible = "".join(
        " " if character.isspace() else character
        for character in text
        if character.isspace() or unicodedata.category(character) not in {"Cc", "Cs"}
    )
    return " ".join(visible.split())


def folded(text: str) -> str:
    """Return `text` without the differences that no reader means (M6, M7).

    Compatibility forms (NFKC), case, quotation marks, white space and invisible formatting
    characters are folded.
    """
    text = unicodedata.normalize("NFKC", one_line(text)).casefold()
    # Casefolding can undo the normalisation: once more makes folding stable.
    text = unicodedata.normalize("NFKC", text).translate(_QUOTE_MARKS)
    return one_line("".join(char for char in text if unicodedata.category(char) != "Cf"))


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
      -----BEGIN\ [A-Z ]+-----                            # PEM blocks
    | \b(?:sk|pk|rk|gsk|xai|tskey|hf|r8|key|pplx|nvapi)[-_][\w-]{12,}  # model providers and others
    | \bAIza[\w-]{20,}                                    # Google
    | \b(?:AKIA|ASIA)[A-Z0-9]{12,}                        # AWS
    | \b(?:gh[oprsu]|github_pat|glpat|xox[a-z])[-_]\w[\w-]{10,}         # GitHub, GitLab, Slack
    | \b(?:syt|mas|mct|mat)_\w{8,}                        # Matrix access tokens
    | \beyJ[\w-]{8,}\.[\w-]{8,}                           # JSON web tokens
    | \bbearer\s+[\w.~+/-]{12,}                           # Authorization headers
    | \w+://[^\s/:@]+:[^\s/@]+@                           # a password inside an address
    """,
    re.VERBOSE | re.IGNORECASE,
)

_PASSWORD_WORD = (
    # Not inside another word ("opinion" holds "pin"); CJK has no borders to look at.
    r"(?:(?<![^\W\d_])(?:pass\s?(?:word|wort|phrase|code)|passwd|pwd|kennwort|pin|token|"
    r"(?:client|app)\s?secret|secret\s?key|api[\s_-]?key|mot\s+de\s+passe|contraseña|clave|senha|"
    r"parola|wachtwoord|lösenord|hasło|пароль)s?(?![^\W\d_])|密码|密碼|パスワード|비밀번호)"
)
_PASSWORD_GIVEN = re.compile(
    # Such as: the password for the router is hunter2; PIN: 1234; token=abc
    _PASSWORD_WORD
    + r"[^.!?\n]{0,40}?(?:\s(?:is|was|ist|lautet|est|es|é|è)\s|\s?[:=：]\s?|是|は|는|은)"  # noqa: RUF001
    r"\s*[\"'`]?(?P<value>[^\s\"'`]{3,})",
    re.IGNORECASE,
)
_PASSWORD_WORD_ANYWHERE = re.compile(_PASSWORD_WORD, re.IGNORECASE)
_LONG_TOKEN = re.compile(r"[A-Za-z0-9+/_=-]{20,}")
_WORD_LIKE_VALUES = frozenset(
    (
        "a an the not very too never always on in at for of to by with stored kept managed strong "
        "weak lost forgotten unknown important hard easy his her their my your something secure "
        "safe"
    ).split()
)


def looks_secret(text: str) -> bool:
    """Say whether `text` holds an API key, a token, a PEM block or a password (M14)."""
    if _KNOWN_SECRET_FORMS.search(text):
        return True
    given = _PASSWORD_GIVEN.search(text)
    if given and given["value"].casefold().strip(".,;") not in _WORD_LIKE_VALUES:
        return True
    if _PASSWORD_WORD_ANYWHERE.search(text) and any(
        _mixes_letters_and_digits(word) and not _PASSWORD_WORD_ANYWHERE.search(word)
        for word in text.split()
    ):
        return True
    return any(_is_random(match) for match in _LONG_TOKEN.findall(text))


def _mixes_letters_and_digits(word: str) -> bool:
    return (
        len(word) >= 5
        and any(character.isdigit() for character in word)
        and any(character.isalpha() for character in word)
    )


def _is_random(token: str) -> bool:
    """Say whether a long run without spaces looks generated rather than spoken."""
    kinds = (str.islower, str.isupper, str.isdigit)
    alternations = sum(
        any(kind(left) and not kind(right) for kind in kinds)
        for left, right in itertools.pairwise(token)
    )
    return any(map(str.isdigit, token)) and alternations * 4 >= len(token)


# --- evidence ----------------------------------------------------------------------------------


def own_words(message: str) -> str:
    """Return the part of a message that its sender wrote: all but quoted lines (M6)."""
    return "\n".join(line for line in message.splitlines() if not line.lstrip().startswith(">"))


def is_evidence(quote: str, words: str) -> bool:
    """Say whether `quote` stands in `words` and states something (M6).

    The quote must begin and end where words do, so that "happy here" is no quote from
    "I am unhappy here".
    """
    quote = folded(quote).strip("\"' ")
    return _states_something(quote) and _stands_in(quote, folded(words))


def _states_something(quote: str) -> bool:
    letters = [character for character in quote if character.isalnum()]
    if any(_is_spaceless(character) for character in letters):
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
    if _is_spaceless(left) or _is_spaceless(right):
        return True
    return not (left.isalnum() and right.isalnum())


def _is_spaceless(character: str) -> bool:
    if character < "\u0e00":
        return False
    return unicodedata.name(character, "").split(" ", 1)[0].split("-", 1)[0] in _SPACELESS_SCRIPTS


# --- likeness ----------------------------------------------------------------------------------

MAX_TERMS = 400
"""Terms kept of one text: enough for any fact, a bound for a pasted book."""


def terms(text: str) -> list[str]:
    """Return what a text is about, for choosing which candidates the extractor is shown.

    Words are cut to their first letters, so that "engineer" meets "engineering"; scripts
    without spaces give pairs of characters. Likeness only shortlists, it decides nothing.
    """
    found: dict[str, None] = {}
    for word in re.findall(r"\w+", folded(text)):
        if any(_is_spaceless(character) for character in word):
            pieces = [word[index : index + 2] for index in range(max(1, len(word) - 1))]
        else:
            pieces = [word[:5]] if len(word) > 2 else []
        for piece in pieces:
            found[piece] = None
            if len(found) == MAX_TERMS:
                return list(found)
    return list(found)
