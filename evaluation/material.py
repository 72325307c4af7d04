"""What the invented people say: topics, values and sentences in English, German and Spanish."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping, Sequence

LANGUAGES = ("en", "de", "es")


class Label(enum.Enum):
    """What a statement is worth remembering for."""

    DURABLE = "durable"
    TRANSIENT = "transient"
    THIRD_PERSON = "about somebody else"
    QUESTION = "only asked about"
    ASSISTANT = "said by the assistant only"
    INVENTED = "invented"


@dataclasses.dataclass(frozen=True)
class Topic:
    """A thing that people say of themselves, with one value at a time.

    Texts are by language; `{v}` stands for the value. `facts` holds two wordings in which an
    extractor may note it. Where it `is_single`, another value contradicts.
    """

    name: str
    is_single: bool
    values: Sequence[Mapping[str, str]]
    sentences: Mapping[str, Sequence[str]]
    facts: Mapping[str, Sequence[str]]
    changes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """How somebody says that the value is another one now; empty where it never changes."""
    ends: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """How somebody says that it is over."""
    ended: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """The fact that it is over."""


@dataclasses.dataclass(frozen=True)
class Aside:
    """Something that must not be remembered, and the fact that a bad extractor makes of it."""

    key: str
    label: Label
    sentences: Mapping[str, Sequence[str]]
    fact: Mapping[str, str]
    words: str
    """A regular expression that finds it in a fact, however that is worded."""


def _by_language(text: str) -> dict[str, str]:
    return dict(zip(LANGUAGES, (part.strip() for part in text.split("|")), strict=True))


def _lists(text: str) -> dict[str, list[str]]:
    """Read three lines, one a language, of texts between semicolons."""
    lines = [line.strip() for line in text.strip().splitlines()]
    texts = [[part.strip() for part in line.split(";")] for line in lines]
    return dict(zip(LANGUAGES, texts, strict=True))


def _topic(
    name: str,
    values: str,
    facts: str,
    sentences: str,
    *,
    is_single: bool = False,
    changes: str = "",
    ends: str = "",
    ended: str = "",
) -> Topic:
    return Topic(
        name,
        is_single,
        [_by_language(value) for value in values.split(";")],
        _lists(sentences),
        _lists(facts),
        _by_language(changes) if changes else {},
        _by_language(ends) if ends else {},
        _by_language(ended) if ended else {},
    )


TOPICS = (
    _topic(
        "home",
        "Oslo|Oslo|Oslo; Bergen|Bergen|Bergen; Graz|Graz|Graz; Porto|Porto|Oporto; "
        "Dublin|Dublin|Dublín; Utrecht|Utrecht|Utrecht; Vilnius|Vilnius|Vilna; Riga|Riga|Riga; "
        "Turku|Turku|Turku; Naples|Neapel|Nápoles",
        """Lives in {v}; Home is in {v}
        Wohnt in {v}; Ist in {v} zu Hause
        Vive en {v}; Tiene su casa en {v}""",
        """I live in {v}; {v} is where I live; my flat is in {v}; at home in {v} we have a balcony
        ich wohne in {v}; meine Wohnung ist in {v}; bei mir zu Hause in {v}
        vivo en {v}; mi piso está en {v}; aquí en {v}, donde vivo""",
        is_single=True,
        changes="I have moved to {v}|ich bin nach {v} gezogen|me he mudado a {v}",
    ),
    _topic(
        "work",
        "a journalist|Journalist|periodista; an electrician|Elektriker|electricista; "
        "a dentist|Zahnarzt|dentista; a florist|Florist|florista; "
        "a taxi driver|Taxifahrer|taxista; a beekeeper|Imker|apicultor; "
        "a carpenter|Tischler|carpintero",
        """Works as {v}; Is {v}
        Arbeitet als {v}; Ist {v}
        Trabaja de {v}; Es {v}""",
        """I work as {v}; I am {v} by trade; being {v}, I get up early; I earn my living as {v}
        ich arbeite als {v}; ich bin {v} von Beruf; als {v} stehe ich früh auf
        trabajo de {v}; soy {v} de profesión; como {v} madrugo mucho""",
        is_single=True,
        changes="I now work as {v}|ich arbeite jetzt als {v}|ahora trabajo de {v}",
    ),
    _topic(
        "diet",
        "vegan|vegan|vegana; vegetarian|vegetarisch|vegetariana; gluten-free|glutenfrei|"
        "sin gluten; halal|halal|halal; kosher|koscher|kosher",
        """Eats {v}; Follows a {v} diet
        Isst {v}; Ernährt sich {v}
        Su dieta es {v}; Sigue una dieta {v}""",
        """I eat {v}; my diet is {v}; only {v} food for me; I have been eating {v} for years
        ich esse {v}; meine Ernährung ist {v}; für mich bitte nur {v}
        mi dieta es {v}; llevo una dieta {v}; sigo una dieta {v} desde hace años""",
        is_single=True,
    ),
    _topic(
        "allergy",
        "nuts|Nüsse|nueces; pollen|Pollen|polen; shellfish|Meeresfrüchte|marisco; "
        "penicillin|Penizillin|penicilina",
        """Is allergic to {v}; Has an allergy: {v}
        Ist gegen {v} allergisch; Hat eine Allergie: {v}
        Tiene alergia: {v}; Es de los que evitan {v} por alergia""",
        """I am allergic to {v}; because of my allergy I avoid {v}; my allergy is to {v}
        ich bin gegen {v} allergisch; wegen meiner Allergie meide ich {v}; meine Allergie: {v}
        tengo alergia: {v}; por mi alergia evito {v}; mi alergia es a {v}""",
    ),
    _topic(
        "instrument",
        "cello|Cello|violonchelo; trumpet|Trompete|trompeta; accordion|Akkordeon|acordeón; "
        "harp|Harfe|arpa; oboe|Oboe|oboe",
        """Plays the {v}; Instrument: {v}
        Spielt {v}; Instrument: {v}, seit langem
        Toca: {v}; Su instrumento: {v}""",
        """I play the {v}; I practise the {v} every day; the {v} is my instrument
        ich spiele {v}; ich übe jeden Tag {v}; mein Instrument ist {v}
        toco el instrumento {v}; practico {v} cada día; mi instrumento: {v}""",
        ends="I no longer play the {v}|ich spiele nicht mehr {v}|ya no toco {v}",
        ended="No longer plays the {v}|Spielt nicht mehr {v}|Ya no toca {v}",
    ),
    _topic(
        "animals",
        "2 cats|2 Katzen|2 gatos; 3 cats|3 Katzen|3 gatos; 4 hens|4 Hühner|4 gallinas; "
        "2 dogs|2 Hunde|2 perros; 5 goats|5 Ziegen|5 cabras; 3 dogs|3 Hunde|3 perros",
        """Has {v}; Keeps {v}
        Hat {v}; Hält {v}
        Tiene {v}; Cuida {v}""",
        """I have {v}; my {v} are asleep; I keep {v}; with {v} at home there is always noise
        ich habe {v}; meine {v} schlafen gerade; mit {v} zu Hause ist es laut
        tengo {v}; mis {v} duermen; con {v} en casa hay ruido""",
        is_single=True,
    ),
    _topic(
        "sport",
        "climbing|Klettern|escalada; rowing|Rudern|remo; fencing|Fechten|esgrima; judo|Judo|judo; "
        "archery|Bogenschießen|tiro con arco",
        """Sport: {v}; Does {v}
        Sport: {v}, regelmäßig; Treibt {v}
        Deporte: {v}; Practica {v}""",
        """{v} is my sport; I train {v} twice a week; on Mondays I do {v}; my hobby is {v}
        mein Sport ist {v}; ich trainiere zweimal die Woche {v}; mein Hobby ist {v}
        mi deporte es {v}; entreno {v} dos veces por semana; los lunes hago {v}""",
    ),
    _topic(
        "language",
        "Japanese|Japanisch|japonés; Finnish|Finnisch|finlandés; Arabic|Arabisch|árabe; "
        "Polish|Polnisch|polaco",
        """Learns {v}; Takes lessons in {v}
        Lernt {v}; Nimmt Unterricht in {v}
        Aprende {v}; Toma clases de {v}""",
        """I am learning {v}; I study {v} in the evenings; I take lessons in {v}
        ich lerne {v}; ich lerne abends {v}; ich nehme Unterricht in {v}
        aprendo {v}; estudio {v} por las noches; tomo clases de {v}""",
        ends="I gave up learning {v}|ich lerne nicht mehr {v}|ya no aprendo {v}",
        ended="No longer learns {v}|Lernt nicht mehr {v}|Ya no aprende {v}",
    ),
    _topic(
        "system",
        "Debian|Debian|Debian; Fedora|Fedora|Fedora; NixOS|NixOS|NixOS; FreeBSD|FreeBSD|FreeBSD; "
        "Haiku|Haiku|Haiku",
        """Uses {v}; Computer runs {v}
        Benutzt {v}; Rechner läuft mit {v}
        Usa {v}; Su ordenador va con {v}""",
        """I use {v} on my computer; my laptop runs {v}; all my machines are on {v}
        ich benutze {v}; mein Rechner läuft mit {v}; alle meine Rechner haben {v}
        uso {v} en mi ordenador; mi portátil va con {v}; todos mis equipos usan {v}""",
        is_single=True,
        changes="I have switched to {v}|ich bin auf {v} umgestiegen|me he pasado a {v}",
    ),
    _topic(
        "drink",
        "green tea|grünen Tee|té verde; espresso|Espresso|café solo; cocoa|Kakao|cacao; "
        "oat milk|Hafermilch|leche de avena",
        """Likes to drink {v}; Favourite drink: {v}
        Trinkt gern {v}; Am liebsten {v}
        Le gusta beber {v}; Bebida favorita: {v}""",
        """I always drink {v}; my favourite drink is {v}; {v} is what I drink all day
        ich trinke am liebsten {v}; für mich immer {v}; ich trinke den ganzen Tag {v}
        siempre bebo {v}; mi bebida favorita es {v}; bebo {v} todo el día""",
    ),
    _topic(
        "vehicle",
        "a cargo bike|ein Lastenrad|una bici de carga; a camper van|ein Wohnmobil|"
        "una autocaravana; a motorbike|ein Motorrad|una motocicleta",
        """Owns {v}; Gets around with {v}
        Besitzt {v}; Fährt {v}
        Es dueña o dueño de {v}; Se mueve en {v}""",
        """I own {v}; I get around with {v}; I have {v} in the yard
        ich besitze {v}; ich fahre {v}; im Hof steht {v} von mir
        me muevo en {v}; conduzco {v}; en el patio tengo {v}""",
    ),
    _topic(
        "birthday",
        "3 May|3. Mai|3 de mayo; 17 October|17. Oktober|17 de octubre; "
        "9 January|9. Januar|9 de enero; 28 July|28. Juli|28 de julio",
        """Birthday is {v}; Was born on {v}
        Hat am {v} Geburtstag; Ist am {v} geboren
        Su cumpleaños es el {v}; Nació el {v}""",
        """my birthday is {v}; I was born on {v}; I celebrate my birthday on {v}
        mein Geburtstag ist der {v}; ich bin am {v} geboren; ich feiere am {v} Geburtstag
        mi cumpleaños es el {v}; nací el {v}; celebro mi cumpleaños el {v}""",
        is_single=True,
    ),
    _topic(
        "style",
        "short answers|kurze Antworten|respuestas cortas; metric units|metrische Einheiten|"
        "unidades métricas; plain words|einfache Worte|palabras sencillas",
        """Prefers {v}; Wants {v}
        Bevorzugt {v}; Möchte {v}
        Prefiere {v}; Quiere {v}""",
        """I prefer {v}; I like {v} best; what I want is {v}
        ich bevorzuge {v}; ich mag {v} am liebsten; ich möchte {v}
        prefiero {v}; me gustan más {v}; lo que quiero son {v}""",
    ),
)


def _aside(label: Label, words: str, fact: str, sentences: str) -> Aside:
    return Aside(f"{label.name}: {words}", label, _lists(sentences), _by_language(fact), words)


ASIDES = (
    _aside(
        Label.TRANSIENT,
        r"tired|exhausted|müde|cansad",
        "Is tired|Ist müde|Tiene cansancio, vive cansada",
        """I am tired today; I am so tired again
        ich bin heute müde; ich bin schon wieder müde
        hoy estoy cansada; otra vez estoy cansada""",
    ),
    _aside(
        Label.TRANSIENT,
        r"headache|kopfschmerz|kopfweh|dolor de cabeza|duele la cabeza",
        "Has headaches|Hat Kopfschmerzen|Tiene dolor de cabeza",
        """I have a headache; my headache does not stop
        ich habe gerade Kopfschmerzen; meine Kopfschmerzen sind noch da
        tengo dolor de cabeza; sigue mi dolor de cabeza""",
    ),
    _aside(
        Label.TRANSIENT,
        r"traffic|\bstau\b|atasco",
        "Is often stuck in traffic|Steht im Stau|Está en un atasco",
        """I am stuck in traffic; again I am stuck in traffic
        ich stehe im Stau; schon wieder stehe ich im Stau
        estoy en un atasco; otra vez estoy en un atasco""",
    ),
    _aside(
        Label.TRANSIENT,
        r"parcel|package|paket|paquete",
        "Waits for a parcel|Wartet auf ein Paket|Espera un paquete",
        """I am waiting for a parcel; the parcel I am waiting for is late
        ich warte auf ein Paket; ich warte immer noch auf das Paket
        estoy esperando un paquete; sigo esperando el paquete""",
    ),
    _aside(
        Label.TRANSIENT,
        r"hungry|hungrig|hunger|hambre",
        "Is hungry|Ist hungrig|Tiene hambre",
        """I am hungry; I am hungry like a wolf
        ich bin hungrig; ich bin gerade sehr hungrig
        tengo hambre; ahora tengo mucha hambre""",
    ),
    _aside(
        Label.TRANSIENT,
        r"broken|kaputt|estropead|rot[oa]\b",
        "Has a broken phone|Hat ein kaputtes Telefon|Tiene el móvil estropeado",
        """my phone is broken at the moment; my phone is still broken
        mein Telefon ist gerade kaputt; mein Telefon ist noch kaputt
        tengo el móvil estropeado; mi móvil sigue estropeado""",
    ),
    _aside(
        Label.TRANSIENT,
        r"airport|flughafen|aeropuerto",
        "Is at the airport|Ist am Flughafen|Está en el aeropuerto",
        """I am sitting at the airport; I am at the airport again
        ich sitze am Flughafen; ich bin wieder am Flughafen
        estoy en el aeropuerto; otra vez estoy en el aeropuerto""",
    ),
    _aside(
        Label.TRANSIENT,
        r"\bcold\b|erkält|resfri",
        "Has a cold|Ist erkältet|Tiene un resfriado",
        """I have a bad cold; my cold is not over
        ich bin erkältet; ich bin immer noch erkältet
        tengo un resfriado; mi resfriado no se va""",
    ),
    _aside(
        Label.THIRD_PERSON,
        r"pilot",
        "Works as a pilot|Arbeitet als Pilot|Trabaja de piloto",
        """my brother works as a pilot; my brother, the pilot, is here
        mein Bruder arbeitet als Pilot; mein Bruder, der Pilot, ist da
        mi hermano trabaja de piloto; ha venido mi hermano, el piloto""",
    ),
    _aside(
        Label.THIRD_PERSON,
        r"vienna|wien\b|viena",
        "Lives in Vienna|Wohnt in Wien|Vive en Viena",
        """my sister lives in Vienna; we visit my sister in Vienna
        meine Schwester wohnt in Wien; wir besuchen meine Schwester in Wien
        mi hermana vive en Viena; visitamos a mi hermana en Viena""",
    ),
    _aside(
        Label.THIRD_PERSON,
        r"parrot|papagei|loro",
        "Has 6 parrots|Hat 6 Papageien|Tiene 6 loros",
        """our neighbour has 6 parrots; the 6 parrots of the neighbour are loud
        unsere Nachbarin hat 6 Papageien; die 6 Papageien der Nachbarin sind laut
        la vecina tiene 6 loros; los 6 loros de la vecina gritan""",
    ),
    _aside(
        Label.THIRD_PERSON,
        r"mushroom|pilze|setas",
        "Hates mushrooms|Hasst Pilze|Odia las setas",
        """my boss hates mushrooms; for my boss no mushrooms please
        mein Chef hasst Pilze; für meinen Chef bitte keine Pilze
        mi jefe odia las setas; para mi jefe nada de setas""",
    ),
    _aside(
        Label.THIRD_PERSON,
        r"drums|schlagzeug|batería",
        "Plays the drums|Spielt Schlagzeug|Toca la batería",
        """my daughter plays the drums; my daughter and her drums wake us
        meine Tochter spielt Schlagzeug; das Schlagzeug meiner Tochter weckt uns
        mi hija toca la batería; la batería de mi hija nos despierta""",
    ),
    _aside(
        Label.THIRD_PERSON,
        r"stamps|briefmarken|sellos",
        "Collects stamps|Sammelt Briefmarken|Colecciona sellos",
        """my uncle collects stamps; the stamps of my uncle are valuable
        mein Onkel sammelt Briefmarken; die Briefmarken meines Onkels sind wertvoll
        mi tío colecciona sellos; los sellos de mi tío son valiosos""",
    ),
    _aside(
        Label.QUESTION,
        r"canad",
        "Is moving to Canada|Zieht nach Kanada, Canada|Se muda a Canadá",
        """how does one get a visa for Canada; what does a visa for Canada cost
        wie bekommt man ein Visum für Canada; was kostet ein Visum für Canada
        cómo se consigue un visado para Canadá; cuánto cuesta un visado para Canadá""",
    ),
    _aside(
        Label.QUESTION,
        r"horse|pferd|caballo",
        "Owns a horse|Hat ein Pferd|Tiene un caballo",
        """what does it cost to keep a horse; how big a field does a horse need
        was kostet ein Pferd im Monat; wie viel Wiese braucht ein Pferd
        cuánto cuesta tener un caballo; qué campo necesita un caballo""",
    ),
    _aside(
        Label.QUESTION,
        r"migr",
        "Has migraine|Hat Migräne|Tiene migraña",
        """what helps against migraine; where does migraine come from
        was hilft gegen Migräne; woher kommt Migräne
        qué ayuda contra la migraña; de dónde viene la migraña""",
    ),
    _aside(
        Label.QUESTION,
        r"sail|segel|navegar a vela",
        "Learns to sail|Lernt segeln|Aprende a navegar a vela",
        """how long does it take to learn to sail; is it hard to learn to sail
        wie lange dauert es, segeln zu lernen; ist segeln schwer zu lernen
        cuánto se tarda en aprender a navegar a vela; es difícil navegar a vela""",
    ),
    _aside(
        Label.QUESTION,
        r"novel|roman\b|novela",
        "Writes a novel|Schreibt einen Roman|Escribe una novela",
        """how long should a novel be; who prints a novel
        wie lang sollte ein Roman sein; wer druckt einen Roman
        cómo de larga debe ser una novela; quién imprime una novela""",
    ),
    _aside(
        Label.ASSISTANT,
        r"quebec",
        "Is from Quebec|Ist aus Quebec|Es de Quebec",
        """you are from Quebec; coming from Quebec, you know this
        du bist aus Quebec; da du aus Quebec kommst, kennst du das
        tú eres de Quebec; como vienes de Quebec, lo conoces""",
    ),
    _aside(
        Label.ASSISTANT,
        r"marathon|maratón|maraton",
        "Runs marathons|Läuft Marathon|Corre maratones",
        """you run marathons; with your marathon training this is easy
        du läufst Marathon; mit deinem Marathon-Training ist das leicht
        corres maratones; con tu maratón esto es fácil""",
    ),
    _aside(
        Label.ASSISTANT,
        r"chess|schach|ajedrez",
        "Plays chess|Spielt Schach|Juega al ajedrez",
        """you play chess; as in your chess games, think ahead
        du spielst Schach; wie in deinen Schach-Partien gilt: vorausdenken
        juegas al ajedrez; como en tu ajedrez, piensa antes""",
    ),
    _aside(
        Label.ASSISTANT,
        r"lawyer|anwalt|abogad",
        "Works as a lawyer|Arbeitet als Anwalt|Trabaja de abogado",
        """you are a lawyer; as a lawyer you know that
        du bist Anwalt; als Anwalt weißt du das
        eres abogado; como abogado lo sabes""",
    ),
    _aside(
        Label.ASSISTANT,
        r"married|verheiratet|casad",
        "Is married|Ist verheiratet|Tiene pareja y anillo, casada",
        """you are married; married people like you know this
        du bist verheiratet; verheiratet wie du bist, weißt du das
        estás casada; como casada que eres, lo sabes""",
    ),
)

INVENTIONS = (
    "Works as a software developer",
    "Likes black coffee in the morning",
    "Name is John",
    "Lives in New York",
    "Has a dog called Max",
    "Is interested in technology",
    "Works as a mechanical engineer",
    "Is 34 years old",
)
"""What models make up again and again, the prompt's own example among it."""

