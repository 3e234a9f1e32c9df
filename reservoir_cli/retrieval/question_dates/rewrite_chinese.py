"""Rewrite Chinese and Japanese dates in English."""

import re
from collections.abc import Callable
from functools import cache

from reservoir_cli.retrieval.question_dates.calendar_days import MONTH_NAMES
from reservoir_cli.retrieval.question_dates.lexer import DOUBT

_NUMBER = "(?:\\d{1,3}|[一二两三四五六七八九十]{1,3})"
_DIGITS = dict(zip("零〇一二两三四五六七八九", (0, 0, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9), strict=True))
_DAYS = dict(
    zip("一二三四五六日天", "mon tues wednes thurs fri satur sun sun".split(), strict=True)
)
_JAPANESE_DAYS = dict(
    zip("月火水木金土日", "mon tues wednes thurs fri satur sun".split(), strict=True)
)
_RELATIVE = {
    "大前天": "3 days ago", "前天": "day before yesterday", "昨天": "yesterday",
    "昨日": "yesterday", "昨晚": "yesterday", "今天": "today", "今日": "today",
    "今晚": "today", "今早": "today", "明天": "tomorrow", "后天": "day after tomorrow",
    "後天": "day after tomorrow", "去年": "last year", "今年": "this year", "明年": "next year",
    "前年": "year before last",
    # Japanese
    "一昨日": "day before yesterday", "おととい": "day before yesterday", "きのう": "yesterday",
    "昨夜": "last night", "昨晩": "last night", "本日": "today", "今朝": "today", "今夜": "tonight",
    "今晩": "tonight", "あした": "tomorrow", "明日": "tomorrow", "明後日": "day after tomorrow",
    "あさって": "day after tomorrow", "昨年": "last year", "来年": "next year",
    "一昨年": "year before last", "おととし": "year before last", "先日": "the other day",
}  # fmt: skip
_PARTS = "初|上旬|中旬|底|末|下旬"
_PART_NAMES = {
    "初": "early ", "上旬": "early ", "中旬": "mid ", "底": "end of ", "末": "end of ",
    "下旬": "end of ",
}  # fmt: skip
_SEASONS = {"春": "spring", "夏": "summer", "秋": "autumn", "冬": "winter"}
_WHICH = {
    "上上": "before",
    "上": "last",
    "这": "this",
    "這": "this",
    "本": "this",
    "下": "next",
    "先々": "before",
    "先": "last",
    "前": "last",
    "今": "this",
    "こ": "this",
    "来": "next",
}
_UNITS = {
    "天": "days", "日": "days", "周": "weeks", "週": "weeks", "星期": "weeks", "礼拜": "weeks",
    "禮拜": "weeks", "月": "months", "年": "years", "小时": "hours", "小時": "hours",
    "分钟": "minutes", "週間": "weeks",
    "ヶ月": "months", "か月": "months", "カ月": "months", "ケ月": "months",
    "箇月": "months", "時間": "hours", "分": "minutes",
}  # fmt: skip
_WEEK = "(?:周|週|星期|礼拜|禮拜)"
#: Relative days and years also occur inside other words: 目前|天气, 聪明|天才, 过去|年.
_INSIDE = "(?<![目之从先生当眼午提面聪光文发说证如至而迄过死第每今以])"
_YEAR_WORDS = "去年|今年|明年|前年|昨年|来年|一昨年"
_JAPANESE_UNITS = "週間|[ヶかカケ箇]月|時間"
#: Words that begin with a Japanese weekday, and weekdays in general.
_JAPANESE_DAY = "(?<!毎週)(?<!毎)(?P<{}>[月火水木金土日])曜(?:日|(?!日))(?!ごと|大工|ロード|劇場)"
_ITS_DAY = "(?:の?[月火水木金土日]曜日?|[（(][月火水木金土日][)）])?"  # noqa: RUF001
_PATTERN = (
    f"(?P<year>\\d{{4}}|[一二][零〇一二三四五六七八九]{{3}}|{_INSIDE}(?:{_YEAR_WORDS}))"
    f"(?:年|(?<=年))[的の]?(?P<month>{_NUMBER})月(?:(?P<day>{_NUMBER})[日号號]{_ITS_DAY}|(?P<part>{_PARTS}))?"
    f"|(?:(?P<year3>\\d{{4}}|[一二][零〇一二三四五六七八九]{{3}}|{_INSIDE}(?:{_YEAR_WORDS}))"
    "(?:年|(?<=年))[的の]?|(?P<whichseason>上|这|這|下)个?|(?<=[在从自于]))(?P<season>[春夏秋冬])[天季]"
    f"|(?:(?P<year6>\\d{{4}}(?=年)|{_INSIDE}(?:{_YEAR_WORDS}))年?の|(?P<which2>こ)の"
    "|(?<![一-鿿])(?=.に))(?P<season2>[春夏秋冬])(?![一-鿿])"
    f"|(?:(?P<year4>\\d{{4}}|{_INSIDE}(?:{_YEAR_WORDS}))(?:年|(?<=年))[的の]?)?"
    "(?:第|(?<![\\d.]))(?P<quarter>[一二三四1-4])(?:季度|四半期)"
    "|(?P<whichquarter>上|这|這|本|下|前|今|来)(?:一)?个?(?:季度|四半期)"
    f"|(?P<month2>(?<![\\d.第]){_NUMBER})月(?P<day2>{_NUMBER})[日号號]{_ITS_DAY}"
    f"|(?P<month3>(?<![\\d.第每]){_NUMBER})月(?:份|(?P<part3>{_PARTS})|(?![天病兔票饼嫂子球光怀经薪费工供租台活季牙龄齡号號]|花[号號]|[一两二三四五六七八九十几幾\\d]次))"
    "|(?<![\\d.第])(?P<year2>(?:19|20)\\d\\d)年(?![级代龄费版薪检假度問])"
    f"|(?P<count>{_NUMBER}|半|几|幾|数)(?P<half>个半)?个?"
    f"(?P<unit>{_JAPANESE_UNITS}|天|日|周|週|星期|礼拜|禮拜|月|年|小时|小時|分钟|分)(?P<half2>半)?"
    "(?:之|以)?前(?![天年])"
    f"|(?:最近|过去|過去|近|ここ|この)[的の]?(?P<last>{_NUMBER})个?(?P<lastunit>{_JAPANESE_UNITS}|天|日|周|週|星期|礼拜|禮拜|月|年)"
    f"|(?<![晚早网线路以日基])(?P<which>上上|上|这|這|本|下)个?{_WEEK}"
    "(?:(?P<weekday>[一二三四五六日天])(?![次个些])|(?P<weekend>末))?"
    "|(?P<whichmonth>上|这|這|本|下|先々|先|今|(?<![本后後从未原])来)个?月(?![光票曜])"
    f"|(?P<which3>先々|先|今|来)週(?:の?{_JAPANESE_DAY.format('day3')}|(?P<weekend3>末))?"
    f"|{_JAPANESE_DAY.format('day4')}"
    f"|(?<![一两几每\\d二三四五六七八九十个到至]){_WEEK}(?P<plain>[一二三四五六日天])"
    "(?![次个些到至周围遍])"
    f"|{_INSIDE}(?P<near>一昨日|おととい|きのう|昨夜|昨晩|本日|今朝|今夜|今晩|あした|明日(?!方舟)|明後日"
    "|あさって|先日|昨年|来年|一昨年|おととし|大前天|前天|昨天|昨日|昨晚|今天|今日|今晚|今早|明天|"
    "(?<!先天)(?:后天|後天)(?![性形养培努教的])|去年|今年|明年|前年(?![比度同]))"
    "|前几天|前幾天|前些天|前两天"
)
_JOINTS = {
    "到": "to", "至": "to", "-": "to", "~": "to", "–": "to", "和": "and", "、": "and", "或": "or",
    "から": "to", "と": "and", "や": "and",
}  # fmt: skip
#: The first date of 3-6月 and 2020到2022年 lacks its sign, and the last of 5月3日到10日 its month.
_JOINT = "(?:[到至~〜–-]|から)"
_SHARED_UNIT = (
    f"(?<![\\d.第])(?:{_NUMBER}(?={_JOINT}{_NUMBER}(月)(?![龄齡]))"
    f"|(?:19|20)\\d\\d(?={_JOINT}(?:19|20)\\d\\d(年)))"
)
_SHARED_MONTH = (
    f"({_NUMBER}月)({_NUMBER})[日号號]?({_JOINT}|[和、或とや])"
    f"(?={_NUMBER}[日号號](?![内內之以后後前间間游]))"
)
#: A text without one of these contains no date.
_SIGNS = (
    "[年月日号號天周週星礼禮晚季夜朝春夏秋冬]|四半期|(?:時間|小[时時]|分钟?)半?前"
    "|きのう|おとと|あした|あさって"
)
#: A character that goes on a word, rather than one that often follows a date.
_NOUN = (
    "[^\\W\\da-zA-Z我你您他她它咱大家们們的了是在有去来來到至开開上下早晚中午夜凌说說讲讲谈談聊问問写寫买買付吃喝"
    "看做办辦用给給跟和与與或那这這哪什怎几幾谁誰要能会會可应應就都也又还還把被让讓叫约約定订訂交收发發见見"
    "にはのがをもとやでへかまごお頃初末以前后後之内時时朝昼夕]"
)
_SINCE = ("以来", "以來", "以降", "至今", "到现在", "到現在", "到今天")


