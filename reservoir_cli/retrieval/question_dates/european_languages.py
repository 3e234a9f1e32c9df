"""The words of European languages for dates, and the patterns of dates.

Patterns match text in lower case, without accents, with single spaces between words. In them
``{M}`` is a month, ``{S}`` a season or quarter, ``{D}`` a day, ``{Y}`` a year, ``{N}`` a count,
``{U}`` a unit, ``{W}`` a weekday, ``{ENDS}`` two joined dates. More precise patterns come first.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Language(NamedTuple):
    """The words for dates in a language, without accents."""

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
    articles: str = ""  # words before the ends of a range
    names: str = ""  # words that are names or nouns if they begin with a capital letter


def counts(words: str) -> dict[str, str]:
    """Return words for two, three and so on with their numbers."""
    return {word: str(number) for number, word in enumerate(words.split(), 2)}


#: The trimesters of a pregnancy are not quarters.
_FRENCH_QUARTER = "trimestre(?! de (?:la )?grossesse)"
_SPANISH_QUARTER = "trimestre(?! del? embarazo)"

GERMAN = Language(
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
        **counts("zwei drei vier funf sechs sieben acht neun zehn elf zwolf"),
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
        ("range", r"(?:(?P<between>zwischen)|von|vom|seit|am) {ENDS}(?: {WHOSE} jahres)?"),
        ("date", r"{D}\.\s?(?P<number>1[0-2]|0?[1-9])\.\s?{Y}"),
        ("date", r"(?:am|vom|zum|seit dem|den) {D}\.\s?(?P<number>1[0-2]|0?[1-9])\.(?!\s?\d)"),
        ("days", r"{LEAD}?(?:{W},? (?:den |dem )?)?{D}\.?"
                 r"(?: ?(?:bis|-|–|und)(?: zum)? ?{UNTIL}\.?)?"
                 r" (?:{M}|{SHORT}\.?)(?:,? {Y}| {WHOSE} jahres)?"),
        ("month", r"{WHICH} {M}(?! {Y})"),
        ("month", r"{PART} {M}(?: {Y}| {WHOSE} jahres)?"),
        ("month", r"(?:im|{LEADWORD}) {M}(?: {Y}| {WHOSE} jahres)?"),
        ("month", r"{M} (?:{Y}|{WHOSE} jahres)"),
        ("month", r"(?P<month>januar|janner|februar|marz|maerz|oktober|dezember)"),
        ("month", r"{WHICH} {S}(?! {Y})"),
        ("month", r"{PART}(?: des| vom)? {S}s?(?: {Y}| {WHOSE} jahres)?"),
        ("month", r"(?:im|{LEADWORD})(?: dem| zum)? {S}(?: {Y}| {WHOSE} jahres)?"),
        ("month", r"(?!winter \d){S} (?:{Y}|{WHOSE} jahres)"),  # that is English, too
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
    articles="am|dem|den|zum|im",
    names="morgen",
)  # fmt: skip
FRENCH = Language(
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
        **counts("deux trois quatre cinq six sept huit neuf dix onze douze"),
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
                  r"(?: de l'an(?:nee)? {WHOSE})?"),
        ("days", r"(?:le |{LEADWORD}(?: le)? )?(?:{W},? )?(?:le )?(?:(?P<first>1er)|{D})"
                 r"(?: ?(?:au|a|et|-|–) ?{UNTIL})? (?:de )?(?:{M}|{SHORT}\.?)"
                 r"(?: (?:de )?{Y}| de l'an(?:nee)? {WHOSE})?"),
        ("month", r"{M} {WHICH}"),
        ("month", r"(?:au |a la |en )?{PART}(?: du mois)?(?: de | d'| |-){M}(?: {Y})?"),
        ("month", r"(?:en|au mois (?:de |d')|{LEADWORD}) ?{M}(?: (?:de )?{Y}"
                  r"| de l'an(?:nee)? {WHOSE})?"),
        ("month", r"{M} {Y}"),
        # "A été" is a verb.
        ("month", r"(?:l'|le |du ){S} {WHICH}"),
        ("month", r"(?P<which>cet?) {S}"),
        ("month", r"(?:au |a la |en )?{PART}(?: de | du | d'| |-)(?:l'|le )?{S}(?: (?:de )?{Y})?"),
        ("month", r"(?:en|au|a l'|pendant (?:l'|le)|{LEADWORD}(?: l'| le)?) ?{S}"
                  r"(?: (?:de )?{Y}| de l'an(?:nee)? {WHOSE})?"),
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
    articles="le|en",
)  # fmt: skip
SPANISH = Language(
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
        **counts("dos tres cuatro cinco seis siete ocho nueve diez once doce"),
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
        ("range", r"(?:(?P<between>entre)|desde|del?|el) {ENDS}(?: del ano {WHOSE})?"),
        ("days", r"(?:{LEADWORD} )?(?:el |del )?(?:{W},? )?(?:(?P<first>primero|1o)|{D})"
                 r"(?: ?(?:al|a|y|-|–) ?{UNTIL})? (?:de )?(?:{M}|{SHORT}\.?)"
                 r"(?:,? (?:de |del (?:ano )?)?{Y}| del ano {WHOSE})?"),
        ("month", r"{M} {WHICH}"),
        ("month", r"(?:el )?{WHICH} {M}"),
        ("month", r"(?:a |en )?{PART}(?:e?s)? de {M}(?: (?:de |del )?{Y})?"),
        ("month", r"(?:en|{LEADWORD}) {M}(?: (?:de |del (?:ano )?)?{Y}| del ano {WHOSE})?"),
        ("month", r"{M} (?:de |del )?{Y}"),
        ("month", r"{S} (?P<which>(?:antepasad|pasad|proxim)[oa]|que viene)"),
        ("month", r"(?:el )?{WHICH} {S}"),
        ("month", r"(?:a |en )?{PART}(?:e?s)? (?:del?|de la) {S}(?: (?:de |del )?{Y})?"),
        ("month", r"(?:en|durante|{LEADWORD})(?: el| la)? {S}"
                  r"(?: (?:de |del (?:ano )?)?{Y}| del ano {WHOSE})?"),
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
    articles="el|en",
)  # fmt: skip
#: The trimesters of a pregnancy, again.
_ITALIAN_QUARTER = "trimestre(?! d(?:i|ella) gravidanza)"
_PORTUGUESE_QUARTER = "trimestre(?! d[ae] (?:gravidez|gestacao))"
_ITALIAN_PAST = "(?P<which>(?:scors|passat|prossim)[oaie])"
_ITALIAN_YEAR = "(?: (?:del(?:l'anno)? )?{Y}| dell(?:'anno|o) {WHOSE}(?: anno)?)?"
#: Holidays that begin with a weekday, and weekdays in general.
_NO_ITALIAN_DAY = (
    r"(?<!\bil )(?<!\bla )(?<!\bi )(?<!\ble )(?<!\bdi )(?<!\bogni )(?<!\bun )(?<!\buna )"
    r"(?<!\bqualche )"
)
ITALIAN = Language(
    months="gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre "
    "dicembre",
    short="gen feb mar apr mag giu lug ago sett ott nov dic",
    weekdays="lunedi martedi mercoledi giovedi venerdi sabato domenica",
    seasons={
        "primavera": "spring",
        "estate": "summer",
        "autunno": "autumn",
        "inverno": "winter",
        f"(?:primo|1o|1°|i) {_ITALIAN_QUARTER}": "Q1",
        f"(?:secondo|2o|2°|ii) {_ITALIAN_QUARTER}": "Q2",
        f"(?:terzo|3o|3°|iii) {_ITALIAN_QUARTER}": "Q3",
        f"(?:quarto|ultimo|4o|4°|iv) {_ITALIAN_QUARTER}": "Q4",
    },
    numbers={
        **counts("due tre quattro cinque sei sette otto nove dieci undici dodici"),
        **dict.fromkeys(("un", "un'", "uno", "una"), "1"),
        "quindici": "15",
        "venti": "20",
        "una decina di": "10",
        "una quindicina di": "15",
        "qualche": "a few",
        "alcuni": "a few",
        "alcune": "a few",
        "pochi": "a few",
        "poche": "a few",
        "diversi": "several",
        "diverse": "several",
        "parecchi": "several",
        "un paio di": "a couple",
    },
    units={"fine settimana": "weekend", "weekend": "weekend", "giorn": "day", "settiman": "week",
           "mese": "month", "mesi": "month", "anno": "year", "anni": "year", "ora": "hour",
           "ore": "hour", "minut": "minute", "trimestr": "quarter"},
    leads={
        **dict.fromkeys(("da", "dal", "dalla", "dall'", "dallo", "a partire da"), "since"),
        **dict.fromkeys(("fino a", "fino al", "fino all'", "fino alla", "entro"), "until"),
        **dict.fromkeys(("prima di", "prima del", "prima dell'", "prima della"), "before"),
        **dict.fromkeys(("dopo", "dopo il", "dopo l'"), "after"),
        "tra": "between",
        "fra": "between",
    },
    which={"penultim": "before last", "scors": "last", "passat": "last", "ultim": "last",
           "prossim": "next", "quest": "this"},
    parts={"inizio": "early", "inizi": "early", "primi": "early", "meta": "mid",
           "fine": "end of"},
    near={
        "l'altro ieri": "day before yesterday",
        "ieri l'altro": "day before yesterday",
        "l'altroieri": "day before yesterday",
        "altroieri": "day before yesterday",
        "avantieri": "day before yesterday",
        "ieri sera": "last night",
        "ieri notte": "last night",
        "ieri": "yesterday",
        "oggi": "today",
        "stamattina": "today",
        "stamani": "today",
        "questa mattina": "today",
        "stasera": "tonight",
        "questa sera": "tonight",
        "stanotte": "tonight",
        "dopodomani": "day after tomorrow",
        "domani": "tomorrow",
        "l'altro giorno": "the other day",
        "l'altra sera": "the other day",
    },
    joints={"al": "to", "all'": "to", "alla": "to", "fino al": "to", "fino a": "to", "a": "to",
            "-": "to", "–": "to", "e": "and", "e il": "and", "e l'": "and", "o": "or"},
    patterns=(
        ("range", r"(?:(?P<between>tra|fra)|dal|dalla|dall'|da|di|del|il(?= \d)) ?{ENDS}"
                  r"(?: dell(?:'anno|o) {WHOSE}(?: anno)?)?"),
        ("days", r"(?:{LEADWORD} ?)?(?:(?:il|lo|del) |l'|dell')?(?:{W},? )?(?:il |l')?"
                 r"(?:(?P<first>1o|1°|primo)|{D})(?: ?(?:al|all'|e|e il|-|–) ?{UNTIL})? (?:di )?"
                 rf"(?:{{M}}|{{SHORT}}\.?){_ITALIAN_YEAR}"),
        ("month", rf"{{M}} {_ITALIAN_PAST}"),
        ("month", r"(?:il |lo |nel |nello |di )?(?P<which>(?:scors|passat|prossim|quest)o) {M}"),
        ("month", r"(?:a |in |ad |all'|alla |agli |ai |verso |verso la |da )?{PART}"
                  r"(?: di| del mese di| d'|-|)? ?{M}(?: (?:del )?{Y})?"),
        ("month", r"(?:in|a|ad|di|nel|nel mese di|del mese di|al mese di|durante|per|{LEADWORD}) ?"
                  rf"{{M}}{_ITALIAN_YEAR}"),
        ("month", r"{M} (?:del )?{Y}"),
        ("month", rf"(?:l'|la |lo |nell'|nella |dell')?{{S}} {_ITALIAN_PAST}"),
        ("month", r"(?:l[ao] |nell[ao] |dell[ao] )?{WHICH} {S}"),
        ("month", r"(?P<which>quest)'{S}"),
        ("month", r"(?:a |in |all'|alla |verso la )?{PART}(?: del(?:l'|la)?| d'|)? ?{S}"
                  r"(?: (?:del )?{Y})?"),
        ("month", r"(?:in|nel|nell'|nella|nello|durante (?:l'|la|il)|del|dell'|della|{LEADWORD}) ?"
                  rf"(?:l'|la |il )?{{S}}{_ITALIAN_YEAR}"),
        ("month", r"(?<!real ){S} (?:del )?{Y}"),
        ("weekday", r"{W} della (?P<week>settimana) {WHICH}"),
        ("weekday", r"{W} della {WHICH} (?P<week>settimana)"),
        ("weekday", rf"{{W}} {_ITALIAN_PAST}"),
        ("weekday", r"{WHICH} {W}"),
        ("weekday", rf"{_NO_ITALIAN_DAY}(?:{{LEADWORD}} )?{{W}}"
                    r"(?: (?:sera|mattina|pomeriggio|notte))?(?! (?:sant|grass|delle|dell'))"),
        ("rolling", r"(?:nei|negli|nelle|i|gli|le|questi|queste|degli|delle) "
                    r"(?:ultim|scors|passat)[ie](?: {N})? {U}"),
        ("rolling", r"(?:nei|negli|nelle|i|gli|le) {N} ultim[ie] {U}"),
        ("period", rf"(?:l[ao] |il |l'|nell[ao] |nel |nell'|dell[ao] |del |dell')?{{U}} "
                   rf"{_ITALIAN_PAST}"),
        ("period", r"(?:l[ao] |il |nell[ao] |dell[ao] |l'|nell')?{WHICH} {U}"),
        ("period", r"(?P<which>quest)'(?P<unit>anno)"),
        ("period", r"(?:nel|durante il|il) (?P<unit>fine settimana|weekend)"),
        ("ago", r"{N} ?{U} (?:fa|or sono|addietro)(?! (?:caldo|freddo|bene|male|parte))"),
        ("year", r"(?:nel|nell'anno|del|dell'anno|l'anno|{LEADWORD}|{PART}(?: del)?) {Y}"),
        ("near", r"(?<!d')(?<!\bun )(?<!\bil ){NEAR}(?: (?:mattina|pomeriggio|sera))?"),
    ),
    articles="il|lo|la",
    names="sabato domenica maggio",
)  # fmt: skip
_OF_YEAR = "(?:,? (?:de |do (?:ano (?:de )?)?)?{Y}| do ano {WHOSE})?"
PORTUGUESE = Language(
    months="janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro "
    "dezembro",
    short="jan fev mar abr mai jun jul ago set out nov dez",
    weekdays="segunda terca quarta quinta sexta sabado domingo",
    seasons={
        "primavera": "spring",
        "verao": "summer",
        "outono": "autumn",
        "inverno": "winter",
        f"(?:primeiro|1o) {_PORTUGUESE_QUARTER}": "Q1",
        f"(?:segundo|2o) {_PORTUGUESE_QUARTER}": "Q2",
        f"(?:terceiro|3o) {_PORTUGUESE_QUARTER}": "Q3",
        f"(?:quarto|ultimo|4o) {_PORTUGUESE_QUARTER}": "Q4",
    },
    numbers={
        **counts("dois tres quatro cinco seis sete oito nove dez onze doze"),
        "um": "1",
        "uma": "1",
        "duas": "2",
        "quinze": "15",
        "vinte": "20",
        **dict.fromkeys(("alguns", "algumas", "uns", "umas", "poucos", "poucas"), "a few"),
        "varios": "several",
        "varias": "several",
        "um par de": "a couple",
        "meio": "half a",
        "meia": "half a",
    },
    units={"fim de semana": "weekend", "final de semana": "weekend", "dia": "day",
           "semana": "week", "mes": "month", "ano": "year", "hora": "hour", "minuto": "minute",
           "trimestre": "quarter"},
    leads={
        **dict.fromkeys(("desde", "a partir de", "desde o", "desde a"), "since"),
        **dict.fromkeys(("ate", "ate o", "ate a", "ate ao"), "until"),
        **dict.fromkeys(("antes de", "antes do", "antes da"), "before"),
        **dict.fromkeys(("depois de", "depois do", "depois da", "apos"), "after"),
        "entre": "between",
    },
    which={"retrasad": "before last", "antepassad": "before last", "penultim": "before last",
           "passad": "last", "ultim": "last", "proxim": "next", "que vem": "next",
           "est": "this", "nest": "this", "dest": "this"},
    parts={"inicio": "early", "comeco": "early", "principio": "early", "meados": "mid",
           "meio": "mid", "fim": "end of", "final": "end of", "fins": "end of"},
    near={
        "anteontem": "day before yesterday",
        "antes de ontem": "day before yesterday",
        "ontem a noite": "last night",
        "ontem": "yesterday",
        "hoje": "today",
        "esta manha": "today",
        "esta tarde": "today",
        "esta noite": "tonight",
        "depois de amanha": "day after tomorrow",
        "amanha": "tomorrow",
        "no outro dia": "the other day",
        "um dia desses": "the other day",
    },
    joints={"a": "to", "ao": "to", "ate": "to", "ate o": "to", "ate a": "to", "-": "to", "–": "to",
            "e": "and", "e o": "and", "e a": "and", "e em": "and", "e na": "and", "e no": "and",
            "ou": "or"},
    patterns=(
        ("range", r"(?:(?P<between>entre)|desde|de|do|da|em|nos dias|dias) {ENDS}"
                  r"(?: do ano {WHOSE})?"),
        ("days", r"(?:{LEADWORD} )?(?:(?:em|no|na|o|a|ao|do|da) )?(?:{W}(?:[ -]feira)?,? )?"
                 r"(?:(?:o |no )?dia |de )?(?:(?P<first>1\.?o|primeiro)|{D})"
                 r"(?: ?(?:a|ao|e|ate|-|–) ?(?:o )?(?:dia )?{UNTIL})? "
                 rf"(?:(?:de )?{{M}}|de {{SHORT}}\.?){_OF_YEAR}"),
        ("month", r"{M} (?P<which>passado|proximo|que vem)"),
        ("month", r"(?:o |no |em |do )?(?P<which>(?:passad|ultim|proxim)o|n?este) {M}"),
        ("month", r"(?:a |em |no |n[oa] |desde (?:o |a )?|do )?{PART} de {M}(?: (?:de |do )?{Y})?"),
        ("month", r"(?:(?<!\brio )de|em|no mes de|do mes de|durante|para|{LEADWORD}) "
                  rf"{{M}}{_OF_YEAR}"),
        ("month", r"{M} (?:de |do )?{Y}"),
        ("month", r"{S} (?P<which>(?:antepassad|retrasad|passad|proxim)[oa]|que vem)"),
        ("month", r"(?:[oa] |n[oa] )?{WHICH} {S}"),
        ("month", r"(?:a |em |n?[oa] )?{PART} d[oa] {S}(?: (?:de |do )?{Y})?"),
        ("month", rf"(?:em|n[oa]|d[oa]|durante [oa]|{{LEADWORD}}) (?:[oa] )?{{S}}{_OF_YEAR}"),
        ("month", r"{S} (?:de |do )?{Y}"),
        ("weekday", r"{W}(?:[ -]feira)? d[ae] (?P<week>semana) {WHICH}"),
        ("weekday", r"{W}(?:[ -]feira)? (?P<which>(?:passad|proxim)[oa]|que vem)"),
        ("weekday", r"(?P<which>(?:n|d)?(?:est[ea]|[oa]? ?ultim[oa]|[oa]? ?proxim[oa])) "
                    r"{W}(?:[ -]feira)?"),
        ("weekday", r"(?:n[oa]|d[oa]|{LEADWORD}) {W}[ -]feira"),
        ("weekday", r"(?<!\btoda )(?<!\bcada )(?<!\bde )(?<!\ba )(?<!\bas )(?<!\buma )"
                    r"{W}[ -]feira(?! santa)"),
        ("weekday", r"(?:n[oa]|{LEADWORD}) (?P<weekday>sabado|domingo)(?! de (?:pascoa|ramos))"),
        # Also "na segunda reunião", the second meeting.
        ("weekday", r"(?:n[oa]|{LEADWORD}) {W}(?: (?:a noite|de manha|a tarde)"
                    r"|(?= ?[?!.,;:]| ?$| (?:eu|voce|nos|a gente|que|sobre|com)\b| e na ))"),
        ("rolling", r"(?:n?[oa]s|d[oa]s|n?est[ea]s) (?:ultim|passad)[oa]s(?: {N})? {U}"),
        ("rolling", r"(?:n?[oa]s|d[oa]s) {N} ultim[oa]s {U}"),
        ("period", r"(?:[oa] |n[oa] |d[oa] )?{U} "
                   r"(?P<which>(?:antepassad|retrasad|passad|proxim)[oa]|que vem)"),
        ("period", r"(?:[oa] |n[oa] |d[oa] )?{WHICH} {U}"),
        ("period", r"(?:no|durante o) (?P<unit>fim de semana|final de semana)"),
        ("ago", r"(?:ha|faz|fazem) {N} {U}(?: atras)?(?! (?:de|por|para|entre)\b)"),
        ("ago", r"{N} {U} atras"),
        ("year", r"(?:em|no ano(?: de)?|do ano(?: de)?|{LEADWORD}|{PART} de) {Y}"),
        ("near", r"{NEAR}(?! em dia)"),
    ),
    articles="o|a|os|em|no|na|(?:o |no |em )?dia|dias",
    names="marco maio",
)  # fmt: skip
_DUTCH_YEAR = "(?:,? {Y}| (?:van )?{WHOSE} jaar)?"
_DUTCH_NIGHTS = "(?:avond|ochtend|morgen|middag|namiddag|nacht)?"
DUTCH = Language(
    months="januari februari maart april mei juni juli augustus september oktober november "
    "december",
    short="jan feb mrt apr mei jun jul aug sept|sep okt nov dec",
    weekdays="maandag dinsdag woensdag donderdag vrijdag zaterdag zondag",
    seasons={
        "(?:voorjaar|lente)": "spring",
        "zomer": "summer",
        "(?:najaar|herfst)": "autumn",
        "winter": "winter",
        "(?:eerste|1e|1ste) kwartaal": "Q1",
        "(?:tweede|2e|2de) kwartaal": "Q2",
        "(?:derde|3e|3de) kwartaal": "Q3",
        "(?:vierde|4e|4de) kwartaal": "Q4",
    },
    numbers={
        **counts("twee drie vier vijf zes zeven acht negen tien elf twaalf"),
        "een": "1",
        "veertien": "14",
        "vijftien": "15",
        "twintig": "20",
        "een paar": "a few",
        "paar": "a few",
        "enkele": "a few",
        "enige": "a few",
        "een aantal": "several",
        "meerdere": "several",
        "een half": "half a",
    },
    units={"weekend": "weekend", "weekeind": "weekend", "week": "week", "weken": "week",
           "dag": "day", "maand": "month", "kwarta": "quarter", "jaar": "year", "jaren": "year",
           "uur": "hour", "uren": "hour", "minu": "minute"},
    leads={
        "sinds": "since",
        "vanaf": "since",
        "tot": "until",
        "tot en met": "until",
        "t/m": "until",
        "voor": "before",
        "na": "after",
        "tussen": "between",
        "van": "from",
    },
    which={"voorlaatst": "before last", "voorvorig": "before last", "eervorig": "before last",
           "vorig": "last", "afgelopen": "last", "verleden": "last", "laatst": "last",
           "voorbij": "last", "volgend": "next", "komend": "next", "aanstaand": "next",
           "dez": "this", "dit": "this"},
    parts={"begin": "early", "midden": "mid", "medio": "mid", "half": "mid", "eind": "end of",
           "einde": "end of"},
    near={
        "eergisteren": "day before yesterday",
        "gisteravond": "last night",
        "gisterenavond": "last night",
        "gisterochtend": "yesterday",
        "gisterenochtend": "yesterday",
        "gistermiddag": "yesterday",
        "gisteren": "yesterday",
        "vandaag": "today",
        "vanochtend": "today",
        "vanmorgen": "today",
        "vanmiddag": "today",
        "vanavond": "tonight",
        "vannacht": "tonight",
        "overmorgen": "day after tomorrow",
        "morgen": "tomorrow",
        "morgenavond": "tomorrow",
        "morgenochtend": "tomorrow",
    },
    joints={"tot": "to", "tot en met": "to", "tot aan": "to", "t/m": "to", "-": "to", "–": "to",
            "en": "and", "en op": "and", "of": "or"},
    patterns=(
        ("range", r"(?:(?P<between>tussen)|van|vanaf|sinds|op) {ENDS}(?: van {WHOSE} jaar)?"),
        ("days", r"(?:{LEADWORD} )?(?:op )?(?:{W},? )?(?:de )?{D}(?:e|ste|de)?"
                 r"(?: ?(?:tot|tot en met|t/m|en|-|–) ?(?:de )?{UNTIL}(?:e|ste|de)?)?"
                 rf" (?:van )?(?:{{M}}|{{SHORT}}\.?){_DUTCH_YEAR}"),
        ("month", r"{WHICH} {M}(?! {Y})"),
        ("month", r"(?:in |in het )?{PART}(?: van)? {M}(?: {Y}| (?:van )?{WHOSE} jaar)?"),
        ("month", rf"(?:in|in de maand|van|{{LEADWORD}}) {{M}}{_DUTCH_YEAR}"),
        ("month", r"{M} (?:{Y}|(?:van )?{WHOSE} jaar)"),
        ("month", r"(?P<month>januari|februari|oktober)"),
        ("month", r"(?:de |het )?{WHICH} {S}(?! {Y})"),
        ("month", r"(?:in |aan )?(?:het )?{PART}(?: van)?(?: de| het)? {S}(?: (?:van )?{Y})?"),
        ("month", r"(?:in|tijdens|van|{LEADWORD})(?: de| het)? {S}"
                  r"(?: (?:van )?{Y}| (?:van )?{WHOSE} jaar)?"),
        ("month", r"(?!winter \d){S} (?:van )?(?:{Y}|{WHOSE} jaar)"),
        ("weekday", rf"{{W}}{_DUTCH_NIGHTS} (?:van |in )?(?:de )?{{WHICH}} (?P<week>week)"),
        ("weekday", rf"{{WHICH}} {{W}}{_DUTCH_NIGHTS}"),
        ("weekday", r"{W} (?P<which>laatstleden|aanstaande)"),
        ("weekday", rf"(?:op|{{LEADWORD}}) {{W}}{_DUTCH_NIGHTS}"),
        ("weekday", r"(?<!\bde )(?<!\been )(?<!\bper )(?<!\bdie )(?<!\belke )(?<!\biedere )"
                    rf"(?<!\bgoede ){{W}}{_DUTCH_NIGHTS}"),
        ("rolling", r"(?:in |gedurende )?(?:de )?(?:afgelopen|laatste|voorbije) {N} {U}"),
        ("rolling", r"(?:de )?(?:afgelopen|laatste|voorbije) (?P<unit>dagen|weken|maanden|jaren)"),
        ("period", r"(?:de |het |van |in |in de |in het )?{WHICH} {U}"),
        ("period", r"(?:in het|tijdens het) (?P<unit>weekend|weekeinde)"),
        ("ago", r"{N} {U} (?:geleden|terug)"),
        ("year", r"(?:in(?: het jaar)?|het jaar|{LEADWORD}|{PART}(?: van)?) {Y}"),
        ("near", r"{NEAR}(?! de dag)"),
    ),
    articles="de|het|op|op de",
    names="mei",
)  # fmt: skip
