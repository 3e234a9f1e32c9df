"""The words of French, Spanish, Italian and Portuguese for dates."""

from reservoir_cli.retrieval.question_dates.date_language import Language, counts

#: The trimesters of a pregnancy are not quarters.
_FRENCH_QUARTER = "trimestre(?! de (?:la )?grossesse)"
_SPANISH_QUARTER = "trimestre(?! del? embarazo)"
_ITALIAN_QUARTER = "trimestre(?! d(?:i|ella) gravidanza)"
_PORTUGUESE_QUARTER = "trimestre(?! d[ae] (?:gravidez|gestacao))"

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
        **dict.fromkeys(("une demi", "un demi", "une demie"), "half a"),
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
        ("ago", r"(?:il y a|voila|voici) {N}[ -]{U}(?P<half> et demie?)?"
                r"(?! (?:de|dans|par|entre|pour|ou|sur|restant)\b| d'| disponible)"),
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
        "medio": "half a",
        "media": "half a",
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
        ("ago", r"hace (?:{N} )?{U} y (?P<half>medi[oa])"),
        ("ago", r"hace {N} {U}"),
        ("ago", r"{N} {U}(?: y (?P<half>medi[oa]))? atras"),
        ("year", r"(?:en(?: el ano)?|el ano|del ano|{LEADWORD}|{PART}(?:e?s)? de) {Y}"),
        ("near", r"{NEAR}(?! en dia)"),
    ),
    articles="el|en",
)  # fmt: skip

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
        **dict.fromkeys(("mezzo", "mezza", "mezz'"), "half a"),
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
        ("ago", r"{N} ?{U}(?: e (?P<half>mezz[oa]))? (?:fa|or sono|addietro)"
                r"(?! (?:caldo|freddo|bene|male|parte))"),
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
        ("ago", r"(?:ha|faz|fazem) {N} {U}(?: e (?P<half>mei[oa]))?(?: atras)?"
                r"(?! (?:de|por|para|entre)\b)"),
        ("ago", r"{N} {U}(?: e (?P<half>mei[oa]))? atras"),
        ("year", r"(?:em|no ano(?: de)?|do ano(?: de)?|{LEADWORD}|{PART} de) {Y}"),
        ("near", r"{NEAR}(?! em dia)"),
    ),
    articles="o|a|os|em|no|na|(?:o |no |em )?dia|dias",
    names="marco maio",
)  # fmt: skip
