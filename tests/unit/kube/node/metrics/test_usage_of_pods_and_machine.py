"""What the Summary API, `/metrics/resource` and `/metrics/cadvisor` are made of."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from lastcall.kube.cri.api import (
    ContainerMetadata,
    ContainerState,
    ContainerStats,
    ContainerStatus,
    RuntimeServiceError,
)
from lastcall.kube.node.meminfo import parse_meminfo
from lastcall.kube.node.metrics.cadvisor import cadvisor_families
from lastcall.kube.node.metrics.stats import busy_ticks, memory_of, resource_metrics, summary
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

AT = "2030-01-01T00:00:00.000000Z"
RUNNING, EXITED = ContainerState.CONTAINER_RUNNING, ContainerState.CONTAINER_EXITED


def pod(uid: str, **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": f"p-{uid}", "namespace": "n", "uid": uid}, "spec": {}, "status": status}


@dataclass
class Runtime:
    """Containers by Pod's uid, and what each of them uses; an error in its place is raised."""

    containers: dict[str, list[ContainerStatus]] = field(default_factory=dict)
    used: dict[str, ContainerStats | RuntimeServiceError | None] = field(default_factory=dict)

    def add(
        self,
        uid: str,
        name: str,
        used: ContainerStats | RuntimeServiceError | None,
        state: ContainerState = RUNNING,
    ) -> None:
        about = ContainerMetadata(name)
        started = 1_893_456_000 * 10**9
        made = ContainerStatus(f"id-{name}", about, "s", state, f"{name}:1", "r", 1, started_at=started)
        self.containers.setdefault(uid, []).append(made)
        self.used[made.id] = used

    async def list_containers(self, pod_uid: str) -> list[ContainerStatus]:
        return self.containers.get(pod_uid, [])

    async def container_stats(self, container_id: str) -> ContainerStats | None:
        found = self.used[container_id]
        if isinstance(found, RuntimeServiceError):
            raise found
        return found


def summary_of(runtime: Runtime, *pods: dict[str, Any], identities: bool = False) -> Any:
    async def ask(world: World) -> Any:
        return await summary(world, runtime, "node-1", list(pods), identities=identities)  # type: ignore[arg-type]

    return run_virtual(ask)


def test_a_pod_uses_what_its_running_containers_use_together() -> None:
    runtime = Runtime()
    runtime.add("u", "app", ContainerStats(3_000, 40, 20))
    runtime.add("u", "log", ContainerStats(500, 6, 5))
    told = summary_of(runtime, pod("u", startTime="2030-01-01T00:00:00Z"))
    assert told["node"]["nodeName"] == "node-1"
    (one,) = told["pods"]
    assert one["podRef"] == {"name": "p-u", "namespace": "n", "uid": "u"}
    assert one["startTime"] == "2030-01-01T00:00:00Z"
    assert one["cpu"] == {"time": AT, "usageCoreNanoSeconds": 3_500}
    assert one["memory"] == {"time": AT, "usageBytes": 46, "workingSetBytes": 25}
    assert one["containers"][0] == {
        "name": "app",
        "startTime": "2030-01-01T00:00:00Z",
        "cpu": {"time": AT, "usageCoreNanoSeconds": 3_000},
        "memory": {"time": AT, "usageBytes": 40, "workingSetBytes": 20},
    }


def test_containers_have_their_identity_only_where_it_is_asked_for() -> None:
    runtime = Runtime()
    runtime.add("u", "app", ContainerStats(1, 2, 3))
    told = summary_of(runtime, pod("u"), identities=True)
    assert [(each["id"], each["image"]) for each in told["pods"][0]["containers"]] == [("id-app", "app:1")]


def test_what_does_not_run_or_cannot_be_counted_is_left_out_and_the_others_stay() -> None:
    runtime = Runtime()
    runtime.add("ended", "old", ContainerStats(9, 9, 9), EXITED)
    runtime.add("half", "gone", None)
    runtime.add("half", "here", ContainerStats(1, 2, 3))
    runtime.add("going", "bad", RuntimeServiceError("not found"))
    runtime.add("last", "app", ContainerStats(4, 5, 6))
    told = summary_of(runtime, pod("ended"), pod("half"), pod("going"), pod("last"), pod("none"))
    found = {each["podRef"]["uid"]: [one["name"] for one in each["containers"]] for each in told["pods"]}
    assert found == {"half": ["here"], "last": ["app"]}


def test_the_machine_s_work_is_all_but_idleness_and_what_guests_counted_twice() -> None:
    """Documentation/filesystems/proc.rst: user nice system idle iowait irq softirq steal guest guest_nice."""
    assert busy_ticks("cpu  1 20 300 5000 60000 700000 8000000 90000000 5 5\ncpu0 1 1 1 1 1 1 1 1 1 1\n") == 98_700_321


def test_meminfo_is_read_in_bytes_and_counts_of_pages_are_left_out() -> None:
    text = "MemTotal:       16 kB\nInactive(file):        2 kB\nHugePages_Total:       7\n"
    assert parse_meminfo(text) == {"MemTotal": 16384, "Inactive(file)": 2048}


