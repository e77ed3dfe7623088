"""kubectl apply --server-side, and v1 Endpoints, with the kubectl on PATH and Debian's 1.20."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from api_server import CONTROLLER, running_server
from kubectls import CURRENT, DEBIAN, Kubectl
from waiting import until

from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.resources import NODES, PODS, SERVICEACCOUNTS
from lastcall.kube.client.api import Client
from lastcall.kube.controllers.manager import run_controllers
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: %s\n"
WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: %s
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "busybox:%s"}]}
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec: {nodeName: n1, containers: [{name: main, image: "busybox:1.36"}]}
"""
SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: %s}
spec: {ports: [{port: 80}], %s}
"""
BY_HAND = """\
apiVersion: v1
kind: Endpoints
metadata: {name: outside}
subsets: [{addresses: [{ip: 192.0.2.7}], ports: [{port: 80}]}]
"""
CONTROLLERS = ("endpoints-controller", "endpointslice-controller", "endpointslice-mirroring-controller")


STATUS = {
    "phase": "Running",
    "podIP": "10.244.0.9",
    "podIPs": [{"ip": "10.244.0.9"}],
    "conditions": [{"type": "Ready", "status": "True"}],
}


class Shell:
    """kubectl in a thread, beside the API server's event loop."""

    def __init__(self, kubectl: Kubectl, client: Client) -> None:
        self.kubectl, self.client = kubectl, client

    async def __call__(self, *arguments: str, stdin: str = "", status: int = 0) -> str:
        return await asyncio.to_thread(self.kubectl, *arguments, stdin=stdin, status=status)

    async def run(self, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
        return await asyncio.to_thread(self.kubectl.run, *arguments, stdin=stdin)

    async def apply(self, manifest: str, *arguments: str, status: int = 0) -> str:
        return await self("apply", "--server-side", "-f", "-", *arguments, stdin=manifest, status=status)

    async def get(self, *arguments: str) -> Any:
        return json.loads(await self("get", *arguments, "-o", "json"))

    async def managers(self, *arguments: str) -> list[tuple[str, str]]:
        shown = ["--show-managed-fields"] if self.kubectl.version >= (1, 21) else []
        entries = (await self.get(*arguments, *shown))["metadata"]["managedFields"]
        return [(entry["manager"], entry["operation"]) for entry in entries]

    async def until(self, condition: Callable[[str], bool], *arguments: str) -> str:
        out = ""

        async def is_so() -> bool:
            nonlocal out
            out = (await self.run(*arguments))[1]
            return condition(out)

        await until(is_so, pause=0.1, said=lambda: out)
        return out


@pytest.fixture(params=[CURRENT, DEBIAN])
async def kubectl(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shell]:
    config = tmp_path / "config"
    async with running_server() as running, Tasks() as tasks:
        await running.admin.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, "default")
        tasks.spawn(
            run_controllers(
                gates=FeatureGates(),
                world=World(),
                client=running.server.client(CONTROLLER, "kube-controller-manager"),
                recorder_for=lambda name: running.recorder,  # type: ignore[arg-type,return-value]
                root_ca_pem=b"ca",
                names=CONTROLLERS,
            ),
            name="controllers",
        )
        config.write_text(running.kubeconfig)
        yield Shell(Kubectl(request.param, str(config), str(tmp_path)), running.admin)
        tasks.cancel()


