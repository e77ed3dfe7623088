"""Changes of one field to an extreme of its type, for every kind that a component reads: a whole cluster lives on them.

A `Change` is a path into an object's spec, status or metadata and a value. What the API refuses is not important; what
it accepts must not end anybody's turn.
"""

import random
from collections.abc import Awaitable, Coroutine, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object, name_of, namespace_of
from lastcall.kube.api.resources import (
    CONFIGMAPS,
    CRONJOBS,
    CUSTOMRESOURCEDEFINITIONS,
    DAEMONSETS,
    DEPLOYMENTS,
    ENDPOINTS,
    ENDPOINTSLICES,
    EVENTS,
    JOBS,
    LEASES,
    LIMITRANGES,
    NAMESPACES,
    NODES,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    PODDISRUPTIONBUDGETS,
    PODS,
    PRIORITYCLASSES,
    REPLICASETS,
    REPLICATIONCONTROLLERS,
    RESOURCEQUOTAS,
    SERVICEACCOUNTS,
    SERVICES,
    STATEFULSETS,
    STORAGECLASSES,
    Resource,
)
from lastcall.kube.api.schema.types import Field, Struct, struct_for, struct_of

DEEPEST = 9
TIMES = (
    "0001-01-01T00:00:00Z", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59-05:00", "1970-01-01T00:00:00Z", "2026-01-01T00:00:00.5Z",
)  # fmt: skip
EXTREMES: dict[str, tuple[Any, ...]] = {
    "time": TIMES,
    "microtime": tuple(
        text.replace(".5", "").replace("Z", ".000001Z").replace("00-05", "00.000001-05") for text in TIMES
    ),
    "quantity": ("0", "-1", "1n", "9" * 900, "1e1000", "1e-1000", "9Ei", "0.1", "1"),
    "intstr": (0, 1, -1, 2**31 - 1, -(2**31), "100%", "0%", "9" * 5000 + "%", "x", ""),
    "byte": ("", "YQ==", "/" * 4000),
    "int32": (0, 1, -1, 2, 2**31 - 1, -(2**31)),
    "int64": (0, 1, -1, 2, 2**31, 2**63 - 1, -(2**63)),
    "number": (0, -1, 0.5, 1e308, 5e-324),
    "boolean": (True, False),
    "string": ("", "x", "a" * 63, "9" * 5000, "é", "\0", "a/b", "..", "*", "10.0.0.1", "::1", "0-99999999999", "-1"),
}
NUMBERS = ("9" * 5000, "9" * 4300, "-9", "0", "1", "²", "1e9", "٣", "1_0", "", "2147483647", "9223372036854775807", "x")
ANNOTATIONS = (
    "batch.kubernetes.io/job-completion-index", "batch.kubernetes.io/job-index-failure-count",
    "batch.kubernetes.io/job-index-ignored-failure-count", "batch.kubernetes.io/cronjob-scheduled-timestamp",
    "controller.kubernetes.io/pod-deletion-cost", "deployment.kubernetes.io/revision",
    "deployment.kubernetes.io/revision-history", "deployment.kubernetes.io/desired-replicas",
    "deployment.kubernetes.io/max-replicas", "deprecated.daemonset.template.generation",
    "deprecated.deployment.rollback.to", "endpoints.kubernetes.io/last-change-trigger-time",
    "endpoints.kubernetes.io/over-capacity", "node.alpha.kubernetes.io/ttl", "pv.kubernetes.io/bind-completed",
    "pv.kubernetes.io/bound-by-controller", "pv.kubernetes.io/provisioned-by", "service.kubernetes.io/topology-mode",
    "storageclass.kubernetes.io/is-default-class", "volume.kubernetes.io/selected-node",
    "volume.beta.kubernetes.io/storage-class", "kubectl.kubernetes.io/restartedAt",
    "rbac.authorization.kubernetes.io/autoupdate", "control-plane.alpha.kubernetes.io/leader",
)  # fmt: skip
LABELS = (
    "apps.kubernetes.io/pod-index", "batch.kubernetes.io/job-completion-index", "batch.kubernetes.io/job-name",
    "batch.kubernetes.io/controller-uid", "controller-revision-hash", "controller.kubernetes.io/hash",
    "endpointslice.kubernetes.io/managed-by", "endpointslice.kubernetes.io/skip-mirror",
    "kubernetes.io/service-name", "pod-template-generation", "pod-template-hash", "service.kubernetes.io/headless",
    "statefulset.kubernetes.io/pod-name", "topology.kubernetes.io/zone", "node.kubernetes.io/exclude-disruption",
)  # fmt: skip


