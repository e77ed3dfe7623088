"""Why a Pod is not Ready, in words, from its conditions, container states and Events. Pure."""

from collections.abc import Iterator, Sequence

from lastcall.api.meta import Object, name_of, namespace_of
from lastcall.timeline.catalogue.lookup import fix

PATIENCE_SECONDS = 15.0
"""After so long, and every time again, a line says what is being waited for."""

HOPELESS = (
    "ErrImageNeverPull",
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "StartError",
)
"""Reasons that waiting does not change: nothing else in this cluster will bring the image, the key or the command."""

CAUSES = {
    "ErrImageNeverPull": "imageNeverPulled",
    "ErrImagePull": "imageNotPulled",
    "ImagePullBackOff": "imageNotPulled",
    "InvalidImageName": "imageNameInvalid",
    "CreateContainerConfigError": "configMissing",
    "RunContainerError": "commandNotStarted",
    "StartError": "commandNotStarted",
    "CrashLoopBackOff": "crashLoop",
    "FailedScheduling": "unschedulable",
    "Unhealthy": "probeFailed",
    "FailedMount": "volumeNotMounted",
    "FailedCreate": "podsRefused",
}
"""Reason of a container's state, or of an Event → its cause in the catalogue."""

_DISK_FULL = "No space left on device"


def hopeless_reason(pod: Object) -> str:
    """The reason for which waiting makes no sense; "" while there is hope."""
    for _, reason, _ in _waiting(pod):
        if reason in HOPELESS:
            return reason
    status = pod.get("status") or {}
    if status.get("phase") == "Failed" and not status.get("containerStatuses"):
        return str(status.get("reason") or "Failed")
    return ""


def why_not_ready(pod: Object, events: Sequence[Object] = ()) -> list[str]:
    """Lines for a person: what each condition, container and Warning Event says, and the way out where one is known."""
    status = pod.get("status") or {}
    phase = status.get("phase") or "Pending"
    reason = f" ({status['reason']}: {status.get('message', '')})" if status.get("reason") else ""
    lines = [f"{namespace_of(pod)}/{name_of(pod)} is not Ready: phase {phase}{reason}"]
    told: set[str] = set()
    for condition in status.get("conditions") or []:
        why = ": ".join(part for part in (condition.get("reason"), condition.get("message")) if part)
        # ContainersReady mostly repeats what Ready says.
        if condition.get("status") == "False" and why and why not in told:
            told.add(why)
            lines.append(f"  condition {condition.get('type')} is False: {why}")
    hints: dict[str, None] = {}
    for name, reason, message in _waiting(pod):
        lines.append(f"  container {name}: {reason}{f': {message}' if message else ''}")
        if reason in CAUSES:
            hints.setdefault(fix(CAUSES[reason]))
    warnings = _newest_warnings(events)
    lines += [f"  Event {_event(event)}" for event in warnings]
    hints.update(dict.fromkeys(_ways_out(warnings)))
    if any(_DISK_FULL in line for line in lines):
        hints.setdefault(fix("stateFull"))
    lines += [f"  way out: {hint}" for hint in hints]
    return lines


def why_no_pods(what: str, owner: Object, ready: int, wanted: int | None, events: Sequence[Object]) -> list[str]:
    """Lines about an owner that does not have its Pods: how many it has, its conditions, what Events say of it."""
    how_many = (
        "has not been looked at by its controller" if wanted is None else f"{ready} of its {wanted} Pods are Ready"
    )
    if wanted is not None and ready >= wanted:
        how_many += ", but it does not count them as available yet (spec.minReadySeconds)"
    lines = [f"{what}: {how_many}"]
    for condition in (owner.get("status") or {}).get("conditions") or []:
        wrong = condition.get("status") == ("True" if condition.get("type") == "ReplicaFailure" else "False")
        why = ": ".join(part for part in (condition.get("reason"), condition.get("message")) if part)
        if wrong and why:
            lines.append(f"  condition {condition.get('type')} is {condition.get('status')}: {why}")
    warnings = _newest_warnings(events)
    lines += [f"  Event {_event(event)}" for event in warnings]
    return [*lines, *(f"  way out: {hint}" for hint in dict.fromkeys(_ways_out(warnings)))]


