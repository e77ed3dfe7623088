"""When the Endpoints controller looks at a Service, what it writes, and what it does when that is refused.

Source: pkg/controller/endpoint/endpoints_controller.go (addPod, updatePod, onServiceDelete, syncService).
"""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fake_api import ConnectionLost, FakeAPI, play

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import ENDPOINTS, EVENTS, PODS, SERVICES, Resource
from lastcall.world.world import World

OURS = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
FORBIDDEN = status_failure(403, "Forbidden", "no")
TERMINATING = status_failure(403, "Forbidden", "is being terminated", {"causes": [{"reason": "NamespaceTerminating"}]})

Test = Callable[[World, FakeAPI], Awaitable[None]]


def run(test: Test, *there: tuple[Resource, Object]) -> None:
    """Play a test with a controller that starts where some objects are there already."""
    play(lambda world, api, _: test(world, api), ["endpoints-controller"], there)


def service(name: str = "web", app: str | None = "web", **spec: Any) -> Object:
    selector = {} if app is None else {"selector": {"app": app}}
    known = {"clusterIP": "10.96.0.9", "ports": [{"port": 80}], **selector}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": known | spec}


def pod(name: str = "p", app: str = "web", *, ip: str = "10.0.0.1", ready: str = "True", **spec: Any) -> Object:
    return {
        "metadata": {"name": name, "namespace": "default", "labels": {"app": app}},
        "spec": {"nodeName": "n", "containers": [], **spec},
        "status": {"phase": "Running", "podIPs": [{"ip": ip}], "conditions": [{"type": "Ready", "status": ready}]},
    }


def endpoints(name: str, labels: Object) -> Object:
    return {"metadata": {"name": name, "namespace": "default", "labels": labels}}


def listed(api: FakeAPI) -> dict[str, list[str]]:
    """Return the ready addresses by the name of the Endpoints."""
    return {
        each["metadata"]["name"]: [
            address["ip"] for subset in each.get("subsets") or () for address in subset.get("addresses") or ()
        ]
        for each in api.of(ENDPOINTS)
    }


def calls(api: FakeAPI) -> list[str]:
    return [verb for verb, plural, _ in api.calls if plural == "endpoints" and verb not in ("list", "watch")]


def events(api: FakeAPI) -> list[tuple[str, str, str]]:
    return [(each["type"], each["reason"], each["message"]) for each in api.of(EVENTS)]


def test_a_service_has_endpoints_that_follow_its_pods() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        assert listed(api) == {"web": ["10.0.0.1"], "api": []}
        assert api.of(ENDPOINTS)[0]["metadata"]["labels"] == OURS
        api.put(PODS, pod(ready="False"))
        await world.clock.sleep(0.1)
        assert listed(api)["web"] == []
        api.put(PODS, pod(ip="10.0.0.7"))
        await world.clock.sleep(0.1)
        assert listed(api)["web"] == ["10.0.0.7"]
        api.remove(PODS, "p", "default")
        await world.clock.sleep(0.1)
        assert listed(api) == {"web": [], "api": []}
        assert calls(api) == ["create"] * 2 + ["update"] * 3

    run(test, (SERVICES, service()), (SERVICES, service("api", "api")), (PODS, pod()))


def test_changes_within_a_moment_are_one_write() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        for number in range(1, 4):
            api.put(PODS, pod(f"p{number}", ip=f"10.0.0.{number}"))
            await world.clock.sleep(0.005)
        assert calls(api) == ["create"]
        await world.clock.sleep(0.02)
        assert listed(api) == {"web": ["10.0.0.1", "10.0.0.2", "10.0.0.3"]} and calls(api) == ["create", "update"]

    run(test, (SERVICES, service()))


def test_a_change_that_is_in_no_endpoint_is_not_looked_at() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.remove(ENDPOINTS, "web", "default")  # whoever looks makes them anew
        await world.clock.sleep(0.001)
        assert calls(api) == ["create"] * 2
        del api.objects["endpoints", "default", "web"]  # told to nobody
        changed = pod()
        changed["status"]["phase"] = "Succeeded"
        api.put(PODS, changed)
        await world.clock.sleep(1)
        assert calls(api) == ["create"] * 2

    run(test, (SERVICES, service()), (PODS, pod()))


def test_a_pod_that_changes_labels_moves_between_services() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.put(PODS, pod(app="api"))
        await world.clock.sleep(0.1)
        assert listed(api) == {"web": [], "api": ["10.0.0.1"]}

    run(test, (SERVICES, service()), (SERVICES, service("api", "api")), (PODS, pod()))


