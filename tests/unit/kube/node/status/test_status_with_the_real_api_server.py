"""Status manager, volumes and Node object against lastcall's own API server, in process."""

import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import copy_object
from lastcall.kube.api.resources import CONFIGMAPS, LEASES, NODES, PODS, SERVICEACCOUNTS
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.auth.pki import new_key_pem
from lastcall.kube.apiserver.server import APIServer, APIServerConfig
from lastcall.kube.client.api import Client
from lastcall.kube.node.node_status import LEASE_NAMESPACE, NodeConfig, NodeStatusManager
from lastcall.kube.node.status.conditions import make_condition
from lastcall.kube.node.status.features import status_features
from lastcall.kube.node.status.manager import PodStatusManager
from lastcall.kube.node.volumes.manager import HostVolumeManager
from lastcall.kube.store.memory import MemoryStore
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

START = "2030-01-01T00:00:00Z"


class Sink:
    def __init__(self) -> None:
        self.kinds: list[str] = []

    def record(self, kind: str, **more: Any) -> str:
        self.kinds.append(kind)
        return ""

    def event(self, *arguments: Any, **more: Any) -> None:
        raise AssertionError(arguments)

    def could_have_running_containers(self, uid: str) -> bool:
        return False


@asynccontextmanager
async def api() -> AsyncIterator[Client]:
    config = APIServerConfig(
        kubernetes_version="1.36",
        service_cidr="10.96.0.0/16",
        kubernetes_service_ip="10.96.0.1",
        service_account_key_pem=new_key_pem(),
        root_ca_pem=b"PEM",
        tokens={},
    )
    server = APIServer(world=World(), store=MemoryStore(), recorder=Sink(), config=config, kubelet_logs=None)
    await server.bootstrap()
    yield server.client(UserInfo("system:node:node-1", ("system:masters", "system:authenticated")))


async def create_pod(client: Client) -> dict[str, Any]:
    for resource, obj in (
        (SERVICEACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}),
        (
            CONFIGMAPS,
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "kube-root-ca.crt"},
                "data": {"ca.crt": "PEM"},
            },
        ),
    ):
        with contextlib.suppress(StatusError):  # the server may have made it itself
            await client.create(resource, obj, "default")
    spec = {"nodeName": "node-1", "containers": [{"name": "app", "image": "x:1"}], "terminationGracePeriodSeconds": 30}
    return await client.create(
        PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}, "default"
    )


def make_status(phase: str, state: dict[str, Any]) -> dict[str, Any]:
    ready = "running" in state
    return {
        "phase": phase,
        "qosClass": "BestEffort",
        "conditions": [make_condition(type_, ready) for type_ in ("Ready", "ContainersReady")],
        "containerStatuses": [
            {"name": "app", "image": "x:1", "imageID": "", "restartCount": 0, "lastState": {}, "ready": ready,
             "started": ready, "state": state, "containerID": "lastcall://c"},
        ],
    }  # fmt: skip


async def told(sink: Sink, kind: str, count: int = 1) -> None:
    await until(lambda: sink.kinds.count(kind) >= count, kind, pause=0.001, said=lambda: sink.kinds)


@pytest.mark.loopback
async def test_a_pod_is_reported_running_then_succeeded_then_deleted() -> None:
    sink = Sink()
    async with api() as client, Tasks() as tasks:
        manager = PodStatusManager(
            world=World(),
            client=client,
            recorder=sink,
            state=sink,
            features=status_features("1.36"),  # type: ignore[arg-type]
        )
        tasks.spawn(manager.run(), name="status-manager")
        pod = copy_object(await create_pod(client))
        # Somebody else writes first: the object at hand is stale.
        gate = {"status": {"conditions": [{"type": "example.com/lb", "status": "True"}]}}
        await client.patch(PODS, "p", gate, "default", subresource="status")
        manager.set_pod_status(pod, make_status("Running", {"running": {"startedAt": START}}))
        await told(sink, "StatusSent")
        written = (await client.get(PODS, "p", "default"))["status"]
        assert [c["type"] for c in written["conditions"]] == ["example.com/lb", "Ready", "ContainersReady"]
        await client.delete(PODS, "p", "default")
        deleting = copy_object(await client.get(PODS, "p", "default"))
        assert deleting["metadata"]["deletionGracePeriodSeconds"] == 30
        manager.set_pod_status(
            deleting,
            make_status(
                "Succeeded",
                {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": START, "finishedAt": START}},
            ),
        )
        await told(sink, "StatusSent", 2)
        last = copy_object(await client.get(PODS, "p", "default"))
        assert (last["status"]["phase"], last["status"]["observedGeneration"]) == ("Succeeded", 2)
        manager.terminate_pod(deleting)
        await told(sink, "FinalDeleteSent")

        async def no_pods() -> bool:
            return not (await client.list(PODS, "default")).items

        await until(no_pods, "the Pod's end", pause=0.001)
        tasks.cancel()
    assert sink.kinds == ["StatusSent", "PodRunning", "StatusSent", "FinalDeleteSent"]


async def test_the_injected_token_volume_mounts(tmp_path: Path) -> None:
    sink = Sink()
    async with api() as client, Tasks() as tasks:
        volumes = HostVolumeManager(
            world=World(), tasks=tasks, client=client, events=sink, recorder=sink, root=tmp_path, node_name="node-1"
        )
        pod = await create_pod(client)
        volumes.prepare(pod)
        await volumes.wait_for_attach_and_mount(pod)
        mounts = {m.container_path: m for m in volumes.mounts(pod, pod["spec"]["containers"][0], ("10.244.0.2",))}
        account = Path(mounts["/var/run/secrets/kubernetes.io/serviceaccount"].host_path)
        assert (account / "token").read_text().count(".") == 2
        assert ((account / "ca.crt").read_text(), (account / "namespace").read_text()) == ("PEM", "default")
        await volumes.wait_for_unmount(pod)
        tasks.cancel()


async def test_the_node_registers_ready_and_holds_its_lease() -> None:
    async with api() as client:
        config = NodeConfig("node-1", "172.18.0.2", "10.244.0.0/24", 10250, "1.36", {"cpu": "2"}, {"cpu": "2"})
        manager = NodeStatusManager(world=World(), client=client, config=config, not_ready=lambda: "")
        await manager.register()
        await manager.renew_lease()
        await manager.renew_lease()
        node = await client.get(NODES, "node-1")
        assert {c["type"]: c["status"] for c in node["status"]["conditions"]}["Ready"] == "True"
        assert node["spec"]["podCIDR"] == "10.244.0.0/24"
        assert (await client.get(LEASES, "node-1", LEASE_NAMESPACE))["spec"]["holderIdentity"] == "node-1"
        # A second kubelet process of the node takes the object over.
        await NodeStatusManager(world=World(), client=client, config=config, not_ready=lambda: "").register()
