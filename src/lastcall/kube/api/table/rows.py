"""Server-side tables: the rows that `kubectl get` prints.

Source: pkg/printers/internalversion/printers.go, apimachinery pkg/util/duration/duration.go.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Literal

from lastcall.kube.api.custom.kinds import CustomResource
from lastcall.kube.api.defaults.workloads import metadata_alone
from lastcall.kube.api.meta import Object, labels_of, name_of
from lastcall.kube.api.resources import Resource
from lastcall.kube.api.table.cluster import ROWS as CLUSTER_ROWS
from lastcall.kube.api.table.custom import custom_columns, custom_row
from lastcall.kube.api.table.pod import pod_conditions, pod_row
from lastcall.kube.api.table.text import NONE, UNKNOWN, age, created, format_labels, listed, since
from lastcall.kube.api.table.workloads import ROWS, with_one_default
from lastcall.world.dataclass import dataclass

IncludeObject = Literal["None", "Metadata", "Object"]
Row = Callable[[Object, datetime], list[Any]]


@dataclass(frozen=True, slots=True)
class Printer:
    """`columns` are names; a trailing `*` is a wide column (priority 1)."""

    columns: tuple[str, ...]
    row: Row
    conditions: Callable[[Object], list[Object]] | None = None


def _service(service: Object, now: datetime) -> list[Any]:
    spec = service.get("spec") or {}
    return [
        name_of(service),
        spec.get("type", ""),
        spec.get("clusterIP") or (spec.get("clusterIPs") or [NONE])[0],
        _external_ip(service),
        ",".join(_service_port(port) for port in spec.get("ports") or ()) or NONE,
        age(service, now),
        format_labels(spec.get("selector")),
    ]


def _service_port(port: Object) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port')}{node_port}/{port.get('protocol', 'TCP')}"


def _external_ip(service: Object) -> str:
    spec = service.get("spec") or {}
    given = list(spec.get("externalIPs") or ())
    if not spec.get("type"):
        return UNKNOWN
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName") or NONE)
    if spec.get("type") == "LoadBalancer":
        ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
        shown = [entry.get("ip") or entry.get("hostname") or "" for entry in ingress] + given
        return ",".join(shown) or "<pending>"
    return ",".join(given) or NONE


_ROLE = "node-role.kubernetes.io/"


def _node(node: Object, now: datetime) -> list[Any]:
    spec, status = node.get("spec") or {}, node.get("status") or {}
    info = status.get("nodeInfo") or {}
    states = [
        "Ready" if condition.get("status") == "True" else "NotReady"
        for condition in status.get("conditions") or ()
        if condition.get("type") == "Ready"
    ] or ["Unknown"]
    if spec.get("unschedulable"):
        states.append("SchedulingDisabled")
    labels = labels_of(node)
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE) and key != _ROLE}
    roles |= {labels["kubernetes.io/role"]} if labels.get("kubernetes.io/role") else set()
    addresses = {entry.get("type"): entry.get("address") for entry in reversed(status.get("addresses") or [])}
    kernel, architecture = info.get("kernelVersion"), info.get("architecture")
    return [
        name_of(node),
        ",".join(states),
        ",".join(sorted(roles)) or NONE,
        age(node, now),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP") or NONE,
        addresses.get("ExternalIP") or NONE,
        info.get("osImage") or UNKNOWN,
        (f"{kernel} ({architecture})" if architecture else kernel) or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _event(event: Object, now: datetime) -> list[Any]:
    """Of either API: core and events.k8s.io objects have the same facts under two names."""
    event_time = since(event.get("eventTime"), now)
    first = event.get("firstTimestamp") or event.get("deprecatedFirstTimestamp")
    last = event.get("lastTimestamp") or event.get("deprecatedLastTimestamp")
    first_seen = since(first, now) if first else event_time
    last_seen = since(last, now) if last else first_seen
    count = event.get("count") or event.get("deprecatedCount") or 1
    series = event.get("series")
    if series:
        last_seen, count = since(series.get("lastObservedTime"), now), series.get("count", count)
    about = event.get("involvedObject") or event.get("regarding") or {}
    target = about.get("kind", "").lower()
    source = event.get("source") or event.get("deprecatedSource") or {}
    reporter = event.get("reportingComponent") or event.get("reportingController")
    component, host = source.get("component") or reporter, source.get("host") or event.get("reportingInstance")
    return [
        last_seen,
        event.get("type", ""),
        event.get("reason", ""),
        f"{target}/{about['name']}" if about.get("name") else target,
        about.get("fieldPath", ""),
        f"{component or ''}, {host}" if host else component or "",
        (event.get("message") or event.get("note") or "").strip(),
        first_seen,
        count,
        name_of(event),
    ]


def _endpoint_slice(endpoint_slice: Object, now: datetime) -> list[Any]:
    ports = [str(port.get("port") or port.get("name") or "*") for port in endpoint_slice.get("ports") or ()]
    addresses = [address for endpoint in endpoint_slice.get("endpoints") or () for address in endpoint["addresses"]]
    kind = endpoint_slice.get("addressType", "")
    return [name_of(endpoint_slice), kind, listed(ports), listed(addresses), age(endpoint_slice, now)]


def _namespace(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), (obj.get("status") or {}).get("phase", ""), age(obj, now)]


def _config_map(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), age(obj, now)]


def _secret(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), obj.get("type", ""), len(obj.get("data") or ()), age(obj, now)]


def _lease(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), (obj.get("spec") or {}).get("holderIdentity") or "", age(obj, now)]


def _name_and_age(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), age(obj, now)]


_EVENT_COLUMNS = ("Last Seen", "Type", "Reason", "Object", "Subobject*", "Source*", "Message", "First Seen*", "Count*",
                  "Name*")  # fmt: skip
_POD_COLUMNS = ("Name", "Ready", "Status", "Restarts", "Age", "IP*", "Node*", "Nominated Node*", "Readiness Gates*")
_NODE_COLUMNS = ("Name", "Status", "Roles", "Age", "Version", "Internal-IP*", "External-IP*", "OS-Image*",
                 "Kernel-Version*", "Container-Runtime*")  # fmt: skip
_SERVICE_COLUMNS = ("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "Selector*")


def definition(obj: Object, now: datetime) -> list[Any]:
    """Return the row of a CustomResourceDefinition, with the versions that are served."""
    spec = obj.get("spec") or {}
    versions = [each.get("name", "") for each in spec.get("versions") or () if each.get("served")]
    name, created = _name_and_creation(obj, now)
    return [name, spec.get("group", ""), spec.get("scope", ""), ",".join(versions), created]


def _name_and_creation(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), created(obj)]


PRINTERS: dict[tuple[str, str], Printer] = {
    ("", "pods"): Printer(_POD_COLUMNS, pod_row, pod_conditions),
    ("apiextensions.k8s.io", "customresourcedefinitions"): Printer(("Name", "Created At"), _name_and_creation),
    ("", "services"): Printer(_SERVICE_COLUMNS, _service),
    ("", "nodes"): Printer(_NODE_COLUMNS, _node),
    ("", "events"): Printer(_EVENT_COLUMNS, _event),
    ("events.k8s.io", "events"): Printer(_EVENT_COLUMNS, _event),
    ("", "namespaces"): Printer(("Name", "Status", "Age"), _namespace),
    ("", "configmaps"): Printer(("Name", "Data", "Age"), _config_map),
    ("", "secrets"): Printer(("Name", "Type", "Data", "Age"), _secret),
    ("", "serviceaccounts"): Printer(("Name", "Age"), _name_and_age),
    ("coordination.k8s.io", "leases"): Printer(("Name", "Holder", "Age"), _lease),
    ("discovery.k8s.io", "endpointslices"): Printer(
        ("Name", "AddressType", "Ports", "Endpoints", "Age"), _endpoint_slice
    ),
    **{kind: Printer(columns, row) for kind, (columns, row) in {**ROWS, **CLUSTER_ROWS}.items()},
}
"""By group and plural; a kind that is not listed has its name and age."""

SINCE_37: dict[tuple[str, str], Printer] = {
    ("apiextensions.k8s.io", "customresourcedefinitions"): Printer(
        ("Name", "Group", "Scope", "Versions", "Created At"), definition
    ),
}
"""The same where 1.37 prints more (kubernetes#131599)."""

_REPLICA_TYPES = dict.fromkeys(("Desired", "Current", "Ready"), "integer")
_CREATED = {"Created At": "date"}
_TYPES: dict[tuple[str, str], dict[str, str]] = {
    ("", "limitranges"): _CREATED,
    ("", "replicationcontrollers"): _REPLICA_TYPES,
    ("apps", "daemonsets"): _REPLICA_TYPES | dict.fromkeys(("Up-to-date", "Available"), "integer"),
    ("apps", "replicasets"): _REPLICA_TYPES,
    ("batch", "cronjobs"): {"Suspend": "boolean", "Active": "integer"},
    ("policy", "poddisruptionbudgets"): {"Allowed Disruptions": "integer"},
    ("rbac.authorization.k8s.io", "clusterroles"): _CREATED,
    ("rbac.authorization.k8s.io", "roles"): _CREATED,
    ("storage.k8s.io", "csidrivers"): dict.fromkeys(
        ("AttachRequired", "PodInfoOnMount", "StorageCapacity", "RequiresRepublish"), "boolean"
    ),
    ("storage.k8s.io", "csinodes"): {"Drivers": "integer"},
    ("storage.k8s.io", "csistoragecapacities"): _CREATED,
    ("storage.k8s.io", "volumeattachments"): {"Attached": "boolean"},
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"): {"Mutations": "integer"},
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): {"Webhooks": "integer"},
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): {"Validations": "integer"},
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): {"Webhooks": "integer"},
    ("apiextensions.k8s.io", "customresourcedefinitions"): _CREATED,
    ("scheduling.k8s.io", "priorityclasses"): {"Value": "integer", "Global-Default": "boolean"},
}
"""Columns that hold no text."""

