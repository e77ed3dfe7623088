"""Real kubectl against the API server."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from api_server import CONTROLLER, NODE, RunningServer, running_server, stand_in_controllers, stand_in_node
from kubectls import KUBECTL, needs_kubectl

from lastcall.kube.api.resources import SERVICEACCOUNTS
from lastcall.kube.client.api import Client
from lastcall.world.tasks import Tasks

pytestmark = needs_kubectl

MANIFEST = """\
apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: {app: web}
spec:
  terminationGracePeriodSeconds: 30
  containers:
  - {name: main, image: "busybox:1.36", command: ["sleep", "3600"]}
"""


@dataclass
class Kubectl:
    running: RunningServer
    environment: dict[str, str]

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        assert KUBECTL is not None
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            KUBECTL, *arguments, env=self.environment, stdin=pipe, stdout=pipe, stderr=pipe
        )

    async def __call__(self, *arguments: str, stdin: str = "", code: int = 0) -> tuple[str, str]:
        process = await self.start(*arguments)
        async with asyncio.timeout(60):
            out, err = await process.communicate(stdin.encode())
        assert process.returncode == code, (arguments, out.decode(), err.decode())
        return out.decode(), err.decode()


@pytest.fixture
async def kubectl(tmp_path: Path) -> AsyncIterator[Kubectl]:
    async with running_server() as running, Tasks() as tasks:
        admin: Client = running.admin
        await admin.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, "default")
        tasks.spawn(stand_in_controllers(running.server.client(CONTROLLER), b"ca"), name="controllers")
        tasks.spawn(stand_in_node(running.server.client(NODE)), name="node")
        config = tmp_path / "config"
        config.write_text(running.kubeconfig)
        environment = {**os.environ, "KUBECONFIG": str(config), "HOME": str(tmp_path)}
        yield Kubectl(running, environment)
        tasks.cancel()


async def running_pod(kubectl: Kubectl) -> None:
    out, _ = await kubectl("create", "-f", "-", stdin=MANIFEST)
    assert out == "pod/web created\n"
    await kubectl("wait", "pod/web", "--for=jsonpath={.status.phase}=Running", "--timeout=60s")


async def test_version_and_resources(kubectl: Kubectl) -> None:
    out, _ = await kubectl("version")
    assert "Server Version: v1.36.2" in out
    out, _ = await kubectl("api-resources", "-o", "name")
    assert {"pods", "services", "endpointslices.discovery.k8s.io", "leases.coordination.k8s.io"} <= set(out.split())


async def test_create_get_and_describe_as_yaml(kubectl: Kubectl) -> None:
    await running_pod(kubectl)
    out, _ = await kubectl("get", "pod", "web", "-o", "jsonpath={.spec.nodeName} {.status.phase}")
    assert out == "node1 Running"
    out, _ = await kubectl("get", "pods", "-l", "app=web", "-o", "name")
    assert out == "pod/web\n"
    out, err = await kubectl("get", "pods", "-l", "app=other")
    assert "No resources found" in err
    _, err = await kubectl("get", "pod", "nope", code=1)
    assert err == 'Error from server (NotFound): pods "nope" not found\n'


async def test_a_delete_without_waiting_leaves_a_terminating_pod(kubectl: Kubectl) -> None:
    await running_pod(kubectl)
    out, _ = await kubectl("delete", "pod", "web", "--wait=false")
    assert out.startswith('pod "web" deleted')
    out, _ = await kubectl("get", "pod", "web", "-o", "jsonpath={.metadata.deletionGracePeriodSeconds}")
    assert out == "30"


async def test_a_waiting_delete_ends_when_the_object_is_gone(kubectl: Kubectl) -> None:
    await running_pod(kubectl)
    deleting = await kubectl.start("delete", "pod", "web")
    await kubectl("wait", "pod/web", "--for=jsonpath={.metadata.deletionGracePeriodSeconds}=30", "--timeout=60s")
    assert deleting.returncode is None
    await kubectl("delete", "pod", "web", "--force", "--wait=false")
    async with asyncio.timeout(60):
        out, _ = await deleting.communicate()
    assert deleting.returncode == 0
    assert out.decode().startswith('pod "web" deleted')


async def test_grace_period_zero_without_force_becomes_one(kubectl: Kubectl) -> None:
    await running_pod(kubectl)
    await kubectl("delete", "pod", "web", "--grace-period=0", "--wait=false")
    out, _ = await kubectl("get", "pod", "web", "-o", "jsonpath={.metadata.deletionGracePeriodSeconds}")
    assert out == "1"


async def test_get_watch_shows_the_way_of_a_pod(kubectl: Kubectl) -> None:
    await running_pod(kubectl)
    watching = await kubectl.start("get", "pod", "web", "-w", "-o", "jsonpath={.metadata.deletionGracePeriodSeconds},")
    assert watching.stdout is not None
    async with asyncio.timeout(60):
        assert await watching.stdout.readuntil(b",") == b","
        await kubectl("delete", "pod", "web", "--wait=false")
        assert await watching.stdout.readuntil(b",") == b"30,"
        await kubectl("delete", "pod", "web", "--force", "--wait=false")
        assert await watching.stdout.readuntil(b",") == b"0,"
    watching.kill()
    await watching.wait()


async def test_labels_patches_and_dry_runs(kubectl: Kubectl) -> None:
    await running_pod(kubectl)
    await kubectl("label", "pod", "web", "tier=front")
    await kubectl("annotate", "pod", "web", "why=because")
    patch = '{"spec":{"containers":[{"name":"main","image":"busybox:1.37"}]}}'
    await kubectl("patch", "pod", "web", "-p", patch)
    out, _ = await kubectl(
        "get",
        "pod",
        "web",
        "-o",
        "jsonpath={.metadata.labels.tier} {.metadata.annotations.why} {.spec.containers[0].image}",
    )
    assert out == "front because busybox:1.37"
    out, _ = await kubectl("delete", "pod", "web", "--dry-run=server")
    assert "server dry run" in out
    out, _ = await kubectl("get", "pod", "web", "-o", "jsonpath={.metadata.deletionTimestamp}")
    assert out == ""


async def test_apply_creates_changes_and_leaves_alone(kubectl: Kubectl) -> None:
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: '%s'}\n"
    for value, outcome in (("1", "created"), ("1", "unchanged"), ("2", "configured")):
        out, _ = await kubectl("apply", "-f", "-", stdin=config % value)
        assert out == f"configmap/c {outcome}\n"


async def test_a_namespace_goes_when_its_finalizer_does(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", stdin="apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n")
    await kubectl("delete", "namespace", "team")
    await kubectl("get", "namespace", "team", code=1)


async def test_columns_of_pods(kubectl: Kubectl) -> None:
    await running_pod(kubectl)
    await kubectl("delete", "pod", "web", "--wait=false")
    out, _ = await kubectl("get", "pods")
    header, row = out.splitlines()
    assert header.split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row.split()[:4] == ["web", "1/1", "Terminating", "0"]
