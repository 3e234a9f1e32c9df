"""Dates in several languages mean what the English ones beside them mean."""
# ruff: noqa: RUF001 - letters of other scripts

from each import each
from named_days import NOW, format_spans, spans

from reservoir_cli.retrieval.question_dates.parser import find_dates

#: A line for each date: in English, Italian, Portuguese and Dutch.
ROMANCE_AND_DUTCH = """
on 12 April | il 12 aprile | em 12 de abril | op 12 april
on 25 January 2024 | il 25 gennaio del 2024 | no dia 25 de janeiro de 2024 | op 25 januari 2024
on 1 August | il primo agosto | em 1º de agosto | op de 1e augustus
on 5 October | il 5 ott. |  | op 5 okt.
on Monday, 4 May | lunedì 4 maggio | na segunda-feira, 4 de maio | op maandag 4 mei
on 8 September last year | l'8 settembre dell'anno scorso | em 8 de setembro do ano passado \
| op 8 september vorig jaar
since 20 March | dal 20 marzo | desde 20 de março | sinds 20 maart
in March | a marzo | em março | in maart
in May 2025 | a maggio 2025 | em maio de 2025 | in mei 2025
in March last year | a marzo dell'anno scorso | em março do ano passado | in maart vorig jaar
early July | ai primi di luglio | no começo de julho | begin juli
mid February | a metà febbraio | em meados de fevereiro | medio februari
at the end of November 2025 | alla fine di novembre 2025 | no fim de novembro de 2025 \
| eind november 2025
last April | lo scorso aprile | em abril passado | afgelopen april
since January | da gennaio | desde janeiro | vanaf januari
between January and April 2024 | tra gennaio e aprile 2024 | entre janeiro e abril de 2024 \
| tussen januari en april 2024
from 3 to 10 May | dal 3 al 10 maggio | de 3 a 10 de maio | van 3 tot en met 10 mei
from 28 April to 3 May | dal 28 aprile al 3 maggio | de 28 de abril a 3 de maio \
| van 28 april tot 3 mei
from Monday to Wednesday | da lunedì a mercoledì | de segunda a quarta | van maandag tot woensdag
from 2020 to 2022 | dal 2020 al 2022 | de 2020 a 2022 | van 2020 tot 2022
on 3 May and 10 May | il 3 e il 10 maggio | em 3 e 10 de maio | op 3 en 10 mei
in 2023 | nel 2023 | em 2023 | in het jaar 2023
since 2023 | dal 2023 | desde 2023 | sinds 2023
in summer 2023 | nell'estate del 2023 | no verão de 2023 | in de zomer van 2023
last summer | la scorsa estate | no verão passado | afgelopen zomer
in the spring | in primavera | na primavera | in de lente
last winter | l'inverno scorso | o inverno passado | vorige winter
in late summer 2023 | alla fine dell'estate 2023 | no fim do verão de 2023 | eind zomer 2023
in Q3 2023 | nel terzo trimestre del 2023 | no terceiro trimestre de 2023 \
| in het derde kwartaal 2023
last quarter | lo scorso trimestre | no trimestre passado | vorig kwartaal
yesterday | ieri | ontem | gisteren
day before yesterday | avantieri | antes de ontem | eergisteren
last night | ieri sera | ontem à noite | gisteravond
tomorrow | domani | amanhã | morgenochtend
the other day | l'altro giorno | no outro dia |
ten days ago | una decina di giorni fa | há dez dias | tien dagen geleden
three weeks ago | tre settimane fa | três semanas atrás | drie weken terug
a year ago | un anno fa | faz um ano | een jaar geleden
a few months ago | qualche mese fa | há alguns meses | een paar maanden geleden
half a year ago | | há meio ano | een half jaar geleden
last week | la settimana scorsa | semana passada | vorige week
last month | il mese passato | no mês passado | vorige maand
last year | l'anno scorso | ano passado | verleden jaar
week before last | | semana retrasada | voorvorige week
this week | questa settimana | esta semana | deze week
this year | quest'anno | neste ano | dit jaar
next month | il prossimo mese | no mês que vem | volgende maand
the last four weeks | le ultime quattro settimane | nas últimas quatro semanas \
| de afgelopen vier weken
the last few days | negli ultimi giorni | nos últimos dias | de laatste dagen
last weekend | lo scorso fine settimana | no fim de semana passado | afgelopen weekend
on Tuesday | martedì | na terça-feira | op dinsdag
on Sunday | domenica | no domingo | zondag
last Friday | venerdì scorso | na última sexta | vrijdag jl.
Friday of last week | venerdì della settimana scorsa | sexta da semana passada \
| vrijdag vorige week
since Monday | da lunedì | desde segunda-feira | sinds maandag
"""
QUESTIONS = "what about {}? | Di cosa abbiamo parlato {}? | Do que falamos {}? \
| Wat zeiden we {}?"

