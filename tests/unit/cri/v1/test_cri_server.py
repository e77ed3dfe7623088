"""CRI v1 over a real gRPC channel on a Unix socket, on the runtime that pretends."""

import asyncio
from contextlib import asynccontextmanager

import grpc
import pytest
from fake_api import ListRecorder

from lastcall.cri import api
from lastcall.cri.simulated import Durations, SimulatedRuntime
from lastcall.cri.simulated_program import ExecResult, Program
from lastcall.cri.v1.messages import IMAGE_SERVICE, RUNTIME_SERVICE, method_of, new
from lastcall.cri.v1.needs import Facts
from lastcall.cri.v1.server import add_to, new_server
from lastcall.cri.v1.service import Service
from lastcall.world.world import World


class Client:
    def __init__(self, channel):
        self._channel = channel

    async def runtime(self, name, **fields):
        return await self._call(RUNTIME_SERVICE, name, fields)

    async def image(self, name, **fields):
        return await self._call(IMAGE_SERVICE, name, fields)

    async def _call(self, service, name, fields):
        path, write, read = method_of(service, name)
        call = self._channel.unary_unary(path, request_serializer=write, response_deserializer=read)
        return await call(new(f"{name}Request", **fields), timeout=20)

    def events(self):
        path, write, read = method_of(RUNTIME_SERVICE, "GetContainerEvents")
        call = self._channel.unary_stream(path, request_serializer=write, response_deserializer=read)
        return call(new("GetEventsRequest"), timeout=20)


@asynccontextmanager
async def served(tmp_path, programs=None, kind=SimulatedRuntime, **options):
    world = World()
    async with kind(world, ListRecorder(world), programs or {}, durations=Durations(0, 0, 0, 0, 0, 0)) as runtime:
        server = new_server()
        add_to(server, Service(runtime, runtime, world.clock, Facts("lastcall", "1.2.3"), **options))
        server.add_insecure_port(f"unix://{tmp_path}/cri.sock")
        await server.start()
        try:
            async with grpc.aio.insecure_channel(f"unix://{tmp_path}/cri.sock") as channel:
                yield Client(channel)
        finally:
            await server.stop(None)


def sandbox_config(uid="u-1", **labels):
    return new(
        "PodSandboxConfig", metadata=new("PodSandboxMetadata", name="web", uid=uid, namespace="x"), labels=labels
    )


def container_config(name="app", **fields):
    return new(
        "ContainerConfig", metadata=new("ContainerMetadata", name=name), image=new("ImageSpec", image="app:1"), **fields
    )


async def started(client, sandbox, name="app", **fields):
    made = await client.runtime(
        "CreateContainer",
        pod_sandbox_id=sandbox,
        config=container_config(name, **fields),
        sandbox_config=sandbox_config(),
    )
    await client.runtime("StartContainer", container_id=made.container_id)
    return made.container_id


async def run_sandbox(client, **options):
    return (await client.runtime("RunPodSandbox", config=sandbox_config(**options))).pod_sandbox_id


async def test_it_tells_who_it_is(tmp_path):
    async with served(tmp_path) as client:
        answer = await client.runtime("Version")
        assert (answer.runtime_name, answer.runtime_version, answer.runtime_api_version) == ("lastcall", "1.2.3", "v1")
        status = await client.runtime("Status")
        assert {each.type: each.status for each in status.status.conditions}["NetworkReady"]
        assert (await client.runtime("RuntimeConfig")).linux.cgroup_driver == 1


async def test_a_container_runs_ends_and_is_gone(tmp_path):
    async with served(tmp_path) as client:
        sandbox = await run_sandbox(client)
        container = await started(client, sandbox)
        status = (await client.runtime("ContainerStatus", container_id=container[:12])).status
        assert (status.state, status.image.image) == (1, "app:1")
        for _ in range(2):  # stops and removes are idempotent
            await client.runtime("StopContainer", container_id=container, timeout=0)
        ended = (await client.runtime("ContainerStatus", container_id=container)).status
        assert (ended.state, ended.exit_code) == (2, 137)
        for verb in ("StopPodSandbox", "StopPodSandbox", "RemovePodSandbox", "RemovePodSandbox"):
            await client.runtime(verb, pod_sandbox_id=sandbox)
        assert not (await client.runtime("ListContainers")).containers
        assert not (await client.runtime("ListPodSandbox")).items


