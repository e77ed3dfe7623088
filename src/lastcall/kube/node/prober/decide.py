"""Whether a probe worker probes now, and what a result changes. Source: prober/worker.go:doProbe. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from lastcall.kube.api.pods.restart_rules import all_containers_could_restart, is_container_restartable
from lastcall.kube.api.pods.spec import StatusField
from lastcall.kube.api.text.times import parse_rfc3339
from lastcall.kube.node.interfaces import ProbeResult, ProbeType
from lastcall.kube.node.pods.spec import containers_of, is_terminal_phase
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.container import Container, Probe
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import ContainerState, ContainerStatus, PodStatus

Step = Literal["probe", "skip", "end"]

INITIAL_RESULT: dict[ProbeType, ProbeResult] = {"readiness": "failure", "liveness": "success", "startup": "unknown"}


@dataclass(slots=True)
class WorkerState:
    """What a worker remembers between ticks. `container_id` is the API's, "" before the first container."""

    container_id: str = ""
    on_hold: bool = False
    last_result: ProbeResult | None = None
    result_run: int = 0
    succeeded: bool | None = False
    """Whether a probe of this container has ever succeeded; None: it ran before this kubelet, which cannot know."""


@dataclass(frozen=True, slots=True)
class Decision:
    """`set_result` is to be stored first (a container that does not run, or whose probing has ended)."""

    step: Step
    set_result: ProbeResult | None = None


def probe_of(container: Container, probe_type: ProbeType) -> Probe | None:
    """Return the container's probe of this type."""
    if probe_type == "startup":
        return container.get("startupProbe")
    return container.get("livenessProbe") if probe_type == "liveness" else container.get("readinessProbe")


def find_container_status(status: PodStatus, name: str) -> ContainerStatus | None:
    """Return the status of a created container, regular before init."""
    field: StatusField
    for field in ("containerStatuses", "initContainerStatuses"):
        for container in status.get(field) or []:
            if container["name"] == name and container.get("containerID"):
                return container
    return None


def decide(
    probe_type: ProbeType,
    probe: Probe,
    pod: Pod,
    status: PodStatus,
    container: ContainerStatus,
    state: WorkerState,
    now_seconds: float,
    *,
    is_sidecar: bool,
) -> Decision:
    """Decide what to do at one tick. `container` is the status of the container `state.container_id`.

    `now_seconds` is wall time since the epoch.
    """
    if is_terminal_phase(status.get("phase")):
        return Decision("end")
    if state.on_hold:
        return Decision("skip")
    container_state: ContainerState = container.get("state") or {}
    running = container_state.get("running")
    if running is None:
        may_run_again = is_sidecar or "terminated" not in container_state or _restartable(pod, container["name"])
        return Decision("skip" if may_run_again else "end", "failure")
    if pod["metadata"].get("deletionTimestamp") and probe_type != "readiness":
        return Decision("end", "success")
    age = now_seconds - parse_rfc3339(running.get("startedAt")).timestamp()
    if int(age) < int(probe.get("initialDelaySeconds") or 0):
        return Decision("skip")
    started = bool(container.get("started"))
    if started == (probe_type == "startup"):
        return Decision("skip")
    return Decision("probe")


def _restartable(pod: Pod, name: str) -> bool:
    if all_containers_could_restart(pod):
        return True
    container = next((each for each in containers_of(pod) if each["name"] == name), None)
    return container is not None and is_container_restartable(container, pod)


def take_result(probe_type: ProbeType, probe: Probe, state: WorkerState, result: ProbeResult) -> bool:
    """Count one result; return True if it has reached its threshold and becomes the container's result."""
    if state.last_result == result:
        state.result_run += 1
    else:
        state.last_result = result
        state.result_run = 1
    threshold = probe.get("failureThreshold") or 3 if result == "failure" else probe.get("successThreshold") or 1
    if state.result_run < int(threshold):
        return False
    if probe_type == "startup" or (probe_type == "liveness" and result == "failure"):
        # Decided: nothing to probe until there is a new container.
        state.on_hold = True
        state.result_run = 0
    return True
