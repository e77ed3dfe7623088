"""StorageClass, PersistentVolume, PersistentVolumeClaim.

Sources: pkg/apis/core/validation/validation.go (ValidatePersistentVolume…), pkg/apis/storage/validation/validation.go.
"""

from collections.abc import Collection, Sequence
from typing import Any

from lastcall.kube.api.field import FieldError, duplicate, each, forbidden, invalid, not_supported, required
from lastcall.kube.api.meta import Object, annotations_of
from lastcall.kube.api.names import is_dns1123_subdomain, is_qualified_name
from lastcall.kube.api.quantity import is_positive, parse_quantity
from lastcall.kube.api.validators.common import diff, internal, label_selector, no_back_steps, one_of
from lastcall.kube.api.validators.node_selectors import node_selector
from lastcall.kube.api.validators.storage.sources import OF_VOLUMES, first_of

IMMUTABLE = "field is immutable"
ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
ONE_POD = "ReadWriteOncePod"
VOLUME_MODES = ("Block", "Filesystem")
RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_SOURCES = (
    "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd", "quobyte", "cephfs",
    "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume",
    "azureDisk", "scaleIO", "local", "storageos", "csi",
)  # fmt: skip
"""In the order in which they are looked at."""
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


def validate_claim_spec(spec: Object, path: str, *, any_group: bool = False) -> list[FieldError]:
    """Check a claim's spec; `any_group`: data sources may have any API group. (`ValidatePersistentVolumeClaimSpec`)"""
    missing = "at least 1 access mode is required"
    errors = _access_modes(spec.get("accessModes") or (), f"{path}.accessModes", missing)
    errors += label_selector(spec.get("selector"), f"{path}.selector")
    requests = (spec.get("resources") or {}).get("requests") or {}
    if "storage" not in requests:
        errors.append(required(f"{path}.resources[storage]"))
    else:
        errors += _positive(requests["storage"], f"{path}.resources[storage]")
    errors += _class_name(spec.get("storageClassName"), f"{path}.storageClassName")
    errors += one_of(spec.get("volumeMode"), f"{path}.volumeMode", VOLUME_MODES)
    return (
        errors
        + _data_sources(spec, path, any_group=any_group)
        + _class_name(spec.get("volumeAttributesClassName"), f"{path}.volumeAttributesClassName")
    )


