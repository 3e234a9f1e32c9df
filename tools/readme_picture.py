"""Draw the README's picture: the terminal output of a real run on the samples.

Run ``python tools/readme_picture.py`` when the output of ``context --explain`` has changed.
"""

import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
import threading
from fcntl import ioctl
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "explain.svg"
RESERVOIR = Path(sys.executable).with_name("reservoir")
COLUMNS, LINES = 118, 60
COMMAND = (
    *("context", "Why did we drop Redis?", "-p", "work", "--budget", "400"),
    *("--recent", "4", "--similar", "6", "--no-fill", "--explain"),
)
#: Dark colours with enough contrast on light and dark pages.
_COLOURS = [(22, 27, 34), (255, 123, 114), (126, 231, 135), (242, 204, 96)]
_COLOURS += [(121, 192, 255), (210, 168, 255), (110, 220, 230), (201, 209, 217)]
THEME = TerminalTheme((22, 27, 34), (230, 237, 243), _COLOURS, _COLOURS)
#: Rich's template without its web fonts, which viewers would download.
WITHOUT_FONTS = re.sub(r"(?s)    @font-face \{\{.*?\n    \}\}\n", "", CONSOLE_SVG_FORMAT)


def main() -> None:
    """Import the samples into a temporary store, run the command, and draw its output."""
    with tempfile.TemporaryDirectory() as home:
        environment = {
            **os.environ,
            "RESERVOIR_HOME": home,
            "TERM": "xterm-256color",
            "COLUMNS": str(COLUMNS),
        }
        samples = sorted(map(str, (ROOT / "samples").glob("*.jsonl")))
        subprocess.run([RESERVOIR, "ingest", *samples], env=environment, check=True)
        output = on_terminal([str(RESERVOIR), *COMMAND], environment)
    console = Console(
        record=True,
        width=COLUMNS,
        file=open(os.devnull, "w", encoding="utf-8"),
        color_system="truecolor",
    )
    console.print(Text(f"$ reservoir {shlex.join(COMMAND)}", "bold"))
    console.print(Text.from_ansi(output))
    drawing = console.export_svg(
        title="reservoir", theme=THEME, unique_id="explain", code_format=WITHOUT_FONTS
    )
    PICTURE.write_text(drawing, encoding="utf-8", newline="\n")


def on_terminal(command: list[str], environment: dict[str, str], *, columns: int = COLUMNS) -> str:
    """Run a command on a terminal of fixed size, and return its output."""
    master, slave = pty.openpty()
    ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, columns, 0, 0))
    chunks: list[bytes] = []
    reader = threading.Thread(target=_read, args=(master, chunks))
    reader.start()
    subprocess.run(command, env=environment, stdout=slave, stderr=slave, check=True)
    os.close(slave)
    reader.join()
    os.close(master)
    return b"".join(chunks).decode("utf-8").replace("\r\n", "\n")


def _read(master: int, chunks: list[bytes]) -> None:
    try:
        while chunk := os.read(master, 65_536):
            chunks.append(chunk)
    except OSError:  # Linux raises EIO when the other end is closed
        pass


if __name__ == "__main__":
    main()
