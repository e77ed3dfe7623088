"""Findings about the processes beside PID 1: who was not signalled, who does not hear, who was not reaped. Pure."""

# check: pure

from collections.abc import Iterator, Sequence

from lastcall.endings.catalogue.lookup import fix, said
from lastcall.endings.facts.pid1 import Forwards, by_name, forwards, is_shell
from lastcall.endings.findings.words import listed
from lastcall.endings.findings.words import seconds as _s
from lastcall.endings.node_facts import ProcessesLeft, ProcessLeft
from lastcall.endings.shell_script import pipeline_fix, script_of, shape_of
from lastcall.endings.story import ContainerEnding, Ending, Finding, Severity
from lastcall.records.said import tell

_MOST_NAMES = 4


def not_signalled(c: ContainerEnding, ending: Ending, version: str) -> Iterator[Finding]:
    """Processes beside PID 1 that lived on: StopContainer signals PID 1 and nobody else."""
    left = c.seen.processes_left
    if left is None or not left.alive or c.stop.signal_at is None:
        return
    if not left.more and all(each.after_signal for each in left.processes):
        return  # begun on the signal, by what PID 1 does then: there was nothing to pass on to them
    if to := forwards(c):
        yield from _not_passed_on(c, left, to)
        return
    names, several = _names(left.processes, left.more), left.alive > 1
    untold = [each for each in left.processes if each.disposition == "default" and not each.after_signal]
    told = ""
    if len(untold) == left.alive and several:
        told = tell(", so they never got $signal (inferred)", signal=c.stop.signal)
    elif len(untold) == left.alive:
        told = tell(", so it never got $signal (inferred)", signal=c.stop.signal)
    killed = left.when == "SIGKILL" and c.exit.sigkilled
    until = _until(killed, several)
    facts = {"container": c.name, "by_name": by_name(c), "signal": c.stop.signal, "names": names, "until": until}
    facts["untold"] = told
    if is_shell(c):
        if c.process.disposition == "handled" and not killed and shape_of(script_of(c.process.argv)) != "loop":
            if all(each.name == "sleep" for each in left.processes) and not left.more:
                return  # `sleep 3600 & wait` keeps a shell: it has begun nothing
            text = said("shellKeepsSignal", "left", **facts)
            yield Finding("shellKeepsSignal", "warning", text, c.name, fix("shellKeepsSignal", "left"))
            return
        text = said("shellKeepsSignal", **facts)
        yield Finding("shellKeepsSignal", "problem" if killed else "info", text, c.name, _shell_advice(c, left))
        return
    severity: Severity = "problem" if killed else "warning"
    yield Finding(
        "childrenNotSignalled", severity, said("childrenNotSignalled", **facts), c.name, fix("childrenNotSignalled")
    )


def _not_passed_on(c: ContainerEnding, left: ProcessesLeft, to: Forwards) -> Iterator[Finding]:
    """PID 1 is an init: its child got the signal, and what others got is known of those that it would have ended."""
    killed = left.when == "SIGKILL" and c.exit.sigkilled
    mine = [each for each in left.processes if not each.after_signal]
    facts = {"container": c.name, "by_name": by_name(c), "signal": c.stop.signal}
    deaf = [each for each in mine if each.deaf and each.child]
    if deaf and killed:
        how = said("childIgnoresSignal", deaf[0].disposition, signal=c.stop.signal)
        text = said("childIgnoresSignal", **facts, names=_names(deaf), how=how, seconds=_s(c.drain_seconds))
        advice = fix("childIgnoresSignal", deaf[0].disposition, signal=c.stop.signal, name=deaf[0].name)
        yield Finding("childIgnoresSignal", "problem", text, c.name, advice)
    untold = [each for each in mine if each.disposition == "default" and each.child is False]
    if untold:
        until = _until(killed, len(untold) > 1)
        text = said("childrenNotSignalled", to, **facts, names=_names(untold), until=until)
        severity: Severity = "problem" if killed else "warning"
        yield Finding("childrenNotSignalled", severity, text, c.name, fix("childrenNotSignalled", to))


def zombies(c: ContainerEnding, ending: Ending, version: str) -> Iterator[Finding]:
    """Children that had ended and that nobody waited for."""
    left = c.seen.processes_left
    if left is None or not left.zombies or forwards(c):
        return  # an init reaps; what it had not at that moment is gone in the next
    count = tell("a child that had ended")
    if left.zombies > 1:
        count = tell("$count children that had ended", count=left.zombies)
    text = said("zombies", container=c.name, by_name=by_name(c), count=count)
    yield Finding("zombies", "info", text, c.name, fix("zombies"))


def _shell_advice(c: ContainerEnding, left: ProcessesLeft) -> str:
    """The same command with `exec`, so that the program takes the shell's place; where that is not enough, what is."""
    script, shape = script_of(c.process.argv), shape_of(script_of(c.process.argv))
    if shape == "plain" and len(c.process.argv) == 3 and not script.startswith("exec "):
        return fix("shellKeepsSignal", "command", command=f'["{c.process.argv[0]}", "-c", "exec {script}"]')
    if shape == "pipeline":
        return pipeline_fix(c.process.argv)
    if shape == "loop" and not c.exit.sigkilled:
        return ""  # it ends on the signal, as it should
    if shape in ("jobs", "loop"):
        return fix("shellKeepsSignal", shape)
    children = [each for each in left.processes if each.child and not each.after_signal]
    return fix("shellKeepsSignal", "several" if not shape and len(children) > 1 else "")


def _names(those: Sequence[ProcessLeft], more: int = 0) -> str:
    told: list[str] = [f"{each.name} (pid {each.container_pid})" for each in those[:_MOST_NAMES]]
    others = len(those) + more - len(told)
    if others:
        told.append(tell("$count more", count=others))
    return listed(told)


def _until(killed: bool, several: bool) -> str:
    """What became of processes that PID 1 had not told."""
    if killed:
        return tell("still ran at SIGKILL")
    if several:
        return tell("were killed with it by the kernel when PID 1 ended")
    return tell("was killed with it by the kernel when PID 1 ended")
