"""Node-pressure eviction as tables: when it starts and ends, which Pod goes first, which message it gets."""

from fractions import Fraction

import pytest

from lastcall.kube.node.eviction.decide import (
    Amount,
    ContainerUsage,
    EvictionConfig,
    FileUsage,
    Observation,
    PodUsage,
    PressureState,
    Threshold,
    admit_under_pressure,
    evicted_status,
    eviction_grace,
    eviction_message,
    has_storage_limits,
    next_pressure,
    parse_amount,
    parse_thresholds,
    ranked,
    storage_violation,
    thresholds_met,
)

MEMORY = Threshold("memory.available", Amount(100))
DISK = Threshold("nodefs.available", Amount(fraction=Fraction(1, 10)))
SOFT = Threshold("memory.available", Amount(200), grace_seconds=30.0)
MI = 1 << 20


def memory(available: int, at: float = 0.0) -> dict[str, Observation]:
    return {"memory.available": Observation(available, 1000, at)}


def pod(
    name: str = "a", *, priority: int = 0, containers: tuple[dict, ...] = ({"name": "app"},), **spec: object
) -> dict:
    spec = {"priority": priority, "containers": [dict(each) for each in containers], **spec}
    return {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec}


def asking(resource: str, quantity: str, *, kind: str = "requests", name: str = "app") -> dict:
    return {"name": name, "resources": {kind: {resource: quantity}}}


# -- amounts and thresholds


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("100Mi", Amount(100 * MI)),
        ("0", Amount(0)),
        ("10%", Amount(fraction=Fraction(1, 10))),
        ("0%", Amount()),
        ("100%", Amount(fraction=Fraction(1))),
    ],
)
def test_an_amount_is_a_quantity_or_a_part_of_the_capacity(text: str, amount: Amount) -> None:
    assert parse_amount(text) == amount


@pytest.mark.parametrize("text", ["101%", "-1%", "-1", "-5Mi"])
def test_an_amount_below_nothing_or_above_everything_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^eviction .*threshold"):
        parse_amount(text)


def test_a_part_of_the_capacity_is_rounded_down() -> None:
    assert (Amount(fraction=Fraction(1, 3)).of(100), Amount(7).of(100)) == (33, 7)


def test_soft_thresholds_have_a_grace_period_and_each_may_have_more_to_reclaim() -> None:
    soft_ones, graces = {"memory.available": "1"}, {"memory.available": 9.0}
    hard, soft = parse_thresholds({"pid.available": "5"}, soft_ones, graces, {"pid.available": "2"})
    assert hard == Threshold("pid.available", Amount(5), None, Amount(2)) and hard.hard
    assert soft == Threshold("memory.available", Amount(1), 9.0) and not soft.hard


@pytest.mark.parametrize(
    "arguments",
    [
        ({"cpu": "1"},),
        ({}, {"memory.available": "1"}),
        ({}, {"memory.available": "1"}, {"memory.available": 0.0}),
        ({}, {}, {}, {"x": "1"}),
    ],
    ids=["an unknown signal", "soft without grace", "soft with a grace of zero", "an unknown signal to reclaim"],
)
def test_thresholds_that_cannot_be_are_refused(arguments: tuple) -> None:
    with pytest.raises(ValueError, match="eviction"):
        parse_thresholds(*arguments)


@pytest.mark.parametrize(("available", "met"), [(99, True), (100, False), (101, False)])
def test_a_threshold_is_met_when_less_than_its_value_is_available(available: int, met: bool) -> None:
    assert thresholds_met([MEMORY, DISK], memory(available), to_resolve=False) == ([MEMORY] if met else [])


def test_a_threshold_is_resolved_when_its_least_reclaim_is_available_too() -> None:
    reclaiming = Threshold("memory.available", Amount(100), min_reclaim=Amount(50))
    assert thresholds_met([reclaiming], memory(149), to_resolve=True) == [reclaiming]
    assert thresholds_met([reclaiming], memory(150), to_resolve=True) == []
    assert thresholds_met([reclaiming], memory(149), to_resolve=False) == []


# -- passes


