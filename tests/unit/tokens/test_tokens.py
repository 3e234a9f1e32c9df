"""Counting tokens: each counter's rules, and how near the estimate comes."""

# ruff: noqa: RUF001 -- these texts are in other scripts on purpose

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from reservoir_cli.errors import ModelUnavailableError, UsageError
from reservoir_cli.tokens import (
    ApproximateCounter,
    RatioCounter,
    huggingface,
    load_counter,
    tiktoken,
)

approximate = ApproximateCounter().count
ratio = RatioCounter().count

# Any code point, lone surrogates included, with enough blanks and line ends to matter.
TEXTS = st.one_of(
    st.text(st.characters()),
    st.text(alphabet="aZé9я.中ท🎉\ud83d \t\n\r\0"),
)

# Counts of o200k_base itself, recorded once.
CLOSE = [
    pytest.param(
        34,
        (
            "We moved the session cache from Redis to SQLite last week, "
            "because the worker that refreshed it was restarted by every "
            "deployment and lost its keys. Nobody has missed it since."
        ),
        id="english",
    ),
    pytest.param(
        23,
        (
            "Could you explain why the second query is slower than the first "
            "one, although both of them use the same index?"
        ),
        id="question",
    ),
    pytest.param(
        50,
        (
            "## What changed\n"
            "\n"
            "- The importer reads **both** formats.\n"
            "- Empty messages are skipped, see `skip_empty`.\n"
            "- Dates without a zone are taken as UTC.\n"
            "\n"
            "1. Stop the service.\n"
            "2. Run `reservoir doctor --repair`.\n"
        ),
        id="markdown",
    ),
    pytest.param(
        46,
        (
            "def mean(values: list[float]) -> float:\n"
            '    """Return the mean, 0.0 for no values."""\n'
            "    if not values:\n"
            "        return 0.0\n"
            "    return sum(values) / len(values)\n"
        ),
        id="python",
    ),
    pytest.param(
        51,
        (
            "select u.name, count(*) as orders\n"
            "from users u\n"
            "join orders o on o.user_id = u.id\n"
            "where o.created_at > '2024-01-31'\n"
            "group by u.name\n"
            "order by orders desc\n"
            "limit 10;\n"
        ),
        id="sql",
    ),
    pytest.param(
        43,
        (
            "{\n"
            '  "name": "reservoir",\n'
            '  "enabled": true,\n'
            '  "limits": {"tokens": 4096, "messages": 20},\n'
            '  "tags": ["chat", "memory"]\n'
            "}\n"
        ),
        id="json",
    ),
    pytest.param(
        62,
        (
            "2024-03-07 12:04:31,218 ERROR worker[41] connection to "
            "10.0.4.17:5432 lost, retry 3 of 5\n"
            "2024-03-07 12:04:36,902 INFO worker[41] connected\n"
        ),
        id="log",
    ),
    pytest.param(
        36,
        (
            "我们上周把会话缓存从内存数据库移到了本地文件里,因为每次部署都会重"
            "启那个进程。现在一切都很正常。"
        ),
        id="chinese",
    ),
    pytest.param(
        38,
        (
            "先週、セッションのキャッシュをローカルのファイルに移しました。デプ"
            "ロイのたびにプロセスが再起動されるからです。"
        ),
        id="japanese",
    ),
    pytest.param(
        33,
        (
            "지난주에 세션 캐시를 로컬 파일로 옮겼습니다. 배포할 때마다 "
            "프로세스가 다시 시작되기 때문입니다."
        ),
        id="korean",
    ),
    pytest.param(
        34,
        (
            "Минулого тижня ми перенесли кеш сесій у локальний файл, бо процес "
            "перезапускався під час кожного розгортання."
        ),
        id="ukrainian",
    ),
    pytest.param(
        46,
        (
            "Την περασμένη εβδομάδα μεταφέραμε την κρυφή μνήμη σε ένα τοπικό "
            "αρχείο, επειδή η διεργασία ξεκινούσε πάλι σε κάθε εγκατάσταση."
        ),
        id="greek",
    ),
    pytest.param(
        42,
        (
            "Letzte Woche haben wir den Zwischenspeicher der Sitzungen in eine "
            "lokale Datei verlegt, weil der Prozess bei jeder Auslieferung neu "
            "gestartet wurde. Für die Nutzer ändert sich dadurch nichts."
        ),
        id="german",
    ),
    pytest.param(
        24,
        ("Great news 🎉🎉 the build is green again! 🚀 Thanks everyone 🙏 see you on Monday 👋"),
        id="emoji",
    ),
    pytest.param(
        42,
        (
            "W zeszłym tygodniu przenieśliśmy pamięć podręczną sesji do "
            "lokalnego pliku, ponieważ proces był uruchamiany od nowa przy "
            "każdym wdrożeniu."
        ),
        id="polish",
    ),
]

