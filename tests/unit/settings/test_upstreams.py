"""The tables ``[upstreams.NAME]`` and ``[proxy]`` of the settings."""

from pathlib import Path

import pytest

from reservoir_cli.errors import UsageError
from reservoir_cli.settings import config, edit_settings_file, upstreams
from reservoir_cli.settings.upstreams import Upstream


def load_written(file: Path, text: str) -> config.Config:
    file.write_text(text, encoding="utf-8")
    return config.load()


def test_upstreams_are_the_defaults_those_of_the_settings_and_of_the_command_line(file):
    loaded = load_written(
        file,
        '[upstreams.openai]\nurl = "http://localhost:8080/v1/"\n'
        '[upstreams.groq]\nurl = "https://api.groq.com/openai/v1"\n'
        '[upstreams.other]\nurl = "http://[::1]:9"\nprotocol = "anthropic"\n',
    )
    resolved = upstreams.resolve(
        loaded.upstreams, {"ollama": "http://10.0.0.2:11434", "x": "http://x"}
    )
    assert resolved == {
        "openai": Upstream("openai", "openai", "http://localhost:8080/v1"),
        "anthropic": Upstream("anthropic", "anthropic", "https://api.anthropic.com/v1"),
        "ollama": Upstream("ollama", "ollama", "http://10.0.0.2:11434"),
        "gemini": Upstream("gemini", "gemini", "https://generativelanguage.googleapis.com"),
        "groq": Upstream("groq", "openai", "https://api.groq.com/openai/v1"),
        "other": Upstream("other", "anthropic", "http://[::1]:9"),
        "x": Upstream("x", "openai", "http://x"),
    }


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8080",
        "ftp://x",
        "file:///etc/passwd",
        "http://",
        "http://user:password@x",
        "http://x/?key=1",
        "http://x#y",
        "http://x y",
        "http://x\\n",
        "http://x:port",
    ],
)
def test_an_upstream_must_be_a_plain_url(file, url):
    with pytest.raises(UsageError):
        load_written(file, f'[upstreams.openai]\nurl = "{url}"')
    with pytest.raises(UsageError, match="--upstream a"):
        upstreams.resolve({}, {"a": url})


@pytest.mark.parametrize(
    "text",
    [
        "upstreams = 3",
        '[upstreams]\nurl = "http://x"',
        '[upstreams.a]\nurl = "http://x"\nprotocol = "gopher"',
        '[upstreams.a]\nkey = "sk"',
        "proxy = 3",
        "[proxy]\nstore = 3",
        '[proxy]\nstore = "sometimes"',
        '[proxy]\nkeep = "always"',
    ],
)
def test_invalid_upstreams_and_choices_are_refused(file, text):
    with pytest.raises(UsageError):
        load_written(file, text)


def test_an_upstream_without_a_url_is_refused_when_it_is_used(file):
    loaded = load_written(file, '[upstreams.a]\nprotocol = "openai"')
    with pytest.raises(UsageError, match="has no url"):
        upstreams.resolve(loaded.upstreams)


def test_both_are_set_shown_and_removed_like_other_settings(file):
    edit_settings_file.edit(file, {"upstreams.a.url": "http://x/v1", "proxy.store": "always"})
    loaded = config.load()
    assert (loaded.proxy_store, loaded.upstreams) == ("always", {"a": {"url": "http://x/v1"}})
    assert config.effective_value(loaded, "upstreams.a.url") == ("http://x/v1", "file")
    assert config.effective_value(loaded, "upstreams.b.url") == (None, "default")
    assert config.effective_value(loaded, "proxy.store") == ("always", "file")
    values = {key: value for key, value, _ in config.list_settings(loaded)}
    assert values["upstreams.a.url"] == "http://x/v1"
    assert values["proxy.store"] == "always"
    edit_settings_file.edit(file, {"upstreams.a.url": None, "proxy.store": None})
    assert config.load().proxy_store == "unless-synced"
    assert upstreams.resolve(config.load().upstreams).keys() == upstreams.DEFAULTS.keys()
