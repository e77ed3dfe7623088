"""Results for CI systems: JUnit, GitHub's annotations, parts of a Markdown summary. Pure.

A `Check` is a finding of lint, the end of a Pod, or a limit of a rollout.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from lastcall.records.quoting import each_unseen, log_line, one_line, several_lines, without_commands
from lastcall.world.dataclass import dataclass

Level = Literal["error", "warning", "notice", ""]

MOST_BYTES = 512 * 1024
"""Of a Markdown summary: GitHub refuses a step's above 1 MiB, and other steps write there too."""

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold, not even as a reference."""
_MARKDOWN = re.compile(r"([\\`*_{}\[\]#|~])")


@dataclass(frozen=True, slots=True)
class Check:
    """`level` "" is a check that holds. `suite` and `name` are JUnit's classname and name; `title` is the annotation's,
    `name` without one. `place` is (file, line, column), counted from 1. `skipped` is the reason why it does not count,
    None for one that does."""

    suite: str
    name: str
    level: Level = ""
    message: str = ""
    body: str = ""
    title: str = ""
    kind: str = ""
    """JUnit's type of a failure; `level` without one."""
    place: tuple[str, int, int] | None = None
    skipped: str | None = None

    @property
    def failed(self) -> bool:
        return self.level in ("error", "warning") and self.skipped is None


def as_junit(title: str, checks: Sequence[Check], nothing: str = "nothing found") -> str:
    """Return one test suite, each check a case; `nothing` is the one case of no checks. A notice is system-out."""
    # late: 32 ms of `lint --help`
    from xml.sax.saxutils import escape, quoteattr

    def attribute(text: str) -> str:
        return _referred(quoteattr(_NOT_XML.sub("\ufffd", text)))

    cases = []
    for each in checks:
        body = _referred(escape(_NOT_XML.sub("\ufffd", each.body)))
        inside = f"<system-out>{body}</system-out>"
        if each.skipped is not None:
            inside = f"<skipped message={attribute(each.skipped)}/>"
        elif each.failed:
            kind, message = attribute(each.kind or each.level), attribute(each.message)
            inside = f"<failure type={kind} message={message}>{body}</failure>"
        cases.append(
            f"    <testcase classname={attribute(each.suite)} name={attribute(each.name)}>{inside}</testcase>\n"
        )
    if not cases:
        cases = [f"    <testcase classname={attribute(title)} name={attribute(nothing)}/>\n"]
    failures, skipped = sum(each.failed for each in checks), sum(each.skipped is not None for each in checks)
    counts = f'tests="{len(cases)}" failures="{failures}" skipped="{skipped}"'
    suite = f"  <testsuite name={attribute(title)} {counts}>\n{''.join(cases)}  </testsuite>\n"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites {counts}>\n{suite}</testsuites>\n'


def _referred(xml: str) -> str:
    """Return XML with a reference for each character that is not seen and for what a CI runner would carry out."""
    return without_commands(each_unseen(xml, _reference), _reference)


def _reference(character: str) -> str:
    return f"&#{ord(character)};"


def as_github(checks: Iterable[Check]) -> str:
    """Return workflow commands, which GitHub Actions shows beside the run and, with a place, beside the changed
    lines."""
    lines = []
    for each in checks:
        if not each.level or each.skipped is not None:
            continue
        place = ""
        if each.place is not None:
            file, line, column = each.place
            place = f"file={_property(file)},line={line},col={column},"
        lines.append(f"::{each.level} {place}title={_property(each.title or each.name)}::{_data(each.message)}\n")
    return "".join(lines)


def _data(text: str) -> str:
    return _lines(text).replace("%", "%25").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(one_line(text)).replace(":", "%3A").replace(",", "%2C")


def _lines(text: str) -> str:
    """Return lines of which none obeys a terminal or begins a command of its own."""
    return without_commands(several_lines(text))


# -- Markdown ---------------------------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """Escape text for Markdown, in one line, so that it means nothing but itself."""
    return _MARKDOWN.sub(r"\\\1", _html(text))


def _html(text: str) -> str:
    seen = log_line(" ".join(text.split()))
    return seen.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; the cells are text."""
    lines = [head, ["---"] * len(head), *([plain(cell) for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def block(text: str, language: str = "text") -> str:
    """Return a code block, whatever the text has in it."""
    text = _lines(text)
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def folded(title: str, inside: str) -> str:
    """Return a section that shows what is `inside` when one opens it."""
    return f"<details><summary>{_html(title)}</summary>\n\n{inside}\n</details>\n"


def shortened(parts: Sequence[str], most: int = MOST_BYTES) -> str:
    """Join the parts in order, an empty line between them; the last ones are left out above `most` bytes."""
    out, size = [], 0
    for number, part in enumerate(parts):
        size += len(part.encode("utf-8", "replace")) + 1
        if size > most:
            out.append(f"{len(parts) - number} more parts are left out: the summary would be too long.\n")
            break
        out.append(part)
    return "\n".join(out) + "\n"
