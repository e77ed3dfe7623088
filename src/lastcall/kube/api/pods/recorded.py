"""What records say of a Pod: the API server writes it with PodCreated and PodStatusWritten.

No story is made here: the types of one take 10 ms to import, which the API server would spend in its first create.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import Object
from lastcall.kube.api.pods.restart_rules import RESTART_ALL

if TYPE_CHECKING:
    from lastcall.records.definitions.parts import ContainerKind, ContainerOfPod, StartProblems, Waiting

_HANDLERS = ("exec", "httpGet", "sleep", "tcpSocket")


def containers_of(spec: Object) -> "Iterable[tuple[ContainerKind, Object]]":
    """Return (kind, container) of every container of a Pod's spec."""
    for container in spec.get("initContainers") or []:
        yield ("sidecar" if container.get("restartPolicy") == "Always" else "init"), container
    for container in spec.get("containers") or []:
        yield "container", container
    for container in spec.get("ephemeralContainers") or []:
        yield "ephemeral", container


def pre_stop_of(container: Object) -> str:
    """Return the handler of its preStop hook, "" without one."""
    pre_stop = (container.get("lifecycle") or {}).get("preStop") or {}
    return next((handler for handler in _HANDLERS if handler in pre_stop), "")


def restart_rules_of(container: Object) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return (operator, exit codes) of each rule that restarts.

    They count only beside a policy of the container's own (`kube/api/pods/restart_rules.py`).
    """
    if not container.get("restartPolicy"):
        return ()
    return tuple(
        (str(codes.get("operator")), tuple(codes.get("values") or ()))
        for rule in container.get("restartPolicyRules") or ()
        if rule.get("action") in ("Restart", RESTART_ALL)
        for codes in (rule.get("exitCodes") or {},)
    )


def tcp_probe_ports_of(container: Object) -> tuple[int, ...]:
    """Return the ports of the Pod to which its tcpSocket probes connect. A name is that of one of its ports."""
    named = {each.get("name"): each.get("containerPort") for each in container.get("ports") or ()}
    actions = (
        (container.get(field) or {}).get("tcpSocket") or {}
        for field in ("startupProbe", "readinessProbe", "livenessProbe")
    )
    found = (named.get(each["port"], each["port"]) for each in actions if "port" in each and not each.get("host"))
    return tuple(dict.fromkeys(port for port in found if isinstance(port, int)))


def container_facts(pod: Object) -> "list[ContainerOfPod]":
    """Return what a PodCreated record says of a Pod's containers, for a story without the object."""
    containers: list[ContainerOfPod] = []
    for kind, container in containers_of(pod.get("spec") or {}):
        each: ContainerOfPod = {"name": container.get("name") or "", "kind": kind, "preStop": pre_stop_of(container)}
        if rules := restart_rules_of(container):
            each["restartRules"] = rules
        if ports := tcp_probe_ports_of(container):
            each["tcpProbes"] = list(ports)
        containers.append(each)
    return containers


_STARTING = (None, "", "ContainerCreating", "PodInitializing")
_LONGEST_MESSAGE = 500


def status_problems(status: Object) -> "StartProblems":
    """Return what a Pod's status says keeps it from starting: `waiting` and `unschedulable` of PodStatusWritten, if
    any."""
    waiting: list[Waiting] = [
        {
            "container": container.get("name"),
            "reason": state["reason"],
            "message": str(state.get("message") or "")[:_LONGEST_MESSAGE],
        }
        for field in ("initContainerStatuses", "containerStatuses")
        for container in status.get(field) or ()
        if (state := (container.get("state") or {}).get("waiting")) and state.get("reason") not in _STARTING
    ]
    found: StartProblems = {"waiting": waiting} if waiting else {}
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            found["unschedulable"] = str(condition.get("message") or condition.get("reason") or "")[:_LONGEST_MESSAGE]
    return found
