"""The rules of the Pod Security Standards, with the texts of Kubernetes.

Source: pod-security-admission policy/check_*.go; each function names its file.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from lastcall.api.field import go_quote
from lastcall.api.meta import Object


class Violation(NamedTuple):
    reason: str
    detail: str


Rule = Callable[[Object, Object], Violation | None]


def _containers(spec: Object) -> Iterator[tuple[str, Object]]:
    """Name and container. (`visitContainers`)"""
    for group in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(group) or ():
            yield container.get("name", ""), container


def _contexts(spec: Object) -> Iterator[tuple[str, Object]]:
    """Name and securityContext of every container."""
    for name, container in _containers(spec):
        yield name, container.get("securityContext") or {}


def _quoted(items: Iterable[str]) -> str:
    return ", ".join(f'"{item}"' for item in items)


def _number(count: int, one: str, several: str = "") -> str:
    return one if count == 1 else several or f"{one}s"


def _named(containers: Sequence[str]) -> str:
    """`container "a"`, `containers "a", "b"`."""
    return f"{_number(len(containers), 'container')} {_quoted(containers)}"


def _setters(pod: bool, containers: Sequence[str]) -> str:
    """Who set something, "" for nobody: `pod and container "a"`."""
    return " and ".join([*(["pod"] if pod else []), *([_named(containers)] if containers else [])])


def unless_windows(rule: Rule) -> Rule:
    return lambda meta, spec: None if (spec.get("os") or {}).get("name") == "windows" else rule(meta, spec)


def unless_user_namespace(rule: Rule) -> Rule:
    """(`relaxPolicyForUserNamespacePod`)"""
    return lambda meta, spec: None if spec.get("hostUsers") is False else rule(meta, spec)


# -- baseline --------------------------------------------------------------------------------------------------------

_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_CAPABILITIES = (
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
    "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
)  # fmt: skip
_PROFILES = ("RuntimeDefault", "Localhost")


def app_armor_profile(meta: Object, spec: Object) -> Violation | None:
    """check_appArmorProfile.go"""

    def bad(context: Object) -> str:
        profile = context.get("appArmorProfile")
        return "" if profile is None or profile.get("type") in _PROFILES else f"{profile.get('type') or ''}"

    pod = bad(spec.get("securityContext") or {})
    found = {name: type_ for name, context in _contexts(spec) if (type_ := bad(context))}
    notes = sorted(
        f"{key}={go_quote(value)}"
        for key, value in (meta.get("annotations") or {}).items()
        if key.startswith(_APP_ARMOR) and value not in ("", "runtime/default") and not value.startswith("localhost/")
    )
    values = [*sorted({*found.values(), *([pod] if pod else [])}), *notes]
    if not values:
        return None
    who = [*filter(None, [_setters(bool(pod), list(found))]), *([_number(len(notes), "annotation")] if notes else [])]
    reason = _number(len(values), "forbidden AppArmor profile")
    return Violation(reason, f"{' and '.join(who)} must not set AppArmor profile type to {_quoted(values)}")


def capabilities_baseline(meta: Object, spec: Object) -> Violation | None:
    """check_capabilities_baseline.go"""
    found = {name: wrong for name, context in _contexts(spec) if (wrong := _added(context, _CAPABILITIES))}
    if not found:
        return None
    return Violation("non-default capabilities", _must_not_add(found))


def _added(context: Object, allowed: Sequence[str]) -> list[str]:
    return [each for each in (context.get("capabilities") or {}).get("add") or () if each not in allowed]


def _must_not_add(found: dict[str, list[str]]) -> str:
    added = sorted({each for wrong in found.values() for each in wrong})
    return f"{_named(list(found))} must not include {_quoted(added)} in securityContext.capabilities.add"


def host_namespaces(meta: Object, spec: Object) -> Violation | None:
    """check_hostNamespaces.go"""
    found = [f"{each}=true" for each in ("hostNetwork", "hostPID", "hostIPC") if spec.get(each)]
    return Violation("host namespaces", ", ".join(found)) if found else None


def host_path_volumes(meta: Object, spec: Object) -> Violation | None:
    """check_hostPathVolumes.go"""
    found = [each["name"] for each in spec.get("volumes") or () if each.get("hostPath") is not None]
    return Violation("hostPath volumes", f"{_number(len(found), 'volume')} {_quoted(found)}") if found else None


def host_ports(meta: Object, spec: Object) -> Violation | None:
    """check_hostPorts.go"""
    found = {
        name: ports
        for name, container in _containers(spec)
        if (ports := [str(port["hostPort"]) for port in container.get("ports") or () if port.get("hostPort")])
    }
    if not found:
        return None
    ports = sorted({port for each in found.values() for port in each})
    uses = f"{_named(list(found))} {_number(len(found), 'uses', 'use')} {_number(len(ports), 'hostPort')}"
    return Violation("hostPort", f"{uses} {', '.join(ports)}")


def host_probes_and_lifecycle(meta: Object, spec: Object) -> Violation | None:
    """check_hostProbesAndhostLifecycle.go"""

    def hosts(container: Object) -> Iterator[str]:
        lifecycle = container.get("lifecycle") or {}
        handlers: list[Any] = [container.get(f"{each}Probe") for each in ("liveness", "readiness", "startup")]
        for handler in (*handlers, lifecycle.get("postStart"), lifecycle.get("preStop")):
            for kind in ("httpGet", "tcpSocket"):
                if host := ((handler or {}).get(kind) or {}).get("host"):
                    yield host

    found = {name: its for name, container in _containers(spec) if (its := list(hosts(container)))}
    if not found:
        return None
    told = sorted({host for each in found.values() for host in each})
    uses = f"{_named(sorted(found))} {_number(len(found), 'uses', 'use')}"
    return Violation(
        "probe or lifecycle host", f"{uses} {_number(len(told), 'probe or lifecycle host')} {_quoted(told)}"
    )


def privileged(meta: Object, spec: Object) -> Violation | None:
    """check_privileged.go"""
    found = [name for name, context in _contexts(spec) if context.get("privileged")]
    return Violation("privileged", f"{_named(found)} must not set securityContext.privileged=true") if found else None


def proc_mount(meta: Object, spec: Object) -> Violation | None:
    """check_procMount.go"""
    found = {
        name: mount
        for name, context in _contexts(spec)
        if (mount := context.get("procMount") or "Default") != "Default"
    }
    if not found:
        return None
    kinds = _quoted(sorted({*found.values()}))
    return Violation("procMount", f"{_named(list(found))} must not set securityContext.procMount to {kinds}")


def se_linux_options(since: int) -> Rule:
    """check_seLinuxOptions.go"""
    allowed = (
        "",
        "container_t",
        "container_init_t",
        "container_kvm_t",
        *(["container_engine_t"] if since >= 31 else []),
    )

    def rule(meta: Object, spec: Object) -> Violation | None:
        def wrong(options: Object) -> bool:
            return bool(options.get("type", "") not in allowed or options.get("user") or options.get("role"))

        def its(context: Object) -> Object:
            return context.get("seLinuxOptions") or {}

        pod = its(spec.get("securityContext") or {})
        found = {name: its(context) for name, context in _contexts(spec) if wrong(its(context))}
        who = _setters(wrong(pod), list(found))
        if not who:
            return None
        options = [pod, *found.values()]
        types = sorted({each.get("type", "") for each in options if each.get("type", "") not in allowed})
        told = [f"{_number(len(types), 'type')} {_quoted(types)}"] if types else []
        told += [f"{each} may not be set" for each in ("user", "role") if any(option.get(each) for option in options)]
        return Violation("seLinuxOptions", f"{who} set forbidden securityContext.seLinuxOptions: {'; '.join(told)}")

    return rule


_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"


def seccomp_annotations(meta: Object, spec: Object) -> Violation | None:
    """check_seccompProfile_baseline.go, before 1.19"""
    notes = meta.get("annotations") or {}
    keys = [_SECCOMP_POD, *(f"{_SECCOMP_CONTAINER}{name}" for name, _ in _containers(spec))]
    wrong = sorted(
        f"{key}={go_quote(notes[key])}"
        for key in keys
        if key in notes
        and notes[key] not in ("runtime/default", "docker/default")
        and not notes[key].startswith("localhost/")
    )
    if not wrong:
        return None
    return Violation("seccompProfile", f"forbidden {_number(len(wrong), 'annotation')} {', '.join(wrong)}")


def _bad_seccomp(context: Object) -> bool:
    profile = context.get("seccompProfile")
    return profile is not None and profile.get("type") not in _PROFILES


def seccomp_baseline(meta: Object, spec: Object) -> Violation | None:
    """check_seccompProfile_baseline.go"""
    pod = spec.get("securityContext") or {}
    found = {name: context for name, context in _contexts(spec) if _bad_seccomp(context)}
    who = _setters(_bad_seccomp(pod), list(found))
    if not who:
        return None
    bad = [*([pod] if _bad_seccomp(pod) else []), *found.values()]
    values = _quoted(sorted({each["seccompProfile"].get("type", "") for each in bad}))
    return Violation("seccompProfile", f"{who} must not set securityContext.seccompProfile.type to {values}")


_SAFE_SYSCTLS = (
    "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
)  # fmt: skip
SYSCTLS: dict[int, tuple[str, ...]] = {
    0: _SAFE_SYSCTLS,
    27: ("net.ipv4.ip_local_reserved_ports",),
    29: (
        "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
    ),
    32: ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"),
}  # fmt: skip
"""Which are safe besides the earlier ones since 1.x. (check_sysctls.go)"""


def sysctls(minor: int) -> Rule:
    allowed = [name for since, names in SYSCTLS.items() if since <= minor for name in names]

    def rule(meta: Object, spec: Object) -> Violation | None:
        given = (spec.get("securityContext") or {}).get("sysctls") or ()
        found = [each.get("name", "") for each in given if each.get("name", "") not in allowed]
        return Violation("forbidden sysctls", ", ".join(found)) if found else None

    return rule


def windows_host_process(meta: Object, spec: Object) -> Violation | None:
    """check_windowsHostProcess.go"""

    def is_set(context: Object) -> bool:
        return bool((context.get("windowsOptions") or {}).get("hostProcess"))

    found = [name for name, context in _contexts(spec) if is_set(context)]
    who = _setters(is_set(spec.get("securityContext") or {}), found)
    return (
        Violation("hostProcess", f"{who} must not set securityContext.windowsOptions.hostProcess=true") if who else None
    )


# -- restricted ------------------------------------------------------------------------------------------------------


def allow_privilege_escalation(meta: Object, spec: Object) -> Violation | None:
    """check_allowPrivilegeEscalation.go"""
    found = [name for name, context in _contexts(spec) if context.get("allowPrivilegeEscalation") is not False]
    if not found:
        return None
    detail = f"{_named(found)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", detail)


def capabilities_restricted(meta: Object, spec: Object) -> Violation | None:
    """check_capabilities_restricted.go"""
    keeping = [
        n for n, context in _contexts(spec) if "ALL" not in ((context.get("capabilities") or {}).get("drop") or ())
    ]
    adding = {name: wrong for name, context in _contexts(spec) if (wrong := _added(context, ("NET_BIND_SERVICE",)))}
    told = [f'{_named(keeping)} must set securityContext.capabilities.drop=["ALL"]'] if keeping else []
    told += [_must_not_add(adding)] if adding else []
    return Violation("unrestricted capabilities", "; ".join(told)) if told else None


_VOLUMES = (
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret",
)  # fmt: skip


def restricted_volumes(meta: Object, spec: Object) -> Violation | None:
    """check_restrictedVolumes.go"""
    found: dict[str, str] = {}
    for volume in spec.get("volumes") or ():
        sources = [key for key, value in volume.items() if key != "name" and value is not None]
        if not any(source in _VOLUMES for source in sources):
            found[volume["name"]] = sources[0] if sources else "unknown"
    if not found:
        return None
    types = sorted({*found.values()})
    uses = f"{_number(len(found), 'volume')} {_quoted(found)} {_number(len(found), 'uses', 'use')}"
    detail = f"{uses} {_number(len(types), 'restricted volume type')} {_quoted(types)}"
    return Violation("restricted volume types", detail)


def run_as_non_root(meta: Object, spec: Object) -> Violation | None:
    """check_runAsNonRoot.go"""
    pod = (spec.get("securityContext") or {}).get("runAsNonRoot")
    said = {name: context.get("runAsNonRoot") for name, context in _contexts(spec)}
    who = _setters(pod is False, [name for name, value in said.items() if value is False])
    if who:
        return Violation("runAsNonRoot != true", f"{who} must not set securityContext.runAsNonRoot=false")
    silent = [] if pod else [name for name, value in said.items() if value is None]
    if not silent:
        return None
    return Violation("runAsNonRoot != true", f"pod or {_named(silent)} must set securityContext.runAsNonRoot=true")


def run_as_user(meta: Object, spec: Object) -> Violation | None:
    """check_runAsUser.go"""
    pod = (spec.get("securityContext") or {}).get("runAsUser") == 0
    who = _setters(pod, [name for name, context in _contexts(spec) if context.get("runAsUser") == 0])
    return Violation("runAsUser=0", f"{who} must not set runAsUser=0") if who else None


def seccomp_restricted(meta: Object, spec: Object) -> Violation | None:
    """check_seccompProfile_restricted.go"""
    if (wrong := seccomp_baseline(meta, spec)) is not None:
        return wrong
    pod = (spec.get("securityContext") or {}).get("seccompProfile")
    silent = [] if pod else [name for name, context in _contexts(spec) if context.get("seccompProfile") is None]
    if not silent:
        return None
    must = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Violation("seccompProfile", f"pod or {_named(silent)} {must}")
