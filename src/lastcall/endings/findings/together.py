"""Rows about containers of one Pod together: who ended first, and who was needed. Pure."""

# check: pure

import re

from lastcall.endings.catalogue.lookup import fix, said
from lastcall.endings.findings.observed import FAILED_CODE, NOT_KILLED, SIGNALLED, of_run
from lastcall.endings.findings.subjects import RunSubject
from lastcall.endings.findings.table import Fact, Row
from lastcall.endings.findings.words import exit_code
from lastcall.endings.findings.words import seconds as _s
from lastcall.endings.story import Change, ContainerEnding, Finding, OutputLine
from lastcall.records import kinds

_REFUSED = re.compile(r"connection (?:refused|reset)|ECONNREFUSED|ECONNRESET|broken pipe|Errno (?:32|104|111)", re.I)
"""What strerror(3) and runtimes of languages say when the other side is gone."""
_SKEW_SECONDS = 0.05
"""A line may be recorded a moment before the end that it is about."""

_CONTAINER = of_run("its kind", lambda c: c.kind == "container")


def _gone_before(s: RunSubject) -> list[tuple[ContainerEnding, int]]:
    """Return the containers that had listened and ended before this one, each with its first port, last end first."""
    end = s.run.exit.at
    others = [c for c in s.ending.containers if c.name != s.run.name and c.kind == "container"]
    listened = [(c, c.seen.sockets.listeners[0].port) for c in others if c.seen.sockets and c.seen.sockets.listeners]
    before = [each for each in listened if end is not None and each[0].exit.at is not None and each[0].exit.at < end]
    return sorted(before, key=lambda each: -(each[0].exit.at or 0.0))


def _complaint(s: RunSubject) -> tuple[ContainerEnding, int, OutputLine] | None:
    """Return who was missed, its port, and the line that says so: it names the port, or only one container had left."""
    gone = _gone_before(s)
    for line in s.ending.output:
        if line.container != s.run.name or not _REFUSED.search(line.text):
            continue
        missed = [each for each in gone if line.at >= (each[0].exit.at or 0.0) - _SKEW_SECONDS]
        named = [each for each in missed if re.search(rf"\b{each[1]}\b", line.text)]
        if named or len(missed) == 1:
            return (*(named or missed)[0], line)
    return None


_MISSED: Fact[RunSubject] = Fact(
    "what it printed after another container had ended",
    lambda s: _complaint(s) is not None,
    (kinds.OUTPUT, kinds.PROCESS_EXITED),
)


def _ends_first(s: RunSubject) -> Finding:
    found = _complaint(s)
    assert found is not None
    other, port, line = found
    before = _s((s.run.exit.at or 0.0) - (other.exit.at or 0.0))
    facts = {"container": s.run.name, "other": other.name, "port": port, "before": before, "end": exit_code(s.run)}
    text = said("sidecarEndsFirst", **facts, line=line.text.strip()[:200])
    native = {"initContainers": [{"name": other.name, "restartPolicy": "Always"}]}
    advice = fix("sidecarEndsFirst", other=other.name)
    return Finding("sidecarEndsFirst", "warning", text, s.run.name, advice, change=Change(patch=native))


ROWS = (Row("sidecarEndsFirst", (SIGNALLED, NOT_KILLED, FAILED_CODE, _CONTAINER, _MISSED), _ends_first),)
