"""``reservoir doctor`` reports faults with their fixes."""

import os
import re
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest


def checks(result) -> dict[str, tuple[str, str | None]]:
    """Return (status, fix) of each check by name; the last one if a name repeats."""
    assert result.document["schema_version"] == 1
    rows = result.document["checks"]
    assert all(set(row) == {"name", "status", "detail", "fix"} for row in rows)
    return {row["name"]: (row["status"], row["fix"]) for row in rows}


def break_full_text(store) -> None:
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("INSERT INTO messages_fts (messages_fts) VALUES ('delete-all')")


def test_a_new_home_has_notes_and_no_fault(cli):
    reported = checks(cli("doctor", "--json"))
    assert reported["settings"] == ("ok", None)
    assert reported["store"] == ("note", "reservoir ingest creates it")
    assert reported["model"][0] == "note"  # the model of these tests is absent
    assert not cli.db.exists()


def test_pending_messages_are_a_note(cli):
    cli.say("hello")
    assert checks(cli("doctor", "--json"))["vectors"] == ("note", "reservoir embed")


def test_in_a_pipe_each_check_is_one_line(cli):
    cli.say("hello")
    lines = cli("doctor").out.splitlines()
    assert all(line.split("\t")[0] in ("ok", "note") for line in lines)
    assert f"store\t{cli.db}, 1 message," in "\n".join(lines)


def test_on_a_terminal_paths_are_whole_and_all_fits_a_screen(cli, tmp_path):
    store = tmp_path / "a folder with a long name" / ("deep" * 20) / "store.db"
    cli("config", "set", f"database={store}")
    cli.say("hello")
    shown = cli.on_terminal("doctor").out
    assert f"store         {store},\n" in shown.replace("\r", "")
    assert "to do: reservoir embed" in shown
    assert len(shown.splitlines()) <= 24


def test_on_a_terminal_a_long_text_is_divided_between_its_parts(cli):
    cli.say("hello")
    rows = cli("doctor", "--json").document["checks"]
    texts = [re.sub(r"\d+", "N", row[key]) for row in rows for key in ("detail", "fix") if row[key]]
    shown = cli.on_terminal("doctor", env={"COLUMNS": "60"}).out.replace("\r", "")
    unfolded = re.sub(r"\n {7,}", " ", re.sub(r"\d+", "N", shown))
    assert all(text in unfolded for text in texts)
    long = [line for line in shown.splitlines() if len(line) > 60]
    assert not [line for line in long if ", " in line or " (" in line]


def test_wrong_derived_tables_are_a_fault_that_repair_fixes(cli):
    cli.say("hello there")
    break_full_text(cli.db)
    broken = cli("doctor", "--json", code=1)
    assert checks(broken)["contents"] == ("fault", "reservoir doctor --repair")
    assert cli("search", "--keyword", "hello").out == ""
    assert "contents" not in checks(cli("doctor", "--repair", "--json"))
    assert "hello" in cli("search", "--keyword", "hello").out


@pytest.mark.parametrize("damage", ["text", "torn"])
def test_a_store_that_cannot_be_read_is_a_fault(cli, damage):
    cli.say("hello")
    whole = cli.db.read_bytes()
    cli.db.write_bytes(b"no database" * 500 if damage == "text" else whole[:4096] + bytes(20_000))
    for beside in cli.db.parent.glob("reservoir.db-*"):
        beside.unlink()
    reported = checks(cli("doctor", "--json", code=1))
    assert "fault" in {reported["store"][0], reported.get("contents", ("", ""))[0]}


