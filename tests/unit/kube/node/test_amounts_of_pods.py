"""What Pods ask for and what they are given: sums, shares, quotas, scores, classes. Tables of the kubelet's helpers."""

from typing import Any

import pytest

from lastcall.kube.node.admission.critical_pods import (
    NoVictims,
    is_critical_pod,
    is_preemptable,
    pods_to_preempt,
)
from lastcall.kube.node.admission.decide import Shortage, has_free_ports, matches_node, request_of, shortages
from lastcall.kube.node.pods.cgroups import cpu_quota, cpu_shares, declares_limits, resource_config_for_pod
from lastcall.kube.node.pods.resources import pod_resources
from lastcall.kube.node.pods.spec import (
    all_containers_of,
    container_field_path,
    find_container,
    get_pod_qos,
    image_volumes_of,
    is_mirror_pod,
    is_static_pod,
    is_terminal_phase,
)
from lastcall.kube.node.runtime.container_config import oom_score_adjust

MI, GI = 1 << 20, 1 << 30


def container(name: str = "c", limits: Any = None, requests: Any = None, **more: Any) -> dict[str, Any]:
    resources = {"limits": limits or {}, "requests": requests or {}}
    return {"name": name, "resources": resources, **more}


def pod(*containers: dict[str, Any], init: Any = (), uid: str = "u", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": uid, "namespace": "n", "uid": uid},
        "spec": {"containers": list(containers), "initContainers": list(init), **spec},
    }


@pytest.mark.parametrize(
    ("milli", "shares", "quota"),
    [
        (0, 2, 0),
        (1, 2, 1_000),
        (2, 2, 1_000),
        (3, 3, 1_000),
        (10, 10, 1_000),
        (11, 11, 1_100),
        (500, 512, 50_000),
        (1000, 1024, 100_000),
        (256_000, 262_144, 25_600_000),
        (300_000, 262_144, 30_000_000),
    ],
)
def test_shares_and_quota_of_millicores(milli: int, shares: int, quota: int) -> None:
    """pkg/kubelet/cm/helpers_linux_test.go: TestMilliCPUToShares, TestMilliCPUToQuota."""
    assert (cpu_shares(milli), cpu_quota(milli)) == (shares, quota)


@pytest.mark.parametrize(
    ("the_pod", "expected"),
    [
        (pod(container()), (2, 0, 0, 0, {})),
        (pod(container(requests={"cpu": "1"})), (1024, 0, 0, 0, {})),
        (pod(container(limits={"cpu": "2"})), (2048, 200_000, 100_000, 0, {})),
        (pod(container(limits={"memory": "1Mi"}, requests={"cpu": "1"})), (1024, 0, 0, MI, {})),
        (pod(container(limits={"cpu": "1", "memory": "0"})), (1024, 100_000, 100_000, 0, {})),
        (pod(container(limits={"cpu": "1"}), container(limits={"memory": "1Mi"})), (1024, 0, 0, 0, {})),
        (
            pod(container(requests={"cpu": "1"}), resources={"limits": {"cpu": "3", "memory": "5Mi"}}),
            (1024, 300_000, 100_000, 5 * MI, {}),
        ),
    ],
)
def test_the_limits_of_a_pod_s_group(the_pod: dict[str, Any], expected: tuple[Any, ...]) -> None:
    """pkg/kubelet/cm/helpers_linux.go:ResourceConfigForPod."""
    found = resource_config_for_pod(the_pod)
    assert (
        found.cpu_shares,
        found.cpu_quota,
        found.cpu_period,
        found.memory_limit_in_bytes,
        found.unified,
    ) == expected


@pytest.mark.parametrize("limit", [0, 1])
@pytest.mark.parametrize("the_pod", [pod(container()), pod(container(requests={"cpu": "1"}))])
def test_processes_are_limited_where_there_is_a_limit(the_pod: dict[str, Any], limit: int) -> None:
    assert resource_config_for_pod(the_pod, limit).unified == ({"pids.max": "1"} if limit else {})


@pytest.mark.parametrize(
    ("the_pod", "declares"),
    [
        (pod(), False),
        (pod(container(requests={"cpu": "1"})), False),
        (pod(container(limits={"ephemeral-storage": "1Gi"})), False),
        (pod(container(), container(limits={"cpu": "1"})), True),
        (pod(container(limits={"memory": "1Gi"})), True),
        (pod(container(), init=[container(limits={"cpu": "1"})]), True),
    ],
)
def test_a_limit_of_cpu_or_memory_of_any_container_counts(the_pod: dict[str, Any], declares: bool) -> None:
    assert declares_limits(the_pod) is declares


