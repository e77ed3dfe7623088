"""What two states of a Pod, one after the other, say that happened in between. Pure.

What the API server has written was observed: the watch shows it. What a kubelet says about containers in a status was
concluded from it: their times are whole seconds of the node's clock.
"""

# check: pure

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from lastcall.kube.api import Object, container_facts, name_of, namespace_of, resource_version_of, status_problems
from lastcall.records import kinds, rules
from lastcall.trace.drafts import Draft, draft

if TYPE_CHECKING:
    from lastcall.records.definitions.apiserver import (
        DeleteAccepted,
        GraceShortened,
        HeldByFinalizers,
        ObjectRemoved,
        PodBound,
        PodCreated,
        PodStatusWritten,
    )
    from lastcall.records.definitions.client import PodGoneSeen
    from lastcall.records.definitions.kubelet_start import ContainerStarted


_STATUSES = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
TERMINAL = ("Succeeded", "Failed")
NO_START = "1970-01-01T00:00:00Z"
"""What a runtime reports that knows no start: 0 of its clock."""
NEVER_STARTED = ("StartError", "ContainerCannotRun")
"""Reasons with which containerd and older runtimes report a container that has never run."""


def phase_of(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase") or "")


def is_terminal(pod: Object) -> bool:
    """Return whether its containers have ended, and it runs none again."""
    return phase_of(pod) in TERMINAL


def deletion_of(pod: Object) -> tuple[str, int | None]:
    """Return (deletionTimestamp, deletionGracePeriodSeconds); ("", None) for a Pod that nobody has deleted."""
    meta = pod["metadata"]
    grace = meta.get("deletionGracePeriodSeconds")
    return str(meta.get("deletionTimestamp") or ""), grace if isinstance(grace, int) else None


def statuses_of(pod: Object) -> dict[str, Object]:
    """Map each container name to its status."""
    status = pod.get("status") or {}
    return {str(each.get("name")): each for field in _STATUSES for each in status.get(field) or ()}


def in_order_of_ends(pod: Object) -> list[tuple[str, Object]]:
    """Return (container name, status) in the order of their ends.

    Regular containers come first, then sidecars, which wait for them, from the last one on.
    """
    status = pod.get("status") or {}
    listed = [*(status.get(_STATUSES[1]) or ()), *reversed(status.get(_STATUSES[0]) or ())]
    return [(str(each.get("name")), each) for each in (*listed, *(status.get(_STATUSES[2]) or ()))]


def condition_of(pod: Object, type_: str) -> Object:
    """Return a condition; {} for one that is not there."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == type_), {})


def controller_of(pod: Object) -> Object:
    """Return the ownerReference of its controller; {} for a Pod without one."""
    references = pod["metadata"].get("ownerReferences") or ()
    return next((each for each in references if each.get("controller")), {})


def before_the_end(pod: Object) -> list[Draft]:
    """Return what a Pod's object shows of its life: creation, node, and every container run that it still names."""
    made: PodCreated = {
        "namespace": namespace_of(pod),
        "name": name_of(pod),
        "user": "",
        "containers": container_facts(pod),
        "resourceVersion": "",
    }
    if owner := controller_of(pod):
        made["owner"] = {"kind": str(owner.get("kind")), "name": str(owner.get("name")), "uid": str(owner.get("uid"))}
    if subdomain := (pod.get("spec") or {}).get("subdomain"):
        made["subdomain"] = str(subdomain)
    created = str(pod["metadata"].get("creationTimestamp") or "")
    found = [draft(kinds.POD_CREATED, made, "apiserver", evidence="inferred", stamp=created, clock="server")]
    if node := (pod.get("spec") or {}).get("nodeName"):
        bound: PodBound = {"node": str(node), "resourceVersion": ""}
        stamp = str(condition_of(pod, "PodScheduled").get("lastTransitionTime") or created)
        found.append(draft(kinds.POD_BOUND, bound, "apiserver", evidence="inferred", stamp=stamp, clock="server"))
    for name, status in in_order_of_ends(pod):
        restarts = int(status.get("restartCount") or 0)
        ended = (status.get("lastState") or {}).get("terminated") or {}
        if ended:
            found += [*_started(name, ended, restarts - 1), *_exited(name, ended)]
        state = status.get("state") or {}
        if run := state.get("running") or state.get("terminated"):
            found += [*_started(name, run, restarts), *_exited(name, state.get("terminated") or {})]
    return found


def never_ran(run: Mapping[str, object]) -> bool:
    """Return whether it is ContainerStatusUnknown, or a container that could not be started."""
    started = str(run.get("startedAt") or "")
    return started in ("", NO_START) or run.get("reason") in NEVER_STARTED


def _started(name: str, run: Mapping[str, object], attempt: int) -> Iterator[Draft]:
    stamp = str(run.get("startedAt") or "")
    if never_ran(run):
        return
    facts: ContainerStarted = {"containerId": str(run.get("containerID") or ""), "attempt": max(0, attempt)}
    yield draft(
        kinds.CONTAINER_STARTED, facts, "kubelet", container=name, evidence="inferred", stamp=stamp, clock="node"
    )


def _exited(name: str, ended: Mapping[str, object]) -> Iterator[Draft]:
    """The signal is left to `stops`, which knows what the node has done to the container."""
    stamp = str(ended.get("finishedAt") or "")
    code = ended.get("exitCode")
    if not stamp or not isinstance(code, int) or never_ran(ended):
        return
    facts = {
        "containerId": str(ended.get("containerID") or ""),
        "exitCode": code,
        "signal": None,
        "oomKilled": ended.get("reason") == "OOMKilled",
        "finishedAt": stamp,
    }
    yield Draft(kinds.PROCESS_EXITED, facts, "runtime", name, "", "inferred", stamp, "node")


def deleted(pod: Object) -> Draft:
    """Return the draft of a deletion, from the object's deletionTimestamp."""
    timestamp, grace = deletion_of(pod)
    facts: DeleteAccepted = {
        "user": "",
        "userAgent": "",
        "gracePeriodSeconds": grace or 0,
        "deletionTimestamp": timestamp,
        "resourceVersion": resource_version_of(pod),
    }
    return draft(kinds.DELETE_ACCEPTED, facts, "apiserver", rule=rules.BEFORE_DELETE)


def changes(old: Object, new: Object) -> list[Draft]:
    """Return what the watch shows between two states of one Pod, in the order in which it belongs."""
    found: list[Draft] = []
    (before, was), (timestamp, grace) = deletion_of(old), deletion_of(new)
    version = resource_version_of(new)
    if timestamp and not before:
        found.append(deleted(new))
    found += [*_container_changes(old, new), *_status_written(old, new)]
    if before and was is not None and grace is not None and grace < was:
        held = grace == 0 and bool(new["metadata"].get("finalizers"))
        if grace > 0 or (held and not all_ended(new)):
            shorter: GraceShortened = {"from": was, "to": grace, "user": "", "resourceVersion": version}
            found.append(draft(kinds.GRACE_SHORTENED, shorter, "apiserver", rule=rules.BEFORE_DELETE))
    if timestamp and grace == 0 and (was != 0 or not before) and (finalizers := new["metadata"].get("finalizers")):
        names = [str(each) for each in finalizers]
        held_by: HeldByFinalizers = {"finalizers": names, "user": "", "resourceVersion": version}
        found.append(draft(kinds.HELD_BY_FINALIZERS, held_by, "apiserver", rule=rules.MARK_AS_DELETING))
    return found


def all_ended(pod: Object) -> bool:
    """Return whether no container of it runs, by its status."""
    return not any((each.get("state") or {}).get("running") for each in statuses_of(pod).values())


def _container_changes(old: Object, new: Object) -> Iterator[Draft]:
    before = statuses_of(old)
    for name, status in in_order_of_ends(new):
        was = before.get(name) or {}
        state, last = status.get("state") or {}, status.get("lastState") or {}
        restarts = int(status.get("restartCount") or 0)
        had = [(was.get(field) or {}).get("terminated") or {} for field in ("state", "lastState")]
        for attempt, ended in ((restarts - 1, last.get("terminated")), (restarts, state.get("terminated"))):
            if ended and not any(_same_run(ended, each) for each in had):
                if not _same_run((was.get("state") or {}).get("running") or {}, ended):
                    yield from _started(name, ended, attempt)
                yield from _exited(name, ended)
        running = state.get("running") or {}
        if running and not _same_run(running, (was.get("state") or {}).get("running") or {}):
            yield from _started(name, {**running, "containerID": status.get("containerID")}, restarts)


def _same_run(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    """A run is known by its start: a running state has no id."""
    return bool(one) and bool(other) and one.get("startedAt") == other.get("startedAt")


def _status_written(old: Object, new: Object) -> Iterator[Draft]:
    if status_of(old) != status_of(new):
        yield status_written(new)


def status_written(pod: Object) -> Draft:
    """Return the draft of the status as the object has it."""
    facts = status_of(pod)
    facts["resourceVersion"] = resource_version_of(pod)
    return draft(kinds.POD_STATUS_WRITTEN, facts, "apiserver", rule=rules.UPDATE_POD_STATUS)


def status_of(pod: Object) -> "PodStatusWritten":
    """Return the facts of PodStatusWritten, without a version."""
    status = pod.get("status") or {}
    facts: PodStatusWritten = {
        "phase": phase_of(pod),
        "ready": condition_of(pod, "Ready").get("status") == "True",
        "reason": str(status.get("reason") or ""),
        "resourceVersion": "",
        **status_problems(status),
    }
    return facts


def removed(pod: Object, *, seen: bool = True) -> list[Draft]:
    """Return the end of its object. `seen`: by the event DELETED, else by a list in which it is missing."""
    facts: ObjectRemoved = {"user": "", "resourceVersion": resource_version_of(pod)}
    if not seen:
        return [draft(kinds.OBJECT_REMOVED, facts, "apiserver", rule=rules.DELETE, evidence="inferred")]
    seen_by_us: PodGoneSeen = {"resourceVersion": facts["resourceVersion"]}
    return [
        draft(kinds.OBJECT_REMOVED, facts, "apiserver", rule=rules.DELETE),
        draft(kinds.POD_GONE_SEEN, seen_by_us, "client"),
    ]
