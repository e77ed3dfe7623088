"""The Node object and its lease, in virtual time against a small API."""

from dataclasses import replace
from typing import Any

import pytest

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.meta import copy_object
from lastcall.kube.api.text.go_notation import go_duration, go_quote
from lastcall.kube.client.api import ConnectionLost
from lastcall.kube.node.node_status import NodeConfig, NodeStatusManager
from lastcall.kube.node.status.features import status_features
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

CONFIG = NodeConfig("node-1", "172.18.0.2", "10.244.0.0/24", 10250, "1.27", {"cpu": "2"}, {"cpu": "2"})


class Api:
    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.requests: list[tuple[str, str]] = []
        self.lost = 0

    async def get(self, resource: Any, name: str, namespace: str = "") -> dict[str, Any]:
        return self.objects[f"{resource.plural}/{name}"]

    async def create(self, resource: Any, obj: dict[str, Any], namespace: str = "") -> dict[str, Any]:
        self.requests.append(("create", resource.plural))
        if self.lost:
            self.lost -= 1
            raise ConnectionLost("not up yet")
        key = f"{resource.plural}/{obj['metadata']['name']}"
        if key in self.objects:
            raise status_failure(409, "AlreadyExists", "exists")
        self.objects[key] = copy_object(obj)
        return self.objects[key]

    async def patch(self, resource: Any, name: str, patch: Any, namespace: str = "", **more: Any) -> dict[str, Any]:
        self.requests.append(("patch", resource.plural))
        key = f"{resource.plural}/{name}"
        if key not in self.objects:
            raise status_failure(404, "NotFound", "not found")
        for part, value in patch.items():
            self.objects[key].setdefault(part, {}).update(value)
        return self.objects[key]


def play(api: Api, seconds: float, flips: dict[float, str] | None = None) -> NodeStatusManager:
    async def main(world: World) -> NodeStatusManager:
        problem = [""]
        manager = NodeStatusManager(world=world, client=api, config=CONFIG, not_ready=lambda: problem[0])  # type: ignore[arg-type]
        await manager.register()
        async with Tasks() as tasks:
            tasks.spawn(manager.run(), name="node-status")
            for at, text in (flips or {}).items():
                await world.clock.sleep(at)
                problem[0] = text
                await manager.update_status()
            await world.clock.sleep(seconds)
            tasks.cancel()
        return manager

    return run_virtual(main)


def test_the_node_is_registered_ready_in_one_request() -> None:
    api = Api()
    play(api, 0.1)
    assert api.requests == [("create", "nodes"), ("patch", "leases"), ("create", "leases")]
    node = api.objects["nodes/node-1"]
    assert node["spec"] == {"podCIDR": "10.244.0.0/24", "podCIDRs": ["10.244.0.0/24"]}
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "node-1"
    status = node["status"]
    assert [(c["type"], c["status"], c["reason"]) for c in status["conditions"]] == [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID"),
        ("Ready", "True", "KubeletReady"),
    ]
    assert status["addresses"][0] == {"type": "InternalIP", "address": "172.18.0.2"}
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 10250}}
    assert status["nodeInfo"]["kubeletVersion"] == "v1.27.0"
    assert status["nodeInfo"]["containerRuntimeVersion"].startswith("lastcall://")
    lease = api.objects["leases/node-1"]["spec"]
    assert (lease["holderIdentity"], lease["leaseDurationSeconds"]) == ("node-1", 40)
    assert lease["renewTime"] == "2030-01-01T00:00:00.000000Z"


def test_an_api_server_that_comes_late_is_waited_for() -> None:
    api = Api()
    api.lost = 3
    play(api, 0.1)
    assert api.requests[:4] == [("create", "nodes")] * 4


def test_the_lease_is_renewed_every_ten_seconds_and_an_unchanged_status_every_five_minutes() -> None:
    api = Api()
    play(api, 605)
    assert api.requests.count(("patch", "leases")) == 61
    assert api.requests.count(("patch", "nodes")) == 2
    assert api.objects["leases/node-1"]["spec"]["renewTime"] == "2030-01-01T00:10:00.000000Z"


