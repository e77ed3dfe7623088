"""What a real Kubernetes 1.36.2 answered to ConfigMaps that policies are about, and what is answered here.

It was asked with dryRun; here the ConfigMaps are stored, and `request.dryRun` is false.
"""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from api_server import RunningServer, running_server

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import (
    CONFIGMAPS,
    MUTATINGADMISSIONPOLICIES,
    MUTATINGADMISSIONPOLICYBINDINGS,
    NAMESPACES,
    VALIDATINGADMISSIONPOLICIES,
    VALIDATINGADMISSIONPOLICYBINDINGS,
)

pytestmark = pytest.mark.loopback

Object = dict[str, Any]
NAMESPACE = "me-pol"
RECORDED: list[Object] = json.loads((Path(__file__).parent / "requests.json").read_text())
KINDS = {
    "Validating": (VALIDATINGADMISSIONPOLICIES, VALIDATINGADMISSIONPOLICYBINDINGS),
    "Mutating": (MUTATINGADMISSIONPOLICIES, MUTATINGADMISSIONPOLICYBINDINGS),
}
SERVERS_OWN = ("uid", "creationTimestamp", "managedFields", "resourceVersion")


@pytest.fixture
async def server() -> AsyncIterator[RunningServer]:
    async with running_server() as running:
        await running.admin.create(NAMESPACES, {"metadata": {"name": NAMESPACE, "labels": {"me": "pol"}}})
        for name, value in (("me-param", "1"), ("me-param2", "2")):
            param = {"metadata": {"name": name, "labels": {"me": "param"}}, "data": {"x": value}}
            await running.admin.create(CONFIGMAPS, param, NAMESPACE)
        yield running


async def answer_of(server: RunningServer, recorded: Object) -> Object:
    try:
        made = await server.admin.create(CONFIGMAPS, recorded["object"], NAMESPACE)
    except StatusError as error:
        told = {key: error.status.get(key) for key in ("message", "reason", "details")}
        return {"status": error.code, **told}
    meta = {key: value for key, value in made["metadata"].items() if key not in SERVERS_OWN}
    return {"status": 201, "object": {**made, "metadata": meta}}


async def test_policies_decide_as_on_a_real_server(server: RunningServer) -> None:
    different = {}
    for recorded in RECORDED:
        policies, bindings = KINDS[recorded["kind"]]
        name = recorded["binding"]["policyName"]
        await server.admin.create(policies, {"metadata": {"name": name}, "spec": recorded["policy"]})
        await server.admin.create(bindings, {"metadata": {"name": name}, "spec": recorded["binding"]})
        answer = await answer_of(server, recorded)
        answer.get("object", {}).pop("kind", None), answer.get("object", {}).pop("apiVersion", None)
        wanted = {key: value for key, value in recorded["answer"].items() if key != "warnings"}
        if answer != wanted:
            different[recorded["case"]] = (answer, wanted)
        await server.admin.delete(bindings, name)
        await server.admin.delete(policies, name)
    assert different == {}
