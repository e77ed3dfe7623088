"""`lastcall runtime` is killed at any moment of what is asked of it: the next one has the truth; all of it can go."""

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from engines.cri_machine import LastcallRuntime, Machine, missing_critest
from waiting import eventually

from lastcall.cri.api import ContainerState
from lastcall.cri.sandbox.images.exports import ImageStore, host_image
from lastcall.cri.v1.messages import RUNTIME_SERVICE, method_of, new

pytestmark = [
    pytest.mark.real_kernel,
    pytest.mark.skipif(bool(missing_critest()), reason=missing_critest()),
    pytest.mark.timeout(400),
]
ROUNDS = 10
CONTEXTS: tuple[dict[str, Any], ...] = (
    {},
    {"namespace_options": new("NamespaceOption", network=2, pid=2, ipc=2)},
    {"privileged": True},
    {"namespace_options": new("NamespaceOption", pid=0)},
)
COMMAND = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.05; done"]


class Client:
    def __init__(self, socket: Path) -> None:
        self._channel = grpc.insecure_channel(f"unix://{socket}")

    def __call__(self, name: str, **fields: Any) -> Any:
        path, writes, reads = method_of(RUNTIME_SERVICE, name)
        call = self._channel.unary_unary(path, request_serializer=writes, response_deserializer=reads)
        return call(new(f"{name}Request", **fields), timeout=60)

    def close(self) -> None:
        self._channel.close()


def lives(client: Client, dice: random.Random, number: int, stop: threading.Event, made: list[str]) -> None:
    """Sandboxes and containers come and go until the runtime is gone."""
    try:
        while not stop.is_set():
            context = new("LinuxSandboxSecurityContext", **dice.choice(CONTEXTS))
            metadata = new("PodSandboxMetadata", name=f"p{number}", uid=f"u{dice.random()}", namespace="x")
            config = new(
                "PodSandboxConfig", metadata=metadata, linux=new("LinuxPodSandboxConfig", security_context=context)
            )
            sandbox = client("RunPodSandbox", config=config).pod_sandbox_id
            made.append(sandbox)
            own = new("LinuxContainerSecurityContext", namespace_options=context.namespace_options)
            container = new(
                "ContainerConfig", metadata=new("ContainerMetadata", name="c"), image=new("ImageSpec", image="tools:1"),
                command=COMMAND, linux=new("LinuxContainerConfig", security_context=own),
            )  # fmt: skip
            created = client("CreateContainer", pod_sandbox_id=sandbox, config=container, sandbox_config=config)
            client("StartContainer", container_id=created.container_id)
            client("ExecSync", container_id=created.container_id, cmd=["true"])
            if dice.random() < 0.6:
                client("StopContainer", container_id=created.container_id, timeout=5)
                client("StopPodSandbox", pod_sandbox_id=sandbox)
                client("RemovePodSandbox", pod_sandbox_id=sandbox)
    except grpc.RpcError:
        return


@pytest.fixture
def machine() -> Iterator[Machine]:
    with Machine(registry=False) as found:
        ImageStore(found.directory / "store").add("tools:1", host_image())
        yield found


@pytest.mark.parametrize("seed", [1, 2])
def test_the_next_runtime_has_the_truth_and_everything_can_be_removed(machine: Machine, seed: int) -> None:
    dice, runtime = random.Random(seed), LastcallRuntime(machine)
    made: list[str] = []
    survived = 0
    for _ in range(ROUNDS):
        runtime.start()
        client, stop = Client(runtime.socket), threading.Event()
        survived += check(client)
        threads = [
            threading.Thread(target=lives, args=(client, random.Random(dice.random()), number, stop, made))
            for number in range(3)
        ]
        for thread in threads:
            thread.start()
        time.sleep(dice.uniform(0.05, 1.5))
        runtime.kill()
        stop.set()
        client.close()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
    runtime.start()
    client = Client(runtime.socket)
    survived += check(client)
    assert len(made) > 2 * ROUNDS
    assert survived > ROUNDS, "containers that went on while nobody was there"
    for each in client("ListPodSandbox").items:
        client("StopPodSandbox", pod_sandbox_id=each.id)
        client("RemovePodSandbox", pod_sandbox_id=each.id)
    assert not client("ListContainers").containers
    nothing_is_left(machine, runtime)
    client.close()
    runtime.end()
    assert not runtime.socket.exists()
    eventually(lambda: not processes(runtime), "no process of it", 30)
    assert str(runtime.root) not in machine("cat", "/proc/mounts")


def check(client: Client) -> int:
    """What is told to run runs; how many do."""
    running = 0
    ready = {each.id for each in client("ListPodSandbox").items if each.state == 0}
    for each in client("ListContainers").containers:
        if each.state == ContainerState.CONTAINER_RUNNING:
            running += 1
            assert each.pod_sandbox_id in ready
            assert client("ExecSync", container_id=each.id, cmd=["true"], timeout=20).exit_code == 0
        assert each.state != ContainerState.CONTAINER_UNKNOWN
    return running


def nothing_is_left(machine: Machine, runtime: LastcallRuntime) -> None:
    def left() -> list[str]:
        directories = [runtime.root / each / name for each in ("", "host") for name in ("containers", "shim/sandboxes")]
        directories += [runtime.root / "sandboxes", runtime.root / "cni/netns", runtime.root / "cni/attachments"]
        found = [
            str(path) for each in directories if each.exists() for path in each.iterdir() if path.suffix != ".lock"
        ]
        found += [str(path) for path in (runtime.root / "cni/addresses").glob("*/10.89.*")]
        found += [str(path) for each in ("", "host") for path in (runtime.root / each / "records").glob("*.json")]
        found += [line for line in machine("ip", "-o", "link").splitlines() if "veth" in line]
        return found

    eventually(lambda: not left(), "nothing is left", 60, said=left)


def processes(runtime: LastcallRuntime) -> list[str]:
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [each.parent.name] if str(runtime.root).encode() in each.read_bytes() else []
        except OSError:
            continue
    return found
