"""What the story takes from the API object of a Pod, beside the records.

The API server makes records with it and tells no story: whose types are imported by who tells one.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lastcall.api.meta import Object, name_of, namespace_of, uid_of
from lastcall.api.pods.restart_rules import RESTART_ALL
from lastcall.timeline import kinds
from lastcall.timeline.record import Record

if TYPE_CHECKING:
    from lastcall.timeline.catalogue.records.parts import ContainerOfPod, StartProblems, Waiting
    from lastcall.timeline.story import ContainerFacts, ContainerKind, PodFacts

_HANDLERS = ("exec", "httpGet", "sleep", "tcpSocket")


def pod_facts(pod: Object) -> "PodFacts":
    """The facts of a Pod object; the newest one that a client saw tells most."""
    # late: 0.0 ms of `demo --help`
    from lastcall.timeline.story import PodFacts

    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    terminated = {
        container.get("name"): (container.get("state") or {}).get("terminated") or {}
        for field in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
        for container in status.get(field) or []
    }
    containers = [
        _container_facts(container, kind, terminated.get(container.get("name"), {}))
        for kind, container in _containers(spec)
    ]
    return PodFacts(
        uid=uid_of(pod),
        namespace=namespace_of(pod),
        name=name_of(pod),
        node=spec.get("nodeName") or "",
        phase=status.get("phase") or "",
        containers=tuple(containers),
    )


def _containers(spec: Object) -> "Iterable[tuple[ContainerKind, Object]]":
    for container in spec.get("initContainers") or []:
        yield ("sidecar" if container.get("restartPolicy") == "Always" else "init"), container
    for container in spec.get("containers") or []:
        yield "container", container
    for container in spec.get("ephemeralContainers") or []:
        yield "ephemeral", container


def _container_facts(container: Object, kind: "ContainerKind", terminated: Object) -> "ContainerFacts":
    # late: 0.0 ms of `demo --help`
    from lastcall.timeline.story import ContainerFacts

    pre_stop = (container.get("lifecycle") or {}).get("preStop") or {}
    return ContainerFacts(
        name=container.get("name") or "",
        kind=kind,
        image=container.get("image") or "",
        pre_stop=next((handler for handler in _HANDLERS if handler in pre_stop), ""),
        exit_code=terminated.get("exitCode"),
        reason=terminated.get("reason"),
        signal=terminated.get("signal"),
        restart_rules=_restart_rules(container),
    )


def _restart_rules(container: Object) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """They count only beside a policy of the container's own (`api/pods/restart_rules.py`)."""
    if not container.get("restartPolicy"):
        return ()
    return tuple(
        (str(codes.get("operator")), tuple(codes.get("values") or ()))
        for rule in container.get("restartPolicyRules") or ()
        if rule.get("action") in ("Restart", RESTART_ALL)
        for codes in (rule.get("exitCodes") or {},)
    )


def container_facts(pod: Object) -> "list[ContainerOfPod]":
    """What a PodCreated record says of a Pod's containers, for a story without the object."""
    told: list[ContainerOfPod] = []
    for kind, container in _containers(pod.get("spec") or {}):
        facts = _container_facts(container, kind, {})
        each: ContainerOfPod = {"name": facts.name, "kind": facts.kind, "preStop": facts.pre_stop}
        if facts.restart_rules:
            each["restartRules"] = facts.restart_rules
        told.append(each)
    return told


_STARTING = (None, "", "ContainerCreating", "PodInitializing")
_LONGEST_MESSAGE = 500


def status_problems(status: Object) -> "StartProblems":
    """What a Pod's status says keeps it from starting: `waiting` and `unschedulable` of PodStatusWritten, if any."""
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


def facts_from_records(uid: str, records: Iterable[Record]) -> "PodFacts":
    """The same from records alone, for a Pod whose object nobody saw."""
    # late: 0.0 ms of `demo --help`
    from lastcall.timeline.story import ContainerFacts, PodFacts

    namespace = name = node = phase = ""
    containers: dict[str, ContainerFacts] = {}
    for record in records:
        if record.kind == kinds.POD_CREATED:
            namespace, name = str(record.facts.get("namespace", "")), str(record.facts.get("name", ""))
            containers = {each.name: each for each in _recorded(record)} | containers
        elif record.kind == kinds.EPHEMERAL_CONTAINERS_ADDED:
            for each in record.facts.get("containers") or []:
                containers[str(each.get("name"))] = ContainerFacts(str(each.get("name")), "ephemeral")
        elif record.kind in (kinds.POD_BOUND, kinds.POD_SCHEDULED):
            node = str(record.facts.get("node", ""))
        elif record.kind == kinds.POD_STATUS_WRITTEN:
            phase = str(record.facts.get("phase") or phase)
        if record.container:
            containers.setdefault(record.container, ContainerFacts(record.container))
    return PodFacts(uid, namespace, name or uid, node, phase, tuple(containers.values()))


_KINDS: "dict[str, ContainerKind]" = {
    "container": "container",
    "sidecar": "sidecar",
    "init": "init",
    "ephemeral": "ephemeral",
}


def _recorded(created: Record) -> "Iterable[ContainerFacts]":
    # late: 0.0 ms of `demo --help`
    from lastcall.timeline.story import ContainerFacts

    for each in created.facts.get("containers") or []:
        kind = _KINDS.get(str(each.get("kind")), "container")
        rules = tuple((str(operator), tuple(codes)) for operator, codes in each.get("restartRules") or ())
        yield ContainerFacts(
            str(each.get("name") or ""), kind, pre_stop=str(each.get("preStop") or ""), restart_rules=rules
        )