#: In English, Russian and Polish.
SLAVIC = """
on 12 April | 12 апреля | 12 kwietnia
on 25 January 2024 | 25 января 2024 г. | 25 stycznia 2024 r.
on 1 August | первого августа | 1 sierpnia
on 5 October | 5 окт. | 5 paź.
on Monday, 4 May | в понедельник, 4 мая | w poniedziałek 4 maja
on 8 September last year | 8 сентября прошлого года | 8 września zeszłego roku
since 20 March | с 20 марта | od 20 marca
after 15 May | после 15 мая | po 15 maja
in March | в марте | w marcu
in December | в декабре | w grudniu
in May 2025 | в мае 2025 года | w maju 2025 roku
in March last year | в марте прошлого года | w marcu ubiegłego roku
early July | в начале июля | na początku lipca
mid February | в середине февраля | w połowie lutego
at the end of November 2025 | в конце ноября 2025 года | pod koniec listopada 2025 roku
last April | в прошлом апреле | w zeszłym kwietniu
since January | с января | od stycznia
between January and April 2024 | между январём и апрелем 2024 | między styczniem a kwietniem 2024
from 3 to 10 May | с 3 по 10 мая | od 3 do 10 maja
from 28 April to 3 May | с 28 апреля по 3 мая | od 28 kwietnia do 3 maja
from 2020 to 2022 | с 2020 по 2022 год | od 2020 do 2022 roku
on 3 May and 10 May | 3 и 10 мая | 3 i 10 maja
in 2023 | в 2023 | w 2023
since 2023 | с 2023 года | od 2023 roku
in summer 2023 | летом 2023 года | latem 2023 roku
in autumn | осенью | jesienią
last summer | прошлым летом | zeszłego lata
last winter | прошлой зимой | zeszłej zimy
in Q3 2023 | в третьем квартале 2023 года | w trzecim kwartale 2023 roku
last quarter | в прошлом квартале | w ubiegłym kwartale
yesterday | вчера утром | wczoraj rano
day before yesterday | позавчера | przedwczoraj
today | сегодня | dziś
the other day | на днях |
five days ago | пять дней назад | pięć dni temu
three weeks ago | три недели тому назад | trzy tygodnie temu
one week ago | неделю назад | tydzień temu
two years ago | два года назад | dwa lata temu
one month ago | месяц назад | przed miesiącem
six weeks ago | шесть недель назад | przed sześcioma tygodniami
a few months ago | несколько месяцев назад | parę miesięcy temu
half a year ago | полгода назад | pół roku temu
last week | на прошлой неделе | w ubiegłym tygodniu
last month | в прошлом месяце | w zeszłym miesiącu
last year | в прошлом году | w zeszłym roku
week before last | на позапрошлой неделе |
this week | на этой неделе | w tym tygodniu
next month | в следующем месяце | w przyszłym miesiącu
the last four weeks | за последние четыре недели | przez ostatnie cztery tygodnie
the last few days | за последние дни | w ostatnich dniach
last weekend | в прошлые выходные | w zeszły weekend
on Tuesday | во вторник | we wtorek
on Sunday | в воскресенье | w niedzielę
last Friday | в прошлую пятницу | w ostatni piątek
Friday of last week | в пятницу на прошлой неделе | w piątek zeszłego tygodnia
since Monday | с понедельника | od poniedziałku
"""
SLAVIC_QUESTIONS = "what about {}? | О чём мы говорили {}? | O czym rozmawialiśmy {}?"

#: In English and Japanese.
JAPANESE = """
on 12 April | 4月12日
on 25 January 2024 | 2024年1月25日
on 4 May | 5月4日（月）
on 8 September last year | 去年の9月8日
from 3 to 10 May | 5月3日から10日まで
from March to June 2025 | 2025年3月から6月まで
in March and in June | 3月と6月
in March | 三月に
in early July | 7月上旬
in mid February | 2月中旬
at the end of November 2025 | 2025年11月下旬
since January | 1月から
since 2023 | 2023年以降
in summer 2023 | 2023年の夏
in summer last year | 昨年の夏
in the spring | 春に
this summer | この夏に
in Q3 2023 | 2023年第3四半期
last quarter | 前四半期
yesterday | 昨日
yesterday | きのう
day before yesterday | 一昨日
day before yesterday | おととい
last night | 昨夜
tomorrow | 明日
day after tomorrow | 明後日
the other day | 先日
three days ago | 三日前
a few days ago | 数日前
two weeks ago | 二週間前
one month ago | 1ヶ月前
six months ago | 6か月前
half a year ago | 半年前
two hours ago | 2時間前
last week | 先週
week before last | 先々週
this week | 今週
last month | 先月
2 months ago | 先々月
this month | 今月
last year | 昨年
year before last | 一昨年
next year | 来年
the last 3 weeks | この三週間
the last 2 months | 過去2か月
last weekend | 先週末
Friday of last week | 先週の金曜日
on Tuesday | 火曜日
"""
JAPANESE_QUESTIONS = "what about {}? | {}、何を決めた？"

