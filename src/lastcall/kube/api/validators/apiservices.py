"""APIServices: which server answers for a group version.

Source: kube-aggregator pkg/apis/apiregistration/validation/validation.go.
"""

import base64

from lastcall.kube.api.field import FieldError, each, go_quote, invalid, not_supported, required
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import Check, is_dns1035_label, is_dns1123_subdomain, is_path_segment_name, is_port_number
from lastcall.kube.api.validators.kind_rules import KindRules

MOST_GROUP_PRIORITY = 20000
MOST_VERSION_PRIORITY = 1000
STATUSES = ("True", "False", "Unknown")


def validate_api_service(obj: Object) -> list[FieldError]:
    """Check an APIService. (`ValidateAPIService`)"""
    spec = obj.get("spec") or {}
    group, version = spec.get("group") or "", spec.get("version") or ""
    errors: list[FieldError] = []
    if not group and version != "v1":
        errors.append(required("spec.group", "only v1 may have an empty group and it better be legacy kube"))
    if group:
        errors += each("spec.group", group, is_dns1123_subdomain(group))
    errors += each("spec.version", version, is_dns1035_label(version))
    for key, most in (("groupPriorityMinimum", MOST_GROUP_PRIORITY), ("versionPriority", MOST_VERSION_PRIORITY)):
        number = spec.get(key) or 0
        if not 0 < number <= most:
            errors.append(invalid(f"spec.{key}", number, f"must be positive and less than {most}"))
    return errors + (_local(spec) if spec.get("service") is None else _remote(spec, spec["service"]))


def check_name(obj: Object) -> Check:
    """Return the check that a name says what is served, also one that a name is generated from.
    (`ValidateAPIService`)"""
    spec = obj.get("spec") or {}
    wanted = f"{spec.get('version') or ''}.{spec.get('group') or ''}"

    def check(name: str) -> list[str]:
        why = f'must be `spec.version+"."+spec.group`: {go_quote(wanted)}'
        return is_path_segment_name(name) or ([] if name == wanted else [why])

    return check


def _local(spec: Object) -> list[FieldError]:
    errors = []
    if bundle := spec.get("caBundle"):
        size = f"{len(base64.b64decode(bundle))} bytes"
        errors.append(invalid("spec.caBundle", size, "local APIServices may not have a caBundle"))
    if spec.get("insecureSkipTLSVerify"):
        why = "local APIServices may not have insecureSkipTLSVerify"
        errors.append(invalid("spec.insecureSkipTLSVerify", True, why))
    return errors


def _remote(spec: Object, service: Object) -> list[FieldError]:
    errors = [required(f"spec.service.{key}") for key in ("namespace", "name") if not service.get(key)]
    port = service.get("port") or 0
    if problems := is_port_number(port):
        errors.append(invalid("spec.service.port", port, f"port is not valid: {', '.join(problems)}"))
    if spec.get("insecureSkipTLSVerify") and spec.get("caBundle"):
        errors.append(invalid("spec.insecureSkipTLSVerify", True, "may not be true if caBundle is present"))
    return errors


def validate_api_service_status(new: Object, old: Object) -> list[FieldError]:
    """Check an update of an APIService's status. (`ValidateAPIServiceStatus`)"""
    return [
        not_supported(f"status.conditions[{index}].status", condition.get("status") or "", STATUSES)
        for index, condition in enumerate((new.get("status") or {}).get("conditions") or ())
        if condition.get("status") not in STATUSES
    ]


RULES = {
    "apiservices": KindRules(
        name_of=check_name, obj=validate_api_service, subresources=(("status", validate_api_service_status),)
    )
}
"""By plural."""
