"""Findings about ends that were not the Pod's: crashes, and restarts by probes, of Pods that live on or not.

It looks at every run of a container that ended before its Pod's end began; what happened several times is reported
once, of the newest. Pure.
"""

# check: pure

import math
import re
from collections.abc import Callable, Sequence

from lastcall.endings.catalogue.lookup import fix, said
from lastcall.endings.findings.changes import container_change
from lastcall.endings.findings.files import hidden_file, key_of, no_file
from lastcall.endings.findings.last_words import HOST_STATUSES, advice_by, own_limit, refuses_host
from lastcall.endings.findings.neighbours import needs_neighbour
from lastcall.endings.findings.not_executed import NotExecuted, is_not_executable, not_executed
from lastcall.endings.findings.post_start import KINDS as HOOK_KINDS
from lastcall.endings.findings.post_start import because, hook_of, more, remedy
from lastcall.endings.findings.probes import REFUSED, asked_node, other_port, without_host
from lastcall.endings.findings.subjects import ContainerSubject
from lastcall.endings.findings.table import Fact, Row
from lastcall.endings.findings.words import after_start, exit_code
from lastcall.endings.findings.words import listed as _and
from lastcall.endings.findings.words import seconds as _s
from lastcall.endings.story import (
    Change,
    ContainerEnding,
    EndedBy,
    Ending,
    Finding,
    MountedFiles,
    ProgramChange,
)
from lastcall.records import kinds
from lastcall.records.said import Said, joined, tell

_STATUS = re.compile(r"statuscode: (\d+)")
_SIGNAL = re.compile(r"\bSIG(?:TERM|INT|HUP|QUIT|USR[12])\b|\b(?:received|caught|got)\b.{0,20}\bsignal\b", re.I)
"""Words of a program that a signal ends."""
_LATE = re.compile(r"deadline exceeded|i/o timeout|timed out|timeout: ")
_COMMAND_LATE = re.compile(r"\Acommand .*timed out|failed to exec in container: timeout ", re.S)
"""A command that finds nothing to talk to mostly ends at once: one that takes too long is itself what is slow."""
_PATIENT = {"timeoutSeconds": 10, "failureThreshold": 6}
LEAST_STARTUP_SECONDS = 30
"""A startupProbe ends with its first success: generous costs nothing, and what a start takes varies."""


def is_over(c: ContainerEnding, ending: Ending) -> bool:
    """Return whether a run ended before the Pod's end began; of a Pod that lives any end is one."""
    return c.exit.at is not None and (c.exit.at < 0 or not ending.zero_kind)


def killed_before(ending: Ending) -> list[ContainerEnding]:
    """Return each container's newest run that was killed before its last one: for memory, or without a reason."""
    found = {c.name: c for c in ending.earlier if c.exit.sigkilled and c.exit.ended_by == "itself"}
    return list(found.values())


def times_and_when(c: ContainerEnding, ending: Ending) -> str:
    """Return ` 2 times, the last one 1.0 s after its start,` for a run that was killed before the Pod's own end.

    The number is of those that were killed for the same reason. "" for any other run.
    """
    if not is_over(c, ending) or c.run_seconds is None:
        return ""
    runs = [
        run
        for run in [*ending.earlier, *ending.containers]
        if run.name == c.name and run.exit.killed_by == c.exit.killed_by
    ]
    if len(runs) == 1:
        return after_start(c.run_seconds)
    return tell(" $count times, the last one $after after its start,", count=len(runs), after=_s(c.run_seconds))


def last_words(ending: Ending) -> list[tuple[str, tuple[str, ...]]]:
    """Return what containers printed last that failed before the Pod's end: a heading, and lines of the newest such
    run."""
    found = {}
    for c in [*ending.earlier, *ending.containers]:
        probe = c.exit.ended_by in ("livenessProbe", "startupProbe")
        if (
            (probe or c.exit.failed_by_itself or c.exit.killed_by == "out of memory")
            and is_over(c, ending)
            and c.seen.last_lines
        ):
            heading = tell("what $container printed last ($end)", container=c.name, end=_end(c))
            found[c.name] = (heading, c.seen.last_lines)
    return list(found.values())


# -- the rows --------------------------------------------------------------------------------------------------------


_Test = Callable[[ContainerEnding], bool]


