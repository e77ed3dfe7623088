"""node-semantics 11 and golden correction 12, in virtual time against a small API."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.meta import copy_object
from lastcall.kube.client.api import ConnectionLost
from lastcall.kube.node.status.conditions import make_condition
from lastcall.kube.node.status.decide import (
    can_be_deleted,
    has_pod_initialized,
    illegal_transition,
    merge_patch,
    merge_pod_status,
    prepare_status,
    terminated_status,
    with_container_started,
)
from lastcall.kube.node.status.features import status_features
from lastcall.kube.node.status.manager import PodStatusManager
from lastcall.world import crash_guard
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

NOW = status_features("1.36")
OLD = status_features("1.23")


class Recorder:
    def __init__(self) -> None:
        self.records: list[tuple[str, dict[str, Any]]] = []

    def record(self, kind: str, *, facts: dict[str, Any] | None = None, **more: Any) -> str:
        self.records.append((kind, facts or {}))
        return ""


class PodState:
    """A pod worker's answer to the only predicate the status manager asks."""

    could_run = False

    def could_have_running_containers(self, uid: str) -> bool:
        return self.could_run


class Api:
    """One Pod, with resourceVersions, uid preconditions and merge patches."""

    def __init__(self, pod: dict[str, Any] | None) -> None:
        self.pod = pod
        self.requests: list[str] = []
        self.patches: list[dict[str, Any]] = []
        self.lost = 0

    async def get(self, resource: Any, name: str, namespace: str = "") -> dict[str, Any]:
        self.requests.append("GET")
        await asyncio.sleep(0)
        if self.pod is None:
            raise status_failure(404, "NotFound", f'pods "{name}" not found')
        return self.pod

    async def patch(self, resource: Any, name: str, patch: Any, namespace: str = "", **more: Any) -> dict[str, Any]:
        self.requests.append("PATCH")
        await asyncio.sleep(0)
        if self.lost:
            self.lost -= 1
            raise ConnectionLost("gone")
        if self.pod is None:
            raise status_failure(404, "NotFound", f'pods "{name}" not found')
        metadata = self.pod["metadata"]
        if patch["metadata"]["uid"] != metadata["uid"]:
            raise status_failure(409, "Conflict", "uid")
        if patch["metadata"].get("resourceVersion", metadata["resourceVersion"]) != metadata["resourceVersion"]:
            raise status_failure(409, "Conflict", "the object has been modified")
        assert more["subresource"] == "status"
        self.patches.append(patch["status"])
        pod = copy_object(self.pod)
        for key, value in patch["status"].items():
            if value is None:
                pod["status"].pop(key, None)
            else:
                pod["status"][key] = value
        self.pod = pod
        self.write()
        return self.pod

    async def delete(self, resource: Any, name: str, namespace: str = "", **more: Any) -> dict[str, Any]:
        assert more == {"grace_period_seconds": 0, "uid": "u1"}
        self.requests.append("DELETE")
        await asyncio.sleep(0)
        self.pod = None
        return {}

    def write(self, **metadata: Any) -> None:
        assert self.pod is not None
        self.pod = copy_object(self.pod)
        self.pod["metadata"] |= metadata
        self.pod["metadata"]["resourceVersion"] = str(int(self.pod["metadata"]["resourceVersion"]) + 1)


def make_pod(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "namespace": "n", "uid": "u1", "resourceVersion": "10", "generation": 1},
        "spec": {"containers": [{"name": "app"}], "restartPolicy": "Always", **spec},
        "status": {
            "phase": "Pending",
            "qosClass": "BestEffort",
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "True",
                    "lastProbeTime": None,
                    "lastTransitionTime": "2029-12-31T23:59:59Z",
                }
            ],
        },
    }


