"""Connect clients with hooks, which call us at the events of a session."""

import json
import os
from collections.abc import Callable

import pytest

from reservoir_cli.agents.connect import CLIENTS, connect, disconnect, status
from reservoir_cli.agents.connect.client import Client, _is_our_hook
from reservoir_cli.errors import UsageError

PROGRAM = ["/opt/a b/reservoir"]
WITH_HOOKS = [name for name in sorted(CLIENTS) if CLIENTS[name].events]
WriteSettings = Callable[[Client], bytes]


@pytest.mark.parametrize("name", WITH_HOOKS)
def test_each_event_calls_us_once_and_the_hooks_of_others_stay(name, user):
    client = CLIENTS[name]
    path = client.hooks_settings()
    path.parent.mkdir(parents=True)
    theirs = {"matcher": "", "hooks": [{"type": "command", "command": "say reservoir hook"}]}
    event = next(iter(client.events))
    path.write_text(json.dumps({"hooks": {event: [theirs], "Other": [theirs]}}, indent=1))
    before = path.read_bytes()
    connect(client, PROGRAM, hooks=True)
    groups = json.loads(path.read_bytes())["hooks"]
    assert groups.pop("Other") == [theirs]
    assert groups[event].pop(0) == theirs
    for name_of_event, word in client.events.items():
        (group,) = groups[name_of_event]
        (handler,) = group["hooks"]
        if os.name == "posix":
            assert handler["command"] == f"'/opt/a b/reservoir' hook {word}"
        assert handler["timeout"] == client.hook_timeout
    assert status(client).hooks is True
    connect(client, PROGRAM)  # without --hooks the hooks stay
    assert status(client).hooks is True
    connect(client, PROGRAM, hooks=False)
    assert (status(client).hooks, status(client).command) == (False, [*PROGRAM, "mcp"])
    assert json.loads(path.read_bytes())["hooks"] == json.loads(before)["hooks"]
    connect(client, PROGRAM, hooks=True)
    disconnect(client)
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", WITH_HOOKS)
def test_a_hook_among_others_in_a_group_is_removed_alone(name, user):
    client = CLIENTS[name]
    path = client.hooks_settings()
    path.parent.mkdir(parents=True)
    event = next(iter(client.events))
    ours = {"type": "command", "command": "/usr/bin/reservoir --db /x hook stop"}
    other = {"type": "command", "command": "true"}
    path.write_text(json.dumps({"hooks": {event: [{"hooks": [other, ours, other]}]}}))
    disconnect(client)
    assert json.loads(path.read_bytes()) == {"hooks": {event: [{"hooks": [other, other]}]}}


@pytest.mark.parametrize(
    ("command", "is_ours"),
    [
        ("/opt/reservoir hook stop", True),
        ("'/opt/a b/reservoir' --config '/a hook/c.toml' --db /x hook stop", True),
        ("/opt/python3 -P -m reservoir_cli --db /x hook stop", True),
        ('A=b C="d e" /opt/reservoir hook --budget=800 user-prompt', True),
        ("echo reservoir hook stop", False),
        ("say -m 'reservoir hook stop'", False),
        ("log-reservoir hook stop", False),
        ("/opt/reservoir hook stop --mine", False),
        ("/opt/reservoir search hook stop", False),
        ("/opt/reservoir --db hook stop", False),
        ("/opt/reservoir --db hook hook stop --budget 800", True),
        ("/opt/reservoir hook stop; echo reservoir hook stop", False),
        ("'reservoir hook stop", False),
        ("A=b", False),
        ("", False),
    ],
)
def test_only_commands_that_run_us_are_removed(command, is_ours, user):
    client = CLIENTS[WITH_HOOKS[0]]
    path = client.hooks_settings()
    path.parent.mkdir(parents=True)
    hook = {"hooks": [{"type": "command", "command": command}]}
    other = {"hooks": [{"type": "command", "command": "true"}]}
    event = next(iter(client.events))
    path.write_text(json.dumps({"hooks": {event: [hook, other]}}))
    assert status(client).hooks is is_ours
    disconnect(client)
    left = json.loads(path.read_bytes())["hooks"][event]
    assert left == ([other] if is_ours else [hook, other])


@pytest.mark.parametrize("name", WITH_HOOKS)
def test_hooks_that_the_user_added_to_are_kept_updated_and_removed(name, user):
    client = CLIENTS[name]
    path = client.hooks_settings()
    path.parent.mkdir(parents=True)
    connect(client, ["/opt/reservoir"], hooks=True)
    edited = path.read_text().replace("user-prompt", "user-prompt --budget 800")
    path.write_text(edited.replace('"/opt/reservoir hook stop', '"A=b /opt/reservoir hook stop'))
    assert not connect(client, ["/opt/reservoir"], hooks=True).is_changed
    connect(client, ["/new/reservoir"], hooks=True)
    commands = [command for _, command in client.hooks(client.open(path))]
    assert len(commands) == len(client.events)
    assert "/new/reservoir hook user-prompt --budget 800" in commands
    disconnect(client)
    assert not path.exists() or "reservoir" not in path.read_text()


@pytest.mark.parametrize("name", sorted(set(CLIENTS) - set(WITH_HOOKS)))
def test_a_client_without_hooks_says_so(name, write_settings):
    write_settings(CLIENTS[name])
    with pytest.raises(UsageError, match="has no hooks"):
        connect(CLIENTS[name], PROGRAM, hooks=True)
    assert status(CLIENTS[name]).hooks is None


@pytest.mark.parametrize(("name", "before"), [("claude", ""), ("codex", ""), ("gemini", "& ")])
def test_a_program_with_a_blank_is_written_for_the_shell_of_the_client_on_windows(name, before):
    client, arguments = CLIENTS[name], ["hook", "stop"]
    command = client.hook_command(["C:\\a b\\reservoir.exe", *arguments], windows=True)
    assert command == f'{before}"C:/a b/reservoir.exe" hook stop'
    assert _is_our_hook(command)
    plain = client.hook_command(["C:\\a\\reservoir.exe", *arguments], windows=True)
    assert plain == "C:/a/reservoir.exe hook stop"