_DEFAULT = Printer(("Name", "Age"), _name_and_age)


def _printer(resource: Resource, minor: int) -> Printer:
    key = (resource.group, resource.plural)
    since = SINCE_37.get(key) if minor >= 37 else None
    return since or PRINTERS.get(key, _DEFAULT)


def columns_for(resource: Resource, minor: int) -> list[Object]:
    """Return the `columnDefinitions` of Kubernetes 1.`minor`."""
    if isinstance(resource, CustomResource):
        return custom_columns(resource)
    printer = _printer(resource, minor)
    columns = [_column(name) for name in printer.columns]
    for name, type_ in _TYPES.get((resource.group, resource.plural), {}).items():
        next(each for each in columns if each["name"] == name)["type"] = type_
    if resource.plural == "volumeattachments":
        columns[1]["format"] = "name"
    if (resource.group, resource.plural) == ("autoscaling", "scales"):
        # Made by the printer of custom resources, which has types of its own.
        numbers = ("Desired", "Available")
        return [{**each, "type": "integer" if each["name"] in numbers else "string", "format": ""} for each in columns]
    return columns


def _column(name: str) -> Object:
    shown = name.removesuffix("*")
    return {
        "name": shown,
        "type": "string",
        "format": "name" if shown == "Name" else "",
        "description": "",
        "priority": 1 if name.endswith("*") else 0,
    }