def in_english(text: str) -> str:
    """Return a text with its Chinese and Japanese dates rewritten in English."""
    if not re.search(_SIGNS, text):
        return text
    text = re.sub(_SHARED_UNIT, r"\g<0>\1\2", text)
    text = re.sub(_SHARED_MONTH, r"\1\2日\3\1", text)
    pieces, end, has_date = [], 0, False
    matches = list(_compile_pattern().finditer(text))
    starts = {match.start() for match in matches}
    for match in matches:
        phrase = _phrase(match)
        if phrase is None:
            continue
        if _may_be_name(match, text[match.end() : match.end() + 1]):
            phrase += f" {DOUBT}"
        between = text[end : match.start()]
        joint = _JOINTS.get(between.strip()) if has_date else None
        if joint == "and" and text.startswith(("之间", "之間", "の間"), match.end()):
            joint = "to"
        if joint:
            pieces.append(f" {joint} {phrase.removeprefix('in ').removeprefix('on ')} ")
        else:
            lead = _lead(text, match.end(), starts)
            pieces.append(f"{between} . {lead}{phrase.removeprefix('in ') if lead else phrase} ")
        end, has_date = match.end(), True
    return f"{''.join(pieces)} . {text[end:]}" if has_date else text


def _may_be_name(match: re.Match[str], following: str) -> bool:
    """Return whether a month in characters, or a weekday, may begin a name: 五月花, 周六福."""
    begins = match["plain"] or match["day4"] or (match["month3"] and match[0].endswith("月"))
    return bool(begins and not match[0][0].isdigit() and re.match(_NOUN, following))


