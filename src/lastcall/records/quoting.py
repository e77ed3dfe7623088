"""Quote foreign text by one rule: which characters a reader is not shown as they are. Pure.

Names, reasons, messages, lines of output and errors come from manifests, API servers, containers and other programs.
Each kind of output quotes them in one place:

terminal, log   `endings/render/console.py` (rich), `cli/terminal.py` (lines)
JSON            `endings/render/json_text.py`
JUnit, GitHub's annotations, Markdown   `endings/render/checks.py`
HTML            `endings/render/markup.py`, `ui/saved.py`
Prometheus      `trace/exporting/workload.py:clean`
"""

# check: pure

import re
from collections.abc import Callable

_SUSPECT = re.compile(r"[^\n -~]")
"""Every character that may have to be quoted; `_is_seen` decides."""
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u3164\uffa0").union(
    map(chr, range(0xFE00, 0xFE0F)), map(chr, range(0xE0100, 0xE01F0))
)
"""Letters and marks without a picture of their own (Unicode's Default_Ignorable_Code_Point). U+FE0F, which makes an
emoji of a sign, is left alone: applications print it, and it hides nothing."""
_COMMANDS = re.compile(r"^((?:\x1b\[[0-9;?]*[A-Za-z]|[^\S\n])*):(?=:)|#(?=#[a-z]*\[)", re.MULTILINE)
"""What begins a command of a CI runner: `::` at the start of a line, after blanks, and `##[` anywhere (GitHub's
ActionCommand.cs:TryParseV2, TryParse; Azure has ##vso[, TeamCity ##teamcity[). Our own colours count as blanks."""


def one_line(text: str) -> str:
    """Return the text with an escape for each character that a terminal obeys or does not show, newlines included."""
    return several_lines(text).replace("\n", "\\n")


def several_lines(text: str) -> str:
    """Return the same, with newlines as they are: for text whose lines are our own."""
    return each_unseen(text, lambda found: "    " if found == "\t" else found.encode("unicode_escape").decode())


def each_unseen(text: str, quote: Callable[[str], str]) -> str:
    """Return the text with `quote` of each character that is not seen as itself; a newline stays."""
    return _SUSPECT.sub(lambda found: found[0] if _is_seen(found[0]) else quote(found[0]), text)


def is_plain(text: str) -> bool:
    """Return True for a text in which `one_line` changes nothing."""
    return text.isprintable() and (text.isascii() or _BLANK.isdisjoint(text))


def _is_seen(character: str) -> bool:
    return character.isprintable() and character not in _BLANK


def without_commands(text: str, quote: Callable[[str], str] = lambda character: f"\\x{ord(character):02x}") -> str:
    """Return the text with `quote` of the first character of each command that a CI runner would carry out."""
    return _COMMANDS.sub(lambda found: f"{found[1] or ''}{quote(found[0][-1])}", text)


def log_line(text: str) -> str:
    """Return `one_line(text)` so that no CI runner carries it out: a whole line of a terminal or a log."""
    return without_commands(one_line(text))