def make_status(phase: str = "Running", ready: bool = True, state: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "phase": phase,
        "qosClass": "BestEffort",
        "conditions": [
            make_condition("Ready", ready, observed_generation=1),
            make_condition("ContainersReady", ready, observed_generation=1),
            make_condition("PodScheduled", True, observed_generation=1),
        ],
        "containerStatuses": [
            {
                "name": "app",
                "state": state or {"running": {"startedAt": "2030-01-01T00:00:00Z"}},
                "lastState": {},
                "ready": ready,
                "started": True,
                "restartCount": 0,
                "containerID": "lastcall://c1",
            }
        ],
    }


EXITED = {"terminated": {"exitCode": 0, "reason": "Completed", "containerID": "lastcall://c1"}}


def scenario(
    body: Callable[[PodStatusManager, Api, PodState, World], Awaitable[None]],
    *,
    features: Any = NOW,
    pod: dict[str, Any] | None = None,
) -> tuple[Api, Recorder]:
    api, recorder = Api(pod or make_pod()), Recorder()

    async def main(world: World) -> None:
        state = PodState()
        manager = PodStatusManager(world=world, client=api, recorder=recorder, state=state, features=features)  # type: ignore[arg-type]
        async with Tasks() as tasks:
            tasks.spawn(manager.run(), name="status-manager")
            await world.clock.sleep(0.001)
            await body(manager, api, state, world)
            await world.clock.sleep(0.01)
            tasks.cancel()

    run_virtual(main)
    return api, recorder


@pytest.mark.rule("node-semantics 11.1/patch, 11.1/equal")
def test_one_write_is_one_request_and_an_equal_status_is_none() -> None:
    async def body(manager: PodStatusManager, api: Api, state: PodState, world: World) -> None:
        pod = copy_object(api.pod)  # type: ignore[arg-type]
        manager.set_pod_status(pod, make_status())
        await world.clock.sleep(0.1)
        manager.set_pod_status(pod, make_status())
        await world.clock.sleep(30)

    api, recorder = scenario(body)
    assert api.requests == ["PATCH"]
    assert [kind for kind, _ in recorder.records] == ["StatusSent", "PodRunning"]
    assert api.pod is not None
    assert api.pod["status"]["observedGeneration"] == 1
    times = {c["type"]: c["lastTransitionTime"] for c in api.pod["status"]["conditions"]}
    assert times == {
        "Ready": "2030-01-01T00:00:00Z",
        "ContainersReady": "2030-01-01T00:00:00Z",
        "PodScheduled": "2029-12-31T23:59:59Z",
    }


def test_a_stale_object_leads_back_to_a_get_and_keeps_what_others_wrote() -> None:
    async def body(manager: PodStatusManager, api: Api, state: PodState, world: World) -> None:
        pod = copy_object(api.pod)  # type: ignore[arg-type]
        assert api.pod is not None
        api.pod["status"]["conditions"].append({"type": "DisruptionTarget", "status": "True", "reason": "Eviction"})
        api.write()
        manager.set_pod_status(pod, make_status())

    api, _ = scenario(body)
    assert api.requests == ["PATCH", "GET", "PATCH"]
    assert api.pod is not None
    assert [c["type"] for c in api.pod["status"]["conditions"]] == [
        "DisruptionTarget",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    ]


def test_a_status_that_was_sent_is_not_worked_on_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """status_manager.go:needsUpdate goes by the version that was sent."""
    turns: list[str] = []
    seen = lambda component, key: turns.append(key) if "status" in component else None  # noqa: E731
    monkeypatch.setattr(crash_guard, "on_turn", seen)

    async def body(manager: PodStatusManager, api: Api, state: PodState, world: World) -> None:
        manager.set_pod_status(copy_object(api.pod), make_status())  # type: ignore[arg-type]
        await world.clock.sleep(35)

    scenario(body)
    assert turns.count("u1") == 1 + 3, "it is sent, and compared with the API's three times"


