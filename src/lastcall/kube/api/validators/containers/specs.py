"""Containers of a Pod. Source: pkg/apis/core/validation/validation.go (validateContainers and below)."""

from collections.abc import Iterable, Sequence
from typing import Any

from lastcall.kube.api.field import (
    FieldError,
    duplicate,
    each,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
    too_many,
)
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import (
    between,
    is_dns1123_label,
    is_port_name,
    is_port_number,
    is_qualified_name,
)
from lastcall.kube.api.quantity import parse_quantity
from lastcall.kube.api.validators.common import (
    NON_NEGATIVE,
    app_armor_profile,
    local_path,
    one_of,
    required_one_of,
    seccomp_profile,
)
from lastcall.kube.api.validators.containers.devices import claims_of_resources, mount_beside_devices, volume_devices
from lastcall.kube.api.validators.containers.environment import env, env_from
from lastcall.kube.api.validators.containers.hooks import hooks_and_probes
from lastcall.kube.api.validators.containers.windows import windows_options

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
PROTOCOLS = ("SCTP", "TCP", "UDP")
CONTAINER_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_RESOURCES = ("cpu", "ephemeral-storage", "memory")
_STANDARD_RESOURCES = (*_RESOURCES, "storage", "pods", "services", "replicationcontrollers", "resourcequotas",
                       "secrets", "configmaps", "persistentvolumeclaims", "services.nodeports",
                       "services.loadbalancers",
                       "requests.cpu", "requests.memory", "requests.storage", "requests.ephemeral-storage",
                       "limits.cpu", "limits.memory", "limits.ephemeral-storage")  # fmt: skip
_MAX_ID = 2**31 - 1


def validate_containers(
    spec: Object, volumes: Sequence[str], path: str = "spec.containers", *, grace: int | None
) -> list[FieldError]:
    """Check containers; `grace` is the Pod's period in seconds, None when it is itself wrong."""
    containers: list[Object] = spec.get("containers") or []
    if not containers:
        return [required(path)]
    errors: list[FieldError] = []
    names: list[str] = []
    for index, container in enumerate(containers):
        at = f"{path}[{index}]"
        errors += _common(container, volumes, at, spec)
        errors += _unique_name(container, names, at)
        errors += hooks_and_probes(container, at, grace, spec.get("os"))
        errors += _restart_policy(container, at)
    return errors + _host_port_conflicts(containers, path)


def validate_init_containers(
    spec: Object, volumes: Sequence[str], path: str = "spec.initContainers", *, grace: int | None
) -> list[FieldError]:
    names = [container.get("name", "") for container in spec.get("containers") or ()]
    errors: list[FieldError] = []
    for index, container in enumerate(spec.get("initContainers") or ()):
        at = f"{path}[{index}]"
        errors += _common(container, volumes, at, spec)
        errors += _restart_policy(container, at, of_init=True)
        if container.get("name"):
            errors += _unique_name(container, names, at)
        errors += _host_port_conflicts([container], path)
        if container.get("restartPolicy") == "Always":
            errors += hooks_and_probes(container, at, grace, spec.get("os"))
            continue
        for key in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
            if container.get(key) is not None:
                why = "may not be set for init containers without restartPolicy=Always"
                errors.append(forbidden(f"{at}.{key}", why))
        for number, policy in enumerate(container.get("resizePolicy") or ()):
            if policy.get("restartPolicy") == "RestartContainer":
                why = "must not be set to 'RestartContainer' for non-sidecar initContainers"
                errors.append(invalid(f"{at}.resizePolicy[{number}].restartPolicy", "RestartContainer", why))
    return errors


MAX_RESTART_RULES = 20
MAX_EXIT_CODES = 255


