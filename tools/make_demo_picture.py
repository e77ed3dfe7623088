"""Write docs/images/demo.svg, README's picture, from docs/images/demo.txt: `python tools/make_demo_picture.py`.

The text is what `lastcall demo sigkill` printed. Record it again with `lastcall demo sigkill > docs/images/demo.txt`.
Each step appears at its own second. Readers who prefer less motion see all of it at once.
"""

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

IMAGES = Path(__file__).parents[1] / "docs" / "images"
RECORDING = IMAGES / "demo.txt"
PICTURE = IMAGES / "demo.svg"

COLUMNS, LINE, LETTER, MARGIN = 106, 17, 7.25, 14
HOLD = 6.0
"""Seconds for which the whole picture stays before it begins again."""
COLORS = {"✗": "#ff7b72", "!": "#e3b341", "i": "#79c0ff"}
_STEP = re.compile(r" *\+(\d+\.\d+)s  (\w[\w-]*) ")
_COLORED = (("SIGKILL", "#ff7b72"), ("SIGTERM", "#e3b341"), ("preStop", "#79c0ff"))


def lines(recording: str) -> Iterator[tuple[float, str]]:
    """Yield the second at which each line appears, and the line: the command, the steps, and the verdict."""
    yield 0.0, "$ lastcall demo sigkill"
    steps, _, report = recording.partition("\n\n")
    at = 0.0
    for line in steps.splitlines():
        if found := _STEP.match(line):
            at = float(found[1])
        yield at, line
    yield at + 0.6, ""
    for line in _ending(report):
        yield at + 0.6, line


def _ending(report: str) -> Iterator[str]:
    """Yield the report's first line, the grace period, and the problems."""
    shown = False
    for line in report.splitlines():
        if line.startswith(("✗", "grace ")) or " was " in line.partition(" · ")[0]:
            shown = True
        elif not line.startswith("  ") or not line.strip():
            shown = False
        if shown:
            yield line


def picture(recording: str) -> str:
    """Return the SVG of a recording."""
    shown = [(at, line if len(line) <= COLUMNS else f"{line[: COLUMNS - 1]}…") for at, line in lines(recording)]
    length = shown[-1][0] + HOLD
    width, height = round(COLUMNS * LETTER + 2 * MARGIN), LINE * len(shown) + 2 * MARGIN
    moments = sorted({at for at, _ in shown if at > 0})
    rules = [
        f"@keyframes s{number} {{ 0% {{ opacity: 0 }} {at / length:.2%} {{ opacity: 1 }} }}\n"
        f".s{number} {{ animation: s{number} {length:.1f}s step-end infinite }}"
        for number, at in enumerate(moments)
    ]
    texts = []
    for row, (at, line) in enumerate(shown):
        moment = f' class="s{moments.index(at)}"' if at > 0 else ""
        place = f'x="{MARGIN}" y="{MARGIN + LINE * (row + 1) - 4}"'
        texts.append(f'<text{moment} {place} fill="{_color(line)}">{escape(line)}</text>')
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
            "<title>lastcall demo sigkill, as it was recorded</title>",
            "<style>",
            "text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; white-space: pre }",
            *rules,
            "@media (prefers-reduced-motion: reduce) { text { animation: none !important } }",
            "</style>",
            f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>',
            *texts,
            "</svg>",
            "",
        ]
    )


def _color(line: str) -> str:
    if line[:1] in COLORS:
        return COLORS[line[0]]
    return next((color for word, color in _COLORED if word in line), "#c9d1d9")


if __name__ == "__main__":
    PICTURE.write_text(picture(RECORDING.read_text("utf-8")), "utf-8")