OFF = [
    pytest.param(
        1.1,
        1.4,
        32,
        (
            "На прошлой неделе мы перенесли кеш сессий в локальный файл, "
            "потому что процесс перезапускался при каждом развёртывании."
        ),
        id="russian",
    ),
    pytest.param(
        1.1,
        1.4,
        34,
        (
            "Tuần trước chúng tôi đã chuyển bộ nhớ đệm của phiên sang một tệp "
            "cục bộ, vì tiến trình khởi động lại sau mỗi lần triển khai."
        ),
        id="vietnamese",
    ),
    pytest.param(
        1.1,
        1.3,
        42,
        ("12.5,3.25,0.75,118\n13.1,3.50,0.80,121\n12.9,3.75,0.65,117\n"),
        id="table",
    ),
    pytest.param(
        0.75,
        0.9,
        40,
        ("สัปดาห์ที่แล้วเราย้ายแคชของเซสชันไปไว้ในไฟล์ในเครื่อง เพราะกระบวนการเริ่มใหม่ทุกครั้งที่ปล่อยรุ่นใหม่"),
        id="thai",
    ),
]


@pytest.mark.parametrize(("real", "text"), CLOSE)
def test_approximate_is_within_fifteen_percent_of_o200k(real: int, text: str) -> None:
    assert abs(approximate(text) - real) <= 0.15 * real


@pytest.mark.parametrize(("low", "high", "real", "text"), OFF)
def test_approximate_errs_where_it_is_known_to_and_no_further(
    low: float, high: float, real: int, text: str
) -> None:
    assert low <= approximate(text) / real <= high


# Repeated a hundred times, so that the weights show undisturbed by rounding.
@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        pytest.param("abcd ", 56 + 4 * 13, id="word and letters"),
        pytest.param("ABCD ", 56 + 4 * 13, id="capitals are one word"),
        pytest.param("myName ", 2 * 56 + 6 * 13, id="a hump begins a word"),
        pytest.param("12 ", 170 + 2 * 15, id="number and digits"),
        pytest.param("12.5 ", 2 * 170 + 3 * 15 + 37, id="a point parts numbers"),
        pytest.param("x1 ", 56 + 13 + 170 + 15, id="a digit ends a word, a letter a number"),
        pytest.param("() ", 2 * 37, id="each sign of punctuation"),
        pytest.param("\0 ", 37, id="control characters are punctuation"),
        pytest.param(". ", 37, id="a single blank is free"),
        pytest.param(".   ", 37 + 80, id="a run of blanks is one"),
        pytest.param(".\t", 37, id="a single tab is free"),
        pytest.param(".\t\t", 37 + 80, id="a run of tabs is one"),
        pytest.param(".\n", 37 + 80, id="line break"),
        pytest.param(".\r\n\r\n", 37 + 80, id="a run of line breaks is one"),
        pytest.param(".\n    ", 37 + 2 * 80, id="line break and indent"),
        pytest.param("привет ", 56 + 6 * 31, id="Cyrillic"),
        pytest.param("λόγος ", 56 + 5 * 31, id="Greek"),
        pytest.param("שלום ", 56 + 4 * 31, id="Hebrew"),
        pytest.param("ไทย ", 56 + 3 * 31, id="Thai"),
        pytest.param("ệ ", 56 + 31, id="Vietnamese"),
        pytest.param("中文 ", 2 * 72, id="Han is no word"),
        pytest.param("한국 ", 2 * 72, id="Hangul is no word"),
        pytest.param("かな ", 2 * 72, id="kana is no word"),
        pytest.param("→ ", 72, id="symbol"),
        pytest.param("“a” ", 2 * 72 + 56 + 13, id="typographic quotes"),
        pytest.param("« ", 72, id="signs of Latin-1 are symbols"),
        pytest.param("größe ", 56 + 3 * 13 + 2 * 150, id="an accent does not part a word"),
        pytest.param("été ", 56 + 13 + 2 * 150, id="an accented letter begins one"),
        pytest.param("🎉 ", 150, id="emoji"),
        pytest.param("\ud83d ", 72, id="lone surrogate"),
    ],
)
def test_approximate_adds_up_nine_weights(unit: str, expected: int) -> None:
    assert approximate(unit * 100) == expected


