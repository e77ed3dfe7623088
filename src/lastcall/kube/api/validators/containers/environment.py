"""Environment variables of containers, and what refers to fields and resources, which volumes do, too.

Source: pkg/apis/core/validation/validation.go (ValidateEnv and below, validateEnvFrom, validateObjectFieldSelector).
"""

from collections.abc import Iterable, Sequence

from lastcall.kube.api.field import FieldError, each, invalid, not_supported, required
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import is_config_map_key, is_dns1123_subdomain, is_env_var_name, is_qualified_name
from lastcall.kube.api.quantity import parse_quantity

ENV_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
VOLUME_FIELDS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_POD_FIELDS = {*ENV_FIELDS, *VOLUME_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase"}
_ENV_RESOURCES = ("limits.cpu", "limits.ephemeral-storage", "limits.memory",
                  "requests.cpu", "requests.ephemeral-storage", "requests.memory")  # fmt: skip
_HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")
_DIVIDED = {"cpu": "cpu", "memory": "memory", "ephemeral-storage": "local ephemeral storage"}
_DIVISORS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")


def env(variables: Iterable[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, variable in enumerate(variables):
        at = f"{path}[{index}]"
        name = variable.get("name") or ""
        errors += each(f"{at}.name", name, is_env_var_name(name)) if name else [required(f"{at}.name")]
        errors += _env_value_from(variable, f"{at}.valueFrom")
    return errors


def _env_value_from(variable: Object, path: str) -> list[FieldError]:
    source = variable.get("valueFrom")
    if source is None:
        return []
    errors: list[FieldError] = []
    given = [key for key, value in source.items() if value is not None]
    if (field := source.get("fieldRef")) is not None:
        errors += field_ref(field, f"{path}.fieldRef", ENV_FIELDS)
    if (resource := source.get("resourceFieldRef")) is not None:
        errors += resource_field_ref(resource, f"{path}.resourceFieldRef", in_volume=False)
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if (reference := source.get(kind)) is not None:
            errors += _key_ref(reference, f"{path}.{kind}")
    if not given:
        why = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        errors.append(invalid(path, "", why))
    elif variable.get("value"):
        errors.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif len(given) > 1:
        errors.append(invalid(path, "", "may not have more than one field specified at a time"))
    return errors


def _key_ref(reference: Object, path: str) -> list[FieldError]:
    name, key = reference.get("name") or "", reference.get("key") or ""
    errors = each(f"{path}.name", name, is_dns1123_subdomain(name))
    return errors + (each(f"{path}.key", key, is_config_map_key(key)) if key else [required(f"{path}.key")])


def field_ref(reference: Object, path: str, supported: Sequence[str]) -> list[FieldError]:
    """Check a downward API reference. (`validateObjectFieldSelector`)"""
    if not reference.get("apiVersion"):
        return [required(f"{path}.apiVersion")]
    field = reference.get("fieldPath") or ""
    if not field:
        return [required(f"{path}.fieldPath")]
    base, bracket, subscript = field.partition("['")
    if bracket and base in ("metadata.annotations", "metadata.labels") and subscript.endswith("']"):
        key = subscript[:-2]
        problems = is_qualified_name(key.lower() if base.endswith("annotations") else key)
        return [invalid(path, key, problem) for problem in problems]
    if field not in _POD_FIELDS:
        problem = "does not support subscript" if bracket and field.endswith("']") else "not supported"
        why = f"error converting fieldPath: field label {problem}: {field}"
        return [invalid(f"{path}.fieldPath", field, why)]
    return [] if field in supported else [not_supported(f"{path}.fieldPath", field, supported)]


def resource_field_ref(reference: Object, path: str, *, in_volume: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    if in_volume and not reference.get("containerName"):
        errors.append(required(f"{path}.containerName"))
    resource = reference.get("resource") or ""
    if errors:
        pass  # the first problem is the only one
    elif not resource:
        errors.append(required(f"{path}.resource"))
    elif resource not in _ENV_RESOURCES and not resource.startswith(_HUGE_PAGES):
        errors.append(not_supported(f"{path}.resource", resource, _ENV_RESOURCES))
    divisor = parse_quantity(reference.get("divisor") or "0")
    named = _DIVIDED.get(resource.partition(".")[2]) or ("hugepages" if resource.startswith(_HUGE_PAGES) else "")
    values = ("1m", "1") if named == "cpu" else _DIVISORS
    if divisor.value and named and str(divisor) not in values:
        why = f"only divisor's values {' and '.join(values) if named == 'cpu' else ', '.join(values)} are supported"
        errors.append(invalid(f"{path}.divisor", resource, f"{why} with the {named} resource"))
    return errors


def env_from(sources: Iterable[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, source in enumerate(sources):
        at = f"{path}[{index}]"
        if source.get("prefix"):
            errors += each(f"{at}.prefix", source["prefix"], is_env_var_name(source["prefix"]))
        given = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
        for kind in given:
            name = source[kind].get("name") or ""
            at_name = f"{at}.{kind}.name"
            errors += each(at_name, name, is_dns1123_subdomain(name)) if name else [required(at_name)]
        # Kubernetes gives these paths without an index.
        if not given:
            errors.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(given) > 1:
            errors.append(invalid(path, "", "may not have more than one field specified at a time"))
    return errors
