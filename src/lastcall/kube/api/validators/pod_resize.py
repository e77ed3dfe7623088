"""What a resize of a Pod in place may change: CPU and memory, and nothing is taken away.

Source: pkg/apis/core/validation/validation.go:ValidatePodResize; texts as 1.36.2 answers.
"""

from collections.abc import Callable

from lastcall.kube.api.field import FieldError, forbidden, invalid
from lastcall.kube.api.meta import Object, copy_object
from lastcall.kube.api.pods.spec import is_restartable_init, qos_class
from lastcall.kube.api.validators.pod_spec import validate_pod_spec

_MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
_MUTABLE = ("cpu", "memory")
_KINDS = ("requests", "limits")


def validate_resize(new: Object, old: Object) -> list[FieldError]:
    """Check `new`, a whole Pod of which only the resources differ."""
    if _MIRROR_ANNOTATION in (old["metadata"].get("annotations") or {}):
        return [forbidden("[]", "static pods cannot be resized")]
    spec, stored = new.get("spec") or {}, old.get("spec") or {}
    if (stored.get("os") or {}).get("name") == "windows":
        return [forbidden("[]", "windows pods cannot be resized")]
    errors = validate_pod_spec(spec, is_pod=True)
    had = (old.get("status") or {}).get("qosClass") or qos_class(old)
    if qos_class(new) != had:
        errors.append(invalid("spec", had, "Pod QOS Class may not change as a result of resizing"))
    if moved := [*_moved(spec, stored, "containers"), *_moved(spec, stored, "initContainers")]:
        return errors + moved
    for group in ("initContainers", "containers"):
        for index, (container, before) in enumerate(zip(spec.get(group) or (), stored.get(group) or (), strict=True)):
            path = f"spec.{group}[{index}].resources"
            errors += _removed(container, before, path, lambda kind: f"resource {kind} cannot be removed")
    if stored.get("resources"):
        if not spec.get("resources"):
            errors.append(forbidden("spec.resources", "pod-level resources cannot be removed"))
        else:
            errors += _removed(
                spec, stored, "spec.resources", lambda kind: f"pod-level resource {kind} cannot be removed"
            )
    return errors + _others(spec, stored)


def _moved(spec: Object, stored: Object, group: str) -> list[FieldError]:
    """(`validatePodResizeContainerOrdering`)"""
    now, before = spec.get(group) or [], stored.get(group) or []
    if len(now) != len(before):
        return [forbidden(f"spec.{group}", f"{group} may not be added or removed on resize")]
    return [
        forbidden(f"spec.{group}[{index}].name", f"{group} may not be renamed or reordered on resize")
        for index, (container, was) in enumerate(zip(now, before, strict=True))
        if container.get("name") != was.get("name")
    ]


def _removed(owner: Object, before: Object, path: str, text: Callable[[str], str]) -> list[FieldError]:
    """A resource that was asked for, or limited, is so ever after. (`validateContainerResize`)"""
    now, was = owner.get("resources") or {}, before.get("resources") or {}
    return [
        forbidden(f"{path}.{kind}", text(kind))
        for kind in _KINDS
        if any(name not in (now.get(kind) or {}) for name in was.get(kind) or {})
    ]


def _others(spec: Object, stored: Object) -> list[FieldError]:
    """Everything but CPU and memory is as it was."""
    errors: list[FieldError] = []
    munged = copy_object(spec)
    for index, container in enumerate(munged.get("initContainers") or ()):
        path, before = f"spec.initContainers[{index}]", stored["initContainers"][index]
        if not is_restartable_init(container) and container != before and _restarts(container):
            why = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
            refused = [forbidden(path, why)]
        else:
            refused = []
        _keep(container, before)
        if container != before:
            what = "only cpu and memory resources for init or sidecar containers are mutable"
            errors.append(forbidden(path, what))
        errors += refused
    for container, before in zip(munged.get("containers") or (), stored.get("containers") or (), strict=True):
        _keep(container, before)
    if munged.get("resources") != stored.get("resources") and munged.get("resources"):
        _keep(munged, stored)
        if (munged.get("resources") or {}) != (stored.get("resources") or {}):
            errors.append(forbidden("spec", "only cpu and memory resources are mutable at pod-level"))
    for source, key in ((stored, "resources"), (stored, "initContainers")):
        # Said already, where it differs.
        munged.pop(key, None)
        if key in source:
            munged[key] = source[key]
    if munged != stored:
        errors.append(forbidden("spec", "only cpu and memory resources are mutable"))
    return errors


def _restarts(container: Object) -> bool:
    return any(policy.get("restartPolicy") == "RestartContainer" for policy in container.get("resizePolicy") or ())


def _keep(owner: Object, before: Object) -> None:
    """Take CPU and memory from `before`, in place."""
    was = before.get("resources") or {}
    resources = copy_object(owner.get("resources") or {})
    for kind in _KINDS:
        amounts = {name: amount for name, amount in (resources.get(kind) or {}).items() if name not in _MUTABLE}
        amounts |= {name: amount for name, amount in (was.get(kind) or {}).items() if name in _MUTABLE}
        if amounts or kind in was:
            resources[kind] = amounts
        else:
            resources.pop(kind, None)
    if resources or "resources" in before:
        owner["resources"] = resources
    else:
        owner.pop("resources", None)