def in_short(pod: Object, events: Sequence[Object] = ()) -> str:
    """One line: the Pod's name, how far it is, and the newest thing that is known to be wrong."""
    deleted = pod["metadata"].get("deletionTimestamp")
    phase = (pod.get("status") or {}).get("phase") or "Pending"
    if deleted:
        return why_still_there(pod)[0].strip()
    conditions = (pod.get("status") or {}).get("conditions") or []
    wrong = [f"{reason}: {message}" if message else reason for _, reason, message in _waiting(pod)]
    wrong += [_event(event) for event in reversed(_newest_warnings(events))]
    wrong += [
        f"{each['reason']}: {each.get('message') or each.get('type')}"
        for each in reversed(conditions)
        if each.get("status") == "False" and each.get("reason")
    ]
    # A container that runs and is not ready is told better by the Event of its probe.
    better = [each for each in wrong if not each.startswith("Running: ")]
    return f"{name_of(pod)} is {phase} and not Ready" + (f" ({(better or wrong)[0]})" if wrong else "")


def is_ready(pod: Object) -> bool:
    """Condition Ready."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any((each.get("type"), each.get("status")) == ("Ready", "True") for each in conditions)


def why_still_there(pod: Object) -> list[str]:
    """A line about a Pod that is being deleted: what it may be waiting for."""
    metadata, name = pod["metadata"], f"{namespace_of(pod)}/{name_of(pod)}"
    if finalizers := metadata.get("finalizers"):
        return [f"{name} is ending: finalizers hold it ({', '.join(finalizers)}) until somebody removes them"]
    grace = metadata.get("deletionGracePeriodSeconds")
    return [
        f"{name} is ending since its DELETE, to be over by {metadata['deletionTimestamp']} "
        f"(grace period {grace} s: terminationGracePeriodSeconds, or a longer --timeout)"
    ]


def _waiting(pod: Object) -> Iterator[tuple[str, str, str]]:
    """(container, reason, message) of every container that waits or has failed."""
    status = pod.get("status") or {}
    for field in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(field) or []:
            state, name = container.get("state") or {}, str(container.get("name"))
            waiting, terminated = state.get("waiting"), state.get("terminated")
            last = (container.get("lastState") or {}).get("terminated")
            if waiting and waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
                yield name, str(waiting["reason"]), str(waiting.get("message") or "")
            if terminated and terminated.get("exitCode"):
                yield name, str(terminated.get("reason") or "Error"), _exit(terminated)
            elif last and last.get("exitCode"):
                yield name, str(last.get("reason") or "Error"), f"last time {_exit(last)}"
            if "running" in state and not container.get("ready"):
                yield name, "Running", "but not ready: its readiness probe has not succeeded"


def _exit(terminated: Object) -> str:
    message = f": {str(terminated['message']).strip()}" if terminated.get("message") else ""
    return f"exit code {terminated.get('exitCode')}{message}"


def _newest_warnings(events: Sequence[Object], limit: int = 4) -> list[Object]:
    """The last Warning Events, each reason and message once."""
    warnings = [event for event in events if event.get("type") == "Warning"]
    warnings.sort(key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""))
    distinct = {(event.get("reason"), event.get("message")): event for event in warnings}
    return list(distinct.values())[-limit:]


def _ways_out(events: Sequence[Object]) -> list[str]:
    reasons = [str(event.get("reason")) for event in events]
    return [fix(CAUSES[reason]) for reason in reasons if reason in CAUSES]


def _event(event: Object) -> str:
    count = event.get("count") or 1
    times = f" ({count} times)" if count > 1 else ""
    return f"{event.get('reason')}: {event.get('message')}{times}"
