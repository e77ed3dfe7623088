"""Write Kubernetes Events about Pods that were killed: one for each container, with the fix. Pure.

The name is made of the Pod's uid and the container, so that a second writer (another process, the next
leader) is answered that it is there: writing needs the right to create, and no other.
"""

# check: pure

from hashlib import sha256

from lastcall.endings import CATALOGUE, ContainerEnding, Ending
from lastcall.kube.api import Object
from lastcall.trace.exporting.samples import cause_of_137
from lastcall.trace.exporting.workload import clean

COMPONENT = "lastcall"
MOST_MESSAGE = 1000
"""Characters; an Event's note may have 1 kB (`pkg/apis/core/validation/events.go:NoteLengthLimit`)."""
MOST_NAME = 253

REASONS = {
    "grace": "KilledAfterGracePeriod",
    "oom": "KilledOutOfMemory",
    "liveness": "KilledByLivenessProbe",
    "startup": "KilledByStartupProbe",
    "other": "KilledBySIGKILL",
}
_RANK = {"problem": 0, "warning": 1, "info": 2}


def warnings_of(ending: Ending, stamp: str) -> list[Object]:
    """Return the Events to create, none for a Pod of which nothing was killed. `stamp` is now, in RFC 3339."""
    return [_event(ending, run, REASONS[cause], stamp) for run in ending.containers
            if run.exit.sigkilled and (cause := cause_of_137(run)) in REASONS]  # fmt: skip


def _event(ending: Ending, run: ContainerEnding, reason: str, stamp: str) -> Object:
    pod = ending.pod
    mark = sha256("\0".join((pod.uid, run.name, reason)).encode("utf-8", "replace")).hexdigest()[:16]
    name = f"{pod.name[: MOST_NAME - 26].rstrip('.-')}.lastcall-{mark}"
    field = "initContainers" if run.kind in ("init", "sidecar") else "containers"
    field = "ephemeralContainers" if run.kind == "ephemeral" else field
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": pod.namespace},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": pod.namespace,
            "name": pod.name,
            "uid": pod.uid,
            "fieldPath": f"spec.{field}{{{run.name}}}",
        },
        "reason": reason,
        "message": message_of(ending, run),
        "type": "Warning",
        "source": {"component": COMPONENT},
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "count": 1,
        "reportingComponent": COMPONENT,
        "reportingInstance": "",
    }


_OF_RUNS_BEFORE = (
    "livenessProbeKilled", "startupProbeKilled", "crashed", "commandNotStarted", "mountHidesFile", "restartedPostStart",
    "restartedByRule",
)  # fmt: skip
"""Findings about how a container was restarted: they explain another kill than that of its Pod's end."""


def message_of(ending: Ending, run: ContainerEnding) -> str:
    """Return the worst finding about the container that has a fix, else the worst one, else the bare fact.

    Where its own advice is missing, because the API does not tell enough, the fix is the catalogue's general one.
    """
    by_probe = cause_of_137(run) in ("liveness", "startup")
    about = [each for each in ending.findings if each.container == run.name]
    about = [each for each in about if by_probe or each.id not in _OF_RUNS_BEFORE]
    about.sort(key=lambda each: (_RANK[each.severity], not each.advice))
    if not about:
        return clean(f"{run.name} was ended by SIGKILL ({run.exit.killed_by or 'nobody saw who sent it'}).")
    with_fix = next((each for each in about if each.advice and each.severity != "info"), None)
    worst = about[0]
    text = worst.text if with_fix is None or with_fix is worst else f"{worst.text} {with_fix.text}"
    remedy = CATALOGUE[worst.id].remedy if worst.id in CATALOGUE else ""
    advice = with_fix.advice if with_fix is not None else remedy
    fix = f" fix: {advice}" if advice else ""
    # The fix is what the reader came for: it is the text before it that is cut off.
    text, fix = clean(text), clean(fix)[:MOST_MESSAGE]
    return f"{text[: MOST_MESSAGE - len(fix)]}{fix}"