def _those(s: ContainerSubject, test: _Test) -> list[ContainerEnding]:
    return [run for run in s.runs if test(run)]


def _ended_by(who: EndedBy) -> _Test:
    return lambda run: run.exit.ended_by == who


def _completes(run: ContainerEnding) -> bool:
    return run.exit.ended_by == "itself" and run.exit.code == 0 and run.kind != "init"


def _fails(kind_is_init: bool) -> _Test:
    return lambda run: run.exit.failed_by_itself and (run.kind == "init") == kind_is_init


def _by_probe(who: EndedBy) -> Callable[[ContainerSubject], Finding]:
    def says(s: ContainerSubject) -> Finding:
        those = _those(s, _ended_by(who))
        changes = s.newest(_ended_by(who)).entries((kinds.PROBE_CHANGED,))
        probes = [entry.facts_as(kinds.PROBE_CHANGED) for entry in changes]
        had_started = any(each["probe"] != "liveness" and each["result"] == "success" for each in probes)
        return _killed_by_probe(s.ending, those[-1], len(those), _did(those, s.last), had_started=had_started)

    return says


def _killed_by_probe(ending: Ending, c: ContainerEnding, times: int, did: str, *, had_started: bool) -> Finding:
    output = c.seen.probe.output if c.seen.probe else ""
    startup = c.exit.ended_by == "startupProbe"
    id_ = "startupProbeKilled" if startup else "livenessProbeKilled"
    never = startup or (c.seen.probe is not None and c.seen.probe.succeeded_before is False)
    refused, late = REFUSED.search(output), _LATE.search(output)
    slow_command = never and not startup and _COMMAND_LATE.search(output) is not None
    slow_start = never and not startup and not had_started and not slow_command
    others = sorted({each.port for each in c.seen.sockets.listeners}) if c.seen.sockets else []
    took = _s(c.had_seconds) if c.had_seconds is not None else ""
    variant, advice = "", fix(id_)
    wanted = max(LEAST_STARTUP_SECONDS, math.ceil(2 * (c.had_seconds or 0.0)))
    node = asked_node(ending.pod, c.name, "startupProbe" if startup else "livenessProbe")
    if node is not None and never:
        variant, advice = "node", fix(id_, "node", host=node[2])
    elif refused and others and int(refused[1]) not in others:
        variant = "otherPort"
        advice = fix(id_, "otherPort", port=refused[1], others=_and(list(map(str, others))))
    elif refused:
        variant = "notYet" if never else "noMore"
        advice = fix(id_, variant, seconds=wanted, took=took)
    elif status := _STATUS.search(output):
        variant, advice = "status", _fix_of_status(id_, status[1], c)
    elif late:
        variant = "late"
        which = "lateCommand" if slow_command else "lateNever" if slow_start else "late"
        advice = fix(id_, which, seconds=wanted, took=took)
    elif never:
        advice = fix(id_, "never", seconds=wanted, took=took)
    state = {"host": node[2]} if variant == "node" and node else {"others": _and(list(map(str, others)))}
    text = said(
        id_,
        container=c.name,
        did=did,
        times=_times(times),
        after=after_start(c.had_seconds) if c.had_seconds is not None else "",
        state=said(id_, f"{variant}State", **state) if variant else "",
        output=f" ({output.splitlines()[-1].strip()[:200]})" if output else "",
        end=_end(c),
    )
    change = None
    if variant == "node" and node is not None:
        change = without_host(c, node)
    elif variant == "late" and not startup and not slow_start:
        change = container_change(c.name, c.kind, livenessProbe=_PATIENT)
    elif variant == "otherPort" and refused:
        change = other_port(ending, c, int(refused[1]), others)
    elif startup and variant in ("", "notYet", "late"):  # its period is a second at least
        change = container_change(c.name, c.kind, startupProbe={"failureThreshold": wanted})
    return Finding(id_, "problem", text, c.name, advice, change=change)


def _fix_of_status(id_: str, status: str, c: ContainerEnding) -> Said:
    if status in HOST_STATUSES and refuses_host(c.seen.last_lines):
        return fix(id_, "host", status=status)
    return fix(id_, "error" if status >= "500" and id_ == "livenessProbeKilled" else "status", status=status)


