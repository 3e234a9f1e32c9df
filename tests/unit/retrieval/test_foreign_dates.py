"""Dates in German, French, Spanish and Chinese, and texts that resemble them."""

import re

from each import each
from hypothesis import given
from hypothesis import strategies as st
from named_days import NOW, format_spans, spans
from test_question_dates import NEGATIVE as ENGLISH_WITHOUT
from test_question_dates import POSITIVE

from reservoir_cli.retrieval.question_dates.parser import find_dates, in_english

GERMAN = {
    "Was haben wir im Sommer 2023 besprochen?": "2023-06-01/2023-08-31",
    "im Fruehjahr": "03-01/05-31",
    "letzten Winter": "2025-12-01/2026-02-28",
    "im Herbst letzten Jahres": "2025-09-01/2025-11-30",
    "im zweiten Quartal": "04-01/06-30",
    "im 4. Quartal 2023": "2023-10-01/2023-12-31",
    "Ende des zweiten Quartals 2023": "2023-06-01/2023-06-30",
    "letztes Quartal": "2026-01-01/2026-03-31",
    "Was haben wir am 3. Februar besprochen?": "02-03",
    "am 3. Februar 2024": "2024-02-03",
    "am 3. Feb. 2024": "2024-02-03",
    "vom 3. bis 5. Februar 2024": "2024-02-03/2024-02-05",
    "am 03.02.2024": "2024-02-03",
    "am 3.2. haben wir geredet": "02-03",
    "am Montag, den 4. Mai": "05-04",
    "im Februar": "02-01/02-29",
    "im März 2024": "2024-03-01/2024-03-31",
    "im maerz 2024": "2024-03-01/2024-03-31",
    "letzten Mai": "2025-05-01/2025-05-31",
    "Anfang Juli": "07-01/07-10",
    "Ende Juni 2025": "2025-06-21/2025-06-30",
    "seit Januar": "2026-01-01/2026-05-13",
    "zwischen Januar und März 2024": "2024-01-01/2024-03-31",
    "gestern": "2026-05-12",
    "Was war gestern Abend?": "2026-05-12",
    "vorgestern": "2026-05-11",
    "was machen wir morgen?": "2026-05-14",
    "vor zwei Wochen": "2026-04-26/2026-05-02",
    "vor fünf Tagen": "2026-05-08",
    "vor fuenf Tagen": "2026-05-08",
    "vor ein paar Tagen": "2026-05-08/2026-05-11",
    "vor einem Monat": "2026-03-29/2026-04-28",
    "letzte Woche": "2026-05-04/2026-05-10",
    "vorletzte Woche": "2026-04-27/2026-05-03",
    "in den letzten drei Wochen": "2026-04-22/2026-05-13",
    "letztes Jahr": "2025-01-01/2025-12-31",
    "im Jahr 2023": "2023-01-01/2023-12-31",
    "seit 2023": "2023-01-01/2026-05-13",
    "am Montag": "2026-05-11",
    "letzten Freitag": "2026-05-08",
    "Montag letzter Woche": "2026-05-04",
    "am Wochenende": "2026-05-09/2026-05-10",
}
FRENCH = {
    "Qu'a-t-on dit au printemps ?": "03-01/05-31",
    "en été 2023": "2023-06-01/2023-08-31",
    "l'été dernier": "2025-06-01/2025-08-31",
    "cet hiver": "2026-12-01/2027-02-28",
    "à la fin de l'été 2023": "2023-08-01/2023-08-31",
    "au deuxième trimestre 2023": "2023-04-01/2023-06-30",
    "le trimestre dernier": "2026-01-01/2026-03-31",
    "le 3 février": "02-03",
    "le 3 fevrier": "02-03",
    "le 3 fe\u0301vrier": "02-03",
    "le 1er mars 2024": "2024-03-01",
    "Qu'est-ce qu'on a dit le lundi 4 mai ?": "05-04",
    "du 3 au 5 février": "02-03/02-05",
    "en mars": "03-01/03-31",
    "en mai 2024": "2024-05-01/2024-05-31",
    "depuis mars": "2026-03-01/2026-05-13",
    "début juillet": "07-01/07-10",
    "mi-mars": "03-11/03-21",
    "février dernier": "2026-02-01/2026-02-28",
    "entre mars et mai 2024": "2024-03-01/2024-05-31",
    "Qu'ai-je dit hier ?": "2026-05-12",
    "hier soir": "2026-05-12",
    "avant-hier": "2026-05-11",
    "aujourd'hui": "2026-05-13",
    "aujourd\u2019hui": "2026-05-13",
    "il y a deux semaines": "2026-04-26/2026-05-02",
    "il y a un an": "2024-11-11/2025-11-12",
    "la semaine dernière": "2026-05-04/2026-05-10",
    "le mois dernier": "2026-04-01/2026-04-30",
    "l'année dernière": "2025-01-01/2025-12-31",
    "l'an dernier": "2025-01-01/2025-12-31",
    "cette semaine": "2026-05-11/2026-05-17",
    "ces trois dernières semaines": "2026-04-22/2026-05-13",
    "lundi dernier": "2026-05-11",
    "qu'a-t-on décidé mardi ?": "2026-05-12",
    "le week-end dernier": "2026-05-09/2026-05-10",
    "en 2023": "2023-01-01/2023-12-31",
}
SPANISH = {
    "¿Qué decidimos en otoño de 2022?": "2022-09-01/2022-11-30",
    "en la primavera": "03-01/05-31",
    "el verano pasado": "2025-06-01/2025-08-31",
    "este invierno": "2026-12-01/2027-02-28",
    "a finales del verano de 2023": "2023-08-01/2023-08-31",
    "en el segundo trimestre de 2023": "2023-04-01/2023-06-30",
    "el trimestre pasado": "2026-01-01/2026-03-31",
    "3 de febrero": "02-03",
    "el 3 de febrero de 2024": "2024-02-03",
    "del 3 al 5 de febrero": "02-03/02-05",
    "el viernes 8 de mayo": "05-08",
    "en mayo": "05-01/05-31",
    "en mayo de 2024": "2024-05-01/2024-05-31",
    "a principios de julio": "07-01/07-10",
    "el pasado febrero": "2026-02-01/2026-02-28",
    "entre enero y marzo de 2024": "2024-01-01/2024-03-31",
    "¿Qué dije ayer?": "2026-05-12",
    "anteayer": "2026-05-11",
    "anoche": "2026-05-12",
    "hace dos semanas": "2026-04-26/2026-05-02",
    "hace un mes": "2026-03-29/2026-04-28",
    "hace unos días": "2026-05-08/2026-05-11",
    "la semana pasada": "2026-05-04/2026-05-10",
    "el año pasado": "2025-01-01/2025-12-31",
    "este año": "2026-01-01/2026-12-31",
    "las últimas tres semanas": "2026-04-22/2026-05-13",
    "el lunes": "2026-05-11",
    "el lunes pasado": "2026-05-11",
    "el fin de semana pasado": "2026-05-09/2026-05-10",
    "desde 2023": "2023-01-01/2026-05-13",
}
CHINESE = {
    "2023年夏天我们决定了什么": "2023-06-01/2023-08-31",
    "去年秋季": "2025-09-01/2025-11-30",
    "前年冬天": "2024-01-01/2024-12-31",
    "上个冬天": "2025-12-01/2026-02-28",
    "在春天": "03-01/05-31",
    "第二季度的预算": "04-01/06-30",
    "2023年第4季度": "2023-10-01/2023-12-31",
    "上个季度": "2026-01-01/2026-03-31",
    "5月花了多少钱": "05-01/05-31",
    "前年5月的计划": "2024-01-01/2024-12-31",
    "前些天我们说了什么": "2026-05-06/2026-05-12",
    "在4月27号这天我在公园里跑了多久": "04-27",
    "4月27日": "04-27",
    "四月二十七号": "04-27",
    "2024年4月27日": "2024-04-27",
    "二〇二四年四月": "2024-04-01/2024-04-30",
    "4月27日到5月2日": "04-27/05-02",
    "3月和5月": "03-01/03-31; 05-01/05-31",
    "2023年": "2023-01-01/2023-12-31",
    "去年5月": "2025-05-01/2025-05-31",
    "昨天晚上我们说了什么": "2026-05-12",
    "前天": "2026-05-11",
    "去年": "2025-01-01/2025-12-31",
    "上周": "2026-05-04/2026-05-10",
    "上个星期三": "2026-05-06",
    "周一": "2026-05-11",
    "上周末": "2026-05-09/2026-05-10",
    "上个月": "2026-04-01/2026-04-30",
    "三天前": "2026-05-10",
    "两周前": "2026-04-26/2026-05-02",
    "几天前": "2026-05-08/2026-05-11",
    "最近三天": "2026-05-10/2026-05-13",
}
RANGES = {
    "zwischen dem 3. und dem 10. Mai": "05-03/05-10",
    "3.–10. Mai": "05-03/05-10",
    "vom 28. April bis zum 3. Mai": "04-28/05-03",
    "vom 3.5. bis zum 10.5.": "05-03/05-10",
    "von März bis Juni 2026": "2026-03-01/2026-06-30",
    "von Juni bis März 2026": "2025-06-01/2026-03-31",
    "von November 2024 bis Februar 2025": "2024-11-01/2025-02-28",
    "von Anfang März bis Mai 2025": "2025-03-01/2025-05-31",
    "Was haben wir von Mai bis Juli gemacht?": "05-01/07-31",
    "zwischen Mai und August": "05-01/08-31",
    "von Montag bis Mittwoch": "2026-05-11/2026-05-13",
    "zwischen Montag und Mittwoch": "2026-05-11/2026-05-13",
    "zwischen Anfang März und Ende April": "03-01/04-30",
    "zwischen gestern und heute": "2026-05-12/2026-05-13",
    "zwischen 2020 und 2022": "2020-01-01/2022-12-31",
    "von März bis Juni letzten Jahres": "2025-03-01/2025-06-30",
    "seit Montag": "2026-05-11/2026-05-13",
    "entre le 3 et le 10 mai": "05-03/05-10",
    "du 3 au 10 mai": "05-03/05-10",
    "du 3 au 10 mai de l'année dernière": "2025-05-03/2025-05-10",
    "du lundi 4 mai au mercredi 6 mai": "05-04/05-06",
    "de mars à juin 2026": "2026-03-01/2026-06-30",
    "de mars 2025 à juin 2025": "2025-03-01/2025-06-30",
    "d'août à octobre 2025": "2025-08-01/2025-10-31",
    "depuis mars jusqu'en mai": "03-01/05-31",
    "du lundi au mercredi": "2026-05-11/2026-05-13",
    "entre avant-hier et aujourd'hui": "2026-05-11/2026-05-13",
    "entre lundi dernier et hier": "2026-05-11/2026-05-12",
    "de 2020 à 2022": "2020-01-01/2022-12-31",
    "entre el 3 y el 10 de mayo": "05-03/05-10",
    "del 3 al 10 de mayo": "05-03/05-10",
    "desde el 3 hasta el 10 de mayo": "05-03/05-10",
    "desde marzo hasta junio de 2026": "2026-03-01/2026-06-30",
    "de lunes a miércoles": "2026-05-11/2026-05-13",
    "de marzo a junio del año pasado": "2025-03-01/2025-06-30",
    "entre ayer y hoy": "2026-05-12/2026-05-13",
    "de 2020 a 2022": "2020-01-01/2022-12-31",
    "desde 2020 hasta 2022": "2020-01-01/2022-12-31",
    "5月3日到10日": "05-03/05-10",
    "5月3-10日": "05-03/05-10",
    "从5月3日至5月10日": "05-03/05-10",
    "2025年5月3日到10日": "2025-05-03/2025-05-10",
    "3-6月": "03-01/06-30",
    "3月和6月之间": "03-01/06-30",
    "2020到2022年": "2020-01-01/2022-12-31",
    "3月以来": "2026-03-01/2026-05-13",
    "从2023年到现在": "2023-01-01/2026-05-13",
}
LISTS = {
    "am 3. und am 10. Mai": "05-03; 05-10",
    "am 3. und 10. Mai 2025": "2025-05-03; 2025-05-10",
    "am Montag und am Mittwoch": "2026-05-11; 2026-05-06",
    "im März und im Juni": "03-01/03-31; 06-01/06-30",
    "le 3 et le 10 mai": "05-03; 05-10",
    "le 3 mai et le 10 mai": "05-03; 05-10",
    "les notes de mars et mai 2024": "2024-03-01/2024-03-31; 2024-05-01/2024-05-31",
    "el 3 y el 10 de mayo": "05-03; 05-10",
    "el lunes y el miércoles": "2026-05-11; 2026-05-06",
    "5月3日和5月10日": "05-03; 05-10",
    "5月3日和10日": "05-03; 05-10",
}
WITHOUT = """
il a été passé en revue
la machine a été 2023 fois en panne
la primavera está llegando
au premier trimestre de grossesse
en el segundo trimestre del embarazo
夏天怎么防晒
第二季怎么样
什么是5月花号
12月龄的宝宝吃什么
13月5日说了什么
5月40日
letztes Jahrzehnt
Was ist hier los?
Wer geht hier ans Telefon?
hier
was hier steht
gibt es hier ein Buch
Guten Morgen, was tun?
Der Morgen war kalt
Am Morgen trinke ich Kaffee
am Morgen und am Mittag
Kann man das so machen?
Wie viele Tage hat ein Jahr?
jeden Montag
montags
Robinson und Freitag
Mai Thi erklärt das
Juli ist meine Tochter
Version 3.2.1
Version 3.2.2023
Python 3.11.2
am 3.2.1 gescheitert
vor allem
vor zwei Leuten
vor dem Haus
seit langem
ein Jahr lang
in 2000 Wörtern
bis 2000 Zeichen
zwischen 2000 und 2020 kcal am Tag
von 2000 bis 2020 Pixel
von 3 bis 10 Personen
vom 3. bis zum 10. Stock
am 3. und am 10. Platz
im Fall der Fälle
la planète Mars est rouge
les habitants de Mars
Mars attaque
Mars 2020 rover
mais que mange un chat ?
mon mari
le lundi je travaille
le lundi et le mardi je travaille
chaque lundi
mardi gras
vendredi saint
il y a deux jours de marche
il y a trois chats
il y a un problème
en 2000 mots
entre 2000 et 2020 pixels
de 3 à 10 personnes
sept jours
pendant trois semaines
toute la journée
deux ans de garantie
Avril Lavigne
pasa la sal
el mar y el sol
con mayo y ketchup
Julio Iglesias
Santo Domingo
los lunes
cada lunes
por la mañana
la mañana
hoy en día
hace calor
hace tiempo
entre 2000 y 2020 píxeles
entre el mar y el sol
un vuelo de mar a mar
una semana
en 2000 palabras
todo el año
版本2.3.1
第4号
三个月
四个月大
3到6个月的宝宝
每周一到周五上班
每周一次
一周一次
每周一
第3周
目前天气怎么样
聪明天才
过去年代
以前年轻的时候
日本周刊
五月天的歌
月票多少钱
后天性免疫
十月怀胎
3天
2023年度报告
mars.py
src/fevrier/notes.md
février-notes.md
`gestern`
```\n昨天\n```
""".replace("\\n", "\n").strip()
NEGATIVE = [line for line in WITHOUT.splitlines() if "```" not in line and line != "昨天"]


