"""Controllers, scheduler and events against the real API server: in process in virtual time, and over HTTPS."""

from contextlib import asynccontextmanager

import pytest
from api_server import ADMIN, running_server
from fake_api import ListRecorder
from waiting import until

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.resources import (
    CONFIGMAPS,
    ENDPOINTSLICES,
    EVENTS,
    NODES,
    PODS,
    SERVICEACCOUNTS,
    SERVICES,
)
from lastcall.kube.apiserver.server import APIServer, APIServerConfig
from lastcall.kube.client.events import EventRecorder
from lastcall.kube.controllers.manager import run_controllers
from lastcall.kube.scheduler.scheduler import run_scheduler
from lastcall.kube.store.memory import MemoryStore
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

NODE = {"metadata": {"name": "node-1"}, "spec": {}}
READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"pods": "110"}}}
SERVICE = {
    "metadata": {"name": "svc", "namespace": "default"},
    "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
}


def pod(name="web") -> dict:
    return {
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "app", "image": "app:1"}]},
    }


def running(ready="True", phase="Running") -> dict:
    return {
        "status": {
            "phase": phase,
            "podIP": "10.244.0.2",
            "podIPs": [{"ip": "10.244.0.2"}],
            "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": "2030-01-01T00:00:00Z"}],
        }
    }


@asynccontextmanager
async def control_plane(world: World, client):
    recorder = ListRecorder(world)
    async with Tasks() as tasks:
        tasks.spawn(
            run_controllers(
                gates=FeatureGates(), world=world, client=client, recorder_for=lambda _: recorder, root_ca_pem=b"CA"
            ),
            name="controllers",
        )
        tasks.spawn(run_scheduler(world=world, client=client, recorder=recorder, minor=36), name="scheduler")
        try:
            yield recorder
        finally:
            tasks.cancel()


async def until_answer(ask, expected) -> None:
    """Ask until the answer is the expected one."""
    found = None

    async def is_it() -> bool:
        nonlocal found
        try:
            found = await ask()
        except (StatusError, LookupError) as error:
            found = error
        return found == expected

    await until(is_it, repr(expected), said=lambda: found)


async def story(world: World, client) -> list[dict]:
    """A Pod from create to gone; answers the records."""

    async def root_ca():
        return [(await client.get(CONFIGMAPS, "kube-root-ca.crt", n))["data"] for n in ("default", "kube-system")]

    async def account():
        return (await client.get(SERVICEACCOUNTS, "default", "default"))["metadata"]["name"]

    async def scheduled():
        condition = (await client.get(PODS, "web", "default"))["status"]["conditions"][0]
        return tuple(condition.get(key) for key in ("type", "status", "reason", "message"))

    async def node_name():
        return (await client.get(PODS, "web", "default"))["spec"].get("nodeName")

    async def endpoints():
        selector = "kubernetes.io/service-name=svc"
        slices = (await client.list(ENDPOINTSLICES, "default", label_selector=selector)).items
        return [
            tuple(e["conditions"][key] for key in ("ready", "serving", "terminating"))
            for s in slices
            for e in s.get("endpoints") or ()
        ]

    async def slices():
        return [s["metadata"]["name"] for s in (await client.list(ENDPOINTSLICES, "default")).items]

    async def last_event():
        event = (await client.list(EVENTS, "default")).items[-1]
        return event["reason"], event["message"], event["source"]["component"]

    async with control_plane(world, client) as recorder:
        await until_answer(root_ca, [{"ca.crt": "CA"}] * 2)
        await until_answer(account, "default")
        await client.create(SERVICES, SERVICE, "default")
        await client.create(PODS, pod(), "default")
        message = "no nodes available to schedule pods"
        await until_answer(scheduled, ("PodScheduled", "False", "Unschedulable", message))
        await until_answer(last_event, ("FailedScheduling", message, "default-scheduler"))
        await client.create(NODES, NODE)
        await client.patch(NODES, "node-1", READY, subresource="status")
        await until_answer(node_name, "node-1")
        assigned = "Successfully assigned default/web to node-1"
        await until_answer(last_event, ("Scheduled", assigned, "default-scheduler"))
        await client.patch(PODS, "web", running(), "default", subresource="status")
        await until_answer(endpoints, [(True, True, False)])
        await client.delete(PODS, "web", "default")
        await until_answer(endpoints, [(False, True, True)])
        await client.patch(PODS, "web", running("False", "Succeeded"), "default", subresource="status")
        await until_answer(endpoints, [])
        await client.delete(PODS, "web", "default", grace_period_seconds=0)
        await client.delete(SERVICES, "svc", "default")
        await until_answer(slices, ["kubernetes"])
        kinds = [k for k in recorder.kinds() if k.startswith("Endpoint")]
        assert kinds == ["EndpointChanged", "EndpointChanged", "EndpointRemoved"]
        for record in recorder.records:
            if record["kind"].startswith("Endpoint"):
                facts = record["facts"]
                assert 0 < int(facts["observedResourceVersion"]) < int(facts["resourceVersion"])
        return recorder.records


def test_a_pods_way_in_process_in_virtual_time():
    async def main(world: World):
        server = APIServer(world=world, store=MemoryStore(), recorder=ListRecorder(world), config=APIServerConfig())
        await server.bootstrap()
        await story(world, server.client(ADMIN))

    run_virtual(main)


@pytest.mark.loopback
async def test_a_pods_way_over_https():
    async with running_server() as server:
        client = server.http()
        try:
            await story(World(), client)
        finally:
            await client.close()


def test_repeated_events_are_counted_by_the_real_server():
    async def main(world: World):
        server = APIServer(world=world, store=MemoryStore(), recorder=ListRecorder(world), config=APIServerConfig())
        await server.bootstrap()
        client = server.client(ADMIN)
        recorder = EventRecorder(client, world, "kubelet", "node-1")
        await client.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, "default")
        created = await client.create(PODS, pod(), "default")
        async with Tasks() as tasks:
            tasks.spawn(recorder.run(), name="events")
            for _ in range(3):
                recorder.event(created, "Warning", "BackOff", "again", field_path="spec.containers{app}")
                await world.clock.sleep(1)
            await recorder.drained()
            tasks.cancel()
        (event,) = (await client.list(EVENTS, "default")).items
        assert (event["count"], event["reportingInstance"], recorder.dropped) == (3, "node-1", 0)

    run_virtual(main)


@pytest.mark.parametrize("seed", [1, 2])
def test_two_runs_of_one_seed_write_the_same(seed):
    def run():
        async def main(world: World):
            recorder = ListRecorder(world)
            server = APIServer(world=world, store=MemoryStore(), recorder=recorder, config=APIServerConfig())
            await server.bootstrap()
            return await story(world, server.client(ADMIN))

        return run_virtual(main, seed=seed)

    assert run() == run()