@pytest.mark.parametrize("text", [" ", "\n", "\0", "a", "\ud800"])
@pytest.mark.parametrize("name", ["approximate", "ratio"])
def test_a_text_that_is_not_empty_costs_at_least_one(name: str, text: str) -> None:
    assert load_counter(name).count(text) == 1


@pytest.mark.parametrize("name", ["approximate", "ratio"])
@given(text=TEXTS)
def test_only_the_empty_text_is_free(name: str, text: str) -> None:
    count = load_counter(name).count(text)
    assert count >= 1 if text else count == 0


@given(TEXTS, TEXTS)
def test_approximate_never_falls_when_text_is_added(first: str, second: str) -> None:
    whole = approximate(first + second)
    assert whole >= approximate(first)
    assert whole >= approximate(second)


@given(TEXTS, TEXTS)
def test_approximate_of_two_lines_is_their_sum_and_a_line_break(first: str, second: str) -> None:
    # 0.8 for the break, up to half for each of three roundings, and up to half more for each
    # part that is raised to one.
    assert abs(approximate(f"{first}\n{second}") - approximate(first) - approximate(second)) <= 3


@given(st.integers(1, 50), TEXTS)
def test_approximate_grows_in_proportion(times: int, text: str) -> None:
    line = text + "\n.\n"
    hundred = approximate(line * 100)
    assert abs(approximate(line * 100 * times) - times * hundred) <= times


# --- ratio ----------------------------------------------------------------------------

CODE = "def f(x):\n    return x\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", 0, id="empty"),
        pytest.param("abc", 1, id="never below one"),
        pytest.param("a" * 400, 100, id="prose"),
        pytest.param("let me know,\nclass sizes vary:\n\nI think so.\n", 11, id="prose in lines"),
        pytest.param(CODE, len(CODE) // 3, id="code"),
        pytest.param("int i;\n\n\n\n\n\nint j;\n", 6, id="an empty line belongs to the one before"),
        pytest.param("\tplain words\n" * 9, 39, id="indented"),
        pytest.param("```\n" + "plain words\n" * 3 + "```\n", 14, id="fenced"),
        pytest.param("~~~ text\nplain\n```\nplain\n~~~", 9, id="a fence ends as it began"),
        pytest.param("```\n" + "plain words\n" * 3, 13, id="a fence never closed"),
        pytest.param("words, words\n" * 12 + "x = f(y);\n" * 12, 79, id="mixed, by lines"),
    ],
)
def test_ratio_counts_prose_by_four_and_code_by_three(text: str, expected: int) -> None:
    assert ratio(text) == expected


