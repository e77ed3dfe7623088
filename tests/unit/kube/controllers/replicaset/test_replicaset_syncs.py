"""When a ReplicaSet is looked at: what a sync would not read is not worth one."""

import pytest
from fake_api import ListRecorder

from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.resources import PODS, REPLICASETS
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.server import APIServer, APIServerConfig
from lastcall.kube.controllers.manager import run_controllers
from lastcall.kube.controllers.replicaset.controller import ReplicaSetController
from lastcall.kube.store.memory import MemoryStore
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

REPLICA_SET = {
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "app", "image": "app:1"}]},
        },
    },
}


def condition(type_: str, status: str = "True") -> dict:
    return {"type": type_, "status": status, "lastTransitionTime": "2030-01-01T00:00:00Z"}


def test_only_what_a_sync_reads_of_a_pod_brings_one(monkeypatch: pytest.MonkeyPatch) -> None:
    syncs: list[str] = []
    sync = ReplicaSetController._sync

    async def counted(controller: ReplicaSetController, key: str) -> None:
        syncs.append(key)
        await sync(controller, key)

    monkeypatch.setattr(ReplicaSetController, "_sync", counted)

    async def main(world: World) -> None:
        server = APIServer(world=world, store=MemoryStore(), recorder=ListRecorder(world), config=APIServerConfig())
        await server.bootstrap()
        admin = server.client(UserInfo("admin", ("system:masters",)))

        async def more_syncs(*, after: dict | None = None, node: str = "", delete: bool = False) -> int:
            """How many syncs a status, a binding or a deletion brings."""
            before = len(syncs)
            if after is not None:
                await admin.patch(PODS, name, {"status": after}, "default", subresource="status")
            if node:
                binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
                await admin.create(PODS, binding, "default", name=name, subresource="binding")
            if delete:
                await admin.delete(PODS, name, "default")
            await world.clock.sleep(1)
            return len(syncs) - before

        async with Tasks() as tasks:
            controllers = run_controllers(
                gates=FeatureGates(),
                world=world,
                client=admin,
                recorder_for=lambda _: ListRecorder(world),
                root_ca_pem=b"CA",
            )
            tasks.spawn(controllers, name="controllers")
            await world.clock.sleep(1)
            await admin.create(REPLICASETS, REPLICA_SET, "default")
            await world.clock.sleep(1)
            name = (await admin.list(PODS, "default")).items[0]["metadata"]["name"]
            assert await more_syncs(node="n1") == 0
            assert await more_syncs(after={"phase": "Running", "conditions": [condition("Initialized")]}) == 0
            assert await more_syncs(after={"conditions": [condition("Initialized"), condition("Ready")]}) > 0
            found = await admin.get(REPLICASETS, "web", "default")
            assert found["status"]["availableReplicas"] == 1
            assert await more_syncs(after={"podIP": "10.0.0.1"}) == 0
            assert await more_syncs(after={"conditions": [condition("Ready", "False")]}) > 0
            assert await more_syncs(delete=True) > 0
            assert len((await admin.list(PODS, "default")).items) == 2
            tasks.cancel()

    run_virtual(main)