def _template(restart: str = "Always") -> Object:
    spec: Object = {
        "containers": [{"name": "app", "image": "app"}],
        "restartPolicy": restart,
        "terminationGracePeriodSeconds": 1,
    }
    return {"metadata": {"labels": {"app": "x"}}, "spec": spec}


SELECTOR = {"matchLabels": {"app": "x"}}
BASES: dict[Resource, Object] = {
    PODS: _template(),
    DEPLOYMENTS: {"spec": {"replicas": 2, "selector": SELECTOR, "template": _template()}},
    REPLICASETS: {"spec": {"replicas": 2, "selector": SELECTOR, "template": _template()}},
    REPLICATIONCONTROLLERS: {"spec": {"replicas": 1, "selector": {"app": "x"}, "template": _template()}},
    STATEFULSETS: {"spec": {"replicas": 2, "serviceName": "x", "selector": SELECTOR, "template": _template()}},
    DAEMONSETS: {"spec": {"selector": SELECTOR, "template": _template()}},
    JOBS: {
        "spec": {
            "completions": 3, "parallelism": 2, "completionMode": "Indexed", "backoffLimitPerIndex": 2,
            "template": _template("Never"),
        }
    },
    CRONJOBS: {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": _template("Never")}}}},
    PODDISRUPTIONBUDGETS: {"spec": {"minAvailable": 1, "selector": SELECTOR}},
    SERVICES: {"spec": {"selector": {"app": "x"}, "ports": [{"port": 80}]}},
    ENDPOINTS: {"subsets": [{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}]},
    ENDPOINTSLICES: {"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.2.3"]}], "ports": [{"port": 80}]},
    PERSISTENTVOLUMECLAIMS: {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    },
    PERSISTENTVOLUMES: {
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    },
    STORAGECLASSES: {"provisioner": "example.com/none"},
    RESOURCEQUOTAS: {"spec": {"hard": {"pods": "50"}}},
    LIMITRANGES: {"spec": {"limits": [{"type": "Container", "max": {"memory": "1Gi"}}]}},
    NODES: {"spec": {}, "status": {"capacity": {"pods": "10", "cpu": "1", "memory": "1Gi"}}},
    NAMESPACES: {"spec": {}},
    LEASES: {"spec": {"holderIdentity": "x"}},
    EVENTS: {"involvedObject": {"kind": "Pod", "namespace": "default", "name": "x"}, "reason": "r", "type": "Normal"},
    CONFIGMAPS: {"data": {"a": "b"}},
    SERVICEACCOUNTS: {},
    PRIORITYCLASSES: {"value": 5},
    CUSTOMRESOURCEDEFINITIONS: {
        "spec": {
            "group": "ex.com", "scope": "Namespaced",
            "names": {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
        }
    },
}  # fmt: skip

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Change:
    """`value` at `path` of an object of this kind; in the status it is a write of the subresource."""

    resource: Resource
    path: Path
    value: Any

    def __repr__(self) -> str:
        shown = repr(self.value)
        return f"{self.resource.kind} {'.'.join(map(str, self.path))} = {shown[:60]}{'…' * (len(shown) > 60)}"

    @property
    def in_status(self) -> bool:
        return self.path[0] == "status"


@cache
def leaves(resource: Resource) -> tuple[tuple[Path, Field], ...]:
    """The paths of an object's fields that hold a plain value; schemas that hold themselves end at some depth."""
    found: list[tuple[Path, Field]] = []
    struct = struct_for(resource)
    for name, field in struct.fields.items():
        if name not in ("apiVersion", "kind", "metadata"):
            _walk(field, (name,), found)
    for key in ANNOTATIONS:
        found.append((("metadata", "annotations", key), Field({"t": "string", "f": "numbers"}, {})))
    for key in LABELS:
        found.append((("metadata", "labels", key), Field({"t": "string"}, {})))
    for name in ("deletionGracePeriodSeconds", "generation", "finalizers", "ownerReferences"):
        _walk(struct_of(struct.fields["metadata"]).fields[name], ("metadata", name), found)
    return tuple(found)


