"""Parsing dates in questions."""

import random
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
from each import each
from hypothesis import given
from hypothesis import strategies as st
from named_days import BERLIN, NOW, format_spans, moment, spans

from reservoir_cli.retrieval.question_dates.nearness import date_scores, describe_empty_days
from reservoir_cli.retrieval.question_dates.parser import find_dates

DAYS = {
    "what did we decide on 7 July?": "07-07",
    "what did we decide on July 7?": "07-07",
    "July 7, 2023": "2023-07-07",
    "July 7 2023": "2023-07-07",
    "7 July, 2023": "2023-07-07",
    "7 july 2023": "2023-07-07",
    "in the notes of 2023-07-07: what was it?": "2023-07-07",
    "on 2023/07/07": "2023-07-07",
    "what was said at 2026-02-12T03:17:00?": "2026-02-12",
    "what came before 2026-02-12T03:17:00.5+01:00, and why?": "2026-02-12",
    "July 7th": "07-07",
    "the 7th of July": "07-07",
    "the 7th of July, 2023": "2023-07-07",
    "July the 4th": "07-04",
    "Jul 7": "07-07",
    "Aug. 15": "08-15",
    "on Aug 15th, what did they give him?": "08-15",
    "December 1,2023": "2023-12-01",
    "7-Jul-2023": "2023-07-07",
    "Monday, 7 July 2025": "2025-07-07",
    "Mon, Aug 4, 2025": "2025-08-04",
    "Sat 9 May": "05-09",
    "on May 5": "05-05",
    "on may 5": "05-05",
    "what did we decide may 5?": "05-05",
    "on may 5 we met": "05-05",
    "on 7 may we met": "05-07",
    "7 may 2024": "2024-05-07",
    "May 5 was what?": "05-05",
    "7 July last year": "2025-07-07",
    "on 29 February": "02-29",
    "29 Feb 2024": "2024-02-29",
    "29 February 2023": "2023-02-01/2023-02-28",
    "February 29, 2023": "2023-02-01/2023-02-28",
    "on June 31, 2023": "2023-06-01/2023-06-30",
    "on 31 December": "12-31",
    "on 7 July 1950": "1950-07-07",
    "7 July 1500 people came": "07-07",
    "July 7 at 10:30": "07-07",
    "what happened (on 7 July)?": "07-07",
    "**July 7** notes": "07-07",
    "on 25/12/2023": "2023-12-25",
    "on 12/25/2023": "2023-12-25",
    "on 7/7/2023": "2023-07-07",
    "on New Year's Eve": "12-31",
    "on New Year’s Eve 2023": "2023-12-31",
    "on New Year's Day": "01-01",
    "on Christmas Eve": "12-24",
    "during Halloween": "10-31",
    "for Boxing Day": "12-26",
    "on Valentine's Day": "02-14",
}
MONTHS_AND_YEARS = {
    "in July": "07-01/07-31",
    "the July trip": "07-01/07-31",
    "july's invoice": "07-01/07-31",
    "July 2023": "2023-07-01/2023-07-31",
    "WHAT DID WE DECIDE IN JULY 2023?": "2023-07-01/2023-07-31",
    "the trip in March 2023": "2023-03-01/2023-03-31",
    "July of 2023": "2023-07-01/2023-07-31",
    "July, 2023": "2023-07-01/2023-07-31",
    "July '23": "2023-07-01/2023-07-31",
    "September of last year": "2025-09-01/2025-09-30",
    "in March last year": "2025-03-01/2025-03-31",
    "Sept. 2023": "2023-09-01/2023-09-30",
    "in Dec": "12-01/12-31",
    "in may": "05-01/05-31",
    "since when, in March?": "03-01/03-31",
    "the May release": "05-01/05-31",
    "our June trip": "06-01/06-30",
    "notes from April": "04-01/04-30",
    "may 2023": "2023-05-01/2023-05-31",
    "in February": "02-01/02-29",
    "in 2023-07": "2023-07-01/2023-07-31",
    "in 12/2024": "2024-12-01/2024-12-31",
    "in July 2000 tokens were used": "07-01/07-31",
    "in 2023": "2023-01-01/2023-12-31",
    "during the year 2024": "2024-01-01/2024-12-31",
    "the 2023 trip to Japan": "2023-01-01/2023-12-31",
    "in 2024, 2500 tokens": "2024-01-01/2024-12-31",
    "spring 2023": "2023-03-01/2023-05-31",
    "in the fall of 2024": "2024-09-01/2024-11-30",
    "winter 2023": "2023-12-01/2024-02-29",
    "during the summer": "06-01/08-31",
    "in winter": "12-01/02-29",
    "Q2 2023": "2023-04-01/2023-06-30",
    "Q2/2023": "2023-04-01/2023-06-30",
    "what was in Q2-2023?": "2023-04-01/2023-06-30",
    "2023 Q2": "2023-04-01/2023-06-30",
    "the plan for 2023-q2, and its cost": "2023-04-01/2023-06-30",
    "the 3rd quarter of 2025": "2025-07-01/2025-09-30",
    "3rd quarter 2025": "2025-07-01/2025-09-30",
    "the plan for Q4": "10-01/12-31",
    "the first quarter of 2024": "2024-01-01/2024-03-31",
    "at Christmas 2024": "2024-12-24/2024-12-26",
    "early March": "03-01/03-10",
    "mid-August 2023": "2023-08-11/2023-08-21",
    "in late March 2023": "2023-03-22/2023-03-31",
    "late 2022": "2022-09-01/2022-12-31",
    "the end of last month": "2026-04-21/2026-04-30",
    "towards the end of summer 2023": "2023-08-01/2023-08-31",
    "in the second week of November": "11-08/11-14",
    "the last week of July 2023": "2023-07-25/2023-07-31",
    "the first half of July": "07-01/07-15",
    "the second half of 2023": "2023-07-03/2023-12-31",
}
RELATIVE = {
    "late this weekend": "2026-05-16/2026-05-17",
    "yesterday": "2026-05-12",
    "yesterday's meeting": "2026-05-12",
    "the day before yesterday": "2026-05-11",
    "today": "2026-05-13",
    "tonight": "2026-05-13",
    "this morning": "2026-05-13",
    "last night": "2026-05-12",
    "tomorrow": "2026-05-14",
    "the day after tomorrow": "2026-05-15",
    "the other day": "2026-05-06/2026-05-12",
    "on Monday": "2026-05-11",
    "on Wednesday": "2026-05-06",
    "on Friday": "2026-05-08",
    "what did i ask friday?": "2026-05-08",
    "Monday's standup": "2026-05-11",
    "Monday morning": "2026-05-11",
    "last Monday": "2026-05-11",
    "last Wednesday": "2026-05-06",
    "this Friday": "2026-05-15",
    "next Monday": "2026-05-18",
    "last fri": "2026-05-08",
    "on Sun": "2026-05-10",
    "Saturday last week": "2026-05-09",
    "last week on Tuesday": "2026-05-05",
    "last week": "2026-05-04/2026-05-10",
    "last week,as mentioned": "2026-05-04/2026-05-10",
    "this week": "2026-05-11/2026-05-17",
    "next week": "2026-05-18/2026-05-24",
    "the week before last": "2026-04-27/2026-05-03",
    "the Friday before last": "2026-05-01",
    "a fortnight ago": "2026-04-26/2026-05-02",
    "on the Tuesday before last": "2026-05-05",
    "last month": "2026-04-01/2026-04-30",
    "this month": "2026-05-01/2026-05-31",
    "next month": "2026-06-01/2026-06-30",
    "last quarter": "2026-01-01/2026-03-31",
    "last year": "2025-01-01/2025-12-31",
    "this year": "2026-01-01/2026-12-31",
    "next year": "2027-01-01/2027-12-31",
    "the last year": "2025-05-13/2026-05-13",
    "in the last three weeks": "2026-04-22/2026-05-13",
    "over the past month": "2026-04-13/2026-05-13",
    "last weekend": "2026-05-09/2026-05-10",
    "over the weekend": "2026-05-09/2026-05-10",
    "this weekend": "2026-05-16/2026-05-17",
    "last summer": "2025-06-01/2025-08-31",
    "last winter": "2025-12-01/2026-02-28",
    "next summer": "2026-06-01/2026-08-31",
    "last March": "2026-03-01/2026-03-31",
    "last May": "2025-05-01/2025-05-31",
    "this May": "2026-05-01/2026-05-31",
    "next may": "2027-05-01/2027-05-31",
    "last Christmas": "2025-12-24/2025-12-26",
    "three days ago": "2026-05-10",
    "3 days ago": "2026-05-10",
    "0 days ago": "2026-05-13",
    "a week ago": "2026-05-03/2026-05-09",
    "two weeks ago": "2026-04-26/2026-05-02",
    "a couple of weeks ago": "2026-04-19/2026-05-02",
    "a few days ago": "2026-05-08/2026-05-11",
    "two months ago": "2026-02-26/2026-03-28",
    "half a year ago": "2025-10-29/2025-11-28",
    "a year ago": "2024-11-11/2025-11-12",
    "a year ago today": "2025-05-13",
    "what did I say one week ago yesterday?": "2026-05-05",
    "a couple of weeks ago today": "2026-04-19/2026-05-02; 2026-05-13",
    "a few years back": "2020-11-11/2024-11-12",
    "three hours ago": "2026-05-13",
    "20 hours ago": "2026-05-12",
    "two days from now": "2026-05-15",
}
RANGES = {
    "between March and May": "03-01/05-31",
    "between March and May 2023": "2023-03-01/2023-05-31",
    "from 3 to 5 May": "05-03/05-05",
    "3–5 May 2023": "2023-05-03/2023-05-05",
    "between the 3rd and the 5th of May": "05-03/05-05",
    "July 7 to 9, 2023": "2023-07-07/2023-07-09",
    "July 30 to August 2, 2023": "2023-07-30/2023-08-02",
    "July 7 to 9 August": "07-07/08-09",
    "between August 11 and August 15 2023": "2023-08-11/2023-08-15",
    "from November to February": "11-01/02-29",
    "from November to February 2024": "2023-11-01/2024-02-29",
    "from December 30 to January 2": "12-30/01-02",
    "from November 2023 to February": "2023-11-01/2024-02-29",
    "between 2020 and 2022": "2020-01-01/2022-12-31",
    "from Monday to Friday": "2026-05-11/2026-05-15",
    "between yesterday and today": "2026-05-12/2026-05-13",
    "from July 2025 to now": "2025-07-01/2026-05-13",
    "in July and August 2023": "2023-07-01/2023-07-31; 2023-08-01/2023-08-31",
    "in July/August 2023": "2023-07-01/2023-07-31; 2023-08-01/2023-08-31",
    "July, August and September 2022": (
        "2022-07-01/2022-07-31; 2022-08-01/2022-08-31; 2022-09-01/2022-09-30"
    ),
    "in 2022 and 2023": "2022-01-01/2022-12-31; 2023-01-01/2023-12-31",
    "on Tue or Thu": "2026-05-12; 2026-05-07",
    "yesterday or in July": "2026-05-12; 07-01/07-31",
    "yesterday, and may I ask": "2026-05-12",
    "since yesterday, and may I": "2026-05-12/2026-05-13",
    "yesterday and once more yesterday": "2026-05-12",
    "since June": "2025-06-01/2026-05-13",
    "since March": "2026-03-01/2026-05-13",
    "since yesterday": "2026-05-12/2026-05-13",
    "since July 2023": "2023-07-01/2026-05-13",
    "since next month": "2026-06-01/2026-06-30",
    "from March 2024 on": "2024-03-01/2026-05-13",
    "before July 2023": "0001-01-01/2023-06-30",
    "before 2022": "0001-01-01/2021-12-31",
    "after 2022": "2023-01-01/2026-05-13",
    "after 2026": "2026-01-01/2026-12-31",
    "after 7 July 2023": "2023-07-07",
    "before Christmas": "12-24/12-26",
    "until March": "03-01/03-31",
    "as of 27 March, 2022": "2022-03-27",
    "two weeks before August 11, 2023": "2023-07-28/2023-08-11",
    "the week before 16 November 2023": "2023-11-09/2023-11-16",
    "the day after 31 December": "12-31/01-01",
}
POSITIVE = DAYS | MONTHS_AND_YEARS | RELATIVE | RANGES