SIDECAR = {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("the_pod", "cpu"),
    [
        (pod(container(requests={"cpu": "1"}), container(requests={"cpu": "2"})), "3"),
        (pod(container(requests={"cpu": "1"}), init=[container("i", requests={"cpu": "2"})]), "2"),
        (pod(container(requests={"cpu": "2"}), init=[container("i", requests={"cpu": "1"})]), "2"),
        (pod(container(requests={"cpu": "1"}), init=[container("s", requests={"cpu": "2"}, **SIDECAR)]), "3"),
        (
            pod(
                container(requests={"cpu": "1"}),
                init=[container("s", requests={"cpu": "2"}, **SIDECAR), container("i", requests={"cpu": "3"})],
            ),
            "5",
        ),
        (
            pod(
                container(requests={"cpu": "1"}),
                init=[container("i", requests={"cpu": "3"}), container("s", requests={"cpu": "2"}, **SIDECAR)],
            ),
            "3",
        ),
        (pod(container(requests={"cpu": "1"}), resources={"requests": {"cpu": "7"}}), "7"),
    ],
)
def test_sidecars_count_beside_what_follows_and_init_containers_alone(the_pod: dict[str, Any], cpu: str) -> None:
    """staging/src/k8s.io/component-helpers/resource/helpers.go:PodRequests."""
    assert pod_resources(the_pod) == {"requests": {"cpu": cpu}}


@pytest.mark.parametrize(
    ("the_pod", "cpu", "memory"),
    [
        (pod(container()), 0, 0),
        (pod(container(requests={"cpu": "1", "memory": "1Mi"})), 1000, MI),
        (pod(container(requests={"cpu": "1"}), overhead={"cpu": "250m", "memory": "1Mi"}), 1250, MI),
    ],
)
def test_a_pod_takes_its_requests_and_its_overhead_of_a_node(the_pod: dict[str, Any], cpu: int, memory: int) -> None:
    assert [request_of(the_pod, each) for each in ("cpu", "memory", "pods")] == [cpu, memory, 1]


def test_everything_that_is_too_little_is_told_in_order() -> None:
    asks, other = pod(container(requests={"cpu": "2", "memory": "3Mi"})), pod(container(requests={"cpu": "1"}))
    found = shortages(asks, [other], {"cpu": "2500m", "memory": "2Mi", "pods": "1"})
    assert [(each.resource, each.wanted, each.used, each.capacity, each.missing) for each in found] == [
        ("pods", 1, 1, 1, 1),
        ("cpu", 2000, 1000, 2500, 500),
        ("memory", 3 * MI, 0, 2 * MI, MI),
    ]
    assert shortages(asks, [other], {"cpu": "3", "memory": "3Mi", "pods": "2"}) == []
    assert shortages(pod(), [asks], {"cpu": "1"}) == [], "who asks for nothing always fits"


@pytest.mark.parametrize(
    ("wanted", "taken", "free"),
    [
        ({"hostPort": 80}, {"hostPort": 81}, True),
        ({"hostPort": 80}, {"hostPort": 80}, False),
        ({"hostPort": 80}, {"hostPort": 80, "protocol": "UDP"}, True),
        ({"hostPort": 80, "hostIP": "1.1.1.1"}, {"hostPort": 80, "hostIP": "2.2.2.2"}, True),
        ({"hostPort": 80, "hostIP": "1.1.1.1"}, {"hostPort": 80, "hostIP": "1.1.1.1"}, False),
        ({"hostPort": 80, "hostIP": "1.1.1.1"}, {"hostPort": 80}, False),
        ({"hostPort": 80}, {"hostPort": 80, "hostIP": "1.1.1.1"}, False),
        ({"containerPort": 80}, {"hostPort": 80}, True),
    ],
)
def test_a_port_of_the_node_is_one_pod_s(wanted: dict[str, Any], taken: dict[str, Any], free: bool) -> None:
    """plugins/nodeports/node_ports.go:Fits."""
    rejection = has_free_ports(pod(container(ports=[wanted])), [pod(), pod(container(ports=[taken]), uid="o")])
    assert (rejection is None) is free
    if rejection is not None:
        assert rejection.reason == "NodePorts"


