"""Commands keep their contract on any arguments, stdin and settings, and the store stays sound.

The long form is ``python tests/security/fuzz.py``.
"""

from pathlib import Path

import forked
import pytest
import world as worlds
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lines import commands, lines
from settings_files import BROKEN, environments, settings_bytes

#: The same examples in every run; the long form is random.
short = settings(
    max_examples=5,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.parametrize("command", commands())
@short
@given(data=st.data())
def test_no_line_breaks_a_command(made_world, tmp_path, command, data):
    line = data.draw(lines(command))
    folder = worlds.copied(made_world, tmp_path / "world")
    before = worlds.held(folder)
    env = worlds.environment(folder)
    answer = forked.run(*line.arguments, stdin=line.stdin, env=env, folder=folder)
    forked.hold(answer)
    after = worlds.held(folder)
    assert not line.reads or after == before
    assert not (tmp_path / "outside.jsonl").exists()


@short
@given(env=environments)
def test_no_environment_breaks_a_command(made_world, tmp_path, env):
    folder = worlds.copied(made_world, tmp_path / "world")
    full = {**worlds.environment(folder), **env}
    for arguments in (("context", "queue?"), ("config", "--list", "--json")):
        forked.hold(forked.run(*arguments, env=full, folder=folder))


@short
@given(text=settings_bytes)
def test_no_settings_file_breaks_a_command(made_world, tmp_path, text):
    _hold_settings(made_world, tmp_path, text)


@pytest.mark.parametrize("number", range(len(BROKEN)))
def test_no_broken_settings_file_breaks_a_command(made_world, tmp_path, number):
    _hold_settings(made_world, tmp_path, BROKEN[number])


def _hold_settings(made_world: Path, tmp_path: Path, text: bytes) -> None:
    folder = worlds.copied(made_world, tmp_path / "world")
    file = folder / "home" / "reservoir.toml"
    file.write_bytes(text)
    env = worlds.environment(folder)
    answer = forked.run("context", "queue?", env=env, folder=folder)
    forked.hold(answer)
    assert answer.code in (0, 2, 5)
    changed = forked.run("config", "--set", "partition=other", env=env, folder=folder)
    forked.hold(changed)
    if changed.code == 0:
        assert forked.run("config", "--get", "partition", env=env, folder=folder).out == b"other\n"
    else:
        assert file.read_bytes() == text
