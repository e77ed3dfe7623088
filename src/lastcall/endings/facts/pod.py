"""What a story takes from the API object of a Pod, and from records where nobody saw the object."""

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from lastcall.endings.story import ContainerFacts, DeclaredPort, DeclaredProbe, MountedFiles, PodFacts
from lastcall.kube.api import (
    Object,
    asks_node,
    containers_of,
    name_of,
    namespace_of,
    pre_stop_of,
    restart_rules_of,
    tcp_probe_ports_of,
    uid_of,
)
from lastcall.records import kinds
from lastcall.records.definitions.parts import ContainerKind
from lastcall.records.record import Record


def pod_facts(pod: Object) -> PodFacts:
    """Return the facts of a Pod object; the newest one that a client saw has the most."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    terminated = {
        container.get("name"): (container.get("state") or {}).get("terminated") or {}
        for field in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
        for container in status.get(field) or []
    }
    volumes = {str(each.get("name")): each for each in spec.get("volumes") or ()}
    ranged = _limited_by_range(pod)
    containers = [
        replace(
            _container_facts(
                container, kind, terminated.get(container.get("name"), {}), volumes, asks_node(spec, container)
            ),
            memory_by_range=container.get("name") in ranged,
        )
        for kind, container in containers_of(spec)
    ]
    return PodFacts(
        uid=uid_of(pod),
        namespace=namespace_of(pod),
        name=name_of(pod),
        node=spec.get("nodeName") or "",
        phase=status.get("phase") or "",
        containers=tuple(containers),
        subdomain=spec.get("subdomain") or "",
    )


_SET_BY_RANGE = re.compile(r"(?P<what>[\w./, -]+) limit for (?:init )?container (?P<name>\S+)")


def _limited_by_range(pod: Object) -> set[str]:
    """Return the containers whose memory limit is the default of a LimitRange, as its admission plugin notes it
    (limitranger admission.go:defaultContainerResourceRequirements)."""
    note = str((pod["metadata"].get("annotations") or {}).get("kubernetes.io/limit-ranger") or "")
    parts = (_SET_BY_RANGE.fullmatch(part) for part in note.removeprefix("LimitRanger plugin set: ").split("; "))
    return {match["name"] for match in parts if match and "memory" in match["what"].split(", ")}


def _container_facts(
    container: Object,
    kind: ContainerKind,
    terminated: Object,
    volumes: Mapping[str, Object],
    at_node: tuple[tuple[str, str, str], ...],
) -> ContainerFacts:
    return ContainerFacts(
        name=container.get("name") or "",
        kind=kind,
        image=container.get("image") or "",
        pre_stop=pre_stop_of(container),
        exit_code=terminated.get("exitCode"),
        reason=terminated.get("reason"),
        signal=terminated.get("signal"),
        ports=tuple(each["containerPort"] for each in container.get("ports") or ()),
        declared_ports=tuple(_declared_port(each) for each in container.get("ports") or ()),
        probes=tuple(_declared_probes(container)),
        tcp_probes=tcp_probe_ports_of(container),
        asks_node=at_node,
        files=tuple(_mounted_files(container, volumes)),
        restart_rules=restart_rules_of(container),
    )


def _declared_port(port: Object) -> DeclaredPort:
    return DeclaredPort(port["containerPort"], port.get("name") or "", port.get("protocol") or "", port.get("hostPort"))


def _declared_probes(container: Object) -> Iterable[DeclaredProbe]:
    for field in ("startupProbe", "readinessProbe", "livenessProbe"):
        for handler in ("httpGet", "tcpSocket", "grpc"):
            action = (container.get(field) or {}).get(handler) or {}
            if "port" in action and not action.get("host"):
                yield DeclaredProbe(field, handler, action["port"])


def _mounted_files(container: Object, volumes: Mapping[str, Object]) -> Iterable[MountedFiles]:
    for mount in container.get("volumeMounts") or ():
        volume = str(mount.get("name"))
        for field, kind, key in (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")):
            if (source := volumes.get(volume, {}).get(field)) is not None:
                items = tuple((str(each.get("key")), str(each.get("path"))) for each in source.get("items") or ())
                sub = str(mount.get("subPath") or mount.get("subPathExpr") or "")
                path = posixpath.normpath(str(mount.get("mountPath") or "/"))
                yield MountedFiles(path, volume, kind, str(source.get(key) or ""), sub, items)


def facts_from_records(uid: str, records: Iterable[Record]) -> PodFacts:
    """Return the same from records alone, for a Pod whose object nobody saw."""
    namespace = name = node = phase = subdomain = ""
    containers: dict[str, ContainerFacts] = {}
    for record in records:
        if record.kind == kinds.POD_CREATED:
            created = record.facts_as(kinds.POD_CREATED)
            namespace, name = str(created.get("namespace", "")), str(created.get("name", ""))
            subdomain = created.get("subdomain", "")
            containers = {each.name: each for each in _recorded(record)} | containers
        elif record.kind == kinds.EPHEMERAL_CONTAINERS_ADDED:
            for each in record.facts_as(kinds.EPHEMERAL_CONTAINERS_ADDED).get("containers") or []:
                containers[str(each.get("name"))] = ContainerFacts(str(each.get("name")), "ephemeral")
        elif record.kind == kinds.POD_BOUND:
            node = str(record.facts_as(kinds.POD_BOUND).get("node", ""))
        elif record.kind == kinds.POD_SCHEDULED:
            node = str(record.facts_as(kinds.POD_SCHEDULED).get("node", ""))
        elif record.kind == kinds.POD_STATUS_WRITTEN:
            phase = str(record.facts_as(kinds.POD_STATUS_WRITTEN).get("phase") or phase)
        if record.container:
            containers.setdefault(record.container, ContainerFacts(record.container))
    return PodFacts(uid, namespace, name or uid, node, phase, tuple(containers.values()), subdomain)


_KINDS: dict[str, ContainerKind] = {
    "container": "container",
    "sidecar": "sidecar",
    "init": "init",
    "ephemeral": "ephemeral",
}


_Rules = Sequence[tuple[str, Sequence[int]]]
"""(operator, exit codes)."""


def _recorded(created: Record) -> Iterable[ContainerFacts]:
    for each in created.facts_as(kinds.POD_CREATED).get("containers") or []:
        kind = _KINDS.get(str(each.get("kind")), "container")
        rules = tuple((str(operator), tuple(codes)) for operator, codes in cast(_Rules, each.get("restartRules") or ()))
        yield ContainerFacts(
            str(each.get("name") or ""),
            kind,
            pre_stop=str(each.get("preStop") or ""),
            restart_rules=rules,
            tcp_probes=tuple(each.get("tcpProbes") or ()),
        )


def pods_by_address(records: Sequence[Record]) -> dict[str, str]:
    """Return address → Pod (`namespace/name`) for the other sides of connections that were open at an exit.

    Records of Pods without such a connection are not read; of several Pods that had an address one after the other the
    last one counts.
    """
    ends = (each.facts_as(kinds.SOCKETS_AT_EXIT) for each in records if each.kind == kinds.SOCKETS_AT_EXIT)
    wanted = {str(peer.get("address")) for end in ends for peer in end.get("peers") or ()}
    if not wanted:
        return {}
    attached = (each for each in records if each.kind == kinds.NETWORK_ATTACHED)
    uids = {str(each.facts_as(kinds.NETWORK_ATTACHED).get("ip")): each.pod_uid for each in attached}
    created = {each.pod_uid: each.facts_as(kinds.POD_CREATED) for each in records if each.kind == kinds.POD_CREATED}
    names = {uid: f"{facts.get('namespace')}/{facts.get('name')}" for uid, facts in created.items()}
    return {address: names[uid] for address, uid in uids.items() if address in wanted and uid in names}
