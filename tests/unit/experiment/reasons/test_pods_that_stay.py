"""Why a Pod stays that is being deleted: its Node is read in every place that says it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from fake_api import FakeAPI

from lastcall.errors import NotReady
from lastcall.experiment.existing.changes import still_there
from lastcall.experiment.existing.run import why_left
from lastcall.experiment.ready import Objects
from lastcall.experiment.ready.wait import own_lines, story_lines
from lastcall.experiment.ready.waiting import Waiting
from lastcall.experiment.reasons.object_events import in_short_of, wait_on
from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import NODES, PODS
from lastcall.manifests.applying import Named
from lastcall.testing.dump import dump
from lastcall.testing.namespace import what_holds
from lastcall.world.clock import Clock, now
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

DOWN = "waits for node node-1, whose container runtime does not answer"
LOST = "waits for node node-1, which is not Ready"
POD: dict[str, Any] = {
    "metadata": {
        "name": "web-1",
        "namespace": "shop",
        "uid": "u1",
        "deletionTimestamp": "2030-01-01T00:10:00Z",
        "deletionGracePeriodSeconds": 600,
    },
    "spec": {"nodeName": "node-1", "containers": [{"name": "app"}]},
    "status": {"phase": "Running", "containerStatuses": [{"name": "app", "state": {"running": {}}}]},
}


def node(ready: str, message: str = "") -> dict[str, Any]:
    condition = {"type": "Ready", "status": ready, "message": message}
    return {"metadata": {"name": "node-1"}, "status": {"conditions": [condition]}}


class Silent(FakeAPI):
    """A cluster whose containers print nothing."""

    async def pod_log(self, *_: Any, **__: Any) -> AsyncIterator[bytes]:
        for chunk in ():
            yield chunk


def asked(text: Callable[[FakeAPI], Awaitable[str]], *nodes: dict[str, Any]) -> str:
    async def main(world: World) -> str:
        api = Silent(world)
        api.put(PODS, POD)
        for each in nodes:
            api.put(NODES, each)
        return await text(api)

    return run_virtual(main)


class View:
    """What a `Waiting` looks at: one Pod that is ending."""

    def __init__(self, api: FakeAPI) -> None:
        self.client = api

    def failed(self) -> str:
        return ""

    def is_hopeless(self, _: object) -> bool:
        return False

    async def pods(self) -> list[Any]:
        return self.client.of(PODS)

    async def late(self) -> list[Any]:
        return []

    async def catch_up(self) -> None: ...

    async def printed(self, _: object) -> list[str]:
        return []

    async def pause(self, clock: Clock) -> None:
        await clock.sleep(1.0)


async def error_of_waiting(api: Any) -> str:
    async def missing() -> str:
        return "web-1 is there"

    with pytest.raises(NotReady) as error:
        await Waiting(View(api), api.world.clock, (), 1.5, lambda *_: None, "1.36").until(missing, "the end")  # type: ignore[arg-type]
    return str(error.value)


async def shown_while_waiting(api: Any) -> str:
    shown: list[str] = []
    waiting = Waiting(View(api), api.world.clock, (), 1.5, lambda *said: shown.append(said[2]), "1.36")  # type: ignore[arg-type]
    api.put(PODS, {**POD, "metadata": {**POD["metadata"], "deletionTimestamp": "2020-01-01T00:00:00Z"}})
    with pytest.raises(NotReady):
        await waiting.until(lambda: waiting_for("web-1"), "the end")
    return "\n".join(shown)


async def waiting_for(what: str) -> str:
    return what


async def lines_of_wait(api: Any) -> str:
    wait = await wait_on(api, POD, at=now(api.world.clock))
    assert wait is not None
    return "\n".join(wait.lines)


async def own(api: Any) -> str:
    return "\n".join(await own_lines(Objects(api, api.world.clock), Named(PODS, "shop", "web-1")))


async def story(api: Any) -> str:
    return "\n".join((await story_lines(Objects(api, api.world.clock), Named(PODS, "shop", "web-1")))[-3:])


async def dumped(api: Any) -> str:
    return await dump(Objects(api, api.world.clock), "shop")


async def held(api: Any) -> str:
    return (await what_holds(api, Named(PODS, "shop", "web-1"), POD)).text


async def of_a_run_on_an_existing_cluster(api: Any) -> str:
    before = {**POD, "metadata": {"name": "web-1", "namespace": "shop", "uid": "u1"}}
    return "\n".join(await why_left(api, api.world.clock, [before]))


async def of_a_change_that_is_undone(api: Any) -> str:
    return "\n".join(await still_there(api, api.world.clock, "Pod web-1", PODS, POD, 120.0))


async def in_short(api: Any) -> str:
    return await in_short_of(api, POD)


PLACES = [
    error_of_waiting,
    shown_while_waiting,
    lines_of_wait,
    own,
    story,
    dumped,
    held,
    of_a_run_on_an_existing_cluster,
    of_a_change_that_is_undone,
    in_short,
]


@pytest.mark.parametrize("place", PLACES)
def test_a_node_that_is_not_ready_is_named_as_what_keeps_the_pod(place: Callable[[FakeAPI], Awaitable[str]]) -> None:
    assert DOWN in asked(place, node("False", "container runtime is down"))
    assert LOST in asked(place, node("Unknown", "Kubelet stopped posting node status."))
    ready = asked(place, node("True"))
    assert "waits for node" not in ready and "app" in ready
    assert "waits for node" not in asked(place)  # no Node can be read


def test_a_node_that_may_not_be_read_is_no_reason_to_fail() -> None:
    async def forbidden(api: Any) -> str:
        api.fail_next(
            "get", "nodes", StatusError({"code": 403, "reason": "Forbidden", "message": "nodes is forbidden"})
        )
        return await lines_of_wait(api)

    assert "Still running: app" in asked(forbidden, node("False"))


def test_of_a_pod_that_is_gone_or_was_replaced_nothing_is_said() -> None:
    async def replaced(api: Any) -> str:
        before = {**POD, "metadata": {**POD["metadata"], "uid": "u0"}}
        gone = {**POD, "metadata": {**POD["metadata"], "name": "other"}}
        return "\n".join(await why_left(api, api.world.clock, [before, gone]))

    assert asked(replaced, node("False")) == ""
