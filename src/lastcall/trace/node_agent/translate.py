"""What an agent says, as records on our clock with the names of containers. Pure.

An agent is on a foreign node: its lines are hostile input. It knows containers by their ids, the Pod's status has their
names; its clock is the node's, and answers to pings bound the offset to ours.
"""

# check: pure

from collections import deque
from collections.abc import Mapping
from typing import Any

import orjson

from lastcall.contexts import NotOneOffset, Offset, Sample, offset_of
from lastcall.kube.api import Object
from lastcall.records import kinds
from lastcall.records.record import Record

MOST_LINE = 1 << 18
"""Bytes of a line; a record has some hundreds."""
MOST_SAMPLES = 16
_SECOND = 1_000_000_000

_TEXTS = (list, str)
_PROCESS: dict[str, tuple[type, ...]] = {
    "pid": (int,),
    "containerPid": (int,),
    "name": (str,),
    "state": (str,),
    "disposition": (str,),
    "child": (bool,),
}
SEEN: dict[str, dict[str, tuple[type, ...]]] = {
    kinds.PROCESS_SIGNAL_STATE: {
        "pid": (int,),
        "containerPid": (int,),
        "signal": (str,),
        "disposition": (str,),
        "caught": _TEXTS,
        "ignored": _TEXTS,
        "blocked": _TEXTS,
        "name?": (str,),
        "exe?": (str,),
        "taken?": (str,),
        "uid?": (int,),
    },
    kinds.PROCESS_EXITED: {
        "containerId": (str,),
        "pid": (int,),
        "exitCode": (int,),
        "signal?": (str,),
        "oomKilled?": (bool,),
        "oomKills?": (int,),
        "memoryLimit?": (int,),
        "limitReached?": (bool,),
    },
    kinds.PROCESSES_LEFT: {
        "when": (str,),
        "signal": (str,),
        "processes": (list, dict),
        "more": (int,),
        "zombies": (int,),
        "secondsBefore": (float, int),
    },
    kinds.PROCESSES_AT_STOP: {"signal": (str,), "processes": (list, dict), "more": (int,)},
    kinds.CHILD_ENDED: {
        "pid": (int,),
        "containerPid": (int,),
        "name": (str,),
        "disposition": (str,),
        "exitCode?": (int,),
        "signal?": (str,),
        "secondsBefore": (float, int),
    },
    kinds.EXEC_STARTED: {"execId": (str,), "pid": (int,), "argv": _TEXTS},
    kinds.EXEC_EXITED: {
        "execId": (str,),
        "pid": (int,),
        "exitCode": (int,),
        "signal?": (str,),
        "killedBecause": (str,),
    },
    kinds.ENDPOINT_RULES_WRITTEN: {
        "node": (str,),
        "service": (str,),
        "address": (str,),
        "received": (bool,),
        "receives": (bool,),
        "ready": (bool,),
    },
}
"""The kinds of records that an agent writes → their facts and types; others are not taken from it. (list, X) is a list
of X; what ends with "?" may be null. Another fact that is null makes the line no record: the kernel does not tell how a
process ended before Linux 6.15, and without CAP_SYS_PTRACE an agent does not know whether one waits for a signal."""

_MOST_ITEMS = 256


class BadLine(ValueError):
    """Not what an agent says."""