NUMERIC = {
    "What did we do on 17.01.2024?": "2024-01-17/2024-01-17",
    "am 25.01. beim Zahnarzt": "01-25",
    "le 25.01.2024": "2024-01-25/2024-01-25",
    "le 14/07": "07-14",
    "what happened on 1/25?": "01-25",
    "on 25/1 and on 3/2": "01-25; 02-03",
    "on 1/2": "02-01; 01-02",
    "7/4/2023": "2023-04-07/2023-04-07; 2023-07-04/2023-07-04",
    "invoice 4/13/23": "2023-04-13/2023-04-13",
    "vom 3.5. bis 7.5.2024": "2024-05-03/2024-05-07",
    "zwischen dem 25.01.2024 und dem 27.01.2024": "2024-01-25/2024-01-27",
    "2024. 01. 25. meeting": "2024-01-25/2024-01-25",
}
POSITIVE |= NUMERIC
NEGATIVE = """
Why did we drop Redis?
may I ask something?
May I ask you something?
you may want to check this
what may have caused it
this may be wrong
the next may be better
the last may have been it
which of these may work?
the may release
7 may be too many
may 5 people join us?
we march on
March to the beat of a drum
the march of progress
The March on Washington
May's opinion
what about May's idea?
by April's account
April said no
did June call?
August and Jan came
wait a second
the second one
a second ago
in the sun
the sun is hot
he sat on the sofa
the effect on sun and on mon
on sat scores and the SAT
mon ami
they wed in Rome
import dec from lib
sep=","
jan@example.com
the monday.com board
on Mondays
every Monday
open Monday-Friday
each Monday morning
what do we do every Monday?
shopping on Black Friday
the Sunday roast recipe
is Python 3.11.2023 out?
version 1.2.3
v2023.1
2023 tokens
does it fit in 2023 tokens?
a prompt in 2000 words
does it run in 2000 hours?
from 2000 to 4000 tokens
raise the limit from 2000 to 2048
in 2000 of the cases
page 3 of 2023
1,2023
port 2024
on port 2024?
have you read 1984?
RFC 2026
created_at = "2023-07-07T10:00:00Z"
`2023-07-07`
notes-2023-07-07.md
plans/2023-Q2.md
2023-Q2-plan.md
Q2/2023.csv
the 5th quarter 2025
src/july/2023/notes.md
https://example.com/2023/07/07/may
meet at 10:30
it costs $2023
it costs 2023€
3/4 of the cake
on 3/4 of the pages
run it on 3.11
since version 3.11.2023
10.0.0.1
version 10.11.12
the 31.02.2024 backup
room 12/14
open 24/7
2023-02-30
2023-13-45
the 31st of April
the 1st of 2023 messages
call 555-2023
call +49 30 2023 1999
550e8400-e29b-41d4-a716-446655440000
5f2023-07-07
in the 90s
in the 1990s
in 3024
the last message
the last time
at the last minute
the last two years of the war
recently
years ago
999999 years ago
9999999 days ago
two years old
for three weeks
in two weeks
three messages ago
week after week
once a month
the year end report
the new year plan
Christmas cake recipe
Halloween costume
in Spring Boot 3
spring cleaning
the fall of Rome
in fall detection
in the fall of Rome
question Q2 of the quiz
what is it now?
""".strip().splitlines()