#: In English and another language.
HALVES = """
half a month ago | vor einem halben Monat
half a month ago | il y a un demi-mois
half a month ago | hace medio mes
half a month ago | mezzo mese fa
half a month ago | há meio mês
half a month ago | een halve maand geleden
half a month ago | полмесяца назад
half a month ago | pół miesiąca temu
half a month ago | 半个月前
half a month ago | 半个月之前
half a week ago | vor einer halben Woche
half a week ago | il y a une demi-semaine
half a week ago | hace media semana
half a week ago | mezza settimana fa
half a week ago | há meia semana
half a week ago | een halve week geleden
half a week ago | полнедели назад
half a week ago | pół tygodnia temu
half a week ago | 半週間前
half a day ago | vor einem halben Tag
half a day ago | il y a une demi-journée
half a day ago | hace medio día
half a day ago | mezza giornata fa
half a day ago | há meio dia
half a day ago | een halve dag geleden
half a day ago | полдня назад
half a day ago | pół dnia temu
half a day ago | 半天前
half a day ago | 半日前
half an hour ago | vor einer halben Stunde
half an hour ago | il y a une demi-heure
half an hour ago | hace media hora
half an hour ago | mezz'ora fa
half an hour ago | há meia hora
half an hour ago | een half uur geleden
half an hour ago | полчаса назад
half an hour ago | pół godziny temu
half an hour ago | 半小时前
half an hour ago | 半時間前
half a year ago | vor einem halben Jahr
half a year ago | il y a une demi-année
half a year ago | hace medio año
half a year ago | mezzo anno fa
half a year ago | há meio ano
half a year ago | een half jaar geleden
half a year ago | полгода назад
half a year ago | pół roku temu
half a year ago | 半年前
a month and a half ago | vor anderthalb Monaten
a month and a half ago | vor eineinhalb Monaten
a month and a half ago | il y a un mois et demi
a month and a half ago | hace un mes y medio
a month and a half ago | hace mes y medio
a month and a half ago | un mese e mezzo fa
a month and a half ago | há um mês e meio
a month and a half ago | um mês e meio atrás
a month and a half ago | anderhalve maand geleden
a month and a half ago | полтора месяца назад
a month and a half ago | месяц с половиной назад
a month and a half ago | półtora miesiąca temu
a month and a half ago | 一个半月前
a month and a half ago | 1ヶ月半前
a month and a half ago | one and a half months ago
a week and a half ago | vor anderthalb Wochen
a week and a half ago | il y a une semaine et demie
a week and a half ago | hace una semana y media
a week and a half ago | una settimana e mezza fa
a week and a half ago | há uma semana e meia
a week and a half ago | anderhalve week geleden
a week and a half ago | полторы недели назад
a week and a half ago | półtora tygodnia temu
a week and a half ago | 1週間半前
a week and a half ago | 一周半前
two and a half years ago | vor zweieinhalb Jahren
two and a half years ago | vor zwei einhalb Jahren
two and a half years ago | il y a deux ans et demi
two and a half years ago | hace dos años y medio
two and a half years ago | due anni e mezzo fa
two and a half years ago | há dois anos e meio
two and a half years ago | dois anos e meio atrás
two and a half years ago | tweeënhalf jaar geleden
two and a half years ago | twee en een half jaar geleden
two and a half years ago | два с половиной года назад
two and a half years ago | два года с половиной назад
two and a half years ago | dwa i pół roku temu
two and a half years ago | 两年半前
two and a half years ago | 2年半前
three and a half months ago | vor dreieinhalb Monaten
three and a half months ago | il y a trois mois et demi
three and a half months ago | hace tres meses y medio
three and a half months ago | tre mesi e mezzo fa
three and a half months ago | há três meses e meio
three and a half months ago | drieënhalve maand geleden
three and a half months ago | три с половиной месяца назад
three and a half months ago | trzy i pół miesiąca temu
three and a half months ago | 三个半月前
three and a half months ago | 三ヶ月半前
two and a half hours ago | vor zweieinhalb Stunden
two and a half hours ago | il y a deux heures et demie
two and a half hours ago | hace dos horas y media
two and a half hours ago | due ore e mezza fa
two and a half hours ago | há duas horas e meia
two and a half hours ago | tweeënhalf uur geleden
two and a half hours ago | два с половиной часа назад
two and a half hours ago | dwie i pół godziny temu
two and a half hours ago | 两个半小时前
two and a half hours ago | 2時間半前
two and a half hours ago | two hours and a half ago
"""
HALVES_IN_DAYS = {
    "half an hour ago": "2026-05-13",
    "half a day ago": "2026-05-13",
    "half a week ago": "2026-05-08/2026-05-10",
    "half a month ago": "2026-04-21/2026-05-05",
    "a month and a half ago": "2026-03-22/2026-04-05",
    "a week and a half ago": "2026-05-01/2026-05-03",
    "two and a half years ago": "2023-08-14/2024-02-12",
}