def test_a_newer_object_is_remembered_although_its_status_is_the_one_that_was_sent() -> None:
    """status_manager.go:updateStatusInternal. Or the next write would be refused, and the object read anew."""

    async def body(manager: PodStatusManager, api: Api, state: PodState, world: World) -> None:
        manager.set_pod_status(copy_object(api.pod), make_status(ready=False))  # type: ignore[arg-type]
        await world.clock.sleep(1)
        api.write(labels={"a": "b"})
        manager.set_pod_status(copy_object(api.pod), make_status(ready=False))  # type: ignore[arg-type]
        await world.clock.sleep(1)
        manager.set_container_readiness("u1", "c1", True)

    api, _ = scenario(body)
    assert api.requests == ["PATCH", "PATCH"]


@pytest.mark.rule("node-semantics 6/final, 11.3/uid")
def test_the_end_of_a_pod_is_generation_then_terminal_phase_then_delete() -> None:
    async def body(manager: PodStatusManager, api: Api, state: PodState, world: World) -> None:
        manager.set_pod_status(copy_object(api.pod), make_status())  # type: ignore[arg-type]
        await world.clock.sleep(0.1)
        api.write(deletionTimestamp="2030-01-01T00:00:30Z", deletionGracePeriodSeconds=30, generation=2)
        deleting = copy_object(api.pod)  # type: ignore[arg-type]
        state.could_run = True
        manager.set_pod_status(deleting, make_status())
        await world.clock.sleep(3)
        state.could_run = False
        manager.set_pod_status(deleting, make_status("Succeeded", False, EXITED))
        await world.clock.sleep(1)
        manager.terminate_pod(deleting)

    api, recorder = scenario(body)
    assert api.requests == ["PATCH", "PATCH", "PATCH", "DELETE"]
    assert api.patches[1] == {"observedGeneration": 2}
    assert api.patches[2]["phase"] == "Succeeded"
    assert [kind for kind, _ in recorder.records][-2:] == ["StatusSent", "FinalDeleteSent"]
    assert api.pod is None


@pytest.mark.rule("node-semantics 11.4/failed, 11.4/unknown")
def test_a_pod_that_never_started_gets_lost_containers_and_phase_failed() -> None:
    async def body(manager: PodStatusManager, api: Api, state: PodState, world: World) -> None:
        api.write(deletionTimestamp="2030-01-01T00:00:30Z", deletionGracePeriodSeconds=30)
        pod = copy_object(api.pod)  # type: ignore[arg-type]
        waiting = make_status("Pending", False, {"waiting": {"reason": "ContainerCreating"}})
        manager.set_pod_status(pod, waiting)
        manager.terminate_pod(pod)

    api, _ = scenario(body)
    assert api.requests == ["PATCH", "DELETE"]
    assert api.patches[0]["phase"] == "Failed"
    assert api.patches[0]["containerStatuses"][0]["state"]["terminated"] == {
        "exitCode": 137,
        "reason": "ContainerStatusUnknown",
        "message": "The container could not be located when the pod was terminated",
        "startedAt": None,
        "finishedAt": None,
    }


def test_the_last_status_of_a_pod_that_this_kubelet_never_ran_is_made_of_what_the_api_has() -> None:
    """status_manager.go:TerminatePod, of a kubelet that starts after the Pod's end has begun."""
    exited = {"name": "app", "state": EXITED, "lastState": {}, "ready": False, "restartCount": 3, "started": False}

    async def body(manager: PodStatusManager, api: Api, state: PodState, world: World) -> None:
        assert api.pod is not None
        api.pod["status"] |= {"phase": "Running", "containerStatuses": [exited]}
        api.write(deletionTimestamp="2030-01-01T00:00:30Z", deletionGracePeriodSeconds=30)
        manager.terminate_pod(copy_object(api.pod))

    api, _ = scenario(body)
    assert api.requests == ["PATCH", "DELETE"]
    (patch,) = api.patches
    assert "containerStatuses" not in patch, "its end is known already"
    assert (patch["phase"], "qosClass" in patch) == ("Failed", False)


