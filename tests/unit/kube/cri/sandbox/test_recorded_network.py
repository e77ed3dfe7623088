"""What one sandbox does to the network of the others."""

from fake_api import ListRecorder

from lastcall.kube.cri.api import PodSandboxConfig, PodSandboxMetadata
from lastcall.kube.cri.sandbox.objects import Sandbox
from lastcall.kube.cri.sandbox.recorded_network import RecordedNetwork
from lastcall.world import crash_guard
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World


class Network:
    def __init__(self) -> None:
        self.adopted: list[str] = []

    async def attach(self, sandbox_id: str, netns_fd: int, pod_uid: str, config: PodSandboxConfig | None = None) -> str:
        raise NotImplementedError

    async def adopt(self, sandbox_id: str, ip: str, config: PodSandboxConfig | None = None) -> None:
        if sandbox_id == "bad":
            raise KeyError("ICMP")
        self.adopted.append(sandbox_id)

    async def detach(self, sandbox_id: str, ip: str) -> None:
        raise KeyError(sandbox_id)

    async def status(self) -> str:
        return ""


def sandbox(identity: str, ip: str) -> Sandbox:
    config = PodSandboxConfig(PodSandboxMetadata(identity, f"uid-{identity}", "default"))
    return Sandbox(identity, config, 0, ip=ip, attached=True)


def test_a_sandbox_that_cannot_be_adopted_or_discarded_stops_no_other() -> None:
    async def main(world: World) -> None:
        there = Network()
        network = RecordedNetwork(there, ListRecorder(world), world.clock)
        sandboxes = [sandbox("bad", "10.244.0.2"), sandbox("good", "10.244.0.3")]
        with crash_guard.installed() as faults:
            await network.adopt(sandboxes)
            assert there.adopted == ["good"]
            assert [each.attached for each in sandboxes] == [False, True]
            assert [(each.component, each.key) for each in faults.all()] == [("Pod network", "bad")]
            await network.discard(sandboxes[1])
            assert [each.key for each in faults.all()] == ["bad", "good"]

    run_virtual(main)
