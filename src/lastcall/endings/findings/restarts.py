"""Findings about ends that were not the Pod's: crashes, and restarts by probes, of Pods that live on or not.

Every run of a container that ended before its Pod's end began is looked at; what happened several times is told once,
of the newest. Pure.
"""

# check: pure

import math
import re
from collections.abc import Callable, Iterator, Sequence

from lastcall.endings.catalogue.lookup import fix, said
from lastcall.endings.findings.words import after_start, exit_code
from lastcall.endings.findings.words import listed as _and
from lastcall.endings.findings.words import seconds as _s
from lastcall.endings.story import ContainerEnding, Ending, Finding
from lastcall.records.said import tell

_REFUSED = re.compile(r":(\d+): connect: connection refused")
_STATUS = re.compile(r"statuscode: (\d+)")
_LATE = re.compile(r"deadline exceeded|i/o timeout|timed out|timeout: ")
LEAST_STARTUP_SECONDS = 30
"""A startupProbe ends with its first success: generous costs nothing, and what a start takes varies."""


def restarts(ending: Ending) -> Iterator[Finding]:
    """Of every container: how its runs ended before the Pod's own end."""
    for name in dict.fromkeys(c.name for c in [*ending.earlier, *ending.containers]):
        runs = [c for c in ending.earlier if c.name == name]
        last = [c for c in ending.containers if c.name == name and is_over(c, ending)]
        for rule in _RULES:
            yield from rule(runs, last)


def is_over(c: ContainerEnding, ending: Ending) -> bool:
    """Whether a run ended before the Pod's end began; of a Pod that lives any end is one."""
    return c.exit.at is not None and (c.exit.at < 0 or not ending.zero_kind)


def killed_before(ending: Ending) -> list[ContainerEnding]:
    """Of every container the newest run that somebody killed before its last one: for memory, or without a reason."""
    found = {c.name: c for c in ending.earlier if c.exit.sigkilled and c.exit.ended_by == "itself"}
    return list(found.values())


def times_and_when(c: ContainerEnding, ending: Ending) -> str:
    """` 2 times, the last one 1.0 s after its start,` for a run that was killed before the Pod's own end, by the number
    of those that were killed for the same reason; "" for any other run."""
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
    """What containers printed last that failed before the Pod's end: a heading, and lines of the newest such run."""
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


def _by_probe(runs: Sequence[ContainerEnding], last: Sequence[ContainerEnding]) -> Iterator[Finding]:
    for by in ("livenessProbe", "startupProbe"):
        those = [c for c in [*runs, *last] if c.exit.ended_by == by]
        if those:
            yield _killed_by_probe(those[-1], len(those), _did(those, last))


def _killed_by_probe(c: ContainerEnding, times: int, did: str) -> Finding:
    output = c.seen.probe.output if c.seen.probe else ""
    startup = c.exit.ended_by == "startupProbe"
    id_ = "startupProbeKilled" if startup else "livenessProbeKilled"
    never = startup or (c.seen.probe is not None and c.seen.probe.succeeded_before is False)
    refused, late = _REFUSED.search(output), _LATE.search(output)
    others = sorted({each.port for each in c.seen.sockets.listeners}) if c.seen.sockets else []
    took = _s(c.had_seconds) if c.had_seconds is not None else ""
    variant, advice = "", fix(id_)
    wanted = max(LEAST_STARTUP_SECONDS, math.ceil(2 * (c.had_seconds or 0.0)))
    if refused and others and int(refused[1]) not in others:
        variant = "otherPort"
        advice = fix(id_, "otherPort", port=refused[1], others=_and(list(map(str, others))))
    elif refused:
        variant = "notYet" if never else "noMore"
        advice = fix(id_, variant, seconds=wanted, took=took)
    elif status := _STATUS.search(output):
        variant = "status"
        advice = fix(id_, "status" if startup or status[1] < "500" else "error", status=status[1])
    elif late:
        variant = "late"
        advice = fix(id_, "lateNever" if never and not startup else "late", seconds=wanted, took=took)
    elif never:
        advice = fix(id_, "never", seconds=wanted, took=took)
    text = said(
        id_,
        container=c.name,
        did=did,
        times=_times(times),
        after=after_start(c.had_seconds) if c.had_seconds is not None else "",
        state=said(id_, f"{variant}State", others=_and(list(map(str, others)))) if variant else "",
        output=f" ({output.splitlines()[-1].strip()[:200]})" if output else "",
        end=_end(c),
    )
    return Finding(id_, "problem", text, c.name, advice)


