"""`lastcall controller-manager` against an API server without controllers: two candidates, the leader killed."""

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from waiting import eventually, until

from lastcall.kube.api.meta import Object, is_terminating, name_of, uid_of
from lastcall.kube.api.pods.spec import is_pod_ready
from lastcall.kube.api.resources import DEPLOYMENTS, ENDPOINTSLICES, LEASES, PODS, REPLICASETS, SERVICES
from lastcall.kube.client.http import HTTPClient
from lastcall.kube.client.kubeconfig import client_for, load_kubeconfig

SUPPORT = Path(__file__).parents[1] / "support"
REPLICAS = 6


class Process:
    """A process of the test, with what it says on stderr in a file."""

    def __init__(self, arguments: list[str], log: Path) -> None:
        self.log = log
        with log.open("wb") as file:
            self.process = subprocess.Popen([sys.executable, *arguments], stdout=file, stderr=file, cwd="/")

    def said(self) -> str:
        return self.log.read_text()

    def wait_for(self, text: str, seconds: float = 60.0) -> None:
        def is_said() -> bool:
            ended = self.process.poll() is not None
            assert text in self.said() or not ended, f"it has ended:\n{self.said()}"
            return text in self.said()

        eventually(is_said, repr(text), seconds, said=self.said)

    def end(self, number: int) -> int:
        os.kill(self.process.pid, number)
        return self.process.wait(60)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(60)


@contextmanager
def processes() -> Iterator[Callable[[list[str], Path], Process]]:
    started: list[Process] = []

    def start(arguments: list[str], log: Path) -> Process:
        started.append(Process(arguments, log))
        return started[-1]

    try:
        yield start
    finally:
        for each in reversed(started):
            each.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], Process]]:
    """`start("a")`: a controller-manager; `start("api")`: the API server."""
    kubeconfig = tmp_path / "kubeconfig"
    with processes() as make:

        def start(name: str, *arguments: str) -> Process:
            log = tmp_path / f"{name}.log"
            if name == "api":
                process = make([str(SUPPORT / "api_process.py"), "--kubeconfig", str(kubeconfig)], log)
                eventually(lambda: kubeconfig.exists() or process.process.poll() is not None, "the API server")
                assert process.process.poll() is None, process.said()
                return process
            command = ["-m", "lastcall.cli.main", "controller-manager", "--kubeconfig", str(kubeconfig), *arguments]
            return make(command, log)

        yield start


def deployment(revision: str) -> Object:
    labels = {"app": "web"}
    spec = {"containers": [{"name": "app", "image": "busybox"}], "terminationGracePeriodSeconds": 5}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": REPLICAS,
            "minReadySeconds": 1,
            "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels, "annotations": {"revision": revision}}, "spec": spec},
        },
    }


@asynccontextmanager
async def connected(directory: Path) -> AsyncIterator[HTTPClient]:
    client = client_for(load_kubeconfig(str(directory / "kubeconfig")))
    try:
        yield client
    finally:
        await client.close()


async def pods(client: HTTPClient) -> list[Object]:
    return (await client.list(PODS, "default")).items


def revision(pod: Object) -> str:
    return pod["metadata"]["annotations"]["revision"]


async def is_rolled_out(client: HTTPClient, to: str) -> bool:
    there = await pods(client)
    healthy = [pod for pod in there if is_pod_ready(pod) and not is_terminating(pod)]
    return len(there) == len(healthy) == REPLICAS and {revision(pod) for pod in there} == {to}


