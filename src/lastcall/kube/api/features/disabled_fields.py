"""Fields of Pods that a feature gate turns off: dropped before anything looks at them, unless the old object has them.

Source: pkg/api/pod/util.go:DropDisabledPodFields, DropDisabledTemplateFields and the options of validation there.
"""

# check: pure

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from lastcall.kube.api.features.gates import (
    CONTAINER_RESTART_RULES,
    CONTAINER_STOP_SIGNALS,
    EPHEMERAL_CONTAINERS,
    GRPC_CONTAINER_PROBE,
    MAX_UNAVAILABLE_STATEFUL_SET,
    POD_DISRUPTION_CONDITIONS,
    POD_LIFECYCLE_SLEEP_ACTION,
    PROBE_TERMINATION_GRACE_PERIOD,
    RESTART_ALL_CONTAINERS,
    SIDECAR_CONTAINERS,
    USER_NAMESPACES_SUPPORT,
    FeatureGates,
)
from lastcall.kube.api.features.newer_fields import drop_newer_fields, drop_newer_fields_of_kind
from lastcall.kube.api.field import FieldError, forbidden, not_supported, required
from lastcall.kube.api.meta import Object, copy_object
from lastcall.kube.api.pods.spec import DISRUPTION_TARGET
from lastcall.kube.api.resources import PODS, STATEFULSETS, Resource

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_GROUPS = ("initContainers", "containers", "ephemeralContainers")

_SPEC_AT: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "pods"): ("spec",),
    ("", "replicationcontrollers"): ("spec", "template", "spec"),
    ("", "podtemplates"): ("template", "spec"),
    ("apps", "deployments"): ("spec", "template", "spec"),
    ("apps", "replicasets"): ("spec", "template", "spec"),
    ("apps", "statefulsets"): ("spec", "template", "spec"),
    ("apps", "daemonsets"): ("spec", "template", "spec"),
    ("batch", "jobs"): ("spec", "template", "spec"),
    ("batch", "cronjobs"): ("spec", "jobTemplate", "spec", "template", "spec"),
}


_WITH_NEWER = frozenset(("nodes", "jobs", "cronjobs"))
_ALPHA_FIELDS = ("schedulingGroup",)
"""Of a Pod's spec, behind gates that are off and not known here (GenericWorkload)."""


def drop_disabled_fields(resource: Resource, new: Object, old: Object | None, gates: FeatureGates) -> None:
    """Drop from `new`, in place, what is turned off and not in use in `old`."""
    if resource.plural in _WITH_NEWER:
        drop_newer_fields_of_kind(resource.plural, new)
    spec = pod_spec_of(resource, new)
    if spec is None:
        return
    drop_newer_fields(spec)
    if resource is STATEFULSETS:
        if gates.enabled(MAX_UNAVAILABLE_STATEFUL_SET):
            _default_max_unavailable(new)
        else:
            _drop_max_unavailable(new, old)
    before = pod_spec_of(resource, old) if old is not None else None
    for field in _ALPHA_FIELDS:
        if not (before or {}).get(field):
            spec.pop(field, None)
    for gate, in_use, drop in _DROPS:
        if not gates.enabled(gate) and not (before is not None and in_use(before)):
            drop(spec)


def _default_max_unavailable(new: Object) -> None:
    """(pkg/apis/apps/v1/defaults.go:SetDefaults_StatefulSet)"""
    update = (new.get("spec") or {}).get("updateStrategy") or {}
    rolling = update.get("rollingUpdate")
    if update.get("type") == "RollingUpdate" and rolling is not None and rolling.get("maxUnavailable") is None:
        rolling["maxUnavailable"] = 1


def _drop_max_unavailable(new: Object, old: Object | None) -> None:
    """(pkg/registry/apps/statefulset/strategy.go:dropStatefulSetDisabledFields)"""
    rolling, had = (
        ((obj.get("spec") or {}).get("updateStrategy") or {}).get("rollingUpdate") or {} for obj in (new, old or {})
    )
    if had.get("maxUnavailable") is None:
        rolling.pop("maxUnavailable", None)


def drop_disabled_status(resource: Resource, new: Object, gates: FeatureGates) -> None:
    """Drop from the status of `new`, in place, the condition that no component of such a version writes.

    Kubernetes switches off its writers (eviction API, controllers, scheduler, kubelet); here all of them come by.
    """
    status = new.get("status")
    if resource != PODS or not isinstance(status, dict):
        return
    _drop_alpha_status(status)
    if gates.enabled(POD_DISRUPTION_CONDITIONS):
        return
    conditions = status.get("conditions")
    if isinstance(conditions, list):
        status["conditions"] = [each for each in conditions if each.get("type") != DISRUPTION_TARGET]


