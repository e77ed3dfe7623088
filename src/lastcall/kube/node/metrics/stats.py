"""Measure what the node's Pods use, as the kubelet's Summary API reports it: when asked for, never before.

CPU is what was used since the start, in nanoseconds: two requests give the rate. Working sets are the control
group's memory without inactive file pages, as cAdvisor counts them. A node's own figures are the machine's, unless the
node is smaller.

Source: pkg/kubelet/server/stats/summary.go, pkg/kubelet/metrics/collectors/resource_metrics.go.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import Object, name_of, namespace_of, uid_of
from lastcall.kube.api.text.times import parse_rfc3339
from lastcall.kube.cri.api import ContainerState, RuntimeService, RuntimeServiceError
from lastcall.kube.node.meminfo import read_meminfo
from lastcall.kube.node.metrics.node_usage import NodeUsage
from lastcall.world.clock import now, rfc3339, rfc3339_micro
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod

_BUSY = (0, 1, 2, 5, 6, 7)
"""Columns of /proc/stat's `cpu` that are work: user, nice, system, irq, softirq, steal."""


async def summary(
    world: World,
    runtime: RuntimeService,
    node: str,
    pods: Sequence[Pod],
    *,
    usage: NodeUsage | None = None,
    identities: bool = False,
) -> Object:
    """Return `/stats/summary`. A container whose control group cannot be read is left out.

    `identities`: containers have their `id` and `image`, which the Summary API does not have.
    """
    listed: list[Object] = []
    for pod in pods:
        containers: list[Object] = []
        try:
            running = [
                each
                for each in await runtime.list_containers(uid_of(pod))
                if each.state == ContainerState.CONTAINER_RUNNING
            ]
            for container in running:
                counted = await runtime.container_stats(container.id)
                if counted is None:
                    continue
                at = rfc3339_micro(now(world.clock))
                containers.append(
                    {
                        "name": container.metadata.name,
                        **({"id": container.id, "image": container.image} if identities else {}),
                        "startTime": _time(container.started_at),
                        "cpu": {"time": at, "usageCoreNanoSeconds": counted.cpu_usage_core_nano_seconds},
                        "memory": {
                            "time": at,
                            "usageBytes": counted.memory_usage_bytes,
                            "workingSetBytes": counted.memory_working_set_bytes,
                        },
                    }
                )
        except RuntimeServiceError:
            continue  # it goes just now
        if containers:
            at = rfc3339_micro(now(world.clock))
            listed.append(
                {
                    "podRef": {"name": name_of(pod), "namespace": namespace_of(pod), "uid": uid_of(pod)},
                    "startTime": (pod.get("status") or {}).get("startTime"),
                    "containers": containers,
                    "cpu": {
                        "time": at,
                        "usageCoreNanoSeconds": sum(each["cpu"]["usageCoreNanoSeconds"] for each in containers),
                    },
                    "memory": {
                        "time": at,
                        **{
                            key: sum(each["memory"][key] for each in containers)
                            for key in ("usageBytes", "workingSetBytes")
                        },
                    },
                }
            )
    return {"node": {"nodeName": node, **_node(rfc3339_micro(now(world.clock)), usage)}, "pods": listed}


def _time(nanoseconds: int) -> str:
    return rfc3339(datetime.fromtimestamp(nanoseconds / 1e9, UTC))


def _node(at: str, usage: NodeUsage | None) -> Object:
    figures = _machine(at)
    if usage is not None and (nanoseconds := usage.cpu_ns()) is not None:
        figures["cpu"] = {"time": at, "usageCoreNanoSeconds": nanoseconds}
    if usage is not None and (memory := usage.memory()) is not None:
        capacity, used, working = memory
        available = max(0, capacity - working)
        figures["memory"] = {"time": at, "availableBytes": available, "usageBytes": used, "workingSetBytes": working}
    return figures


def _machine(at: str) -> Object:
    figures: Object = {}
    try:
        nanoseconds = busy_ticks(Path("/proc/stat").read_text()) * (1_000_000_000 // os.sysconf("SC_CLK_TCK"))
        figures["cpu"] = {"time": at, "usageCoreNanoSeconds": nanoseconds}
        figures["memory"] = {"time": at, **memory_of(read_meminfo())}
    except (OSError, ValueError, IndexError, KeyError):
        return figures
    return figures


def busy_ticks(stat: str) -> int:
    """Return the ticks in which all CPUs together worked, of the text of /proc/stat. Raises ValueError, IndexError."""
    columns = [int(each) for each in stat.partition("\n")[0].split()[1:]]
    return sum(columns[each] for each in _BUSY)


def memory_of(words: Mapping[str, int]) -> dict[str, int]:
    """Return the memory of a machine as the Summary API names it, of the figures of /proc/meminfo. Raises KeyError."""
    used = words["MemTotal"] - words["MemFree"]
    working = max(0, used - words.get("Inactive(file)", 0))
    return {"availableBytes": words["MemTotal"] - working, "usageBytes": used, "workingSetBytes": working}


def resource_metrics(summary: Object) -> str:
    """Return the text of `/metrics/resource` from what `summary` returned."""
    lines: list[str] = []
    for name, help_, kind, values in _families(summary):
        lines += [f"# HELP {name} [STABLE] {help_}", f"# TYPE {name} {kind}"]
        lines += [f"{name}{_labels(labels)} {value:g} {_milliseconds(at)}" for labels, value, at in values]
    return "\n".join([*lines, ""])


_Values = list[tuple[dict[str, str], float, str]]


def _families(summary: Object) -> Iterator[tuple[str, str, str, _Values]]:
    containers = [
        ({"container": each["name"], "namespace": pod["podRef"]["namespace"], "pod": pod["podRef"]["name"]}, each)
        for pod in summary["pods"]
        for each in pod["containers"]
    ]
    pods = [({"namespace": pod["podRef"]["namespace"], "pod": pod["podRef"]["name"]}, pod) for pod in summary["pods"]]
    for what, of in (("container", containers), ("node", [({}, summary["node"])]), ("pod", pods)):
        seconds: _Values = [
            (labels, each["cpu"]["usageCoreNanoSeconds"] / 1e9, each["cpu"]["time"])
            for labels, each in of
            if "cpu" in each
        ]
        words = f"Cumulative cpu time consumed by the {what} in core-seconds"
        yield f"{what}_cpu_usage_seconds_total", words, "counter", seconds
        bytes_: _Values = [
            (labels, each["memory"]["workingSetBytes"], each["memory"]["time"])
            for labels, each in of
            if "memory" in each
        ]
        yield f"{what}_memory_working_set_bytes", f"Current working set of the {what} in bytes", "gauge", bytes_


def _labels(labels: dict[str, str]) -> str:
    return "{" + ",".join(f'{key}="{value}"' for key, value in labels.items()) + "}" if labels else ""


def _milliseconds(at: str) -> int:
    return int(parse_rfc3339(at).timestamp() * 1000)