def test_a_hard_threshold_is_acted_upon_at_once_and_each_reading_only_once() -> None:
    config = EvictionConfig((MEMORY,))
    state, act = next_pressure(config, PressureState(), memory(50, at=1.0), 1.0)
    assert act == [MEMORY] and state.conditions == ("MemoryPressure",)
    state, act = next_pressure(config, state, memory(50, at=1.0), 2.0)
    assert act == [] and state.met == (MEMORY,), "the same reading"
    assert next_pressure(config, state, memory(50, at=3.0), 3.0)[1] == [MEMORY]


def test_a_soft_threshold_waits_for_its_grace_period() -> None:
    config, state = EvictionConfig((SOFT,)), PressureState()
    for now, expected in ((0.0, []), (29.9, []), (30.0, [SOFT])):
        state, act = next_pressure(config, state, memory(150, at=now), now)
        assert act == expected
    state, _ = next_pressure(config, state, memory(500, at=31.0), 31.0)
    assert next_pressure(config, state, memory(150, at=40.0), 40.0)[1] == [], "the grace period starts anew"


def test_a_condition_outlives_its_cause_by_the_transition_period() -> None:
    config = EvictionConfig((MEMORY,), transition_seconds=10.0)
    state, _ = next_pressure(config, PressureState(), memory(50), 100.0)
    assert next_pressure(config, state, memory(500), 109.9)[0].conditions == ("MemoryPressure",)
    assert next_pressure(config, state, memory(500), 110.0)[0].conditions == ()


def test_a_threshold_that_was_met_stays_until_the_least_reclaim_is_there() -> None:
    reclaiming = Threshold("memory.available", Amount(100), min_reclaim=Amount(50))
    config = EvictionConfig((reclaiming,))
    state, _ = next_pressure(config, PressureState(), memory(99), 0.0)
    assert next_pressure(config, state, memory(120, at=1.0), 1.0)[1] == [reclaiming]
    assert next_pressure(config, PressureState(), memory(120, at=1.0), 1.0)[1] == []


def test_memory_comes_first_and_hard_thresholds_before_soft_ones() -> None:
    seen = memory(50) | {"nodefs.available": Observation(1, 1000)}
    now_over = Threshold("memory.available", Amount(200), grace_seconds=0.5)
    state = PressureState(first_observed={now_over: -1.0})
    _, act = next_pressure(EvictionConfig((DISK, now_over, MEMORY)), state, seen, 0.0)
    assert act == [MEMORY, now_over, DISK]


@pytest.mark.parametrize(
    ("obj", "conditions", "refused"),
    [
        (pod(), [], False),
        (pod(), ["MemoryPressure"], True),
        (pod(), ["DiskPressure", "MemoryPressure"], True),
        (pod(containers=(asking("memory", "1Mi"),)), ["MemoryPressure"], False),
        (pod(containers=(asking("memory", "1Mi"),)), ["DiskPressure"], True),
        (pod(tolerations=[{"operator": "Exists"}]), ["MemoryPressure"], False),
        (pod(tolerations=[{"operator": "Exists"}]), ["DiskPressure"], True),
        (pod(priority=2_000_000_000), ["DiskPressure"], False),
    ],
)
def test_a_node_under_pressure_refuses_pods(obj: dict, conditions: list[str], refused: bool) -> None:
    rejection = admit_under_pressure(obj, conditions)
    assert (rejection is not None) is refused
    if rejection is not None:
        assert rejection.message == f"The node had condition: [{' '.join(conditions)}]. "


# -- whom


def using(
    memory: int | None = None, *, written: int = 0, logged: int = 0, inodes: int = 0, processes: int = 0
) -> PodUsage:
    own = ContainerUsage(memory, processes, FileUsage(written, inodes), FileUsage(logged, inodes))
    return PodUsage({"app": own})


def test_who_uses_more_than_requested_goes_first_then_by_priority_then_by_how_much() -> None:
    pods = [
        pod("below", containers=(asking("memory", "100"),)),
        pod("exactly", containers=(asking("memory", "70"),)),
        pod("important", priority=5),
        pod("above"),
        pod("far above"),
        pod("unknown"),
        pod("known to nobody", priority=1),
    ]
    usages = {
        "below": using(60), "exactly": using(70), "important": using(90), "above": using(10), "far above": using(20),
        "known to nobody": using(None),
    }  # fmt: skip
    order = [each["metadata"]["name"] for each in ranked(pods, usages, "memory")]
    assert order == ["unknown", "known to nobody", "far above", "above", "important", "exactly", "below"]


