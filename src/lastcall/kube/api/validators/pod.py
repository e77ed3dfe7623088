"""A Pod: what may be created, and what may change afterwards.

Source: pkg/apis/core/validation/validation.go (ValidatePodCreate, ValidatePodUpdate, ValidatePodStatusUpdate,
ValidatePodEphemeralContainersUpdate). A resize: `pod_resize.py`.
"""

from collections.abc import Iterable
from typing import Any

from lastcall.kube.api.field import INTERNAL, FieldError, each, forbidden, go_quote, invalid
from lastcall.kube.api.meta import Object, copy_object
from lastcall.kube.api.names import between, is_dns1123_subdomain, is_ip, is_qualified_name
from lastcall.kube.api.pods.restart_rules import all_containers_could_restart, container_should_restart
from lastcall.kube.api.pods.spec import is_restartable_init
from lastcall.kube.api.validators.common import diff, internal
from lastcall.kube.api.validators.containers.devices import claim_statuses
from lastcall.kube.api.validators.containers.specs import image_errors
from lastcall.kube.api.validators.pod_spec import MAX_INT32, validate_pod_spec, validate_tolerations

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
UPDATE_TEXT = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def validate_spec(pod: Object) -> list[FieldError]:
    spec = pod.get("spec") or {}
    errors = validate_pod_spec(spec, is_pod=True)
    if spec.get("serviceAccountName"):
        return errors
    for index, volume in enumerate(spec.get("volumes") or ()):
        for number, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            if source.get("serviceAccountToken") is not None:
                path = f"spec.volumes[{index}].projected.sources[{number}].serviceAccountToken"
                errors.append(forbidden(path, "must not be specified when serviceAccountName is not set"))
    return errors


def validate_create(pod: Object) -> list[FieldError]:
    errors = validate_spec(pod)
    spec = pod.get("spec") or {}
    if spec.get("ephemeralContainers"):
        errors.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        errors.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    spec, stored = new.get("spec") or {}, old.get("spec") or {}
    errors = validate_spec(new)
    for group in ("containers", "initContainers"):
        if len(spec.get(group) or ()) != len(stored.get(group) or ()):
            errors.append(forbidden(f"spec.{group}", "pod updates may not add or remove containers"))
            return errors
        # A second time, as Kubernetes does. (`ValidateContainerUpdates`)
        for index, container in enumerate(spec.get(group) or ()):
            errors += image_errors(container, f"spec.{group}[{index}]")
    deadline, had = spec.get("activeDeadlineSeconds"), stored.get("activeDeadlineSeconds")
    path = "spec.activeDeadlineSeconds"
    if deadline is not None:
        if not 0 <= deadline <= MAX_INT32:
            return [*errors, invalid(path, deadline, between(0, MAX_INT32))]
        if had is not None and had < deadline:
            return [*errors, invalid(path, deadline, "must be less than or equal to previous value")]
    elif had is not None:
        errors.append(invalid(path, None, "must not update from a positive integer to nil value"))
    errors += _only_added_tolerations(spec.get("tolerations") or [], stored.get("tolerations") or [])
    errors += _only_deleted_gates(spec.get("schedulingGates") or [], stored.get("schedulingGates") or [])
    munged = _with_mutable_of(copy_object(spec), stored)
    if munged != stored:
        shown, had = (internal("core.v1.PodSpec", each_spec) for each_spec in (munged, stored))
        errors.append(forbidden("spec", f"{UPDATE_TEXT}\n{diff(shown, had)}"))
    return errors


