"""What a PUT or an apply keeps of an object that it creates, and a POST does not. (Asked of a real 1.36.2.)"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from api_server import RunningServer, running_server

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import CONFIGMAPS, LEASES, NAMESPACES, STORAGECLASSES
from lastcall.kube.client.api import APPLY_PATCH

pytestmark = pytest.mark.loopback

Object = dict[str, Any]
ENDING = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5}
OWNED = {"f:metadata": {"f:deletionGracePeriodSeconds": {}, "f:deletionTimestamp": {}}}


@pytest.fixture
async def server() -> AsyncIterator[RunningServer]:
    async with running_server() as running:
        await running.admin.create(NAMESPACES, {"metadata": {"name": "ns"}})
        yield running


def ending(obj: Object) -> Object:
    return {key: obj["metadata"][key] for key in ENDING if key in obj["metadata"]}


async def test_an_apply_keeps_the_times_of_an_end_and_is_their_manager(server: RunningServer) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "generation": 7, **ENDING}}
    made = await server.admin.patch(CONFIGMAPS, "c", config, "ns", content_type=APPLY_PATCH, field_manager="m")
    assert ending(made) == ENDING
    assert [each["fieldsV1"] for each in made["metadata"]["managedFields"]] == [OWNED]
    await server.admin.delete(CONFIGMAPS, "c", "ns")
    with pytest.raises(StatusError, match="not found"):
        await server.admin.get(CONFIGMAPS, "c", "ns")


async def test_a_put_keeps_them_too(server: RunningServer) -> None:
    made = await server.admin.update(LEASES, {"metadata": {"name": "l", **ENDING}}, "ns")
    assert ending(made) == ENDING
    assert [each["fieldsV1"] for each in made["metadata"]["managedFields"]] == [OWNED]


async def test_a_post_does_not(server: RunningServer) -> None:
    given = {"metadata": {"name": "c", **ENDING}}
    made = await server.admin.create(CONFIGMAPS, given, "ns")
    assert ending(made) == {}
    assert "managedFields" not in made["metadata"]
    assert given["metadata"] == {"name": "c", **ENDING}


async def test_since_1_37_a_put_and_an_apply_create_as_a_post_does() -> None:
    """(kubernetes#138908)"""
    async with running_server(version="1.37") as running:
        await running.admin.create(NAMESPACES, {"metadata": {"name": "ns"}})
        put = await running.admin.update(LEASES, {"metadata": {"name": "l", **ENDING}}, "ns")
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", **ENDING}}
        applied = await running.admin.patch(CONFIGMAPS, "c", config, "ns", content_type=APPLY_PATCH, field_manager="m")
        assert ending(put) == ending(applied) == {}
        await running.admin.get(CONFIGMAPS, "c", "ns")


SAME = {"matchLabelExpressions": [{"key": "k", "values": ["a", "b"]}]}
TURNED = {"matchLabelExpressions": [{"key": "k", "values": ["b", "a"]}]}


@pytest.mark.parametrize(
    ("terms", "times"),
    [
        ([SAME, SAME, SAME], {1: 1, 2: 2}),
        ([TURNED, SAME, {}, {}], {1: 1, 2: 4, 3: 5}),
        ([{}], {0: 1}),
        ([{}, {}], {0: 2, 1: 3}),
        ([{}, SAME, SAME, {}], {0: 4, 2: 1, 3: 5}),
    ],
)
async def test_a_topology_is_told_of_once_for_each_that_is_the_same(
    server: RunningServer, terms: list[Object], times: dict[int, int]
) -> None:
    with pytest.raises(StatusError) as refused:
        await server.admin.create(
            STORAGECLASSES, {"metadata": {"name": "s"}, "provisioner": "p", "allowedTopologies": terms}
        )
    fields = [each["field"] for each in refused.value.status["details"]["causes"]]
    assert fields == [
        f"allowedTopologies[{index}].matchLabelExpressions" for index, count in times.items() for _ in range(count)
    ]