SMALL_TALK: Mapping[str, Sequence[str]] = {
    "en": ("ok thanks", "Hello there", "great, thank you", "can you say that again", "and why so"),
    "de": ("ok danke", "Hallo zusammen", "super, vielen Dank", "sag das noch mal", "und warum so"),
    "es": ("vale gracias", "hola a todos", "muchas gracias", "dilo otra vez", "y por qué así"),
}
OPENINGS: Mapping[str, Sequence[str]] = {
    "en": ("By the way,", "You know,", "Well,", "Just so you see where I stand:", ""),
    "de": ("Übrigens,", "Weißt du,", "Also,", "Damit du Bescheid weißt:", ""),
    "es": ("Por cierto,", "Sabes,", "Bueno,", "Para que te hagas una idea:", ""),
}
REQUESTS: Mapping[str, Sequence[str]] = {
    "en": (
        "What should I cook tonight?",
        "Give me a name for a team.",
        "How do I remove red wine from cloth?",
        "Which book should I read next?",
        "",
    ),
    "de": (
        "Was soll ich heute kochen?",
        "Nenn mir einen Namen für ein Team.",
        "Wie geht Rotwein aus Stoff?",
        "Welches Buch soll ich lesen?",
        "",
    ),
    "es": (
        "¿Qué cocino esta noche?",
        "Dame un nombre para un equipo.",
        "¿Cómo se quita el vino tinto?",
        "¿Qué libro leo ahora?",
        "",
    ),
}
REPLIES: Mapping[str, Sequence[str]] = {
    "en": ("Here is an idea.", "Gladly: try the simple way first.", "That depends on the day."),
    "de": ("Hier ist ein Vorschlag.", "Gern: erst den einfachen Weg.", "Das kommt darauf an."),
    "es": ("Aquí va una idea.", "Con gusto: primero lo sencillo.", "Depende del día."),
}
