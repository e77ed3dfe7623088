"""Serve `/metrics/cadvisor`: what containers and machines use, from the summary of `kube/node/metrics/stats.py`.

Of cAdvisor's families those of CPU and memory, which dashboards and autoscalers read; container `""` is the Pod.
Source: google/cadvisor metrics/prometheus.go.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from lastcall.kube.api.meta import Object
from lastcall.kube.api.text.times import parse_rfc3339
from lastcall.world.counting import Family


def cadvisor_families(summary: Object) -> Iterator[Family]:
    rows = list(_rows(summary))
    yield (
        "container_cpu_usage_seconds_total",
        [({**labels, "cpu": "total"}, each["cpu"]["usageCoreNanoSeconds"] / 1e9) for labels, each in rows],
    )
    yield "container_memory_usage_bytes", [(labels, each["memory"]["usageBytes"]) for labels, each in rows]
    yield (
        "container_memory_working_set_bytes",
        [(labels, each["memory"]["workingSetBytes"]) for labels, each in rows],
    )
    yield (
        "container_start_time_seconds",
        [(labels, parse_rfc3339(each["startTime"]).timestamp()) for labels, each in rows if each.get("startTime")],
    )
    yield (
        "container_last_seen",
        [(labels, int(parse_rfc3339(each["cpu"]["time"]).timestamp())) for labels, each in rows],
    )
    yield "machine_cpu_cores", [({}, os.cpu_count() or 0)]
    memory = (summary.get("node") or {}).get("memory") or {}
    if memory:
        yield "machine_memory_bytes", [({}, memory["availableBytes"] + memory["workingSetBytes"])]


def _rows(summary: Object) -> Iterator[tuple[dict[str, str], Object]]:
    node = summary.get("node") or {}
    if "cpu" in node and "memory" in node:
        yield _labels("/"), node
    for pod in summary["pods"]:
        reference = pod["podRef"]
        where = {"namespace": reference["namespace"], "pod": reference["name"]}
        group = f"/kubepods/pod{reference['uid']}"
        yield {**_labels(group), **where}, pod
        for each in pod["containers"]:
            name, container_id = each["name"], each["id"]
            yield (
                {**_labels(f"{group}/{container_id}"), **where, "container": name, "image": each["image"]}
                | {"name": container_id},
                each,
            )


def _labels(group: str) -> dict[str, str]:
    return {"container": "", "id": group, "image": "", "name": "", "namespace": "", "pod": ""}