@pytest.mark.rule("node-semantics 11.3/needs")
def test_no_delete_before_the_pod_is_finished() -> None:
    async def body(manager: PodStatusManager, api: Api, state: PodState, world: World) -> None:
        api.write(deletionTimestamp="2030-01-01T00:00:30Z", deletionGracePeriodSeconds=30)
        manager.set_pod_status(copy_object(api.pod), make_status("Succeeded", False, EXITED))  # type: ignore[arg-type]
        await world.clock.sleep(25)

    api, _ = scenario(body)
    assert api.requests == ["PATCH"]


@pytest.mark.rule("node-semantics 11.1/not-found")
def test_another_pod_of_the_name_is_left_alone() -> None:
    async def body(manager: PodStatusManager, api: Api, state: PodState, world: World) -> None:
        pod = copy_object(api.pod)  # type: ignore[arg-type]
        api.write(uid="u2")
        manager.set_pod_status(pod, make_status())
        await world.clock.sleep(0.1)
        assert manager.get_pod_status("u1") is None

    api, _ = scenario(body)
    assert api.patches == []


@pytest.mark.rule("node-semantics 11.1/not-found")
def test_a_lost_connection_is_tried_again_and_a_deleted_object_is_not() -> None:
    async def body(manager: PodStatusManager, api: Api, state: PodState, world: World) -> None:
        pod = copy_object(api.pod)  # type: ignore[arg-type]
        api.lost = 2
        manager.set_pod_status(pod, make_status())
        await world.clock.sleep(5)
        assert len(api.patches) == 1
        api.pod = None
        manager.set_pod_status(pod, make_status(ready=False))
        await world.clock.sleep(25)

    api, _ = scenario(body)
    assert api.requests == ["PATCH"] * 4


@pytest.mark.rule("node-semantics 3/readiness")
def test_readiness_changes_the_container_and_both_conditions() -> None:
    async def body(manager: PodStatusManager, api: Api, state: PodState, world: World) -> None:
        manager.set_pod_status(copy_object(api.pod), make_status(ready=False))  # type: ignore[arg-type]
        await world.clock.sleep(2)
        manager.set_container_readiness("u1", "c1", True)
        manager.set_container_readiness("u1", "unknown", True)

    api, _ = scenario(body)
    assert api.requests == ["PATCH", "PATCH"]
    assert set(api.patches[1]) == {"containerStatuses", "conditions"}
    ready = api.patches[1]["conditions"][0]
    assert (ready["status"], ready["lastTransitionTime"]) == ("True", "2030-01-01T00:00:02Z")


@pytest.mark.rule("node-semantics 11.1/resync")
def test_a_lost_race_is_repaired_by_the_ten_second_pass() -> None:
    async def body(manager: PodStatusManager, api: Api, state: PodState, world: World) -> None:
        state.could_run = True
        manager.set_pod_status(copy_object(api.pod), make_status("Succeeded", False, EXITED))  # type: ignore[arg-type]
        await world.clock.sleep(1)
        assert api.pod is not None and api.pod["status"]["phase"] == "Pending"
        state.could_run = False
        await world.clock.sleep(11)

    api, _ = scenario(body)
    assert api.pod is not None and api.pod["status"]["phase"] == "Succeeded"


@pytest.mark.rule("node-semantics 24/final-delete, 11.3/older")
def test_before_1_27_the_pod_is_deleted_while_its_phase_is_running() -> None:
    async def body(manager: PodStatusManager, api: Api, state: PodState, world: World) -> None:
        api.write(deletionTimestamp="2030-01-01T00:00:30Z", deletionGracePeriodSeconds=30)
        pod = copy_object(api.pod)  # type: ignore[arg-type]
        manager.set_pod_status(pod, make_status("Running", False, EXITED))
        manager.terminate_pod(pod)

    api, _ = scenario(body, features=OLD)
    assert api.requests == ["PATCH", "DELETE"]
    assert api.patches[0]["phase"] == "Running"


