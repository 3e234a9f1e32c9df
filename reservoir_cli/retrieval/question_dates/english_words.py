"""The English words that occur in dates, and those that mark the words around them."""

_FULL_MONTHS = (
    "january february march april may june july august september october november december"
).split()
MONTHS = {name: number for number, name in enumerate(_FULL_MONTHS, 1)}
SHORT_MONTHS = {name[:3]: number for name, number in MONTHS.items() if name != "may"}
SHORT_MONTHS["sept"] = 9
MONTHS |= SHORT_MONTHS
MODALS = frozenset({"may", "march"})
NAMES = frozenset({"april", "june", "august"})
WEEKDAYS = {
    name: number
    for number, name in enumerate(
        "monday tuesday wednesday thursday friday saturday sunday".split()
    )
}
SHORT_WEEKDAYS = {name[:3]: number for name, number in WEEKDAYS.items()}
SHORT_WEEKDAYS |= {"tues": 1, "thur": 3, "thurs": 3}
WORDY_WEEKDAYS = frozenset({"mon", "wed", "sat", "sun"})
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
COUNTS = {
    name: (number, number)
    for number, name in enumerate(
        "one two three four five six seven eight nine ten eleven twelve".split(), 1
    )
} | {"a": (1, 1), "an": (1, 1), "couple": (2, 3), "few": (2, 5), "several": (3, 7)}
SINGULARS = {unit + "s": unit for unit in ("minute", "hour", "day", "week", "month", "year")}
HOLIDAYS = {
    "christmas": (12, 24, 3),
    "xmas": (12, 24, 3),
    "christmas eve": (12, 24, 1),
    "christmas day": (12, 25, 1),
    "new year 's eve": (12, 31, 1),
    "new year eve": (12, 31, 1),
    "new year 's day": (1, 1, 1),
    "new year day": (1, 1, 1),
    "valentine 's day": (2, 14, 1),
    "halloween": (10, 31, 1),
}
OFFSETS = {"yesterday": -1, "today": 0, "tonight": 0, "now": 0, "tomorrow": 1}
# A question without a name or number of a date contains one of these, or no date.
SIGNS = frozenset(OFFSETS) | SEASONS.keys() | frozenset(
    "ago back christmas xmas halloween valentine year last past previous this current next"
    " coming upcoming weekend night other".split()
)  # fmt: skip
# Words that make a number before them a count.
COUNTED = frozenset(
    "tokens words characters chars bytes kb mb gb bits lines rows files items entries messages"
    " mails emails requests users people persons guests times steps iterations samples points"
    " percent pixels px ms seconds minute hour day week month year"
    " dollars euros pounds usd eur km miles meters metres kcal calories grams ml"
    " wörter wörtern worten zeichen zeilen personen menschen".split()
)
AFTER_MODAL = frozenset("be have not also well need never still".split())
LEADS = frozenset(
    "in during of since until till before after around throughout by from through between"
    " year".split()
)
HOLIDAY_LEADS = LEADS | {"on", "at", "over", "for"}
WEEKDAY_LEADS = (LEADS | {"on"}) - {"in", "year"}
DAY_LEADS = LEADS | {"on", "for", "to", "at"}
OWNERS = frozenset("the our my your his her their its".split())
OF_ALL_DAYS = frozenset("every each black good cyber ash palm easter super".split())

MONTH_KINDS = frozenset({"MONTH", "NAME", "SHORT", "MODAL"})
JOINED_KINDS = MONTH_KINDS | {"DAY", "ORDINAL", "YEAR", "early", "mid", "late"}

NTH = {"first": 1, "second": 2, "third": 3, "fourth": 4}
