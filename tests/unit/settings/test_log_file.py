"""Which hooks failed lately is read from the log, which may be damaged."""

from datetime import UTC, datetime, timedelta

import pytest

from reservoir_cli.settings import paths
from reservoir_cli.settings.log_file import recent_failures


@pytest.mark.parametrize(
    "line",
    [
        "9999-12-31T23:59:59-12:00 WARNING hook early",  # no such time in UTC
        "0001-01-01T00:00:00+14:00 WARNING hook late",
        "2026-13-01T00:00:00+00:00 WARNING hook never",
        "2026-05-01T00:00:00+00:00 WARNING hook long ago",
        "2026-11-29T01:00:00+00:00 WARNING something else",
    ],
)
def test_a_damaged_line_hides_no_other(tmp_path, monkeypatch, line):
    monkeypatch.setenv("RESERVOIR_HOME", str(tmp_path))
    at = datetime.now(UTC) - timedelta(days=6)
    good = f'{at.isoformat()} WARNING hook "user-prompt": "the store is locked"'
    paths.log_file().write_text(f"{line}\n{good}\n", encoding="utf-8")
    assert [failure.at for failure in recent_failures()] == [at]