def test_ports_of_sidecars_are_taken_and_those_of_init_containers_are_not() -> None:
    port = {"ports": [{"hostPort": 80}]}
    asks = pod(container(**port))
    assert has_free_ports(asks, [pod(init=[container(**port, **SIDECAR)])]) is not None
    assert has_free_ports(asks, [pod(init=[container(**port)])]) is None


def test_a_node_whose_labels_are_not_known_takes_what_the_scheduler_sends() -> None:
    asks = pod(nodeSelector={"disk": "ssd"})
    assert matches_node(lambda: {"metadata": {}})(asks, []) is None
    assert matches_node(lambda: {"metadata": {"labels": {"a": "b"}}})(asks, []) is not None


# -- critical Pods -----------------------------------------------------------------------------------------------------

CRITICAL = 2_000_000_000


def annotated(**annotations: str) -> dict[str, Any]:
    found = pod()
    found["metadata"]["annotations"] = {f"kubernetes.io/config.{key}": value for key, value in annotations.items()}
    return found


@pytest.mark.parametrize(
    ("the_pod", "critical", "is_static", "is_mirror"),
    [
        (pod(), False, False, False),
        (pod(priority=CRITICAL - 1), False, False, False),
        (pod(priority=CRITICAL), True, False, False),
        (annotated(source="file"), True, True, False),
        (annotated(source="api"), False, False, False),
        (annotated(mirror="h"), True, False, True),
    ],
)
def test_static_pods_mirrors_and_system_priorities_are_critical(
    the_pod: dict[str, Any], critical: bool, is_static: bool, is_mirror: bool
) -> None:
    """pkg/kubelet/types/pod_update.go:IsCriticalPod."""
    assert (is_critical_pod(the_pod), is_static_pod(the_pod), is_mirror_pod(the_pod)) == (
        critical,
        is_static,
        is_mirror,
    )


@pytest.mark.parametrize(
    ("preemptor", "preemptee", "may"),
    [
        ({"priority": CRITICAL}, {}, True),
        ({"priority": CRITICAL}, {"priority": CRITICAL}, False),
        ({"priority": CRITICAL + 1}, {"priority": CRITICAL}, True),
        ({"priority": 5}, {"priority": 4}, True),
        ({"priority": 5}, {"priority": 5}, False),
        ({"priority": 5}, {}, False),
        ({}, {"priority": -5}, False),
    ],
)
def test_who_may_push_whom_off_the_node(preemptor: dict[str, Any], preemptee: dict[str, Any], may: bool) -> None:
    """pkg/kubelet/types/pod_update.go:Preemptable."""
    assert is_preemptable(pod(**preemptor), pod(**preemptee)) is may


def best_effort(uid: str) -> dict[str, Any]:
    return pod(container(), uid=uid)


def burstable(uid: str, cpu: str = "100m", memory: str = "100Mi") -> dict[str, Any]:
    return pod(container(requests={"cpu": cpu, "memory": memory}), uid=uid)


def guaranteed(uid: str, cpu: str = "100m", memory: str = "100Mi") -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": memory}
    return pod(container(limits=amounts, requests=amounts), uid=uid)


def need(**amounts: int) -> list[Shortage]:
    """Shortages of which so much is missing."""
    return [Shortage(resource, amount, 0, 0) for resource, amount in amounts.items()]


@pytest.mark.parametrize(
    ("pods", "needs", "victims"),
    [
        ([burstable("b"), guaranteed("g")], need(cpu=100), "b"),
        ([burstable("b"), guaranteed("g")], need(cpu=101), "bg"),
        ([best_effort("e"), burstable("b")], need(pods=1), "e"),
        ([best_effort("e"), burstable("b")], need(pods=2), "eb"),
        ([best_effort("e"), burstable("b")], need(pods=1, cpu=100), "b"),
        ([burstable("small", "100m"), burstable("large", "300m")], need(cpu=200), ["large"]),
        ([burstable("large", "500m", "200Mi"), burstable("lean", "500m", "100Mi")], need(cpu=500), ["lean"]),
        ([burstable("large", "600m", "100Mi"), burstable("lean", "500m", "100Mi")], need(cpu=500), ["lean"]),
        ([burstable("a", "300m"), burstable("b", "200m"), burstable("c", "100m")], need(cpu=400), ["a", "c"]),
        ([burstable("a", "250m", "10Mi"), burstable("b", "10m", "250Mi")], need(cpu=250, memory=250 * MI), "ab"),
    ],
)
def test_victims_are_of_the_least_class_and_nearest_to_what_is_needed(
    pods: list[dict[str, Any]], needs: list[Shortage], victims: Any
) -> None:
    """pkg/kubelet/preemption/preemption.go:getPodsToPreempt, getPodsToPreemptByDistance."""
    found = pods_to_preempt(pod(priority=CRITICAL), pods, needs)
    assert [each["metadata"]["uid"] for each in found] == list(victims)


