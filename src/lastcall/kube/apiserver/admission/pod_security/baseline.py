"""The rules of the level baseline, with the texts of Kubernetes.

Source: pod-security-admission policy/check_*.go; each function names its file.
"""

# check: pure

from collections.abc import Iterator, Sequence
from typing import Any

from lastcall.kube.api.field import go_quote
from lastcall.kube.api.meta import Object
from lastcall.kube.apiserver.admission.pod_security.violations import (
    Rule,
    Violation,
    containers,
    contexts,
    named,
    number,
    quoted,
    setters,
)

_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_CAPABILITIES = (
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
    "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
)  # fmt: skip
_PROFILES = ("RuntimeDefault", "Localhost")


def app_armor_profile(meta: Object, spec: Object) -> Violation | None:
    """Check AppArmor profiles. (check_appArmorProfile.go)"""

    def bad(context: Object) -> str:
        profile = context.get("appArmorProfile")
        return "" if profile is None or profile.get("type") in _PROFILES else f"{profile.get('type') or ''}"

    pod = bad(spec.get("securityContext") or {})
    found = {name: type_ for name, context in contexts(spec) if (type_ := bad(context))}
    notes = sorted(
        f"{key}={go_quote(value)}"
        for key, value in (meta.get("annotations") or {}).items()
        if key.startswith(_APP_ARMOR) and value not in ("", "runtime/default") and not value.startswith("localhost/")
    )
    values = [*sorted({*found.values(), *([pod] if pod else [])}), *notes]
    if not values:
        return None
    who = [*filter(None, [setters(bool(pod), list(found))]), *([number(len(notes), "annotation")] if notes else [])]
    reason = number(len(values), "forbidden AppArmor profile")
    return Violation(reason, f"{' and '.join(who)} must not set AppArmor profile type to {quoted(values)}")


def capabilities_baseline(meta: Object, spec: Object) -> Violation | None:
    """Check added capabilities. (check_capabilities_baseline.go)"""
    found = {name: wrong for name, context in contexts(spec) if (wrong := added_beyond(context, _CAPABILITIES))}
    if not found:
        return None
    return Violation("non-default capabilities", must_not_add(found))


def added_beyond(context: Object, allowed: Sequence[str]) -> list[str]:
    return [each for each in (context.get("capabilities") or {}).get("add") or () if each not in allowed]


def must_not_add(found: dict[str, list[str]]) -> str:
    added = sorted({each for wrong in found.values() for each in wrong})
    return f"{named(list(found))} must not include {quoted(added)} in securityContext.capabilities.add"


def host_namespaces(meta: Object, spec: Object) -> Violation | None:
    """Check the host's namespaces. (check_hostNamespaces.go)"""
    found = [f"{each}=true" for each in ("hostNetwork", "hostPID", "hostIPC") if spec.get(each)]
    return Violation("host namespaces", ", ".join(found)) if found else None


def host_path_volumes(meta: Object, spec: Object) -> Violation | None:
    """Check hostPath volumes. (check_hostPathVolumes.go)"""
    found = [each["name"] for each in spec.get("volumes") or () if each.get("hostPath") is not None]
    return Violation("hostPath volumes", f"{number(len(found), 'volume')} {quoted(found)}") if found else None


def host_ports(meta: Object, spec: Object) -> Violation | None:
    """Check the host's ports. (check_hostPorts.go)"""
    found = {
        name: ports
        for name, container in containers(spec)
        if (ports := [str(port["hostPort"]) for port in container.get("ports") or () if port.get("hostPort")])
    }
    if not found:
        return None
    ports = sorted({port for each in found.values() for port in each})
    uses = f"{named(list(found))} {number(len(found), 'uses', 'use')} {number(len(ports), 'hostPort')}"
    return Violation("hostPort", f"{uses} {', '.join(ports)}")