@each(("question", "expected"), (GERMAN | FRENCH | SPANISH | CHINESE).items())
def test_a_foreign_date_is_parsed(question, expected):
    assert format_spans(find_dates(question, NOW)) == format_spans(spans(expected))


@each(("question", "expected"), RANGES.items())
def test_a_foreign_range_is_one_span(question, expected):
    assert format_spans(find_dates(question, NOW)) == format_spans(spans(expected))


@each(("question", "expected"), LISTS.items())
def test_two_foreign_dates_that_are_no_range_stay_two(question, expected):
    assert format_spans(find_dates(question, NOW)) == format_spans(spans(expected))


@each("question", [*NEGATIVE, "```\n昨天\n```"])
def test_text_that_resembles_a_foreign_date_is_not_parsed(question):
    assert find_dates(question, NOW) == ()


#: German words around days in digits, which are read in any language.
_GERMAN = {"am 25.01. beim Zahnarzt", "vom 3.5. bis 7.5.2024"}


@each("question", sorted({*POSITIVE, *ENGLISH_WITHOUT} - _GERMAN))
def test_english_dates_are_not_affected(question):
    assert " ".join(in_english(question).split()) == " ".join(question.split())


_MONTHS = {
    "am {} {}": "Januar Februar März April Mai Juni Juli August September Oktober November "
    "Dezember",
    "le {} {}": "janvier février mars avril mai juin juillet août septembre octobre novembre "
    "décembre",
    "el {} de {}": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre "
    "diciembre",
    "il {} {}": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre "
    "novembre dicembre",
    "no dia {} de {}": "janeiro fevereiro março abril maio junho julho agosto setembro outubro "
    "novembro dezembro",
    "op {} {}": "januari februari maart april mei juni juli augustus september oktober november "
    "december",
    "письмо от {} {}": "января февраля марта апреля мая июня июля августа сентября октября ноября "
    "декабря",
    "dnia {} {}": "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września "
    "października listopada grudnia",
}