def test_a_pod_without_a_request_is_above_it_with_its_first_byte() -> None:
    pods = [pod("below", containers=(asking("memory", "9"),)), pod("nothing"), pod("one byte")]
    usages = {"below": using(8), "nothing": using(0), "one byte": using(1)}
    order = [each["metadata"]["name"] for each in ranked(pods, usages, "memory")]
    assert order == ["one byte", "nothing", "below"]
    pods[0]["spec"]["priority"], pods[1]["spec"]["priority"] = 0, 1
    assert [each["metadata"]["name"] for each in ranked(pods, usages, "memory")] == ["one byte", "below", "nothing"]


def test_files_of_containers_logs_and_volumes_count_together() -> None:
    usage = PodUsage({"app": ContainerUsage(1, 2, FileUsage(3, 4), FileUsage(5, 6))}, {"cache": FileUsage(7, 8)})
    assert usage.files == FileUsage(15, 18)
    more = PodUsage({"a": ContainerUsage(1, 2), "b": ContainerUsage(None, 3)})
    assert (more.memory, more.processes, PodUsage({"a": ContainerUsage()}).memory) == (1, 5, None)


@pytest.mark.parametrize(("resource", "more"), [("ephemeral-storage", {"logged": 9}), ("inodes", {"inodes": 9})])
def test_who_has_more_on_the_disk_goes_first(resource: str, more: dict) -> None:
    usages = {"a": using(50, written=1, inodes=1), "b": using(1, **({"written": 1} | more))}
    assert [each["metadata"]["name"] for each in ranked([pod("a"), pod("b")], usages, resource)] == ["b", "a"]


def test_processes_are_ranked_by_priority_then_by_number() -> None:
    usages = {"few": using(processes=1), "many": using(processes=9), "important": using(processes=99)}
    pods = [pod("important", priority=1), pod("none"), pod("few"), pod("many")]
    assert [each["metadata"]["name"] for each in ranked(pods, usages, "pids")] == ["many", "few", "none", "important"]


@pytest.mark.parametrize(
    ("threshold", "own", "grace"), [(MEMORY, 60, 1), (SOFT, 60, 20), (SOFT, 5, 5), (SOFT, 0, 0), (SOFT, None, 20)]
)
def test_a_soft_eviction_gives_the_pods_grace_up_to_a_maximum(
    threshold: Threshold, own: int | None, grace: int
) -> None:
    spec = {} if own is None else {"terminationGracePeriodSeconds": own}
    assert eviction_grace(threshold, pod(**spec), EvictionConfig(max_pod_grace_seconds=20)) == grace


# -- what is said


def test_the_message_names_threshold_and_the_containers_above_their_requests() -> None:
    sidecar = {"name": "side", "restartPolicy": "Always"}
    obj = pod(
        containers=(asking("memory", "1Mi"), asking("memory", "2Mi", name="small")),
        initContainers=[sidecar, {"name": "init"}],
    )
    usages = {name: ContainerUsage(2 * MI) for name in ("app", "small", "side", "init")}
    seen = {"memory.available": Observation(MI, 10 * MI), "nodefs.available": Observation(1, 10)}
    threshold = Threshold("memory.available", Amount(3 * MI))
    assert eviction_message(obj, PodUsage(usages), threshold, [DISK, threshold, MEMORY], seen) == (
        "The node was low on resource: memory. Threshold quantity: 3Mi, available: 1Mi. "
        "Container app was using 2Mi, request is 1Mi, has larger consumption of memory. "
        "Container side was using 2Mi, request is 0, has larger consumption of memory. "
    )
    assert eviction_message(obj, None, threshold, [threshold], {}) == "The node was low on resource: memory. "


def test_the_message_counts_files_in_bytes_and_says_nothing_of_processes() -> None:
    disk = eviction_message(pod(), using(5 * MI, written=MI, logged=MI), DISK, [], {})
    assert disk.endswith("Container app was using 2Mi, request is 0, has larger consumption of ephemeral-storage. ")
    pids = Threshold("pid.available", Amount(100))
    seen = {"pid.available": Observation(7, 1000)}
    assert eviction_message(pod(), using(5, processes=5), pids, [pids], seen) == (
        "The node was low on resource: pids. Threshold quantity: 100, available: 7. "
    )