def _restart_policy(container: Object, at: str, *, of_init: bool = False) -> list[FieldError]:
    """(`validateContainerRestartPolicy`)"""
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or []
    if not policy:
        why = "must specify restartPolicy when restart rules are used"
        errors = [required(f"{at}.restartPolicy", why)] if rules else []
        if of_init:
            return errors
    else:
        errors = one_of(policy, f"{at}.restartPolicy", CONTAINER_RESTART_POLICIES)
    if len(rules) > MAX_RESTART_RULES:
        errors.append(too_many(f"{at}.restartPolicyRules", len(rules), MAX_RESTART_RULES))
    for index, rule in enumerate(rules):
        path = f"{at}.restartPolicyRules[{index}]"
        errors += _known(rule.get("action"), f"{path}.action", ("Restart", "RestartAllContainers"))
        codes = rule.get("exitCodes")
        if codes is None:
            errors.append(required(f"{path}.exitCodes", "must be specified"))
            continue
        errors += _known(codes.get("operator"), f"{path}.exitCodes.operator", ("In", "NotIn"))
        values = codes.get("values") or []
        if len(values) > MAX_EXIT_CODES:
            errors.append(too_many(f"{path}.exitCodes.values", len(values), MAX_EXIT_CODES))
    return errors


def _known(value: str | None, path: str, supported: Sequence[str]) -> list[FieldError]:
    return [] if value in supported else [not_supported(path, value or "", supported)]


_EPHEMERAL_FORBIDDEN = (
    "ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", "livenessProbe", "readinessProbe",
    "startupProbe", "lifecycle",
)  # fmt: skip


def validate_ephemeral_containers(
    spec: Object, volumes: Sequence[str], path: str = "spec.ephemeralContainers"
) -> list[FieldError]:
    names = [item.get("name", "") for group in ("containers", "initContainers") for item in spec.get(group) or ()]
    targets = list(names)
    errors: list[FieldError] = []
    for index, container in enumerate(spec.get("ephemeralContainers") or ()):
        at = f"{path}[{index}]"
        errors += _common(container, volumes, at, spec)
        errors += _unique_name(container, names, at)
        target = container.get("targetContainerName")
        if target and target not in targets:
            errors.append(not_found(f"{at}.targetContainerName", target))
        for key in _EPHEMERAL_FORBIDDEN:
            if container.get(key):
                errors.append(forbidden(f"{at}.{key}", "cannot be set for an Ephemeral Container"))
        for position, mount in enumerate(container.get("volumeMounts") or ()):
            for key in ("subPath", "subPathExpr"):
                if mount.get(key):
                    why = "cannot be set for an Ephemeral Container"
                    errors.append(forbidden(f"{at}.volumeMounts[{position}].{key}", why))
    return errors


def _unique_name(container: Object, names: list[str], at: str) -> list[FieldError]:
    name = container.get("name") or ""
    if name in names:
        return [duplicate(f"{at}.name", name)]
    names.append(name)
    return []


def image_errors(container: Object, at: str) -> list[FieldError]:
    """Check that there is an image, and no space around its name."""
    image = container.get("image") or ""
    if not image:
        return [required(f"{at}.image")]
    if image != image.strip():
        return [invalid(f"{at}.image", image, "must not have leading or trailing whitespace")]
    return []


def _common(container: Object, volumes: Sequence[str], at: str, spec: Object) -> list[FieldError]:
    """(`validateContainerCommon`)"""
    errors: list[FieldError] = []
    name = container.get("name") or ""
    errors += each(f"{at}.name", name, is_dns1123_label(name)) if name else [required(f"{at}.name")]
    errors += image_errors(container, at)
    policy = container.get("terminationMessagePolicy")
    errors += one_of(policy, f"{at}.terminationMessagePolicy", ("File", "FallbackToLogsOnError"))
    errors += _ports(container.get("ports") or (), f"{at}.ports")
    errors += env(container.get("env") or (), f"{at}.env")
    errors += env_from(container.get("envFrom") or (), f"{at}.envFrom")
    errors += _volume_mounts(container, volumes, f"{at}.volumeMounts")
    errors += volume_devices(container, spec, f"{at}.volumeDevices")
    errors += required_one_of(container.get("imagePullPolicy"), f"{at}.imagePullPolicy", PULL_POLICIES)
    errors += claims_of_resources(container, spec, f"{at}.resources.claims")
    errors += validate_resources(container.get("resources") or {}, f"{at}.resources")
    errors += _resize_policy(container.get("resizePolicy") or (), f"{at}.resizePolicy", spec.get("restartPolicy"))
    host_users = spec.get("hostUsers") is not False
    return errors + _security_context(container.get("securityContext"), f"{at}.securityContext", host_users=host_users)


