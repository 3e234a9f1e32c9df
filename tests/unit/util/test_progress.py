"""Reports of progress."""

from each import each

from reservoir_cli.util.progress import report_megabytes

READ = [
    # done, total, report
    (0, 900_000, ("reading", 0, 0)),
    (900_000, 900_000, ("reading", 0, 0)),
    (0, 3 << 20, ("MB read", 0, 3)),
    (2 << 20, 3 << 20, ("MB read", 2, 3)),
]


@each(("done", "total", "report"), READ)
def test_megabytes_are_named_only_with_their_number(done, total, report):
    reports = []
    report_megabytes(lambda *values: reports.append(values), done, total)
    assert reports == [report]