def _lead(text: str, end: int, starts: set[int]) -> str:
    """Return the English word for what follows a date, unless that begins a range."""
    if text.startswith(_SINCE, end) or (text.startswith("から", end) and end + 2 not in starts):
        return "since "
    return "until " if text.startswith("まで", end) else ""


@cache
def _compile_pattern() -> re.Pattern[str]:
    return re.compile(_PATTERN)


def _phrase(match: re.Match[str]) -> str | None:
    parts = {name: part for name, part in match.groupdict().items() if part}
    for name, read in _READERS.items():
        if name in parts:
            return read(parts)
    return "the other day"


def _number(text: str) -> int:
    """Return a number up to 99 in digits or characters; 0 if the text is not one."""
    if text.isdigit():
        return int(text)
    if "十" not in text:
        return _DIGITS[text] if len(text) == 1 else 0
    tens, _, ones = text.partition("十")
    return 10 * _DIGITS.get(tens, 1) + _DIGITS.get(ones, 0)


def _year(text: str) -> str:
    if text in _RELATIVE:
        return _RELATIVE[text]
    return text if text.isdigit() else "".join(str(_DIGITS[sign]) for sign in text)


def _date(parts: dict[str, str]) -> str | None:
    month = _number(parts.get("month") or parts.get("month2") or parts.get("month3", ""))
    day = _number(parts.get("day") or parts.get("day2") or "0")
    if not 1 <= month <= 12 or day > 31:
        return None
    year = _year(parts["year"]) if "year" in parts else ""
    if year == "year before last":  # English has no phrase for a month of it
        return year
    part = parts.get("part") or parts.get("part3", "")
    preposition = "" if day else f"in {_PART_NAMES.get(part, '')}"
    return f"{preposition}{f'{day} ' if day else ''}{MONTH_NAMES[month - 1]} {year}".strip()


