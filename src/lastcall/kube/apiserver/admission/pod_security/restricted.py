"""The rules of the level restricted, with the texts of Kubernetes.

Source: pod-security-admission policy/check_*.go; each function names its file.
"""

# check: pure

from lastcall.kube.api.meta import Object
from lastcall.kube.apiserver.admission.pod_security.baseline import added_beyond, must_not_add, seccomp_baseline
from lastcall.kube.apiserver.admission.pod_security.violations import (
    Violation,
    contexts,
    named,
    number,
    quoted,
    setters,
)


def allow_privilege_escalation(meta: Object, spec: Object) -> Violation | None:
    """Check allowPrivilegeEscalation. (check_allowPrivilegeEscalation.go)"""
    found = [name for name, context in contexts(spec) if context.get("allowPrivilegeEscalation") is not False]
    if not found:
        return None
    detail = f"{named(found)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", detail)


def capabilities_restricted(meta: Object, spec: Object) -> Violation | None:
    """Check that all capabilities are dropped. (check_capabilities_restricted.go)"""
    keeping = [
        n for n, context in contexts(spec) if "ALL" not in ((context.get("capabilities") or {}).get("drop") or ())
    ]
    adding = {
        name: wrong for name, context in contexts(spec) if (wrong := added_beyond(context, ("NET_BIND_SERVICE",)))
    }
    problems = [f'{named(keeping)} must set securityContext.capabilities.drop=["ALL"]'] if keeping else []
    problems += [must_not_add(adding)] if adding else []
    return Violation("unrestricted capabilities", "; ".join(problems)) if problems else None


_VOLUMES = (
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret",
)  # fmt: skip


def restricted_volumes(meta: Object, spec: Object) -> Violation | None:
    """Check the types of volumes. (check_restrictedVolumes.go)"""
    found: dict[str, str] = {}
    for volume in spec.get("volumes") or ():
        sources = [key for key, value in volume.items() if key != "name" and value is not None]
        if not any(source in _VOLUMES for source in sources):
            found[volume["name"]] = sources[0] if sources else "unknown"
    if not found:
        return None
    types = sorted({*found.values()})
    uses = f"{number(len(found), 'volume')} {quoted(found)} {number(len(found), 'uses', 'use')}"
    detail = f"{uses} {number(len(types), 'restricted volume type')} {quoted(types)}"
    return Violation("restricted volume types", detail)


def run_as_non_root(meta: Object, spec: Object) -> Violation | None:
    """Check runAsNonRoot. (check_runAsNonRoot.go)"""
    pod = (spec.get("securityContext") or {}).get("runAsNonRoot")
    said = {name: context.get("runAsNonRoot") for name, context in contexts(spec)}
    who = setters(pod is False, [name for name, value in said.items() if value is False])
    if who:
        return Violation("runAsNonRoot != true", f"{who} must not set securityContext.runAsNonRoot=false")
    silent = [] if pod else [name for name, value in said.items() if value is None]
    if not silent:
        return None
    return Violation("runAsNonRoot != true", f"pod or {named(silent)} must set securityContext.runAsNonRoot=true")


def run_as_user(meta: Object, spec: Object) -> Violation | None:
    """Check runAsUser. (check_runAsUser.go)"""
    pod = (spec.get("securityContext") or {}).get("runAsUser") == 0
    who = setters(pod, [name for name, context in contexts(spec) if context.get("runAsUser") == 0])
    return Violation("runAsUser=0", f"{who} must not set runAsUser=0") if who else None


def seccomp_restricted(meta: Object, spec: Object) -> Violation | None:
    """Check that seccomp profiles are set. (check_seccompProfile_restricted.go)"""
    if (wrong := seccomp_baseline(meta, spec)) is not None:
        return wrong
    pod = (spec.get("securityContext") or {}).get("seccompProfile")
    silent = [] if pod else [name for name, context in contexts(spec) if context.get("seccompProfile") is None]
    if not silent:
        return None
    must = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Violation("seccompProfile", f"pod or {named(silent)} {must}")