def _ports(ports: Iterable[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    names: list[str] = []
    for index, port in enumerate(ports):
        at = f"{path}[{index}]"
        name = port.get("name") or ""
        if name:
            problems = is_port_name(name)
            errors += each(f"{at}.name", name, problems)
            if not problems and name in names:
                errors.append(duplicate(f"{at}.name", name))
            names.append(name)
        number = port.get("containerPort") or 0
        if number == 0:
            errors.append(required(f"{at}.containerPort"))
        else:
            errors += each(f"{at}.containerPort", number, is_port_number(number))
        if port.get("hostPort"):
            errors += each(f"{at}.hostPort", port["hostPort"], is_port_number(port["hostPort"]))
        errors += required_one_of(port.get("protocol"), f"{at}.protocol", PROTOCOLS)
    return errors


def _host_port_conflicts(containers: Iterable[Object], path: str) -> list[FieldError]:
    """(`checkHostPortConflicts`)"""
    seen: set[str] = set()
    errors: list[FieldError] = []
    for index, container in enumerate(containers):
        for position, port in enumerate(container.get("ports") or ()):
            if port.get("hostPort"):
                key = f"{port.get('protocol')}/{port.get('hostIP') or ''}/{port['hostPort']}"
                if key in seen:
                    errors.append(duplicate(f"{path}[{index}].ports[{position}].hostPort", key))
                seen.add(key)
    return errors


def _volume_mounts(container: Object, volumes: Sequence[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    mounted: list[str] = []
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        at = f"{path}[{index}]"
        name, where = mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            errors.append(required(f"{at}.name"))
        if name not in volumes:
            errors.append(not_found(f"{at}.name", name))
        if not where:
            errors.append(required(f"{at}.mountPath"))
        if where in mounted:
            errors.append(invalid(f"{at}.mountPath", where, "must be unique"))
        errors += mount_beside_devices(container, name, where, at)
        mounted.append(where)
        if mount.get("subPath"):
            errors += local_path(mount["subPath"], f"{path}.subPath")
        if mount.get("subPathExpr"):
            if mount.get("subPath"):
                why = "subPathExpr and subPath are mutually exclusive"
                errors.append(invalid(f"{at}.subPathExpr", mount["subPathExpr"], why))
            errors += local_path(mount["subPathExpr"], f"{path}.subPathExpr")
        propagation = mount.get("mountPropagation")
        errors += one_of(propagation, f"{path}.mountPropagation", ("Bidirectional", "HostToContainer", "None"))
        if propagation == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
            why = "Bidirectional mount propagation is available only to privileged containers"
            errors.append(forbidden(f"{path}.mountPropagation", why))
        errors += _recursive_read_only(mount, f"{path}.recursiveReadOnly")
    return errors


def _recursive_read_only(mount: Object, path: str) -> list[FieldError]:
    """(`validateMountRecursiveReadOnly`)"""
    value = mount.get("recursiveReadOnly")
    errors = one_of(value, path, ("Disabled", "Enabled", "IfPossible"))
    if value in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            errors.append(forbidden(path, "may only be specified when readOnly is true"))
        if mount.get("mountPropagation") not in (None, "None"):
            why = "may only be specified when mountPropagation is None or not specified"
            errors.append(forbidden(path, why))
    return errors


def _resize_policy(policies: Iterable[Object], path: str, pod_policy: str | None) -> list[FieldError]:
    """(`validateResizePolicy`)"""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        resource, restart = policy.get("resourceName") or "", policy.get("restartPolicy") or ""
        if resource in seen:
            errors.append(duplicate(f"{path}[{index}]", resource))
        seen.add(resource)
        errors += required_one_of(resource, path, ("cpu", "memory"))
        errors += required_one_of(restart, path, ("NotRequired", "RestartContainer"))
        if pod_policy == "Never" and restart != "NotRequired":
            errors.append(invalid(path, restart, "must be 'NotRequired' when `restartPolicy` is 'Never'"))
    return errors


def validate_resources(resources: Object, path: str) -> list[FieldError]:
    """Check the resources of a container. (`ValidateContainerResourceRequirements`)"""
    errors: list[FieldError] = []
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for name in sorted(limits):
        errors += _resource(name, limits[name], f"{path}.limits")
    for name in sorted(requests):
        errors += _resource(name, requests[name], f"{path}.requests")
        asked = parse_quantity(requests[name])
        overcommit = "/" not in name and not name.startswith("hugepages-")
        if name in limits:
            limit = parse_quantity(limits[name])
            if asked != limit and not overcommit:
                why = f"must be equal to {name} limit of {limit}"
                errors.append(invalid(f"{path}.requests", str(asked), why))
            elif limit < asked:
                why = f"must be less than or equal to {name} limit of {limit}"
                errors.append(invalid(f"{path}.requests", str(asked), why))
        elif not overcommit:
            errors.append(required(f"{path}.limits", "Limit must be set for non overcommitable resources"))
    return errors


def _resource(name: str, quantity: Any, path: str) -> list[FieldError]:
    errors = each(f"{path}[{name}]", name, is_qualified_name(name))
    if "/" not in name and name not in _RESOURCES and not name.startswith("hugepages-"):
        if not errors and name not in _STANDARD_RESOURCES and not name.startswith("requests.hugepages-"):
            errors.append(invalid(f"{path}[{name}]", name, "must be a standard resource type or fully qualified"))
        errors.append(invalid(f"{path}[{name}]", name, "must be a standard resource for containers"))
    value = parse_quantity(quantity)
    if value.value < 0:
        errors.append(invalid(f"{path}[{name}]", str(value), NON_NEGATIVE))
    elif "/" in name and value.value.denominator != 1:
        errors.append(invalid(f"{path}[{name}]", str(value), "must be an integer"))
    return errors


def user_id(value: int | None, path: str) -> list[FieldError]:
    return [] if value is None or 0 <= value <= _MAX_ID else [invalid(path, value, between(0, _MAX_ID))]


_CONTEXT_FIELDS = (
    "Capabilities", "Privileged", "SELinuxOptions", "WindowsOptions", "RunAsUser", "RunAsGroup", "RunAsNonRoot",
    "ReadOnlyRootFilesystem", "AllowPrivilegeEscalation", "ProcMount", "SeccompProfile", "AppArmorProfile",
)  # fmt: skip


def _internal_context(context: Object) -> Object:
    """A security context as Kubernetes prints its internal type."""

    def shown(name: str) -> Any:
        value = context.get("seLinuxOptions" if name == "SELinuxOptions" else name[0].lower() + name[1:])
        if name == "Capabilities" and value is not None:
            return {"Add": value.get("add"), "Drop": value.get("drop")}
        return {key[0].upper() + key[1:]: item for key, item in value.items()} if isinstance(value, dict) else value

    return {name: shown(name) for name in _CONTEXT_FIELDS}


def _security_context(context: Object | None, path: str, *, host_users: bool) -> list[FieldError]:
    if not context:
        return []
    errors = user_id(context.get("runAsUser"), f"{path}.runAsUser")
    errors += user_id(context.get("runAsGroup"), f"{path}.runAsGroup")
    errors += one_of(context.get("procMount"), f"{path}.procMount", ("Default", "Unmasked"))
    if host_users and context.get("procMount") == "Unmasked":
        errors.append(invalid(f"{path}.procMount", "Unmasked", "`hostUsers` must be false to use `Unmasked`"))
    errors += seccomp_profile(context.get("seccompProfile"), f"{path}.seccompProfile")
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            errors.append(invalid(path, _internal_context(context), why))
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            errors.append(invalid(path, _internal_context(context), why))
    errors += windows_options(context, path)
    return errors + app_armor_profile(context.get("appArmorProfile"), f"{path}.appArmorProfile")
