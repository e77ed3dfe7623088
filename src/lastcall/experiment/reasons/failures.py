"""What became of the containers of a Pod that is not well: how they ended, why, and what they printed last. Pure."""

# check: pure

import re
from collections.abc import Iterable, Sequence

from lastcall.endings import (
    PRINTED_BY_INIT,
    RESTARTS,
    Ending,
    Finding,
    PodFacts,
    build_endings,
    fix_of,
    fix_of_host,
    fixes_for,
    last_words,
    pod_facts,
)
from lastcall.experiment.reasons.named import Explained, causes_in
from lastcall.experiment.reasons.siblings import fix_of_peers
from lastcall.experiment.reasons.why_not_ready import programs_of
from lastcall.kube.api import Object, name_of, namespace_of, uid_of
from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.records.text import printable, without_repeats
from lastcall.world.dataclass import dataclass

_LESS = ("probeFailed", "crashLoop", "restartedPostStart")
"""Causes of which the record of an end says more."""
_OF_ENDS = {*RESTARTS, "outOfMemory", "childOutOfMemory", "killedByOther", "probeFailed", "commandNotStarted"} - {
    "restartedByRule"
}
_GENERAL = tuple(f"  fix: {fix_of(id_)}" for id_ in _LESS)
"""What is said of them where nothing better is known."""


def explain(
    why: Sequence[str],
    pod: Object,
    records: Iterable[Record],
    version: str,
    *,
    now_ns: int = 0,
    events: Sequence[Object] = (),
) -> Explained:
    """Return what `why` says of a Pod with these Events, and what its containers' ends add to that; `now_ns` is of the
    monotonic clock."""
    ending = _ending_of(pod, records, version, now_ns)
    ends = _ends(pod, ending, now_ns)
    less_exact = tuple(f"[{id_}]" for id_ in _LESS) if any(line.startswith("  fix: ") for line in ends) else ()
    printed = [line for _, lines in _of_unready(pod, ending) for line in lines]
    why = [fix_of_host(line, printed) for line in why]
    kept = [line for line in why if not ends or (line not in _GENERAL and not line.endswith(less_exact))]
    lines = (*kept, *ends, *_stand_ins(ending))
    named = causes_in(f"{namespace_of(pod)}/{name_of(pod)}", lines, ending.findings, programs_of(pod, events))
    return Explained(lines, named)


def describe_ends(pod: Object, records: Iterable[Record], version: str, *, now_ns: int = 0) -> list[str]:
    """Return lines about every end of a container of the Pod before the Pod's own.

    They include what containers that are not well printed last. A Pod whose containers are well has no lines.
    """
    ending = _ending_of(pod, records, version, now_ns)
    lines = _ends(pod, ending, now_ns)
    return [*lines, *_stand_ins(ending)] if lines else []


def _ending_of(pod: Object, records: Iterable[Record], version: str, now_ns: int) -> Ending:
    own = [record for record in records if record.pod_uid == uid_of(pod)]
    (ending,) = build_endings(own, [pod_facts(pod)], kubernetes_version=version, now_ns=now_ns)
    return ending


def _stand_ins(ending: Ending) -> list[str]:
    """Lines about images that others stood in for: what failed may be the fault of a stand-in."""
    texts = dict.fromkeys(each.text for each in ending.findings if each.id == "imageSubstituted")
    return [f"  note: {printable(text, 1000)}" for text in texts]


def _ends(pod: Object, ending: Ending, now_ns: int) -> list[str]:
    unready = _of_unready(pod, ending)
    peers = fix_of_peers(pod, (line for _, lines in unready for line in lines))
    fixes = [f"  fix: {printable(peers, 1000)}"] if peers else []
    return [*_lines(ending), *_waited_for(pod, ending, now_ns), *fixes, *_words(unready)]


_SECONDS = re.compile(r"\d+(?:\.\d+)? m?s\b")


@dataclass(frozen=True, slots=True)
class NotWell:
    """A Pod (`namespace/name`) of which a container crashed or was restarted before the Pod's own end; `lines` tell it
    to people, with what the container printed last."""

    pod: str
    findings: tuple[Finding, ...]
    lines: tuple[str, ...]

    @property
    def failed(self) -> bool:
        """Return whether it is a failure. An init container that was retried until it succeeded is none."""
        return any(each.severity == "problem" for each in self.findings)


