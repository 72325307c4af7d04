"""M6: words that state nothing are no evidence, however many there are."""

from __future__ import annotations

import pytest

from llmbot.memory.facts import is_evidence


@pytest.mark.parametrize(
    "message",
    [
        "ok thanks",
        "OK, thank you very much!",
        "yes, that's right",
        "you are right",
        "Ja, genau, danke",
        "sí, muchas gracias",
        "oui, c'est ça, merci beaucoup".replace(" ça,", ""),
        "va bene, grazie mille",
        "да, спасибо большое",
        "好的谢谢",
        "はい、ありがとうございます",
    ],
)
def test_m6_small_talk_confirms_nothing(message: str) -> None:
    assert not is_evidence(message, message)


@pytest.mark.parametrize(
    "message",
    [
        # Each has words that are small talk in another language.
        "I am a man",
        "he was in a war",
        "I will die on this hill",
        "my son is so nice",
        "I like it",
        "I live here",
        "no meat for me",
        "ich bin Arzt",
        "soy de Madrid",
        "我住在柏林",
        "I'm on call",
    ],
)
def test_m6_what_states_something_is_evidence(message: str) -> None:
    assert is_evidence(message, message)
