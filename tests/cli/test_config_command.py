import tomllib

import pytest

from reservoir_cli.settings.setting_keys import split_key

MODEL_KEY = "models.gpt-3.5-turbo.reserve_tokens"


@pytest.fixture
def file(cli):
    cli.home.mkdir()
    return cli.home / "reservoir.toml"


def test_path_prints_the_path_even_if_there_is_no_file(cli, file):
    assert cli("config", "--path").out == f"{file}\n"
    assert not file.exists()
    assert cli("config", "--path", "--json").document == {"schema_version": 1, "path": str(file)}


def test_get_prints_the_value_that_was_set(cli, file):
    result = cli("config", "--set", "recent_context_size=7")
    assert (result.out, result.err) == ("", "")
    assert cli("config", "--get", "recent_context_size").out == "7\n"
    assert tomllib.loads(file.read_text()) == {"recent_context_size": 7}
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_folder_of_a_model_is_kept_by_its_whole_path(cli, file, tmp_path):
    (tmp_path / "models").mkdir()
    for typed, stored in (("./models", str(tmp_path / "models")), ("./nowhere", "./nowhere")):
        cli("config", "set", f"embedding_model={typed}")
        assert tomllib.loads(file.read_text())["embedding_model"] == stored


def test_get_prints_the_default_of_an_unset_setting(cli):
    assert cli("config", "--get", "similarity_weight").out == "0.7\n"
    assert cli("config", "--get", "partition").out == "default\n"


def test_json_of_get_has_value_and_origin(cli, file):
    document = cli("config", "--get", "recent_context_size", "--json").document
    assert document["schema_version"] == 1
    assert (document["value"], document["origin"]) == (15, "default")
    cli("config", "--set", "recent_context_size=7")
    assert cli("config", "--get", "recent_context_size", "--json").document["origin"] == "file"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nosuch = 1", "unknown setting 'nosuch'"),
        ("recent_context_size = 'x'", "recent_context_size must be a whole number, not 'x'"),
        ("[partitions.work]\nredact = 'all'", "partitions.work.redact cannot be 'all'"),
    ],
    ids=["name", "type", "value"],
)
@pytest.mark.parametrize("options", [["--list"], ["--unset", "absent"], ["--set", "fill=true"]])
def test_an_error_in_the_file_names_the_file_and_has_a_hint(cli, file, text, message, options):
    file.write_text(text)
    result = cli("config", *options, code=2)
    assert result.err.startswith(f"error: {file}: {message}\nhint: ")
    assert "--list" not in result.err
    assert file.read_text() == text


def test_an_invalid_store_is_refused_by_the_option_or_setting_that_names_it(cli, file):
    hint = "hint: give the path of a file, or postgresql://USER@HOST/DATABASE\n"
    message = "a store at foo:// is not supported\n"
    result = cli("config", "--set", "database=foo://u:s3cret@x", code=2)
    assert result.err == f"error: database: {message}{hint}"
    assert not file.exists()
    for arguments, env, origin in (
        (("view",), {"RESERVOIR_DB": "foo://u:s3cret@x"}, "RESERVOIR_DB"),
        (("view",), {"RESERVOIR_DATABASE": "foo://u:s3cret@x"}, "RESERVOIR_DATABASE"),
        (("--db", "foo://u:s3cret@x", "view"), {}, "--db"),
    ):
        assert cli(*arguments, code=2, env=env).err == f"error: {origin}: {message}{hint}"
    file.write_text('database = "foo://u:s3cret@x"\n')
    assert cli("view", code=2).err == f"error: {file}: database: {message}{hint}"