def _walk(field: Field, path: Path, found: list[tuple[Path, Field]]) -> None:
    if len(path) > DEEPEST or path.count("openAPIV3Schema") > 1 or path.count("properties") > 1:
        return
    if field.shape == "struct":
        for name, inner in struct_of(field).fields.items():
            if name not in ("managedFields", "not", "allOf", "anyOf", "oneOf", "definitions", "dependencies"):
                _walk(inner, (*path, name), found)
    elif field.shape in ("list", "map"):
        assert field.item is not None
        _walk(field.item, (*path, 0 if field.shape == "list" else "a"), found)
    elif field.shape != "any":
        found.append((path, field))


def values_for(field: Field) -> tuple[Any, ...]:
    if field.format == "numbers":
        return NUMBERS + TIMES[:4]
    if field.shape == "scalar":
        return EXTREMES[field.format]
    if field.shape == "integer":
        return EXTREMES["int32" if field.format == "int32" else "int64"]
    if field.shape == "string":
        return (*field.enum, *EXTREMES["string"])
    return EXTREMES[field.shape]


def random_change(source: random.Random, resource: Resource | None = None) -> Change:
    """Status and metadata, which are few, as often as the rest."""
    resource = resource or source.choice(list(BASES))
    area = source.choice(("status", "metadata", ""))
    known = [each for each in leaves(resource) if each[0][0] == area] if area else []
    path, field = source.choice(known or [each for each in leaves(resource) if each[0][0] != "metadata"])
    return Change(resource, path, source.choice(values_for(field)))


_PLAIN: dict[str, Any] = {
    "integer": 1, "number": 1, "boolean": True, "string": "x", "time": "2026-01-01T00:00:00Z",
    "microtime": "2026-01-01T00:00:00.000000Z", "quantity": "1", "intstr": 1, "byte": "YQ==",
}  # fmt: skip


def _plain(field: Field) -> Any:
    if field.shape == "struct":
        return _filled(struct_of(field))
    if field.shape == "list":
        return [_plain(field.item)] if field.item is not None else []
    if field.shape == "map":
        return {}
    if field.enum:
        return next((each for each in field.enum if each), "")
    return _PLAIN.get(field.format if field.shape == "scalar" else field.shape)


def _filled(struct: Struct) -> Object:
    """What a struct needs, with plain values."""
    return {name: _plain(struct.fields[name]) for name in sorted(struct.required)}


def with_change(obj: Object, change: Change) -> Object:
    """A copy of `obj` with the change; what it needs on the way is made."""
    made: Object = deepcopy(obj)
    here: Any = made
    struct: Struct | None = struct_for(change.resource)
    field: Field | None = None
    for step, after in zip(change.path, (*change.path[1:], None), strict=True):
        if isinstance(here, dict) and struct is not None:
            field = struct.fields[str(step)]
        elif field is not None:
            field = field.item
        assert field is not None
        struct = struct_of(field) if field.shape == "struct" else None
        if after is None:
            if isinstance(here, list):
                here[:1] = [change.value]
            else:
                here[step] = change.value
            break
        if isinstance(here, list):
            if not here:
                here.append(_filled(struct) if struct else [] if field.shape == "list" else {})
            here = here[0]
            continue
        if here.get(step) is None:
            here[step] = _filled(struct) if struct else [] if field.shape == "list" else {}
        here = here[step]
    return made


# -- a cluster that lives on them --------------------------------------------------------------------------------------

CONDITIONS = (
    "Ready", "DisruptionTarget", "PodScheduled", "ContainersReady", "Progressing", "Available", "ReplicaFailure",
    "Complete", "Failed", "FailureTarget", "SuccessCriteriaMet", "Suspended", "DisruptionAllowed", "Established",
    "NamesAccepted", "MemoryPressure", "Resizing", "x",
)  # fmt: skip
BYSTANDERS: dict[Resource, Object] = {
    RESOURCEQUOTAS: {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "60", "count/jobs.batch": "60"}}},
}
MINE = "extreme"


@dataclass
class Tally:
    """How many changes the API took, of which kinds."""

    accepted: int = 0
    refused: int = 0


