"""Defaults of the kinds that own Pods, and of those that only stand beside them.

Sources: pkg/apis/apps/v1/defaults.go, pkg/apis/batch/v1/defaults.go, pkg/apis/core/v1/defaults.go
(ReplicationController, LimitRange, PersistentVolumeClaim), pkg/apis/{autoscaling/v2,networking/v1,policy/v1,rbac/v1,
scheduling/v1,storage/v1}/defaults.go.
"""

# check: pure

from collections.abc import Callable
from typing import Any

from lastcall.kube.api.defaults.volumes import source_defaults
from lastcall.kube.api.meta import Object, copy_object

PERCENT = "25%"
HISTORY = 10
PROGRESS_DEADLINE_SECONDS = 600
RBAC_GROUP = "rbac.authorization.k8s.io"

PodSpecDefaults = Callable[[Object], None]


def _template(spec: Object, pod_spec: PodSpecDefaults) -> None:
    template = spec.get("template")
    if template is None:
        return  # of a ReplicationController, whose template is a pointer: validation refuses it
    template.setdefault("metadata", {})
    pod_spec(template.setdefault("spec", {}))


def deployment(obj: Object, pod_spec: PodSpecDefaults) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    strategy = spec.setdefault("strategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = strategy["rollingUpdate"] = strategy.get("rollingUpdate") or {}
        rolling.setdefault("maxUnavailable", PERCENT)
        rolling.setdefault("maxSurge", PERCENT)
    spec.setdefault("revisionHistoryLimit", HISTORY)
    spec.setdefault("progressDeadlineSeconds", PROGRESS_DEADLINE_SECONDS)
    _template(spec, pod_spec)
    obj.setdefault("status", {})


def replica_set(obj: Object, pod_spec: PodSpecDefaults) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    _template(spec, pod_spec)
    obj.setdefault("status", {}).setdefault("replicas", 0)


def replication_controller(obj: Object, pod_spec: PodSpecDefaults) -> None:
    """Take the selector and labels from the template's labels when they are left out."""
    replica_set(obj, pod_spec)
    if (labels := _labels_of_template(obj)) and not obj["spec"].get("selector"):
        obj["spec"]["selector"] = dict(labels)
    take_labels(obj)


def _labels_of_template(obj: Object) -> Object:
    return ((obj["spec"].get("template") or {}).get("metadata") or {}).get("labels") or {}


def take_labels(obj: Object) -> None:
    """Give an object without labels those of its Pods: when it was sent, and when it was read from the store."""
    if (labels := _labels_of_template(obj)) and not (obj.get("metadata") or {}).get("labels"):
        obj.setdefault("metadata", {})["labels"] = dict(labels)


def stateful_set(obj: Object, pod_spec: PodSpecDefaults) -> None:
    spec = obj.setdefault("spec", {})
    if not spec.get("podManagementPolicy"):
        spec["podManagementPolicy"] = "OrderedReady"
    update = spec.setdefault("updateStrategy", {})
    if not update.get("type"):
        update["type"] = "RollingUpdate"
        # Only with the type left out as a whole does the partition become a field of its own.
        update.setdefault("rollingUpdate", {})
    if update["type"] == "RollingUpdate" and update.get("rollingUpdate") is not None:
        update["rollingUpdate"].setdefault("partition", 0)
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    for key in ("whenDeleted", "whenScaled"):
        if not retention.get(key):
            retention[key] = "Retain"
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", HISTORY)
    _template(spec, pod_spec)
    for claim in spec.get("volumeClaimTemplates") or ():
        claim.update(apiVersion="v1", kind="PersistentVolumeClaim")  # whatever was sent: encoding writes them
        persistent_volume_claim(claim)
    status = obj.setdefault("status", {})
    status.setdefault("replicas", 0)
    status.setdefault("availableReplicas", 0)


TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


_OF_AUTOSCALERS = tuple(
    f"autoscaling.alpha.kubernetes.io/{name}" for name in ("metrics", "current-metrics", "conditions", "behavior")
)


def metadata_alone(obj: Object) -> Object:
    """Return the metadata as forms without the rest of the object have it.

    They lack the annotations that `apps/v1` makes of a DaemonSet's template generation, and `autoscaling/v1` of what it
    has no field for.

    Source: pkg/apis/apps/v1/conversion.go:Convert_apps_DaemonSet_To_v1_DaemonSet, pkg/apis/autoscaling/v1/conversion.go
    """
    meta: Object = obj.get("metadata") or {}
    annotations = meta.get("annotations") or {}
    made = _OF_AUTOSCALERS if obj.get("apiVersion") == "autoscaling/v1" else (TEMPLATE_GENERATION,)
    if not any(name in annotations for name in made):
        return meta
    left = {name: value for name, value in annotations.items() if name not in made}
    rest = {name: value for name, value in meta.items() if name != "annotations"}
    return {**rest, "annotations": left} if left else rest


def daemon_set(obj: Object, pod_spec: PodSpecDefaults) -> None:
    meta = obj.setdefault("metadata", {})
    # The number of template generations, a field once, is an annotation that the client writes.
    meta["annotations"] = {TEMPLATE_GENERATION: "0", **(meta.get("annotations") or {})}
    spec = obj.setdefault("spec", {})
    update = spec.setdefault("updateStrategy", {})
    if not update.get("type"):
        update["type"] = "RollingUpdate"
    if update["type"] == "RollingUpdate":
        rolling = update["rollingUpdate"] = update.get("rollingUpdate") or {}
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", HISTORY)
    _template(spec, pod_spec)
    status = obj.setdefault("status", {})
    for key in ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"):
        status.setdefault(key, 0)


def job_spec(spec: Object, pod_spec: PodSpecDefaults) -> None:
    """Set the defaults of a Job's spec; a CronJob's template gets only those of its Pods."""
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = spec["parallelism"] = 1
    if spec.get("parallelism") is None:
        spec["parallelism"] = 1
    if spec.get("backoffLimit") is None:
        # With a limit for each index the whole Job has none.
        spec["backoffLimit"] = 6 if spec.get("backoffLimitPerIndex") is None else 2**31 - 1
    if not spec.get("completionMode"):
        spec["completionMode"] = "NonIndexed"
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    if not spec.get("podReplacementPolicy"):
        spec["podReplacementPolicy"] = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
    _failure_policy(spec)
    _template(spec, pod_spec)


def _failure_policy(spec: Object) -> None:
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            if not pattern.get("status"):
                pattern["status"] = "True"


def job(obj: Object, pod_spec: PodSpecDefaults) -> None:
    job_spec(obj.setdefault("spec", {}), pod_spec)
    take_labels(obj)
    obj.setdefault("status", {})


def cron_job(obj: Object, pod_spec: PodSpecDefaults) -> None:
    spec = obj.setdefault("spec", {})
    if not spec.get("concurrencyPolicy"):
        spec["concurrencyPolicy"] = "Allow"
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    template = spec.setdefault("jobTemplate", {})
    template.setdefault("metadata", {})
    job = template.setdefault("spec", {})
    _failure_policy(job)
    _template(job, pod_spec)
    obj.setdefault("status", {})


def pod_template(obj: Object, pod_spec: PodSpecDefaults) -> None:
    _template(obj, pod_spec)


def pod_disruption_budget(obj: Object) -> None:
    obj.setdefault("spec", {})
    status = obj.setdefault("status", {})
    for key in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        status.setdefault(key, 0)


_ALL_AT_ONCE = {"type": "Percent", "value": 100, "periodSeconds": 15}
_SCALING: dict[str, Object] = {
    "scaleUp": {
        "stabilizationWindowSeconds": 0, "selectPolicy": "Max",
        "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}, _ALL_AT_ONCE],
    },
    "scaleDown": {"selectPolicy": "Max", "policies": [_ALL_AT_ONCE]},
}  # fmt: skip
"""What behavior is unless it says otherwise, where there is any. (`GenerateHPAScaleUpRules`, `…ScaleDownRules`)"""


def horizontal_pod_autoscaler(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    if (behavior := spec.get("behavior")) is not None:
        for key, rules in _SCALING.items():
            behavior[key] = copy_object(rules) | (behavior.get(key) or {})
    status = obj.setdefault("status", {})
    status.setdefault("desiredReplicas", 0)
    status.setdefault("currentMetrics", None)


def priority_class(obj: Object) -> None:
    obj.setdefault("value", 0)
    if not obj.get("preemptionPolicy"):
        obj["preemptionPolicy"] = "PreemptLowerPriority"


def network_policy(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("podSelector", {})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for rule in [*(spec.get("ingress") or ()), *(spec.get("egress") or ())]:
        for port in rule.get("ports") or ():
            port.setdefault("protocol", "TCP")


def ingress(obj: Object) -> None:
    """Set the group of a backend's resource, which is always written (core/v1/types.go:TypedLocalObjectReference)."""
    spec = obj.setdefault("spec", {})
    paths = [path for rule in spec.get("rules") or () for path in (rule.get("http") or {}).get("paths") or ()]
    for backend in (spec.get("defaultBackend"), *(path.get("backend") for path in paths)):
        if backend and backend.get("resource") is not None:
            backend["resource"].setdefault("apiGroup", None)
    obj.setdefault("status", {}).setdefault("loadBalancer", {})


def ingress_class(obj: Object) -> None:
    """Set the scope of the parameters. Source: pkg/apis/networking/v1/defaults.go:SetDefaults_IngressClass."""
    parameters = (obj.get("spec") or {}).get("parameters")
    if parameters is not None:
        parameters.setdefault("scope", "Cluster")


def persistent_volume_claim(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    if not spec.get("volumeMode"):
        spec["volumeMode"] = "Filesystem"
    obj.setdefault("status", {}).setdefault("phase", "Pending")


def persistent_volume(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    if not spec.get("persistentVolumeReclaimPolicy"):
        spec["persistentVolumeReclaimPolicy"] = "Retain"
    if not spec.get("volumeMode"):
        spec["volumeMode"] = "Filesystem"
    source_defaults(spec)
    obj.setdefault("status", {}).setdefault("phase", "Pending")


def volume_attachment(obj: Object) -> None:
    source_defaults(((obj.get("spec") or {}).get("source") or {}).get("inlineVolumeSpec") or {})


def storage_class(obj: Object) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def resource_quota(obj: Object) -> None:
    obj.setdefault("spec", {})
    obj.setdefault("status", {})


def limit_range(obj: Object) -> None:
    """Fill a missing `default` from a container's `max`, and a missing `defaultRequest` from the `default`."""
    for item in (obj.setdefault("spec", {})).get("limits") or ():
        if item.get("type") != "Container":
            continue
        default = {**(item.get("max") or {}), **(item.get("default") or {})}
        request = {**(item.get("min") or {}), **default, **(item.get("defaultRequest") or {})}
        if default:
            item["default"] = default
        if request:
            item["defaultRequest"] = request


def role_binding(obj: Object) -> None:
    """Set the groups of the roleRef and of users and groups; a ServiceAccount has none."""
    reference: Any = obj.get("roleRef")
    if isinstance(reference, dict) and not reference.get("apiGroup"):
        reference["apiGroup"] = RBAC_GROUP
    for subject in obj.get("subjects") or ():
        if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
            subject["apiGroup"] = RBAC_GROUP


def endpoints(obj: Object) -> None:
    for subset in obj.get("subsets") or ():
        for port in subset.get("ports") or ():
            port.setdefault("protocol", "TCP")
