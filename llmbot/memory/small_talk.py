"""Words that state nothing, however many of them stand together: pure."""

from __future__ import annotations

import re

# Greetings, thanks, agreement, and words that only hold others together. A phrase has to be of one
# language throughout: "I am a man" states something, although German has a "man" that does not.
_LANGUAGES = tuple(
    frozenset(words.split())
    for words in """
a about again all alright also am an and any are as at be been but by bye can correct could
course did do does exactly for from good great had has have he hello her here hey hi him his
how i i'm if in indeed is it it's its just know me much my nice no not now of off oh ok okay on
or our perfect please really right she should so some sounds still sure than thank thanks that
that's the their them then there they this to too true understood us very was way we well were
what when where which who why will with would yeah yep yes you your

aber alle alles als also am an auch auf aus bei bin bis bist bitte da danke dann das dass dein
deine dem den der des dich die dir doch du ein eine einen einer er es für genau gern gerne gut
habe hallo hast hat ich ihr im in ist ja jetzt kann klar mein meine mich mir mit mal na nein
nicht noch nun nur ob oder ok okay richtig schon schön sehr sein sich sie sind so stimmt super
tschüss um und uns viel vielen von war warum was wenn wer wie wieder wir wo zu zum zur dank

acuerdo al así bien bueno claro como con cómo de del di donde él ella en entendido eres es eso
esta está esto estoy exacto favor fue gracias ha hay he hola la las le lo los más me mi mis
muchas muy no nos o ok para pero perfecto por porque qué que quién se sé si sí sin sobre son
soy su sus también te ti todo todos tu tú un una vale y ya yo

a bem como de e é ele ela eu isso muito não o obrigada obrigado ok por que sim tá tudo você

à accord ah alors au aussi avec bien bon bonjour c'est ce ces cette d'accord dans de des du
elle est et il ils j'ai je la le les ma mais merci moi mon ne non nous ok on ou où oui par
parfait pas plaît pour pourquoi qu'est que quoi s'il sa salut ses si sont suis sur ta te tes
toi ton très tu un une voilà votre vous beaucoup

bene certo che ciao di e è grazie il io la ma mi mille molto no non ok perché perfetto prego
sei sì sono tu un una va

dank de een en het ik in is ja je jij nee niet oké ok u van wel

det er inte ikke ja jag jeg du nej nei och og ok på så tack tak takk

ano dobrze dobře dziękuję dzięki děkuji i jest je nie ne ok tak to

bu çok evet hayır ok tamam teşekkürler ve

большое в вы да и как мы на не нет но ок он она они отлично пожалуйста понятно привет спасибо
так точно ты хорошо что это я ладно

شكرا نعم لا أنا أنت هذا في من على ما جزيلا

תודה כן לא אני אתה זה של רבה

हाँ नहीं धन्यवाद मैं है हूँ
""".split("\n\n")  # noqa: RUF001
)
_WITHOUT_SPACES = re.compile(
    "(?:ok|好的?|是的?|对的?|嗯|行|谢谢|謝謝|多谢|感谢|你好?|您|我|吗|啊|吧|呀|了|呢|明白|知道|可以|"
    "没错|什么|はい|いいえ|うん|ええ|そうです|そう|なるほど|わかりました|分かりました|了解|です|しました|"
    "ね|か|よ|どうも|ありがとう|ございます|ございました|お願いします|こんにちは|すみません|"
    "ครับ|ค่ะ|ขอบคุณ|ใช่|สวัสดี)+"
)


def is_small_talk(phrase: str) -> bool:
    """Say whether a folded phrase has no word that could state anything (M6).

    So that "ok thanks" confirms nothing that the bot has said.
    """
    # Apostrophes within words belong to them.
    words = re.findall(r"[\w']*\w", re.sub(r"(?<!\w)'", " ", phrase))
    return any(
        all(word in language or _WITHOUT_SPACES.fullmatch(word) for word in words)
        for language in _LANGUAGES
    )
