"""metadata of every kind. Source: apimachinery pkg/api/validation/objectmeta.go."""

from typing import Any

from lastcall.kube.api.field import FieldError, each, forbidden, go_quote, invalid, required, too_long
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import Check, for_prefix, is_dns1123_label, is_label_value, is_qualified_name

ANNOTATIONS_MAX = 256 * 1024
"""Bytes of all annotation keys and values together."""

STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
IMMUTABLE = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def validate_object_meta(meta: Object, *, namespaced: bool, name_check: Check, core: bool = True) -> list[FieldError]:
    """Check metadata. With `core`, a finalizer without a slash has to be one of Kubernetes's own.

    (`pkg/apis/core/validation:ValidateObjectMeta`, without `core` apimachinery's `pkg/api/validation`)
    """
    errors: list[FieldError] = []
    prefix, name, namespace = meta.get("generateName") or "", meta.get("name") or "", meta.get("namespace") or ""
    if prefix:
        errors += each("metadata.generateName", prefix, for_prefix(name_check)(prefix))
    if name:
        errors += each("metadata.name", name, name_check(name))
    else:
        errors.append(required("metadata.name", "name or generateName is required"))
    if namespaced:
        if namespace:
            errors += each("metadata.namespace", namespace, is_dns1123_label(namespace))
        else:
            errors.append(required("metadata.namespace"))
    elif namespace:
        errors.append(forbidden("metadata.namespace", "not allowed on this type"))
    if (meta.get("generation") or 0) < 0:
        errors.append(invalid("metadata.generation", meta["generation"], "must be greater than or equal to 0"))
    errors += validate_labels(meta.get("labels"), "metadata.labels")
    errors += validate_annotations(meta.get("annotations"))
    errors += validate_owner_references(meta.get("ownerReferences") or [])
    errors += validate_finalizers(meta.get("finalizers") or [], core=core)
    return errors


def validate_labels(labels: dict[str, str] | None, path: str) -> list[FieldError]:
    """Check labels, also of node selectors and plain-map selectors."""
    errors: list[FieldError] = []
    for key, value in (labels or {}).items():
        errors += each(path, key, is_qualified_name(key))
        errors += each(path, value, is_label_value(value))
    return errors


def validate_annotations(annotations: dict[str, str] | None, path: str = "metadata.annotations") -> list[FieldError]:
    errors: list[FieldError] = []
    size = 0
    for key, value in (annotations or {}).items():
        errors += each(path, key, is_qualified_name(key.lower()))
        size += len(key.encode()) + len(value.encode())
    if size > ANNOTATIONS_MAX:
        errors.append(too_long(path, ANNOTATIONS_MAX))
    return errors


EVEN_EMPTY = frozenset(
    ("deletionGracePeriodSeconds", "ownerReferences", "finalizers", "managedFields", "sharedCounters")
)
"""Of these also an empty list and 0 are too much: Go distinguishes them from none."""
NOT_OF_TEMPLATES = "cannot be set"
ONLY_ONE_SET = "only one of `sharedCounters` or `devices` is allowed"
_OF_OBJECTS = (
    "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
    "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences", "finalizers", "managedFields",
)  # fmt: skip


def template_metadata(meta: Object, path: str) -> list[FieldError]:
    """Check metadata of an object that is made for another: labels and annotations only.
    (`ValidateTemplateObjectMeta`)"""
    errors = validate_annotations(meta.get("annotations"), f"{path}.annotations")
    errors += validate_labels(meta.get("labels"), f"{path}.labels")
    shown = {"uid": "uID"}
    return errors + [
        forbidden(f"{path}.{shown.get(key, key)}", NOT_OF_TEMPLATES)
        for key in _OF_OBJECTS
        if meta.get(key) or (key in EVEN_EMPTY and meta.get(key) is not None)
    ]


