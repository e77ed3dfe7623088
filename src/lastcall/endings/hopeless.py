"""What keeps the containers of a Pod from running, and whether waiting changes that. Pure."""

# check: pure

from collections.abc import Iterator
from typing import Any

from lastcall.kube.api import Object, restarts_by_rule
from lastcall.records.said import tell

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


def hopeless_reason(pod: Object) -> str:
    """Return the reason why waiting is pointless; "" while there is hope."""
    for _, reason, _ in waits_of(pod):
        if reason in HOPELESS:
            return reason
    status = pod.get("status") or {}
    if status.get("phase") == "Failed" and not status.get("containerStatuses"):
        return str(status.get("reason") or "Failed")
    return ""


CRASHES = 3
"""How many ends in a row, each with a failure, are more than bad luck."""


def is_crash_looping(pod: Object) -> bool:
    """Return whether a container crashed repeatedly. Between two starts it is terminated, or waits for the next."""
    return any(
        (container.get("restartCount") or 0) >= CRASHES - 1 and "running" not in (container.get("state") or {})
        for container in crashed(pod)
    )


def crashed(pod: Object) -> Iterator[Object]:
    """Yield the statuses of containers whose last end was a failure, and not one that its own rules restart."""
    status, specs = pod.get("status") or {}, _specs(pod)
    for container in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
        ends = ((container.get(state) or {}).get("terminated") or {} for state in ("state", "lastState"))
        code = next((end["exitCode"] for end in ends if "exitCode" in end), 0)
        if code and not restarts_by_rule(specs.get(container.get("name")) or {}, code):
            yield container


def waits_of(pod: Object) -> Iterator[tuple[str, str, str]]:
    """Yield (container, reason, message) of every container that waits or has failed."""
    status, specs = pod.get("status") or {}, _specs(pod)
    for statuses in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(statuses) or []:
            state, name = container.get("state") or {}, str(container.get("name"))
            waiting, terminated = state.get("waiting"), state.get("terminated")
            last = (container.get("lastState") or {}).get("terminated")
            if waiting and waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
                yield name, str(waiting["reason"]), str(waiting.get("message") or "")
            if terminated and terminated.get("exitCode"):
                yield name, str(terminated.get("reason") or "Error"), _exit(terminated)
            elif last and last.get("exitCode"):
                yield (
                    name,
                    str(last.get("reason") or "Error"),
                    tell("last time $exit$restarts", exit=_exit(last), restarts=_restarts(container)),
                )
            if "running" in state and statuses == "initContainerStatuses" and not _is_sidecar(specs.get(name)):
                yield name, "Init", tell("$name still runs, and the containers after it wait for its end", name=name)
            elif "running" in state and not container.get("ready"):
                yield name, "Running", tell("but not ready$why", why=_unanswered(specs.get(name), container))


def _is_sidecar(spec: Object | None) -> bool:
    return (spec or {}).get("restartPolicy") == "Always"


def _unanswered(spec: Object | None, status: Object) -> str:
    """Which probe a container that runs has not answered. Until its startup probe has, no other is asked."""
    probes = spec or {"readinessProbe": {}}
    if "startupProbe" in probes and status.get("started") is False:
        return tell(": its startup probe has not succeeded")
    return tell(": its readiness probe has not succeeded") if "readinessProbe" in probes else ""


def _restarts(status: Object) -> str:
    count = status.get("restartCount") or 0
    if not count:
        return ""
    return tell(" (restarted 1 time)") if count == 1 else tell(" (restarted $count times)", count=count)


def _exit(terminated: Object) -> str:
    message = f": {str(terminated['message']).strip()}" if terminated.get("message") else ""
    return tell("exit code $code$message", code=terminated.get("exitCode"), message=message)


def _specs(pod: Object) -> dict[Any, Object]:
    spec = pod.get("spec") or {}
    return {each.get("name"): each for kind in ("initContainers", "containers") for each in spec.get(kind) or []}
