"""The Pod Security Standards: which rule holds at which level, from which version on.

A rule is a function of a Pod's metadata and spec and says what is wrong, None when nothing is. They are in
`baseline.py` and `restricted.py`.
Source: pod-security-admission policy/registry.go, checks.go.
"""

# check: pure

from collections.abc import Sequence
from typing import NamedTuple

from lastcall.kube.api.meta import Object
from lastcall.kube.apiserver.admission.pod_security import baseline, restricted
from lastcall.kube.apiserver.admission.pod_security.violations import (
    Rule,
    Violation,
    unless_user_namespace,
    unless_windows,
)


class Check(NamedTuple):
    """`versions`: from which minor of 1.x on which rule holds. `overrides`: the baseline checks that a restricted one
    replaces, from its first version on."""

    name: str
    restricted: bool
    versions: tuple[tuple[int, Rule], ...]
    overrides: str = ""

    def rule(self, minor: int) -> Rule | None:
        found = [rule for since, rule in self.versions if since <= minor]
        return found[-1] if found else None


NEWEST = 35
"""The newest version that changed a rule."""

# In the order in which Kubernetes reports: baseline first, each level by the names of its checks.
CHECKS: tuple[Check, ...] = (
    Check("appArmorProfile", False, ((0, baseline.app_armor_profile),)),
    Check("capabilities_baseline", False, ((0, baseline.capabilities_baseline),)),
    Check("hostNamespaces", False, ((0, baseline.host_namespaces),)),
    Check("hostPathVolumes", False, ((0, baseline.host_path_volumes),)),
    Check("hostPorts", False, ((0, baseline.host_ports),)),
    Check("hostProbesAndHostLifecycle", False, ((34, baseline.host_probes_and_lifecycle),)),
    Check("privileged", False, ((0, baseline.privileged),)),
    Check("procMount", False, ((0, baseline.proc_mount), (35, unless_user_namespace(baseline.proc_mount)))),
    Check("seLinuxOptions", False, ((0, baseline.se_linux_options(29)), (31, baseline.se_linux_options(31)))),
    Check("seccompProfile_baseline", False, ((0, baseline.seccomp_annotations), (19, baseline.seccomp_baseline))),
    Check("sysctls", False, tuple((since, baseline.sysctls(since)) for since in baseline.SYSCTLS)),
    Check("windowsHostProcess", False, ((0, baseline.windows_host_process),)),
    Check(
        "allowPrivilegeEscalation",
        True,
        ((8, restricted.allow_privilege_escalation), (25, unless_windows(restricted.allow_privilege_escalation))),
    ),
    Check(
        "capabilities_restricted",
        True,
        ((22, restricted.capabilities_restricted), (25, unless_windows(restricted.capabilities_restricted))),
        overrides="capabilities_baseline",
    ),
    Check("procMount_restricted", True, ((35, baseline.proc_mount),), overrides="procMount"),
    Check("restrictedVolumes", True, ((0, restricted.restricted_volumes),), overrides="hostPathVolumes"),
    Check(
        "runAsNonRoot", True, ((0, restricted.run_as_non_root), (35, unless_user_namespace(restricted.run_as_non_root)))
    ),
    Check("runAsUser", True, ((23, restricted.run_as_user), (35, unless_user_namespace(restricted.run_as_user)))),
    Check(
        "seccompProfile_restricted",
        True,
        ((19, restricted.seccomp_restricted), (25, unless_windows(restricted.seccomp_restricted))),
        overrides="seccompProfile_baseline",
    ),
)


def evaluate(level: str, asked: int, server: int, meta: Object, spec: Object) -> list[Violation]:
    """Return what a Pod violates of `level` by the rules of 1.`asked` (-1: the newest), reported by a server of
    1.`server`."""
    if level == "privileged":
        return []
    newest = min(server, NEWEST)
    minor = newest if asked < 0 else min(asked, newest)
    chosen = [(check, rule) for check in CHECKS if (rule := check.rule(minor)) is not None]
    if level == "restricted":
        overridden = [check.overrides for check, _ in chosen if check.overrides]
        chosen = [pair for pair in chosen if pair[0].name not in overridden]
    else:
        chosen = [pair for pair in chosen if not pair[0].restricted]
    return [found for _, rule in chosen if (found := rule(meta, spec)) is not None]


def reasons(found: Sequence[Violation]) -> str:
    """Return the reasons as one text. (`ForbiddenReason`)"""
    return ", ".join(each.reason for each in found)


def details(found: Sequence[Violation]) -> str:
    """Return the reasons with their details as one text. (`ForbiddenDetail`)"""
    return ", ".join(f"{each.reason} ({each.detail})" if each.detail else each.reason for each in found)
