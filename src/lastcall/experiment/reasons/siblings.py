"""What a Pod waits for that another Pod of the same owner has, or is. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from lastcall.endings import fix_of
from lastcall.experiment.reasons.why_not_ready import is_ready
from lastcall.kube.api import Object, name_of, parse_rfc3339, uid_of

SURELY = 3.0
SPARE_SECONDS = 10.0
"""A start that has taken so many times as long as that of its twin, and this longer, is not a slow one."""
_ADMITTED = "kube-api-access-"
"""The volume that the API server gives each Pod under a name of its own."""


def fix_of_old_pod(late: Object, pods: Iterable[Object], now: datetime) -> str:
    """Return the fix for a new Pod that runs and does not become Ready beside an old one with the same containers.

    The old one became Ready within a fraction of the time: what differs is only that the other one is there. "" where
    that is not so.
    """
    if not _only_unready(late):
        return ""
    waited = (now - _created(late)).total_seconds()
    for old in pods:
        if uid_of(old) == uid_of(late) or not is_ready(old) or _created(old) >= _created(late):
            continue
        took = (_ready_since(old) - _created(old)).total_seconds()
        if "deletionTimestamp" in old["metadata"] or _made_of(old) != _made_of(late):
            continue
        if waited > took * SURELY + SPARE_SECONDS:
            facts = {"old": name_of(old), "new": name_of(late), "took": f"{took:.0f}", "waited": f"{waited:.0f}"}
            claims = _claims(late)
            return fix_of("oldPodInTheWay", "claim" if claims else "", claims=" and ".join(claims), **facts)
    return ""


def fix_of_peers(pod: Object, printed: Iterable[str]) -> str:
    """Return the fix for a Pod of a StatefulSet that is not Ready and speaks of one that is made only when it is.

    "" for any other. `printed` are its last lines.
    """
    owners = [each.get("kind") for each in pod["metadata"].get("ownerReferences") or ()]
    service = (pod.get("spec") or {}).get("subdomain")
    base, _, ordinal = name_of(pod).rpartition("-")
    if "StatefulSet" not in owners or not service or not ordinal.isdigit():
        return ""
    named = re.compile(rf"\b{re.escape(base)}-(\d+)\.{re.escape(service)}\b")
    later = {int(found) for line in printed for found in named.findall(line) if int(found) > int(ordinal)}
    if not later:
        return ""
    return fix_of("peersNotPublished", name=name_of(pod), peer=f"{base}-{min(later)}", service=service)


def fix_of_named_peers(pod: Object, owner: Object, pods: Iterable[Object], why: Iterable[str]) -> str:
    """Return the fix for a Pod that answers its probe with a failure, and whose containers are given names of members
    that its StatefulSet `owner` makes only when it is Ready (stateful_set_control.go:updateStatefulSet). "" for others.

    `pods` are those that exist, `why` says why it is not Ready.
    """
    spec = owner.get("spec") or {}
    if not _is_member(pod, owner) or not _only_unready(pod):
        return ""
    if spec.get("podManagementPolicy") == "Parallel" or not any(map(_answers_failure, why)):
        return ""
    base, _, ordinal = name_of(pod).rpartition("-")
    first = (spec.get("ordinals") or {}).get("start") or 0
    replicas = spec.get("replicas")
    made = {name_of(each) for each in pods}
    end = first + (1 if replicas is None else replicas)
    missing = {each for number in range(int(ordinal) + 1, end) if (each := f"{base}-{number}") not in made}
    for where, text in _given(pod):
        named = set(re.findall(rf"(?<![\w.-])({re.escape(base)}-\d+)(?![\w-])", text)) & missing
        if named:
            peer = min(named, key=lambda each: int(each.rpartition("-")[2]))
            facts = {"where": where, "peer": peer, "name": name_of(pod), "service": spec.get("serviceName") or "?"}
            return fix_of("peersNotPublished", "named", **facts)
    return ""


_FAILURE = re.compile(
    r"(?i)readiness probe failed: (?!.*(?:connection refused|statuscode: [1-4]|deadline|timed? ?out))"
)


def _answers_failure(line: str) -> bool:
    """Return whether a program that listens says that it is not ready: a 5xx, or a command that fails."""
    return _FAILURE.search(line) is not None


def _given(pod: Object) -> Iterator[tuple[str, str]]:
    """Yield what the containers of a Pod are given as text, with its place."""
    for each in pod["spec"]["containers"]:
        for variable in each.get("env") or ():
            yield f"{variable.get('name')} in env of {each['name']}", str(variable.get("value") or "")
        for field in ("command", "args"):
            yield f"{field} of {each['name']}", " ".join(map(str, each.get(field) or ()))


def _is_member(pod: Object, owner: Object) -> bool:
    """Return whether the owner is the Pod's StatefulSet."""
    references = pod["metadata"].get("ownerReferences") or ()
    return any((each.get("kind"), each.get("uid")) == ("StatefulSet", uid_of(owner)) for each in references)


def _only_unready(pod: Object) -> bool:
    """Whether its containers all run, for the first time, and some are not ready."""
    statuses: Sequence[Object] = (pod.get("status") or {}).get("containerStatuses") or ()
    return bool(statuses) and all(
        "running" in (each.get("state") or {}) and not each.get("restartCount") for each in statuses
    )


def _made_of(pod: Object) -> list[Any]:
    """Its containers and volumes, as its template has them."""
    spec = pod["spec"]
    kept = [
        each | {"volumeMounts": [m for m in each.get("volumeMounts") or () if not m["name"].startswith(_ADMITTED)]}
        for each in _containers(spec)
    ]
    return [kept, [each for each in spec.get("volumes") or () if not each["name"].startswith(_ADMITTED)]]


def _containers(spec: Object) -> Iterator[Object]:
    yield from spec.get("initContainers") or ()
    yield from spec["containers"]


def _claims(pod: Object) -> list[str]:
    found = ((each.get("persistentVolumeClaim") or {}).get("claimName") for each in pod["spec"].get("volumes") or ())
    return [f"PersistentVolumeClaim {name}" for name in found if name]


def _created(pod: Object) -> datetime:
    return parse_rfc3339(pod["metadata"]["creationTimestamp"])


def _ready_since(pod: Object) -> datetime:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    since = next(each.get("lastTransitionTime") for each in conditions if each.get("type") == "Ready")
    return parse_rfc3339(since)
