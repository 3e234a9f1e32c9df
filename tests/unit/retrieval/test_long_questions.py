"""Long questions: the work of finding their dates grows with the question, not faster."""

from collections.abc import Callable

from counted_work import Work, count_lines, counting_imports
from named_days import NOW

DATES = "reservoir_cli.retrieval.question_dates"
#: Twice the question may take this many times the work; quadratic work takes four times.
MOST_GROWTH = 2.2
#: What long questions are made of: parts of dates in each language, and what else is read apart.
UNITS = (
    "may |early |week before |7 |1,|July and |between July and |a few |`|(|'|the |7 July to "
    "|first week of |2023-|x|x |, |1 day ago |am |vor zwei |3. |il y a |le lundi |hace |4月|一"
    "|周一到|hier |von 3 bis |entre le 3 et le |de lunes a |5月3日到|3到|de 2020 et 2022 "
).split("|")


def quadratic_parts(measure: Callable[[str], Work], unit: str) -> dict[str, tuple[int, int]]:
    """Return the functions and patterns that do far more than twice the work on twice a text."""
    repeats = max(8, 60 // len(unit))
    once, twice = measure(unit * repeats), measure(unit * repeats * 2)
    return {
        part: (once[part], steps)
        for part, steps in twice.items()
        if steps > MOST_GROWTH * once[part] + 1
    }


def test_the_work_on_a_question_does_not_grow_with_its_square():
    with counting_imports(DATES) as (question_dates, steps):

        def measure(question: str) -> Work:
            steps.clear()
            lines = count_lines(lambda: question_dates.parser.find_dates(question, NOW), DATES)
            return steps + lines

        quadratic = {unit: quadratic_parts(measure, unit) for unit in UNITS}
        assert not {unit: parts for unit, parts in quadratic.items() if parts}


def test_the_count_of_lines_tells_quadratic_work():
    def measure(text: str) -> Work:
        return count_lines(lambda: [one < other for one in text for other in text], __name__)

    assert quadratic_parts(measure, "x")
