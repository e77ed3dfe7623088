"""Table rows of the kinds that own Pods, and of those that only stand beside them.

Source: pkg/printers/internalversion/printers.go.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from lastcall.kube.api.meta import Object, labels_of, name_of
from lastcall.kube.api.pods.spec import get_condition
from lastcall.kube.api.quantity import parse_quantity
from lastcall.kube.api.selectors import selector_of_expressions
from lastcall.kube.api.table.text import NONE, UNKNOWN, UNSET, age, created, format_labels, human_duration, since
from lastcall.kube.api.text.times import parse_rfc3339

_CONTAINERS_SHOWN = ("Containers*", "Images*")


def _text_of(selector: Object | None) -> str:
    """As text, or what Kubernetes shows for one that cannot be read. (`FormatLabelSelector`)"""
    try:
        return str(selector_of_expressions(selector))
    except ValueError:
        return "<error>"


def _containers(obj: Object) -> list[str]:
    """The names and images of the template's containers."""
    template = (obj.get("spec") or {}).get("template") or {}
    return _names_and_images(template)


def _names_and_images(template: Object) -> list[str]:
    containers = (template.get("spec") or {}).get("containers") or ()
    return [",".join(str(each.get(key, "")) for each in containers) for key in ("name", "image")]


def _selector(obj: Object) -> str:
    """As `metav1.FormatLabelSelector` prints it."""
    text = _text_of((obj.get("spec") or {}).get("selector"))
    return text or NONE


def _status(obj: Object, key: str) -> int:
    return int((obj.get("status") or {}).get(key) or 0)


def _replicas(obj: Object) -> int:
    return int((obj.get("spec") or {}).get("replicas") or 0)


def deployment(obj: Object, now: datetime) -> list[Any]:
    ready = f"{_status(obj, 'readyReplicas')}/{_replicas(obj)}"
    counts = [_status(obj, "updatedReplicas"), _status(obj, "availableReplicas")]
    selector = _selector(obj) if obj.get("spec") else ""
    return [name_of(obj), ready, *counts, age(obj, now), *_containers(obj), selector]


def replica_set(obj: Object, now: datetime) -> list[Any]:
    counts = [_replicas(obj), _status(obj, "replicas"), _status(obj, "readyReplicas")]
    return [name_of(obj), *counts, age(obj, now), *_containers(obj), _selector(obj)]


def replication_controller(obj: Object, now: datetime) -> list[Any]:
    counts = [_replicas(obj), _status(obj, "replicas"), _status(obj, "readyReplicas")]
    selector = format_labels((obj.get("spec") or {}).get("selector"))
    return [name_of(obj), *counts, age(obj, now), *_containers(obj), selector]


def stateful_set(obj: Object, now: datetime) -> list[Any]:
    ready = f"{_status(obj, 'readyReplicas')}/{_replicas(obj)}"
    return [name_of(obj), ready, age(obj, now), *_containers(obj)]


def daemon_set(obj: Object, now: datetime) -> list[Any]:
    keys = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled",
            "numberAvailable")  # fmt: skip
    template = ((obj.get("spec") or {}).get("template") or {}).get("spec") or {}
    shown = [format_labels(template.get("nodeSelector")), age(obj, now)]
    return [name_of(obj), *(_status(obj, key) for key in keys), *shown, *_containers(obj), _selector(obj)]


def job(obj: Object, now: datetime) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    if (wanted := spec.get("completions")) is not None:
        completions = f"{_status(obj, 'succeeded')}/{wanted}"
    else:
        parallelism = spec.get("parallelism") or 0
        more = f" of {parallelism}" if parallelism > 1 else ""
        completions = f"{_status(obj, 'succeeded')}/1{more}"
    duration = ""
    if (started := status.get("startTime")) is not None:
        ended = status.get("completionTime")
        duration = human_duration((parse_rfc3339(ended) if ended else now) - parse_rfc3339(started))
    return [name_of(obj), job_status(obj), completions, duration, age(obj, now), *_containers(obj), _selector(obj)]


