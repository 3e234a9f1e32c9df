"""Hostile environment variables and settings files."""

import tomli_w
from hostile_values import ESCAPES, NUMBERS, words
from hypothesis import strategies as st

from reservoir_cli.settings.schema import SETTINGS

_NAMES = [f"RESERVOIR_{key.upper()}" for key in SETTINGS if key != "embedding_model"]
_PLACES = ("RESERVOIR_HOME", "RESERVOIR_CONFIG", "RESERVOIR_DB", "HF_HOME", "HF_HUB_CACHE", "HOME")
_PLATFORM = (
    "TERM",
    "COLUMNS",
    "LINES",
    "LANG",
    "LC_ALL",
    "TZ",
    "NO_COLOR",
    "FORCE_COLOR",
    "PYTHONIOENCODING",
    "OPENBLAS_NUM_THREADS",
    "_RESERVOIR_COMPLETE",
    "COMP_WORDS",
    "_TYPER_COMPLETE_ARGS",
    "TMPDIR",
)
_SETTING = st.tuples(st.sampled_from(_NAMES), words)
_PLACE = st.tuples(
    st.sampled_from(_PLACES),
    st.sampled_from(
        ["~nobody-is-called-so/x", "/dev/null", "/dev/null/x", "x" * 5000, "loop", *ESCAPES]
    ),
)
_PLATFORMS = st.tuples(
    st.sampled_from(_PLATFORM),
    st.sampled_from(
        ["", "0", "1", "-1", "garbage", "dumb", "C", "ascii", "complete_bash", "../../x", *ESCAPES]
    ),
)
#: Variables that are set in addition.
environments = st.lists(st.one_of(_SETTING, _PLACE, _PLATFORMS), min_size=1, max_size=3).map(dict)

_VALUES = st.one_of(
    words.filter(lambda text: text.isprintable()),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.lists(st.integers(), max_size=2),
    st.just({}),
    st.dates(),
)
_KEYS = st.one_of(st.sampled_from([*SETTINGS, "partitions", "models"]), st.just("nonsense"))
_TABLES = st.dictionaries(
    _KEYS,
    st.one_of(_VALUES, st.dictionaries(_KEYS, st.one_of(_VALUES, st.dictionaries(_KEYS, _VALUES)))),
    max_size=4,
)
#: Texts that have broken a reader of settings, or could.
BROKEN = (
    b"a=" + b"[" * 100_000,
    b"x = " + b"9" * 5000,
    b"\0",
    b"\xff\xfep\0a\0",
    b"partition = 1e400",
    b'partition = "\\u0000"',
    b'partition = "\\u001b[31m"',
    b"recency_weight = nan",
    b"[partitions." + b"a." * 2000 + b"b]\nrecency_weight = 1",
    b"# " + b"x" * (1 << 20),
    b'[models."\\u001b[31m"]\ncontext_window = ' + NUMBERS[5].encode(),
    b"[[models]]\nx = 1",
    b"partition = 'a'\npartition = 'b'",
    b"\xef\xbb\xbfpartition = 'bom'\r\n",
)
#: Texts of a settings file: nonsense, valid names with invalid values, and noise.
settings_bytes = st.one_of(
    st.sampled_from(BROKEN),
    st.binary(max_size=80),
    _TABLES.map(lambda tables: tomli_w.dumps(tables).encode("utf-8", "replace")),
)
