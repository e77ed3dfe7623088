"""The Pod Security Standards: each rule of the levels baseline and restricted as a function of a Pod's spec.

A rule gives the detail of what is wrong, None when nothing is. `CHECKS` says which rule holds at which level from
which version on. Source: pod-security-admission policy/registry.go, checks.go, check_*.go; the rules about what runs in
a container are in `pod_security_rules.py`.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from lastcall.api.meta import Object
from lastcall.apiserver import pod_security_rules as rules

Rule = Callable[[Object, Object], rules.Violation | None]
"""(metadata, spec) → what is wrong."""


class Check(NamedTuple):
    """`versions`: from which minor of 1.x on which rule holds. `overrides`: the baseline checks that a restricted one
    stands for, from its first version on."""

    name: str
    restricted: bool
    versions: tuple[tuple[int, Rule], ...]
    overrides: str = ""

    def rule(self, minor: int) -> Rule | None:
        found = [rule for since, rule in self.versions if since <= minor]
        return found[-1] if found else None


NEWEST = 35
"""The newest version that changed a rule."""

# In the order in which Kubernetes tells: baseline first, each level by the names of its checks.
CHECKS: tuple[Check, ...] = (
    Check("appArmorProfile", False, ((0, rules.app_armor_profile),)),
    Check("capabilities_baseline", False, ((0, rules.capabilities_baseline),)),
    Check("hostNamespaces", False, ((0, rules.host_namespaces),)),
    Check("hostPathVolumes", False, ((0, rules.host_path_volumes),)),
    Check("hostPorts", False, ((0, rules.host_ports),)),
    Check("hostProbesAndHostLifecycle", False, ((34, rules.host_probes_and_lifecycle),)),
    Check("privileged", False, ((0, rules.privileged),)),
    Check("procMount", False, ((0, rules.proc_mount), (35, rules.unless_user_namespace(rules.proc_mount)))),
    Check("seLinuxOptions", False, ((0, rules.se_linux_options(29)), (31, rules.se_linux_options(31)))),
    Check("seccompProfile_baseline", False, ((0, rules.seccomp_annotations), (19, rules.seccomp_baseline))),
    Check("sysctls", False, tuple((since, rules.sysctls(since)) for since in rules.SYSCTLS)),
    Check("windowsHostProcess", False, ((0, rules.windows_host_process),)),
    Check(
        "allowPrivilegeEscalation",
        True,
        ((8, rules.allow_privilege_escalation), (25, rules.unless_windows(rules.allow_privilege_escalation))),
    ),
    Check(
        "capabilities_restricted",
        True,
        ((22, rules.capabilities_restricted), (25, rules.unless_windows(rules.capabilities_restricted))),
        overrides="capabilities_baseline",
    ),
    Check("procMount_restricted", True, ((35, rules.proc_mount),), overrides="procMount"),
    Check("restrictedVolumes", True, ((0, rules.restricted_volumes),), overrides="hostPathVolumes"),
    Check("runAsNonRoot", True, ((0, rules.run_as_non_root), (35, rules.unless_user_namespace(rules.run_as_non_root)))),
    Check("runAsUser", True, ((23, rules.run_as_user), (35, rules.unless_user_namespace(rules.run_as_user)))),
    Check(
        "seccompProfile_restricted",
        True,
        ((19, rules.seccomp_restricted), (25, rules.unless_windows(rules.seccomp_restricted))),
        overrides="seccompProfile_baseline",
    ),
)


def evaluate(level: str, asked: int, server: int, meta: Object, spec: Object) -> list[rules.Violation]:
    """What a Pod violates of `level` by the rules of 1.`asked` (-1: the newest), told by a server of 1.`server`."""
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


def reasons(found: Sequence[rules.Violation]) -> str:
    """(`ForbiddenReason`)"""
    return ", ".join(each.reason for each in found)


def details(found: Sequence[rules.Violation]) -> str:
    """(`ForbiddenDetail`)"""
    return ", ".join(f"{each.reason} ({each.detail})" if each.detail else each.reason for each in found)