def validate_owner_references(references: list[Object]) -> list[FieldError]:
    path = "metadata.ownerReferences"
    errors: list[FieldError] = []
    first = ""
    for reference in references:
        if not (reference.get("apiVersion") or "").rsplit("/", 1)[-1]:
            value = reference.get("apiVersion") or ""
            errors.append(invalid(f"{path}.apiVersion", value, "version must not be empty"))
        for key in ("kind", "name", "uid"):
            if not reference.get(key):
                errors.append(invalid(f"{path}.{key}", "", "must not be empty"))
        if reference.get("kind") == "Event" and reference.get("apiVersion") == "v1":
            errors.append(invalid(path, reference, "/v1, Kind=Event is disallowed from being an owner"))
    for reference in references:
        if reference.get("controller"):
            shown = f"{reference.get('kind')}/{reference.get('name')}"
            if first:
                why = (
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{first} and {shown}"
                )
                errors.append(invalid(path, references, why))
            else:
                first = shown
    return errors


def validate_finalizers(finalizers: list[str], *, core: bool) -> list[FieldError]:
    path = "metadata.finalizers"
    errors: list[FieldError] = []
    for finalizer in finalizers:
        errors += each(path, finalizer, is_qualified_name(finalizer))
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        errors.append(invalid(path, finalizers, "finalizer orphan and foregroundDeletion cannot be both set"))
    return errors + own_finalizers(finalizers) if core else errors


def own_finalizers(finalizers: list[str]) -> list[FieldError]:
    """Check finalizers without a domain: only Kubernetes's own have none. (`validateKubeFinalizerName`)"""
    why = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        invalid(f"metadata.finalizers[{index}]", finalizer, why)
        for index, finalizer in enumerate(finalizers)
        if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS
    ]


def changed(new: Object, old: Object) -> bool:
    """Return whether an update changes any metadata but managedFields: what is stored was valid."""
    return {**new, "managedFields": None} != {**old, "managedFields": None}


def validate_object_meta_update(new: Object, old: Object) -> list[FieldError]:
    """Check what may not change, after the server put back what may be left out.
    (`ValidateObjectMetaAccessorUpdate`)"""
    errors: list[FieldError] = []
    if old.get("deletionTimestamp") is not None:
        present = old.get("finalizers") or []
        added = sorted(name for name in new.get("finalizers") or [] if name not in present)
        if added:
            shown = "[]string{" + ", ".join(go_quote(name) for name in added) + "}"
            why = f"no new finalizers can be added if the object is being deleted, found new finalizers {shown}"
            errors.append(forbidden("metadata.finalizers", why))
    if not new.get("resourceVersion"):
        errors.append(invalid("metadata.resourceVersion", "", "must be specified for an update"))
    if (new.get("generation") or 0) < (old.get("generation") or 0) and "generation" in new:
        errors.append(invalid("metadata.generation", new["generation"], "must not be decremented"))
    for key in IMMUTABLE:
        value = _effective(new, old, key)
        if value != old.get(key):
            shown = value or "" if key == "name" else value
            errors.append(invalid(f"metadata.{key}", shown, "field is immutable"))
    # What is stored was valid.
    if new.get("labels") != old.get("labels"):
        errors += validate_labels(new.get("labels"), "metadata.labels")
    if new.get("annotations") != old.get("annotations"):
        errors += validate_annotations(new.get("annotations"))
    if new.get("ownerReferences") != old.get("ownerReferences"):
        errors += validate_owner_references(new.get("ownerReferences") or [])
    return errors


def _effective(new: Object, old: Object, key: str) -> Any:
    """The value after the silent restoring of what was left out, and of a set deletionTimestamp."""
    if key == "deletionTimestamp" and old.get(key) is not None:
        return old[key]
    if key in ("uid", "creationTimestamp", "deletionGracePeriodSeconds", "namespace") and not new.get(key):
        if key == "deletionGracePeriodSeconds" and new.get(key) is not None:
            return new[key]
        return old.get(key)
    return new.get(key)
