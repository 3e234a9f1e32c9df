"""The dates that a question names, and how near to them each message is.

Phrases in German, French, Spanish and Chinese are rewritten in English first (``foreign``); all
else reads English only. What a phrase means where people differ:

* Weeks begin on Monday. Seasons are the northern ones in whole months; a winter has the year
  in which it begins. Early, mid and late are the thirds of what follows.
* A weekday is its latest before today; "next" and "this" look ahead.
* "Two months ago" is every day that rounds to two months; "a couple" is 2–3, "a few" 2–5.
* 7/4/2023 is two days to two readers and is not read; 25/12/2023 and 7/7/2023 are.
* "Since X" is open towards now. "After X" and "before X" are open for a month or a year, which
  sort messages into two eras. For a day, or without a year, they are X itself: who says
  "before Christmas" means shortly before, and near days score by their distance anyway.
* A name that is also a word (May, March, April, Sat) and a number that could be a year need a
  word that makes them a date: "in May", "May 5", "the May release", but not "May said".

The words of the question become kinds ("on DAY MONTH"), and rules are patterns over these.
"""

from reservoir_cli.retrieval.dates.calendar_days import Span
from reservoir_cli.retrieval.dates.nearness import HALF_LIFE_DAYS, date_scores
from reservoir_cli.retrieval.dates.parser import find_dates

__all__ = ["HALF_LIFE_DAYS", "Span", "date_scores", "find_dates"]
