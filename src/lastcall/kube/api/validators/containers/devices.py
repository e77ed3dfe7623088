"""Devices of containers: volumes as blocks, and claims of resources.

Source: pkg/apis/core/validation/validation.go (validateVolumeDevices, validateVolumeMounts, validateResourceClaimNames,
validatePodResourceClaimStatuses, validatePodExtendedResourceClaimStatus).
"""

from lastcall.kube.api.field import FieldError, duplicate, each, invalid, not_found, required
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import is_dns1123_label, is_dns1123_subdomain
from lastcall.kube.api.validators.common import internal


def volume_devices(container: Object, spec: Object, path: str) -> list[FieldError]:
    """Check that a block device is a claim, and nothing is both a device and a directory."""
    errors, names, paths = list[FieldError](), set[str](), set[str]()
    kinds = {volume.get("name") or "": volume for volume in spec.get("volumes") or ()}
    mounts = container.get("volumeMounts") or ()
    for index, device in enumerate(container.get("volumeDevices") or ()):
        at, name, where = f"{path}[{index}]", device.get("name") or "", device.get("devicePath") or ""
        volume = kinds.get(name)
        if not name:
            errors.append(required(f"{at}.name"))
        if name in names:
            errors.append(invalid(f"{at}.name", name, "must be unique"))
        if volume is None:
            errors.append(not_found(f"{at}.name", name))
        elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
            why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            errors.append(invalid(f"{at}.name", name, why))
        if not where:
            errors.append(required(f"{at}.devicePath"))
        if where in paths:
            errors.append(invalid(f"{at}.devicePath", where, "must be unique"))
        if ".." in where.split("/"):
            errors.append(invalid(f"{at}.devicePath", where, "can not contain backsteps ('..')"))
        elif where:
            paths.add(where)
        if name and any(mount.get("name") == name for mount in mounts):
            errors.append(invalid(f"{at}.name", name, "must not already exist in volumeMounts"))
        if where and any(mount.get("mountPath") == where for mount in mounts):
            errors.append(invalid(f"{at}.devicePath", where, "must not already exist as a path in volumeMounts"))
        if name:
            names.add(name)
    return errors


def mount_beside_devices(container: Object, name: str, where: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    devices = container.get("volumeDevices") or ()
    if name and any(device.get("name") == name for device in devices):
        errors.append(invalid(f"{path}.name", name, "must not already exist in volumeDevices"))
    if where and any(device.get("devicePath") == where for device in devices):
        errors.append(invalid(f"{path}.mountPath", where, "must not already exist as a path in volumeDevices"))
    return errors


def claims_of_resources(container: Object, spec: Object, path: str) -> list[FieldError]:
    """Check that each claim that a container uses is one of its Pod."""
    errors, seen = list[FieldError](), set[tuple[str, str]]()
    known = [each_one.get("name") or "" for each_one in spec.get("resourceClaims") or ()]
    for index, claim in enumerate((container.get("resources") or {}).get("claims") or ()):
        at, name, request = f"{path}[{index}]", claim.get("name") or "", claim.get("request") or ""
        if not name:
            errors.append(required(at))
            continue
        if request:
            errors += each(f"{at}.request", request, is_dns1123_label(request))
        if (name, request) in seen or (name, "") in seen:
            errors.append(duplicate(at, f"{name}/{request}" if request and (name, request) in seen else name))
        seen.add((name, request))
        if name not in known:
            which = f": {', '.join(sorted(known))}" if known else " which is empty"
            errors.append(not_found(at, name, f"must be one of the names in pod.spec.resourceClaims{which}"))
    return errors


def claims_of_pod(spec: Object) -> list[FieldError]:
    """Check a Pod's resourceClaims. (`validatePodResourceClaims`)"""
    errors, seen = list[FieldError](), set[str]()
    keys = ("resourceClaimName", "resourceClaimTemplateName")
    for index, claim in enumerate(spec.get("resourceClaims") or ()):
        path, name = f"spec.resourceClaims[{index}]", claim.get("name") or ""
        if not name:
            errors.append(required(f"{path}.name"))
        elif name in seen:
            errors.append(duplicate(f"{path}.name", name))
        else:
            errors += each(f"{path}.name", name, is_dns1123_label(name))
            seen.add(name)
        given = [key for key in keys if claim.get(key) is not None]
        shown = internal("core.v1.PodResourceClaim", claim)
        if len(given) == 2:
            why = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            errors.append(invalid(path, shown, why))
        elif not given:
            why = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            errors.append(invalid(path, shown, why))
        for key in given:
            errors += each(f"{path}.{key}", claim[key], is_dns1123_subdomain(claim[key]))
    return errors


def claim_statuses(status: Object, spec: Object) -> list[FieldError]:
    """Check what a controller says of a Pod's claims."""
    errors, seen = list[FieldError](), set[str]()
    known = {claim.get("name") for claim in spec.get("resourceClaims") or ()}
    for index, claim in enumerate(status.get("resourceClaimStatuses") or ()):
        path, name = f"status.resourceClaimStatuses[{index}]", claim.get("name") or ""
        made = claim.get("resourceClaimName")
        if name not in known:
            why = "must match the name of an entry in `spec.resourceClaims`"
            errors.append(invalid(f"{path}.name", name, why))
        if name in seen:
            errors.append(duplicate(f"{path}.name", name))
        seen.add(name)
        if made is not None:
            errors += each(f"{path}.resourceClaimName", made, is_dns1123_subdomain(made))
    if (extended := status.get("extendedResourceClaimStatus")) is not None:
        errors += _extended(extended, spec)
    return errors


def _extended(claim: Object, spec: Object) -> list[FieldError]:
    path, errors = "status.extendedResourceClaimStatus", list[FieldError]()
    mappings = claim.get("requestMappings") or []
    if not mappings:
        errors.append(required(f"{path}.requestMappings", "at least one request mapping is required"))
    groups = ("initContainers", "containers")
    containers = {each_one.get("name"): each_one for group in groups for each_one in spec.get(group) or ()}
    for index, mapping in enumerate(mappings):
        at = f"{path}.requestMappings[{index}]"
        container, resource = containers.get(mapping.get("containerName")), mapping.get("resourceName") or ""
        if container is None:
            why = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
            errors.append(invalid(f"{at}.containerName", mapping.get("containerName") or "", why))
        elif resource not in ((container.get("resources") or {}).get("requests") or {}):
            why = (
                "must match the extended resource name of an entry in spec.initContainers.resources.requests or "
                "spec.containers.resources.requests"
            )
            errors.append(invalid(f"{at}.resourceName", resource, why))
        request = mapping.get("requestName") or ""
        errors += each(f"{path}.requestName", request, is_dns1123_label(request))
    name = claim.get("resourceClaimName") or ""
    at = f"{path}.resourceClaimName"
    return errors + (each(at, name, is_dns1123_subdomain(name)) if name else [required(at)])