@each(("question", "expected"), POSITIVE.items())
def test_a_date_is_read(question, expected):
    assert format_spans(find_dates(question, NOW)) == format_spans(spans(expected))


@each("question", NEGATIVE)
def test_text_without_dates_gives_none(question):
    assert find_dates(question, NOW) == ()


@each("question", ["", " ", "\n", "``", "```\n7 July\n```", ",", "the", "ago", "'s"])
def test_a_tiny_question_names_no_date(question):
    assert find_dates(question, NOW) == ()


def test_dates_in_code_blocks_are_ignored_but_not_those_around_them():
    question = "in July:\n```\nday = 2023-07-07\n```\nand yesterday"
    assert find_dates(question, NOW) == spans("07-01/07-31; 2026-05-12")


@each(
    ("now", "question", "expected"),
    [
        ("2026-03-31T12:00", "two months ago", "2026-01-16/2026-02-15"),
        ("2026-05-31T12:00", "three months ago", "2026-02-13/2026-03-15"),
        ("2026-03-31T12:00", "last month", "2026-02-01/2026-02-28"),
        ("2026-01-01T12:00", "last month", "2025-12-01/2025-12-31"),
        ("2026-12-31T12:00", "next month", "2027-01-01/2027-01-31"),
        ("2026-01-01T00:00", "yesterday", "2025-12-31"),
        ("2026-01-01T12:00", "last week", "2025-12-22/2025-12-28"),
        ("2024-02-29T12:00", "last year", "2023-01-01/2023-12-31"),
        ("2024-02-29T12:00", "over the past year", "2023-02-28/2024-02-29"),
        ("2026-05-11T12:00", "on Monday", "2026-05-04"),
        ("2026-05-16T12:00", "over the weekend", "2026-05-16/2026-05-17"),
        ("2026-05-17T12:00", "last weekend", "2026-05-09/2026-05-10"),
        ("2026-01-15T12:00", "this winter", "2025-12-01/2026-02-28"),
        ("2026-01-15T12:00", "last winter", "2024-12-01/2025-02-28"),
        ("2026-07-15T12:00", "last July", "2025-07-01/2025-07-31"),
        ("2026-06-01T00:00", "since June", "2026-06-01"),
        ("2026-02-10T12:00", "last quarter", "2025-10-01/2025-12-31"),
        ("2026-12-30T12:00", "the day after tomorrow", "2027-01-01"),
    ],
)
def test_relative_phrases_work_at_ends_of_months_and_years(now, question, expected):
    asked_at = datetime.fromisoformat(now).replace(tzinfo=BERLIN)
    assert format_spans(find_dates(question, asked_at)) == format_spans(spans(expected))


