"""What a failed test's report says of a namespace: Pods, Warning Events, last lines."""

from lastcall.experiment.ready import Objects, last_lines
from lastcall.experiment.reasons import in_short, is_ready, without_preemption_note
from lastcall.kube.api import EVENTS, PODS, Object, StatusError, name_of
from lastcall.kube.client import ConnectionLost
from lastcall.records.quoting import log_line

_EVENTS = 30
_PODS = 20


async def dump(objects: Objects, namespace: str) -> str:
    """Return some dozen lines, each quoted for the log of a CI job; what cannot be asked for is named."""
    try:
        pods = (await objects.client.list(PODS, namespace)).items
        events = (await objects.client.list(EVENTS, namespace)).items
    except (ConnectionLost, StatusError) as error:
        return log_line(f"namespace {namespace}: the API server does not answer ({error})")
    lines = [f"namespace {namespace}: {len(pods)} Pods"]
    for pod in pods[:_PODS]:
        lines.append(_state(pod))
        lines += await last_lines(objects, pod)
    if len(pods) > _PODS:
        lines.append(f"and {len(pods) - _PODS} more Pods")
    events.sort(key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""))
    if events:
        lines.append(f"Events, the latest {_EVENTS}:" if len(events) > _EVENTS else "Events:")
    lines += [_event(event) for event in events[-_EVENTS:]]
    return "\n".join(map(log_line, lines))


def _state(pod: Object) -> str:
    phase = (pod.get("status") or {}).get("phase") or "Pending"
    restarts = sum(each.get("restartCount") or 0 for each in (pod.get("status") or {}).get("containerStatuses") or ())
    again = f", restarted {restarts} times" if restarts else ""
    return f"{name_of(pod)} is Ready{again}" if is_ready(pod) else f"{in_short(pod)}{again}" if phase else ""


def _event(event: Object) -> str:
    about = event.get("involvedObject") or {}
    count = event.get("count") or 1
    times = f" ({count} times)" if count > 1 else ""
    what = f"{about.get('kind', '')} {about.get('name', '')}".strip()
    return f"  {event.get('type')} {event.get('reason')} {what}: {without_preemption_note(event.get('message'))}{times}"
