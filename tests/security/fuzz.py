"""Long fuzzing: hostile bytes for every parser, hostile words for every command line.

    PYTHONPATH=tests/support python tests/security/fuzz.py [--trials N] [--seconds S] [--only PART…]

``parsers`` and ``zips`` run in this process; ``lines``, ``environments`` and ``settings`` run the
whole command in a fork of it; ``processes`` starts it anew each time, and ``memory`` with files
that would fill it. With atheris installed
(``pip install -e '.[fuzz]'``), ``coverage`` lets it look for bytes that reach new code, S seconds
for each parser. The checks are in tests/security. The input is random; a failure prints it.
"""

import argparse
import importlib.util
import os
import random
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import forked
import world as worlds
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from lines import Line, commands, lines
from parsers import PARSERS
from seeds import SEEDS, damaged_zip, spliced
from settings_files import environments, settings_bytes

RESERVOIR = Path(sys.executable).with_name("reservoir")
PARTS = ("parsers", "zips", "coverage", "lines", "environments", "settings", "processes", "memory")


def tried(name: str, trials: int, once: Callable[[random.Random], None]) -> bool:
    """Run a trial a number of times, and report the result."""
    started, failures = time.perf_counter(), 0
    for _ in range(trials):
        seed = random.getrandbits(64)
        try:
            once(random.Random(seed))
        except Exception as error:
            failures += 1
            print(f"  {name}, seed {seed}: {type(error).__name__}: {str(error)[:500]}", flush=True)
    seconds = time.perf_counter() - started
    print(f"{name:<24}{trials:>9,} trials {seconds:>7,.0f} s  {failures} failures", flush=True)
    return not failures


