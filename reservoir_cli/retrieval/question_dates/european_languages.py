"""The words of German, French and Spanish for dates, and the patterns of dates.

Patterns match text in lower case, without accents, with single spaces between words. In them
``{M}`` is a month, ``{S}`` a season or quarter, ``{D}`` a day, ``{Y}`` a year, ``{N}`` a count,
``{U}`` a unit, ``{W}`` a weekday, ``{ENDS}`` two joined dates. More precise patterns come first.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Language(NamedTuple):
    """The words for dates in a language, without accents."""

    signs: str  # words that occur in dates of this language only; a date contains at least one
    shared_signs: str  # the same for words that other languages use too
    months: str  # the names of each month, separated by ``|``; abbreviations are in ``short``
    short: str
    weekdays: str
    seasons: Mapping[str, str]  # patterns of seasons and quarters, with the English ones
    numbers: Mapping[str, str]
    units: Mapping[str, str]  # beginnings of units, with the English units; the longest first
    leads: Mapping[str, str]
    which: Mapping[str, str]  # words for "last", "next" and the like
    parts: Mapping[str, str]  # words for the beginning, middle and end of a period
    near: Mapping[str, str]  # words for "yesterday" and the like
    joints: Mapping[str, str]  # words that may connect two dates
    patterns: tuple[tuple[str, str], ...]


def _counts(words: str) -> dict[str, str]:
    return {word: str(number) for number, word in enumerate(words.split(), 2)}


#: The trimesters of a pregnancy are not quarters.
_FRENCH_QUARTER = "trimestre(?! de (?:la )?grossesse)"
_SPANISH_QUARTER = "trimestre(?! del? embarazo)"

GERMAN = Language(
    signs="gestern vorgestern heute ubermorgen uebermorgen neulich januar janner februar marz "
    "maerz oktober dezember montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag "
    "woche wochen wochenende monat monate monaten jahr jahre jahren jahres tagen fruhling fruhjahr "
    "herbst quartal quartals",
    shared_signs="morgen april mai juni juli august september november im am vom seit mrz okt dez "
    "stunden minuten tag sommer winter",
    months="januar|janner februar|feber marz|maerz april mai juni juli august september oktober "
    "november dezember",
    short="jan feb mrz apr mai jun jul aug sept|sep okt nov dez",
    weekdays="montag dienstag mittwoch donnerstag freitag samstag|sonnabend sonntag",
    seasons={
        "frue?h(?:ling|jahr)": "spring",
        "sommer": "summer",
        "herbst": "autumn",
        "winter": "winter",
        r"(?:1\.|erste[ns]?) quartal": "Q1",
        r"(?:2\.|zweite[ns]?) quartal": "Q2",
        r"(?:3\.|dritte[ns]?) quartal": "Q3",
        r"(?:4\.|vierte[ns]?) quartal": "Q4",
    },
    numbers={
        **_counts("zwei drei vier funf sechs sieben acht neun zehn elf zwolf"),
        **dict.fromkeys(("ein", "eine", "einem", "einer", "einen"), "1"),
        "fuenf": "5",
        "zwoelf": "12",
        "ein paar": "a few",
        "paar": "a few",
        "einigen": "a few",
        "einige": "a few",
        "wenigen": "a few",
        "mehreren": "several",
        "einem halben": "half a",
    },
    units={
        "tag": "day",
        "wochenende": "weekend",
        "woche": "week",
        "monat": "month",
        "quartal": "quarter",
        "jahr": "year",
        "stunde": "hour",
        "minute": "minute",
    },
    leads={
        "seit": "since",
        "bis": "until",
        "nach": "after",
        "vor": "before",
        "zwischen": "between",
        "von": "from",
        "vom": "from",
    },
    which={"vorletzt": "before last", "letzt": "last", "vergangen": "last", "vorig": "last",
           "dies": "this", "nachst": "next", "naechst": "next", "kommend": "next"},
    parts={"anfang": "early", "mitte": "mid", "ende": "end of"},
    near={
        "vorgestern": "day before yesterday",
        "gestern": "yesterday",
        "heute": "today",
        "ubermorgen": "day after tomorrow",
        "uebermorgen": "day after tomorrow",
        "morgen": "tomorrow",
        "neulich": "the other day",
    },
    joints={"bis": "to", "bis zum": "to", "-": "to", "–": "to", "und": "and", "oder": "or"},
    patterns=(
        ("range", r"(?:(?P<between>zwischen)|von|vom|seit|am) {ENDS}(?: {WHICH} jahres)?"),
        ("date", r"{D}\.\s?(?P<number>1[0-2]|0?[1-9])\.\s?{Y}"),
        ("date", r"(?:am|vom|zum|seit dem|den) {D}\.\s?(?P<number>1[0-2]|0?[1-9])\.(?!\s?\d)"),
        ("days", r"{LEAD}?(?:{W},? (?:den |dem )?)?{D}\.?"
                 r"(?: ?(?:bis|-|–|und)(?: zum)? ?{UNTIL}\.?)?"
                 r" (?:{M}|{SHORT}\.?)(?:,? {Y}| {WHICH} jahres)?"),
        ("month", r"{WHICH} {M}(?! {Y})"),
        ("month", r"{PART} {M}(?: {Y}| {WHICH} jahres)?"),
        ("month", r"(?:im|{LEADWORD}) {M}(?: {Y}| {WHICH} jahres)?"),
        ("month", r"{M} (?:{Y}|{WHICH} jahres)"),
        ("month", r"(?P<month>januar|janner|februar|marz|maerz|oktober|dezember)"),
        ("month", r"{WHICH} {S}(?! {Y})"),
        ("month", r"{PART}(?: des| vom)? {S}s?(?: {Y}| {WHICH} jahres)?"),
        ("month", r"(?:im|{LEADWORD})(?: dem| zum)? {S}(?: {Y}| {WHICH} jahres)?"),
        ("month", r"(?!winter \d){S} (?:{Y}|{WHICH} jahres)"),  # that is English, too
        ("weekday", r"{W} {WHICH} (?P<week>woche)"),
        ("weekday", r"{WHICH} {W}(?:abend|morgen|nachmittag|vormittag|nacht)?"),
        ("weekday", r"(?:am|vom|zum|zwischen|von|(?P<lead>seit|bis)) {W}"
                    r"(?:abend|morgen|nachmittag|vormittag|nacht)?"),
        ("rolling", r"(?:in den |wahrend der |der |die )?(?:letzten|vergangenen) {N} {U}"),
        ("ago", r"vor {N} {U}"),
        ("period", r"{WHICH} {U}"),
        ("period", r"(?:am|ubers) (?P<unit>wochenende)"),
        ("year", r"(?:im jahre?|{LEADWORD}|{PART}) {Y}"),
        ("near", r"{NEAR}(?: (?:abend|morgen|fruh|nachmittag|vormittag|mittag|nacht))?"),
    ),
)  # fmt: skip
FRENCH = Language(
    signs="aujourd demain janvier fevrier avril juillet aout septembre octobre novembre decembre "
    "lundi mardi mercredi jeudi vendredi samedi dimanche semaine semaines annee annees printemps "
    "automne hiver",
    shared_signs="hier mars mai juin mois jour jours an ans soir matin en depuis week weekend "
    "heures minutes ete trimestre",
    months="janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre",
    short="janv|jan fevr|fev mars avr mai juin juil aout sept oct nov dec",
    weekdays="lundi mardi mercredi jeudi vendredi samedi dimanche",
    seasons={
        "printemps": "spring",
        "ete": "summer",
        "automne": "autumn",
        "hiver": "winter",
        f"(?:premier|1er) {_FRENCH_QUARTER}": "Q1",
        f"(?:deuxieme|second|2e|2eme) {_FRENCH_QUARTER}": "Q2",
        f"(?:troisieme|3e|3eme) {_FRENCH_QUARTER}": "Q3",
        f"(?:quatrieme|4e|4eme) {_FRENCH_QUARTER}": "Q4",
    },
    numbers={
        **_counts("deux trois quatre cinq six sept huit neuf dix onze douze"),
        "un": "1",
        "une": "1",
        "quinze": "15",
        "quelques": "a few",
        "plusieurs": "several",
    },
    units={"jour": "day", "semaine": "week", "mois": "month", "an": "year", "heure": "hour",
           "minute": "minute", "week": "weekend", "trimestre": "quarter"},
    leads={
        "depuis": "since",
        "des": "since",
        "jusqu'au": "until",
        "jusqu'en": "until",
        "avant": "before",
        "apres": "after",
        "entre": "between",
        "du": "from",
    },
    which={"avant-dernier": "before last", "dernier": "last", "passe": "last",
           "prochain": "next", "cette": "this", "ce": "this"},
    parts={"debut": "early", "mi": "mid", "fin": "end of", "courant": ""},
    near={
        "avant-hier": "day before yesterday",
        "hier": "yesterday",
        "aujourd'hui": "today",
        "apres-demain": "day after tomorrow",
        "demain": "tomorrow",
        "ce soir": "tonight",
        "ce matin": "today",
        "cet apres-midi": "today",
        "la nuit derniere": "last night",
        "l'autre jour": "the other day",
    },
    joints={"au": "to", "jusqu'au": "to", "jusqu'a": "to", "jusqu'en": "to", "a": "to", "-": "to",
            "–": "to", "et": "and", "ou": "or"},
    patterns=(
        ("range", r"(?:(?P<between>entre)|depuis|de|d'|du|le(?= \d)) ?{ENDS}"
                  r"(?: de l'an(?:nee)? {WHICH})?"),
        ("days", r"(?:le |{LEADWORD}(?: le)? )?(?:{W},? )?(?:le )?(?:(?P<first>1er)|{D})"
                 r"(?: ?(?:au|a|et|-|–) ?{UNTIL})? (?:de )?(?:{M}|{SHORT}\.?)"
                 r"(?: (?:de )?{Y}| de l'an(?:nee)? {WHICH})?"),
        ("month", r"{M} {WHICH}"),
        ("month", r"(?:au |a la |en )?{PART}(?: du mois)?(?: de | d'| |-){M}(?: {Y})?"),
        ("month", r"(?:en|au mois (?:de |d')|{LEADWORD}) ?{M}(?: (?:de )?{Y}"
                  r"| de l'an(?:nee)? {WHICH})?"),
        ("month", r"{M} {Y}"),
        # "A été" is a verb.
        ("month", r"(?:l'|le |du ){S} {WHICH}"),
        ("month", r"(?P<which>cet?) {S}"),
        ("month", r"(?:au |a la |en )?{PART}(?: de | du | d'| |-)(?:l'|le )?{S}(?: (?:de )?{Y})?"),
        ("month", r"(?:en|au|a l'|pendant (?:l'|le)|{LEADWORD}(?: l'| le)?) ?{S}"
                  r"(?: (?:de )?{Y}| de l'an(?:nee)? {WHICH})?"),
        ("month", r"(?:l'|(?!ete)){S} (?:de )?{Y}"),
        ("weekday", r"{W} {WHICH}"),
        ("weekday", r"(?<!\ble )(?<!\bles )(?<!\bun )(?<!\bdu )(?<!\bau )(?<!\bchaque )"
                    r"(?:{LEADWORD} )?{W}(?! (?:gras|saint|noir|13|ouvr|matins|soirs))"),
        ("period", r"l'(?P<which>avant-derniere) {U}"),
        ("rolling", r"(?:les|ces|des) (?:{N} )?(?:derni?eres?|derniers) {U}"),
        ("period", r"(?:la |le |l'){U}(?:-end|end)? {WHICH}"),
        ("period", r"(?P<which>cette) (?P<unit>semaine|annee)"),
        ("period", r"(?P<which>ce) (?P<unit>mois|week-?end)(?:-ci)?"),
        ("ago", r"(?:il y a|voila|voici) {N} {U}(?! (?:de|dans|par|entre|pour|ou|sur|restant)\b"
                r"| d'| disponible)"),
        ("year", r"(?:en|l'annee|annee|{LEADWORD}|{PART}) {Y}"),
        ("near", r"{NEAR}(?: (?:soir|matin|apres-midi))"),
        ("near", r"{NEAR}"),
    ),
)  # fmt: skip
SPANISH = Language(
    signs="ayer anteayer antier anoche hoy enero febrero marzo abril mayo junio julio septiembre "
    "setiembre octubre noviembre diciembre lunes martes miercoles jueves viernes sabado domingo "
    "semana semanas dias meses anos primavera verano otono invierno",
    shared_signs="agosto manana mes ano dia horas minutos en desde hace trimestre",
    months="enero febrero marzo abril mayo junio julio agosto septiembre|setiembre octubre "
    "noviembre diciembre",
    short="ene feb mar abr may jun jul ago sept|sep oct nov dic",
    weekdays="lunes martes miercoles jueves viernes sabado domingo",
    seasons={
        "primavera": "spring",
        "verano": "summer",
        "otono": "autumn",
        "invierno": "winter",
        f"(?:primer|1er|1o) {_SPANISH_QUARTER}": "Q1",
        f"(?:segundo|2o) {_SPANISH_QUARTER}": "Q2",
        f"(?:tercer|3er|3o) {_SPANISH_QUARTER}": "Q3",
        f"(?:cuarto|4o) {_SPANISH_QUARTER}": "Q4",
    },
    numbers={
        **_counts("dos tres cuatro cinco seis siete ocho nueve diez once doce"),
        "un": "1",
        "una": "1",
        "unos": "a few",
        "unas": "a few",
        "pocos": "a few",
        "pocas": "a few",
        "varios": "several",
        "varias": "several",
        "un par de": "a couple",
        "quince": "15",
    },
    units={"fin de semana": "weekend", "dia": "day", "semana": "week", "mes": "month",
           "ano": "year", "hora": "hour", "minuto": "minute", "trimestre": "quarter"},
    leads={
        "desde": "since",
        "hasta": "until",
        "antes de": "before",
        "antes del": "before",
        "despues de": "after",
        "despues del": "after",
        "entre": "between",
    },
    which={"antepasad": "before last", "pasad": "last", "ultim": "last", "proxim": "next",
           "que viene": "next", "est": "this"},
    parts={"principio": "early", "comienzo": "early", "inicio": "early", "mediados": "mid",
           "final": "end of", "fines": "end of"},
    near={
        "anteayer": "day before yesterday",
        "antes de ayer": "day before yesterday",
        "antier": "day before yesterday",
        "ayer": "yesterday",
        "anoche": "last night",
        "hoy": "today",
        "pasado manana": "day after tomorrow",
        "esta manana": "today",
        "esta tarde": "today",
        "esta noche": "tonight",
        "manana": "tomorrow",
        "el otro dia": "the other day",
    },
    joints={"al": "to", "hasta el": "to", "hasta": "to", "a": "to", "-": "to", "–": "to",
            "y": "and", "y el": "and", "o": "or"},
    patterns=(
        ("range", r"(?:(?P<between>entre)|desde|del?|el) {ENDS}(?: del ano {WHICH})?"),
        ("days", r"(?:{LEADWORD} )?(?:el |del )?(?:{W},? )?(?:(?P<first>primero|1o)|{D})"
                 r"(?: ?(?:al|a|y|-|–) ?{UNTIL})? (?:de )?(?:{M}|{SHORT}\.?)"
                 r"(?:,? (?:de |del (?:ano )?)?{Y}| del ano {WHICH})?"),
        ("month", r"{M} {WHICH}"),
        ("month", r"(?:el )?{WHICH} {M}"),
        ("month", r"(?:a |en )?{PART}(?:e?s)? de {M}(?: (?:de |del )?{Y})?"),
        ("month", r"(?:en|{LEADWORD}) {M}(?: (?:de |del (?:ano )?)?{Y}| del ano {WHICH})?"),
        ("month", r"{M} (?:de |del )?{Y}"),
        ("month", r"{S} (?P<which>(?:antepasad|pasad|proxim)[oa]|que viene)"),
        ("month", r"(?:el )?{WHICH} {S}"),
        ("month", r"(?:a |en )?{PART}(?:e?s)? (?:del?|de la) {S}(?: (?:de |del )?{Y})?"),
        ("month", r"(?:en|durante|{LEADWORD})(?: el| la)? {S}"
                  r"(?: (?:de |del (?:ano )?)?{Y}| del ano {WHICH})?"),
        ("month", r"{S} (?:de |del )?{Y}"),
        ("weekday", r"(?:el |este ){W} {WHICH}"),
        ("weekday", r"(?:el )?{WHICH} {W}"),
        ("weekday", r"(?:{LEADWORD} )?el {W}"),
        ("rolling", r"(?:los|las|estos|estas) ultim[oa]s {N} {U}"),
        ("rolling", r"(?:los|las|estos|estas) {N} ultim[oa]s {U}"),
        ("rolling", r"(?:los|las|estos|estas) ultim[oa]s {U}"),
        ("period", r"(?:el|la) {U} {WHICH}"),
        ("period", r"(?:el |la )?{WHICH} {U}"),
        ("period", r"(?:el|durante el) (?P<unit>fin de semana)"),
        ("ago", r"hace {N} {U}"),
        ("ago", r"{N} {U} atras"),
        ("year", r"(?:en(?: el ano)?|el ano|del ano|{LEADWORD}|{PART}(?:e?s)? de) {Y}"),
        ("near", r"{NEAR}(?! en dia)"),
    ),
)  # fmt: skip
LANGUAGES = {"de": GERMAN, "fr": FRENCH, "es": SPANISH}
