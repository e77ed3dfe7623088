"""The kinds that own Pods: what a request may not set, and when the generation counts.

Sources: pkg/registry/apps/*/strategy.go, pkg/registry/batch/{job,cronjob}/strategy.go,
pkg/registry/core/replicationcontroller/strategy.go, pkg/registry/policy/poddisruptionbudget/strategy.go.
"""

from collections.abc import Callable
from typing import Any

from lastcall.kube.api import resources as kinds
from lastcall.kube.api.defaults.workloads import TEMPLATE_GENERATION, take_labels
from lastcall.kube.api.errors import bad_request
from lastcall.kube.api.meta import Object, uid_of
from lastcall.kube.api.text.numbers import INT64_MAX, NumberError, int_of, parse_int
from lastcall.kube.apiserver.deletion import DeleteOptions, GarbageCollectionPolicy
from lastcall.kube.apiserver.strategies.base import Strategy, Undo
from lastcall.kube.apiserver.wire.context import RequestContext

CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
JOB_NAME = "batch.kubernetes.io/job-name"
LEGACY_CONTROLLER_UID = "controller-uid"
LEGACY_JOB_NAME = "job-name"

JOB_PODS_PRESERVED = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or "
    "set propagationPolicy=Orphan to suppress this warning"
)


class WorkloadStrategy(Strategy):
    """A kind with spec and status whose status a create may not set. `empty_status` is what a new one has."""

    tracks_generation = True

    @staticmethod
    def empty_status() -> Object:
        return {}

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = self.empty_status()


class ReplicaSetStrategy(WorkloadStrategy):
    @staticmethod
    def empty_status() -> Object:
        return {"replicas": 0}


class ReplicationControllerStrategy(ReplicaSetStrategy):
    """Its dependents outlive it unless the caller says otherwise."""

    garbage_collection = GarbageCollectionPolicy.ORPHAN_DEPENDENTS


class DeploymentStrategy(WorkloadStrategy):
    def prepare_for_update(self, new: Object, old: Object, subresource: str) -> None:
        super().prepare_for_update(new, old, subresource)
        if subresource == "status":
            self.keep(new["metadata"], old["metadata"], "labels")

    def spec_changed(self, new: Object, old: Object) -> bool:
        """Count annotations too: the controller copies them to its ReplicaSets."""
        return super().spec_changed(new, old) or (
            (new["metadata"].get("annotations") or {}) != (old["metadata"].get("annotations") or {})
        )


class StatefulSetStrategy(WorkloadStrategy):
    @staticmethod
    def empty_status() -> Object:
        return {"replicas": 0, "availableReplicas": 0}


