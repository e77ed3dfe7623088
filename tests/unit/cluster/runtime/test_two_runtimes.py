"""Which Pods are in the machine's own namespaces, and what is asked of which of the two runtimes."""

import pytest
from fake_api import ListRecorder

from lastcall.cluster.runtime.two import TwoRuntimes, needs_host
from lastcall.cri import api
from lastcall.cri.simulated import Durations, SimulatedRuntime
from lastcall.world.world import World

USERS = api.UserNamespace("POD", (api.IDMapping(1000, 0, 10),), (api.IDMapping(1000, 0, 10),))
METADATA = api.PodSandboxMetadata("web", "u-1", "default")


@pytest.mark.parametrize(
    ("config", "host"),
    [
        ({}, False),
        ({"namespace_options": api.NamespaceOption(pid="POD")}, False),
        ({"namespace_options": api.NamespaceOption(network="NODE")}, True),
        ({"namespace_options": api.NamespaceOption(pid="NODE")}, True),
        ({"namespace_options": api.NamespaceOption(ipc="NODE")}, True),
        ({"privileged": True}, True),
        ({"namespace_options": api.NamespaceOption(userns_options=USERS)}, True),
    ],
)
def test_the_machines_namespaces_are_for_those_who_ask(config, host):
    assert needs_host(api.PodSandboxConfig(METADATA, **config)) is host


class Runtime(SimulatedRuntime):
    """What TwoRuntimes asks besides CRI."""

    def __init__(self, world: World) -> None:
        super().__init__(world, ListRecorder(world), {}, durations=Durations(0, 0, 0, 0, 0, 0))
        self.configs: dict[str, api.PodSandboxConfig] = {}
        self.containers: set[str] = set()

    async def run_pod_sandbox(self, config, runtime_handler=""):
        identity = await super().run_pod_sandbox(config, runtime_handler)
        self.configs[identity] = config
        return identity

    async def create_container(self, pod_sandbox_id, config, sandbox_config):
        identity = await super().create_container(pod_sandbox_id, config, sandbox_config)
        self.containers.add(identity)
        return identity

    def sandbox_config(self, pod_sandbox_id):
        return self.configs.get(pod_sandbox_id)

    def has_container(self, container_id):
        return container_id in self.containers


async def test_each_sandbox_stays_in_its_runtime_and_both_are_listed():
    world = World()
    async with Runtime(world) as ordinary, Runtime(world) as host:
        started = []

        async def start_host():
            started.append(1)
            return host

        both = TwoRuntimes(ordinary, start_host)
        plain = await both.run_pod_sandbox(api.PodSandboxConfig(METADATA))
        assert not started
        privileged = api.PodSandboxConfig(METADATA, privileged=True)
        other = await both.run_pod_sandbox(privileged)
        await both.run_pod_sandbox(privileged)
        assert started == [1]
        assert [each.id for each in await ordinary.list_pod_sandbox()] == [plain]
        assert {each.id for each in await both.list_pod_sandbox()} >= {plain, other}
        config = api.ContainerConfig(api.ContainerMetadata("app"), "app:1")
        for sandbox, runtime in ((plain, ordinary), (other, host)):
            container = await both.create_container(sandbox, config, api.PodSandboxConfig(METADATA))
            await both.start_container(container)
            assert (await runtime.container_status(container)).state == api.ContainerState.CONTAINER_RUNNING
            await both.stop_container(container, 0)
            assert (await both.container_status(container)).state == api.ContainerState.CONTAINER_EXITED
            await both.remove_pod_sandbox(sandbox)
        with pytest.raises(api.RuntimeServiceError, match="not found"):
            await both.pod_sandbox_status("f" * 64)


async def test_a_privileged_container_needs_a_privileged_sandbox():
    world = World()
    async with Runtime(world) as ordinary, Runtime(world) as host:

        async def start_host():
            return host

        both = TwoRuntimes(ordinary, start_host)
        security = api.LinuxContainerSecurityContext(privileged=True)
        config = api.ContainerConfig(api.ContainerMetadata("app"), "app:1", security_context=security)
        network = api.PodSandboxConfig(METADATA, namespace_options=api.NamespaceOption(network="NODE"))
        for asked in (api.PodSandboxConfig(METADATA), network):
            sandbox = await both.run_pod_sandbox(asked)
            with pytest.raises(api.RuntimeServiceError, match="no privileged container allowed in sandbox"):
                await both.create_container(sandbox, config, asked)
        allowed = api.PodSandboxConfig(METADATA, privileged=True)
        assert await both.create_container(await both.run_pod_sandbox(allowed), config, allowed)