def _crashed(s: ContainerSubject) -> Finding:
    those = _those(s, lambda run: run.exit.failed_by_itself)
    c, last = those[-1], s.last
    succeeded = c.kind == "init" and not (last and last[-1].exit.failed_by_itself) and not _is_tried_again(s, c.name)
    id_ = "initContainerFailed" if c.kind == "init" else "crashed"
    variant = "succeeded" if succeeded else ""
    lines = [line for line in c.seen.last_lines if line.strip()]
    text = said(
        id_,
        variant,
        container=c.name,
        times=_times(len(those)),
        after=_after(c),
        end=_end(c),
        output=_output(c, lines),
    )
    if first := _first_words(those):
        text = joined([text, said("crashed", "first", line=first)], " " if text.endswith(".") else ". ")
    if succeeded:
        return Finding(id_, "info", text, c.name)
    if (remedy := needs_neighbour(s.ending.pod, c, s.ending.containers)) is not None:
        change = remedy.change or Change(program="fixCrash")
        return Finding(id_, "problem", text, c.name, remedy.advice, change=change)
    advice = refused.advice if (refused := _not_executed_of(s)) else ""  # of an init container
    if heap := own_limit(lines):
        return Finding(id_, "problem", text, c.name, fix("crashed", heap), change=Change(program="useLessMemory"))
    by_code = _code(c, lines[-1] if lines else "")
    what: ProgramChange = "fixCommand" if advice or by_code in ("notFound", "notExecutable") else "fixCrash"
    if not advice:
        advice = (lines and advice_by(lines[-1], s.ending.pod)) or fix(id_, by_code)
        if sub_path := no_file(s.ending.pod, c.name, c.seen.last_lines):
            facts = {"path": sub_path.path, "key": sub_path.sub_path, "kind": sub_path.kind, "source": sub_path.source}
            advice = fix("crashed", "subPath", **facts)
    return Finding(id_, "problem", text, c.name, advice, change=Change(program=what))


def _is_tried_again(s: ContainerSubject, name: str) -> bool:
    """Return whether the newest run of an init container still ran when its Pod's end began, or runs now."""
    return any(run.name == name and run.started and not is_over(run, s.ending) for run in s.ending.containers)


def _newest_failure(s: ContainerSubject) -> ContainerEnding | None:
    those = _those(s, lambda run: run.exit.failed_by_itself)
    return those[-1] if those else None


def _not_executed_of(s: ContainerSubject) -> NotExecuted | None:
    """Return why the newest run that failed did not execute its program; None for one that did."""
    c = _newest_failure(s)
    if c is None:
        return None
    of_run = s.newest(lambda run: run is c)
    return not_executed([line for line in c.seen.last_lines if line.strip()], of_run.entries((kinds.PROCESS_EXITED,)))


def _hidden_by_mount(s: ContainerSubject) -> tuple[MountedFiles, str] | None:
    c = _newest_failure(s)
    return hidden_file(s.ending.pod, c.name, c.seen.last_lines) if c is not None else None


def _command_not_started(s: ContainerSubject) -> Finding:
    those = _those(s, lambda run: run.exit.failed_by_itself)
    c, found = those[-1], _not_executed_of(s)
    assert found is not None
    lines = [line for line in c.seen.last_lines if line.strip()]
    facts = {"times": _times(len(those)), "after": _after(c), "end": _end(c), "output": _output(c, lines)}
    text: str = said("commandNotStarted", container=c.name, **facts)
    if found.path and (of := key_of(s.ending.pod, c.name, found.path)):
        mount, key = of
        facts = {"path": found.path, "key": key, "kind": mount.kind, "source": mount.source, "volume": mount.volume}
        end = " " if text.endswith(".") else ". "
        text = joined([text, said("commandNotStarted", "source", **facts)], end)
    change = Change(program="fixCommand")
    return Finding("commandNotStarted", "problem", text, c.name, found.advice, change=change)


def _mount_hides_file(s: ContainerSubject) -> Finding:
    those, found = _those(s, lambda run: run.exit.failed_by_itself), _hidden_by_mount(s)
    assert found is not None
    c, (mount, file) = those[-1], found
    lines = [line for line in c.seen.last_lines if line.strip()]
    text = said(
        "mountHidesFile",
        container=c.name,
        times=_times(len(those)),
        after=_after(c),
        end=_end(c),
        path=mount.path,
        volume=mount.volume,
        kind=mount.kind,
        source=mount.source,
        output=_output(c, lines),
    )
    advice = fix("mountHidesFile", container=c.name, path=mount.path, file=file, volume=mount.volume)
    mounted = [{"mountPath": mount.path, "name": mount.volume, "subPath": file}]
    change = container_change(c.name, c.kind, volumeMounts=mounted)
    return Finding("mountHidesFile", "problem", text, c.name, advice, change=change)