@given(st.text(alphabet="abc é中", min_size=1).filter(lambda text: not text.startswith("    ")))
def test_ratio_of_pure_prose_is_a_quarter_of_its_length(text: str) -> None:
    assert ratio(text) == max(1, len(text) // 4)


@given(TEXTS.filter(bool))
def test_ratio_lies_between_a_quarter_and_a_third(text: str) -> None:
    assert max(1, len(text) // 4) <= ratio(text) <= max(1, len(text) // 3)


# --- tiktoken -------------------------------------------------------------------------


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stand in for tiktoken, installed or not; returns what was asked of it."""
    asked: list[str] = []

    def get_encoding(name: str) -> SimpleNamespace:
        asked.append(name)
        if name == "p50k_edit":
            raise ValueError("Unknown encoding")
        return SimpleNamespace(encode_ordinary=lambda text: text.split())

    monkeypatch.setattr(tiktoken, "find_spec", lambda name: SimpleNamespace(name=name))
    stand_in = SimpleNamespace(get_encoding=get_encoding, __version__="1.2")
    monkeypatch.setitem(sys.modules, "tiktoken", stand_in)
    return asked


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    content = b"aGk= 0\n"
    digest = hashlib.sha256(content).hexdigest()
    for encoding in ("o200k_base", "p50k_edit"):
        monkeypatch.setitem(tiktoken.VOCABULARIES, encoding, (("some-file", digest),))
    (tmp_path / "some-file").write_bytes(content)
    return tmp_path


def test_tiktoken_counts_by_encode_ordinary(library: list[str], cache: Path) -> None:
    counter = load_counter("tiktoken:o200k_base")
    assert (counter.name, counter.version) == ("tiktoken:o200k_base", "1.2")
    assert counter.exact
    assert [counter.count(text) for text in ("", "a b <|endoftext|>")] == [0, 3]
    assert library == ["o200k_base"]


def test_tiktoken_missing_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiktoken, "find_spec", lambda name: None)
    with pytest.raises(ModelUnavailableError) as caught:
        load_counter("tiktoken:o200k_base")
    assert caught.value.exit_code == 5
    assert "pip install tiktoken" in str(caught.value.hint)


@pytest.mark.parametrize("encoding", sorted(tiktoken.VOCABULARIES))
def test_tiktoken_is_not_called_without_its_vocabulary(
    encoding: str, library: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    with pytest.raises(ModelUnavailableError, match="missing") as caught:
        load_counter(f"tiktoken:{encoding}")
    assert f"tiktoken.get_encoding('{encoding}')" in str(caught.value.hint)
    assert library == []


def test_tiktoken_is_not_called_with_a_damaged_vocabulary(library: list[str], cache: Path) -> None:
    (cache / "some-file").write_bytes(b"half of i")
    with pytest.raises(ModelUnavailableError, match="damaged"):
        load_counter("tiktoken:o200k_base")
    assert library == []
    assert (cache / "some-file").exists()


def test_tiktoken_is_not_called_when_its_cache_is_off(
    library: list[str], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    monkeypatch.setenv("DATA_GYM_CACHE_DIR", str(cache))
    with pytest.raises(ModelUnavailableError, match="disabled"):
        load_counter("tiktoken:o200k_base")
    assert library == []


def test_the_older_variable_names_the_cache_when_the_newer_is_unset(
    library: list[str], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    monkeypatch.setenv("DATA_GYM_CACHE_DIR", str(cache))
    assert load_counter("tiktoken:o200k_base").count("a b") == 2


def test_without_variables_the_cache_is_in_the_temporary_folder(
    library: list[str], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    monkeypatch.delenv("DATA_GYM_CACHE_DIR", raising=False)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(cache))
    (cache / "data-gym-cache").mkdir()
    (cache / "some-file").rename(cache / "data-gym-cache" / "some-file")
    assert load_counter("tiktoken:o200k_base").count("a b") == 2


def test_an_encoding_that_an_old_tiktoken_lacks_is_unavailable(
    library: list[str], cache: Path
) -> None:
    with pytest.raises(ModelUnavailableError, match="does not know"):
        load_counter("tiktoken:p50k_edit")


def test_the_files_looked_for_are_those_tiktoken_reads() -> None:
    pytest.importorskip("tiktoken")
    public = pytest.importorskip("tiktoken_ext.openai_public")
    source = Path(public.__file__).read_text(encoding="utf-8")
    addresses = [word for word in source.split('"') if word.startswith("https://")]
    known = {file for files in tiktoken.VOCABULARIES.values() for file in files}
    assert {name for name, _ in known} == {
        hashlib.sha1(address.encode()).hexdigest() for address in addresses
    }
    assert all(digest in source for _, digest in known)
    assert set(tiktoken.VOCABULARIES) <= set(public.ENCODING_CONSTRUCTORS)


# --- huggingface ----------------------------------------------------------------------


@pytest.fixture
def tokenizer_file(tmp_path: Path) -> Path:
    """A tokenizer of whole words that frames, cuts and pads, as published ones do."""
    vocabulary = {"[CLS]": 0, "[SEP]": 1, "[UNK]": 2, "hello": 3, "world": 4, "[PAD]": 5}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 0), ("[SEP]", 1)]
    )
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=4, pad_id=5, pad_token="[PAD]")
    file = tmp_path / "tokenizer.json"
    tokenizer.save(str(file))
    return file


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", 0, id="empty"),
        pytest.param("hello", 1, id="neither framed nor padded"),
        pytest.param("hello world " * 50, 100, id="not cut"),
        pytest.param("hello there", 2, id="unknown words count"),
        pytest.param("  \n", 1, id="blanks that the tokenizer drops"),
        pytest.param("hello \ud83d world", 3, id="lone surrogate"),
    ],
)
def test_huggingface_counts_the_text_alone(tokenizer_file: Path, text: str, expected: int) -> None:
    assert load_counter(f"huggingface:{tokenizer_file}").count(text) == expected


def test_huggingface_takes_a_folder_and_keeps_the_name_given(tokenizer_file: Path) -> None:
    counter = load_counter(f"huggingface:{tokenizer_file.parent}")
    assert counter.exact
    assert counter.name == f"huggingface:{tokenizer_file.parent}"
    assert counter.count("hello world") == 2


def test_huggingface_version_follows_the_file(tokenizer_file: Path) -> None:
    name = f"huggingface:{tokenizer_file}"
    before = load_counter(name).version
    assert load_counter(name).version == before
    changed = json.loads(tokenizer_file.read_text(encoding="utf-8"))
    changed["model"]["vocab"]["there"] = 6
    tokenizer_file.write_text(json.dumps(changed), encoding="utf-8")
    assert load_counter(name).version != before


def test_huggingface_refuses_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailableError, match="no tokenizer at"):
        load_counter(f"huggingface:{tmp_path}")


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xfe", b"not json"])
def test_huggingface_refuses_what_is_no_tokenizer(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_bytes(content)
    with pytest.raises(ModelUnavailableError, match="not a tokenizer"):
        load_counter(f"huggingface:{file}")


def test_huggingface_refuses_a_file_that_ends_the_process(tmp_path: Path) -> None:
    vocabulary = [["<unk>", 0.0], ["a" * 1_000_000, -1.0]]  # a trie too deep to be taken apart
    content = json.dumps({"model": {"type": "Unigram", "unk_id": 0, "vocab": vocabulary}})
    file = tmp_path / "tokenizer.json"
    file.write_text(content, encoding="utf-8")
    script = "import sys, tokenizers; tokenizers.Tokenizer.from_file(sys.argv[1])"
    ended = subprocess.run([sys.executable, "-c", script, str(file)], check=False)
    assert ended.returncode < 0
    with pytest.raises(ModelUnavailableError, match="not a tokenizer"):
        load_counter(f"huggingface:{file}")


def test_huggingface_refuses_without_the_library(
    tokenizer_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huggingface, "find_spec", lambda name: None)
    with pytest.raises(ModelUnavailableError, match="missing library"):
        load_counter(f"huggingface:{tokenizer_file}")


# --- loading --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["approximate", "ratio"])
def test_a_counter_bears_the_name_it_was_asked_by(name: str) -> None:
    counter = load_counter(name)
    assert counter.name == name
    assert counter.version
    assert not counter.exact


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Approximate",
        "approximate:",
        "approximate:x",
        "ratio:4",
        "tiktoken",
        "tiktoken:",
        "tiktoken:o201k",
        "huggingface",
        "huggingface:",
        ":",
        "openai:gpt-4o",
    ],
)
def test_an_unknown_counter_is_a_usage_error_that_lists_the_known(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_counter(name)
    assert caught.value.exit_code == 2
    assert "one of" in str(caught.value.hint)


def test_counting_approximately_loads_no_library() -> None:
    program = (
        "import sys; from reservoir_cli.tokens import load_counter; "
        "load_counter('approximate').count('a'); load_counter('ratio').count('a'); "
        "print(sorted({'numpy', 'tiktoken', 'tokenizers', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"