def rows_for(
    resource: Resource,
    objects: Sequence[Object],
    now: datetime,
    include_object: IncludeObject = "Metadata",
    *,
    minor: int,
) -> list[Object]:
    """Return the rows of Kubernetes 1.`minor`."""
    printer = _printer(resource, minor)
    if isinstance(resource, CustomResource):
        printer = Printer((), lambda obj, moment: custom_row(resource, obj, moment))
    shown = with_one_default(objects) if minor >= 37 and resource.plural == "storageclasses" else objects
    rows: list[Object] = []
    for obj, printed in zip(objects, shown, strict=True):
        row: Object = {"cells": printer.row(printed, now)}
        conditions = printer.conditions(obj) if printer.conditions else []
        if conditions:
            row["conditions"] = conditions
        if include_object == "Object":
            row["object"] = {**obj, "kind": resource.kind, "apiVersion": resource.api_version}
        elif include_object == "Metadata":
            row["object"] = {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata_alone(obj),
            }
        else:
            row["object"] = None
        rows.append(row)
    return rows


def table_for(
    resource: Resource,
    objects: Sequence[Object],
    now: datetime,
    include_object: IncludeObject = "Metadata",
    metadata: Object | None = None,
    *,
    minor: int,
) -> Object:
    """Return a `meta.k8s.io/v1` Table of Kubernetes 1.`minor`.

    `metadata` is that of the list (resourceVersion, continue, remainingItemCount).
    """
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata or {},
        "columnDefinitions": columns_for(resource, minor),
        "rows": rows_for(resource, objects, now, include_object, minor=minor),
    }
