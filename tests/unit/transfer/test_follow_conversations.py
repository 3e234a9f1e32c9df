"""Which partition a synced message goes to."""

from pathlib import Path

from sessions import WORK, turn

from reservoir_cli.messages import Scope

PLAY = Scope("play", "claude-code")


def projects(root: Path, *folders: tuple[str, str]) -> dict[str, str]:
    return {str(root / folder): partition for folder, partition in folders}


def test_messages_go_to_the_partition_of_their_folder(machine, tmp_path):
    machine.projects = projects(tmp_path, ("games", "play"), ("games/paid", "work"))
    for number, folder in enumerate(("games", "games/deep/down", "games/paid", "other"), 1):
        session = {"cwd": str(tmp_path / folder), "sessionId": f"s{number}"}
        machine.write(f"a/s{number}.jsonl", *turn(10 * number, f"in {folder}?", "yes", **session))
    machine.sync()
    said = {scope: machine.said(scope)[::2] for scope in (PLAY, WORK)}
    assert said == {
        PLAY: ["in games?", "in games/deep/down?"],
        WORK: ["in games/paid?", "in other?"],
    }


def test_later_turns_stay_with_their_conversation(machine, tmp_path):
    here = {"cwd": str(tmp_path / "games")}
    machine.write("a/s1.jsonl", *turn(1, "first?", "yes", **here))
    machine.sync()
    machine.projects = projects(tmp_path, ("games", "play"))
    machine.write("a/s1.jsonl", *turn(3, "second?", "yes", **here))
    helper = {"isSidechain": True, "agentId": "h1", **here}
    machine.write("a/s1/subagents/agent-h1.jsonl", *turn(5, "look", "found", **helper))
    machine.write("a/s2.jsonl", *turn(7, "new?", "yes", sessionId="s2", **here))
    assert machine.sync().imports.imported == 6
    assert sorted(machine.said(WORK)[::2]) == ["first?", "look", "second?"]
    assert machine.said(PLAY) == ["new?", "yes"]


def test_a_conversation_that_changes_its_folder_stays_whole(machine, tmp_path):
    machine.projects = projects(tmp_path, ("games", "play"))
    machine.write(
        "a/s1.jsonl",
        *turn(1, "out?", "yes", cwd=str(tmp_path)),
        *turn(3, "in?", "yes", cwd=str(tmp_path / "games")),
    )
    machine.sync()
    assert machine.said(WORK) == ["out?", "yes", "in?", "yes"]
    assert machine.said(PLAY) == []