def test_a_pod_that_gets_a_host_name_has_it_in_its_endpoint() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.put(PODS, pod(hostname="h", subdomain="web"))
        await world.clock.sleep(0.1)
        assert api.of(ENDPOINTS)[0]["subsets"][0]["addresses"][0]["hostname"] == "h"

    run(test, (SERVICES, service()), (PODS, pod()))


def test_a_service_without_a_selector_is_left_to_others() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        assert calls(api) == []
        api.put(SERVICES, service())
        await world.clock.sleep(0.001)
        assert listed(api) == {"web": ["10.0.0.1"]}

    run(test, (SERVICES, service(app=None)), (PODS, pod()))


def test_a_service_that_is_no_longer_one_of_ours_keeps_its_endpoints() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.put(SERVICES, service(app=None))
        await world.clock.sleep(0.1)
        assert listed(api) == {"web": ["10.0.0.1"]}

    run(test, (SERVICES, service()), (PODS, pod()))


def test_endpoints_go_with_their_service_and_those_that_somebody_made_for_none_stay() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        assert listed(api) == {"theirs": [], "web": [], "manual": []}, "what lost its Service meanwhile is gone"
        api.remove(SERVICES, "web", "default")
        api.remove(SERVICES, "manual", "default")
        await world.clock.sleep(0.001)
        assert listed(api) == {"theirs": []}
        api.put(ENDPOINTS, endpoints("web", {"mine": ""}))
        await world.clock.sleep(1)
        assert listed(api) == {"theirs": [], "web": []}, "the name is free again"

    manual = (SERVICES, service("manual", None)), (ENDPOINTS, endpoints("manual", {}))
    run(
        test, (ENDPOINTS, endpoints("left", OURS)), (ENDPOINTS, endpoints("theirs", {})), (SERVICES, service()), *manual
    )


def test_a_service_that_comes_back_at_once_keeps_its_endpoints() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.remove(SERVICES, "web", "default")
        api.put(SERVICES, service())
        await world.clock.sleep(0.1)
        assert listed(api) == {"web": ["10.0.0.1"]} and calls(api) == ["create"]

    run(test, (SERVICES, service()), (PODS, pod()))


def test_endpoints_that_somebody_deletes_are_made_again() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.remove(ENDPOINTS, "web", "default")
        await world.clock.sleep(0.001)
        assert listed(api) == {"web": ["10.0.0.1"]}

    run(test, (SERVICES, service()), (PODS, pod()))


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize(
    ("error", "is_said"),
    [
        (FORBIDDEN, True),
        (status_failure(409, "Conflict", "changed"), False),
        (status_failure(409, "AlreadyExists", "there"), False),
        (ConnectionLost("lost"), False),
    ],
)
def test_a_write_that_fails_is_tried_again_after_a_second_and_a_refusal_is_said(
    is_new: bool, error: Exception, is_said: bool
) -> None:
    async def test(world: World, api: FakeAPI) -> None:
        if not is_new:
            api.put(SERVICES, service())
            await world.clock.sleep(0.1)
        api.fail_next("create" if is_new else "update", "endpoints", error, times=2)
        api.put(PODS, pod())
        if is_new:
            api.put(SERVICES, service())
        await world.clock.sleep(0.9)
        assert listed(api).get("web", []) == []
        await world.clock.sleep(3)
        assert listed(api) == {"web": ["10.0.0.1"]}
        reason = "FailedToCreateEndpoint" if is_new else "FailedToUpdateEndpoint"
        what = "create endpoint for service" if is_new else "update endpoint"
        said = ("Warning", reason, f"Failed to {what} default/web: no")
        assert set(events(api)) == ({said} if is_said else set())

    run(test)


def test_in_a_namespace_that_goes_nothing_is_tried_again() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.fail_next("create", "endpoints", TERMINATING)
        api.put(SERVICES, service())
        await world.clock.sleep(100)
        assert calls(api) == ["create"] and events(api) == []

    run(test)


@pytest.mark.parametrize(("error", "tries"), [(status_failure(404, "NotFound", "gone"), 1), (FORBIDDEN, 2)])
def test_endpoints_that_are_gone_already_need_no_second_try(error: Exception, tries: int) -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.fail_next("delete", "endpoints", error)
        api.remove(SERVICES, "web", "default")
        await world.clock.sleep(10)
        assert calls(api) == ["create"] + ["delete"] * tries

    run(test, (SERVICES, service()))


def test_after_fifteen_more_tries_a_service_waits_for_its_next_change() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.fail_next("create", "endpoints", FORBIDDEN, times=1000)
        api.put(SERVICES, service())
        await world.clock.sleep(100_000)
        assert calls(api) == ["create"] * 16
        api.put(SERVICES, service(type="ClusterIP"))
        await world.clock.sleep(0.1)
        assert calls(api) == ["create"] * 17

    run(test)