def _drop_alpha_status(status: Object) -> None:
    """What gates turn off that are not known here. (`dropDisabledPodStatusFields`: DRANodeAllocatableResources,
    ImageVolumeWithDigest)"""
    status.pop("nodeAllocatableResourceClaimStatuses", None)
    status.pop("volumeHealth", None)
    for group in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"):
        for each in status.get(group) or ():
            for mount in (each.get("volumeMounts") if isinstance(each, dict) else None) or ():
                if isinstance(mount, dict):
                    mount.pop("volumeStatus", None)


def dropped_fields(resource: Resource, obj: Object, gates: FeatureGates) -> dict[str, str]:
    """Return the paths (`spec.containers[0].lifecycle.preStop.sleep`) that `drop_disabled_fields` removes from a new
    object, each with the gate that is off; "" for one that is not known here."""
    if pod_spec_of(resource, obj) is None:
        return {}

    def lost(of: FeatureGates) -> list[str]:
        left = copy_object(obj)
        drop_disabled_fields(resource, left, None, of)
        return [path.removeprefix(".") for path in _missing(obj, left, "")]

    names = [*(gate for gate, *_ in _DROPS), MAX_UNAVAILABLE_STATEFUL_SET]
    found = dict.fromkeys(lost(gates), "")
    for gate in names if found else ():
        kept = found.keys() - lost(replace(gates, settings={**gates.settings, gate: True}))
        found |= dict.fromkeys(kept, gate)
    return found