async def live_on(cluster: Any, changes: Sequence[Change], source: random.Random, tally: Tally) -> None:
    """Make the changes on a virtual cluster, let its components have them, and see that a Pod lives and ends there."""
    client = cluster.client
    for resource, obj in BYSTANDERS.items():
        await client.create(resource, {**head(resource), **obj}, "default" if resource.namespaced else "")
    for number, change in enumerate(changes):
        try:
            await _make(client, change, number, source)
            tally.accepted += 1
        except StatusError:
            tally.refused += 1
        await cluster.sleep(source.choice((0, 0, 0.3, 3)))
    await cluster.sleep(75)
    for resource in BASES:
        for obj in await client_list(client, resource):
            if name_of(obj).startswith(MINE) or resource in (PODS, REPLICASETS, JOBS):
                await _tried(_delete(client, resource, obj, source))
    await cluster.sleep(20)
    for resource in BASES:
        for obj in await client_list(client, resource):
            if name_of(obj).startswith(MINE) and obj["metadata"].get("finalizers"):
                patch = {"metadata": {"finalizers": None}}
                await _tried(client.patch(resource, name_of(obj), patch, namespace_of(obj)))
    quiet = {"metadata": {"name": "quiet"}}
    await client.create(NAMESPACES, {**head(NAMESPACES), **quiet}, "")
    pod = {**head(PODS), **deepcopy(BASES[PODS]), "metadata": {"name": "after", "namespace": "quiet"}}
    pod["spec"]["nodeName"] = cluster.node_name
    await cluster.sleep(2)
    await client.create(PODS, pod, "quiet")
    await cluster.sleep(15)
    assert ((await client.get(PODS, "after", "quiet")).get("status") or {}).get("phase") == "Running"
    await client.delete(PODS, "after", "quiet")
    await cluster.sleep(15)
    assert not [each for each in await client_list(client, PODS) if namespace_of(each) == "quiet"]


def head(resource: Resource) -> Object:
    return {"apiVersion": resource.api_version, "kind": resource.kind}


async def client_list(client: Any, resource: Resource) -> list[Object]:
    return list((await client.list(resource)).items)


def _delete(client: Any, resource: Resource, obj: Object, source: random.Random) -> Coroutine[Any, Any, Any]:
    policy = source.choice(("Background", "Foreground", "Orphan"))
    grace = 0 if resource is PODS else None
    request: Coroutine[Any, Any, Any] = client.delete(
        resource, name_of(obj), namespace_of(obj), grace_period_seconds=grace, propagation_policy=policy
    )
    return request


async def _tried(request: Awaitable[Any]) -> None:
    with suppress(StatusError):
        await request


async def _make(client: Any, change: Change, number: int, source: random.Random) -> None:
    """What there is already is patched as often as something new is created."""
    resource = change.resource
    there = [obj for obj in await client_list(client, resource) if name_of(obj) not in ("node-1", "few", "default")]
    if change.path[0] in ("status", "metadata") and there and source.random() < 0.6:
        obj = source.choice(there)
    else:
        obj = deepcopy(BASES[resource])
        if not change.in_status:
            obj = with_change(obj, change)
        obj["metadata"] = {**obj.get("metadata", {}), "name": f"{MINE}-{number}"}
        if resource is CUSTOMRESOURCEDEFINITIONS:
            names = obj["spec"].get("names") or {}
            obj["metadata"]["name"] = f"{names.get('plural')}.{obj['spec'].get('group')}"
        obj = await client.create(resource, {**head(resource), **obj}, "default" if resource.namespaced else "")
        if not change.in_status:
            return
    area = str(change.path[0])
    part = with_change({area: obj[area]} if area in obj else {}, change)[area]
    if area == "status":
        _realistic(part, source)
    else:
        part = {key: part[key] for key in (str(change.path[1]),)}
    subresource = "status" if area == "status" and "status" in resource.subresources else ""
    await client.patch(resource, name_of(obj), {area: part}, namespace_of(obj), subresource=subresource)


def _realistic(status: Object, source: random.Random) -> None:
    """Conditions of types that somebody reads."""
    for condition in status.get("conditions") or ():
        if condition.get("type") in ("x", "", None):
            condition["type"] = source.choice(CONDITIONS)
            condition["status"] = source.choice(("True", "False", condition.get("status") or "Unknown"))