def test_a_node_that_is_not_ready_says_why_and_keeps_other_transition_times() -> None:
    api = Api()
    play(api, 1, {30.0: "container runtime is down"})
    conditions = {c["type"]: c for c in api.objects["nodes/node-1"]["status"]["conditions"]}
    assert conditions["Ready"]["status"] == "False"
    assert conditions["Ready"]["message"] == "container runtime is down"
    assert conditions["Ready"]["lastTransitionTime"] == "2030-01-01T00:00:30Z"
    assert conditions["DiskPressure"]["lastTransitionTime"] == "2030-01-01T00:00:00Z"
    assert conditions["DiskPressure"]["lastHeartbeatTime"] == "2030-01-01T00:00:30Z"


def test_events_say_when_a_node_stops_being_ready_and_when_it_is_again() -> None:
    api, events = Api(), Events()

    async def main(world: World) -> None:
        problem = [""]
        manager = NodeStatusManager(
            world=world,
            client=api,
            config=CONFIG,
            not_ready=lambda: problem[0],
            events=events,  # type: ignore[arg-type]
        )
        await manager.register()
        for text in ("no network", "no network at all", ""):
            problem[0] = text
            await manager.update_status()

    run_virtual(main)
    assert [reason for *_, reason, _ in events.said] == ["NodeNotReady", "NodeReady"]


def test_a_node_that_cannot_register_tries_again_less_and_less_often_up_to_every_seven_seconds() -> None:
    """kubelet_node_status.go:registerWithAPIServer."""

    async def main(world: World) -> float:
        api = Api()
        api.lost = 11
        began = world.clock.monotonic_ns()
        await NodeStatusManager(world=world, client=api, config=CONFIG, not_ready=str).register()  # type: ignore[arg-type]
        return (world.clock.monotonic_ns() - began) / 1e9

    doubled = sum(0.05 * 2**number for number in range(8))
    assert run_virtual(main) == pytest.approx(doubled + 3 * 7.0)


def test_a_restarted_node_takes_its_object_over() -> None:
    api = Api()
    play(api, 1)
    api.objects["nodes/node-1"]["status"]["conditions"][3]["status"] = "Unknown"
    first = len(api.requests)
    play(api, 1)
    assert api.requests[first : first + 2] == [("create", "nodes"), ("patch", "nodes")]


class Events:
    def __init__(self) -> None:
        self.said: list[tuple[str, ...]] = []

    def event(self, obj: Any, event_type: str, reason: str, message: str, *, field_path: str = "") -> None:
        self.said.append((obj["kind"], obj["metadata"]["uid"], event_type, reason, message))


def register(api: Api, boot_id: str) -> Events:
    events = Events()
    config = replace(CONFIG, boot_id=boot_id, system_uuid="6b0e")

    async def main(world: World) -> None:
        manager = NodeStatusManager(world=world, client=api, config=config, not_ready=lambda: "", events=events)  # type: ignore[arg-type]
        await manager.register()

    run_virtual(main)
    return events


def test_a_node_with_another_boot_id_says_that_it_was_rebooted() -> None:
    api = Api()
    assert register(api, "boot-1").said == []
    assert register(api, "boot-1").said == [], "a node process that starts again is no reboot"
    message = "Node node-1 has been rebooted, boot id: boot-2"
    assert register(api, "boot-2").said == [("Node", "node-1", "Warning", "Rebooted", message)]
    info = api.objects["nodes/node-1"]["status"]["nodeInfo"]
    assert (info["bootID"], info["systemUUID"], info["machineID"]) == ("boot-2", "6b0e", "6b0e")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (1, "1s"),
        (0.25, "250ms"),
        (6.017, "6.017s"),
        (1.5, "1.5s"),
        (90, "1m30s"),
        (3600, "1h0m0s"),
        (10, "10s"),
    ],
)
def test_durations_are_written_as_go_writes_them(seconds: float, text: str) -> None:
    assert go_duration(seconds) == text


def test_strings_are_quoted_as_go_quotes_them() -> None:
    assert go_quote('a"b\\\n\x01é') == '"a\\"b\\\\\\n\\x01é"'


def test_a_version_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r"not of the form 1\.N"):
        status_features("two")
    assert status_features("v1.36.2").minor == 36
