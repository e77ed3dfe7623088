"""The client of CRI v1 against the simulated runtime, over a real gRPC channel."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from cri_server import serving
from fake_api import ListRecorder
from waiting import until

from lastcall.kube.cri import api
from lastcall.kube.cri.simulated import Durations, SimulatedRuntime
from lastcall.kube.cri.simulated_images import SimulatedImage
from lastcall.kube.cri.simulated_program import ExecResult, Program
from lastcall.kube.cri.v1.remote import runtime as remote_runtime
from lastcall.kube.cri.v1.remote.connection import RuntimeConnection, failure, plain
from lastcall.kube.cri.v1.remote.ends import NOT_SEEN, EndsFromStatus
from lastcall.kube.cri.v1.remote.images import RemoteImages
from lastcall.kube.cri.v1.remote.paths import Paths
from lastcall.kube.cri.v1.remote.runtime import CLUSTER_LABEL, RemoteRuntime
from lastcall.records import kinds
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

LABELS = {"io.kubernetes.pod.uid": "u-1"}


@asynccontextmanager
async def remote(tmp_path, programs=None, images=None, cluster="ours"):
    world = World()
    told = ListRecorder(world)
    path = f"{tmp_path}/cri.sock"
    async with (
        SimulatedRuntime(
            world, ListRecorder(world), programs or {}, images=images, durations=Durations(0, 0, 0, 0, 0, 0)
        ) as simulated,
        serving(simulated, path),
    ):
        connection = RuntimeConnection(path)
        paths = Paths([("/inside", str(tmp_path / "there"))])
        watcher = EndsFromStatus(told, world.clock)
        runtime = RemoteRuntime(world, connection, cluster=cluster, paths=paths, watcher=watcher)
        runtime.told, runtime.behind, runtime.images = told, simulated, RemoteImages(connection)
        try:
            async with Tasks() as tasks:
                tasks.spawn(runtime.run(), name="runtime")
                yield runtime
                tasks.cancel()
        finally:
            await runtime.close()


def sandbox_config(uid="u-1"):
    labels = {"io.kubernetes.pod.uid": uid}
    return api.PodSandboxConfig(metadata=api.PodSandboxMetadata("web", uid, "x"), labels=labels)


def container_config(name="app", **more):
    return api.ContainerConfig(metadata=api.ContainerMetadata(name), image="app:1", labels=LABELS, **more)


async def started(runtime, **more):
    sandbox = await runtime.run_pod_sandbox(sandbox_config())
    container = await runtime.create_container(sandbox, container_config(**more), sandbox_config())
    await runtime.start_container(container)
    return sandbox, container


def records(runtime, kind):
    return [each for each in runtime.told.records if each["kind"] == kind]


def test_a_container_lives_and_ends_through_the_channel(tmp_path):
    async def scenario():
        async with remote(tmp_path, {"app": Program(exit_code=3, on_term="exit")}) as runtime:
            sandbox, container = await started(runtime)
            (status,) = await runtime.list_containers("u-1")
            assert (status.id, status.pod_sandbox_id) == (container, sandbox)
            assert status.state == api.ContainerState.CONTAINER_RUNNING and status.started_at
            (pod,) = await runtime.list_pod_sandbox()
            assert pod.ips == ("10.244.0.2",)
            await runtime.stop_container(container, 30)
            (status,) = await runtime.list_containers()
            assert (status.state, status.exit_code) == (api.ContainerState.CONTAINER_EXITED, 3)
            await runtime.stop_pod_sandbox(sandbox)
            await runtime.remove_pod_sandbox(sandbox)
            await runtime.remove_pod_sandbox(sandbox)
            await runtime.stop_container(container, 1)
            assert await runtime.list_pod_sandbox() == []

    asyncio.run(scenario())


def test_what_another_cluster_has_is_not_seen(tmp_path):
    async def scenario():
        async with remote(tmp_path) as runtime:
            await runtime.behind.run_pod_sandbox(sandbox_config("u-2"))
            sandbox, _ = await started(runtime)
            assert [each.id for each in await runtime.list_pod_sandbox()] == [sandbox]
            assert await runtime.list_pod_sandbox("u-2") == []
            assert all(each.labels[CLUSTER_LABEL] == "ours" for each in await runtime.list_containers())

    asyncio.run(scenario())


def test_errors_have_gos_texts_and_containers_have_the_runtimes_own(tmp_path):
    async def scenario():
        programs = {"app": Program(start_error="OCI runtime create failed: no such file")}
        images = {"gone:1": SimulatedImage(present=False, error="no", reason="ImageNotFound")}
        async with remote(tmp_path, programs, images) as runtime:
            with pytest.raises(api.RuntimeServiceError) as caught:
                await started(runtime)
            assert (str(caught.value), caught.value.reason) == ("OCI runtime create failed: no such file", "StartError")
            with pytest.raises(api.RuntimeServiceError) as caught:
                await runtime.pod_sandbox_status("f" * 64)
            assert caught.value.reason == "NotFound"
            assert str(caught.value).startswith("rpc error: code = NotFound desc = ")
            assert await runtime.images.image_status("gone:1") is None
            with pytest.raises(api.RuntimeServiceError) as caught:
                await runtime.images.image_status("Bad Name:1")
            assert caught.value.reason == "InvalidImageName"
            with pytest.raises(api.RuntimeServiceError) as caught:
                await runtime.images.pull_image("gone:1", api.AuthConfig("me", "secret"))
            assert (str(caught.value), caught.value.reason) == ("rpc error: code = NotFound desc = no", "ImageNotFound")
            assert (await runtime.images.image_status("app:1")).repo_tags == ("app:1",)

    asyncio.run(scenario())


def test_a_runtime_that_is_away_is_named(tmp_path):
    async def scenario():
        connection = RuntimeConnection(f"{tmp_path}/nobody.sock")
        runtime = RemoteRuntime(World(), connection, cluster="ours")
        with pytest.raises(api.RuntimeServiceError, match=r"at unix:///.*nobody.sock does not answer"):
            await runtime.list_pod_sandbox()
        await runtime.close()

    asyncio.run(scenario())
    assert plain(failure("/s", "UNKNOWN", "why")) == "why"


def test_commands_answer_and_time_out(tmp_path):
    async def scenario():
        execs = {"good": ExecResult(exit_code=4, stdout=b"out", stderr=b"err"), "slow": ExecResult(seconds=60)}
        async with remote(tmp_path, {"app": Program(execs=execs)}) as runtime:
            _, container = await started(runtime)
            assert await runtime.exec_sync(container, ("good",), 0) == api.ExecSyncResponse(b"out", b"err", 4)
            with pytest.raises(api.RuntimeServiceError) as caught:
                await runtime.exec_sync(container, ("slow",), 0.2)
            assert caught.value.reason == "DeadlineExceeded"

    asyncio.run(scenario())


@pytest.mark.loopback
def test_the_runtimes_events_are_used_where_it_has_them(tmp_path, monkeypatch):
    for name in ("RELIST_SECONDS", "RELIST_WITH_EVENTS_SECONDS"):
        monkeypatch.setattr(remote_runtime, name, 10_000.0)

    async def scenario():
        async with remote(tmp_path, {"app": Program(exits_after=0.5)}) as runtime:
            seen = []

            async def follow():
                async for event in runtime.get_container_events():
                    seen.append((event.pod_uid, event.container_event_type.name))

            async with Tasks() as tasks:
                tasks.spawn(follow(), name="follow")
                await until(lambda: runtime.behind._reports._subscribers and runtime.has_events)
                await started(runtime)
                # Nothing but the runtime's event says that it has ended.
                await until(lambda: ("u-1", "CONTAINER_STOPPED_EVENT") in seen)
                tasks.cancel()

    asyncio.run(scenario())


@pytest.mark.loopback
def test_what_changes_between_two_listings_is_an_event(tmp_path):
    async def scenario():
        async with remote(tmp_path, {"app": Program(exits_after=0.5)}) as runtime:
            seen = []

            async def follow():
                async for event in runtime.get_container_events():
                    seen.append(event.container_event_type.name)

            async with Tasks() as tasks:
                tasks.spawn(follow(), name="follow")
                _, container = await started(runtime)
                await until(lambda: "CONTAINER_STOPPED_EVENT" in seen)
                await runtime.remove_container(container)
                await until(lambda: "CONTAINER_DELETED_EVENT" in seen)
                tasks.cancel()

    asyncio.run(scenario())


def test_ends_are_told_as_concluded_and_what_nobody_saw_as_unknown(tmp_path):
    async def scenario():
        async with remote(tmp_path, {"app": Program(on_term="ignore")}) as runtime:
            _, container = await started(runtime)
            await runtime.list_containers()
            await runtime.stop_container(container, 1)
            await runtime.list_containers()
            await runtime.list_containers()
            signals = [each["facts"]["signal"] for each in records(runtime, kinds.SIGNAL_SENT)]
            assert signals == ["SIGTERM", "SIGKILL"]
            (exited,) = records(runtime, kinds.PROCESS_EXITED)
            assert (exited["facts"]["exitCode"], exited["facts"]["signal"]) == (137, "SIGKILL")
            assert (exited["pod_uid"], exited["container"]) == ("u-1", "app")
            assert {each["evidence"] for each in runtime.told.records} == {"inferred"}
            (unknown,) = records(runtime, kinds.NOT_SHOWN)
            assert unknown["facts"]["text"] == NOT_SEEN

    asyncio.run(scenario())


@pytest.mark.parametrize(("pid", "stops", "told"), [("POD", False, 1), ("POD", True, 0), ("CONTAINER", False, 0)])
def test_a_shared_pause_process_has_ended_when_nobody_stopped_a_sandbox_that_is_no_longer_ready(
    tmp_path, pid, stops, told
):
    async def scenario():
        async with remote(tmp_path) as runtime:
            config = replace(sandbox_config(), namespace_options=api.NamespaceOption(pid=pid))
            sandbox = await runtime.run_pod_sandbox(config)
            await runtime._seen()
            await (runtime if stops else runtime.behind).stop_pod_sandbox(sandbox)
            await runtime._seen()
            await runtime._seen()
            ends = records(runtime, kinds.PAUSE_ENDED)
            assert len(ends) == told
            for each in ends:
                assert (each["pod_uid"], each["evidence"]) == ("u-1", "inferred")
                assert list(each["facts"]) == ["secondsBefore"] and 0 <= each["facts"]["secondsBefore"] < 60

    asyncio.run(scenario())


def test_a_sandbox_that_a_restarted_node_finds_ended_is_not_taken_for_one_whose_pause_process_ended(tmp_path):
    async def scenario():
        async with remote(tmp_path) as runtime:
            config = replace(sandbox_config(), namespace_options=api.NamespaceOption(pid="POD"))
            await runtime.behind.stop_pod_sandbox(await runtime.run_pod_sandbox(config))
            runtime._known.ends.ready.clear()  # of the node that began it
            await runtime._seen()
            assert records(runtime, kinds.PAUSE_ENDED) == []

    asyncio.run(scenario())


def test_a_shared_pause_process_that_ended_right_before_its_sandbox_was_stopped_is_noticed(tmp_path):
    async def scenario():
        async with remote(tmp_path) as runtime:
            config = replace(sandbox_config(), namespace_options=api.NamespaceOption(pid="POD"))
            for ended in (True, False):
                sandbox = await runtime.run_pod_sandbox(config)
                if ended:
                    await runtime.behind.stop_pod_sandbox(sandbox)
                await runtime.stop_pod_sandbox(sandbox)
                await runtime._seen()
                assert len(records(runtime, kinds.PAUSE_ENDED)) == 1

    asyncio.run(scenario())


def test_paths_are_the_runtimes_on_the_way_there_and_ours_on_the_way_back(tmp_path):
    paths = Paths([("/lastcall", "/var/x"), ("/lastcall/durable/claims", "/var/y")])
    assert paths.there("/lastcall/pods/1") == "/var/x/pods/1"
    assert paths.there("/lastcall/durable/claims/a") == "/var/y/a"
    assert paths.there("/lastcallx") == "/lastcallx"
    assert paths.here("/var/y/a") == "/lastcall/durable/claims/a"
    assert paths.here("/var/x") == "/lastcall"

    async def scenario():
        async with remote(tmp_path) as runtime:
            mounts = (api.Mount("/data", "/inside/volume", readonly=True),)
            _, container = await started(runtime, mounts=mounts)
            (behind,) = await runtime.behind.list_containers()
            assert behind.mounts[0].host_path == str(tmp_path / "there/volume")
            assert (await runtime.container_status(container)).mounts == mounts

    asyncio.run(scenario())
