"""Text that attacks a terminal, the log of a CI job or its reader, and what no output may have of it."""

import json
import re
from collections.abc import Iterator

from hypothesis import strategies as st

FRAGMENTS = (
    *("\n::error title=approved::fake finding", "\n  ::stop-commands::tok", "::add-mask::kubernetes", "##[error]x"),
    *("\n##[group]x", "###[add-path]x", "##vso[task.complete]", "\r::set-output name=a::b", "\x85::warning::x"),
    *("\u2028::notice::x", "\x0b::x::y", "\x1b[2J", "\x1b]0;title\a", "\x1b]8;;http://x\x1b\\", "\x1b[8m", "\x9b2J"),
    *("\x9d0;x\x9c", "\x00", "\x7f", "\b\b\b", "\r", "\t", "\u202edrowssap", "\u2066x\u2069", "\u200b", "\u200d"),
    *("\u00ad", "\ufeff", "\u3164", "\u115f", "\U000e0041", "\ufe01", "\ud800", "\ufffe", "]]>", "<script>x</script>"),
    *("\"'><b>", "&amp;", "```", "| a | b |", "[red]x[/red]", "[/nothing]", ":smile:", "$text ${x} %(y)s {z}", "100%"),
    *("name", " ", "é", "漢字", "🙂", "x" * 70),
)
"""Each is an attack, or a neighbour that moves one to the start of a line."""


def foreign_texts() -> st.SearchStrategy[str]:
    """Names, reasons, messages and lines as somebody who means harm writes them; never empty, never two alike."""
    pieces = st.one_of(st.sampled_from(FRAGMENTS), st.sampled_from(FRAGMENTS), st.characters())
    return st.lists(pieces, min_size=1, max_size=6).map("".join)


_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_REDRAWS = re.compile(r"\x1b\[[0-9;?]*[AKhl]|\r")
_COMMAND = re.compile(r"^\s*::|##[a-z]*\[", re.MULTILINE)
_INVISIBLE = "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\ufe01\U000e0100"


def harm_in(output: str, *, colours: bool = False, redraws: bool = False, own_commands: bool = False) -> str:
    """Return the first thing in `output` that it may not have, with what stands around it; "" for none.

    `colours`, `redraws`: rich's own sequences are left out first. `own_commands`: each line is an annotation.
    """
    text = output if not colours else _COLOURS.sub("", output)
    text = text if not redraws else _REDRAWS.sub("", text)
    for number, each in enumerate(text):
        if each != "\n" and (not each.isprintable() or each in _INVISIBLE):
            return f"{each!r} in {text[max(0, number - 40) : number + 40]!r}"
    lines = re.sub(r"^::(error|warning|notice) ", "", text, flags=re.MULTILINE) if own_commands else text
    found = _COMMAND.search(lines)
    return f"a command: {lines[found.start() : found.start() + 80]!r}" if found else ""


def texts_in(document: str) -> Iterator[str]:
    """Yield every text of a JSON document: keys and values."""
    todo = [json.loads(document)]
    while todo:
        value = todo.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            todo += [*value, *value.values()]
        elif isinstance(value, list):
            todo += value
