"""Access to devices that are in use: only in Namespaces that an administrator has labelled.

Source: pkg/registry/resource/resourceclaim/strategy.go, pkg/registry/resource/utils.go:AuthorizedForAdmin
"""

from lastcall.kube.api.field import FieldError, forbidden
from lastcall.kube.api.meta import Object

ADMIN_ACCESS = "resource.kubernetes.io/admin-access"
_WHY = f"admin access to devices requires the `{ADMIN_ACCESS}: true` label on the containing namespace"


def admin_access_errors(obj: Object, old: Object | None) -> list[FieldError]:
    """Check what a claim, or a template, may not have in a Namespace without the label; of a change what is new."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    if old is None:
        # Errors of a template have the path of the claim that it makes.
        return _asked("spec.devices.requests", _requests(spec.get("spec") or spec))
    if (old.get("status") or {}).get("allocation") is not None:
        return []
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    return _asked("status.allocation.devices.results", [result.get("adminAccess") for result in results])


def _requests(spec: Object) -> list[object]:
    requests = (spec.get("devices") or {}).get("requests") or ()
    return [(request.get("exactly") or {}).get("adminAccess") for request in requests]


def _asked(path: str, asked: list[object]) -> list[FieldError]:
    return [forbidden(f"{path}[{at}].adminAccess", _WHY) for at, each in enumerate(asked) if each]