@pytest.mark.parametrize(
    ("key", "table", "name", "value"),
    [
        ('partitions."a/b = c".redact', "partitions", "a/b = c", "mask"),
        ("models.'my-model:7b'.context_window", "models", "my-model:7b", "32768"),
    ],
)
def test_a_name_may_be_quoted_as_in_the_file(cli, file, key, table, name, value):
    cli("config", "--set", f"{key}={value}")
    assert list(tomllib.loads(file.read_text())[table]) == [name]
    assert cli("config", "--get", key).out == f"{value}\n"
    listed = {line.split("\t")[0]: line.split("\t")[1] for line in cli("config").out.splitlines()}
    assert value in [
        listed[listed_key] for listed_key in listed if split_key(listed_key)[1] == name
    ]
    cli("config", "--unset", key)
    assert tomllib.loads(file.read_text()).get(table, {}) == {}


def test_names_in_the_list_are_accepted(cli, file):
    cli("config", "--set", 'partitions."Anna\'s".redact=mask')
    (key,) = [line.split("\t")[0] for line in cli("config").out.splitlines() if "Anna" in line]
    assert cli("config", "--get", key).out == "mask\n"


def test_several_settings_are_set_at_once(cli, file):
    cli("config", "--set", "partition=work", "--set", "recent_context_size=20")
    assert tomllib.loads(file.read_text()) == {"partition": "work", "recent_context_size": 20}


@pytest.mark.parametrize(
    "setting",
    ["nonsense=1", "recent_context_size=many", "recent_context_size=-1", "similarity_weight=1.5"],
)
def test_one_bad_setting_sets_none(cli, file, setting):
    file.write_text("# mine\nrecent_context_size = 3\n")
    result = cli("config", "--set", "partition=work", "--set", setting, code=2)
    assert setting.split("=")[0] in result.err
    assert file.read_text() == "# mine\nrecent_context_size = 3\n"


def test_an_unknown_key_gets_similar_names(cli):
    for action in ("--get", "--unset"):
        result = cli("config", action, "recent_contxt_size", code=2)
        assert "recent_context_size" in result.err.splitlines()[1]
    result = cli("config", "--set", "similarity_wieght=1", code=2)
    assert "similarity_weight" in result.err.splitlines()[1]


def test_a_change_keeps_comments_order_and_the_rest(cli, file):
    file.write_text(
        "# my settings\nsimilarity_weight = 0.6 # measured\n\nrecent_context_size = 3\n"
        "\n[partitions.work]\nrecent_context_size = 30 # a lot\n"
    )
    cli("config", "--set", "recent_context_size=4", "--set", "model=gpt-4")
    text = file.read_text()
    for line in ("# my settings\n", "similarity_weight = 0.6 # measured\n", "30 # a lot\n"):
        assert line in text
    assert text.index("similarity_weight") < text.index("recent_context_size = 4")
    assert tomllib.loads(text)["model"] == "gpt-4"
    assert tomllib.loads(text)["partitions"] == {"work": {"recent_context_size": 30}}


def test_unset_restores_the_default(cli, file):
    cli("config", "--set", "recent_context_size=7", "--set", "partition=work")
    cli("config", "--unset", "recent_context_size")
    assert cli("config", "--get", "recent_context_size").out == "15\n"
    assert tomllib.loads(file.read_text()) == {"partition": "work"}


@pytest.mark.parametrize("key", ["fill", "partitions.home.fill", "models.gpt-4o.reserve_tokens"])
def test_unset_notes_only_keys_that_are_not_set(cli, file, key):
    cli("config", "set", f"{key}={'900' if key.endswith('tokens') else 'true'}")
    assert cli("config", "unset", key).err == ""
    assert cli("config", "unset", key).err == f"note: not set in {file}: {key}\n"


@pytest.mark.parametrize("text", ["", 'partition = "work"\n', "[partitions.x]\n# none\n"])
def test_unset_of_an_unset_setting_leaves_the_file(cli, file, text):
    file.write_text(text)
    cli("config", "--unset", "partitions.home.redact")
    cli("config", "--unset", "models.gpt-4o.reserve_tokens")
    assert file.read_text() == text


