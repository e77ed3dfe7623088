"""DefaultTolerationSeconds (plugin/pkg/admission/defaulttolerationseconds/admission.go)."""

# check: pure

from lastcall.kube.api.meta import Object
from lastcall.kube.api.scheduling import NOT_READY, UNREACHABLE

TOLERATED_SECONDS = 300


def add_default_tolerations(pod: Object) -> None:
    """Let every Pod tolerate a lost node for 300 s, unless it says otherwise (defaulttolerationseconds)."""
    spec = pod["spec"]
    tolerations: list[Object] = list(spec.get("tolerations") or [])
    said = list(tolerations)
    for key in (NOT_READY, UNREACHABLE):
        if not any(
            toleration.get("key", "") in ("", key) and toleration.get("effect", "") in ("", "NoExecute")
            for toleration in said
        ):
            added = {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATED_SECONDS}
            tolerations.append(added)
    if tolerations:
        spec["tolerations"] = tolerations