#: Words of dates that name no day there.
WITHOUT = """
sei stanco?
sei file e due cartelle
due ore di viaggio
tre giorni di ferie
per due settimane
quattro anni di garanzia
tutto il giorno
il gatto ha 3 mesi
al giorno d'oggi
cosa fa il comando?
la fine del progetto
la domenica andiamo a messa
il sabato e la domenica riposo
ogni lunedì ho lezione
di martedì non si parte
giovedì grasso
chi è Domenica?
Luigi Di Maio
Marco Polo
il pianeta Marte
real estate 2023
in 2000 parole
riga 12 del file
versione 2.3.1
le ultime righe
primo trimestre di gravidanza
confio em Marco
de Marco para Ana
moro no Rio de Janeiro
na segunda vez
na segunda reunião decidimos
em segunda mão
a sexta sinfonia
hoje em dia
dia a dia
toda segunda-feira
às segundas-feiras
sexta-feira santa
Plácido Domingo
três dias de férias
por duas semanas
há três gatos
há dois dias de viagem
em 2000 palavras
entre 2000 e 2020 pixels
no primeiro trimestre de gravidez
linha 12
5 out of 7
wat zei Mei?
een brief voor Mei
elke maandag
's maandags
de zondag is een rustdag
goede morgen
in de morgen
's morgens
vandaag de dag
twee dagen vrij
drie weken lang
een jaar garantie
de week heeft zeven dagen
in 2000 woorden
van 3 tot 10 personen
eind goed al goed
de laatste regels
laatste maar niet minst
regel 12
wat is hier
в среде разработки
установи в среду разработки
зависит от среды
каждый понедельник
по понедельникам
мне 5 лет
много лет назад
весь день
три месяца гарантии
Марта сказала
до Мая
час пик
в 2000 слов
от 3 до 10 человек
последние строки
на следующий день
это неделя моды
семь файлов
в начале файла
pszczółka Maja
wiadomość od Maja
co poniedziałek
w każdy piątek
w środy
trzy lata gwarancji
na lata 2021-2027
wiele lat temu
cały rok
dzień dobry
od 3 do 10 osób
w 2000 słów
test tygodnia
za pięć minut
siedem plików
pod koniec linii
lis biegnie
raz w tygodniu
la marca nueva
三日月
五月病
日曜大工
毎週月曜日
月曜日ごと
前年比
2000年問題
三日坊主
三日間
一週間の予定
3ヶ月の契約
四季
春日さん
夏目漱石
日本語
何年前
こんにちは
"""


def _rows(table: str, questions: str) -> list[tuple[str, str]]:
    """Return each date, alone and in a question, with the English one."""
    templates = [template.strip() for template in questions.split("|")]
    rows = []
    for line in table.strip().splitlines():
        english, *others = [cell.strip() for cell in line.split("|")]
        for cell, template in zip(others, templates[1:], strict=True):
            rows += [(text, english) for text in (cell, template.format(cell)) if cell]
    return rows


@each(
    ("question", "english"),
    [
        *_rows(ROMANCE_AND_DUTCH, QUESTIONS),
        *_rows(SLAVIC, SLAVIC_QUESTIONS),
        *_rows(JAPANESE, JAPANESE_QUESTIONS),
    ],
)
def test_a_date_means_the_same_in_each_language(question, english):
    expected = find_dates(english, NOW)
    assert expected
    assert format_spans(find_dates(question, NOW)) == format_spans(expected)


@each(("question", "expected"), HALVES_IN_DAYS.items())
def test_halves_of_units_are_as_long_as_they_are(question, expected):
    assert format_spans(find_dates(question, NOW)) == format_spans(spans(expected))


@each("line", HALVES.strip().splitlines())
def test_halves_of_units_are_read_in_each_language(line):
    english, text = line.split(" | ")
    expected = find_dates(english, NOW)
    assert expected
    assert format_spans(find_dates(text, NOW)) == format_spans(expected)


@each("question", WITHOUT.strip().splitlines())
def test_words_of_dates_that_name_no_day_are_not_parsed(question):
    assert find_dates(question, NOW) == ()
