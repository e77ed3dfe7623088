"""Rows about containers of one Pod together: who ended first, and who was needed. Pure."""

# check: pure

from lastcall.endings.catalogue.lookup import fix, said
from lastcall.endings.facts.missed import missed_container
from lastcall.endings.findings.observed import ENDED_WELL, FAILED_CODE, NOT_KILLED, SIGNALLED, of_run
from lastcall.endings.findings.subjects import RunSubject
from lastcall.endings.findings.table import Fact, Row
from lastcall.endings.findings.words import exit_code
from lastcall.endings.findings.words import seconds as _s
from lastcall.endings.story import Change, ContainerEnding, Finding, OutputLine
from lastcall.records import kinds

_CONTAINER = of_run("its kind", lambda c: c.kind == "container")


def _missed(s: RunSubject, *, named: bool = False) -> tuple[ContainerEnding, OutputLine] | None:
    mine = [line for line in s.ending.output if line.container == s.run.name]
    others = [c for c in s.ending.containers if c.name != s.run.name and c.kind == "container"]
    return missed_container(mine, others, named=named)


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