def test_yesterday_depends_on_the_time_zone_of_now():
    now = datetime(2026, 5, 13, 23, 30, tzinfo=UTC)
    assert find_dates("yesterday", now) == spans("2026-05-12")
    assert find_dates("yesterday", now.astimezone(BERLIN)) == spans("2026-05-13")


def test_hours_ago_are_elapsed_hours_across_a_clock_change():
    # 02:00 became 03:00 this night: three hours before 03:30 it was 23:30 of the day before.
    now = datetime(2026, 3, 29, 3, 30, tzinfo=BERLIN)
    assert find_dates("three hours ago", now) == spans("2026-03-28")


WORDS = (
    "may,march,July,7,2023,2023-07-07,7th,the,of,in,and,to,-,/,last,next,week,day,Monday,ago,two,a"
    ",few,before,after,since,early,end,first,half,yesterday,christmas,summer,Q2,'23,of 2023,',.,\n"
).split(",")


@given(st.lists(st.sampled_from([*WORDS, ","]), max_size=12).map(" ".join) | st.text())
def test_any_question_gives_valid_spans_and_scores(question):
    date_spans = find_dates(question, NOW)
    assert all(span.start < span.end for span in date_spans)
    scores = date_scores(date_spans, np.array([moment("2026-05-13T12:00")]), BERLIN)
    assert 0 <= scores[0] <= 1