class DaemonSetStrategy(WorkloadStrategy):
    """The template's own generation is an annotation that only the server counts."""

    @staticmethod
    def empty_status() -> Object:
        counts = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
        return dict.fromkeys(counts, 0)

    def prepare_for_create(self, obj: Object) -> None:
        super().prepare_for_create(obj)
        annotations = obj["metadata"].get("annotations") or {}
        number = max(1, _template_generation(annotations))
        obj["metadata"]["annotations"] = {**annotations, TEMPLATE_GENERATION: str(number)}

    def prepare_for_update(self, new: Object, old: Object, subresource: str) -> None:
        super().prepare_for_update(new, old, subresource)
        annotations = new["metadata"].get("annotations") or {}
        _template_generation(annotations)
        number = int_of((old["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION)) or 1
        if not subresource and new["spec"].get("template") != old["spec"].get("template"):
            number = min(number + 1, INT64_MAX)
        new["metadata"]["annotations"] = {**annotations, TEMPLATE_GENERATION: str(number)}


def _template_generation(annotations: Object) -> int:
    """(`Convert_v1_DaemonSet_To_apps_DaemonSet`) Raises 400."""
    try:
        return parse_int(annotations.get(TEMPLATE_GENERATION, "0"))
    except NumberError as error:
        raise bad_request(f'DaemonSet in version "v1" cannot be handled as a DaemonSet: {error}') from None


class JobStrategy(WorkloadStrategy):
    """Selector and labels come from the uid. Its Pods outlive it unless the caller says otherwise."""

    garbage_collection = GarbageCollectionPolicy.ORPHAN_DEPENDENTS

    def delete_warning(self, options: DeleteOptions) -> str:
        said = options.propagation_policy is not None or options.orphan_dependents is not None
        return "" if said else JOB_PODS_PRESERVED

    def prepare_for_create(self, obj: Object) -> None:
        super().prepare_for_create(obj)
        spec = obj["spec"]
        if spec.get("manualSelector"):
            return
        meta = spec["template"].setdefault("metadata", {})
        uid, name = uid_of(obj), obj["metadata"].get("name", "")
        made = {CONTROLLER_UID: uid, JOB_NAME: name, LEGACY_CONTROLLER_UID: uid, LEGACY_JOB_NAME: name}
        # A label that the user gave stays, and validation then refuses it.
        meta["labels"] = {**made, **(meta.get("labels") or {})}
        selector = spec["selector"] = spec.get("selector") or {}
        selector["matchLabels"] = {CONTROLLER_UID: uid, **(selector.get("matchLabels") or {})}

    def begin_create(self, obj: Object, context: RequestContext) -> Undo:
        take_labels(obj)
        return super().begin_create(obj, context)

    def begin_update(self, new: Object, old: Object, context: RequestContext) -> Undo:
        take_labels(new)
        return super().begin_update(new, old, context)


class CronJobStrategy(WorkloadStrategy):
    """pkg/registry/batch/cronjob."""


class PodDisruptionBudgetStrategy(WorkloadStrategy):
    """Two evictions must not count one allowance twice, so updates name their version."""

    allow_unconditional_update = False

    @staticmethod
    def empty_status() -> Object:
        return dict.fromkeys(("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"), 0)


class ControllerRevisionStrategy(Strategy):
    """pkg/registry/apps/controllerrevision."""

    tracks_generation = False


class TemplateStrategy(Strategy):
    """pkg/registry/core/podtemplate."""

    tracks_generation = True
    returns_deleted_object = True

    def spec_changed(self, new: Object, old: Object) -> bool:
        return bool(new.get("template") != old.get("template"))


class StoredStrategy(Strategy):
    """A kind that nothing here acts on; `status` is what a new one has, when it has one."""

    def __init__(self, *arguments: Any, status: Object | None = None) -> None:
        super().__init__(*arguments)
        self._status = status

    def prepare_for_create(self, obj: Object) -> None:
        if self._status is not None:
            obj["status"] = dict(self._status)


class AccessStrategy(StoredStrategy):
    """pkg/registry/rbac/*/strategy.go: a PUT may create."""

    allow_create_on_update = True


class StoredWithGenerationStrategy(StoredStrategy):
    tracks_generation = True


class AutoscalerStrategy(StoredWithGenerationStrategy):
    """pkg/registry/autoscaling/horizontalpodautoscaler; with a generation since 1.37 (kubernetes#138228)."""

    generation_since = 37


class NetworkPolicyStrategy(StoredWithGenerationStrategy):
    """pkg/registry/networking/networkpolicy."""

    counts_empty = True


class RuntimeClassStrategy(StoredStrategy):
    """pkg/registry/node/runtimeclass: updates name their version, and may create."""

    allow_create_on_update = True
    allow_unconditional_update = False


class CreatingStrategy(StoredStrategy):
    """pkg/registry/core/{endpoint,limitrange}: a PUT may create."""

    allow_create_on_update = True


class LimitRangeStrategy(CreatingStrategy):
    """pkg/registry/core/limitrange: one without a name gets one."""

    def name_new(self, new_name: Callable[[], str]) -> str:
        return new_name()


class PriorityClassStrategy(Strategy):
    """pkg/registry/scheduling/priorityclass: its spec is the object."""

    tracks_generation = True

    def spec_changed(self, new: Object, old: Object) -> bool:
        """Return False: the generation is 1 forever."""
        return False


class ObjectAnsweringStrategy(StoredStrategy):
    """Quotas, volumes and their claims answer a DELETE with the object."""

    returns_deleted_object = True


class VolumeStrategy(ObjectAnsweringStrategy):
    """pkg/registry/core/persistentvolume: its status says since when it is in its phase."""

    def stamp(self, new: Object, old: Object | None, moment: str) -> None:
        if old is None:
            new["status"]["lastPhaseTransitionTime"] = moment
            return
        status, stored = new.get("status") or {}, old.get("status") or {}
        said, before = status.get("lastPhaseTransitionTime"), stored.get("lastPhaseTransitionTime")
        if status.get("phase") != stored.get("phase") and said in (None, before):
            new["status"] = {**status, "lastPhaseTransitionTime": moment}
        elif said is None and before is not None:
            new["status"] = {**status, "lastPhaseTransitionTime": before}


class ClaimStrategy(ObjectAnsweringStrategy):
    """pkg/registry/core/persistentvolumeclaim: `dataSource` and `dataSourceRef` name one source."""

    def prepare_for_create(self, obj: Object) -> None:
        super().prepare_for_create(obj)
        obj["spec"] = same_data_source(_with_known_source(obj["spec"]))

    def prepare_for_update(self, new: Object, old: Object, subresource: str) -> None:
        super().prepare_for_update(new, old, subresource)
        if all(new["spec"].get(key) == old["spec"].get(key) for key in _SOURCES):
            return
        spec = new["spec"]
        if all(old["spec"].get(key) is None for key in _SOURCES):
            spec = _with_known_source(spec)
        new["spec"] = same_data_source(spec)


def _with_known_source(spec: Object) -> Object:
    """What `dataSource` alone names counts when it is a claim or a snapshot, as before there was `dataSourceRef`.

    (pkg/api/persistentvolumeclaim/util.go:EnforceDataSourceBackwardsCompatibility)
    """
    source = spec.get("dataSource")
    if source is None or (spec.get("dataSourceRef") or {}).get("kind") is not None:
        return spec
    if (source.get("apiGroup") or "", source.get("kind") or "") in _KNOWN_SOURCES:
        return spec
    return {key: each for key, each in spec.items() if key != "dataSource"}


def same_data_source(spec: Object) -> Object:
    """Return a claim's spec in which both fields have what one of them says; a source in another Namespace is behind
    a gate that is off.

    (pkg/api/persistentvolumeclaim/util.go:DropDisabledFields, NormalizeDataSources)
    """
    spec = dict(spec)
    if (spec.get("dataSourceRef") or {}).get("namespace"):
        del spec["dataSourceRef"]
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        spec["dataSourceRef"] = dict(source)
    elif source is None and reference is not None:
        spec["dataSource"] = {key: each for key, each in reference.items() if key != "namespace"}
    for key in ("dataSource", "dataSourceRef"):
        if spec.get(key) is not None:
            spec[key] = {"apiGroup": None, **spec[key]}  # is always part of the answer
    return spec


_SOURCES = ("dataSource", "dataSourceRef")
_KNOWN_SOURCES = frozenset({("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")})


def workload_strategies() -> tuple[Strategy, ...]:
    """Make one strategy for each kind that this module knows."""
    return (
        DeploymentStrategy(kinds.DEPLOYMENTS),
        ReplicaSetStrategy(kinds.REPLICASETS),
        StatefulSetStrategy(kinds.STATEFULSETS),
        DaemonSetStrategy(kinds.DAEMONSETS),
        ControllerRevisionStrategy(kinds.CONTROLLERREVISIONS),
        ReplicationControllerStrategy(kinds.REPLICATIONCONTROLLERS),
        TemplateStrategy(kinds.PODTEMPLATES),
        JobStrategy(kinds.JOBS),
        CronJobStrategy(kinds.CRONJOBS),
        PodDisruptionBudgetStrategy(kinds.PODDISRUPTIONBUDGETS),
        AutoscalerStrategy(kinds.HORIZONTALPODAUTOSCALERS, status={"desiredReplicas": 0, "currentMetrics": None}),
        PriorityClassStrategy(kinds.PRIORITYCLASSES),
        StoredWithGenerationStrategy(kinds.INGRESSES, status={"loadBalancer": {}}),
        StoredWithGenerationStrategy(kinds.INGRESSCLASSES),
        NetworkPolicyStrategy(kinds.NETWORKPOLICIES),
        AccessStrategy(kinds.ROLES),
        AccessStrategy(kinds.ROLEBINDINGS),
        AccessStrategy(kinds.CLUSTERROLES),
        AccessStrategy(kinds.CLUSTERROLEBINDINGS),
        ObjectAnsweringStrategy(kinds.STORAGECLASSES),
        RuntimeClassStrategy(kinds.RUNTIMECLASSES),
        CreatingStrategy(kinds.ENDPOINTS),
        LimitRangeStrategy(kinds.LIMITRANGES),
        ObjectAnsweringStrategy(kinds.RESOURCEQUOTAS, status={}),
        VolumeStrategy(kinds.PERSISTENTVOLUMES, status={"phase": "Pending"}),
        ClaimStrategy(kinds.PERSISTENTVOLUMECLAIMS, status={"phase": "Pending"}),
    )
