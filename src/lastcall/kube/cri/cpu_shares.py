"""CPU shares and weights of every control group on a node. Pure.

Group                  Shares (version 1)                        Source: Kubernetes 1.36.2, pkg/kubelet/
kubepods               the CPU of the node                       cm/node_container_manager_linux.go:getCgroupConfig
kubepods/burstable     the requests of its Pods together         cm/qos_container_manager_linux.go:setCPUCgroupConfig
kubepods/besteffort    the smallest                              cm/qos_container_manager_linux.go:setCPUCgroupConfig
a Pod                  the requests of its containers together   cm/helpers_linux.go:ResourceConfigForPod
a container            its own request                           kuberuntime/kuberuntime_container_linux.go

Version 2 takes a weight in place of shares, and two programs convert them. The kubelet does it for the first four
(cm/cgroup_manager_linux.go:getCPUWeight, still linear in 1.36.2). The OCI runtime does it for containers. runc 1.2.2,
which containerd 1.7.24 comes with, does it alike (libcontainer/cgroups utils.go:ConvertCPUSharesToCgroupV2Value).
runc 1.3.2 and newer give a container ceil(10^((l² + 125 l) / 612 - 7 / 34)), l = log2(shares): 100 for one CPU.
"""

# check: pure
# check: standard library

from __future__ import annotations

MIN_CPU_SHARES = 2
MAX_CPU_SHARES = 262_144

KUBEPODS = "kubepods"
BURSTABLE = f"{KUBEPODS}/burstable"
BEST_EFFORT = f"{KUBEPODS}/besteffort"


def cpu_shares(milli: int) -> int:
    """Return the shares for a request in thousandths of a CPU (helpers_linux.go:MilliCPUToShares)."""
    return min(max(milli * 1024 // 1000, MIN_CPU_SHARES), MAX_CPU_SHARES)


def milli_cpu(shares: int) -> int:
    """Return the one request that `cpu_shares` makes these of; 0 for the smallest, which three requests have."""
    return 0 if shares <= MIN_CPU_SHARES else -(-shares * 1000 // 1024)


def cpu_weight(shares: int) -> int:
    """Return version 2's weight (1 to 10000) for shares (2 to 262144)."""
    return 1 + (min(max(shares, MIN_CPU_SHARES), MAX_CPU_SHARES) - MIN_CPU_SHARES) * 9999 // 262142


def level_shares(milli_cpus: int, pods: dict[str, int]) -> dict[str, int]:
    """Return the shares of every group above the Pods, by path.

    `milli_cpus` are thousandths of a CPU, the node's, `pods` has the shares of each Pod by the path of its group.
    """
    burstable = [shares for path, shares in pods.items() if path.startswith(f"{BURSTABLE}/")]
    return {
        KUBEPODS: cpu_shares(milli_cpus),
        BURSTABLE: cpu_shares(sum(map(milli_cpu, burstable))),
        BEST_EFFORT: MIN_CPU_SHARES,
    }