class NodeClock:
    """The offset between an agent's monotonic clock and ours, out of its answers to pings."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=MOST_SAMPLES)
        self.offset: Offset | None = None

    def answered(self, sent_ns: int, at_ns: int, received_ns: int) -> None:
        """Take a sample: `at_ns` of its clock was between `sent_ns` and `received_ns` of ours.

        A clock that was set, as that of a node that rested, is measured anew.
        """
        sample = Sample(sent_ns / _SECOND, at_ns / _SECOND, received_ns / _SECOND)
        self._samples.append(sample)
        try:
            self.offset = offset_of(self._samples)
        except NotOneOffset:
            self._samples.clear()
            self._samples.append(sample)
            self.offset = offset_of(self._samples)

    def ours_ns(self, at_ns: int) -> int | None:
        """Convert a time of its clock to ours; None before the first answer."""
        return None if self.offset is None else int(self.offset.to_ours(at_ns / _SECOND) * _SECOND)


def parse_line(line: bytes) -> dict[str, Any]:
    """Parse a line. Raises BadLine."""
    if len(line) > MOST_LINE:
        raise BadLine(f"a line of {len(line)} bytes")
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise BadLine(f"not JSON: {line[:100]!r}") from error
    if not isinstance(value, dict):
        raise BadLine(f"not an object: {line[:100]!r}")
    return value


def names_of_containers(pod: Object) -> dict[str, str]:
    """Map each container id, without its runtime's name, to the name: every run that the Pod's status still names."""
    found: dict[str, str] = {}
    status = pod.get("status") or {}
    for field in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"):
        for each in status.get(field) or ():
            ended = [(each.get(state) or {}).get("terminated") or {} for state in ("state", "lastState")]
            for id in (each.get("containerID"), *(one.get("containerID") for one in ended)):
                if id:
                    found[str(id).rpartition("//")[2]] = str(each.get("name") or "")
    return found


def addresses_of(pod: Object) -> list[str]:
    """Return the addresses that are the Pod's own, one of each family; none of one with the node's network."""
    if (pod.get("spec") or {}).get("hostNetwork"):
        return []
    return [str(each["ip"]) for each in (pod.get("status") or {}).get("podIPs") or () if each.get("ip")][:2]


def record_of(
    value: Mapping[str, Any], clock: NodeClock, names: Mapping[str, Mapping[str, str]], now: tuple[int, int]
) -> Record | None:
    """Return a record that an agent wrote, on our clock. `names`: Pod's uid → `names_of_containers`; `now` is our
    monotonic and our wall clock, in ns. None for one that says nothing: of the sandbox's own container, or with a
    null in a fact that matters. Raises BadLine."""
    try:
        kind, uid, id, at_ns, facts = (value[key] for key in ("kind", "pod_uid", "container", "at_ns", "facts"))
    except KeyError as error:
        raise BadLine(f"a record without {error}") from error
    if not isinstance(kind, str) or kind not in SEEN:
        raise BadLine(f"not a record of an agent: {kind!r}")
    if not isinstance(facts, dict) or not isinstance(at_ns, int) or not isinstance(id, str):
        raise BadLine(f"{kind}: facts, at_ns or container are of the wrong type")
    checked = _checked(kind, facts, SEEN[kind])
    of_pod = kind == kinds.ENDPOINT_RULES_WRITTEN
    name = "" if of_pod else names.get(str(uid), {}).get(id)
    at = clock.ours_ns(at_ns)
    if not (name or (of_pod and str(uid) in names)) or at is None or checked is None:
        return None
    at = min(at, now[0])  # what we hear of has been
    return Record(
        id=str(value.get("id") or ""),
        at_ns=at,
        wall_ns=now[1] - (now[0] - at),
        actor="node-agent",
        kind=kind,
        pod_uid=str(uid),
        container=name or "",
        facts=checked,
        evidence="observed",
    )


def _checked(kind: str, facts: Mapping[str, Any], shape: Mapping[str, tuple[type, ...]]) -> dict[str, Any] | None:
    """Return the facts of a shape, no others; None if one that is required is null. Raises BadLine for a wrong type."""
    found: dict[str, Any] = {}
    for key, types in shape.items():
        name = key.rstrip("?")
        value = facts.get(name)
        if value is None:
            if name == key:
                return None
        elif types[0] is list:
            if not isinstance(value, list) or len(value) > _MOST_ITEMS:
                raise BadLine(f"{kind}: {name} is not a list of at most {_MOST_ITEMS}")
            if not all(isinstance(each, types[1]) for each in value):
                raise BadLine(f"{kind}: {name} has items of the wrong type")
            value = [_checked(kind, each, _PROCESS) for each in value] if types[1] is dict else value
            if None in value:
                return None
        elif not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise BadLine(f"{kind}: {name} is of the wrong type")
        found[name] = value
    return found
