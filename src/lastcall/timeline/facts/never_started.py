"""What kept a container from starting, from the records of its Pod. Pure; "" where nothing tells."""

from collections.abc import Sequence

from lastcall.timeline import kinds
from lastcall.timeline.story import ContainerEnding, Ending, Entry

_LONGEST = 300


def why_never_started(container: ContainerEnding, ending: Ending) -> str:
    """A clause that goes on from "it was never started:". What is nearest to the container comes first."""
    entries = [entry for entry in ending.entries if entry.record.pod_uid == ending.pod.uid]
    found = (
        _rejected(entries)
        or _failed(entries, container.name)
        or _waiting(entries, container.name)
        or _volume(entries)
        or _others(entries, container, ending)
        or _node(entries)
    )
    if not found and container.reason and container.reason != "ContainerStatusUnknown":
        found = container.reason
    if not found and any(entry.record.kind == kinds.DELETE_ACCEPTED for entry in entries):
        found = "the DELETE came before it could"
    return found if len(found) <= _LONGEST else f"{found[:_LONGEST]}…"


def _rejected(entries: Sequence[Entry]) -> str:
    rejected = _last(entries, kinds.POD_REJECTED)
    if rejected is None:
        return ""
    facts = rejected.told(kinds.POD_REJECTED)
    return f"the node rejected the Pod: {_words(facts.get('reason'), facts.get('message'))}"


def _failed(entries: Sequence[Entry], container: str) -> str:
    failed = _last([entry for entry in entries if entry.record.container == container], kinds.CONTAINER_START_FAILED)
    if failed is None:
        return ""
    facts = failed.told(kinds.CONTAINER_START_FAILED)
    return _words(facts.get("reason"), facts.get("message"))


def _waiting(entries: Sequence[Entry], container: str) -> str:
    """What its status waited for when it was written last."""
    for entry in reversed(entries):
        if entry.record.kind == kinds.POD_STATUS_WRITTEN:
            for each in entry.told(kinds.POD_STATUS_WRITTEN).get("waiting") or ():
                if each.get("container") == container:
                    return _words(each.get("reason"), each.get("message"))
    return ""


def _volume(entries: Sequence[Entry]) -> str:
    if _last(entries, kinds.VOLUMES_MOUNTED) is not None:
        return ""
    failed = _last(entries, kinds.VOLUME_FAILED)
    if failed is None:
        return ""
    facts = failed.told(kinds.VOLUME_FAILED)
    return f"volume {facts.get('volume')} could not be mounted: {facts.get('error')}"


def _others(entries: Sequence[Entry], container: ContainerEnding, ending: Ending) -> str:
    """An init container or a sidecar before it that failed, waits, or still ran."""
    for other in ending.pod.containers:
        if other.kind != "container" and other.name != container.name:
            waits = _failed(entries, other.name) or _waiting(entries, other.name)
            if waits:
                return f"{other.name} comes before it: {waits}"
    for each in ending.containers:
        if each.kind == "init" and each.started and each.exit_code != 0:
            return f"init container {each.name} had not succeeded"
    return ""


def _node(entries: Sequence[Entry]) -> str:
    if any(entry.record.kind in (kinds.POD_BOUND, kinds.POD_ADMITTED) for entry in entries):
        return ""
    for entry in reversed(entries):
        written = entry.told(kinds.POD_STATUS_WRITTEN) if entry.record.kind == kinds.POD_STATUS_WRITTEN else None
        if written and written.get("unschedulable"):
            return f"no node took the Pod: {written['unschedulable']}"
    created = _last(entries, kinds.POD_CREATED)
    return "the Pod was never bound to a node" if created else ""


def _last(entries: Sequence[Entry], kind: str) -> Entry | None:
    return next((entry for entry in reversed(entries) if entry.record.kind == kind), None)


def _words(reason: object, message: object) -> str:
    return ": ".join(str(part).strip() for part in (reason, message) if part)