# The pure rules


@pytest.mark.rule("node-semantics 11.2/withheld")
@pytest.mark.parametrize(
    ("api_phase", "new_phase", "could_run", "expected"),
    [
        ("Running", "Succeeded", True, "Running"),
        ("Pending", "Failed", True, "Pending"),
        ("Running", "Succeeded", False, "Succeeded"),
        ("Failed", "Failed", True, "Failed"),
        ("Pending", "Running", True, "Running"),
    ],
)
def test_a_terminal_phase_is_withheld_while_containers_may_run(
    api_phase: str, new_phase: str, could_run: bool, expected: str
) -> None:
    new = {"phase": new_phase, "reason": "DeadlineExceeded", "conditions": []}
    merged = merge_pod_status({"phase": api_phase}, new, could_have_running_containers=could_run, features=NOW, now="t")
    assert merged["phase"] == expected
    assert ("reason" in merged) == (expected == new_phase)


@pytest.mark.rule("node-semantics 11.2/disruption-target")
def test_disruption_target_comes_only_with_the_terminal_phase() -> None:
    target = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "TerminationByKubelet",
        "lastTransitionTime": "t0",
    }
    new = {"phase": "Failed", "conditions": [target]}

    def types(could_run: bool) -> list[str]:
        merged = merge_pod_status(
            {"phase": "Running"}, new, could_have_running_containers=could_run, features=NOW, now="t1"
        )
        return [c["type"] for c in merged["conditions"]]

    assert types(could_run=False) == ["DisruptionTarget"]
    # The transition is to a terminal phase in the new status, whatever is withheld.
    assert types(could_run=True) == ["DisruptionTarget"]
    running = merge_pod_status(
        {"phase": "Running"}, {**new, "phase": "Running"}, could_have_running_containers=True, features=NOW, now="t1"
    )
    assert running["conditions"] == []


@pytest.mark.rule("node-semantics 11.1/illegal")
@pytest.mark.parametrize(
    ("policy", "code", "allowed"),
    [("Always", 0, True), ("OnFailure", 1, True), ("OnFailure", 0, False), ("Never", 1, False), ("Never", 0, False)],
)
def test_a_terminated_container_may_start_again_only_where_the_policy_says_so(
    policy: str, code: int, allowed: bool
) -> None:
    pod = make_pod(restartPolicy=policy)
    old = make_status(state={"terminated": {"exitCode": code}})
    assert (prepare_status(pod, make_status(), old, "t") is not None) is allowed


@pytest.mark.rule("node-semantics 11.1/start-time")
def test_the_start_time_is_set_once() -> None:
    first = prepare_status(make_pod(), make_status(), {}, "t1")
    assert first is not None and first["startTime"] == "t1"
    second = prepare_status(make_pod(), make_status(), first, "t2")
    assert second is not None and second["startTime"] == "t1"


@pytest.mark.rule("node-semantics 11.1/normalised")
def test_messages_share_twelve_kilobytes_among_all_containers() -> None:
    pod = make_pod(containers=[{"name": str(n)} for n in range(4)])
    status = make_status(state={"terminated": {"exitCode": 1, "message": "é" * 4000}})
    prepared = prepare_status(pod, status, {}, "t")
    assert prepared is not None
    message = prepared["containerStatuses"][0]["state"]["terminated"]["message"]
    assert len(message.encode()) == 12288 // 4


def init_status(name: str, **state: Any) -> dict[str, Any]:
    return {"name": name, "state": state, "lastState": {}}


