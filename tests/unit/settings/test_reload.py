"""Settings of a running program follow their file."""

import os
import time
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event

import pytest

from reservoir_cli.errors import UsageError
from reservoir_cli.settings import config, reload
from reservoir_cli.settings.config import Config
from reservoir_cli.settings.reload import LiveConfig


def refuse_home(loaded: Config) -> None:
    if loaded.settings().partition == "refused":
        raise UsageError("not that one")


def test_a_file_is_read_when_it_changes_and_only_then(tmp_path):
    file, log = tmp_path / "settings.toml", []
    file.write_text('partition = "a"', encoding="utf-8")
    live = LiveConfig(config.load(file), log.append, refuse_home)
    first = live.current()
    assert live.current() is first
    for text, partition, lines in (
        ('partition = "late"', "late", 0),  # a new size: two writes may have the same time
        ('partition = "late', "late", 1),
        ('partition = "refused"', "late", 2),
        ('partition = "other"', "other", 2),
    ):
        file.write_text(text, encoding="utf-8")
        assert live.current().settings().partition == partition
        assert live.current().settings().partition == partition
        assert len(log) == lines
    file.unlink()
    assert live.current().settings().partition == "other"
    assert len(log) == 3


@pytest.mark.parametrize("age", [5000, -5000])
def test_an_empty_file_may_be_one_that_is_being_written(tmp_path, monkeypatch, age):
    monkeypatch.setattr(reload, "EMPTY_WHILE_WRITTEN", 4000 * 10**9)  # a test may be slow
    file = tmp_path / "settings.toml"
    file.write_text('redact = "remove"', encoding="utf-8")
    live = LiveConfig(config.load(file), print)
    file.write_text("", encoding="utf-8")
    now = time.time()
    os.utime(file, (now, now))
    assert live.current().settings().redact == "remove"
    os.utime(file, (now - age, now - age))
    assert live.current().settings().redact == "mark"


def test_flags_and_the_environment_still_override_a_changed_file(tmp_path, monkeypatch):
    monkeypatch.setenv("RESERVOIR_REDACT", "mask")
    file = tmp_path / "settings.toml"
    file.write_text("", encoding="utf-8")
    live = LiveConfig(config.load(file, {"partition": "mine"}), print)
    file.write_text('partition = "b"\nredact = "off"\nrecency_weight = 0.5', encoding="utf-8")
    settings = live.current().settings()
    assert (settings.partition, settings.redact, settings.recency_weight) == ("mine", "mask", 0.5)


def test_a_file_that_is_created_later_is_read(tmp_path, home):
    live = LiveConfig(config.load(), print)
    assert live.current().settings().partition == "default"
    home.mkdir(exist_ok=True)
    (home / "reservoir.toml").write_text('partition = "b"', encoding="utf-8")
    assert live.current().settings().partition == "b"


def test_a_thread_waits_for_settings_that_another_one_is_reading(tmp_path):
    reading, go_on = Event(), Event()

    def check(_: Config) -> None:
        reading.set()
        assert go_on.wait(60)

    file = tmp_path / "settings.toml"
    file.write_text('partition = "a"', encoding="utf-8")
    live = LiveConfig(config.load(file), print, check)
    file.write_text('partition = "another"', encoding="utf-8")
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(live.current)
        assert reading.wait(60)
        second = pool.submit(live.current)
        wait([second], 0.2)
        go_on.set()
    assert first.result() is second.result()