def _in_period(period: str, year: str) -> str:
    """Return a period of a year; the year alone if English has no phrase for it."""
    name = _year(year) if year else ""
    return name if name == "year before last" else f"in {period} {name}".strip()


def _season(parts: dict[str, str]) -> str:
    season = _SEASONS[parts["season"]]
    if "whichseason" in parts:
        return f"{_WHICH[parts['whichseason']]} {season}"
    return _in_period(season, parts.get("year3", ""))


def _ago(parts: dict[str, str]) -> str:
    unit = _UNITS[parts["unit"]]
    if parts["count"] == "半":
        return f"half a {unit[:-1]} ago"
    count = "a few" if parts["count"] in "几幾数" else str(_number(parts["count"]))
    half = "and a half " if "half" in parts or "half2" in parts else ""
    return f"{count} {half}{unit} ago"


def _japanese_season(parts: dict[str, str]) -> str:
    season = _SEASONS[parts["season2"]]
    if "which2" in parts:
        return f"this {season}"
    return _in_period(season, parts.get("year6", ""))


def _japanese_week(parts: dict[str, str]) -> str:
    which = _WHICH[parts["which3"]]
    if which == "before":
        return "week before last"
    if "day3" in parts:
        return f"{_JAPANESE_DAYS[parts['day3']]}day of {which} week"
    return f"{which} {'weekend' if 'weekend3' in parts else 'week'}"


def _week(parts: dict[str, str]) -> str:
    which = _WHICH[parts["which"]]
    if which == "before":
        return "week before last"
    if "weekday" in parts:
        return f"{_DAYS[parts['weekday']]}day of {which} week"
    return f"{which} {'weekend' if 'weekend' in parts else 'week'}"


_READERS: dict[str, Callable[[dict[str, str]], str | None]] = {
    "month": _date,
    "month2": _date,
    "month3": _date,
    "season": _season,
    "quarter": lambda match: _in_period(f"Q{_number(match['quarter'])}", match.get("year4", "")),
    "whichquarter": lambda match: f"{_WHICH[match['whichquarter']]} quarter",
    "year2": lambda match: f"in {match['year2']}",
    "unit": _ago,
    "last": lambda match: f"the last {_number(match['last'])} {_UNITS[match['lastunit']]}",
    "which": _week,
    "season2": _japanese_season,
    "which3": _japanese_week,
    "day4": lambda match: f"on {_JAPANESE_DAYS[match['day4']]}day",
    "whichmonth": lambda match: (
        "2 months ago" if match["whichmonth"] == "先々" else f"{_WHICH[match['whichmonth']]} month"
    ),
    "plain": lambda match: f"on {_DAYS[match['plain']]}day",
    "near": lambda match: _RELATIVE[match["near"]],
}
