"""Draw the README's recording: real commands on the samples, one after another.

Run ``python tools/readme_recording.py`` when the output of these commands has changed. It writes an
SVG whose frames a browser shows in turn; if animations are off, only the last frame is shown.
"""

import os
import re
import shlex
import subprocess
import tempfile

from readme_picture import RESERVOIR, ROOT, THEME, WITHOUT_FONTS, on_terminal
from rich.console import Console
from rich.text import Text

RECORDING = ROOT / "docs" / "recording.svg"
COLUMNS, LINES = 96, 26
SECONDS = 5
#: The command lines of each screen.
SCREENS = (
    ("reservoir ingest samples/*.jsonl", "reservoir conversations -p work --match redis"),
    ("reservoir search skip locked -p work -n 3",),
    ("reservoir context why did we drop redis -p work --budget 500",),
)
#: Control sequences that move the cursor or clear a line, and those that show or hide the cursor.
_STEPS = re.compile(r"(\n|\r|\x1b\[1A|\x1b\[2K|\x1b\[\?25[lh])")
_CURSOR = re.compile(r"\x1b\[\?25[lh]")
_SIZE = re.compile(r'<svg class="rich-terminal" viewBox="0 0 ([\d.]+) ([\d.]+)"')


def main() -> None:
    """Run the commands in a temporary home, and draw their output."""
    with tempfile.TemporaryDirectory() as home:
        environment = {
            **os.environ,
            "RESERVOIR_HOME": home,
            "HF_HUB_OFFLINE": "1",
            "TERM": "xterm-256color",
            "TZ": "UTC",
            "COLUMNS": str(COLUMNS),
            "PATH": f"{RESERVOIR.parent}:{os.environ['PATH']}",
        }
        subprocess.run([RESERVOIR, "doctor"], env=environment, check=True, capture_output=True)
        frames = [
            draw(number, [(command, run(command, environment)) for command in commands])
            for number, commands in enumerate(SCREENS, 1)
        ]
    RECORDING.write_text(animate(frames), encoding="utf-8", newline="\n")


def run(command: str, environment: dict[str, str]) -> str:
    """Run a command, and return its final screen, without progress bars that it has erased."""
    line = f"cd {shlex.quote(str(ROOT))}; {command}"
    output = on_terminal(["bash", "-c", line], environment, columns=COLUMNS)
    screen, row = [""], 0
    for part in _STEPS.split(output):
        if part == "\n":
            row += 1
            screen += [""] * (row + 1 - len(screen))
        elif part == "\x1b[1A":
            row = max(0, row - 1)
        elif part in ("\r", "\x1b[2K"):
            screen[row] = ""
        elif not _CURSOR.fullmatch(part):
            screen[row] += part
    return "\n".join(screen)


def draw(number: int, commands: list[tuple[str, str]]) -> str:
    """Return one frame as an SVG: commands with as much of their output as fits the screen."""
    with open(os.devnull, "w", encoding="utf-8") as null:
        console = Console(record=True, width=COLUMNS, file=null, color_system="truecolor")
        lines: list[Text] = []
        for command, output in commands:
            lines += [Text(f"$ {command}", "bold")]
            for text in Text.from_ansi(output.strip("\n")).split("\n"):
                lines += text.wrap(console, COLUMNS)
            lines += [Text()] if len(commands) > 1 else []
        if len(lines) > LINES:
            lines = [*lines[: LINES - 5], Text("   ⋮", "dim"), *lines[-4:]]
        for line in lines + [Text()] * (LINES - len(lines)):
            console.print(line)
        return console.export_svg(
            title="reservoir", theme=THEME, unique_id=f"frame{number}", code_format=WITHOUT_FONTS
        )


def animate(frames: list[str]) -> str:
    """Return one SVG that shows the frames in turn, the last one for longer."""
    sizes = [_SIZE.search(frame) for frame in frames]
    width = max(float(size[1]) for size in sizes if size)
    height = max(float(size[2]) for size in sizes if size)
    turns = len(frames) + 1
    style = [f".turn {{ animation: {SECONDS * turns}s step-end infinite; opacity: 0 }}"]
    for number in range(1, len(frames) + 1):
        begin, end = 100 * (number - 1) / turns, 100 * number / turns
        closing = "" if number == len(frames) else f"{end:.2f}% {{ opacity: 0 }}"
        style.append(
            f"@keyframes turn{number} {{ 0% {{ opacity: {int(number == 1)} }} "
            f"{begin:.2f}% {{ opacity: 1 }} {closing} }} #turn{number} {{ animation-name: "
            f"turn{number} }}"
        )
    style.append(f"#turn{len(frames)} {{ opacity: 1 }}")
    style.append("@media (prefers-reduced-motion) { .turn { animation: none } }")
    groups = [
        f'<g class="turn" id="turn{number}">{frame}</g>' for number, frame in enumerate(frames, 1)
    ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}">'
    return "\n".join([head, "<style>", *style, "</style>", *groups, "</svg>", ""])


if __name__ == "__main__":
    main()
