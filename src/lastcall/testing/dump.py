"""What a failed test's report says of a namespace: Pods and their last lines, custom objects, Events."""

from contextlib import suppress

from lastcall.experiment.ready import Objects, event_line, last_lines, state_lines
from lastcall.experiment.reasons import in_short, is_ready, node_of_ending
from lastcall.kube.api import EVENTS, PODS, Object, StatusError, name_of
from lastcall.kube.client import ConnectionLost
from lastcall.records.quoting import log_line

_EVENTS = 30
_PODS = 20
_LINES = 60


async def dump(objects: Objects, namespace: str) -> str:
    """Return some dozen lines, each quoted for the log of a CI job; what cannot be asked for is named."""
    try:
        pods = (await objects.client.list(PODS, namespace)).items
        events = (await objects.client.list(EVENTS, namespace)).items
    except (ConnectionLost, StatusError) as error:
        return log_line(f"namespace {namespace}: the API server does not answer ({error})")
    lines = [f"namespace {namespace}: {len(pods)} Pod{'' if len(pods) == 1 else 's'}"]
    for pod in pods[:_PODS]:
        lines.append(await _state(objects, pod))
        lines += await last_lines(objects, pod)
    if len(pods) > _PODS:
        lines.append(f"and {len(pods) - _PODS} more Pods")
    lines += await _custom(objects, namespace)
    events.sort(key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""))
    if events:
        lines.append(f"Events, the latest {_EVENTS}:" if len(events) > _EVENTS else "Events:")
    lines += [event_line(event) for event in events[-_EVENTS:]]
    return "\n".join(map(log_line, lines))


async def _custom(objects: Objects, namespace: str) -> list[str]:
    """What objects of operators say of themselves; of what can be asked for."""
    lines: list[str] = []
    with suppress(ConnectionLost, StatusError):
        for resource in await objects.declared():
            for each in (await objects.client.list(resource, namespace)).items:
                lines += [f"{resource.kind} {name_of(each)}:", *state_lines(each, resource.kind)]
    return lines if len(lines) <= _LINES else [*lines[:_LINES], f"and {len(lines) - _LINES} more lines"]


async def _state(objects: Objects, pod: Object) -> str:
    phase = (pod.get("status") or {}).get("phase") or "Pending"
    restarts = sum(each.get("restartCount") or 0 for each in (pod.get("status") or {}).get("containerStatuses") or ())
    again = f", restarted {restarts} times" if restarts else ""
    if is_ready(pod):
        return f"{name_of(pod)} is Ready{again}"
    return f"{in_short(pod, node=await node_of_ending(objects.client, pod))}{again}" if phase else ""