@pytest.mark.rule("node-semantics 11.4/init")
def test_termination_marks_init_containers_up_to_the_last_one_that_started() -> None:
    pod = make_pod(initContainers=[{"name": "i1"}, {"name": "i2"}, {"name": "i3"}])
    status = make_status("Pending", False, {"waiting": {"reason": "PodInitializing"}})
    status["initContainerStatuses"] = [
        init_status("i1", waiting={}),
        init_status("i2", running={"startedAt": "x"}),
        init_status("i3", waiting={}),
    ]
    last = terminated_status(pod, status, NOW)
    assert [next(iter(c["state"])) for c in last["initContainerStatuses"]] == ["terminated", "terminated", "waiting"]
    assert "waiting" in last["containerStatuses"][0]["state"]
    assert last["phase"] == "Failed"


DONE, FAILED = {"terminated": {"exitCode": 0}}, {"terminated": {"exitCode": 1}}


@pytest.mark.rule("node-semantics 11.4/unknown")
@pytest.mark.parametrize(
    ("init", "app", "initialised"),
    [
        ([], {}, True),
        ([{}], {}, False),
        ([{"state": DONE}], {}, True),
        ([{"state": FAILED}], {}, False),
        ([{"state": {"waiting": {}}, "lastState": DONE}], {}, True),
        ([{"state": DONE}, {"state": {"waiting": {}}}], {}, False),
        ([{"state": FAILED}], {"state": {"running": {}}}, True),
        ([{"state": FAILED}], {"state": {"waiting": {}}, "lastState": FAILED}, True),
        ([{"sidecar": True, "state": {"running": {}}, "started": True}], {}, True),
        ([{"sidecar": True, "state": {"running": {}}, "started": False}], {}, False),
        ([{"sidecar": True, "state": {"waiting": {}}, "started": True}], {}, False),
        ([{"sidecar": True, "state": DONE}], {}, False),
    ],
)
def test_when_a_pod_counts_as_initialised(init: list[dict[str, Any]], app: dict[str, Any], initialised: bool) -> None:
    named = [(f"i{number}", each) for number, each in enumerate(init)]
    specs = [{"name": name, **({"restartPolicy": "Always"} if each.get("sidecar") else {})} for name, each in named]
    status = {
        "initContainerStatuses": [{"name": name, **each} for name, each in named],
        "containerStatuses": [{"name": "app", "state": {"waiting": {}}, **app}],
    }
    pod = make_pod(initContainers=specs)
    assert has_pod_initialized(pod, status) is initialised
    assert has_pod_initialized(pod, {}) is not bool(init)


@pytest.mark.rule("node-semantics 3/readiness")
def test_a_startup_result_changes_one_container_and_only_once() -> None:
    status = {
        "containerStatuses": [
            {"name": "a", "containerID": "lastcall://1"},
            {"name": "b", "containerID": "lastcall://2"},
        ]
    }
    changed = with_container_started(status, "2", True)
    assert changed is not None and [c.get("started") for c in changed["containerStatuses"]] == [None, True]
    assert with_container_started(changed, "2", True) is None
    back = with_container_started(changed, "2", False)
    assert back is not None and back["containerStatuses"][1]["started"] is False
    assert with_container_started(status, "3", True) is None


@pytest.mark.rule("node-semantics 11.1/illegal")
def test_a_sidecar_may_start_again_and_what_is_gone_is_no_transition() -> None:
    pod = make_pod(restartPolicy="Never", initContainers=[{"name": "s", "restartPolicy": "Always"}, {"name": "i"}])

    def status(*statuses: dict[str, Any]) -> dict[str, Any]:
        return {"phase": "Running", "initContainerStatuses": list(statuses), "containerStatuses": []}

    assert illegal_transition(pod, status(init_status("s", **DONE)), status(init_status("s", running={}))) == ""
    assert illegal_transition(pod, status(init_status("i", **DONE)), status()) == ""
    text = "terminated container i attempted illegal transition to non-terminated state"
    assert illegal_transition(pod, status(init_status("i", **DONE)), status(init_status("i", running={}))) == text