def _crashed(runs: Sequence[ContainerEnding], last: Sequence[ContainerEnding]) -> Iterator[Finding]:
    those = [c for c in [*runs, *last] if c.exit.failed_by_itself]
    if not those:
        return
    c = those[-1]
    succeeded = c.kind == "init" and not (last and last[-1].exit.failed_by_itself)
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
    found = ((variant, re.search(words, lines[-1], re.I)) for words, variant in _LAST_WORDS) if lines else ()
    known = next(((variant, match) for variant, match in found if match), None)
    advice = fix("crashed", known[0], **known[1].groupdict()) if known else fix(id_, _code(c))
    yield Finding(id_, "info" if succeeded else "problem", text, c.name, "" if succeeded else advice)


_LAST_WORDS = (
    ("read-only file system", "readOnly"),
    ("permission denied", "denied"),
    ("address already in use", "inUse"),
    ("connection refused|ECONNREFUSED", "refused"),
    (
        "name or service not known|name resolution|no such host|could not resolve host|ENOTFOUND|EAI_AGAIN",
        "unknownName",
    ),
    ("bad address '|could not translate host name|unknown ?host ?exception|getaddrinfo failed", "unknownName"),
    (
        r"(?:invalid|pars|input string|number|integer|received).*?(?P<value>(?:tcp|udp|sctp)://[\d.]+:\d+)",
        "serviceLink",
    ),
)
"""What strerror(3) and gai_strerror(3) say, which programs in most languages print as it is, and what the kubelet's
variables of Services look like (pkg/kubelet/envvars) → the variant of the advice."""


def _code(c: ContainerEnding) -> str:
    """The variant of the advice for an exit code that says something by itself."""
    if (c.exit.code or 0) - 128 in (4, 6, 7, 8, 11):  # SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV: of it, or of a child
        return "signal"
    return {126: "notExecutable", 127: "notFound"}.get(c.exit.code or 0, "") if c.kind != "init" else ""


def _completed(runs: Sequence[ContainerEnding], last: Sequence[ContainerEnding]) -> Iterator[Finding]:
    """It succeeds, and is started again: a program that ends has no place under restartPolicy Always."""
    those = [c for c in runs if c.exit.ended_by == "itself" and c.exit.code == 0 and c.kind != "init"]
    if those:
        text = said("endsAndIsRestarted", container=those[-1].name, times=_times(len(those)))
        yield Finding("endsAndIsRestarted", "warning", text, those[-1].name, fix("endsAndIsRestarted"))


def _by_rule(runs: Sequence[ContainerEnding], last: Sequence[ContainerEnding]) -> Iterator[Finding]:
    """It asked for a restart, as its restartPolicyRules have it."""
    those = [c for c in [*runs, *last] if c.exit.ended_by == "restartRule"]
    if those:
        c = those[-1]
        variant = "waits" if c in last else ""
        times, after = _times(len(those)), _after(c)
        text = said("restartedByRule", variant, container=c.name, code=c.exit.code, times=times, after=after)
        yield Finding("restartedByRule", "info", text, c.name)


def _post_start(runs: Sequence[ContainerEnding], last: Sequence[ContainerEnding]) -> Iterator[Finding]:
    those = [c for c in [*runs, *last] if c.exit.ended_by == "postStartHook"]
    if those:
        c = those[-1]
        times, did = _times(len(those)), _did(those, last)
        text = said("restartedPostStart", container=c.name, did=did, times=times, after=_after(c), end=_end(c))
        yield Finding("restartedPostStart", "problem", text, c.name, fix("restartedPostStart"))


_RULES: tuple[Callable[[Sequence[ContainerEnding], Sequence[ContainerEnding]], Iterator[Finding]], ...] = (
    _by_probe,
    _crashed,
    _post_start,
    _by_rule,
    _completed,
)


# -- words -----------------------------------------------------------------------------------------------------------


def _output(c: ContainerEnding, lines: Sequence[str]) -> str:
    """Nobody listened to a run that is known from the Pod's status alone."""
    if lines:
        return said("crashed", "output", line=lines[-1].strip()[:300])
    return "" if c.exit.from_status else said("crashed", "silent")


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
