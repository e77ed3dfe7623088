"""`lastcall controller-manager` on the API server of a real Kubernetes: kinds that lastcall has no table for.

etcd and kube-apiserver run on loopback ports, without any controller of their own. Skipped where they are not installed
(`KUBERNETES_HOME`).
"""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from engines.api_server import RealAPIServer, needs, real_api_server
from waiting import eventually

from lastcall.kube.client.discovery import AGGREGATED
from lastcall.kube.client.kubeconfig import client_for, load_kubeconfig

pytestmark = [pytest.mark.timeout(300), needs("etcd", "kube-apiserver", "kubectl")]

CAPACITY = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity", "storageClassName": "x", "capacity": "1Gi"}
REQUEST = {"name": "a", "exactly": {"deviceClassName": "x"}}
TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "spec": {"spec": {"devices": {"requests": [REQUEST]}}},
}
BOTH = "csistoragecapacities,resourceclaimtemplates"


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealAPIServer]:
    with real_api_server(tmp_path_factory.mktemp("real")) as server:
        yield server


def create(real: RealAPIServer, obj: dict, name: str, namespace: str, owner: str = "") -> None:
    meta: dict = {"name": name, "namespace": namespace}
    if owner:
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner}
        meta["ownerReferences"] = [reference]
    real.kubectl("create", "-f", "-", stdin={**obj, "metadata": meta})


@pytest.fixture
def manager(real: RealAPIServer) -> Iterator[None]:
    names = "namespace-controller,garbage-collector-controller"
    command = [sys.executable, "-m", "lastcall.cli.main", "controller-manager", "--kubeconfig", real.kubeconfig]
    with open(real.folder / "manager.log", "wb") as log:
        process = subprocess.Popen([*command, "--controllers", names], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


@pytest.mark.usefixtures("manager")
def test_what_lastcall_has_no_table_for_goes_with_its_owner_and_with_its_namespace(real: RealAPIServer) -> None:
    real.kubectl("create", "namespace", "a")
    real.kubectl("-n", "a", "create", "configmap", "owner")
    uid = real.kubectl("-n", "a", "get", "configmap", "owner", "-o", "jsonpath={.metadata.uid}")
    for name, owner in (("owned", uid), ("free", "")):
        create(real, CAPACITY, name, "a", owner)
        create(real, TEMPLATE, name, "a", owner)

    def left() -> list[str]:
        return sorted(real.kubectl("-n", "a", "get", BOTH, "-o", "name").split())

    kinds = ("csistoragecapacity.storage.k8s.io", "resourceclaimtemplate.resource.k8s.io")
    real.kubectl("-n", "a", "delete", "configmap", "owner")
    eventually(lambda: left() == [f"{kind}/free" for kind in kinds], f"what had an owner is gone: {left()}")
    real.kubectl("delete", "namespace", "a", "--timeout=60s")
    for path in ("storage.k8s.io/v1/csistoragecapacities", "resource.k8s.io/v1/resourceclaimtemplates"):
        assert json.loads(real.kubectl("get", "--raw", f"/apis/{path}"))["items"] == []


@pytest.mark.usefixtures("manager")
def test_a_namespace_waits_while_a_group_cannot_be_discovered(real: RealAPIServer) -> None:
    service = {"name": "none", "namespace": "default"}
    spec = {
        "group": "broken.example.com",
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 10,
        "service": service,
        "insecureSkipTLSVerify": True,
    }
    broken = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "spec": spec}
    real.kubectl("create", "-f", "-", stdin={**broken, "metadata": {"name": "v1.broken.example.com"}})
    real.kubectl("create", "namespace", "b")
    create(real, CAPACITY, "c", "b")
    stale = "stale GroupVersion discovery: broken.example.com/v1"
    eventually(lambda: "Stale" in aggregated(real), "the group is known to fail")
    real.kubectl("delete", "namespace", "b", "--wait=false")

    def failure() -> dict:
        conditions = json.loads(real.kubectl("get", "namespace", "b", "-o", "json"))["status"].get("conditions") or []
        return next((each for each in conditions if each["type"] == "NamespaceDeletionDiscoveryFailure"), {})

    eventually(lambda: failure().get("status") == "True", "the condition")
    assert (failure()["reason"], failure()["message"]) == (
        "DiscoveryFailed",
        "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: "
        f"broken.example.com/v1: {stale}",
    )
    assert real.kubectl("-n", "b", "get", BOTH, "-o", "name") == ""
    real.kubectl("delete", "apiservice", "v1.broken.example.com")
    eventually(lambda: real.kubectl("get", "namespace", "b", check=False) == "", "the namespace is gone")


def aggregated(real: RealAPIServer) -> str:
    async def ask() -> bytes:
        client = client_for(load_kubeconfig(real.kubeconfig, ""), user_agent="test")
        try:
            return await client.request("GET", "/apis", accept=AGGREGATED)
        finally:
            await client.close()

    return asyncio.run(ask()).decode()
