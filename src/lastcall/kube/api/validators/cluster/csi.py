"""CSIDrivers, CSINodes, CSIStorageCapacities, VolumeAttachments, VolumeAttributesClasses.

Source: pkg/apis/storage/validation/validation.go.
"""

from typing import Any

from lastcall.kube.api.field import FieldError, duplicate, each, forbidden, invalid, not_supported, required, too_long
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import is_dns1123_subdomain, is_qualified_name
from lastcall.kube.api.quantity import parse_quantity
from lastcall.kube.api.validators.common import (
    NON_NEGATIVE,
    driver_name,
    in_order,
    internal,
    label_selector,
    non_negative,
    one_of,
)
from lastcall.kube.api.validators.kind_rules import KindRules
from lastcall.kube.api.validators.storage.kinds import validate_inline_volume

IMMUTABLE = "field is immutable"
LONGEST_NODE_ID = 256
MOST_METADATA = 256 * 1024
LONGEST_MESSAGE = 1024
MOST_PARAMETERS = 512
_MODES = ("Persistent", "Ephemeral")
_FS_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")


def validate_driver(driver: Object) -> list[FieldError]:
    spec = driver.get("spec") or {}
    errors = one_of(spec.get("fsGroupPolicy"), "spec.fsGroupPolicy", _FS_GROUP_POLICIES)
    audiences: set[str] = set()
    for index, request in enumerate(spec.get("tokenRequests") or ()):
        path, audience = f"spec.tokenRequests[{index}]", request.get("audience") or ""
        if audience in audiences:
            errors.append(duplicate(f"{path}.audience", audience))
            continue
        audiences.add(audience)
        seconds = request.get("expirationSeconds")
        if seconds is not None and seconds < 600:
            why = "may not specify a duration less than 10 minutes"
            errors.append(invalid(f"{path}.expirationSeconds", seconds, why))
        if seconds is not None and seconds > 2**32:
            why = "may not specify a duration larger than 2^32 seconds"
            errors.append(invalid(f"{path}.expirationSeconds", seconds, why))
    in_secrets = spec.get("serviceAccountTokenInSecrets")
    if in_secrets is not None and not spec.get("tokenRequests"):
        why = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        errors.append(invalid("spec.serviceAccountTokenInSecrets", in_secrets, why))
    errors += [
        not_supported("spec.volumeLifecycleModes", mode, _MODES)
        for mode in spec.get("volumeLifecycleModes") or ()
        if mode not in _MODES
    ]
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < 10:
        path = "spec.nodeAllocatableUpdatePeriodSeconds"
        errors.append(invalid(path, period, "must be greater than or equal to 10 seconds"))
    return errors


def update_driver(new: Object, old: Object) -> list[FieldError]:
    spec, stored = new.get("spec") or {}, old.get("spec") or {}
    return [
        *_immutable(spec.get("attachRequired"), stored.get("attachRequired"), "spec.attachedRequired"),
        *_immutable(spec.get("volumeLifecycleModes"), stored.get("volumeLifecycleModes"), "spec.volumeLifecycleModes"),
    ]


def _immutable(new: Any, old: Any, path: str) -> list[FieldError]:
    return [] if new == old else [invalid(path, new, IMMUTABLE)]