def drawn(name: str, trials: int, strategy: st.SearchStrategy, once: Callable) -> bool:
    """Try examples of a strategy; Hypothesis shows the smallest failure."""
    started = time.perf_counter()

    @settings(
        max_examples=trials,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(example=strategy)
    def run(example: object) -> None:
        once(example)

    failures = 0
    try:
        run()
    except Exception as error:
        several = error.exceptions if isinstance(error, ExceptionGroup) else (error,)
        failures = len(several)
        for failure in several:
            print(f"  {name}: {type(failure).__name__}: …{str(failure)[-1000:]}", flush=True)
    seconds = time.perf_counter() - started
    print(f"{name:<24}{trials:>9,} trials {seconds:>7,.0f} s  {failures} failures", flush=True)
    return not failures


def parser_trial(name: str) -> Callable[[random.Random], None]:
    """Give noise or pieces of samples to a parser."""

    def once(source: random.Random) -> None:
        noise = source.randbytes(source.choice((0, 3, 40, 400)))
        PARSERS[name](noise if source.random() < 0.1 else spliced(source))

    return once


def coverage(name: str, seconds: int) -> bool:
    """Fuzz a parser by atheris, in its own process."""
    command = [sys.executable, __file__, "--atheris", name, "--seconds", str(seconds)]
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    summary = [line for line in result.stderr.splitlines() if line.startswith("Done ")]
    if result.returncode or not summary:
        print(f"  coverage {name}: {result.stderr[-2000:]}", flush=True)
        return False
    runs = int(summary[0].split()[1])
    print(f"{'coverage ' + name:<24}{runs:>9,} trials {seconds:>7,} s  0 failures", flush=True)
    return True


def guided(name: str, seconds: int) -> None:
    """Run atheris in this process."""
    import atheris

    with atheris.instrument_imports(include=["reservoir_cli"]):
        for module in [
            loaded for loaded in sys.modules if loaded.startswith(("reservoir_cli", "parsers"))
        ]:
            del sys.modules[module]
        from parsers import PARSERS as instrumented

    with tempfile.TemporaryDirectory() as corpus, tempfile.TemporaryDirectory() as artifacts:
        for number, seed in enumerate(SEEDS):
            Path(corpus, str(number)).write_bytes(seed)
        limits = {"max_total_time": seconds, "timeout": 20, "rss_limit_mb": 4096, "max_len": 2048}
        options = [f"-{key}={value}" for key, value in limits.items()]
        words = [sys.argv[0], corpus, f"-artifact_prefix={artifacts}/", *options]
        atheris.Setup(words, instrumented[name])
        atheris.Fuzz()


def line_trial(source: Path, folder: Path) -> Callable[[Line], None]:
    """Run a command line in a fresh folder."""

    def once(line: Line) -> None:
        worlds.copied(source, folder)
        before = worlds.held(folder)
        env = worlds.environment(folder)
        forked.hold(forked.run(*line.arguments, stdin=line.stdin, env=env, folder=folder))
        after = worlds.held(folder)
        assert not line.reads or after == before

    return once


def process_trial(source: Path, folder: Path) -> Callable[[Line], None]:
    """Run a command line in a new process."""

    def once(line: Line) -> None:
        worlds.copied(source, folder)
        before = worlds.held(folder)
        result = subprocess.run(
            [os.fsencode(word) for word in (str(RESERVOIR), *line.arguments)],
            input=line.stdin,
            capture_output=True,
            env=worlds.environment(folder),
            cwd=folder,
            timeout=forked.PATIENCE,
            check=False,
        )
        stderr = result.stderr.decode("utf-8", "replace")
        forked.hold(forked.Answer(line.arguments, result.returncode, result.stdout, stderr))
        assert not line.reads or worlds.held(folder) == before

    return once


def environment_trial(source: Path, folder: Path) -> Callable[[dict[str, str]], None]:
    """Ask a question with hostile environment variables."""

    def once(env: dict[str, str]) -> None:
        worlds.copied(source, folder)
        full = {**worlds.environment(folder), **env}
        forked.hold(forked.run("context", "queue?", env=full, folder=folder))

    return once


def settings_trial(source: Path, folder: Path) -> Callable[[bytes], None]:
    """Ask a question with a hostile settings file."""

    def once(text: bytes) -> None:
        worlds.copied(source, folder)
        (folder / "home" / "reservoir.toml").write_bytes(text)
        env = worlds.environment(folder)
        forked.hold(forked.run("context", "queue?", env=env, folder=folder))

    return once


#: The most memory in MB that a command may use for any of the files below. Without a file it uses
#: 45 MB, and 180 MB with the model.
MOST_MEMORY = 1_500


#: Runs a command, and prints its exit code and its peak memory in MB. The script must be small:
#: the peak of a process includes the memory of the parent it was forked from.
MEASURED = """
import os, sys
child = os.fork()
if not child:
    os.dup2(2, 1)
    os.execv(sys.argv[1], sys.argv[1:])
_, status, used = os.wait4(child, 0)
print(os.waitstatus_to_exitcode(status), used.ru_maxrss >> 10)
"""


def memory(folder: Path) -> bool:
    """Read files that would fill the memory, each in its own process; print the peak memory."""
    (folder / "home").mkdir(mode=0o700)
    env = worlds.environment(folder)
    ok = True
    for name, (arguments, stdin) in large(folder).items():
        started = time.perf_counter()
        with stdin.open("rb") as file:
            result = subprocess.run(
                [sys.executable, "-S", "-c", MEASURED, str(RESERVOIR), *arguments],
                stdin=file,
                capture_output=True,
                env=env,
                cwd=folder,
                check=False,
            )
        code, most = map(int, result.stdout.split()[-2:])
        seconds = time.perf_counter() - started
        fine = code in forked.CODES and most < MOST_MEMORY
        ok &= fine
        verdict = "" if fine else "  FAILED"
        print(f"memory {name:<36}{most:>6,} MB {seconds:>6.1f} s  exit {code}{verdict}", flush=True)
    return ok


def large(folder: Path) -> dict[str, tuple[list[str], Path]]:
    """Return the arguments and stdin for each input by name."""
    words = "lorem ipsum dolor sit amet redis queue 12345 "
    row = '{"role": "user", "content": "%s"}\n'
    texts = {
        "line.jsonl": row % ("x" * (100 << 20)),
        "text.txt": words * (60 * (1 << 20) // len(words)),
        "question.txt": words * (10 * (1 << 20) // len(words)),
        "deep.json": "[" * (30 << 20),
        "objects.json": '{"a":' * (10 << 20),
        "digits.json": '{"role": "user", "content": "a", "x": %s}' % ("9" * (60 << 20)),
        "rows.jsonl": "".join(row % number for number in range(50_000)),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    with zipfile.ZipFile(folder / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.jsonl", row % "a" + " " * (900 << 20))
    with zipfile.ZipFile(folder / "many.zip", "w") as archive:
        for number in range(10_000):
            archive.writestr(f"{number}.json", row % number)
    null, zero = Path(os.devnull), Path("/dev/zero")
    imported = {
        f"ingest {name}": (["ingest", "--no-embed", name], null)
        for name in (*texts, "bomb.zip", "many.zip")
    }
    return {
        **imported,
        "ingest </dev/zero": (["ingest"], zero),
        "ingest - --format openai </dev/zero": (["ingest", "-", "--format", "openai"], zero),
        "context - <question.txt": (["context", "-"], folder / "question.txt"),
        "search --keyword - <question.txt": (["search", "--keyword", "-"], folder / "question.txt"),
        "trim deep.json": (["trim", "deep.json", "--iteration", "2"], null),
        "context of 60 MB": (["context", "lorem?", "--budget", "900"], null),
        "view of 60 MB": (["view", "0", "--json"], null),
    }


def run_parsers(parts: list[str], trials: int, seconds: int) -> bool:
    """Run the trials of functions."""
    ok = True
    if "parsers" in parts:
        for name in PARSERS:
            ok &= tried(name, trials * 10, parser_trial(name))
    if "zips" in parts:
        ok &= tried("zips", trials * 10, lambda source: PARSERS["file"](damaged_zip(source)))
    if "coverage" in parts and not importlib.util.find_spec("atheris"):
        print("coverage: atheris is not installed (pip install -e '.[fuzz]')", flush=True)
    elif "coverage" in parts:
        for name in PARSERS:
            ok &= coverage(name, seconds)
    return ok


def run_commands(parts: list[str], trials: int) -> bool:
    """Run the trials of whole commands."""
    ok = True
    with tempfile.TemporaryDirectory() as place:
        source, folder = worlds.make(Path(place, "made")), Path(place, "world")
        if "lines" in parts:
            for name in commands():
                ok &= drawn(f"line {name}", trials, lines(name), line_trial(source, folder))
        if "environments" in parts:
            ok &= drawn("environments", trials, environments, environment_trial(source, folder))
        if "settings" in parts:
            ok &= drawn("settings files", trials, settings_bytes, settings_trial(source, folder))
        if "processes" in parts:
            strategy = st.one_of(*map(lines, commands()))
            ok &= drawn("processes", trials, strategy, process_trial(source, folder))
        if "memory" in parts:
            Path(place, "large").mkdir()
            ok &= memory(Path(place, "large"))
    return ok


def main() -> None:
    """Read the options and run the trials."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--trials", type=int, default=400, help="of each (parsers: ten times)")
    options.add_argument("--seconds", type=int, default=30, help="coverage, for each parser")
    options.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    options.add_argument("--atheris", choices=list(PARSERS), help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.atheris:
        guided(chosen.atheris, chosen.seconds)
        return
    ok = run_parsers(chosen.only, chosen.trials, chosen.seconds)
    sys.exit(0 if run_commands(chosen.only, chosen.trials) and ok else 1)


if __name__ == "__main__":
    main()