def test_the_leader_is_killed_in_the_middle_of_a_rollout_and_the_other_goes_on(start, tmp_path):
    start("api")
    first = start("first")
    first.wait_for("is the leader")
    second = start("second")
    second.wait_for("waiting for it to end")

    async def scenario() -> None:
        async with connected(tmp_path) as client:
            await steps(client)

    async def steps(client: HTTPClient) -> None:
        fewest: list[int] = []

        async def middle() -> bool:
            by_revision = Counter(map(revision, await pods(client)))
            return by_revision["2"] >= 2 and by_revision["1"] >= 2

        async def available() -> bool:
            there = await pods(client)
            fewest.append(sum(is_pod_ready(pod) and not is_terminating(pod) for pod in there))
            return await is_rolled_out(client, "2")

        ports = {"spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}, "metadata": {"name": "web"}}
        await client.create(SERVICES, ports, "default")
        await client.create(DEPLOYMENTS, deployment("1"), "default")
        await until(lambda: is_rolled_out(client, "1"), "the first revision")
        holder = (await client.get(LEASES, "kube-controller-manager", "kube-system"))["spec"]["holderIdentity"]
        await client.patch(DEPLOYMENTS, "web", {"spec": deployment("2")["spec"]}, "default")
        await until(middle, "the middle of the rollout")
        first.end(signal.SIGKILL)
        assert "runs" not in second.said()
        await until(available, "the second revision")
        assert min(fewest) >= REPLICAS, "maxUnavailable is 0"
        lease = await client.get(LEASES, "kube-controller-manager", "kube-system")
        assert lease["spec"]["holderIdentity"] not in ("", holder)
        assert lease["spec"]["leaseTransitions"] == 1
        await everything_is_right(client)

        third = start("third")
        third.wait_for("waiting for it to end")
        assert second.end(signal.SIGTERM) == 0
        given = await client.get(LEASES, "kube-controller-manager", "kube-system")
        assert given["spec"]["holderIdentity"] != lease["spec"]["holderIdentity"], "given back, not waited for"
        third.wait_for("is the leader")
        await client.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 2}}, "default")

        async def two() -> bool:
            return len(await pods(client)) == 2

        await until(two, "scaled in by the third")
        assert third.end(signal.SIGINT) == 0

    asyncio.run(scenario())


async def everything_is_right(client: HTTPClient) -> None:
    async def settled() -> bool:
        status = (await client.get(DEPLOYMENTS, "web", "default"))["status"]
        slices = (await client.list(ENDPOINTSLICES, "default", label_selector="kubernetes.io/service-name=web")).items
        return status.get("updatedReplicas") == status.get("replicas") == REPLICAS and len(slices) == 1

    await until(settled, "status and endpoints")
    owners = {uid_of(each): each for each in (await client.list(REPLICASETS, "default")).items}
    sizes = sorted(each["spec"]["replicas"] for each in owners.values())
    assert sizes == [0, REPLICAS]
    for pod in await pods(client):
        (reference,) = pod["metadata"]["ownerReferences"]
        assert owners[reference["uid"]]["spec"]["replicas"] == REPLICAS, name_of(pod)


def test_a_list_of_controllers_runs_those_alone_and_without_a_lease(start, tmp_path):
    start("api")
    some = start("some", "--controllers", "replicaset-controller,serviceaccount-controller", "--no-leader-elect")
    some.wait_for("runs replicaset-controller, serviceaccount-controller against https://127.0.0.1:")

    async def scenario() -> None:
        async with connected(tmp_path) as client:
            await steps(client)

    async def steps(client: HTTPClient) -> None:
        made = deployment("1")
        await client.create(DEPLOYMENTS, made, "default")
        alone = {key: made["spec"][key] for key in ("selector", "template")}
        await client.create(REPLICASETS, {"metadata": {"name": "alone"}, "spec": alone | {"replicas": 2}}, "default")

        async def two() -> bool:
            return len(await pods(client)) == 2

        await until(two, "the Pods of the ReplicaSet")
        assert len((await client.list(REPLICASETS, "default")).items) == 1, "no controller of Deployments runs"
        assert not (await client.list(LEASES, "kube-system")).items

    asyncio.run(scenario())
    assert some.end(signal.SIGTERM) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--kubeconfig", "/no/such/file"], "no such file"),
        (["--controllers", "replicaset-controler"], "no controller 'replicaset-controler'; there are "),
        (["--controllers", "*,-*"], "no controller '*'"),
    ],
)
def test_bad_input_is_status_2_and_one_line(arguments, words, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "lastcall.cli.main", "controller-manager", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    assert done.returncode == 2, done.stderr
    assert words.lower() in done.stderr.lower()
    assert "Traceback" not in done.stderr