def host_probes_and_lifecycle(meta: Object, spec: Object) -> Violation | None:
    """Check hosts in probes and lifecycle hooks. (check_hostProbesAndhostLifecycle.go)"""

    def hosts(container: Object) -> Iterator[str]:
        lifecycle = container.get("lifecycle") or {}
        handlers: list[Any] = [container.get(f"{each}Probe") for each in ("liveness", "readiness", "startup")]
        for handler in (*handlers, lifecycle.get("postStart"), lifecycle.get("preStop")):
            for kind in ("httpGet", "tcpSocket"):
                if host := ((handler or {}).get(kind) or {}).get("host"):
                    yield host

    found = {name: its for name, container in containers(spec) if (its := list(hosts(container)))}
    if not found:
        return None
    named_hosts = sorted({host for each in found.values() for host in each})
    uses = f"{named(sorted(found))} {number(len(found), 'uses', 'use')}"
    return Violation(
        "probe or lifecycle host", f"{uses} {number(len(named_hosts), 'probe or lifecycle host')} {quoted(named_hosts)}"
    )


def privileged(meta: Object, spec: Object) -> Violation | None:
    """Check privileged containers. (check_privileged.go)"""
    found = [name for name, context in contexts(spec) if context.get("privileged")]
    return Violation("privileged", f"{named(found)} must not set securityContext.privileged=true") if found else None


def proc_mount(meta: Object, spec: Object) -> Violation | None:
    """Check procMount. (check_procMount.go)"""
    found = {
        name: mount for name, context in contexts(spec) if (mount := context.get("procMount") or "Default") != "Default"
    }
    if not found:
        return None
    kinds = quoted(sorted({*found.values()}))
    return Violation("procMount", f"{named(list(found))} must not set securityContext.procMount to {kinds}")


def se_linux_options(since: int) -> Rule:
    """Return the rule about SELinux options since a version (check_seLinuxOptions.go)."""
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
        found = {name: its(context) for name, context in contexts(spec) if wrong(its(context))}
        who = setters(wrong(pod), list(found))
        if not who:
            return None
        options = [pod, *found.values()]
        types = sorted({each.get("type", "") for each in options if each.get("type", "") not in allowed})
        problems = [f"{number(len(types), 'type')} {quoted(types)}"] if types else []
        problems += [
            f"{each} may not be set" for each in ("user", "role") if any(option.get(each) for option in options)
        ]
        return Violation("seLinuxOptions", f"{who} set forbidden securityContext.seLinuxOptions: {'; '.join(problems)}")

    return rule


_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"


def seccomp_annotations(meta: Object, spec: Object) -> Violation | None:
    """Check seccomp annotations. (check_seccompProfile_baseline.go, before 1.19)"""
    notes = meta.get("annotations") or {}
    keys = [_SECCOMP_POD, *(f"{_SECCOMP_CONTAINER}{name}" for name, _ in containers(spec))]
    wrong = sorted(
        f"{key}={go_quote(notes[key])}"
        for key in keys
        if key in notes
        and notes[key] not in ("runtime/default", "docker/default")
        and not notes[key].startswith("localhost/")
    )
    if not wrong:
        return None
    return Violation("seccompProfile", f"forbidden {number(len(wrong), 'annotation')} {', '.join(wrong)}")


def _bad_seccomp(context: Object) -> bool:
    profile = context.get("seccompProfile")
    return profile is not None and profile.get("type") not in _PROFILES


def seccomp_baseline(meta: Object, spec: Object) -> Violation | None:
    """Check seccomp profiles. (check_seccompProfile_baseline.go)"""
    pod = spec.get("securityContext") or {}
    found = {name: context for name, context in contexts(spec) if _bad_seccomp(context)}
    who = setters(_bad_seccomp(pod), list(found))
    if not who:
        return None
    bad = [*([pod] if _bad_seccomp(pod) else []), *found.values()]
    values = quoted(sorted({each["seccompProfile"].get("type", "") for each in bad}))
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
    37: ("net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_notsent_lowat"),  # kubernetes#138389
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
    """Check Windows HostProcess containers. (check_windowsHostProcess.go)"""

    def is_set(context: Object) -> bool:
        return bool((context.get("windowsOptions") or {}).get("hostProcess"))

    found = [name for name, context in contexts(spec) if is_set(context)]
    who = setters(is_set(spec.get("securityContext") or {}), found)
    return (
        Violation("hostProcess", f"{who} must not set securityContext.windowsOptions.hostProcess=true") if who else None
    )
