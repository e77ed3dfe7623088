"""The spec of a Pod. Source: pkg/apis/core/validation/validation.go (ValidatePodSpec), in its order."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from lastcall.kube.api.field import FieldError, duplicate, each, forbidden, invalid, not_supported, required, too_long
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import (
    between,
    is_dns1123_label,
    is_dns1123_subdomain,
    is_ip,
    is_label_value,
    is_qualified_name,
    is_search_domain,
)
from lastcall.kube.api.quantity import QuantityError, parse_quantity
from lastcall.kube.api.resource_lists import pod_requests
from lastcall.kube.api.validators.common import (
    POSITIVE,
    app_armor_profile,
    label_selector,
    one_of,
    required_one_of,
    seccomp_profile,
)
from lastcall.kube.api.validators.containers.devices import claims_of_pod, claims_of_resources
from lastcall.kube.api.validators.containers.specs import (
    user_id,
    validate_containers,
    validate_ephemeral_containers,
    validate_init_containers,
    validate_resources,
)
from lastcall.kube.api.validators.containers.windows import host_process, windows_options
from lastcall.kube.api.validators.metadata import validate_labels
from lastcall.kube.api.validators.node_selectors import node_selector, node_selector_term
from lastcall.kube.api.validators.storage.pod_volumes import validate_volumes

RESTART_POLICIES = ("Always", "OnFailure", "Never")
DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
MAX_INT32 = 2**31 - 1
LONGEST_HOST_NAME = 64
"""Bytes."""
_SYSCTL = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")


def validate_pod_spec(spec: Object, *, is_pod: bool = False) -> list[FieldError]:
    """Check the spec of a Pod; `is_pod`: it is not that of a template."""
    period = spec.get("terminationGracePeriodSeconds")
    grace = period if period is not None and period >= 0 else None
    errors, volumes = validate_volumes(spec.get("volumes") or (), is_pod=is_pod)
    errors += claims_of_pod(spec)
    errors += validate_containers(spec, volumes, grace=grace)
    errors += validate_init_containers(spec, volumes, grace=grace)
    errors += validate_ephemeral_containers(spec, volumes)
    resources = spec.get("resources") or {}
    if resources.get("claims"):
        errors.append(forbidden("spec.resources.claims", "claims may not be set for Resources at pod-level"))
        errors += claims_of_resources(spec, spec, "spec.resources.claims")
    errors += validate_resources(resources, "spec.resources")
    errors += _beyond_pod_level(spec)
    errors += _host_network(spec)
    errors += required_one_of(spec.get("restartPolicy"), "spec.restartPolicy", RESTART_POLICIES)
    errors += required_one_of(spec.get("dnsPolicy"), "spec.dnsPolicy", DNS_POLICIES)
    errors += validate_labels(spec.get("nodeSelector"), "spec.nodeSelector")
    errors += _security_context(spec.get("securityContext") or {}, spec)
    errors += _host_users(spec)
    errors += _affinity(spec.get("affinity") or {})
    errors += _dns_config(spec)
    errors += _gates(spec)
    errors += _topology_spread(spec.get("topologySpreadConstraints") or ())
    for key, check in (("serviceAccountName", is_dns1123_subdomain), ("nodeName", is_dns1123_subdomain)):
        if spec.get(key):
            errors += each(f"spec.{key}", spec[key], check(spec[key]))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= MAX_INT32:
        errors.append(invalid("spec.activeDeadlineSeconds", deadline, between(1, MAX_INT32)))
    errors += _host_name_override(spec)
    for key in ("hostname", "subdomain"):
        if spec.get(key):
            errors += each(f"spec.{key}", spec[key], is_dns1123_label(spec[key]))
    errors += validate_tolerations(spec.get("tolerations") or (), "spec.tolerations")
    errors += _host_aliases(spec.get("hostAliases") or ())
    for key in ("priorityClassName", "runtimeClassName"):
        if spec.get(key):
            errors += each(f"spec.{key}", spec[key], is_dns1123_subdomain(spec[key]))
    errors += one_of(spec.get("preemptionPolicy"), "spec.preemptionPolicy", ("PreemptLowerPriority", "Never"))
    groups = ("containers", "initContainers", "ephemeralContainers")
    every = ((f"spec.{key}[{at}]", each_one) for key in groups for at, each_one in enumerate(spec.get(key) or ()))
    return errors + host_process(spec, every) + _os(spec.get("os"), spec)


def _host_name_override(spec: Object) -> list[FieldError]:
    """(`validateHostnameOverride`)"""
    name, path = spec.get("hostnameOverride"), "spec.hostnameOverride"
    if name is None:
        return []
    errors = [
        forbidden(path, f"may not be specified when {key} is true")
        for key in ("setHostnameAsFQDN", "hostNetwork")
        if spec.get(key)
    ]
    errors += each(path, name, is_dns1123_subdomain(name))
    return [*errors, too_long(path, LONGEST_HOST_NAME)] if len(name.encode()) > LONGEST_HOST_NAME else errors


def _host_users(spec: Object) -> list[FieldError]:
    """(`validateHostUsers`, whose paths are written like this)"""
    if spec.get("hostUsers") is not False:
        return []
    why = "when `hostUsers` is false"
    fields = {"hostNetwork": "hostNetwork", "hostPID": "HostPID", "hostIPC": "HostIPC"}
    errors = [forbidden(f"spec.{shown}", why) for key, shown in fields.items() if spec.get(key)]
    for group in ("containers", "initContainers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(group) or ()):
            if container.get("volumeDevices"):
                errors.append(forbidden(f"spec.{group}[{index}].volumeDevices", why))
    return errors


def _os(os: Object | None, spec: Object) -> list[FieldError]:
    """(`validateOS`, `validateWindows`)"""
    if os is None:
        return []
    name = os.get("name") or ""
    if not name:
        return [required("spec.os.name")]
    if name == "windows" and spec.get("hostUsers") is not None:
        return [forbidden("spec.hostUsers", "cannot be set for a windows pod")]
    return [] if name in ("linux", "windows") else [not_supported("spec.os", name, ("linux", "windows"))]


def _beyond_pod_level(spec: Object) -> list[FieldError]:
    """Containers may not ask for more than the Pod itself does. (`validatePodResourceConsistency`)"""
    resources = spec.get("resources") or {}
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    errors: list[FieldError] = []
    try:
        total = pod_requests({**spec, "resources": {}}, overhead=False)
        for name in sorted(requests):
            if name in total and parse_quantity(requests[name]) < total[name]:
                why = f"must be greater than or equal to aggregate container requests of {total[name]}"
                errors.append(invalid(f"spec.resources.requests[{name}]", requests[name], why))
        for group in ("containers", "initContainers"):
            for index, container in enumerate(spec.get(group) or ()):
                own = (container.get("resources") or {}).get("limits") or {}
                for name in sorted(own):
                    if name in limits and parse_quantity(limits[name]) < parse_quantity(own[name]):
                        why = f"must be less than or equal to pod limits of {limits[name]}"
                        errors.append(invalid(f"spec.resources.{group}[{index}][{name}].limits", own[name], why))
    except QuantityError:
        return []  # said by the check of each list
    return errors


def _host_network(spec: Object) -> list[FieldError]:
    if not spec.get("hostNetwork"):
        return []
    errors: list[FieldError] = []
    for index, container in enumerate(spec.get("containers") or ()):
        for position, port in enumerate(container.get("ports") or ()):
            if port.get("hostPort") != port.get("containerPort"):
                path = f"spec.containers[{index}].ports[{position}].hostPort"
                why = "must match `containerPort` when `hostNetwork` is true"
                errors.append(invalid(path, port.get("hostPort") or 0, why))
    return errors


def _security_context(context: Object, spec: Object) -> list[FieldError]:
    path = "spec.securityContext"
    errors: list[FieldError] = []
    for key in ("fsGroup", "runAsUser", "runAsGroup"):
        errors += user_id(context.get(key), f"{path}.{key}")
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        errors += user_id(group, f"{path}.supplementalGroups[{index}]")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        why = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(invalid(f"{path}.shareProcessNamespace", True, why))
    names: list[str] = []
    for index, sysctl in enumerate(context.get("sysctls") or ()):
        name = sysctl.get("name") or ""
        at = f"{path}.sysctls[{index}].name"
        if not name:
            errors.append(required(at))
        elif len(name) > 253 or not _SYSCTL.fullmatch(name):
            errors.append(invalid(at, name, f"must have at most 253 characters and match regex ^{_SYSCTL.pattern}$"))
        elif name in names:
            errors.append(duplicate(at, name))
        names.append(name)
    policies = ("Always", "OnRootMismatch")
    errors += one_of(context.get("fsGroupChangePolicy"), f"{path}.fsGroupChangePolicy", policies)
    errors += one_of(context.get("seLinuxChangePolicy"), f"{path}.seLinuxChangePolicy", ("Recursive",))
    errors += seccomp_profile(context.get("seccompProfile"), f"{path}.seccompProfile")
    errors += windows_options(context, path)
    errors += app_armor_profile(context.get("appArmorProfile"), f"{path}.appArmorProfile")
    groups_policy = context.get("supplementalGroupsPolicy")
    return errors + one_of(groups_policy, f"{path}.supplementalGroupsPolicy", ("Merge", "Strict"))


def _affinity(affinity: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    node = affinity.get("nodeAffinity") or {}
    path = "spec.affinity.nodeAffinity"
    needed = node.get("requiredDuringSchedulingIgnoredDuringExecution")
    if needed is not None:
        errors += node_selector(needed, f"{path}.requiredDuringSchedulingIgnoredDuringExecution")
    for index, wish in enumerate(node.get("preferredDuringSchedulingIgnoredDuringExecution") or ()):
        at = f"{path}.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
        errors += _weight(wish, at)
        errors += node_selector_term(wish.get("preference") or {}, f"{at}.preference", values=False)
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        at = f"spec.affinity.{kind}.requiredDuringSchedulingIgnoredDuringExecution"
        for index, term in enumerate(rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ()):
            errors += _pod_affinity_term(term, f"{at}[{index}]")
        at = f"spec.affinity.{kind}.preferredDuringSchedulingIgnoredDuringExecution"
        for index, wish in enumerate(rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ()):
            errors += _weight(wish, f"{at}[{index}]")
            errors += _pod_affinity_term(wish.get("podAffinityTerm") or {}, f"{at}[{index}].podAffinityTerm")
    return errors


def _weight(wish: Object, path: str) -> list[FieldError]:
    weight = wish.get("weight", 0)
    return [] if 1 <= weight <= 100 else [invalid(f"{path}.weight", weight, "must be in the range 1-100")]


def _pod_affinity_term(term: Object, path: str) -> list[FieldError]:
    errors = label_selector(term.get("labelSelector"), f"{path}.labelSelector")
    errors += label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for name in term.get("namespaces") or ():
        errors += each(f"{path}.namespace", name, is_dns1123_label(name))
    key = term.get("topologyKey") or ""
    if not key:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    return errors + each(f"{path}.topologyKey", key, is_qualified_name(key))


def _dns_config(spec: Object) -> list[FieldError]:
    config = spec.get("dnsConfig")
    path = "spec.dnsConfig"
    if spec.get("dnsPolicy") == "None":
        if config is None:
            return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not config.get("nameservers"):
            why = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [required(f"{path}.nameservers", why)]
    errors: list[FieldError] = []
    servers = (config or {}).get("nameservers") or []
    if len(servers) > 3:
        errors.append(invalid(f"{path}.nameservers", servers, "must not have more than 3 nameservers"))
    for index, address in enumerate(servers):
        errors += each(f"{path}.nameservers[{index}]", address, is_ip(address))
    searches = (config or {}).get("searches") or []
    if len(searches) > 32:
        errors.append(invalid(f"{path}.searches", searches, "must not have more than 32 search paths"))
    if len(" ".join(searches).encode()) > 2048:
        why = "must not have more than 2048 characters (including spaces) in the search list"
        errors.append(invalid(f"{path}.searches", searches, why))
    for index, search in enumerate(searches):
        if search != ".":
            domain = search.removesuffix(".")
            errors += each(f"{path}.searches[{index}]", domain, is_search_domain(domain))
    for index, option in enumerate((config or {}).get("options") or ()):
        if not option.get("name"):
            errors.append(required(f"{path}.options[{index}]", "must not be empty"))
    return errors


def _gates(spec: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        kind = gate.get("conditionType", "")
        errors += each(f"spec.readinessGates[{index}].conditionType", kind, is_qualified_name(kind))
    names: list[str] = []
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        name = gate.get("name", "")
        errors += each(f"spec.schedulingGates[{index}]", name, is_qualified_name(name))
        if name in names:
            errors.append(duplicate(f"spec.schedulingGates[{index}]", name))
        names.append(name)
    return errors


def _topology_spread(constraints: Sequence[Object]) -> list[FieldError]:
    errors: list[FieldError] = []
    pairs = [(item.get("topologyKey") or "", item.get("whenUnsatisfiable") or "") for item in constraints]
    for index, constraint in enumerate(constraints):
        at = f"spec.topologySpreadConstraints[{index}]"
        skew = constraint.get("maxSkew", 0)
        if skew <= 0:
            errors.append(invalid(f"{at}.maxSkew", skew, "must be greater than zero"))
        key = constraint.get("topologyKey") or ""
        if not key:
            errors.append(required(f"{at}.topologyKey", "can not be empty"))
        actions, action = ("DoNotSchedule", "ScheduleAnyway"), constraint.get("whenUnsatisfiable") or ""
        if action not in actions:
            errors.append(not_supported(f"{at}.whenUnsatisfiable", action, actions))
        if (key, action) in pairs[index + 1 :]:
            errors.append(duplicate(f"{at}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
        if (domains := constraint.get("minDomains")) is not None:
            if domains <= 0:
                errors.append(invalid(f"{at}.minDomains", domains, POSITIVE))
            if action != "DoNotSchedule":
                why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                errors.append(invalid(f"{at}.minDomains", domains, why))
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            errors += one_of(constraint.get(policy), f"{at}.{policy}", ("Honor", "Ignore"))
        errors += label_selector(constraint.get("labelSelector"), f"{at}.labelSelector")
    return errors


def validate_tolerations(tolerations: Iterable[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, toleration in enumerate(tolerations):
        at = f"{path}[{index}]"
        key, operator = toleration.get("key") or "", toleration.get("operator") or ""
        value, effect = toleration.get("value") or "", toleration.get("effect") or ""
        if key:
            errors += each(f"{at}.key", key, is_qualified_name(key))
        elif operator != "Exists":
            why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            errors.append(invalid(f"{at}.operator", operator, why))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            errors.append(invalid(f"{at}.effect", effect, why))
        if operator in ("", "Equal"):
            if problems := is_label_value(value):
                errors.append(invalid(f"{at}.operator", value, ";".join(problems)))
        elif operator == "Exists":
            if value:
                errors.append(invalid(f"{at}.operator", value, "value must be empty when `operator` is 'Exists'"))
        else:
            comparing = ("Lt", "Gt") if operator in ("Lt", "Gt") else ()  # they are known, and their gate is off
            errors.append(not_supported(f"{at}.operator", operator, ("Equal", "Exists", *comparing)))
        errors += one_of(effect, f"{at}.effect", TAINT_EFFECTS)
    return errors


def _host_aliases(aliases: Iterable[Any]) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, alias in enumerate(aliases):
        at = f"spec.hostAliases[{index}]"
        errors += each(f"{at}.ip", alias.get("ip") or "", is_ip(alias.get("ip") or ""))
        for position, name in enumerate(alias.get("hostnames") or ()):
            errors += each(f"{at}.hostnames[{position}]", name, is_dns1123_subdomain(name))
    return errors