async def test_lists_are_filtered_by_id_state_and_labels(tmp_path):
    async with served(tmp_path) as client:
        one, two = await run_sandbox(client, uid="u-1", app="a"), await run_sandbox(client, uid="u-2", app="b")
        await started(client, one, "first", labels={"app": "a"})
        created = await client.runtime(
            "CreateContainer", pod_sandbox_id=two, config=container_config("second"), sandbox_config=sandbox_config()
        )

        async def sandboxes(**fields):
            answer = await client.runtime("ListPodSandbox", filter=new("PodSandboxFilter", **fields))
            return [each.id for each in answer.items]

        async def containers(**fields):
            answer = await client.runtime("ListContainers", filter=new("ContainerFilter", **fields))
            return [each.metadata.name for each in answer.containers]

        assert await sandboxes() == [two, one]
        assert await sandboxes(id=one) == [one]
        assert await sandboxes(label_selector={"app": "b"}) == [two]
        assert await sandboxes(state=new("PodSandboxStateValue", state=1)) == []
        assert await containers(label_selector={"app": "a"}) == ["first"]
        assert await containers(state=new("ContainerStateValue", state=0)) == ["second"]
        assert await containers(pod_sandbox_id=two, id=created.container_id) == ["second"]
        assert await containers(pod_sandbox_id=one, id=created.container_id) == []


@pytest.mark.parametrize(
    ("verb", "fields", "code"),
    [
        ("ContainerStatus", {"container_id": "x"}, "NOT_FOUND"),
        ("PodSandboxStatus", {"pod_sandbox_id": "x"}, "NOT_FOUND"),
        ("RunPodSandbox", {}, "INVALID_ARGUMENT"),
        ("CheckpointContainer", {"container_id": "x"}, "UNIMPLEMENTED"),
        ("ExecSync", {"container_id": "x"}, "INVALID_ARGUMENT"),
        ("StartContainer", {"container_id": "x"}, "NOT_FOUND"),
    ],
)
async def test_errors_have_containerds_codes(tmp_path, verb, fields, code):
    async with served(tmp_path) as client:
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await client.runtime(verb, **fields)
        assert failed.value.code().name == code, failed.value.details()


async def test_what_is_not_done_is_refused_by_name(tmp_path):
    async with served(tmp_path) as client:
        sandbox = await run_sandbox(client)
        config = container_config(CDI_devices=[new("CDIDevice", name="vendor.com/device=0")])
        with pytest.raises(grpc.aio.AioRpcError, match="CDI devices: not supported by lastcall"):
            await client.runtime(
                "CreateContainer", pod_sandbox_id=sandbox, config=config, sandbox_config=sandbox_config()
            )


async def test_a_command_runs_in_a_container(tmp_path):
    programs = {"app": Program(execs={"report": ExecResult(exit_code=3, stdout=b"out", stderr=b"err")})}
    async with served(tmp_path, programs) as client:
        container = await started(client, await run_sandbox(client))
        answer = await client.runtime("ExecSync", container_id=container, cmd=["report"])
        assert (answer.exit_code, answer.stdout, answer.stderr) == (3, b"out", b"err")


async def test_events_carry_the_state_of_sandbox_and_containers(tmp_path):
    async with served(tmp_path) as client:
        events = client.events()
        reading = asyncio.ensure_future(events.read())
        await asyncio.wait([reading], timeout=0.3)  # the call is on its way to the server
        sandbox = await run_sandbox(client, uid="u-9")
        event = await reading
        assert event.container_id == sandbox
        assert event.pod_sandbox_status.metadata.uid == "u-9"
        events.cancel()