def test_parsing_dates_does_not_import_numpy():
    script = (
        "import sys; from datetime import *;"
        "from reservoir_cli.retrieval.question_dates.parser import find_dates;"
        "print(len(find_dates('yesterday', datetime.now(UTC))), 'numpy' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["1", "False"]


KIRITIMATI = timezone(timedelta(hours=14))
FAR = re.split(
    r"[|\n]",
    """
year 1|0001-01-01|1 January 1|0001-W|9999-12-31|9999-12-30|9999-12-28|1 January
31 December|29 February|in 2026|winter|Xmas|Q4|Sunday|20 years before|9999 years after
20 weeks before|8000 years ago|last|next|99999 hours ago|99999 months ago
summer last year|half a year ago|3 days from now|the week after|from|to|since|between|and
before|after|until|early|second half of|vor 9000 Jahren|am 31.12.9999|il y a 2026 ans
hace 9999 meses|9999年12月31日|2000年前|nel 9999|9999 лет назад|8000 lat temu|31.12.9999
5 mei 9999|-
""".strip(),
)


@each("year", [1, 2, 9, 2026, 9990, 9998, 9999])
def test_no_date_ends_in_an_exception_however_far_it_is(year):
    rng = random.Random(year)
    times = [moment(f"{far:04}-06-30T12:00", UTC) for far in (1, 2, 1969, 2026, 9990, 9994, 9999)]
    stores = [[far] for far in times] + [times[:2], times[2:4], times[4:], times]
    for _ in range(400):
        now = datetime(year, *rng.choice([(1, 1), (2, 28), (12, 31)]), 12, tzinfo=UTC)
        date_spans = find_dates(" ".join(rng.choices(FAR, k=rng.randint(1, 6))), now)
        assert all(span.start < span.end for span in date_spans)
        created_at = np.array(rng.choices(stores, weights=[20] * 10 + [1])[0])
        scores = date_scores(date_spans, created_at, rng.choice([UTC, BERLIN, KIRITIMATI]))
        assert ((scores >= 0) & (scores <= 1)).all()
        assert len(describe_empty_days(date_spans, scores)) <= 1