async def test_apply_creates_changes_nothing_twice_and_takes_back_what_it_no_longer_says(kubectl: Shell) -> None:
    assert await kubectl.apply(CONFIG % "{a: '1', b: '2'}") == "configmap/c serverside-applied\n"
    first = await kubectl.get("configmap", "c")
    assert await kubectl.apply(CONFIG % "{a: '1', b: '2'}") == "configmap/c serverside-applied\n"
    assert (await kubectl.get("configmap", "c"))["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    await kubectl.apply(CONFIG % "{a: '1'}")
    assert (await kubectl.get("configmap", "c"))["data"] == {"a": "1"}
    assert "b: " not in await kubectl("get", "configmap", "c", "-o", "yaml")


async def test_a_field_of_another_manager_is_a_conflict_and_force_takes_it(kubectl: Shell) -> None:
    await kubectl.apply(WEB % (2, "1.35"), "--field-manager=team")
    err = await kubectl.apply(WEB % (3, "1.36"), status=1)
    assert err.startswith(
        'error: Apply failed with 2 conflicts: conflicts with "team":\n- .spec.replicas\n'
        '- .spec.template.spec.containers[name="main"].image\nPlease review the fields above'
    )
    assert (await kubectl.get("deployment", "web"))["spec"]["replicas"] == 2
    out = await kubectl.apply(WEB % (3, "1.36"), "--force-conflicts", "--dry-run=server")
    assert out == "deployment.apps/web serverside-applied (server dry run)\n"
    assert (await kubectl.get("deployment", "web"))["spec"]["replicas"] == 2
    assert await kubectl.apply(WEB % (3, "1.36"), "--force-conflicts") == "deployment.apps/web serverside-applied\n"
    assert (await kubectl.get("deployment", "web"))["spec"]["replicas"] == 3
    assert sorted(await kubectl.managers("deployment", "web")) == [("kubectl", "Apply"), ("team", "Apply")]
    await kubectl("scale", "deployment", "web", "--replicas=5")
    err = await kubectl.apply(WEB % (3, "1.36"), status=1)
    assert 'conflict with "kubectl" with subresource "scale" using apps/v1: .spec.replicas' in err


async def test_what_client_side_apply_wrote_goes_over_to_server_side_apply(kubectl: Shell) -> None:
    await kubectl("apply", "-f", "-", stdin=CONFIG % "{a: '1', b: '2'}")
    shown = await kubectl("apply", "view-last-applied", "configmap/c", "-o", "json")
    assert json.loads(shown)["data"] == {"a": "1", "b": "2"}
    assert await kubectl.managers("configmap", "c") == [("kubectl-client-side-apply", "Update")]
    assert await kubectl.apply(CONFIG % "{a: '1'}") == "configmap/c serverside-applied\n"
    shown = await kubectl("apply", "view-last-applied", "configmap/c", "-o", "json")
    assert json.loads(shown)["data"] == {"a": "1"}
    managers = dict(await kubectl.managers("configmap", "c"))
    assert managers["kubectl"] == "Apply"
    if kubectl.kubectl.version >= (1, 26):  # older ones leave what they had to its first manager
        assert (await kubectl.get("configmap", "c"))["data"] == {"a": "1"}
        assert "kubectl-client-side-apply" not in managers


async def test_managed_fields_are_shown_when_asked_for(kubectl: Shell) -> None:
    await kubectl("create", "configmap", "c", "--from-literal=a=1")
    hides = kubectl.kubectl.version >= (1, 21)
    out = await kubectl("get", "configmap", "c", "-o", "yaml", *(["--show-managed-fields"] if hides else []))
    assert "  managedFields:\n" in out
    assert "manager: kubectl-create\n" in out
    assert ("managedFields" in await kubectl("get", "configmap", "c", "-o", "yaml")) is not hides


async def test_a_service_has_endpoints_and_those_made_by_hand_are_mirrored(kubectl: Shell) -> None:
    address = "10.244.0.9:80"
    await kubectl.client.create(NODES, {"metadata": {"name": "n1"}})
    await kubectl("create", "-f", "-", stdin=POD)
    await kubectl.client.patch(PODS, "web", {"status": STATUS}, "default", subresource="status")
    await kubectl("create", "-f", "-", stdin=SERVICE % ("web", "selector: {app: web}"))
    row = await kubectl.until(lambda out: ":80" in out, "get", "endpoints", "web", "--no-headers")
    assert row.split()[:2] == ["web", address]
    described = await kubectl.until(lambda out: address in out, "describe", "service", "web")
    assert next(line.split()[1] for line in described.splitlines() if line.startswith("Endpoints:")) == address
    await kubectl("create", "-f", "-", stdin=SERVICE % ("outside", "clusterIP: None"))
    await kubectl("create", "-f", "-", stdin=BY_HAND)
    mirrored = ("get", "endpointslices", "-l", "kubernetes.io/service-name=outside", "--no-headers")
    assert "192.0.2.7" in await kubectl.until(lambda out: "192.0.2.7" in out, *mirrored)
    _, _, err = await kubectl.run("get", "endpoints", "outside")
    warns = "Warning: v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
    assert (warns in err) is (kubectl.kubectl.version >= (1, 19))
