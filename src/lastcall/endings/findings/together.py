"""Rows about containers of one Pod together: who ended first, and who was needed. Pure."""

# check: pure

import re

from lastcall.endings.catalogue.lookup import fix, said
from lastcall.endings.findings.neighbours import REFUSED
from lastcall.endings.findings.observed import ENDED_WELL, FAILED_CODE, NOT_KILLED, SIGNALLED, of_run
from lastcall.endings.findings.subjects import RunSubject
from lastcall.endings.findings.table import Fact, Row
from lastcall.endings.findings.words import exit_code
from lastcall.endings.findings.words import seconds as _s
from lastcall.endings.story import Change, ContainerEnding, Finding, OutputLine
from lastcall.records import kinds

_LOOPBACK = re.compile(r"\b127\.0\.0\.1\b|\blocalhost\b|\[::1\]")
_BESIDE_SECONDS = 0.2
"""Lines of one complaint, such as a traceback, are printed within this time."""
_MOST_LINES = 100
"""The last ones that are looked at: each is compared with the others."""
_SKEW_SECONDS = 0.05
"""A line may be recorded a moment before the end that it is about."""

_CONTAINER = of_run("its kind", lambda c: c.kind == "container")


def _gone_before(s: RunSubject, at: float) -> list[ContainerEnding]:
    """Return the containers that had ended by then, and that had listened or may have: the last end first."""
    others = [c for c in s.ending.containers if c.name != s.run.name and c.kind == "container"]
    before = [c for c in others if c.exit.at is not None and c.exit.at <= at + _SKEW_SECONDS]
    listened = [c for c in before if c.seen.sockets is None or c.seen.sockets.listeners]
    return sorted(listened, key=lambda c: -(c.exit.at or 0.0))


def _ports(c: ContainerEnding) -> list[int]:
    return [each.port for each in c.seen.sockets.listeners] if c.seen.sockets else []


def _missed(s: RunSubject, *, named: bool = False) -> tuple[ContainerEnding, OutputLine] | None:
    """Return who was missed, and the line that says so.

    The one whose port is named beside that line; else, unless it has to be `named`, the only one that had left, if it
    listened or the line is about this Pod's own network (a container that leaves at once has no record of its sockets).
    """
    mine = [line for line in s.ending.output if line.container == s.run.name][-_MOST_LINES:]
    for line in (each for each in mine if REFUSED.search(each.text)):
        gone = _gone_before(s, line.at)
        beside = " ".join(each.text for each in mine if abs(each.at - line.at) <= _BESIDE_SECONDS)
        whose = [c for c in gone if any(re.search(rf"\b{port}\b", beside) for port in _ports(c))]
        if whose:
            return whose[0], line
        if not named and len(gone) == 1 and (_ports(gone[0]) or _LOOPBACK.search(beside)):
            return gone[0], line
    return None


_MISSED: Fact[RunSubject] = Fact(
    "what it printed after another container had ended",
    lambda s: _missed(s) is not None,
    (kinds.OUTPUT, kinds.PROCESS_EXITED),
)


_NAMED: Fact[RunSubject] = Fact(_MISSED.name, lambda s: _missed(s, named=True) is not None, _MISSED.kinds)


def _ends_first(s: RunSubject) -> Finding:
    found = _missed(s)
    assert found is not None
    other, line = found
    before = _s((s.run.exit.at or 0.0) - (other.exit.at or 0.0))
    facts = {"container": s.run.name, "other": other.name, "before": before, "end": exit_code(s.run)}
    text = said("sidecarEndsFirst", **facts, line=_quoted(line))
    advice = fix("sidecarEndsFirst", other=other.name)
    return Finding("sidecarEndsFirst", "warning", text, s.run.name, advice, change=_native(other))


def _served_without(s: RunSubject) -> Finding:
    """It went on after the other container had ended, as one does that has a hook, and ended well."""
    found = _missed(s, named=True)
    assert found is not None
    other, line = found
    before = _s((s.run.exit.at or 0.0) - (other.exit.at or 0.0))
    text = said("sidecarEndsFirst", "wentOn", container=s.run.name, other=other.name, before=before, line=_quoted(line))
    variant = "hook" if s.run.hook is not None and other.hook is None else ""
    advice = fix("sidecarEndsFirst", variant, other=other.name, container=s.run.name)
    return Finding("sidecarEndsFirst", "warning", text, s.run.name, advice, change=_native(other))


def _quoted(line: OutputLine) -> str:
    return line.text.strip()[:200]


def _native(other: ContainerEnding) -> Change:
    return Change(patch={"initContainers": [{"name": other.name, "restartPolicy": "Always"}]})


ROWS = (
    Row("sidecarEndsFirst", (SIGNALLED, NOT_KILLED, FAILED_CODE, _CONTAINER, _MISSED), _ends_first),
    Row("sidecarEndsFirst", (SIGNALLED, NOT_KILLED, ENDED_WELL, _CONTAINER, _NAMED), _served_without, variant="wentOn"),
)
