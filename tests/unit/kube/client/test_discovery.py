"""What a server says of its kinds: as a real 1.36.2 said it, and as older ones do."""

import json
from pathlib import Path

import pytest

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.resources import DEPLOYMENTS, HORIZONTALPODAUTOSCALERS, PODS, STORAGECLASSES, PartialResource
from lastcall.kube.client.api import ConnectionLost
from lastcall.kube.client.discovery import Discovered, discover

RECORDED = (Path(__file__).parent / "recorded_discovery.json").read_text().replace("csistorage", "somestorage")
"""With a kind that lastcall does not know."""
CORE = {"kind": "APIVersions", "versions": ["v1"]}
VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
PODS_OF_V1 = {
    "kind": "APIResourceList",
    "groupVersion": "v1",
    "resources": [
        {"name": "pods", "kind": "Pod", "namespaced": True, "verbs": VERBS},
        {"name": "pods/status", "kind": "Pod", "namespaced": True, "verbs": ["get", "patch", "update"]},
        {"name": "componentstatuses", "kind": "ComponentStatus", "namespaced": False, "verbs": ["get", "list"]},
    ],
}


def server(answers: dict):
    asked: list[str] = []

    async def request(method: str, path: str, *, accept: str) -> bytes:
        asked.append(path)
        answer = answers[path]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, bytes) else json.dumps(answer).encode()

    return request, asked


def found(discovered: Discovered) -> dict[str, tuple[bool, bool]]:
    """plural and apiVersion → (preferred, one of ours)"""
    return {
        f"{each.resource.plural} {each.resource.api_version}": (
            each.preferred,
            not isinstance(each.resource, PartialResource),
        )
        for each in discovered.kinds
    }


async def test_a_server_that_aggregates_is_asked_twice_and_a_stale_group_is_named() -> None:
    request, asked = server({"/api": {**CORE, "versions": []}, "/apis": RECORDED.encode()})
    discovered = await discover(request)
    assert asked == ["/api", "/apis"]
    kinds = found(discovered)
    assert kinds["deployments apps/v1"] == (True, True)
    assert kinds["somestoragecapacities storage.k8s.io/v1"] == (True, False)
    assert kinds["horizontalpodautoscalers autoscaling/v2"] == (True, True)
    assert kinds["horizontalpodautoscalers autoscaling/v1"] == (False, True)
    ours = {each.resource for each in discovered.kinds}
    assert {DEPLOYMENTS, HORIZONTALPODAUTOSCALERS, STORAGECLASSES} <= ours
    (capacity,) = (each for each in discovered.kinds if each.resource.plural == "somestoragecapacities")
    assert (capacity.resource.kind, capacity.resource.namespaced) == ("CSIStorageCapacity", True)
    assert {"list", "watch", "delete"} <= capacity.verbs
    assert discovered.error == (
        "unable to retrieve the complete list of server APIs: broken.example.com/v1: stale GroupVersion discovery: "
        "broken.example.com/v1"
    )


async def test_an_older_server_is_asked_group_by_group_and_one_that_fails_leaves_the_rest() -> None:
    groups = {
        "kind": "APIGroupList",
        "groups": [
            {
                "name": "example.com",
                "versions": [{"version": "v1beta1"}, {"version": "v1"}],
                "preferredVersion": {"version": "v1"},
            },
            {"name": "broken.example.com", "versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}},
        ],
    }
    widgets = {"resources": [{"name": "widgets", "kind": "Widget", "namespaced": True, "verbs": VERBS}]}
    beta = {"resources": [*widgets["resources"], {"name": "old", "kind": "Old", "namespaced": False, "verbs": VERBS}]}
    request, _ = server(
        {
            "/api": CORE,
            "/api/v1": PODS_OF_V1,
            "/apis": groups,
            "/apis/example.com/v1": widgets,
            "/apis/example.com/v1beta1": beta,
            "/apis/broken.example.com/v1": status_failure(503, "ServiceUnavailable", "service unavailable"),
        }
    )
    discovered = await discover(request)
    assert found(discovered) == {
        "pods v1": (True, True),
        "componentstatuses v1": (True, False),
        "widgets example.com/v1": (True, False),
        "widgets example.com/v1beta1": (False, False),
        "old example.com/v1beta1": (True, False),
    }
    assert discovered.kinds[0].resource is PODS
    assert discovered.failed == {"broken.example.com/v1": "service unavailable"}


@pytest.mark.parametrize("answer", [b"no JSON", b"[]"])
async def test_an_answer_that_is_none_is_a_lost_connection(answer: bytes) -> None:
    request, _ = server({"/api": answer})
    with pytest.raises(ConnectionLost):
        await discover(request)