def validate_node(node: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    names: set[str] = set()
    for index, driver in enumerate((node.get("spec") or {}).get("drivers") or ()):
        path, name, node_id = f"spec.drivers[{index}]", driver.get("name") or "", driver.get("nodeID") or ""
        errors += driver_name(name, f"{path}.name")
        if not node_id:
            errors.append(required(f"{path}.nodeID"))
        if len(node_id.encode()) > LONGEST_NODE_ID:
            errors.append(invalid(f"{path}.nodeID", node_id, f"must be {LONGEST_NODE_ID} characters or less"))
        errors += non_negative((driver.get("allocatable") or {}).get("count"), f"{path}.allocatable.count")
        if name in names:
            errors.append(duplicate(f"{path}.name", name))
        names.add(name)
        keys: set[str] = set()
        for key in driver.get("topologyKeys") or ():
            errors += [] if key else [required(path)]
            errors += [duplicate(path, key)] if key in keys else []
            keys.add(key)
            errors += each(path, key, is_qualified_name(key))
    return errors


def update_node(new: Object, old: Object) -> list[FieldError]:
    """Check that what a driver says of itself stays, except how many volumes it accepts."""
    errors: list[FieldError] = []
    for stored in (old.get("spec") or {}).get("drivers") or ():
        for driver in (new.get("spec") or {}).get("drivers") or ():
            if driver.get("name") == stored.get("name"):
                shown, had = ({**each_one, "allocatable": None} for each_one in (driver, stored))
                errors += [] if shown == had else [invalid("spec.drivers", _internal_driver(driver), IMMUTABLE)]
    return errors


def _internal_driver(driver: Object) -> Object:
    """With the names of the internal type, as the message has them."""
    shown = {"Name": driver.get("name") or "", "NodeID": driver.get("nodeID") or ""}
    return {**shown, "TopologyKeys": driver.get("topologyKeys"), "Allocatable": None}


def validate_capacity(capacity: Object) -> list[FieldError]:
    errors = label_selector(capacity.get("nodeTopology"), "nodeTopology")
    name = capacity.get("storageClassName") or ""
    errors += each("storageClassName", name, is_dns1123_subdomain(name))
    size = capacity.get("capacity")
    if size is not None and parse_quantity(size).value < 0:
        errors.append(invalid("capacity", size, NON_NEGATIVE))
    return errors


def update_capacity(new: Object, old: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    if new.get("nodeTopology") != old.get("nodeTopology"):
        errors.append(invalid("nodeTopology", in_order(new.get("nodeTopology")), IMMUTABLE))
    if new.get("storageClassName") != old.get("storageClassName"):
        errors.append(invalid("storageClassName", new.get("storageClassName") or "", IMMUTABLE))
    return errors


def validate_attachment(attachment: Object) -> list[FieldError]:
    spec, source = attachment.get("spec") or {}, (attachment.get("spec") or {}).get("source") or {}
    errors = driver_name(spec.get("attacher") or "", "spec.attacher")
    volume, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if volume is None and inline is None:
        errors.append(required("spec.source", why))
    elif volume is not None and inline is not None:
        errors.append(forbidden("spec.source", why))
    elif volume == "":
        errors.append(required("spec.source.persistentVolumeName", "must specify non empty persistentVolumeName"))
    if inline is not None and volume is None:
        errors += validate_inline_volume(inline, "spec.source.inlineVolumeSpec")
    node = spec.get("nodeName") or ""
    errors += each("spec.nodeName", node, is_dns1123_subdomain(node))
    errors += _attachment_status(attachment.get("status") or {})
    if volume is not None:
        errors += each("spec.source.persistentVolumeName", volume, is_dns1123_subdomain(volume))
    return errors


def _attachment_status(status: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    metadata = status.get("attachmentMetadata") or {}
    if sum(len(key.encode()) + len(value.encode()) for key, value in metadata.items()) > MOST_METADATA:
        errors.append(too_long("status.attachmentMetadata", MOST_METADATA))
    for key in ("attachError", "detachError"):
        error = status.get(key) or {}
        if len((error.get("message") or "").encode()) > LONGEST_MESSAGE:
            errors.append(too_long(f"status.{key}.message", MOST_METADATA))
        code = error.get("errorCode")
        if code is not None and code < 0:
            errors.append(invalid(f"status.{key}.errorCode", code, "must be between 0 and 2147483647, inclusive"))
    return errors


def update_attachment_status(new: Object, old: Object) -> list[FieldError]:
    return validate_attachment(new)


def update_attachment(new: Object, old: Object) -> list[FieldError]:
    if new.get("spec") == old.get("spec"):
        return []
    return [invalid("spec", internal("storage.v1.VolumeAttachmentSpec", new.get("spec") or {}), IMMUTABLE)]


def validate_attributes_class(attributes: Object) -> list[FieldError]:
    name = attributes.get("driverName") or ""
    errors = each("driverName", name.lower(), is_qualified_name(name.lower())) if name else [required("driverName")]
    parameters = attributes.get("parameters") or {}
    if len(parameters) > MOST_PARAMETERS:
        return [*errors, too_long("parameters", MOST_PARAMETERS)]
    errors += [invalid("parameters", "", "field can not be empty.") for key in parameters if not key]
    if sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items()) > MOST_METADATA:
        errors.append(too_long("parameters", MOST_METADATA))
    return errors if parameters else [*errors, required("parameters", "must contain at least one key/value pair")]


def update_attributes_class(new: Object, old: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    for key in ("driverName", "parameters"):
        if (new.get(key) or None) != (old.get(key) or None):
            errors.append(forbidden(key, f"updates to {key} are forbidden."))
    return errors


RULES = {
    "csidrivers": KindRules(obj=validate_driver, then=update_driver),
    "csinodes": KindRules(is_dns1123_subdomain, validate_node, then=update_node),
    "csistoragecapacities": KindRules(obj=validate_capacity, then=update_capacity),
    "volumeattachments": KindRules(
        obj=validate_attachment,
        then=update_attachment,
        subresources=(("status", update_attachment_status),),
    ),
    "volumeattributesclasses": KindRules(obj=validate_attributes_class, update=update_attributes_class),
}
"""By plural."""