@pytest.mark.parametrize(
    ("words", "available", "used", "working"),
    [
        ({"MemTotal": 100, "MemFree": 30, "Inactive(file)": 20}, 50, 70, 50),
        ({"MemTotal": 100, "MemFree": 30}, 30, 70, 70),
        ({"MemTotal": 100, "MemFree": 90, "Inactive(file)": 20}, 100, 10, 0),
    ],
)
def test_the_working_set_of_a_machine_is_what_it_uses_without_inactive_files(
    words: dict[str, int], available: int, used: int, working: int
) -> None:
    assert memory_of(words) == {"availableBytes": available, "usageBytes": used, "workingSetBytes": working}


TOLD: dict[str, Any] = {
    "node": {
        "nodeName": "node-1",
        "cpu": {"time": AT, "usageCoreNanoSeconds": 9_500_000_000},
        "memory": {"time": AT, "availableBytes": 600, "usageBytes": 500, "workingSetBytes": 400},
    },
    "pods": [
        {
            "podRef": {"name": "p", "namespace": "n", "uid": "u"},
            "cpu": {"time": AT, "usageCoreNanoSeconds": 2_500_000_000},
            "memory": {"time": AT, "usageBytes": 50, "workingSetBytes": 40},
            "containers": [
                {
                    "name": "app",
                    "id": "c1",
                    "image": "app:1",
                    "startTime": "2030-01-01T00:00:02Z",
                    "cpu": {"time": "2030-01-01T00:00:01.250000Z", "usageCoreNanoSeconds": 1_500_000_000},
                    "memory": {"time": AT, "usageBytes": 30, "workingSetBytes": 20},
                }
            ],
        }
    ],
}


def test_resource_metrics_are_seconds_and_bytes_with_the_time_of_their_counting() -> None:
    """pkg/kubelet/metrics/collectors/resource_metrics.go."""
    lines = resource_metrics(TOLD).splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        'container_cpu_usage_seconds_total{container="app",namespace="n",pod="p"} 1.5 1893456001250',
        'container_memory_working_set_bytes{container="app",namespace="n",pod="p"} 20 1893456000000',
        "node_cpu_usage_seconds_total 9.5 1893456000000",
        "node_memory_working_set_bytes 400 1893456000000",
        'pod_cpu_usage_seconds_total{namespace="n",pod="p"} 2.5 1893456000000',
        'pod_memory_working_set_bytes{namespace="n",pod="p"} 40 1893456000000',
    ]
    assert lines[:2] == [
        "# HELP container_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the container in "
        "core-seconds",
        "# TYPE container_cpu_usage_seconds_total counter",
    ]
    assert "# TYPE node_memory_working_set_bytes gauge" in lines
    assert resource_metrics(TOLD).endswith("\n")


def test_a_machine_that_cannot_be_read_has_no_values_but_its_families() -> None:
    text = resource_metrics({"node": {"nodeName": "node-1"}, "pods": []})
    assert "# TYPE node_cpu_usage_seconds_total counter" in text
    assert [line for line in text.splitlines() if not line.startswith("#")] == []


def test_cadvisor_counts_the_machine_each_pod_and_each_container() -> None:
    """google/cadvisor metrics/prometheus.go."""
    families = {name: list(values) for name, values in cadvisor_families(TOLD)}
    assert [value for _, value in families["container_cpu_usage_seconds_total"]] == [9.5, 2.5, 1.5]
    assert {labels["cpu"] for labels, _ in families["container_cpu_usage_seconds_total"]} == {"total"}
    assert [(labels["id"], value) for labels, value in families["container_memory_usage_bytes"]] == [
        ("/", 500),
        ("/kubepods/podu", 50),
        ("/kubepods/podu/c1", 30),
    ]
    assert [value for _, value in families["container_memory_working_set_bytes"]] == [400, 40, 20]
    machine, of_pod, own = (labels for labels, _ in families["container_memory_usage_bytes"])
    empty = {"container": "", "image": "", "name": "", "namespace": "", "pod": ""}
    assert machine == {"id": "/", **empty}
    assert of_pod == {**empty, "id": "/kubepods/podu", "namespace": "n", "pod": "p"}
    assert own == {
        "container": "app",
        "id": "/kubepods/podu/c1",
        "image": "app:1",
        "name": "c1",
        "namespace": "n",
        "pod": "p",
    }
    assert [value for _, value in families["container_last_seen"]] == [1893456000, 1893456000, 1893456001]
    assert [value for _, value in families["container_start_time_seconds"]] == [1893456002]
    assert families["machine_memory_bytes"] == [({}, 1000)]


@pytest.mark.parametrize("missing", ["cpu", "memory"])
def test_a_machine_that_cannot_be_read_is_no_row_of_cadvisor(missing: str) -> None:
    told = {"node": {key: value for key, value in TOLD["node"].items() if key != missing}, "pods": []}
    families = {name: list(values) for name, values in cadvisor_families(told)}
    assert families["container_cpu_usage_seconds_total"] == []
    assert ("machine_memory_bytes" in families) is (missing == "cpu")