def test_removing_the_last_setting_of_a_table_removes_its_header(cli, file):
    file.write_text('# mine\n[partitions.home]\nredact = "mask"\n')
    cli("config", "--unset", "partitions.home.redact")
    assert file.read_text() == "# mine\n"


def test_a_model_keeps_the_dots_of_its_name(cli, file):
    cli("config", "--set", f"{MODEL_KEY}=512")
    assert tomllib.loads(file.read_text()) == {"models": {"gpt-3.5-turbo": {"reserve_tokens": 512}}}
    assert cli("config", "--get", MODEL_KEY).out == "512\n"
    cli("config", "--set", f"{MODEL_KEY}=1024")
    assert cli("config", "--get", MODEL_KEY).out == "1024\n"


def test_the_unquoted_header_of_a_model_is_kept_and_not_duplicated(cli, file):
    file.write_text("# cheap\n[models.gpt-3.5-turbo] # ours\nrecent_context_size = 4\n")
    assert cli("config", "--get", "models.gpt-3.5-turbo.recent_context_size").out == "4\n"
    cli("config", "--set", f"{MODEL_KEY}=1024")
    for key, value in (("recent_context_size", 4), ("reserve_tokens", 1024)):
        assert cli("config", "--get", f"models.gpt-3.5-turbo.{key}").out == f"{value}\n"
    assert file.read_text().startswith("# cheap\n[models.gpt-3.5-turbo] # ours\n")
    assert file.read_text().count("5-turbo") == 1


def test_a_partition_has_settings_of_its_own(cli):
    cli("config", "--set", "partitions.coding.token_multiplier=1.3")
    assert cli("config", "--get", "partitions.coding.token_multiplier").out == "1.3\n"
    assert cli("config", "--get", "token_multiplier").out == "1.0\n"


def test_without_options_it_lists_every_setting_with_value_and_origin(cli):
    cli("config", "--set", "partitions.coding.token_multiplier=1.3", "--set", "partition=work")
    result = cli("config", env={"RESERVOIR_RECENT_CONTEXT_SIZE": "3"})
    assert result.out == cli("config", "--list", env={"RESERVOIR_RECENT_CONTEXT_SIZE": "3"}).out
    rows = {key: (value, origin) for key, value, origin in map(_cells, result.out.splitlines())}
    assert rows["partition"] == ("work", "file")
    assert rows["recent_context_size"] == ("3", "environment")
    assert rows["similarity_weight"] == ("0.7", "default")
    assert rows["partitions.coding.token_multiplier"] == ("1.3", "partition")


def _cells(line):
    return line.split("\t")


def test_json_of_the_list_has_the_same_rows(cli):
    document = cli("config", "--json").document
    assert document["schema_version"] == 1
    listed = {row["key"]: (row["value"], row["origin"]) for row in document["settings"]}
    assert listed["recent_context_size"] == (15, "default")
    assert len(listed) == len(cli("config").out.splitlines())


def test_the_environment_overrides_the_file(cli):
    cli("config", "--set", "partition=work")
    assert cli("config", "--get", "partition", env={"RESERVOIR_PARTITION": "home"}).out == "home\n"
    cli.say("at work")
    assert [row["partition"] for row in cli.rows("--all-partitions")] == ["work"]


def test_an_invalid_environment_variable_is_named(cli):
    result = cli("view", code=2, env={"RESERVOIR_RECENT_CONTEXT_SIZE": "lots"})
    assert "RESERVOIR_RECENT_CONTEXT_SIZE" in result.err


def test_the_config_option_and_variable_move_the_file(cli, tmp_path):
    other = tmp_path / "other.toml"
    other.write_text('partition = "elsewhere"\n')
    assert cli("--config", str(other), "config", "--get", "partition").out == "elsewhere\n"
    moved = {"RESERVOIR_CONFIG": str(other)}
    assert cli("config", "--get", "partition", env=moved).out == "elsewhere\n"
    cli("--config", str(other), "config", "--set", "partition=moved")
    assert other.read_text() == 'partition = "moved"\n'