def _missing(before: Any, after: Any, path: str) -> Iterator[str]:
    """Where `after` has no value that `before` has. Lists have the same length; a lifecycle goes with its last
    field."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            if key in after or key == "lifecycle":
                yield from _missing(value, after.get(key, {}), f"{path}.{key}")
            else:
                yield f"{path}.{key}"
    elif isinstance(before, list) and isinstance(after, list):
        for index, (value, other) in enumerate(zip(before, after, strict=True)):
            yield from _missing(value, other, f"{path}[{index}]")


def disabled_values(resource: Resource, new: Object, old: Object | None, gates: FeatureGates) -> list[FieldError]:
    """Return the values that a version or a gate turns off where their field stays: volumes of no image, since 1.37;
    RestartAllContainers, rules of sidecars."""
    spec = pod_spec_of(resource, new)
    if spec is None:
        return []
    before = pod_spec_of(resource, old) if old is not None else None
    without_image = []
    if gates.minor >= 37 and resource != PODS and not (before is not None and _volumes_without_image(before)):
        path = ".".join(_SPEC_AT[resource.group, resource.plural])
        without_image = [required(f"{path}.volumes[{each}].image.reference") for each in _volumes_without_image(spec)]
    return without_image + _disabled_restarts(resource, spec, before, gates)


def _volumes_without_image(spec: Object) -> list[int]:
    """Return which volumes are images without a reference; Pods were refused with them before (kubernetes#135989)."""
    sources = [each.get("image") if isinstance(each, dict) else None for each in spec.get("volumes") or ()]
    return [index for index, image in enumerate(sources) if isinstance(image, dict) and not image.get("reference")]


def _disabled_restarts(
    resource: Resource, spec: Object, before: Object | None, gates: FeatureGates
) -> list[FieldError]:
    if gates.enabled(RESTART_ALL_CONTAINERS):
        return []
    if before is not None and _restarts_all(before):
        return []
    errors: list[FieldError] = []
    path = ".".join(_SPEC_AT[resource.group, resource.plural])
    for group, index, container in _containers(spec):
        at = f"{path}.{group}[{index}].restartPolicyRules"
        rules = container.get("restartPolicyRules") or []
        if rules and group == "initContainers" and container.get("restartPolicy") == "Always":
            errors.append(forbidden(at, "may not be set for init containers with restartPolicy=Always"))
        for number, rule in enumerate(rules):
            if rule.get("action") == "RestartAllContainers":
                errors.append(not_supported(f"{at}[{number}].action", rule["action"], ("Restart",)))
    return errors


def pod_spec_of(resource: Resource, obj: Object) -> Object | None:
    """Return the spec of the Pod, or of the Pods that the object makes; None where there is none."""
    value: Any = obj
    for key in _SPEC_AT.get((resource.group, resource.plural), ("",)):
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else None


def _containers(spec: Object) -> Iterator[tuple[str, int, Object]]:
    for group in _GROUPS:
        for index, container in enumerate(spec.get(group) or ()):
            if isinstance(container, dict):
                yield group, index, container


def _has_stop_signal(spec: Object) -> bool:
    return any((container.get("lifecycle") or {}).get("stopSignal") for _, _, container in _containers(spec))


def _drop_stop_signals(spec: Object) -> None:
    for _, _, container in _containers(spec):
        lifecycle = container.get("lifecycle")
        if isinstance(lifecycle, dict) and lifecycle.pop("stopSignal", None) is not None and not lifecycle:
            del container["lifecycle"]


def _has_grpc_probe(spec: Object) -> bool:
    return any((container.get(probe) or {}).get("grpc") for _, _, container in _containers(spec) for probe in _PROBES)


def _drop_grpc_probes(spec: Object) -> None:
    for _, _, container in _containers(spec):
        for probe in _PROBES:
            if isinstance(container.get(probe), dict):
                container[probe].pop("grpc", None)


def _has_sidecars(spec: Object) -> bool:
    return any(
        group == "initContainers" and container.get("restartPolicy") == "Always"
        for group, _, container in _containers(spec)
    )


def _drop_sidecars(spec: Object) -> None:
    for group, _, container in _containers(spec):
        if group == "initContainers" and container.get("restartPolicy") == "Always":
            del container["restartPolicy"]


def _handlers(spec: Object) -> Iterator[Object]:
    for _, _, container in _containers(spec):
        for name in ("postStart", "preStop"):
            handler = (container.get("lifecycle") or {}).get(name)
            if isinstance(handler, dict):
                yield handler


def _drop_sleep_hooks(spec: Object) -> None:
    for handler in _handlers(spec):
        handler.pop("sleep", None)


def _probes(spec: Object) -> Iterator[Object]:
    for _, _, container in _containers(spec):
        for name in _PROBES:
            if isinstance(container.get(name), dict):
                yield container[name]


def _drop_probe_periods(spec: Object) -> None:
    for probe in _probes(spec):
        probe.pop("terminationGracePeriodSeconds", None)


def _has_restart_policies(spec: Object) -> bool:
    for group, _, container in _containers(spec):
        policy = container.get("restartPolicy")
        if container.get("restartPolicyRules") or (policy and (group != "initContainers" or policy != "Always")):
            return True
    return False


def _drop_restart_policies(spec: Object) -> None:
    for group, _, container in _containers(spec):
        container.pop("restartPolicyRules", None)
        if group != "initContainers" or container.get("restartPolicy") != "Always":
            container.pop("restartPolicy", None)


def _restarts_all(spec: Object) -> bool:
    for group, _, container in _containers(spec):
        rules = container.get("restartPolicyRules") or []
        if any(rule.get("action") == "RestartAllContainers" for rule in rules):
            return True
        if rules and group == "initContainers" and container.get("restartPolicy") == "Always":
            return True
    return False


_DROPS: tuple[tuple[str, Callable[[Object], bool], Callable[[Object], object]], ...] = (
    (CONTAINER_STOP_SIGNALS, _has_stop_signal, _drop_stop_signals),
    (GRPC_CONTAINER_PROBE, _has_grpc_probe, _drop_grpc_probes),
    (CONTAINER_RESTART_RULES, _has_restart_policies, _drop_restart_policies),
    (SIDECAR_CONTAINERS, _has_sidecars, _drop_sidecars),
    (POD_LIFECYCLE_SLEEP_ACTION, lambda spec: any("sleep" in each for each in _handlers(spec)), _drop_sleep_hooks),
    (
        PROBE_TERMINATION_GRACE_PERIOD,
        lambda spec: any("terminationGracePeriodSeconds" in each for each in _probes(spec)),
        _drop_probe_periods,
    ),
    (
        EPHEMERAL_CONTAINERS,
        lambda spec: bool(spec.get("ephemeralContainers")),
        lambda spec: spec.pop("ephemeralContainers", None),
    ),
    (USER_NAMESPACES_SUPPORT, lambda spec: spec.get("hostUsers") is not None, lambda spec: spec.pop("hostUsers", None)),
)