def _data_sources(spec: Object, path: str, *, any_group: bool) -> list[FieldError]:
    """What a claim is filled with; the newer field has everything of the older one. (`validateDataSource…`)"""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    errors: list[FieldError] = []
    for key, value in (("dataSource", source), ("dataSourceRef", reference)):
        at = f"{path}.{key}"
        if value is None:
            continue
        errors += [required(f"{at}.{part}") for part in ("name", "kind") if not value.get(part)]
        group = value.get("apiGroup") or ""
        if not group and value.get("kind") != "PersistentVolumeClaim":
            why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
            errors.append(invalid(at, value.get("kind") or "", why))
        if group and not any_group:
            errors += each(f"{at}.apiGroup", group, is_dns1123_subdomain(group))
    if reference is not None and reference.get("namespace"):
        if source is not None:
            errors.append(invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified"))
    elif source is not None and reference is not None and source != reference:
        errors.append(invalid(path, {}, "must match dataSourceRef"))
    return errors


def change_claim(new: Object, old: Object) -> list[FieldError]:
    """Check all of a change of a claim: an API group that is there may become any other.

    (pkg/api/persistentvolumeclaim/util.go:allowInvalidAPIGroupInDataSourceOrRef)
    """
    stored = old.get("spec") or {}
    any_group = any((stored.get(key) or {}).get("apiGroup") is not None for key in ("dataSource", "dataSourceRef"))
    return validate_claim_spec(new.get("spec") or {}, "spec", any_group=any_group) + update_claim(new, old)


RESIZE_STATUSES = (
    "ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible",
    "NodeResizePending",
)  # fmt: skip


def update_claim_status(new: Object, old: Object) -> list[FieldError]:
    """Check an update of a PersistentVolumeClaim's status. (`ValidatePersistentVolumeClaimStatusUpdate`)"""
    status, errors = new.get("status") or {}, list[FieldError]()
    for name, amount in sorted((status.get("capacity") or {}).items()):
        errors += _quantity(amount, f"status.capacity[{name}]")
    path = "status.allocatedResourceStatuses"
    for name, value in sorted((status.get("allocatedResourceStatuses") or {}).items()):
        errors += _resized(name, path)
        if value not in RESIZE_STATUSES:
            errors.append(not_supported(path, name, RESIZE_STATUSES))
    path = "status.allocatedResources"
    for name, amount in sorted((status.get("allocatedResources") or {}).items()):
        errors += _resized(name, path) or _quantity(amount, f"{path}[{name}]")
    return errors


def _resized(name: str, path: str) -> list[FieldError]:
    """Of resources without a domain there is storage only. (`validatePersistentVolumeClaimResourceKey`)"""
    errors = each(path, name, is_qualified_name(name))
    if not errors and "/" not in name and name != "storage":
        errors.append(not_supported(path, name, ("storage",)))
    return errors


def update_claim(new: Object, old: Object) -> list[FieldError]:
    """Check a change: a volume's name is set once, a missing class too, a bound claim may ask for more.
    (`…ClaimUpdate`)"""
    now, before = dict(new.get("spec") or {}), dict(old.get("spec") or {})
    if not before.get("volumeName"):
        before["volumeName"] = now.get("volumeName") or ""
        now["volumeName"] = before["volumeName"]
    upgraded = (
        before.get("storageClassName") is None
        and now.get("storageClassName") is not None
        and annotations_of(old).get(BETA_CLASS) in (None, now["storageClassName"])
    )
    if upgraded:
        now["storageClassName"] = before["storageClassName"] = None
    status = old.get("status") or {}
    errors, smaller = list[FieldError](), list[FieldError]()
    asked = [_storage_request(spec) for spec in (now, before)]
    if asked[0] < asked[1] and asked[0] <= parse_quantity((status.get("capacity") or {}).get("storage") or 0):
        why = "field can not be less than status.capacity"
        smaller.append(forbidden("spec.resources.requests.storage", why))
    if status.get("phase") == "Bound":
        now["resources"] = {**(now.get("resources") or {}), "requests": None}
        before["resources"] = {**(before.get("resources") or {}), "requests": None}
    if now != before:
        shown, had = (internal(_CLAIM_SPEC, spec) for spec in (now, before))
        errors.append(forbidden("spec", f"{_CLAIM_FIXED}\n{diff(shown, had)}"))
    errors += smaller
    if now.get("volumeMode") != before.get("volumeMode"):
        errors.append(invalid("volumeMode", now.get("volumeMode"), IMMUTABLE))
    return errors


def _storage_request(spec: Object) -> Any:
    return parse_quantity(((spec.get("resources") or {}).get("requests") or {}).get("storage") or 0)


def validate_volume(obj: Object) -> list[FieldError]:
    """Check a PersistentVolume. (`ValidatePersistentVolume`)"""
    spec = obj.get("spec") or {}
    errors = _access_modes(spec.get("accessModes") or (), "spec.accessModes", "")
    given = spec.get("capacity")
    capacity = given or {}
    if not capacity:
        errors.append(required("spec.capacity"))
    if "storage" not in capacity or len(capacity) > 1:
        errors.append(
            not_supported("spec.capacity", None if given is None else dict(sorted(capacity.items())), ("storage",))
        )
    for name in sorted(capacity):
        errors += _quantity(capacity[name], f"spec.capacity[{name}]")
        errors += _positive(capacity[name], f"spec.capacity[{name}]")
    policy = spec.get("persistentVolumeReclaimPolicy")
    errors += one_of(policy, "spec.persistentVolumeReclaimPolicy", RECLAIM_POLICIES)
    affinity = spec.get("nodeAffinity")
    if affinity is not None:
        errors += _volume_node_affinity(affinity)
    errors += _volume_source(spec)
    errors += _class_name(spec.get("storageClassName"), "spec.storageClassName")
    errors += one_of(spec.get("volumeMode"), "spec.volumeMode", VOLUME_MODES)
    return errors + _attributes_class(spec)


def _quantity(value: Any, path: str) -> list[FieldError]:
    """(`validateBasicResource`)"""
    number = parse_quantity(value).value
    return [invalid(path, int(number), "must be a valid resource quantity")] if number < 0 else []


def _volume_source(spec: Object, path: str = "spec") -> list[FieldError]:
    sources = first_of(_SOURCES, spec)
    if not sources:
        return [required(path, "must specify a volume type")]
    first, errors = sources[0], list[FieldError]()
    for key in sources:
        if key != first and key != "flexVolume":  # a further flexVolume is looked at like a first one
            shown = "cephFS" if key == "cephfs" else key
            errors.append(forbidden(f"{path}.{shown}", "may not specify more than 1 volume type"))
        elif key == "local":
            where = spec["local"].get("path") or ""
            errors += no_back_steps(where, f"{path}.local.path") if where else [required(f"{path}.local.path")]
            if spec.get("nodeAffinity") is None:
                errors.append(required(f"{path}.nodeAffinity", "Local volume requires node affinity"))
        else:
            errors += OF_VOLUMES[key](spec[key], f"{path}.{key}")
    root = first == "hostPath" and (spec["hostPath"].get("path") or "").rstrip("/") == ""
    if root and spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        why = "may not be 'recycle' for a hostPath mount of '/'"
        errors.append(forbidden(f"{path}.persistentVolumeReclaimPolicy", why))
    return errors


_NOT_INLINE = "may not be specified in the context of inline volumes"


def validate_inline_volume(spec: Object, path: str) -> list[FieldError]:
    """Check a volume that a VolumeAttachment has in itself. (`ValidatePersistentVolumeSpec`)"""
    errors = [
        forbidden(f"{path}.{key}", _NOT_INLINE)
        for key in ("claimRef", "capacity")
        if (spec.get(key) if key == "capacity" else spec.get(key) is not None)
    ]
    if spec.get("csi") is None:
        errors.append(required(f"{path}.csi", "has to be specified in the context of inline volumes"))
    errors += _access_modes(spec.get("accessModes") or (), f"{path}.accessModes", "")
    if spec.get("persistentVolumeReclaimPolicy") not in (None, "", "Retain"):
        why = "may only be Retain in the context of inline volumes"
        errors.append(forbidden(f"{path}.persistentVolumeReclaimPolicy", why))
    if spec.get("nodeAffinity") is not None:
        errors.append(forbidden(f"{path}.nodeAffinity", _NOT_INLINE))
    errors += _volume_source(spec, path)
    if spec.get("storageClassName"):
        errors.append(forbidden(f"{path}.storageClassName", _NOT_INLINE))
    if spec.get("volumeMode") not in (None, "Filesystem"):
        why = "may not specify volumeMode other than Filesystem in the context of inline volumes"
        errors.append(forbidden(f"{path}.volumeMode", why))
    return errors


def _attributes_class(spec: Object) -> list[FieldError]:
    name, path = spec.get("volumeAttributesClassName"), "spec.volumeAttributesClassName"
    if name is None:
        return []
    errors = _class_name(name, path) if name else [required(path, "an empty string is disallowed")]
    if spec.get("csi") is None:
        errors.append(required("spec.csi", "has to be specified when using volumeAttributesClassName"))
    return errors


def _volume_node_affinity(affinity: Object) -> list[FieldError]:
    path = "spec.nodeAffinity.required"
    if affinity.get("required") is None:
        return [required(path, "must specify required node constraints")]
    return node_selector(affinity["required"], path, values=False)


def update_volume(new: Object, old: Object) -> list[FieldError]:
    """Check a change, and the volume once more. (`ValidatePersistentVolumeUpdate`)"""
    return validate_volume(new) + _changes(new, old)


def _changes(new: Object, old: Object) -> list[FieldError]:
    now, before = _without_new_secret(new.get("spec") or {}, old.get("spec") or {}), old.get("spec") or {}
    errors: list[FieldError] = []
    if any(now.get(key) != before.get(key) for key in _SOURCES):
        path = "spec.persistentvolumesource"
        shown, had = (internal("core.v1.PersistentVolumeSource", spec) for spec in (now, before))
        errors.append(forbidden(path, f"{path} is immutable after creation\n{diff(shown, had)}"))
    if now.get("volumeMode") != before.get("volumeMode"):
        errors.append(invalid("volumeMode", now.get("volumeMode"), IMMUTABLE))
    if before.get("nodeAffinity") is not None and now.get("nodeAffinity") != before["nodeAffinity"]:
        shown = internal("core.v1.VolumeNodeAffinity", now.get("nodeAffinity"))
        errors.append(invalid("nodeAffinity", shown, f"{IMMUTABLE}, except for updating from beta label to GA"))
    return errors


def _without_new_secret(now: Object, before: Object) -> Object:
    """`now` without the one thing that may be added to a CSI volume: the secret with which it grows."""
    name, csi = "controllerExpandSecretRef", now.get("csi")
    if csi is None or csi.get(name) is None or before.get("csi") is None or before["csi"].get(name) is not None:
        return now
    return {**now, "csi": {key: value for key, value in csi.items() if key != name}}


def validate_storage_class(obj: Object) -> list[FieldError]:
    """Check a StorageClass. (`ValidateStorageClass`)"""
    errors: list[FieldError] = []
    provisioner = obj.get("provisioner") or ""
    if not provisioner:
        errors.append(required("provisioner"))
    else:
        errors += each("provisioner", provisioner.lower(), is_qualified_name(provisioner.lower()))
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
    """Report a term once for each one before that selects the same; before them all are as many terms as there are
    that select nothing. (`validateAllowedTopologies`)"""
    errors, seen = list[FieldError](), list[dict[str, set[str]]]([{}] * len(terms))
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
        errors += [duplicate(path, "")] * seen.count(selected)
        seen.append(selected)
    return errors


def update_storage_class(new: Object, old: Object) -> list[FieldError]:
    """Check an update of a StorageClass. (`ValidateStorageClassUpdate`)"""
    errors: list[FieldError] = []
    for key, absent in (
        ("parameters", None),
        ("provisioner", ""),
        ("reclaimPolicy", None),
        ("volumeBindingMode", None),
    ):
        if (new.get(key) or absent) != (old.get(key) or absent):
            value = new.get(key, absent)
            errors.append(invalid(key, dict(sorted(value.items())) if isinstance(value, dict) else value, IMMUTABLE))
    return errors