def test_what_all_victims_together_do_not_give_is_named() -> None:
    with pytest.raises(NoVictims, match=r"\[\(res: cpu, q: 100\), \(res: pods, q: 1\), \]"):
        pods_to_preempt(
            pod(priority=CRITICAL), [burstable("a"), pod(priority=CRITICAL)], need(cpu=200, memory=MI, pods=2)
        )


# -- small questions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("the_pod", "qos"),
    [
        (pod(container()), "BestEffort"),
        (pod(container(requests={"cpu": "1"})), "Burstable"),
        (pod(container(limits={"cpu": "1"})), "Burstable"),
        (pod(container(limits={"cpu": "1", "memory": "1Mi"})), "Guaranteed"),
        (pod(container(limits={"cpu": "1", "memory": "1Mi"}, requests={"cpu": "500m"})), "Burstable"),
        (pod(container(limits={"cpu": "1", "memory": "1Mi"}), init=[container("i")]), "Burstable"),
    ],
)
def test_a_missing_request_is_the_limit(the_pod: dict[str, Any], qos: str) -> None:
    assert get_pod_qos(the_pod) == qos


def test_containers_are_found_wherever_they_are_and_events_say_where() -> None:
    the_pod = pod(container("a"), init=[container("i")], ephemeralContainers=[container("e")])
    assert [each["name"] for each in all_containers_of(the_pod)] == ["i", "a", "e"]
    assert [find_container(the_pod, name) is not None for name in "iaex"] == [True, True, True, False]
    assert [container_field_path(the_pod, name) for name in "iaex"] == [
        "spec.initContainers{i}",
        "spec.containers{a}",
        "spec.ephemeralContainers{e}",
        "",
    ]


def test_volumes_that_are_images_have_their_reference() -> None:
    volumes = [{"name": "a", "image": {"reference": "r:1"}}, {"name": "b", "emptyDir": {}}, {"name": "c", "image": {}}]
    assert image_volumes_of(pod(volumes=volumes)) == {"a": "r:1", "c": ""}
    assert image_volumes_of(pod()) == {}


@pytest.mark.parametrize(
    ("phase", "terminal"), [("Succeeded", True), ("Failed", True), ("Running", False), ("", False), (None, False)]
)
def test_a_phase_that_is_left_no_more(phase: str | None, terminal: bool) -> None:
    assert is_terminal_phase(phase) is terminal


NODE_CRITICAL = {"priorityClassName": "system-node-critical"}


@pytest.mark.parametrize(
    ("the_pod", "asked", "capacity", "score"),
    [
        (best_effort("u"), 0, GI, 1000),
        (best_effort("u"), 0, 0, 1000),
        (guaranteed("u"), 0, GI, -997),
        (burstable("u"), 0, 0, 999),
        (burstable("u"), 1, GI, 999),
        (burstable("u"), GI // 2, GI, 500),
        (burstable("u"), GI, GI, 3),
        (burstable("u"), GI - GI // 1000, GI, 3),
        (burstable("u"), GI - GI // 100, GI, 10),
        (pod(container(), priority=CRITICAL, **NODE_CRITICAL), 0, GI, -997),
        (pod(container(), priority=CRITICAL - 1, **NODE_CRITICAL), 0, GI, 1000),
        (pod(container(), priority=CRITICAL), 0, GI, 1000),
    ],
)
def test_who_asks_for_more_memory_is_killed_later(
    the_pod: dict[str, Any], asked: int, capacity: int, score: int
) -> None:
    """pkg/kubelet/qos/policy.go:GetContainerOOMScoreAdjust."""
    assert oom_score_adjust(the_pod, asked, capacity) == score