def ends_of_all(records: Sequence[Record], version: str) -> list[NotWell]:
    """Return every Pod that was not well."""
    suspects: dict[str, None] = {}
    starts: set[tuple[str, str]] = set()
    for record in records:
        if record.kind == kinds.PROCESS_STARTED:
            if (record.pod_uid, record.container) in starts:
                suspects[record.pod_uid] = None
            starts.add((record.pod_uid, record.container))
        elif record.kind == kinds.PROCESS_EXITED and record.facts_as(kinds.PROCESS_EXITED).get("exitCode"):
            suspects[record.pod_uid] = None
    of_them = [record for record in records if record.pod_uid in suspects]
    found = []
    for ending in build_endings(of_them, [PodFacts(uid, "", "") for uid in suspects], kubernetes_version=version):
        if lines := _lines(ending):
            findings = tuple(each for each in ending.findings if each.id in _OF_ENDS)
            lines += _stand_ins(ending)
            found.append(NotWell(f"{ending.pod.namespace}/{ending.pod.name}", findings, tuple(lines)))
    return found


def group_alike(not_well: Iterable[NotWell]) -> list[tuple[str, NotWell]]:
    """Return one of those whose lines are alike, with the names of all Pods of which they say that: replicas crash
    alike."""
    found: dict[str, list[NotWell]] = {}
    for each in not_well:
        found.setdefault(_SECONDS.sub("#", "\n".join(each.lines)), []).append(each)
    names = {key: [each.pod for each in those] for key, those in found.items()}
    return [(_names(names[key]), those[0]) for key, those in found.items()]


def _names(pods: Sequence[str]) -> str:
    others = len(pods) - 1
    return pods[0] if not others else f"{pods[0]} and {others} other Pod{'s' if others > 1 else ''}"


def _lines(ending: Ending) -> list[str]:
    lines: list[str] = []
    for finding in (each for each in ending.findings if each.id in _OF_ENDS):
        lines.append(f"  {printable(finding.text, 1000)}")
        if finding.advice:
            lines.append(f"  fix: {printable(finding.advice, 1000)} [{finding.id}]")
    return [*lines, *_words(last_words(ending))]


def _words(of: Iterable[tuple[str, Sequence[str]]]) -> list[str]:
    lines: list[str] = []
    for heading, words in of:
        lines += [f"  {printable(heading)}:", *without_repeats(f"    | {printable(word, 300)}" for word in words)]
    return lines


def _waited_for(pod: Object, ending: Ending, now_ns: int) -> list[str]:
    """About init containers that still run: how long, what they printed last, and what that says of their wait."""
    running = {
        each.get("name")
        for each in (pod.get("status") or {}).get("initContainerStatuses") or ()
        if "running" in (each.get("state") or {})
    }
    lines: list[str] = []
    for run in ending.containers:
        if run.kind != "init" or run.name not in running or run.started_at is None:
            continue
        seconds = max(0.0, (now_ns - ending.zero_ns) / 1e9 - run.started_at)
        if seconds <= _longest_failure(ending, run.name):
            continue
        what = f"an init container that has been running for {seconds:.0f} s"
        lines += [
            f"  fix: {printable(each, 1000)}" for each in fixes_for(PRINTED_BY_INIT, "\n".join(run.seen.last_lines))
        ]
        if run.seen.last_lines:
            lines += _words([(f"what {run.name} printed last ({what})", run.seen.last_lines)])
        else:
            lines.append(f"  {run.name}, {what}, printed nothing")
    return lines


_AGAIN_SECONDS = 1.0
"""A run may take that much longer than the one before it, and fail all the same."""


def _longest_failure(ending: Ending, container: str) -> float:
    """Return for how long a new run of a container says less than the runs that failed before it; 0 without any."""
    failed = [c for c in ending.earlier if c.name == container and c.exit.failed_by_itself]
    return max((c.run_seconds or 0.0 for c in failed), default=-_AGAIN_SECONDS) + _AGAIN_SECONDS


def _of_unready(pod: Object, ending: Ending) -> list[tuple[str, tuple[str, ...]]]:
    """Of containers that run and are not ready, and that did not end before."""
    ended = {run.name for run in ending.earlier}
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    unready = {
        each.get("name") for each in statuses if not each.get("ready") and "running" in (each.get("state") or {})
    }
    return [
        (f"what {run.name} printed last (it runs and is not ready)", run.seen.last_lines)
        for run in ending.containers
        if run.name in unready - ended and run.seen.last_lines
    ]