def _only_added_tolerations(new: list[Object], old: list[Object]) -> list[FieldError]:
    """(`validateOnlyAddedTolerations`)"""

    def without_seconds(toleration: Object) -> Object:
        return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}

    present = [without_seconds(toleration) for toleration in new]
    if all(without_seconds(toleration) in present for toleration in old):
        return validate_tolerations(new, "spec.tolerations")
    return [forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")]


def _only_deleted_gates(new: list[Object], old: list[Object]) -> list[FieldError]:
    names = [gate.get("name") for gate in old]
    return [
        forbidden(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for index, gate in enumerate(new)
        if gate.get("name") not in names
    ]


def _with_mutable_of(spec: Object, stored: Object) -> Object:
    """`spec` with everything that may change set to its stored value."""
    for group in ("containers", "initContainers"):
        for container, before in zip(spec.get(group) or (), stored.get(group) or (), strict=False):
            _keep(container, before, "image")
    _keep(spec, stored, "activeDeadlineSeconds", "tolerations", "schedulingGates")
    if (stored.get("terminationGracePeriodSeconds") or 0) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        _keep(spec, stored, "terminationGracePeriodSeconds")
    if stored.get("schedulingGates"):
        _keep_tightened(spec, stored)
    return spec


def _keep(target: Object, source: Object, *keys: str) -> None:
    for key in keys:
        if key in source:
            target[key] = source[key]
        else:
            target.pop(key, None)


def _keep_tightened(spec: Object, stored: Object) -> None:
    """A gated Pod may get more node selector labels and a node affinity."""
    had = stored.get("nodeSelector") or {}
    now = spec.get("nodeSelector") or {}
    if all(now.get(key) == value for key, value in had.items()):
        _keep(spec, stored, "nodeSelector")
    needed = "requiredDuringSchedulingIgnoredDuringExecution"
    before = ((stored.get("affinity") or {}).get("nodeAffinity") or {}).get(needed)
    if before is None and ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(needed) is not None:
        spec["affinity"]["nodeAffinity"].pop(needed)
        if not spec["affinity"]["nodeAffinity"]:
            spec["affinity"].pop("nodeAffinity")
        if not spec["affinity"]:
            spec.pop("affinity")


def validate_status_update(new: Object, old: Object) -> list[FieldError]:
    status, stored = new.get("status") or {}, old.get("status") or {}
    spec = old.get("spec") or {}
    errors = _conditions(status.get("conditions") or ())
    nominated = status.get("nominatedNodeName")
    if nominated and nominated != stored.get("nominatedNodeName"):
        path = "status.nominatedNodeName"
        errors += each(path, nominated, is_dns1123_subdomain(nominated))
        if spec.get("nodeName"):
            errors.append(forbidden(path, "may not be set on pods that are already bound to a node"))
    if (status.get("observedGeneration") or 0) < 0:
        errors.append(invalid("status.observedGeneration", status["observedGeneration"], _NO_GENERATION))
    errors += _addresses(status, stored)
    for index, each_status in enumerate(status.get("ephemeralContainerStatuses") or ()):
        if each_status.get("allocatedResourcesStatus"):
            path = f"status.ephemeralContainerStatuses[{index}].allocatedResourcesStatus"
            errors.append(forbidden(path, "must not be specified in container status"))
    if stored.get("qosClass") and status.get("qosClass") and status["qosClass"] != stored["qosClass"]:
        errors.append(invalid("status.qosClass", status["qosClass"], "field is immutable"))
    return errors + _transitions(old, status) + claim_statuses(status, spec)


def _transitions(old: Object, status: Object) -> list[FieldError]:
    spec, stored = old.get("spec") or {}, old.get("status") or {}
    policy = spec.get("restartPolicy", "Always")
    if all_containers_could_restart(old) or (
        policy == "Always" and not (spec.get("initContainers") or status.get("initContainerStatuses"))
    ):
        return []  # every container may start again
    sidecars = [str(item.get("name")) for item in spec.get("initContainers") or () if is_restartable_init(item)]
    by_rule = _restarted_by_own_policy(old, "containers", "containerStatuses")
    errors = _container_transitions(status, stored, "containerStatuses", policy, frozenset(by_rule))
    init_policy = "OnFailure" if policy == "Always" else policy
    by_rule = _restarted_by_own_policy(old, "initContainers", "initContainerStatuses")
    exempt = frozenset((*sidecars, *by_rule))
    errors += _container_transitions(status, stored, "initContainerStatuses", init_policy, exempt)
    return errors


_NO_GENERATION = "must be a non-negative integer"
_KNOWN_CONDITIONS = frozenset(
    {"PodScheduled", "Ready", "Initialized", "ContainersReady", "DisruptionTarget", "PodReadyToStartContainers"}
)


def _conditions(conditions: Iterable[Object]) -> list[FieldError]:
    """(`validatePodConditions`)"""
    errors: list[FieldError] = []
    for index, condition in enumerate(conditions):
        if (condition.get("observedGeneration") or 0) < 0:
            path = f"status.conditions[{index}].observedGeneration"
            errors.append(invalid(path, condition["observedGeneration"], _NO_GENERATION))
        type_ = condition.get("type") or ""
        if type_ not in _KNOWN_CONDITIONS:
            errors += each(f"status.conditions[{index}].Type", type_, is_qualified_name(type_))
    return errors


def _addresses(status: Object, stored: Object) -> list[FieldError]:
    """(`validatePodIPs`, `validateHostIPs`)"""
    errors: list[FieldError] = []
    for key in ("podIPs", "hostIPs"):
        addresses: list[Object] = status.get(key) or []
        if key == "podIPs" and (one := status.get("podIP")) and [each_.get("ip") for each_ in addresses[:1]] != [one]:
            addresses = [{"ip": one}]  # the one field counts where the two do not agree
        if addresses == (stored.get(key) or []):
            continue  # known
        if key == "hostIPs" and addresses and status.get("hostIP", "") != addresses[0].get("ip"):
            errors.append(invalid("status.hostIPs[0].ip", addresses[0].get("ip") or "", "must be equal to `hostIP`"))
        for index, address in enumerate(addresses):
            ip = address.get("ip") or ""
            errors += each(f"status.{key}[{index}]", ip, is_ip(ip))
        wrong = next((at for at, address in enumerate(addresses) if is_ip(address.get("ip") or "")), None)
        if len(addresses) > 1 and wrong is not None:
            why = f"invalid IP[{wrong}]: {addresses[wrong].get('ip') or ''}"
            text = f"failed to check for dual stack with error:{why}"
            errors.append(FieldError(INTERNAL, f"status.{key}", "", text))
        families = {":" in (address.get("ip") or "") for address in addresses}
        if len(addresses) > 1 and (len(families) < 2 or len(addresses) > 2 or wrong is not None):
            shown = [{"IP": address.get("ip") or ""} for address in addresses]
            errors.append(invalid(f"status.{key}", shown, "may specify no more than one IP for each IP family"))
    return errors


def _restarted_by_own_policy(pod: Object, group: str, statuses: str) -> list[str]:
    """Ended containers with a policy of their own that wants them again."""
    own = {item.get("name"): item for item in pod["spec"].get(group) or () if item.get("restartPolicy")}
    ended = {
        status.get("name"): (status.get("state") or {}).get("terminated")
        for status in (pod.get("status") or {}).get(statuses) or ()
    }
    return [
        str(name)
        for name, item in own.items()
        if (last := ended.get(name)) is not None and container_should_restart(item, pod, last.get("exitCode", 0))
    ]


def _container_transitions(
    new: Object, old: Object, group: str, policy: str, exempt: frozenset[Any]
) -> list[FieldError]:
    """A terminated container stays so, unless it may be restarted. (`ValidateContainerStateTransition`)"""
    if policy == "Always":
        return []
    errors: list[FieldError] = []
    states = {status.get("name"): status.get("state") or {} for status in new.get(group) or ()}
    for index, before in enumerate(old.get(group) or ()):
        terminated = (before.get("state") or {}).get("terminated")
        name = before.get("name")
        if terminated is None or name in exempt or name not in states:
            continue
        if terminated.get("exitCode", 0) != 0 and policy == "OnFailure":
            continue
        if states[name].get("terminated") is None:
            path = f"status.{group}[{index}].state"
            errors.append(forbidden(path, "may not be transitioned to non-terminated state"))
    return errors


def validate_ephemeral_containers_update(new: Object, old: Object) -> list[FieldError]:
    if MIRROR_ANNOTATION in (old["metadata"].get("annotations") or {}):
        return [forbidden("", "static pods do not support ephemeral containers")]
    errors = validate_spec(new)
    path = "spec.ephemeralContainers"
    now = {item.get("name"): item for item in (new.get("spec") or {}).get("ephemeralContainers") or ()}
    for before in (old.get("spec") or {}).get("ephemeralContainers") or ():
        name = go_quote(before.get("name") or "")
        after = now.get(before.get("name"))
        if after is None:
            errors.append(forbidden(path, f"existing ephemeral containers {name} may not be removed\n"))
        elif after != before:
            shown, had = (internal("core.v1.EphemeralContainer", item) for item in (after, before))
            why = f"existing ephemeral containers {name} may not be changed\n{diff(shown, had)}"
            errors.append(forbidden(path, why))
    return errors
