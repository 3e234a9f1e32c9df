"""Progress lines of long work."""

from each import each

from reservoir_cli.util.progress import duration_in_words, pace

PACES = [
    # done, total, measured, seconds, text
    (0, 0, 0, 9.0, ""),
    (0, 500, 0, 9.0, "0 of 500"),
    (512, 12_431, 512, 2.0, "512 of 12,431 · 256/s · 47 s left"),
    (512, 12_431, 512, 0.5, "512 of 12,431"),
    (3, 40, 3, 2.0, "3 of 40 · 1.5/s · 25 s left"),
    (900, 1_000, 100, 10.0, "900 of 1,000 · 10/s · 10 s left"),
    (500, 500, 500, 2.0, "500 of 500"),
]


@each(("done", "total", "measured", "seconds", "text"), PACES)
def test_a_line_shows_progress_rate_and_remaining_time(done, total, measured, seconds, text):
    assert pace(done, total, measured, seconds) == text


DURATIONS = [(0.2, "1 s"), (46.4, "46 s"), (99.6, "2 min"), (3_570, "1 h"), (4_800, "1 h 20 min")]


@each(("seconds", "text"), DURATIONS)
def test_a_duration_is_written_in_words(seconds, text):
    assert duration_in_words(seconds) == text
