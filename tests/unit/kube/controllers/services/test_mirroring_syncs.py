"""What the mirroring controller writes for Endpoints of a Service without a selector, alone beside an API.

Source: pkg/controller/endpointslicemirroring/{endpointslicemirroring_controller,reconciler}.go.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fake_api import FakeAPI, play

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import ENDPOINTS, ENDPOINTSLICES, EVENTS, SERVICES
from lastcall.kube.controllers.services.mirroring import MIRRORED_BY
from lastcall.world.world import World

MANAGED_BY, SERVICE_NAME = "endpointslice.kubernetes.io/managed-by", "kubernetes.io/service-name"


def run(test: Callable[[World, FakeAPI], Awaitable[None]]) -> None:
    play(lambda world, api, _: test(world, api), ["endpointslice-mirroring-controller"], settle=1)


def service(**spec: Any) -> Object:
    return {"metadata": {"name": "web", "namespace": "default"}, "spec": {"ports": [{"port": 80}], **spec}}


def endpoints(*addresses: str) -> Object:
    subset = {"addresses": [{"ip": each} for each in addresses], "ports": [{"port": 80}]}
    return {"metadata": {"name": "web", "namespace": "default"}, "subsets": [subset]}


def held(of: Object, name: str, managed_by: str, *addresses: str, **meta: Any) -> Object:
    """A slice that has the Endpoints as its controller."""
    owner = {"apiVersion": "v1", "kind": "Endpoints", "name": "web", "uid": of["metadata"]["uid"], "controller": True}
    labels = {MANAGED_BY: managed_by, SERVICE_NAME: "web"}
    return {
        "metadata": {"name": name, "namespace": "default", "labels": labels, "ownerReferences": [owner], **meta},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [each]} for each in addresses],
        "ports": [{"port": 80}],
    }


def mirrored(api: FakeAPI) -> list[list[str]]:
    return [
        [address for each in slice_["endpoints"] or () for address in each["addresses"]]
        for slice_ in api.of(ENDPOINTSLICES)
        if slice_["metadata"]["labels"][MANAGED_BY] == MIRRORED_BY and "deletionTimestamp" not in slice_["metadata"]
    ]


def writes(api: FakeAPI) -> list[str]:
    return [verb for verb, plural, _ in api.calls if plural == "endpointslices" and verb not in ("list", "watch")]


def test_slices_of_somebody_else_stay_although_they_have_the_same_owner() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        owner = api.put(ENDPOINTS, endpoints("192.0.2.1"))
        other = api.put(ENDPOINTSLICES, held(owner, "other", "somebody.example", "198.51.100.1"))
        api.put(SERVICES, service())
        await world.clock.sleep(1)
        assert mirrored(api) == [["192.0.2.1"]]
        api.remove(SERVICES, "web", "default")
        await world.clock.sleep(1)
        assert mirrored(api) == []
        assert [each["metadata"]["resourceVersion"] for each in api.of(ENDPOINTSLICES)] == [
            other["metadata"]["resourceVersion"]
        ]

    run(test)


def test_a_slice_that_is_being_deleted_is_not_written_to() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        owner = api.put(ENDPOINTS, endpoints("192.0.2.1"))
        going = held(owner, "going", MIRRORED_BY, "192.0.2.1", deletionTimestamp="2030-01-01T00:00:00Z")
        api.put(ENDPOINTSLICES, going)
        api.put(SERVICES, service())
        await world.clock.sleep(1)
        assert (mirrored(api), writes(api)) == ([["192.0.2.1"]], ["create"])

    run(test)


def test_a_slice_that_somebody_changed_is_written_anew_and_one_that_shows_the_endpoints_is_not() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.put(ENDPOINTS, endpoints("192.0.2.1"))
        api.put(SERVICES, service())
        await world.clock.sleep(1)
        (made,) = api.of(ENDPOINTSLICES)
        assert writes(api) == ["create"]
        api.put(ENDPOINTSLICES, {**made, "endpoints": [{"addresses": ["192.0.2.9"]}]})
        await world.clock.sleep(1)
        assert (mirrored(api), writes(api)) == ([["192.0.2.1"]], ["create", "update"])
        api.remove(ENDPOINTSLICES, made["metadata"]["name"], "default")
        await world.clock.sleep(1)
        assert (mirrored(api), writes(api)) == ([["192.0.2.1"]], ["create", "update", "create"])

    run(test)


@pytest.mark.parametrize("gone", ["deleted", "being deleted"])
def test_the_slices_of_endpoints_that_go_are_left_to_the_garbage_collector(gone: str) -> None:
    async def test(world: World, api: FakeAPI) -> None:
        made = api.put(ENDPOINTS, endpoints("192.0.2.1"))
        api.put(SERVICES, service())
        await world.clock.sleep(1)
        if gone == "deleted":
            api.remove(ENDPOINTS, "web", "default")
        else:
            api.put(ENDPOINTS, {**made, "metadata": {**made["metadata"], "deletionTimestamp": "2030-01-01T00:00:00Z"}})
        api.put(SERVICES, service(selector={"app": "web"}))
        await world.clock.sleep(1)
        assert writes(api) == ["create"]

    run(test)


@pytest.mark.parametrize(("count", "skipped"), [(1000, 0), (1001, 1)])
def test_a_thousand_addresses_of_a_subset_are_mirrored_and_the_others_are_said(count: int, skipped: int) -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.put(ENDPOINTS, endpoints(*(f"192.0.{number // 250}.{number % 250 + 1}" for number in range(count))))
        api.put(SERVICES, service())
        await world.clock.sleep(1)
        assert sum(map(len, mirrored(api))) == 1000
        text = f"A max of 1000 addresses can be mirrored to EndpointSlices per Endpoints subset. {skipped} addresses"
        found = [(each["type"], each["reason"], each["message"]) for each in api.of(EVENTS)]
        assert found == ([("Warning", "TooManyAddressesToMirror", f"{text} were skipped")] if skipped else [])

    run(test)


CAUSES = {"causes": [{"reason": "NamespaceTerminating"}]}


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (status_failure(403, "Forbidden", "is being terminated", CAUSES), False),
        (status_failure(404, "NotFound", "gone"), False),
        (status_failure(409, "Conflict", "the object has been modified"), True),
        (status_failure(500, "InternalError", "boom"), True),
    ],
)
def test_a_write_that_fails_is_tried_again_unless_there_is_nothing_to_write_to(error: Exception, again: bool) -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.fail_next("create", "endpointslices", error)
        api.put(ENDPOINTS, endpoints("192.0.2.1"))
        api.put(SERVICES, service())
        await world.clock.sleep(30)
        assert writes(api) == ["create"] * (1 + again)

    run(test)