def _code(c: ContainerEnding, last_line: str) -> str:
    """Return the variant of the advice for an exit code that says something by itself."""
    if (c.exit.code or 0) - 128 in (4, 6, 7, 8, 11):  # SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV: of it, or of a child
        return "signal"
    if c.kind == "init":
        return ""
    if is_not_executable(c.exit.code, last_line):
        return "notExecutable"
    return "notFound" if c.exit.code == 127 else ""


def _completed(s: ContainerSubject) -> Finding:
    """It succeeds, and is started again: a program that ends has no place under restartPolicy Always."""
    those = [run for run in s.earlier if _completes(run)]
    text = said("endsAndIsRestarted", container=those[-1].name, times=_times(len(those)))
    return Finding("endsAndIsRestarted", "warning", text, those[-1].name, fix("endsAndIsRestarted"))


def _signalled(s: ContainerSubject) -> Finding:
    """It succeeds, and says that a signal ended it: neither the kubelet nor a probe had sent one."""
    those = [run for run in s.earlier if _completes(run)]
    name, line = those[-1].name, _word_of_signal(those[-1])
    text = said("endsAndIsRestarted", "signalled", container=name, times=_times(len(those)), line=line)
    change = Change(program="stopKilling")
    return Finding("endsAndIsRestarted", "warning", text, name, fix("endsAndIsRestarted", "signalled"), change=change)


def _word_of_signal(run: ContainerEnding) -> str:
    """Return the last line that names a signal; "" for none."""
    return next((line.strip()[:200] for line in reversed(run.seen.last_lines) if _SIGNAL.search(line)), "")


def _by_rule(s: ContainerSubject) -> Finding:
    """It asked for a restart, as its restartPolicyRules have it."""
    those = _those(s, _ended_by("restartRule"))
    c = those[-1]
    variant = "waits" if c in s.last else ""
    times, after = _times(len(those)), _after(c)
    text = said("restartedByRule", variant, container=c.name, code=c.exit.code, times=times, after=after)
    return Finding("restartedByRule", "info", text, c.name)


def _post_start(s: ContainerSubject) -> Finding:
    those = _those(s, _ended_by("postStartHook"))
    c = those[-1]
    hook = hook_of(c, s.entries(HOOK_KINDS))
    facts = {"did": _did(those, s.last), "times": _times(len(those)), "after": _after(c), "end": _end(c)}
    text = said("restartedPostStart", container=c.name, because=because(hook), **facts)
    text = joined([text, *more(c, hook)])
    change = Change(program="fixPostStart")
    return Finding("restartedPostStart", "problem", text, c.name, remedy(hook), change=change)


def _row(
    id_: str, test: _Test, says: Callable[[ContainerSubject], Finding], name: str, *shown_by: str
) -> Row[ContainerSubject]:
    """Return a row about the runs that fulfil `test`, with the records of the newest of them as evidence."""
    fact: Fact[ContainerSubject] = Fact(name, lambda s: bool(_those(s, test)), (kinds.PROCESS_STARTED, *shown_by))
    return Row(id_, (fact,), says, about=lambda s: s.newest(test))


def _only_earlier(s: ContainerSubject) -> ContainerSubject:
    return ContainerSubject(s.ending, s.earlier, ())


_WHO, _HOW = "who ended it", "how it ended"
_BY_NODE = (kinds.KILLING, kinds.STOP_REQUESTED, kinds.PROCESS_EXITED)
_AGAIN: Fact[ContainerSubject] = Fact(
    _HOW, lambda s: bool(_those(_only_earlier(s), _completes)), (kinds.PROCESS_STARTED, kinds.PROCESS_EXITED)
)


def _newest_that_failed(s: ContainerSubject) -> ContainerSubject:
    return s.newest(_fails(False))