def job_status(obj: Object) -> str:
    """Return the first of the conditions that holds; a Job under way is Running, or Terminating."""
    status = obj.get("status") or {}
    for kind in ("Complete", "Failed"):
        if _holds(status, kind):
            return kind
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for kind in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if _holds(status, kind):
            return kind
    return "Running"


def _holds(status: Object, kind: str) -> bool:
    condition = get_condition(status, kind)
    return condition is not None and condition.get("status") == "True"


def cron_job(obj: Object, now: datetime) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    last = since(status["lastScheduleTime"], now) if status.get("lastScheduleTime") else NONE
    suspended = UNSET if spec.get("suspend") is None else str(bool(spec["suspend"]))
    template = (spec.get("jobTemplate") or {}).get("spec") or {}
    shown = [*_names_and_images(template.get("template") or {}), _text_of(template.get("selector"))]
    return [
        name_of(obj),
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        suspended,
        len(status.get("active") or ()),
        last,
        age(obj, now),
        *shown[:2],
        shown[2] or NONE,
    ]


def pod_disruption_budget(obj: Object, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    budget = ["N/A" if spec.get(key) is None else str(spec[key]) for key in ("minAvailable", "maxUnavailable")]
    return [name_of(obj), *budget, _status(obj, "disruptionsAllowed"), age(obj, now)]


def horizontal_pod_autoscaler(obj: Object, now: datetime) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    target = spec.get("scaleTargetRef") or {}
    least = "<unset>" if spec.get("minReplicas") is None else str(spec["minReplicas"])
    return [
        name_of(obj),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _metrics(
            _of_cpu(spec, "targetCPU", "target") or spec.get("metrics") or (),
            _of_cpu(status, "currentCPU", "current") or status.get("currentMetrics") or (),
        ),
        least,
        spec.get("maxReplicas") or 0,
        status.get("currentReplicas") or 0,
        age(obj, now),
    ]


def _of_cpu(part: Object, prefix: str, key: str) -> list[Object]:
    """What autoscaling/v1 says of the CPU, as a metric."""
    share = part.get(f"{prefix}UtilizationPercentage")
    resource = {"name": "cpu", key: {"averageUtilization": share}}
    return [] if share is None else [{"type": "Resource", "resource": resource}]


def _metrics(metrics: Iterable[Object], current: Iterable[Object]) -> str:
    """`cpu: <unknown>/80%`: what was measured beside what is wanted, the first two."""
    values = list(current)
    texts = []
    for index, metric in enumerate(metrics):
        kind = metric.get("type", "")
        key = kind[:1].lower() + kind[1:]
        source = metric.get(key) or {}
        seen = ((values[index].get(key) or {}).get("current") or {}) if index < len(values) else {}
        text = _metric(source.get("target") or {}, seen)
        if kind in ("Object", "External") and (source.get("target") or {}).get("averageValue"):
            text += " (avg)"
        named = kind in ("Resource", "ContainerResource")
        texts.append(f"{source.get('name')}: {text}" if named else text)
    more = len(texts) - 2
    return (", ".join(texts[:2]) or NONE) + (f" + {more} more..." if more > 0 else "")


def _metric(target: Object, seen: Object) -> str:
    if (wanted := target.get("averageUtilization")) is not None:
        measured = seen.get("averageUtilization")
        return f"{UNKNOWN if measured is None else f'{measured}%'}/{wanted}%"
    measured = seen.get("averageValue") or seen.get("value") or UNKNOWN
    return f"{measured}/{target.get('averageValue') or target.get('value')}"


def controller_revision(obj: Object, now: datetime) -> list[Any]:
    owner = next((each for each in obj["metadata"].get("ownerReferences") or () if each.get("controller")), None)
    shown = NONE
    if owner is not None:
        group = owner["apiVersion"].rpartition("/")[0]
        shown = f"{owner['kind'].lower()}{f'.{group}' if group else ''}/{owner['name']}"
    return [name_of(obj), shown, obj.get("revision") or 0, age(obj, now)]


def pod_template(obj: Object, now: datetime) -> list[Any]:
    template = obj.get("template") or {}
    return [name_of(obj), *_names_and_images(template), format_labels(labels_of(template))]


def endpoints(obj: Object, now: datetime) -> list[Any]:
    shown: list[str] = []
    for subset in obj.get("subsets") or ():
        addresses = [each.get("ip", "") for each in subset.get("addresses") or ()]
        ports = subset.get("ports")
        shown += addresses if not ports else [f"{ip}:{port.get('port')}" for port in ports for ip in addresses]
    more = len(shown) - 3
    text = ",".join(shown[:3]) + (f" + {more} more..." if more > 0 else "")
    return [name_of(obj), text or NONE, age(obj, now)]


def priority_class(obj: Object, now: datetime) -> list[Any]:
    shown = [bool(obj.get("globalDefault")), age(obj, now), obj.get("preemptionPolicy") or ""]
    return [name_of(obj), obj.get("value") or 0, *shown]


def ingress(obj: Object, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    hosts = [rule["host"] for rule in spec.get("rules") or () if rule.get("host")]
    shown = ",".join(hosts[:3]) + (f" + {len(hosts) - 3} more..." if len(hosts) > 3 else "")
    entries = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    address = ",".join(each.get("ip") or each.get("hostname") or "" for each in entries)
    ports = "80, 443" if spec.get("tls") else "80"
    return [name_of(obj), spec.get("ingressClassName") or NONE, shown or "*", address, ports, age(obj, now)]


def ingress_class(obj: Object, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    parameters = spec.get("parameters")
    shown = NONE
    if parameters:
        group = parameters.get("apiGroup")
        shown = f"{parameters.get('kind')}{f'.{group}' if group else ''}/{parameters.get('name')}"
    return [name_of(obj), spec.get("controller", ""), shown, age(obj, now)]


def network_policy(obj: Object, now: datetime) -> list[Any]:
    selector = _text_of((obj.get("spec") or {}).get("podSelector") or {})
    return [name_of(obj), selector or NONE, age(obj, now)]


def created_at(obj: Object, now: datetime) -> list[Any]:
    """Return the row with the time itself, for Roles and LimitRanges."""
    return [name_of(obj), created(obj)]


def role_binding(obj: Object, now: datetime) -> list[Any]:
    reference = obj.get("roleRef") or {}
    users, groups, accounts = [], [], []
    for subject in obj.get("subjects") or ():
        if subject.get("kind") == "User":
            users.append(subject.get("name", ""))
        elif subject.get("kind") == "Group":
            groups.append(subject.get("name", ""))
        else:
            accounts.append(f"{subject.get('namespace', '')}/{subject.get('name', '')}")
    role = f"{reference.get('kind')}/{reference.get('name')}"
    return [name_of(obj), role, age(obj, now), *(", ".join(names) for names in (users, groups, accounts))]


def resource_quota(obj: Object, now: datetime) -> list[Any]:
    status = obj.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    request: list[str] = []
    limit: list[str] = []
    for name in sorted(hard):
        text = f"{name}: {used.get(name, '0')}/{hard[name]}"
        (limit if "limits" in name else request).append(text)
    return [name_of(obj), ", ".join(request), ", ".join(limit), age(obj, now)]


_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def _is_default(obj: Object) -> bool:
    return (obj["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true"


def with_one_default(classes: Sequence[Object]) -> list[Object]:
    """Return the StorageClasses as 1.37 prints them: of several defaults the one that claims get (kubernetes#135964).

    That is the newest, and of several the first by name. (pkg/volume/util/storageclass.go:GetDefaultClass)
    """
    defaults = sorted((each for each in classes if _is_default(each)), key=name_of)
    newest = max((each["metadata"].get("creationTimestamp") or "" for each in defaults), default="")
    chosen = [each for each in defaults if (each["metadata"].get("creationTimestamp") or "") == newest][:1]

    def without(obj: Object) -> Object:
        annotations = {**obj["metadata"]["annotations"], _DEFAULT_CLASS: "false"}
        return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}

    return [without(each) if _is_default(each) and each not in chosen else each for each in classes]


def storage_class(obj: Object, now: datetime) -> list[Any]:
    name = name_of(obj) + (" (default)" if _is_default(obj) else "")
    shown = [obj.get("provisioner", ""), obj.get("reclaimPolicy", "Delete"), obj.get("volumeBindingMode", "Immediate")]
    return [name, *shown, bool(obj.get("allowVolumeExpansion")), age(obj, now)]


_ACCESS = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _access_modes(modes: Iterable[str] | None) -> str:
    return ",".join(short for name, short in _ACCESS.items() if name in (modes or ()))


def persistent_volume_claim(obj: Object, now: datetime) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    phase = "Terminating" if obj["metadata"].get("deletionTimestamp") else status.get("phase", "")
    volume = spec.get("volumeName", "")
    capacity = (status.get("capacity") or {}).get("storage", "0") if volume else ""
    modes = _access_modes(status.get("accessModes")) if volume else ""
    shown = [phase, volume, capacity, modes, spec.get("storageClassName") or "", UNSET]
    return [name_of(obj), *shown, age(obj, now), spec.get("volumeMode") or UNSET]


def persistent_volume(obj: Object, now: datetime) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    claim = spec.get("claimRef")
    bound = f"{claim.get('namespace')}/{claim.get('name')}" if claim else ""
    phase = "Terminating" if obj["metadata"].get("deletionTimestamp") else status.get("phase", "")
    return [
        name_of(obj),
        (spec.get("capacity") or {}).get("storage", "0"),
        _access_modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        phase,
        bound,
        spec.get("storageClassName") or "",
        UNSET,
        status.get("reason", ""),
        age(obj, now),
        spec.get("volumeMode") or UNSET,
    ]


def runtime_class(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), obj.get("handler", ""), age(obj, now)]


def scale(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), _replicas(obj), _status(obj, "replicas"), age(obj, now)]


def api_service(obj: Object, now: datetime) -> list[Any]:
    """Return the row. (kube-aggregator pkg/registry/apiservice/etcd/etcd.go)"""
    reference = (obj.get("spec") or {}).get("service")
    conditions = (obj.get("status") or {}).get("conditions") or ()
    available = next((each for each in conditions if each.get("type") == "Available"), {"status": "Unknown"})
    shown = str(available.get("status", ""))
    if shown != "True" and available.get("reason"):
        shown += f" ({available['reason']})"
    service = "Local" if reference is None else f"{reference.get('namespace', '')}/{reference.get('name', '')}"
    return [name_of(obj), service, shown, age(obj, now)]


def metrics(obj: Object, now: datetime) -> list[Any]:
    """Return the row. (metrics-server pkg/api/table.go)"""
    parts = [each.get("usage") or {} for each in obj["containers"]] if "containers" in obj else [obj.get("usage") or {}]
    amounts = [[parse_quantity(each.get(name) or 0) for each in parts] for name in ("cpu", "memory")]
    shown = [str(sum(each[1:], start=each[0])) if each else "0" for each in amounts]
    return [name_of(obj), *shown, obj.get("window", "")]


_TEMPLATE = (*_CONTAINERS_SHOWN, "Selector*")
_REPLICAS = ("Name", "Desired", "Current", "Ready", "Age", *_TEMPLATE)

ROWS = {
    ("apps", "deployments"): (("Name", "Ready", "Up-to-date", "Available", "Age", *_TEMPLATE), deployment),
    ("apps", "replicasets"): (_REPLICAS, replica_set),
    ("", "replicationcontrollers"): (_REPLICAS, replication_controller),
    ("apps", "statefulsets"): (("Name", "Ready", "Age", *_CONTAINERS_SHOWN), stateful_set),
    ("apps", "daemonsets"): (
        ("Name", "Desired", "Current", "Ready", "Up-to-date", "Available", "Node Selector", "Age", *_TEMPLATE),
        daemon_set,
    ),
    ("apps", "controllerrevisions"): (("Name", "Controller", "Revision", "Age"), controller_revision),
    ("batch", "jobs"): (("Name", "Status", "Completions", "Duration", "Age", *_TEMPLATE), job),
    ("batch", "cronjobs"): (
        ("Name", "Schedule", "Timezone", "Suspend", "Active", "Last Schedule", "Age", *_TEMPLATE),
        cron_job,
    ),
    ("policy", "poddisruptionbudgets"): (
        ("Name", "Min Available", "Max Unavailable", "Allowed Disruptions", "Age"),
        pod_disruption_budget,
    ),
    ("autoscaling", "horizontalpodautoscalers"): (
        ("Name", "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"),
        horizontal_pod_autoscaler,
    ),
    ("autoscaling", "scales"): (("Name", "Desired", "Available", "Age"), scale),
    ("", "podtemplates"): (("Name", "Containers", "Images", "Pod Labels"), pod_template),
    ("", "endpoints"): (("Name", "Endpoints", "Age"), endpoints),
    ("scheduling.k8s.io", "priorityclasses"): (
        ("Name", "Value", "Global-Default", "Age", "PreemptionPolicy"),
        priority_class,
    ),
    ("networking.k8s.io", "ingresses"): (("Name", "Class", "Hosts", "Address", "Ports", "Age"), ingress),
    ("networking.k8s.io", "ingressclasses"): (("Name", "Controller", "Parameters", "Age"), ingress_class),
    ("networking.k8s.io", "networkpolicies"): (("Name", "Pod-Selector", "Age"), network_policy),
    ("rbac.authorization.k8s.io", "roles"): (("Name", "Created At"), created_at),
    ("rbac.authorization.k8s.io", "clusterroles"): (("Name", "Created At"), created_at),
    ("", "limitranges"): (("Name", "Created At"), created_at),
    ("rbac.authorization.k8s.io", "rolebindings"): (
        ("Name", "Role", "Age", "Users*", "Groups*", "ServiceAccounts*"),
        role_binding,
    ),
    ("rbac.authorization.k8s.io", "clusterrolebindings"): (
        ("Name", "Role", "Age", "Users*", "Groups*", "ServiceAccounts*"),
        role_binding,
    ),
    ("", "resourcequotas"): (("Name", "Request", "Limit", "Age"), resource_quota),
    ("storage.k8s.io", "storageclasses"): (
        ("Name", "Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age"),
        storage_class,
    ),
    ("apiregistration.k8s.io", "apiservices"): (("Name", "Service", "Available", "Age"), api_service),
    ("metrics.k8s.io", "nodes"): (("Name", "cpu", "memory", "window"), metrics),
    ("metrics.k8s.io", "pods"): (("Name", "cpu", "memory", "window"), metrics),
    ("node.k8s.io", "runtimeclasses"): (("Name", "Handler", "Age"), runtime_class),
    ("", "persistentvolumeclaims"): (
        ("Name", "Status", "Volume", "Capacity", "Access Modes", "StorageClass", "VolumeAttributesClass", "Age",
         "VolumeMode*"),
        persistent_volume_claim,
    ),
    ("", "persistentvolumes"): (
        ("Name", "Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim", "StorageClass",
         "VolumeAttributesClass", "Reason", "Age", "VolumeMode*"),
        persistent_volume,
    ),
}  # fmt: skip
"""(columns, row) by group and plural."""