@pytest.mark.parametrize("action", [["--list"], ["--get", "partition"], ["--path"]])
def test_a_config_file_that_is_missing_is_wrong_usage(cli, tmp_path, action):
    result = cli("--config", str(tmp_path / "absent.toml"), "config", *action, code=2)
    assert "absent.toml" in result.err


def test_a_change_does_not_create_a_missing_config_file(cli, tmp_path):
    absent = tmp_path / "absent.toml"
    cli("--config", str(absent), "config", "--set", "partition=work", code=2)
    assert not absent.exists()


def test_an_invalid_file_is_named_and_not_changed(cli, file):
    file.write_text("partition = \n")
    for result in (cli("view", code=2), cli("config", "--set", "partition=work", code=2)):
        assert str(file) in result.err
    assert file.read_text() == "partition = \n"


def test_an_unknown_key_in_the_file_is_wrong_usage_with_the_nearest_name(cli, file):
    file.write_text("recent_context_sise = 3\n")
    result = cli("view", code=2)
    assert str(file) in result.err
    assert "recent_context_size" in result.err.splitlines()[1]


def test_two_actions_at_once_are_wrong_usage(cli):
    cli("config", "--get", "partition", "--list", code=2)
    cli("config", "--get", "partition", "--set", "partition=work", code=2)
    assert cli("config", "--get", "partition").out == "default\n"


def test_a_link_to_the_file_stays_a_link(cli, file, tmp_path):
    target = tmp_path / "dotfiles.toml"
    target.write_text("# kept elsewhere\n")
    file.symlink_to(target)
    cli("config", "--set", "partition=work")
    assert file.is_symlink()
    assert "# kept elsewhere" in target.read_text()
    assert tomllib.loads(target.read_text()) == {"partition": "work"}


def test_a_file_with_another_name_is_not_separated_from_it(cli, file, tmp_path):
    file.write_text("# kept elsewhere\n")
    (tmp_path / "dotfiles.toml").hardlink_to(file)
    shown = cli("config", "set", "partition=work", code=2)
    assert "has another name as a hard link" in shown.err
    assert file.samefile(tmp_path / "dotfiles.toml")
    assert file.read_text() == "# kept elsewhere\n"


def test_a_partition_with_messages_in_any_instance_is_not_called_empty(cli):
    cli.say("deploy on Friday?", "-p", "work", "-i", "backend")
    cli.say("what is for dinner?", "-p", "home")
    assert cli("config", "set", "partition=work").err == ""
    assert "deploy" in cli("view").out
    assert "nothing in empty" in cli("config", "set", "partition=empty").err


def test_a_source_that_cannot_be_read_is_noted(cli):
    shown = cli("config", "set", "sources.mine.tool=claud-code").err
    assert "unknown tool 'claud-code'; did you mean claude-code" in shown
    assert cli("config", "set", "sources.mine.tool=claude-code").err == ""
    assert cli("config", "set", "sources.mine.path=/nosuch", "partition=work").err == ""
    assert cli("config", "unset", "sources.mine.path").err == ""


def test_an_embedding_model_that_is_not_here_is_noted(cli):
    result = cli("config", "set", "embedding_model=nobody/absent-model")
    assert result.err.startswith(
        "note: the embedding model nobody/absent-model is not on this mach"
    )
    assert cli("config", "get", "embedding_model").out == "nobody/absent-model\n"


def test_a_settings_file_without_permission_is_said_once_with_a_way_out(cli, as_owner):
    cli("config", "set", "partition=work")
    file = cli.home / "reservoir.toml"
    file.chmod(0)
    result = cli("config", command=(*as_owner, "reservoir"), code=2)
    assert result.err == (
        f"error: cannot read the settings file {file}: Permission denied\n"
        "hint: change the permissions, or choose another file\n"
    )
