"""Whatever a client sends, the answer is the client's error or a success, never a fault of the server."""

import json
from random import Random

import aiohttp
import pytest
from api_server import running_server

from lastcall.kube.api.resources import SERVED, SERVICEACCOUNTS

VALUES = [None, 1, -1, "", [], {}, "x", True, [1], {"a": None}, {"name": "z"}, [{}], [{"name": "m"}], 1.5]
TOP = ["metadata", "spec", "status", "data", "stringData", "involvedObject", "target", "endpoints", "ports", "kind"]
META = ["name", "namespace", "labels", "annotations", "ownerReferences", "generateName", "uid", "resourceVersion"]
SPEC = ["containers", "ports", "nodeName", "clusterIP", "clusterIPs", "type", "selector", "tolerations", "volumes"]
SPEC += ["initContainers", "schedulingGates", "terminationGracePeriodSeconds", "priority", "audiences", "taints"]
CONTAINER = ["ports", "env", "lifecycle", "volumeMounts", "livenessProbe", "resources", "command", "securityContext"]
PATCHES = ["application/merge-patch+json", "application/strategic-merge-patch+json", "application/json-patch+json"]
POINTERS = ["/spec", "/metadata/name", "/metadata", "/spec/containers/0", "/status", "/metadata/labels/a", ""]


def some(random: Random, keys: list[str], most: int) -> dict:
    return {key: random.choice(VALUES) for key in random.sample(keys, random.randint(0, most))}


def strange_object(random: Random) -> dict:
    obj = some(random, TOP, 3)
    if random.random() < 0.85:
        obj["metadata"] = {"name": f"f{random.randrange(6)}", **some(random, META, 1)}
    if random.random() < 0.6:
        obj["spec"] = some(random, SPEC, 3)
        if random.random() < 0.5:
            obj["spec"]["containers"] = [{"name": "m", "image": "x", **some(random, CONTAINER, 2)}]
    return obj


def strange_body(random: Random, method: str, content_type: str) -> object:
    if content_type.startswith("application/json-patch"):
        operation = {"op": random.choice(["add", "remove", "replace", "test"]), "path": random.choice(POINTERS)}
        return [{**operation, "value": random.choice(VALUES)}]
    if method == "DELETE":
        keys = ["gracePeriodSeconds", "preconditions", "propagationPolicy", "dryRun", "orphanDependents"]
        return some(random, keys, 2)
    return strange_object(random)


@pytest.mark.parametrize("seed", [1, 2])
async def test_no_input_makes_the_server_fail(seed: int) -> None:
    random = Random(seed)
    async with running_server() as running:
        await running.admin.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, "default")
        headers = {"Authorization": f"Bearer {running.token}"}
        connector = aiohttp.TCPConnector(ssl=running.trust)
        async with aiohttp.ClientSession(running.url, headers=headers, connector=connector) as http:
            accepted = 0
            for _ in range(1000):
                resource = random.choice(SERVED)
                method = random.choice(["POST", "POST", "PUT", "PATCH", "DELETE"])
                subresource = random.choice(["", "", "", *resource.subresources])
                name = "" if method == "POST" and not subresource else f"f{random.randrange(6)}"
                content_type = random.choice(PATCHES) if method == "PATCH" else "application/json"
                body = json.dumps(strange_body(random, method, content_type))
                path = resource.path("default", name, subresource)
                sent = {"Content-Type": content_type}
                async with http.request(method, path, data=body, headers=sent) as response:
                    answer = await response.text()
                    accepted += response.status < 300
                    assert '"InternalError"' not in answer, (method, path, content_type, body, answer)
    assert accepted > 20, "some of it was fine"
