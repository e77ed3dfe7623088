"""Events that are written right after the status that they explain."""

import asyncio
from typing import Any

import pytest

from lastcall.experiment.reasons.object_events import (
    LONGEST_SECONDS,
    last_events_of,
    what_refuses_the_delete,
    what_refuses_the_deletes,
    with_fixes,
)
from lastcall.kube.api import PODS, StatusError
from lastcall.kube.client.api import ListResult
from lastcall.world.clock import Clock, monotonic
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

HOPELESS = {
    "metadata": {"name": "p", "namespace": "default", "uid": "u"},
    "status": {"containerStatuses": [{"name": "app", "state": {"waiting": {"reason": "ErrImagePull"}}}]},
}
PENDING = {"metadata": HOPELESS["metadata"], "status": {"phase": "Pending"}}
TOLD: dict[str, Any] = {"type": "Warning", "reason": "Failed", "message": "Failed to pull image"}


class Server:
    """Has each Event from its second on."""

    def __init__(self, clock: Clock, events: list[tuple[float, dict[str, Any]]]) -> None:
        self.clock = clock
        self.events = events
        self.began = monotonic(clock)

    async def list(self, *_: Any, field_selector: str = "") -> ListResult:
        assert field_selector == "involvedObject.uid=u"
        seconds = monotonic(self.clock) - self.began
        return ListResult([event for at, event in self.events if at <= seconds], "1")


def last_events(pod: dict[str, Any], events: list[tuple[float, dict[str, Any]]]) -> tuple[list[str], float]:
    async def main(world: World) -> tuple[list[str], float]:
        server = Server(world.clock, events)
        found = await last_events_of(server, world.clock, pod)  # type: ignore[arg-type]
        return [event["message"] for event in found], monotonic(world.clock) - server.began

    return run_virtual(main)


def test_what_explains_a_hopeless_pod_is_waited_for():
    pulling = {"type": "Normal", "reason": "Pulling", "message": "Pulling"}
    second = {**TOLD, "message": "Error: ErrImagePull"}
    told, seconds = last_events(HOPELESS, [(0, pulling), (0.02, TOLD), (0.08, second)])
    assert told == ["Pulling", "Failed to pull image", "Error: ErrImagePull"]
    assert seconds < LONGEST_SECONDS


def test_an_event_that_does_not_come_is_waited_for_a_second_at_most():
    told, seconds = last_events(HOPELESS, [])
    assert (told, round(seconds, 1)) == ([], LONGEST_SECONDS)


def test_a_pod_for_which_there_is_hope_is_told_of_at_once():
    assert last_events(PENDING, [(0, TOLD)]) == (["Failed to pull image"], 0.0)


class Refusing:
    """Refuses every DELETE, and has no configuration of webhooks."""

    async def delete(self, *_: Any, **more: Any) -> None:
        assert more["dry_run"] is True
        message = 'admission webhook "policy.example.com" denied the request: keep it'
        raise StatusError({"code": 403, "reason": "Forbidden", "message": message})

    async def list(self, *_: Any, **more: Any) -> ListResult:
        return ListResult([], "1")


def test_of_several_pods_those_are_named_whose_delete_is_refused():
    ending = {**PENDING, "metadata": {**PENDING["metadata"], "name": "b", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    found = asyncio.run(what_refuses_the_deletes(Refusing(), [PENDING, ending]))  # type: ignore[arg-type]
    (lines,) = found.values()
    assert [key.rpartition("/")[2] for key in found] == [PENDING["metadata"]["name"]]
    assert any("webhook policy.example.com" in line for line in lines)


def test_an_error_of_a_webhook_has_its_fix_and_another_has_none():
    denied = 'admission webhook "policy.example.com" denied the request: keep it'
    for message, fixes in ((denied, 1), ("etcdserver: request timed out", 0)):
        told = asyncio.run(with_fixes(Refusing(), StatusError({"code": 500, "message": message})))  # type: ignore[arg-type]
        assert told.startswith(message) and told.count("fix: ") == fixes


@pytest.mark.parametrize(("metadata", "refused"), [({}, True), ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, False)])
def test_a_delete_that_was_accepted_is_not_called_refused(metadata: dict[str, Any], refused: bool):
    pod = {**PENDING, "metadata": {**PENDING["metadata"], **metadata}}
    lines = asyncio.run(what_refuses_the_delete(Refusing(), PODS, pod))  # type: ignore[arg-type]
    assert any("the API server refuses its DELETE" in line for line in lines) is refused
    assert bool(lines) is refused
