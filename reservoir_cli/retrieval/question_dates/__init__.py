"""Find the dates in a question, and score messages by how near they are to them.

Phrases in other European languages, Chinese and Japanese are first rewritten in English
(``parser.in_english``). The rest reads only English: ``lexer`` lists the words, and
``date_rules`` says what they mean. Ambiguous phrases are read as follows:

* Weeks begin on Monday. Seasons are those of the northern hemisphere, in whole months; a winter
  belongs to the year in which it begins. Early, mid and late are thirds of a period.
* A weekday is the latest one before today; "next" and "this" look ahead.
* "Two months ago" is every day that rounds to two months; "a couple" is 2–3, "a few" 2–5. "Half a
  month ago" is a week around the 15th day before today.
* 7/4/2023 is ambiguous: another date of the text decides, or else both days are meant.
  25.01.2024 and 25.1. begin with the day.
* "Since X" extends to now. "After X" and "before X" are open-ended for a month or a year, which
  divide messages into two eras. For a day, or without a year, they mean X itself: "before
  Christmas" means shortly before, and nearby days score by their distance anyway.
* A name that is also a word (May, March, April, Sat) and a number that could be a year need
  another word to be a date: "in May", "May 5", "the May release", but not "May said".
* A date that may be a name as well, as in "from April", is doubtful and counts less. With a second
  sign, such as another capitalised word after it, it is a name: "from April Smith".

The words of the question are turned into kinds ("on DAY MONTH"), and rules are patterns over them.
"""

from reservoir_cli.retrieval.question_dates.nearness import score_dates

__all__ = ["score_dates"]
