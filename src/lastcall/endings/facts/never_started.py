"""Read from a Pod's records what kept a container from starting; "" if they do not say. Pure."""

# check: pure

import re
from collections.abc import Sequence

from lastcall.endings.story import ContainerEnding, Ending, Entry
from lastcall.records import kinds
from lastcall.records.said import Said, fact_of, tell

_LONGEST = 300
_LAST = re.compile(r"\$\{?(?P<name>\w+)\}?\Z")


def why_never_started(container: ContainerEnding, ending: Ending) -> str:
    """Return a clause to follow "it was never started:", or "it has not been started yet:" of a Pod that lives.

    What is nearest to the container comes first.
    """
    entries = [entry for entry in ending.entries if entry.record.pod_uid == ending.pod.uid]
    found = (
        _rejected(entries)
        or _failed(entries, container.name)
        or _waiting(entries, container.name)
        or _volume(entries)
        or _others(entries, container, ending)
        or _node(entries, ending)
    )
    if not found and container.exit.reason and container.exit.reason != "ContainerStatusUnknown":
        found = container.exit.reason
    if not found and any(entry.record.kind == kinds.DELETE_ACCEPTED for entry in entries):
        found = tell("the DELETE came before it could")
    return found if len(found) <= _LONGEST else _cut(found, _LONGEST)


def _cut(text: str, limit: int) -> str:
    """Return the beginning of the text. A message at its end is what is cut."""
    if isinstance(text, Said) and (last := _LAST.search(text.template)):
        message = fact_of(text, last["name"])
        if (rest := len(message) - (len(text) - limit)) > 0:
            return Said(text.template, {**text.facts, last["name"]: _cut(message, rest)})
    return f"{text[:limit]}…"


def _rejected(entries: Sequence[Entry]) -> str:
    rejected = _last(entries, kinds.POD_REJECTED)
    if rejected is None:
        return ""
    facts = rejected.facts_as(kinds.POD_REJECTED)
    return tell("the node rejected the Pod: $why", why=_words(facts.get("reason"), facts.get("message")))


def _failed(entries: Sequence[Entry], container: str) -> str:
    failed = _last([entry for entry in entries if entry.record.container == container], kinds.CONTAINER_START_FAILED)
    if failed is None:
        return ""
    facts = failed.facts_as(kinds.CONTAINER_START_FAILED)
    return _words(facts.get("reason"), facts.get("message"))


def _waiting(entries: Sequence[Entry], container: str) -> str:
    """What its status waited for when it was written last."""
    for entry in reversed(entries):
        if entry.record.kind == kinds.POD_STATUS_WRITTEN:
            for each in entry.facts_as(kinds.POD_STATUS_WRITTEN).get("waiting") or ():
                if each.get("container") == container:
                    return _words(each.get("reason"), each.get("message"))
    return ""


def _volume(entries: Sequence[Entry]) -> str:
    if _last(entries, kinds.VOLUMES_MOUNTED) is not None:
        return ""
    failed = _last(entries, kinds.VOLUME_FAILED)
    if failed is None:
        return ""
    facts = failed.facts_as(kinds.VOLUME_FAILED)
    return tell("volume $volume could not be mounted: $error", volume=facts.get("volume"), error=facts.get("error"))


def _others(entries: Sequence[Entry], container: ContainerEnding, ending: Ending) -> str:
    """An init container or a sidecar before it that failed, waits, or still ran."""
    for other in ending.pod.containers:
        if other.kind != "container" and other.name != container.name:
            waits = _failed(entries, other.name) or _waiting(entries, other.name)
            if waits:
                return tell("$container comes before it: $why", container=other.name, why=waits)
    for each in ending.containers:
        if each.kind == "init" and each.started and each.exit.code != 0:
            if not ending.zero_kind:
                return tell("init container $container has not succeeded yet", container=each.name)
            return tell("init container $container had not succeeded", container=each.name)
    return ""


def _node(entries: Sequence[Entry], ending: Ending) -> str:
    if any(entry.record.kind in (kinds.POD_BOUND, kinds.POD_ADMITTED) for entry in entries):
        return ""
    for entry in reversed(entries):
        written = entry.facts_as(kinds.POD_STATUS_WRITTEN) if entry.record.kind == kinds.POD_STATUS_WRITTEN else None
        if written and written.get("unschedulable"):
            return tell("no node took the Pod: $message", message=written["unschedulable"])
    created = _last(entries, kinds.POD_CREATED)
    if created is None:
        return ""
    if not ending.zero_kind:
        return tell("the Pod has not been bound to a node yet")
    return tell("the Pod was never bound to a node")


def _last(entries: Sequence[Entry], kind: str) -> Entry | None:
    return next((entry for entry in reversed(entries) if entry.record.kind == kind), None)


def _words(reason: object, message: object) -> str:
    parts = [str(part).strip() for part in (reason, message) if part]
    return tell("$reason: $message", reason=parts[0], message=parts[1]) if len(parts) > 1 else "".join(parts)