def test_salvage_names_what_a_damaged_table_costs(cli, tmp_path):
    """Whatever table lies on the lost page."""
    cli.say("hello")
    with closing(sqlite3.connect(cli.db)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        pages = connection.execute(
            "SELECT name, rootpage FROM sqlite_master "
            "WHERE rootpage > 1 AND type = 'table' AND name != 'messages'"
        ).fetchall()
    whole = cli.db.read_bytes()
    warned = {}
    for name, page in pages:
        start = (page - 1) * 4096
        cli.db.write_bytes(whole[:start] + b"\xff" * 4096 + whole[start + 4096 :])
        warned[name] = cli("doctor", "--salvage", str(tmp_path / f"{name}.db")).err
    assert "imports may bring forgotten messages back" in warned["tombstones"]
    assert "embed rebuilds all embeddings" in warned["properties"]
    assert "some titles of conversations cannot be read" in warned["conversations"]
    assert "some pins cannot be read" in warned["pins"]
    assert "cannot be read" not in warned["tags"]  # their index holds as much


def test_settings_that_cannot_be_read_are_a_fault_and_the_rest_is_checked(cli):
    cli.say("hello")
    (cli.home / "reservoir.toml").write_text("nonsense = 1\n", encoding="utf-8")
    reported = checks(cli("doctor", "--json", code=1))
    assert reported["settings"][0] == "fault"
    assert reported["store"] == ("ok", None)


def test_a_source_that_does_not_exist_is_a_note(cli, tmp_path):
    missing = tmp_path / "gone"
    cli("config", "set", f"sources.codex.path={missing}")
    fix = "reservoir config set sources.codex.path=FOLDER, or reservoir config unset sources.codex"
    assert checks(cli("doctor", "--json"))["sources"] == ("note", fix)
    missing.mkdir()
    assert "sources" not in checks(cli("doctor", "--json"))
    (cli.home / "reservoir.toml").write_text('[sources.codex]\npath = "~nobody-is-called-so/a"\n')
    assert checks(cli("doctor", "--json", code=1))["sources"][0] == "fault"


@pytest.mark.parametrize(
    ("settings", "detail"),
    [
        ('tool = "claud-code"', "unknown tool 'claud-code'"),
        ("path = 5", "sources.x.path must be a string"),
        ('folder = "/a"', "unknown setting 'folder' in [sources.x]"),
    ],
)
def test_wrong_sources_are_faults(cli, settings, detail):
    cli.home.mkdir()
    (cli.home / "reservoir.toml").write_text(f"[sources.x]\n{settings}\n")
    found = {row["name"]: row for row in cli("doctor", "--json", code=1).document["checks"]}
    assert found["sources"]["status"] == "fault"
    assert detail in found["sources"]["detail"]


def test_settings_of_a_partition_that_does_not_exist_are_a_note(cli):
    cli("config", "set", "partitions.wrok.redact=mask", "partitions.default.redact=mask")
    assert checks(cli("doctor", "--json"))["settings"] == ("ok", None)
    cli.say("hello")
    fix = "reservoir config unset partitions.wrok.redact; reservoir partitions lists the names"
    assert checks(cli("doctor", "--json"))["settings"] == ("note", fix)
    cli("config", "unset", "partitions.wrok.redact")
    assert checks(cli("doctor", "--json"))["settings"] == ("ok", None)


def test_a_model_that_does_not_read_most_questions_is_a_note(cli_with_model):
    cli = cli_with_model
    cli.env["RESERVOIR_EMBEDDING_MODEL"] = "nobody/absent-model"
    german = "Wann ist der Termin?", "Wie viel Wasser kommt in den Teig?", "Was hat er gesagt?"
    english = "What did we choose?", "Why is the port closed?"
    cli.store(*({"content": text} for text in (*german, *english)))
    assert "language" not in checks(cli("doctor", "--json"))  # the model is another one
    cli.env["RESERVOIR_EMBEDDING_MODEL"] = "all-MiniLM-L6-v2"
    fix = "reservoir embed --model intfloat/multilingual-e5-small"
    assert checks(cli("doctor", "--json"))["language"] == ("note", fix)
    cli.say("And where is it now?")
    assert "language" not in checks(cli("doctor", "--json"))


def test_readable_files_are_noted_and_repair_makes_them_private(cli):
    cli.say("hello")
    cli.db.chmod(0o644)
    assert checks(cli("doctor", "--json"))["privacy"][0] == "note"
    assert "now readable only by you" in cli("doctor", "--repair").out
    assert "privacy" not in checks(cli("doctor", "--json"))
    assert cli.db.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_a_folder_that_others_can_enter_is_noted_and_left_as_it_is(cli):
    # The folders of tests are closed to others; everybody can enter this one's parents.
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        doctor = "--db", f"{folder}/store.db", "doctor", "--json"
        cli("--db", f"{folder}/store.db", "ingest", "--no-embed", stdin="private")
        assert "folder" not in checks(cli(*doctor))
        Path(folder).chmod(0o755)
        assert checks(cli(*doctor))["folder"][0] == "note"
        assert Path(folder).stat().st_mode & 0o777 == 0o755


def test_the_speed_is_that_of_a_question_among_all_messages(cli):
    for count in ("1 message", "2 messages"):
        cli.say("hello")
        rows = cli("doctor", "--json").document["checks"]
        (detail,) = (row["detail"] for row in rows if row["name"] == "speed")
        assert detail.startswith(f"a question among {count}: ")


@pytest.mark.model
def test_the_engine_is_named_once(cli_with_model):
    rows = cli_with_model("doctor", "--json").document["checks"]
    (detail,) = (row["detail"] for row in rows if row["name"] == "engine")
    assert detail.startswith("compiled ")
    assert detail.count("compiled") == 1


@pytest.mark.model
def test_repair_renews_what_ranking_repeats_of_messages(samples):
    question = ("search", "why did we drop Redis?", "--all-partitions", "--json")
    before = samples(*question).document
    with closing(sqlite3.connect(samples.db)) as connection, connection:
        connection.execute("UPDATE blocks SET word_counts = zeroblob(4 * n)")
    assert samples(*question).document != before
    checks(samples("doctor", "--json", code=1))
    assert checks(samples("doctor", "--repair", "--json"))["engine"] == ("ok", None)
    assert samples(*question).document == before


def test_calibrate_cannot_be_combined_with_repair(cli):
    assert (
        "--calibrate cannot be combined with"
        in cli("doctor", "--calibrate", "--repair", code=2).err
    )


@pytest.mark.model
def test_a_store_with_few_questions_is_not_calibrated(cli_with_model):
    refused = cli_with_model("doctor", "--calibrate", code=1)
    assert refused.out == ""
    assert "too few questions with a reply: 0, and 100 are needed" in refused.err
    assert checks(cli_with_model("doctor", "--json"))["recall_floor"] == ("ok", None)


@pytest.mark.model
def test_a_calibrated_floor_is_kept_and_reported(samples):
    measured = samples("doctor", "--calibrate", "--json").document["calibration"]
    assert measured["questions"] >= 100
    # The samples have too few questions to lower what was measured for the model.
    assert (measured["before"], measured["recall_floor"]) == (0.25, 0.25)
    assert measured["questions"] < 500
    assert 0 < measured["lost"] < measured["refused"]
    assert measured["unrelated_median"] < measured["related_median"]
    (check,) = (
        check
        for check in samples("doctor", "--json").document["checks"]
        if check["name"] == "recall_floor"
    )
    assert check["detail"] == f"{measured['recall_floor']:g} (calibrated on this store)"
