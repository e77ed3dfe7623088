"""CRI's messages of ContainerStats and PodSandboxStats. Pure."""

from collections.abc import Mapping
from typing import Any

from lastcall.cri import api
from lastcall.cri.v1.messages import new
from lastcall.cri.v1.needs import Filesystem
from lastcall.cri.v1.translate.parts import container_metadata

_MEMORY = {"rss_bytes": "rss", "page_faults": "pgfault", "major_page_faults": "pgmajfault"}
"""Field of MemoryUsage → name of `cri/sandbox/cgroups/counters.py`."""


def container_message(status: api.ContainerStatus, stats: api.ContainerStats | None, now: int) -> Any:
    """`now` in nanoseconds since the epoch. What nobody counts is left out."""
    used = stats or api.ContainerStats()
    return new(
        "ContainerStats",
        attributes=new(
            "ContainerAttributes",
            id=status.id,
            metadata=container_metadata(status.metadata),
            labels=status.labels,
            annotations=status.annotations,
        ),
        cpu=None if stats is None else cpu_usage(used.cpu_usage_core_nano_seconds, now),
        memory=None if stats is None else memory_usage(used.memory_usage_bytes, used.memory_working_set_bytes, now),
    )


def container_stats_of(message: Any) -> api.ContainerStats | None:
    if not message.HasField("cpu") and not message.HasField("memory"):
        return None
    return api.ContainerStats(
        cpu_usage_core_nano_seconds=message.cpu.usage_core_nano_seconds.value,
        memory_usage_bytes=message.memory.usage_bytes.value,
        memory_working_set_bytes=message.memory.working_set_bytes.value,
    )


def add_counts(message: Any, counts: Mapping[str, int], limit: int, now: int) -> None:
    """What a container's group counts of its memory, into its ContainerStats. `limit` in bytes, 0 for no limit."""
    memory = message.memory
    for name, key in _MEMORY.items():
        if key in counts:
            getattr(memory, name).value = counts[key]
    if limit > 0:
        memory.available_bytes.value = max(0, limit - memory.working_set_bytes.value)
    if "swap" in counts:
        used = new("UInt64Value", value=counts["swap"])
        message.swap.CopyFrom(new("SwapUsage", timestamp=now, swap_usage_bytes=used))


def sum_memory_counts(pod: Any, container: Any) -> None:
    """A container's MemoryUsage into its Pod's."""
    for name in _MEMORY:
        if container.HasField(name):
            getattr(pod, name).value += getattr(container, name).value


def network_usage(links: Mapping[str, tuple[int, ...]], now: int) -> Any:
    """`links` as `api.ContainerCounters.network`, at least one; the first by name is the Pod's own."""
    usages = [
        new(
            "NetworkInterfaceUsage",
            name=name,
            rx_bytes=new("UInt64Value", value=numbers[0]),
            rx_errors=new("UInt64Value", value=numbers[2]),
            tx_bytes=new("UInt64Value", value=numbers[4]),
            tx_errors=new("UInt64Value", value=numbers[6]),
        )
        for name, numbers in sorted(links.items())
    ]
    return new("NetworkUsage", timestamp=now, default_interface=usages[0], interfaces=usages[1:])


def cpu_usage(nano_seconds: int, now: int) -> Any:
    return new("CpuUsage", timestamp=now, usage_core_nano_seconds=new("UInt64Value", value=nano_seconds))


def memory_usage(usage: int, working_set: int, now: int) -> Any:
    return new(
        "MemoryUsage",
        timestamp=now,
        usage_bytes=new("UInt64Value", value=usage),
        working_set_bytes=new("UInt64Value", value=working_set),
    )


def filesystem_message(usage: Filesystem, now: int) -> Any:
    return new(
        "FilesystemUsage",
        timestamp=now,
        fs_id=new("FilesystemIdentifier", mountpoint=usage.mountpoint),
        used_bytes=new("UInt64Value", value=usage.used_bytes),
        inodes_used=new("UInt64Value", value=usage.inodes_used),
    )
