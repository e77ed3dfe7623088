"""What a node has for its Pods, and how much of it the scheduler may give away.

A node has what its machine has, or less where `--node-capacity` says so. Nothing is reserved for the system or for
Kubernetes, so allocatable is the capacity less what the hard eviction threshold of memory keeps free.

Source: pkg/kubelet/cm/node_container_manager_linux.go:GetNodeAllocatableReservation.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

from lastcall.kube.api.quantity import Quantity, parse_quantity
from lastcall.kube.node.eviction.decide import DEFAULT_THRESHOLDS
from lastcall.kube.node.meminfo import read_meminfo

MAX_PODS = 110
KEPT_FREE = next(each.value.quantity for each in DEFAULT_THRESHOLDS if each.signal == "memory.available")
"""Bytes of memory: a node with less evicts Pods."""


def machine_cpus() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


def machine_capacity(state_dir: Path, max_pods: int = MAX_PODS) -> dict[str, str]:
    """Return what this machine has, as quantities by resource."""
    disk = os.statvfs(state_dir)
    return {
        "cpu": str(machine_cpus()),
        "ephemeral-storage": f"{disk.f_blocks * disk.f_frsize // 1024}Ki",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "memory": f"{read_meminfo()['MemTotal'] // 1024}Ki",
        "pods": str(max_pods),
    }


def allocatable_of(capacity: Mapping[str, str]) -> dict[str, str]:
    """Return what Pods may ask for on a node of this capacity, as quantities by resource."""
    memory = parse_quantity(capacity["memory"])
    return {**capacity, "memory": str(Quantity(max(memory.value - KEPT_FREE, Fraction(0)), memory.format))}