@pytest.mark.rule("node-semantics 11.3/needs, 11.3/older")
@pytest.mark.parametrize(
    ("features", "deleting", "phase", "finished", "reclaimed", "running", "goes"),
    [
        (NOW, True, "Failed", True, False, True, True),
        (NOW, False, "Failed", True, True, False, False),
        (NOW, True, "Running", True, True, False, False),
        (NOW, True, "Succeeded", False, True, False, False),
        (OLD, True, "Running", True, True, False, True),
        (OLD, True, "Running", True, False, False, False),
        (OLD, True, "Running", True, True, True, False),
        (OLD, False, "Running", True, True, False, False),
    ],
)
def test_what_the_last_delete_needs(
    features: Any, deleting: bool, phase: str, finished: bool, reclaimed: bool, running: bool, goes: bool
) -> None:
    pod = make_pod()
    pod["status"]["phase"] = phase
    if deleting:
        pod["metadata"]["deletionTimestamp"] = "t"
    status = make_status(state={"running": {}} if running else DONE)
    assert can_be_deleted(pod, status, finished, reclaimed, features) is goes


@pytest.mark.rule("node-semantics 11.3/mirrors")
def test_mirror_pods_are_never_deleted_by_the_kubelet() -> None:
    pod = make_pod()
    pod["metadata"] |= {"deletionTimestamp": "t", "annotations": {"kubernetes.io/config.mirror": "x"}}
    pod["status"]["phase"] = "Failed"
    assert not can_be_deleted(pod, make_status(), True, True, NOW)
    del pod["metadata"]["annotations"]
    assert can_be_deleted(pod, make_status(), True, True, NOW)
    assert not can_be_deleted(pod, make_status(), False, True, NOW)


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1, "b": 2}, {"a": 3}, {"a": 3, "b": None}),
        ({"a": {"x": 1, "y": 2}}, {"a": {"x": 1}}, {"a": {"y": None}}),
        ({"a": [{"x": 1}]}, {"a": [{"x": 1, "y": None}]}, {}),
        ({"a": [{"x": 1}]}, {"a": [{"x": 2, "y": None}]}, {"a": [{"x": 2, "y": None}]}),
        ({}, {"a": None}, {}),
        ({"a": {"x": 1}}, {"a": 2}, {"a": 2}),
        ({"a": 2}, {"a": {"x": 1}}, {"a": {"x": 1}}),
        ({"a": None}, {"a": {"x": 1}}, {"a": {"x": 1}}),
        ({"a": {"x": 1}}, {"a": None}, {"a": None}),
    ],
)
def test_a_patch_has_what_changed_and_a_null_is_no_change(old: Any, new: Any, patch: Any) -> None:
    assert merge_patch(old, new) == patch


def test_a_status_is_handed_over_once_its_request_waits_for_the_answer() -> None:
    seen: list[tuple[list[str], bool]] = []

    async def body(manager: PodStatusManager, api: Api, state: PodState, world: World) -> None:
        answered = asyncio.Event()
        real = api.patch

        async def patch(*arguments: Any, **more: Any) -> Any:
            api.requests.append("sent")
            await answered.wait()
            return await real(*arguments, **more)

        api.patch = patch  # type: ignore[method-assign]
        await manager.handed_over("u1")  # nothing is being written
        manager.set_pod_status(copy_object(api.pod), make_status())  # type: ignore[arg-type]
        await manager.handed_over("u1")
        seen.append((list(api.requests), answered.is_set()))
        answered.set()

    api, _ = scenario(body)
    assert seen == [(["sent"], False)]
    assert api.requests == ["sent", "PATCH"]


def test_a_server_that_is_away_holds_up_nobody_who_hands_over_a_status() -> None:
    async def body(manager: PodStatusManager, api: Api, state: PodState, world: World) -> None:
        api.lost = 5
        manager.set_pod_status(copy_object(api.pod), make_status())  # type: ignore[arg-type]
        before = world.clock.monotonic_ns()
        await manager.handed_over("u1")
        assert world.clock.monotonic_ns() == before
        await world.clock.sleep(30)

    assert scenario(body)[0].requests == ["PATCH"] * 6
