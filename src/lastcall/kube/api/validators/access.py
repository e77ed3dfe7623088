"""Roles and bindings, Ingresses. Sources: pkg/apis/rbac/validation, pkg/apis/networking/validation."""

from lastcall.kube.api.field import FieldError, each, invalid, not_supported, required
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import (
    is_dns1123_label,
    is_dns1123_subdomain,
    is_ip,
    is_path_segment_name,
    is_port_name,
    is_port_number,
    is_wildcard,
)
from lastcall.kube.api.validators.common import label_selector

RBAC_GROUP = "rbac.authorization.k8s.io"


def validate_role(obj: Object) -> list[FieldError]:
    return _rules(obj, namespaced=True)


def validate_cluster_role(obj: Object) -> list[FieldError]:
    return [*_rules(obj, namespaced=False), *_aggregation(obj.get("aggregationRule"))]


def _aggregation(rule: Object | None) -> list[FieldError]:
    if rule is None:
        return []
    path = "aggregationRule.clusterRoleSelectors"
    selectors = rule.get("clusterRoleSelectors") or ()
    if not selectors:
        return [required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")]
    errors: list[FieldError] = []
    for index, selector in enumerate(selectors):
        at = f"{path}[{index}]"
        if found := label_selector(selector, at):
            errors += [*found, invalid(at, None, "invalid label selector.")]
    return errors


def _rules(obj: Object, *, namespaced: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, rule in enumerate(obj.get("rules") or ()):
        path = f"rules[{index}]"
        if not rule.get("verbs"):
            errors.append(required(f"{path}.verbs", "verbs must contain at least one value"))
        urls = rule.get("nonResourceURLs")
        if urls:
            if namespaced:
                why = "namespaced rules cannot apply to non-resource URLs"
                errors.append(invalid(f"{path}.nonResourceURLs", urls, why))
            if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                why = "rules cannot apply to both regular resources and non-resource URLs"
                errors.append(invalid(f"{path}.nonResourceURLs", urls, why))
            continue
        if not rule.get("apiGroups"):
            errors.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
        if not rule.get("resources"):
            errors.append(required(f"{path}.resources", "resource rules must supply at least one resource"))
    return errors


def validate_role_binding(obj: Object) -> list[FieldError]:
    return _binding(obj, ("Role", "ClusterRole"), namespaced=True)


def validate_cluster_role_binding(obj: Object) -> list[FieldError]:
    return _binding(obj, ("ClusterRole",), namespaced=False)


def _binding(obj: Object, kinds: tuple[str, ...], *, namespaced: bool) -> list[FieldError]:
    reference = obj.get("roleRef") or {}
    errors: list[FieldError] = []
    if reference.get("apiGroup") != RBAC_GROUP:
        group = reference.get("apiGroup") or ""
        errors.append(not_supported("roleRef.apiGroup", group, (RBAC_GROUP,)))
    if reference.get("kind") not in kinds:
        errors.append(not_supported("roleRef.kind", reference.get("kind") or "", kinds))
    if not reference.get("name"):
        errors.append(required("roleRef.name"))
    else:
        errors += each("roleRef.name", reference["name"], is_path_segment_name(reference["name"]))
    for index, subject in enumerate(obj.get("subjects") or ()):
        path = f"subjects[{index}]"
        if not subject.get("name"):
            errors.append(required(f"{path}.name"))
        if subject.get("kind") not in ("ServiceAccount", "User", "Group"):
            supported = ("ServiceAccount", "User", "Group")
            errors.append(not_supported(f"{path}.kind", subject.get("kind") or "", supported))
        elif subject["kind"] == "ServiceAccount":
            errors += _account(subject, path, namespaced=namespaced)
        elif subject.get("apiGroup") != RBAC_GROUP:
            errors.append(not_supported(f"{path}.apiGroup", subject.get("apiGroup") or "", (RBAC_GROUP,)))
    return errors


def _account(subject: Object, path: str, *, namespaced: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    if subject.get("name"):
        errors += each(f"{path}.name", subject["name"], is_dns1123_subdomain(subject["name"]))
    if subject.get("apiGroup"):
        errors.append(not_supported(f"{path}.apiGroup", subject["apiGroup"], ("",)))
    if not namespaced and not subject.get("namespace"):
        errors.append(required(f"{path}.namespace"))
    return errors


def update_role_binding(new: Object, old: Object) -> list[FieldError]:
    if new.get("roleRef") == old.get("roleRef"):
        return []
    reference = new.get("roleRef") or {}
    shown = {key: reference.get(key[0].lower() + key[1:], "") for key in ("Kind", "Name")}
    return [invalid("roleRef", {"APIGroup": reference.get("apiGroup", ""), **shown}, "cannot change roleRef")]


def validate_ingress(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors: list[FieldError] = []
    if not spec.get("rules") and spec.get("defaultBackend") is None:
        errors.append(invalid("spec", spec.get("rules"), "either `defaultBackend` or `rules` must be specified"))
    if spec.get("defaultBackend") is not None:
        errors += _backend(spec["defaultBackend"], "spec.defaultBackend")
    for index, rule in enumerate(spec.get("rules") or ()):
        path = f"spec.rules[{index}]"
        if host := rule.get("host") or "":
            errors += _host(host, f"{path}.host")
        paths = (rule.get("http") or {}).get("paths") or ()
        if rule.get("http") is not None and not paths:
            errors.append(required(f"{path}.http.paths"))
        for position, entry in enumerate(paths):
            errors += _path(entry, f"{path}.http.paths[{position}]")
    for index, tls in enumerate(spec.get("tls") or ()):
        for position, host in enumerate(tls.get("hosts") or ()):
            path = f"spec.tls[{index}].hosts[{position}]"
            errors += each(path, host, is_wildcard(host) if "*" in host else is_dns1123_subdomain(host))
        if secret := tls.get("secretName") or "":
            errors += each(f"spec.tls[{index}].secretName", secret, is_dns1123_subdomain(secret))
    if (name := spec.get("ingressClassName")) is not None:
        errors += each("spec.ingressClassName", name, is_dns1123_subdomain(name))
    return errors


def _host(host: str, path: str) -> list[FieldError]:
    if not is_ip(host):
        return [invalid(path, host, "must be a DNS name, not an IP address")]
    return each(path, host, is_wildcard(host) if "*" in host else is_dns1123_subdomain(host))


def _path(entry: Object, at: str) -> list[FieldError]:
    errors: list[FieldError] = []
    kind, path = entry.get("pathType"), entry.get("path") or ""
    if kind is None:
        errors.append(required(f"{at}.pathType", "pathType must be specified"))
    elif kind in ("Exact", "Prefix"):
        if not path.startswith("/"):
            errors.append(invalid(f"{at}.path", path, "must be an absolute path"))
    elif kind == "ImplementationSpecific":
        if path and not path.startswith("/"):
            errors.append(invalid(f"{at}.path", path, "must be an absolute path"))
    else:
        errors.append(not_supported(f"{at}.pathType", kind, ("Exact", "ImplementationSpecific", "Prefix")))
    if kind is not None:
        errors += _backend(entry.get("backend") or {}, f"{at}.backend")
    return errors


def _backend(backend: Object, path: str) -> list[FieldError]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is None and resource is None:
        return [invalid(path, "", "resource or service backend is required")]
    if service is not None and resource is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if service is None:
        return _resource_backend(resource or {}, f"{path}.resource")
    name, port = service.get("name") or "", service.get("port") or {}
    errors = each(f"{path}.service.name", name, is_dns1123_label(name)) if name else [required(f"{path}.service.name")]
    if port.get("name") and port.get("number"):
        return [*errors, invalid(path, "", "cannot set both port name & port number")]
    if port.get("name"):
        return errors + each(f"{path}.service.port.name", port["name"], is_port_name(port["name"]))
    if port.get("number"):
        return errors + each(f"{path}.service.port.number", port["number"], is_port_number(port["number"]))
    return [*errors, required(path, "port name or number is required")]


def _resource_backend(resource: Object, path: str) -> list[FieldError]:
    """(`validateIngressTypedLocalObjectReference`)"""
    errors: list[FieldError] = []
    if (group := resource.get("apiGroup")) is not None:
        errors += each(f"{path}.apiGroup", group, is_dns1123_subdomain(group))
    for key in ("kind", "name"):
        value = resource.get(key) or ""
        errors += each(f"{path}.{key}", value, is_path_segment_name(value)) if value else [required(f"{path}.{key}")]
    return errors