_FAILED: Fact[ContainerSubject] = Fact(
    _HOW, lambda s: bool(_those(s, _fails(False))), (kinds.PROCESS_STARTED, kinds.PROCESS_EXITED, kinds.OUTPUT)
)
_NOT_EXECUTED: Fact[ContainerSubject] = Fact(
    "whether its program was executed", lambda s: _not_executed_of(s) is not None, (kinds.PROCESS_EXITED, kinds.OUTPUT)
)
_HIDDEN: Fact[ContainerSubject] = Fact(
    "what is mounted where it reads a file", lambda s: _hidden_by_mount(s) is not None, (kinds.OUTPUT,)
)
_SAYS_SIGNAL: Fact[ContainerSubject] = Fact(
    "what it printed",
    lambda s: bool((those := _those(_only_earlier(s), _completes)) and _word_of_signal(those[-1])),
    (kinds.OUTPUT,),
)

ROWS = (
    _row(
        "livenessProbeKilled",
        _ended_by("livenessProbe"),
        _by_probe("livenessProbe"),
        _WHO,
        *_BY_NODE,
        kinds.PROBE_CHANGED,
    ),
    _row(
        "startupProbeKilled", _ended_by("startupProbe"), _by_probe("startupProbe"), _WHO, *_BY_NODE, kinds.PROBE_CHANGED
    ),
    _row("initContainerFailed", _fails(True), _crashed, _HOW, kinds.PROCESS_EXITED, kinds.OUTPUT),
    Row("commandNotStarted", (_FAILED, _NOT_EXECUTED), _command_not_started, about=_newest_that_failed),
    Row("mountHidesFile", (_FAILED, _HIDDEN), _mount_hides_file, about=_newest_that_failed),
    Row("crashed", (_FAILED,), _crashed, (_NOT_EXECUTED, _HIDDEN), about=_newest_that_failed),
    _row("restartedPostStart", _ended_by("postStartHook"), _post_start, _WHO, *_BY_NODE, kinds.POST_START_FINISHED),
    _row("restartedByRule", _ended_by("restartRule"), _by_rule, _WHO, kinds.PROCESS_EXITED),
    Row(
        "endsAndIsRestarted",
        (_AGAIN, _SAYS_SIGNAL),
        _signalled,
        variant="signalled",
        about=lambda s: _only_earlier(s).newest(_completes),
    ),
    Row(
        "endsAndIsRestarted",
        (_AGAIN,),
        _completed,
        refuted_by=(_SAYS_SIGNAL,),
        about=lambda s: _only_earlier(s).newest(_completes),
    ),
)


# -- words -----------------------------------------------------------------------------------------------------------


def _output(c: ContainerEnding, lines: Sequence[str]) -> str:
    """Nobody listened to a run that is known from the Pod's status alone."""
    if lines:
        return said("crashed", "output", line=lines[-1].strip()[:300])
    return "" if c.exit.from_status else said("crashed", "silent")


def _first_words(those: Sequence[ContainerEnding]) -> str:
    """Return the last line of the first of several failures if the newest ended with another one; "" for none.

    Digits do not count: they are times and process numbers.
    """
    lines = [next((line.strip() for line in reversed(run.seen.last_lines) if line.strip()), "") for run in those]
    alike = {re.sub(r"[0-9a-f]*\d[0-9a-f]*", "0", line) for line in (lines[0], lines[-1])}
    return lines[0][:300] if lines[0] and lines[-1] and len(alike) == 2 else ""


def _did(those: Sequence[ContainerEnding], last: Sequence[ContainerEnding]) -> str:
    """What the kubelet has done as often as `those` are many. One that waits for its next start, or gets none, has
    ended once more than it was restarted, as restartCount says."""
    return tell("ended") if those[-1] in last else tell("restarted")


def _times(count: int) -> str:
    return "" if count == 1 else tell(" $count times, the last one", count=count)


def _after(c: ContainerEnding) -> str:
    return "" if c.run_seconds is None else after_start(c.run_seconds)


def _end(c: ContainerEnding) -> str:
    if c.exit.sigkilled and c.stop.signal_at is not None:
        drain = _s(c.drain_seconds)
        return tell("exit code 137: SIGKILL, $seconds after $signal", seconds=drain, signal=c.stop.signal)
    if c.exit.signal:
        return tell("exit code $code: $signal", code=c.exit.code, signal=c.exit.signal)
    return exit_code(c)
