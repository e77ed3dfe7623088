"""What the story takes from the API object of a Pod, beside the records."""

from collections.abc import Iterable

from lastcall.api.meta import Object, name_of, namespace_of, uid_of
from lastcall.timeline import kinds
from lastcall.timeline.record import Record
from lastcall.timeline.story import ContainerFacts, ContainerKind, PodFacts

_HANDLERS = ("exec", "httpGet", "sleep", "tcpSocket")


def pod_facts(pod: Object) -> PodFacts:
    """The facts of a Pod object; the newest one that a client saw tells most."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    terminated = {
        container.get("name"): (container.get("state") or {}).get("terminated") or {}
        for field in ("initContainerStatuses", "containerStatuses")
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


def _containers(spec: Object) -> Iterable[tuple[ContainerKind, Object]]:
    for container in spec.get("initContainers") or []:
        yield ("sidecar" if container.get("restartPolicy") == "Always" else "init"), container
    for container in spec.get("containers") or []:
        yield "container", container


def _container_facts(container: Object, kind: ContainerKind, terminated: Object) -> ContainerFacts:
    pre_stop = (container.get("lifecycle") or {}).get("preStop") or {}
    return ContainerFacts(
        name=container.get("name") or "",
        kind=kind,
        image=container.get("image") or "",
        pre_stop=next((handler for handler in _HANDLERS if handler in pre_stop), ""),
        exit_code=terminated.get("exitCode"),
        reason=terminated.get("reason"),
        signal=terminated.get("signal"),
    )


def facts_from_records(uid: str, records: Iterable[Record]) -> PodFacts:
    """The same from records alone, for a Pod whose object nobody saw."""
    namespace = name = node = ""
    containers: dict[str, None] = {}
    for record in records:
        if record.kind == kinds.POD_CREATED:
            namespace, name = str(record.facts.get("namespace", "")), str(record.facts.get("name", ""))
        elif record.kind in (kinds.POD_BOUND, kinds.POD_SCHEDULED):
            node = str(record.facts.get("node", ""))
        if record.container:
            containers.setdefault(record.container)
    return PodFacts(uid, namespace, name or uid, node, "", tuple(ContainerFacts(each) for each in containers))
