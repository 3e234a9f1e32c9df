"""The words of Russian and Polish for dates: inflected forms, separated by ``|``."""
# ruff: noqa: RUF001 - letters of other scripts

from reservoir_cli.retrieval.question_dates.date_language import Language, counts

_RUSSIAN_YEAR = r"(?:,? {Y}(?: г(?:ода|оду|од|\.)?)?| {WHOSE} год[ау])?"
_RUSSIAN_DAYTIME = "(?: (?:утром|днем|вечером|ночью))?"
RUSSIAN = Language(
    months="январь|января|январе|январю|январем февраль|февраля|феврале|февралю|февралем "
    "март|марта|марте|марту|мартом апрель|апреля|апреле|апрелю|апрелем май|мая|мае|маю|маем "
    "июнь|июня|июне|июню|июнем июль|июля|июле|июлю|июлем август|августа|августе|августу|августом "
    "сентябрь|сентября|сентябре|сентябрю|сентябрем октябрь|октября|октябре|октябрю|октябрем "
    "ноябрь|ноября|ноябре|ноябрю|ноябрем декабрь|декабря|декабре|декабрю|декабрем",
    short="янв фев|февр мар апр мая июн июл авг сент|сен окт нояб|ноя дек",
    weekdays="понедельник|понедельника|понедельнику|понедельником "
    "вторник|вторника|вторнику|вторником среду|среды|средой четверг|четверга|четвергу|четвергом "
    "пятницу|пятницы|пятнице|пятницей субботу|субботы|субботе|субботой "
    "воскресенье|воскресенья|воскресенью|воскресеньем",
    seasons={
        "весн(?:а|ы|е|у|ой)": "spring",
        "лет(?:о|а|е|у|ом)": "summer",
        "осен(?:ь|и|ью)": "autumn",
        "зим(?:а|ы|е|у|ой)": "winter",
        "(?:перв(?:ый|ого|ом)|1(?:-(?:й|го|м))?) квартал[ае]?": "Q1",
        "(?:втор(?:ой|ого|ом)|2(?:-(?:й|го|м))?) квартал[ае]?": "Q2",
        "(?:трет(?:ий|ьего|ьем)|3(?:-(?:й|го|м))?) квартал[ае]?": "Q3",
        "(?:четверт(?:ый|ого|ом)|4(?:-(?:й|го|м))?) квартал[ае]?": "Q4",
    },
    numbers={
        **counts("два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать"),
        **counts("двух трех четырех пяти шести семи восьми девяти десяти"),
        **dict.fromkeys(("один", "одну", "одного", "одной"), "1"),
        "две": "2",
        "пол": "half a",
        **dict.fromkeys(("полтора", "полторы"), "1 and a half"),
        "пятнадцать": "15",
        "двадцать": "20",
        "тридцать": "30",
        "несколько": "a few",
        "нескольких": "a few",
        "пару": "a couple",
        "пара": "a couple",
    },
    units={"выходн": "weekend", "недел": "week", "день": "day", "дня": "day", "дней": "day",
           "дни": "day", "месяц": "month", "квартал": "quarter", "год": "year", "лет": "year",
           "часик": "hour", "час": "hour", "минут": "minute"},
    leads={
        **dict.fromkeys(("с", "со", "начиная с"), "since"),
        "до": "until",
        "перед": "before",
        "после": "after",
        "между": "between",
    },
    which={"позапрошл": "before last", "прошл": "last", "минувш": "last", "последн": "last",
           r"эт(?:от|у|ой|ом|ого|и|их)\b": "this", "нынешн": "this", "текущ": "this",
           "следующ": "next", "будущ": "next", "ближайш": "next"},
    parts={**dict.fromkeys(("начале", "начала", "началу", "начало"), "early"),
           **dict.fromkeys(("середине", "середины", "середину"), "mid"),
           **dict.fromkeys(("конце", "конца", "концу", "конец"), "end of")},
    near={
        "позавчера": "day before yesterday",
        "вчера вечером": "last night",
        "вчера": "yesterday",
        "сегодня": "today",
        "послезавтра": "day after tomorrow",
        "завтра": "tomorrow",
        "на днях": "the other day",
    },
    joints={"по": "to", "до": "to", "-": "to", "–": "to", "—": "to", "и": "and", "или": "or"},
    patterns=(
        ("range", r"(?:(?P<between>между) |с |со |от |(?=\d\d?\D)){ENDS}(?: {WHOSE} года)?"),
        ("days", r"(?:{LEADWORD} )?(?:(?:в |во )?{W},? )?(?:(?P<first>первого)|{D})(?:-?го)?"
                 r"(?: ?(?:по|-|–|—) ?{UNTIL}(?:-?го)?)? (?:{M}|{SHORT}\.?)" + _RUSSIAN_YEAR),
        ("month", r"(?:в |во |за )?{PART} {M}" + _RUSSIAN_YEAR),
        ("month", r"(?:в |за )?{WHICH} {M}"),
        ("month", r"(?:в|за|на|{LEADWORD}) {M}" + _RUSSIAN_YEAR),
        ("month", r"{M} (?:{Y}(?: г(?:ода|\.)?)?|{WHOSE} года)"),
        ("month", r"(?:в |за )?{PART} {S}" + _RUSSIAN_YEAR),
        ("month", r"{WHICH} {S}"),
        ("month", r"(?:в|во|за|{LEADWORD}) {S}" + _RUSSIAN_YEAR),
        ("month", r"{S} (?:{Y}(?: г(?:ода|\.)?)?|{WHOSE} года)"),
        ("month", r"(?P<season>весной|летом|осенью|зимой)"),
        ("weekday", r"(?:в |во )?{W} (?:на )?{WHICH} (?P<week>недел[еи])"),
        ("weekday", r"(?:в |во |до |с )?{WHICH} {W}"),
        ("weekday", r"(?:(?!в среды)во?|{LEADWORD}) {W}"
                    + _RUSSIAN_DAYTIME
                    + r"(?! (?:разработк|исполнени|выполнени|программировани|обитани))"),
        ("rolling", r"(?:за|в) последн(?:(?P<one>ий|юю)|ие|их|ее) (?:{N} )?{U}"),
        ("period", r"(?:на |в |за |с |со |до )?{WHICH} {U}"),
        ("period", r"(?:в|на) (?P<unit>выходные|выходных)"),
        ("ago", r"{N}(?P<half> с половиной)? {U} (?:тому )?назад"),
        ("ago", r"{N} {U}(?P<half> с половиной) (?:тому )?назад"),
        ("ago", r"(?P<count>пол)-?(?P<unit>года|месяца|недели|дня|часа) (?:тому )?назад"),
        ("ago", r"(?P<one>(?P<unit>неделю|месяц|год|день|час|минуту))(?P<half> с половиной)?"
                r" (?:тому )?назад"),
        ("year", r"(?:в|за|{LEADWORD}|{PART}) {Y}(?:-?(?:м|го))?(?: г(?:ода|оду|од|\.)?)?"),
        ("year", r"{Y} г(?:ода|оду|од|\.)?"),
        ("near", r"{NEAR}" + _RUSSIAN_DAYTIME),
    ),
    articles="в|во",
    names="мая марта",
)  # fmt: skip
_POLISH_YEAR = r"(?:,? {Y}(?: r(?:oku|ok|\.)?)?| {WHOSE} roku)?"
_POLISH_DAYTIME = "(?: (?:rano|wieczorem|w nocy|po poludniu))?"
POLISH = Language(
    months="styczen|stycznia|styczniu|styczniem luty|lutego|lutym marzec|marca|marcu|marcem "
    "kwiecien|kwietnia|kwietniu|kwietniem maj|maja|maju|majem "
    "czerwiec|czerwca|czerwcu|czerwcem lipiec|lipca|lipcu|lipcem "
    "sierpien|sierpnia|sierpniu|sierpniem wrzesien|wrzesnia|wrzesniu|wrzesniem "
    "pazdziernik|pazdziernika|pazdzierniku|pazdziernikiem "
    "listopad|listopada|listopadzie|listopadem grudzien|grudnia|grudniu|grudniem",
    short="sty lut mar kwi maj cze lip sie wrz paz lis gru",
    weekdays="poniedzialek|poniedzialku|poniedzialkiem wtorek|wtorku|wtorkiem "
    "sroda|srode|srody czwartek|czwartku|czwartkiem piatek|piatku|piatkiem "
    "sobota|sobote|soboty niedziela|niedziele|niedzieli",
    seasons={
        "wiosn(?:a|y|e)": "spring",
        "wiosnie": "spring",
        "(?:lato|latem|lecie)": "summer",
        "(?<!dwa )(?<!trzy )(?<!cztery )lata(?! temu| \\d{4})": "summer",
        "jesien(?:i|ia)?": "autumn",
        "zim(?:a|y|e|ie)": "winter",
        "(?:pierwszy(?:m)?|pierwszego|1\\.?|i) kwartale?u?": "Q1",
        "(?:drugi(?:m)?|drugiego|2\\.?|ii) kwartale?u?": "Q2",
        "(?:trzeci(?:m)?|trzeciego|3\\.?|iii) kwartale?u?": "Q3",
        "(?:czwarty(?:m)?|czwartego|4\\.?|iv) kwartale?u?": "Q4",
    },
    numbers={
        **counts("dwa trzy cztery piec szesc siedem osiem dziewiec dziesiec jedenascie dwanascie"),
        **counts("dwoch trzech czterech pieciu szesciu siedmiu osmiu dziewieciu dziesieciu"),
        **counts("dwoma trzema czterema piecioma szescioma siedmioma osmioma"),
        **dict.fromkeys(("jeden", "jedna", "jedno", "jednego", "jednym"), "1"),
        "dwie": "2",
        "dwiema": "2",
        "pietnascie": "15",
        "dwadziescia": "20",
        "trzydziesci": "30",
        **dict.fromkeys(("kilka", "kilku", "kilkoma", "pare", "paru", "paroma"), "a few"),
        "pol": "half a",
        **dict.fromkeys(("poltora", "poltorej"), "1 and a half"),
    },
    units={"weekend": "weekend", "tydzien": "week", "tygodni": "week", "dzien": "day",
           "dni": "day", "miesiac": "month", "miesiec": "month", "kwarta": "quarter",
           "rok": "year", "lat": "year", "godzin": "hour", "minut": "minute"},
    leads={
        "od": "since",
        "poczawszy od": "since",
        "do": "until",
        "przed": "before",
        "po": "after",
        "miedzy": "between",
        "pomiedzy": "between",
    },
    which={"przedostatni": "before last", "zaprzeszl": "before last", "zeszl": "last",
           "ubiegl": "last", "minion": "last", "poprzedni": "last", "ostatni": "last",
           r"t(?:ym|ego|en|ej|a|e)\b": "this", "biezac": "this",
           "przyszl": "next", "nastepn": "next", "najblizsz": "next"},
    parts={"poczatku": "early", "poczatek": "early", "polowie": "mid", "polowy": "mid",
           "polowa": "mid", "srodku": "mid", "koniec": "end of", "koncu": "end of",
           "konca": "end of", "koncem": "end of"},
    near={
        "przedwczoraj": "day before yesterday",
        "wczoraj wieczorem": "last night",
        "wczoraj": "yesterday",
        "dzisiaj": "today",
        "dzis": "today",
        "pojutrze": "day after tomorrow",
        "jutro": "tomorrow",
    },
    joints={"do": "to", "a": "to", "-": "to", "–": "to", "—": "to", "i": "and", "i w": "and",
            "oraz": "and", "lub": "or", "albo": "or"},
    patterns=(
        ("range", r"(?:(?P<between>miedzy|pomiedzy) |od |w dniach |(?=\d\d?\D)){ENDS}"
                  r"(?: {WHOSE} roku)?"),
        ("days", r"(?:{LEADWORD} )?(?:(?:we? )?{W},? )?(?:dnia )?"
                 r"(?:(?P<first>pierwszego)|{D})(?: ?(?:do|-|–|—) ?{UNTIL})? "
                 r"(?:{M}|{SHORT}\.?)" + _POLISH_YEAR),
        ("month", r"(?:na |w |pod |do |od )?{PART} {M}" + _POLISH_YEAR),
        ("month", r"(?:we? )?{WHICH} {M}"),
        ("month", r"(?:w|we|za|na|{LEADWORD}) {M}" + _POLISH_YEAR),
        ("month", r"{M} (?:{Y}(?: r(?:oku|\.)?)?|{WHOSE} roku)"),
        ("month", r"(?:na |w |pod |do |od )?{PART} {S}" + _POLISH_YEAR),
        ("month", r"(?:we? )?{WHICH} {S}"),
        ("month", r"(?:w|we|na|za|{LEADWORD}) {S}" + _POLISH_YEAR),
        ("month", r"{S} (?:{Y}(?: r(?:oku|\.)?)?|{WHOSE} roku)"),
        ("month", r"(?P<season>latem|jesienia)"),
        ("weekday", r"(?:we? )?{W} (?:w )?{WHICH} (?P<week>tygodni[ua])"),
        ("weekday", r"(?:we? )?{WHICH} {W}"),
        ("weekday", r"(?:(?!w (?:srody|soboty))we?|{LEADWORD}) {W}" + _POLISH_DAYTIME),
        ("rolling", r"(?:(?:w|przez|z|za) )?(?:ciagu )?ostatni(?:ch|e)(?: {N})? {U}"),
        ("rolling", r"(?:(?:w|przez|z|za) )?(?:ciagu )?{N} ostatni(?:ch|e) {U}"),
        ("period", r"(?:w |na |za |od |do |z )?{WHICH} {U}"),
        ("period", r"w (?P<unit>weekend)"),
        ("ago", r"{N}(?P<half> i pol)? {U} temu"),
        ("ago", r"(?P<one>(?P<unit>tydzien|miesiac|rok|dzien|godzine|minute)) temu"),
        ("ago", r"przed {N}(?P<half> i pol)? {U}"),
        ("ago", r"(?P<one>przed) (?P<unit>tygodniem|miesiacem|rokiem)"),
        ("year", r"(?:w|za|{LEADWORD}|{PART}) {Y}(?: r(?:oku|ok|\.)?)?"),
        ("year", r"{Y} r(?:oku|ok|\.)"),
        ("near", r"{NEAR}" + _POLISH_DAYTIME),
    ),
    articles="w|we|dniem",
    names="maja",
)  # fmt: skip
