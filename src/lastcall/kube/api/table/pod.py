"""The row of a Pod. Source: pkg/printers/internalversion/printers.go:printPod."""

from datetime import datetime
from typing import Any

from lastcall.kube.api.meta import Object, is_terminating, name_of
from lastcall.kube.api.pods.spec import get_condition, is_pod_ready, is_pod_terminal, is_restartable_init
from lastcall.kube.api.table.text import NONE, age, human_duration
from lastcall.kube.api.text.times import parse_rfc3339


class _Restarts:
    """A count, and when the last one ended."""

    def __init__(self) -> None:
        self.count = 0
        self.last: datetime | None = None

    def add(self, status: Object) -> None:
        self.count += status.get("restartCount", 0)
        finished = ((status.get("lastState") or {}).get("terminated") or {}).get("finishedAt")
        if finished:
            when = parse_rfc3339(finished)
            self.last = when if self.last is None or when > self.last else self.last

    def text(self, now: datetime) -> str:
        if not self.count or self.last is None:
            return str(self.count)
        return f"{self.count} ({human_duration(now - self.last)} ago)"


def _terminated_text(terminated: Object) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    signal = terminated.get("signal")
    return f"Signal:{signal}" if signal else f"ExitCode:{terminated.get('exitCode', 0)}"


def pod_summary(pod: Object) -> tuple[str, int, int, int]:
    """Return what `kubectl get` has under STATUS (but not Terminating), the two numbers under READY, and RESTARTS."""
    reason, ready, total, restarts = _summary(pod, pod.get("spec") or {}, pod.get("status") or {})
    return reason, ready, total, restarts.count


def pod_row(pod: Object, now: datetime) -> list[Any]:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    reason, ready, total, restarts = _summary(pod, spec, status)
    if is_terminating(pod):
        if status.get("reason") == "NodeLost":
            reason = "Unknown"
        elif not is_pod_terminal(pod):
            reason = "Terminating"
    ips = status.get("podIPs") or ()
    gates = spec.get("readinessGates") or ()
    passed = [gate for gate in gates if _is_true(status, gate.get("conditionType", ""))]
    return [
        name_of(pod),
        f"{ready}/{total}",
        reason,
        restarts.text(now),
        age(pod, now),
        (ips[0].get("ip") if ips else status.get("podIP")) or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        f"{len(passed)}/{len(gates)}" if gates else NONE,
    ]


def _is_true(status: Object, condition_type: str) -> bool:
    return (get_condition(status, condition_type) or {}).get("status") == "True"


def _is_done(container: Object) -> bool:
    """Return True if a container has ended without an error."""
    terminated = (container.get("state") or {}).get("terminated")
    return terminated is not None and terminated.get("exitCode", 0) == 0


def _init_reason(container: Object, place: str) -> str:
    """Return why an init container keeps its Pod from running."""
    state = container.get("state") or {}
    waiting = (state.get("waiting") or {}).get("reason", "")
    if state.get("terminated") is not None:
        return f"Init:{_terminated_text(state['terminated'])}"
    return f"Init:{waiting if waiting and waiting != 'PodInitializing' else place}"


def _summary(pod: Object, spec: Object, status: Object) -> tuple[str, int, int, _Restarts]:
    """(reason, ready containers, all containers, restarts)."""
    sidecars = {item.get("name") for item in spec.get("initContainers") or () if is_restartable_init(item)}
    total = len(spec.get("containers") or ()) + len(sidecars)
    reason = status.get("reason") or status.get("phase") or ""
    if (get_condition(status, "PodScheduled") or {}).get("reason") == "SchedulingGated":
        reason = "SchedulingGated"
    ready = 0
    restarts, of_sidecars = _Restarts(), _Restarts()
    initializing = ""
    for index, container in enumerate(status.get("initContainerStatuses") or ()):
        restarts.add(container)
        sidecar = container.get("name") in sidecars
        if sidecar:
            of_sidecars.add(container)
        if sidecar and container.get("started") and not _is_done(container):
            ready += bool(container.get("ready"))
        elif not _is_done(container):
            reason = initializing = _init_reason(container, f"{index}/{len(spec.get('initContainers') or ())}")
            break
    if initializing and not _is_true(status, "Initialized"):
        return reason, ready, total, restarts
    running = False
    for container in reversed(status.get("containerStatuses") or []):
        of_sidecars.add(container)
        state = container.get("state") or {}
        waiting = (state.get("waiting") or {}).get("reason")
        if waiting:
            reason = waiting
        elif state.get("terminated") is not None:
            reason = _terminated_text(state["terminated"])
        elif container.get("ready") and state.get("running") is not None:
            running = True
            ready += 1
    if reason == "Completed" and running:
        reason = "Running" if is_pod_ready(pod) else "NotReady"
    return reason, ready, total, of_sidecars


_SUCCEEDED = {
    "type": "Completed",
    "status": "True",
    "reason": "Succeeded",
    "message": "The pod has completed successfully.",
}
_FAILED = {"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}


def pod_conditions(pod: Object) -> list[Object]:
    """Return `conditions` of the row of a Pod that has ended."""
    phase = (pod.get("status") or {}).get("phase")
    return [dict(_SUCCEEDED)] if phase == "Succeeded" else [dict(_FAILED)] if phase == "Failed" else []