@given(st.sampled_from(sorted(_MONTHS)), st.dates(), st.booleans(), st.booleans())
def test_every_day_of_a_year_is_parsed_in_each_language(template, day, upper, with_year):
    year = 1971 + day.year % 50
    day = day.replace(year=2024)
    ordinal = f"{day.day}." if template.startswith("am") else str(day.day)
    phrase = template.format(ordinal, _MONTHS[template].split()[day.month - 1])
    joint = " de " if " de " in template else " "
    if day.month == 2 and day.day == 29:
        year = 2024
    question = phrase + (f"{joint}{year}" if with_year else "")
    dates = find_dates(question.upper() if upper else question, NOW)
    expected = f"{year if with_year else 2000}-{day:%m-%d}"
    assert [str(span.start) for span in dates] == [expected]


#: Words of prose in each language that no date contains.
_PROSE = (
    "hier ist mars sal mar mai mon ans hace el la le los las de il y a un une dos deux zwei vor, "
    "pour por para che sol wir nous que qué 的 了 在 月票 版本 2.3 3.11 "
    "día-a-día sont été Fall Last gut bien 我们 不"
).split()


def _names_no_english_date(question: str) -> bool:
    """Return whether no two words form an English date such as "last March"."""
    return not re.search(r"\bLast (mar|mon|Fall)\b", question)


@given(st.lists(st.sampled_from(_PROSE), max_size=12).map(" ".join).filter(_names_no_english_date))
def test_words_next_to_dates_form_no_date(question):
    # "hier" is a date in French only.
    assert {str(span.start) for span in find_dates(question, NOW)} <= {"2026-05-12"}


@given(st.text(alphabet="年月日号周天前昨今去一二十0123456789.,- ab") | st.text())
def test_any_question_can_be_parsed(question):
    assert all(span.start < span.end for span in find_dates(question, NOW))