async def test_images_are_there_pulled_and_removed(tmp_path):
    async with served(tmp_path) as client:
        spec = new("ImageSpec", image="app:1")
        reference = (await client.image("PullImage", image=spec)).image_ref
        image = (await client.image("ImageStatus", image=spec)).image
        assert image.id == reference
        assert [each.id for each in (await client.image("ListImages")).images] == [reference]
        await client.image("RemoveImage", image=new("ImageSpec", image=reference))
        assert not (await client.image("ImageStatus", image=spec)).HasField("image")


async def test_stats_are_those_of_containers_that_run(tmp_path):
    async with served(tmp_path) as client:
        sandbox = await run_sandbox(client)
        container = await started(client, sandbox)
        assert [each.attributes.id for each in (await client.runtime("ListContainerStats")).stats] == [container]
        assert (await client.runtime("PodSandboxStats", pod_sandbox_id=sandbox)).stats.attributes.id == sandbox
        await client.runtime("StopContainer", container_id=container, timeout=0)
        assert not (await client.runtime("ListContainerStats")).stats


@pytest.mark.parametrize(
    ("mount", "why"),
    [
        ({"readonly": False}, "recursive read-only mount conflicts with read-write mount"),
        ({"readonly": True, "propagation": 1}, "recursive read-only mount conflicts with mount propagation"),
        ({"readonly": True, "propagation": 2}, "recursive read-only mount conflicts with mount propagation"),
    ],
)
async def test_a_recursive_read_only_mount_is_read_only_and_private(tmp_path, mount, why):
    async with served(tmp_path) as client:
        asked = new("Mount", container_path="/a", host_path="/b", recursive_read_only=True, **mount)
        with pytest.raises(grpc.aio.AioRpcError, match=why):
            await client.runtime(
                "CreateContainer",
                pod_sandbox_id=await run_sandbox(client),
                config=container_config(mounts=[asked]),
                sandbox_config=sandbox_config(),
            )


async def test_a_group_without_a_user_is_refused(tmp_path):
    async with served(tmp_path) as client:
        context = new("LinuxContainerSecurityContext", run_as_group=new("Int64Value", value=1000))
        config = container_config(linux=new("LinuxContainerConfig", security_context=context))
        with pytest.raises(grpc.aio.AioRpcError, match="user group is specified without user"):
            await client.runtime(
                "CreateContainer",
                pod_sandbox_id=await run_sandbox(client),
                config=config,
                sandbox_config=sandbox_config(),
            )


class Counting:
    """Counts as the shim does; notes who asked it to look at every process."""

    def __init__(self):
        self.looked = []

    async def container_counters(self, container_id, *, processes=False):
        self.looked.append(processes)
        return api.ContainerCounters({"rss": 5} | ({"descriptors": 7} if processes else {}), {}, "/group")


class CountedRuntime(SimulatedRuntime):
    async def container_stats(self, container_id):
        await self.container_status(container_id)
        return api.ContainerStats(1, 2, 3, 4)


async def test_metrics_alone_have_every_descriptor_looked_at(tmp_path):
    counting = Counting()
    async with served(tmp_path, {"app": Program()}, CountedRuntime, counting=counting) as client:
        made = await client.runtime("RunPodSandbox", config=sandbox_config())
        container = await started(client, made.pod_sandbox_id)
        stats = await client.runtime("ContainerStats", container_id=container)
        assert stats.stats.memory.rss_bytes.value == 5
        await client.runtime("ListContainerStats")
        await client.runtime("PodSandboxStats", pod_sandbox_id=made.pod_sandbox_id)
        await client.runtime("ListPodSandboxStats")
        assert counting.looked == [False] * 4
        (pod,) = (await client.runtime("ListPodSandboxMetrics")).pod_metrics
        (told,) = pod.container_metrics
        values = {each.name: each.value.value for each in told.metrics}
        assert (values["container_file_descriptors"], values["container_memory_rss"]) == (7, 5)
        assert counting.looked[4:] == [True]
