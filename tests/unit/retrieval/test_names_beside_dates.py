"""Names that contain a word of a date, and dates beside names."""

from each import each
from named_days import NOW

from reservoir_cli.retrieval.question_dates.parser import find_dates

#: Names of people, companies, streets, songs and products.
NAMES = """
the invoice by May Lindqvist
a letter from August Wilson
the chairs from Summer Garden
die Kundennummer der März GmbH
die Rechnung von August Müller
welche Nummer haben wir bei März?
wer ist Frau Dezember?
der Vertrag mit der Januar AG
das Büro in der Straße des 17. Juni
le code de la place du 8 mai
le portail, avenue du 11 Novembre
la calle 2 de Mayo
la fiesta antes de Julio César
le chiavi di Via 25 Aprile
i biglietti di Maggio Musicale
dove ho comprato l'iPad 2 gen?
a loja na Rua 25 de Março
a Ponte 25 de Abril
het nummer van Zomer Tuinen
de monteur van Maart Installaties
ключ от квартиры на улице 8 Марта
sklep przy ulicy 3 Maja
我们一月一次的例会
雑誌5月号の表紙
『3月のライオン』は何巻まで
谁看过《四月物语》
"""
PERHAPS_NAMES = """
what did I hear from April?
which port does the March framework use?
mail from Summer about the roof
die Mail von Juli
il preventivo da Aprile
周六福的发票
五月花酒店
十月传媒的合同
日曜版の原稿
who has Friday Night Lights?
after Friday Night Lights, what else?
what does the March Framework do?
en Julio Iglesias, qué disco
"""
SURELY_DATES = """
what did I hear in April?
since March, what changed?
what did we do in the summer?
on Monday I called, did I?
WHAT DID WE DO IN MARCH WITH PETRA?
was war im März GELD wert?
was hat Anna am Freitag Mittag gesagt?
im August Urlaub
en mars Paul a dit quoi ?
Aprile 2025, cosa c'era?
il 25 aprile Anna ha detto cosa?
что решили 8 марта?
письмо от 5 окт
五月我们定的房租
5月预算是多少
周六开会说了什么
3月に決めた
what did I write in March Petra?
el contrato en Julio
On Monday Otto said what?
since Friday Anna is ill
el 3 de Mayo María llamó
Le 3 Mai Marie a dit quoi ?
cosa disse in Aprile
"""


@each("question", NAMES.strip().splitlines())
def test_a_name_that_contains_a_word_of_a_date_is_none(question):
    assert find_dates(question, NOW) == ()


@each("question", PERHAPS_NAMES.strip().splitlines())
def test_a_date_that_may_be_a_name_is_doubtful(question):
    assert [span.sure for span in find_dates(question, NOW)] == [False]


@each("question", SURELY_DATES.strip().splitlines())
def test_a_date_with_its_preposition_is_sure(question):
    assert [span.sure for span in find_dates(question, NOW)] == [True]
