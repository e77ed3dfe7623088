"""StorageClass, PersistentVolume, PersistentVolumeClaim.

Sources: pkg/apis/core/validation/validation.go (ValidatePersistentVolume…), pkg/apis/storage/validation/validation.go.
"""

from collections.abc import Collection, Sequence
from typing import Any

from lastcall.api.field import FieldError, duplicate, each, forbidden, invalid, not_supported, required
from lastcall.api.meta import Object, annotations_of
from lastcall.api.names import is_dns1123_subdomain, is_qualified_name
from lastcall.api.quantity import is_positive, parse_quantity
from lastcall.api.validators.common import diff, internal, label_selector, no_back_steps, one_of

IMMUTABLE = "field is immutable"
ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
ONE_POD = "ReadWriteOncePod"
VOLUME_MODES = ("Block", "Filesystem")
RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_HOST_PATH_TYPES = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")
_NOT_SOURCES = frozenset(
    {"accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy",
     "storageClassName", "volumeAttributesClassName", "volumeMode"}
)  # fmt: skip
_CLAIM_SPEC = "core.v1.PersistentVolumeClaimSpec"
_CLAIM_FIXED = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


def _access_modes(modes: Collection[str], path: str, missing: str) -> list[FieldError]:
    if not modes:
        return [required(path, missing)]
    errors = [not_supported(path, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    if ONE_POD in modes and len(modes) > 1:
        errors.append(forbidden(path, f"may not use {ONE_POD} with other access modes"))
    return errors


def _positive(value: Any, path: str) -> list[FieldError]:
    return [] if is_positive(value) else [invalid(path, str(parse_quantity(value)), "must be greater than zero")]


def _class_name(name: str | None, path: str) -> list[FieldError]:
    return each(path, name, is_dns1123_subdomain(name)) if name else []


def validate_claim(obj: Object) -> list[FieldError]:
    return validate_claim_spec(obj.get("spec") or {}, "spec")


def validate_claim_spec(spec: Object, path: str) -> list[FieldError]:
    """(`ValidatePersistentVolumeClaimSpec`)"""
    errors = label_selector(spec.get("selector"), f"{path}.selector")
    missing = "at least 1 access mode is required"
    errors += _access_modes(spec.get("accessModes") or (), f"{path}.accessModes", missing)
    requests = (spec.get("resources") or {}).get("requests") or {}
    if "storage" not in requests:
        errors.append(required(f"{path}.resources[storage]"))
    else:
        errors += _positive(requests["storage"], f"{path}.resources[storage]")
    errors += _class_name(spec.get("storageClassName"), f"{path}.storageClassName")
    return errors + one_of(spec.get("volumeMode"), f"{path}.volumeMode", VOLUME_MODES)


def update_claim(new: Object, old: Object) -> list[FieldError]:
    """A volume's name is set once, a missing class too, and a bound claim may ask for more. (`…ClaimUpdate`)"""
    now, before = dict(new.get("spec") or {}), dict(old.get("spec") or {})
    if not before.get("volumeName"):
        before["volumeName"] = now["volumeName"] = ""
    upgraded = (
        before.get("storageClassName") is None
        and now.get("storageClassName") is not None
        and annotations_of(old).get(BETA_CLASS) in (None, now["storageClassName"])
    )
    if upgraded:
        before["storageClassName"] = now["storageClassName"]
    status = old.get("status") or {}
    errors: list[FieldError] = []
    if status.get("phase") == "Bound":
        asked = [_storage_request(spec) for spec in (now, before)]
        has = (status.get("capacity") or {}).get("storage") or 0
        if asked[0] < asked[1] and asked[0] <= parse_quantity(has):
            why = "field can not be less than status.capacity"
            errors.append(forbidden("spec.resources.requests.storage", why))
        now["resources"] = {**(now.get("resources") or {}), "requests": None}
        before["resources"] = {**(before.get("resources") or {}), "requests": None}
    if now != before:
        shown, had = (internal(_CLAIM_SPEC, spec) for spec in (now, before))
        return [forbidden("spec", f"{_CLAIM_FIXED}\n{diff(shown, had)}")]
    return errors


def _storage_request(spec: Object) -> Any:
    return parse_quantity(((spec.get("resources") or {}).get("requests") or {}).get("storage") or 0)


def validate_volume(obj: Object) -> list[FieldError]:
    """(`ValidatePersistentVolume`)"""
    spec = obj.get("spec") or {}
    errors = _access_modes(spec.get("accessModes") or (), "spec.accessModes", "")
    capacity = spec.get("capacity") or {}
    if not capacity:
        errors.append(required("spec.capacity"))
    if "storage" not in capacity or len(capacity) > 1:
        errors.append(not_supported("spec.capacity", dict(sorted(capacity.items())) or None, ("storage",)))
    for name in sorted(capacity):
        errors += _positive(capacity[name], f"spec.capacity[{name}]")
    policy = spec.get("persistentVolumeReclaimPolicy")
    errors += one_of(policy, "spec.persistentVolumeReclaimPolicy", RECLAIM_POLICIES)
    affinity = spec.get("nodeAffinity")
    if affinity is not None:
        errors += _volume_node_affinity(affinity)
    sources = [key for key in sorted(spec) if key not in _NOT_SOURCES and spec[key] is not None]
    for key in sources[1:]:
        errors.append(forbidden(f"spec.{key}", "may not specify more than 1 volume type"))
    if not sources:
        errors.append(required("spec", "must specify a volume type"))
    elif sources[0] == "hostPath":
        errors += _host_path(spec["hostPath"])
        if (spec["hostPath"].get("path") or "").rstrip("/") == "" and policy == "Recycle":
            why = "may not be 'recycle' for a hostPath mount of '/'"
            errors.append(forbidden("spec.persistentVolumeReclaimPolicy", why))
    elif sources[0] == "local":
        where = spec["local"].get("path") or ""
        errors += no_back_steps(where, "spec.local.path") if where else [required("spec.local.path")]
        if affinity is None:
            errors.append(required("metadata.annotations", "Local volume requires node affinity"))
    errors += _class_name(spec.get("storageClassName"), "spec.storageClassName")
    return errors + one_of(spec.get("volumeMode"), "spec.volumeMode", VOLUME_MODES)


def _host_path(source: Object) -> list[FieldError]:
    where = source.get("path") or ""
    if not where:
        return [required("spec.hostPath.path")]
    return no_back_steps(where, "spec.hostPath.path") + one_of(
        source.get("type"), "spec.hostPath.type", _HOST_PATH_TYPES
    )


def _volume_node_affinity(affinity: Object) -> list[FieldError]:
    path = "spec.nodeAffinity.required"
    if affinity.get("required") is None:
        return [required(path, "must specify required node constraints")]
    terms = affinity["required"].get("nodeSelectorTerms") or ()
    if not terms:
        return [required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")]
    errors: list[FieldError] = []
    for number, term in enumerate(terms):
        for index, expression in enumerate(term.get("matchExpressions") or ()):
            at = f"{path}.nodeSelectorTerms[{number}].matchExpressions[{index}]"
            if expression.get("operator") in ("In", "NotIn") and not expression.get("values"):
                errors.append(required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
            errors += each(f"{at}.key", expression.get("key") or "", is_qualified_name(expression.get("key") or ""))
    return errors


def update_volume(new: Object, old: Object) -> list[FieldError]:
    """(`ValidatePersistentVolumeUpdate`)"""
    now, before = new.get("spec") or {}, old.get("spec") or {}
    errors: list[FieldError] = []
    sources = {key for key in (*now, *before) if key not in _NOT_SOURCES}
    if any(now.get(key) != before.get(key) for key in sources):
        path = "spec.persistentvolumesource"
        shown, had = (internal("core.v1.PersistentVolumeSource", spec) for spec in (now, before))
        errors.append(forbidden(path, f"{path} is immutable after creation\n{diff(shown, had)}"))
    if now.get("volumeMode") != before.get("volumeMode"):
        errors.append(invalid("volumeMode", now.get("volumeMode"), IMMUTABLE))
    if before.get("nodeAffinity") is not None and now.get("nodeAffinity") != before["nodeAffinity"]:
        errors.append(invalid("nodeAffinity", now.get("nodeAffinity"), IMMUTABLE))
    return errors


def validate_storage_class(obj: Object) -> list[FieldError]:
    """(`ValidateStorageClass`)"""
    errors: list[FieldError] = []
    provisioner = obj.get("provisioner") or ""
    if not provisioner:
        errors.append(required("provisioner"))
    else:
        errors += each("provisioner", provisioner, is_qualified_name(provisioner.lower()))
    parameters = obj.get("parameters") or {}
    if any(not key for key in parameters):
        errors.append(invalid("parameters", "", "field can not be empty."))
    policy = obj.get("reclaimPolicy")
    if policy and policy not in ("Delete", "Retain"):
        errors.append(not_supported("reclaimPolicy", policy, ("Delete", "Retain")))
    mode = obj.get("volumeBindingMode")
    if mode is None:
        errors.append(required("volumeBindingMode"))
    elif mode not in BINDING_MODES:
        errors.append(not_supported("volumeBindingMode", mode, BINDING_MODES))
    return errors + _topologies(obj.get("allowedTopologies") or ())


def _topologies(terms: Sequence[Object]) -> list[FieldError]:
    """A term that selects nothing counts as one that is there already. (`validateAllowedTopologies`)"""
    errors, seen = list[FieldError](), list[dict[str, set[str]]]([{}])
    for index, term in enumerate(terms):
        path, selected = f"allowedTopologies[{index}].matchLabelExpressions", dict[str, set[str]]()
        for number, requirement in enumerate(term.get("matchLabelExpressions") or ()):
            at, key, values = f"{path}[{number}]", requirement.get("key") or "", requirement.get("values") or []
            if not values:
                errors.append(required(f"{at}.values"))
            errors += [duplicate(f"{at}.values[{n}]", value) for n, value in enumerate(values) if value in values[:n]]
            errors += each(f"{at}.key", key, is_qualified_name(key))
            if key in selected:
                errors.append(duplicate(f"{at}.key", key))
            selected[key] = set(values)
        if selected in seen:
            errors.append(duplicate(path, ""))
        seen.append(selected)
    return errors


def update_storage_class(new: Object, old: Object) -> list[FieldError]:
    """(`ValidateStorageClassUpdate`)"""
    errors: list[FieldError] = []
    for key, absent in (
        ("parameters", None),
        ("provisioner", ""),
        ("reclaimPolicy", None),
        ("volumeBindingMode", None),
    ):
        if (value := new.get(key) or absent) != (old.get(key) or absent):
            errors.append(invalid(key, dict(sorted(value.items())) if isinstance(value, dict) else value, IMMUTABLE))
    return errors