@pytest.mark.parametrize("disruption", [True, False])
def test_an_evicted_pod_has_failed(disruption: bool) -> None:
    status: dict = {"phase": "Running"}
    evicted_status("why", disruption=disruption)(status)
    assert (status["phase"], status["reason"], status["message"]) == ("Failed", "Evicted", "why")
    assert [each["type"] for each in status.get("conditions", [])] == (["DisruptionTarget"] if disruption else [])


VOLUME = {"name": "cache", "emptyDir": {"sizeLimit": "1Mi"}}
LIMITED, UNLIMITED = (asking("ephemeral-storage", limit, kind="limits") for limit in ("1Mi", "0"))


TOTAL = "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. "
VOLUME_FULL = 'Usage of EmptyDir volume "cache" exceeds the limit "1Mi". '


@pytest.mark.parametrize(
    ("obj", "usage", "message"),
    [
        (pod(volumes=[VOLUME]), PodUsage({}, {"cache": FileUsage(MI)}), ""),
        (pod(volumes=[VOLUME]), PodUsage({}, {"cache": FileUsage(MI + 1)}), VOLUME_FULL),
        (pod(volumes=[VOLUME]), PodUsage({}, {"other": FileUsage(9 * MI)}), ""),
        (pod(volumes=[{"name": "cache", "emptyDir": {"sizeLimit": "0"}}]), PodUsage({}, {"cache": FileUsage(1)}), ""),
        (pod(volumes=[{"name": "cache", "emptyDir": {}}]), PodUsage({}, {"cache": FileUsage(1)}), ""),
        (pod(volumes=[{"name": "cache", "emptyDir": {"sizeLimit": "1"}}]), PodUsage({}, {"cache": FileUsage(2)}),
         'Usage of EmptyDir volume "cache" exceeds the limit "1". '),
        (pod(containers=(UNLIMITED, LIMITED | {"name": "b"})), using(written=1), ""),
        (pod(containers=(asking("ephemeral-storage", "1", kind="limits"), LIMITED | {"name": "b"})), using(written=2),
         'Container app exceeded its local ephemeral storage limit "1". '),
        (pod(containers=(LIMITED,)), using(written=MI), ""),
        (pod(containers=(LIMITED,)), using(written=MI, logged=1), TOTAL),
        (
            pod(containers=({"name": "free"}, LIMITED)), using(written=MI + 1),
            TOTAL,
        ),
        (
            pod(containers=(LIMITED | {"name": "idle"}, LIMITED)), using(written=MI, logged=1),
            'Container app exceeded its local ephemeral storage limit "1Mi". ',
        ),
        (pod(containers=(LIMITED | {"name": "idle"}, LIMITED)), using(written=MI), ""),
    ],
)  # fmt: skip
def test_a_pod_above_a_limit_of_its_own_storage_is_told_which(obj: dict, usage: PodUsage, message: str) -> None:
    assert storage_violation(obj, usage) == message


def test_since_1_37_a_sidecar_is_held_to_its_own_limit_too() -> None:
    """(kubernetes#138462; init containers that end are not)"""
    sidecar = LIMITED | {"name": "app", "restartPolicy": "Always"}
    roomy = asking("ephemeral-storage", "9Mi", kind="limits") | {"name": "b"}
    above = using(written=2 * MI)
    assert storage_violation(pod(initContainers=[sidecar], containers=(roomy,)), above) == ""
    assert storage_violation(pod(initContainers=[sidecar], containers=(roomy,)), above, of_sidecars=True) == (
        'Container app exceeded its local ephemeral storage limit "1Mi". '
    )
    ends = LIMITED | {"name": "app"}
    assert storage_violation(pod(initContainers=[ends], containers=(roomy,)), above, of_sidecars=True) == ""


@pytest.mark.parametrize(
    ("obj", "has"),
    [
        (pod(), False),
        (pod(volumes=[{"name": "a", "emptyDir": {}}, VOLUME]), True),
        (pod(volumes=[{"name": "a", "emptyDir": {}}]), False),
        (pod(containers=(LIMITED,)), True),
        (pod(initContainers=[LIMITED]), True),
        (pod(containers=(asking("ephemeral-storage", "1Mi"),)), False),
    ],
)
def test_only_pods_with_a_limit_can_exceed_one(obj: dict, has: bool) -> None:
    assert has_storage_limits(obj) is has
