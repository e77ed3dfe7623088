"""rich, with every text quoted: no foreign text moves the cursor, hides or looks like a command.

Three steps make that hold whatever a caller prints. A str and a `Text` are one line of plain text. A segment that still
has a character that is not seen (from rich's own markup, say) shows its escape. What begins a command of a CI runner
after lines were wrapped is quoted when the line is written.
"""

# check: prints because it is the console that quotes

import io
from collections.abc import Callable, Iterable
from typing import IO, TYPE_CHECKING, Any, cast

import rich.text
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from lastcall.records.quoting import is_plain, one_line, several_lines, without_commands

if TYPE_CHECKING:
    from rich.style import Style

BREAK = rich.text.Text("\n")
"""A line break of our own: `text.append(BREAK)`, `BREAK.join(lines)`."""


class Text(rich.text.Text):
    """One line of plain text: a newline in it is shown as `\\n`."""

    def __init__(self, text: str = "", style: "str | Style" = "", **more: Any) -> None:
        super().__init__(one_line(text), style, **more)

    def append(self, text: "rich.text.Text | str", style: "str | Style | None" = None) -> "Text":
        """Add a str, quoted, or a Text as it is. Return self."""
        super().append(one_line(text) if isinstance(text, str) else text, style)
        return self


class SafeConsole(Console):
    """Where commands and renderers print. A str is one line without markup."""

    @property
    def file(self) -> IO[str]:
        return cast(IO[str], _Guarded(super().file))

    @file.setter
    def file(self, new_file: IO[str]) -> None:
        self._file = new_file

    def render_str(self, text: str, **more: Any) -> rich.text.Text:
        given = {key: more[key] for key in ("style", "justify", "overflow") if more.get(key)}
        return Text(text, **given)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for each in super().render(renderable, options):
            if each.control or each.text == "\n" or is_plain(each.text):
                yield each
            else:
                yield Segment(several_lines(each.text), each.style)


class _Guarded:
    """A stream whose `write` quotes commands of CI runners; everything else is the stream's own."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(without_commands(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def plain_lines(width: int, show: Callable[[Console], None]) -> str:
    """Return what `show` prints, in `width` columns, without colour and trailing blanks."""
    out = io.StringIO()
    show(SafeConsole(file=out, width=width, color_system=None, force_terminal=False))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().split("\n")[:-1])
