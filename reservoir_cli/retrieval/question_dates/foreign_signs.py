"""Words by which a date in another language than English is noticed, without its patterns."""

from itertools import product
from typing import NamedTuple

_DUTCH_DAYS = "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag".split()


class Signs(NamedTuple):
    """Words in lower case and without accents, separated by spaces."""

    own: str  # words of this language only; a date contains one of these or of the shared ones
    shared: str  # words that other languages use, too
    beside: str  # words beside dates, which tell between languages
    english: str = ""  # words that English uses, too: only if the text is in this language


#: Words after a number that make it a count, not a year.
COUNTED = (
    "(?!(?: (?:bis|und|et|y|hasta|a|al|e|en|tot|ate|до|по|и|i|do) \\d+)? (?:wort|worte|zeichen|"
    "tokens?|euro|personen|leute|menschen|zeilen|stuck|mots?|lignes?|personnes|gens|palabras|"
    "lineas|personas|caracter|parol|righe|person[ae]|caratter|palavras|linhas|pessoas|woorden|"
    "regels|mensen|tekens|слов|строк|знак|символ|человек|людей|рубл|slow|wierszy|linii|znakow|osob|"
    "zlot|"
    "metr|meter|km|dollar|byte|bit|mb|gb|ms|p[ií]xel|kcal|gramm|prozent))"
)
#: Years may have no other word of a date: "de 2020 a 2022", "nel 2023". A group is named after the
#: languages that say so.
YEARS = (
    r"(?i)\b(?:(?P<de>(?:zwischen|von) {Y} (?:bis|und) {Y})"
    r"|(?P<fr_es_pt>(?:entre|desde|de) {Y} (?:et|[aà]|y|hasta|e|ate|até) {Y})"
    r"|(?P<it>(?:dal|tra il|fra il) {Y} (?:al|e|e il) {Y}|(?:nel|dal|del) {Y})"
    r"|(?P<pt>(?:em|desde|ate|até) {Y})"
    r"|(?P<nl>(?:tussen|van) {Y} (?:en|tot) {Y}|(?:sinds|vanaf|tot) {Y})"
    r"|(?P<ru>(?:между|с) {Y} (?:и|по|до) {Y}|(?:в|во|с|до|за) {Y})"  # noqa: RUF001
    r"|(?P<pl>(?:od|miedzy|między) {Y} (?:do|a|i) {Y}|(?:w|od) {Y}))\b"
).replace("{Y}", r"\d{4}") + COUNTED
FOREIGN_SIGNS = {
    "de": Signs(
        own="gestern vorgestern heute ubermorgen uebermorgen neulich januar janner februar marz "
        "maerz oktober dezember montag dienstag mittwoch donnerstag freitag samstag sonnabend "
        "sonntag woche wochen wochenende monat monate monaten jahr jahre jahren jahres tagen "
        "fruhling fruhjahr herbst quartal quartals",
        shared="morgen april mai juni juli august september november im am vom seit mrz okt dez "
        "stunde stunden minuten tag sommer winter",
        beside="vor bis zwischen und dem den letzte letzten",
    ),
    "fr": Signs(
        own="aujourd demain janvier fevrier avril juillet aout septembre octobre novembre decembre "
        "lundi mardi mercredi jeudi vendredi samedi dimanche semaine semaines annee annees "
        "printemps automne hiver",
        shared="hier mars mai juin mois jour jours an ans soir matin en depuis week weekend "
        "heure heures journee minutes ete trimestre",
        beside="le la les du au et il y dernier derniere entre",
    ),
    "es": Signs(
        own="ayer anteayer antier anoche hoy enero febrero marzo abril mayo junio julio septiembre "
        "setiembre octubre noviembre diciembre lunes martes miercoles jueves viernes sabado "
        "domingo semana semanas dias meses anos primavera verano otono invierno",
        shared="agosto manana mes ano dia horas minutos en desde hace trimestre",
        beside="el la los del al y pasado pasada hasta entre",
    ),
    "it": Signs(
        own="ieri altroieri avantieri oggi domani dopodomani gennaio febbraio aprile maggio giugno "
        "luglio settembre ottobre novembre dicembre lunedi martedi mercoledi giovedi venerdi "
        "sabato domenica settimana settimane giorni mese mesi anno anni scorso scorsa autunno "
        "stamattina stamani stasera stanotte",
        shared="marzo agosto giorno giornata primavera estate inverno ore ora minuti trimestre "
        "giu lug ott dic",
        beside="il nel nella dal dall dalla al da di tra fra e fa scorso scorsa fino",
        english="weekend",
    ),
    "pt": Signs(
        own="anteontem ontem hoje amanha janeiro fevereiro maio junho julho setembro outubro "
        "dezembro sabado domingo semana semanas dias meses anos outono verao",
        shared="marco abril agosto novembro mes ano dia hora horas minutos primavera inverno "
        "segunda terca quarta quinta sexta trimestre manha noite",
        beside="em no na o de do da e ha atras faz passado passada desde ate entre",
    ),
    "nl": Signs(
        own="gisteren eergisteren vandaag overmorgen gisteravond gisterenavond gisterochtend "
        "gistermiddag vanochtend vanmorgen vanmiddag vanavond vannacht morgenochtend "
        "morgenavond januari februari maart oktober "
        + " ".join((*_DUTCH_DAYS, ""))
        + " ".join(map("".join, product(_DUTCH_DAYS, ("avond", "ochtend", "middag", "nacht"))))
        + " weken maand maanden jaar jaren dagen zomer lente herfst voorjaar najaar kwartaal "
        "weekeinde geleden vorige voorvorige afgelopen volgende komende deze",
        shared="mei juni juli augustus morgen dag uur uren minuten sinds tussen vanaf eind medio",
        beside="op in van tot en het de begin",
        english="april september november december week weekend winter",
    ),
    "ru": Signs(
        own="вчера позавчера сегодня завтра послезавтра днях января январе январь январем февраля "
        "феврале февраль февралем марта марте март мартом апреля апреле апрель апрелем мая мае май "
        "маем июня июне июнь июнем июля июле июль июлем августа августе август августом сентября "
        "сентябре сентябрь сентябрем октября октябре октябрь октябрем ноября ноябре ноябрь ноябрем "
        "декабря декабре декабрь декабрем понедельник понедельника вторник вторника среду среды "
        "четверг четверга пятницу пятницы субботу субботы воскресенье воскресенья неделю недели "
        "неделе недель месяц месяца месяце месяцев квартал квартале квартала год года году лет "
        "полгода назад выходные выходных весной весны летом лета осенью осени осень зимой зимы "
        "последние последних янв февр фев апр июн июл авг сент окт нояб дек",
        shared="",
        beside="",
    ),
    "pl": Signs(
        own="wczoraj przedwczoraj dzis dzisiaj jutro pojutrze stycznia styczniu styczen lutego "
        "lutym marcu marzec kwietnia kwietniu kwiecien maju czerwca czerwcu czerwiec lipca lipcu "
        "lipiec sierpnia sierpniu sierpien wrzesnia wrzesniu wrzesien pazdziernika pazdzierniku "
        "pazdziernik listopada listopadzie listopad grudnia grudniu grudzien poniedzialek "
        "poniedzialku wtorek wtorku srode srody czwartek czwartku piatek piatku sobote soboty "
        "niedziele niedzieli tydzien tygodniu tygodnie tygodni tygodnia tygodniem miesiac miesiacu "
        "miesiaca miesiace miesiacem miesiecy kwartal kwartale kwartalu rok roku rokiem temu "
        "zeszlym zeszlego zeszly ostatnich latem lecie wiosne wiosny wiosna jesienia jesieni "
        "jesien zimy zima zime styczniem kwietniem majem czerwcem lipcem sierpniem wrzesniem "
        "pazdziernikiem listopadem grudniem tygodniami miesiacami latami dniami maja",
        shared="marca marcem luty dni lata lato lat minut godzin ostatnie sty lut kwi cze wrz "
        "paz gru",
        beside="w we od do na po przed miedzy pod koniec tym tego",
        english="weekend",
    ),
}
