"""The event recorder: what reaches the API of what a component says."""

import json
import re
from pathlib import Path

import pytest
from fake_api import ConnectionLost, FakeAPI

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.resources import EVENTS
from lastcall.kube.api.text.times import parse_rfc3339
from lastcall.kube.client.event_correlator import EventCorrelator
from lastcall.kube.client.events import EventRecorder
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

POD = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"name": "web", "namespace": "default", "uid": "u-1", "resourceVersion": "7"},
}


def with_recorder(test, component="kubelet", host="node-1", **options):
    async def main(world: World):
        api = FakeAPI(world)
        recorder = EventRecorder(api, world, component, host, **options)
        async with Tasks() as tasks:
            tasks.spawn(recorder.run(), name="events")
            try:
                return await test(world, api, recorder)
            finally:
                tasks.cancel()

    return run_virtual(main)


@pytest.mark.rule("node-semantics 23/field-path")
def test_an_event_has_the_fields_a_real_kubelet_writes():
    async def test(world, api, recorder):
        recorder.event(POD, "Normal", "Killing", "Stopping container web", field_path="spec.containers{web}")
        await recorder.drained()
        (event,) = api.of(EVENTS)
        name = event["metadata"].pop("name")
        assert re.fullmatch(r"web\.[0-9a-f]{16}", name)
        assert event["metadata"]["namespace"] == "default"
        del event["metadata"]
        assert event == {
            "kind": "Event",
            "apiVersion": "v1",
            "involvedObject": {
                "kind": "Pod",
                "namespace": "default",
                "name": "web",
                "uid": "u-1",
                "apiVersion": "v1",
                "resourceVersion": "7",
                "fieldPath": "spec.containers{web}",
            },
            "reason": "Killing",
            "message": "Stopping container web",
            "source": {"component": "kubelet", "host": "node-1"},
            "firstTimestamp": "2030-01-01T00:00:00Z",
            "lastTimestamp": "2030-01-01T00:00:00Z",
            "count": 1,
            "type": "Normal",
            "eventTime": None,
            "reportingComponent": "kubelet",
            "reportingInstance": "node-1",
        }

    with_recorder(test)


def test_the_caller_never_waits_and_the_order_is_kept():
    async def test(world, api, recorder):
        api.latency = 1.0
        for number in range(5):
            recorder.event(POD, "Normal", f"Reason{number}", "text")
        assert api.of(EVENTS) == []
        await recorder.drained()
        assert [e["reason"] for e in api.of(EVENTS)] == [f"Reason{n}" for n in range(5)]

    with_recorder(test)


@pytest.mark.rule("node-semantics 23/counts")
def test_a_component_may_have_its_events_written_a_moment_after_the_first_of_a_row():
    async def test(world, api, recorder):
        await world.clock.sleep(1)
        recorder.event(POD, "Normal", "Created", "Container created")
        await world.clock.sleep(0.006)
        recorder.event(POD, "Normal", "Started", "Container started")
        await world.clock.sleep(0.003)
        assert api.of(EVENTS) == [], "the Pod goes on first"
        await world.clock.sleep(0.002)
        await recorder.drained()
        assert [event["reason"] for event in api.of(EVENTS)] == ["Created", "Started"]

    with_recorder(test, hold_seconds=0.01)


def test_the_same_event_again_raises_count_and_last_timestamp_of_the_first():
    async def test(world, api, recorder):
        for _ in range(3):
            recorder.event(POD, "Warning", "BackOff", "Back-off restarting")
            await world.clock.sleep(10)
        (event,) = api.of(EVENTS)
        assert (event["count"], event["firstTimestamp"], event["lastTimestamp"]) == (
            3,
            "2030-01-01T00:00:00Z",
            "2030-01-01T00:00:20Z",
        )
        assert [call[0] for call in api.calls] == ["create", "patch", "patch"]

    with_recorder(test)


@pytest.mark.rule("node-semantics 23/counts")
def test_ten_different_messages_for_one_reason_become_one_combined_event():
    async def test(world, api, recorder):
        for number in range(12):
            recorder.event(POD, "Warning", "Failed", f"try {number}")
            await world.clock.sleep(1)
        events = api.of(EVENTS)
        assert [e["message"] for e in events] == [
            *[f"try {n}" for n in range(9)],
            "(combined from similar events): try 11",
        ]
        assert events[-1]["count"] == 3

    with_recorder(test)


def test_similar_events_with_more_than_ten_minutes_between_them_are_not_combined():
    async def test(world, api, recorder):
        for number in range(12):
            recorder.event(POD, "Warning", "Failed", f"try {number}")
            await world.clock.sleep(601)
        assert [e["message"] for e in api.of(EVENTS)] == [f"try {n}" for n in range(12)]

    with_recorder(test)


@pytest.mark.rule("node-semantics 23/counts")
def test_more_than_25_events_at_once_for_one_object_are_swallowed_and_one_comes_back_every_five_minutes():
    async def test(world, api, recorder):
        for number in range(40):
            recorder.event(POD, "Normal", f"Reason{number}", "text")
        await recorder.drained()
        assert len(api.of(EVENTS)) == 25
        other = {**POD, "metadata": {**POD["metadata"], "name": "other", "uid": "u-2"}}
        recorder.event(other, "Normal", "Started", "another object has its own budget")
        await recorder.drained()
        assert len(api.of(EVENTS)) == 26
        await world.clock.sleep(299)
        recorder.event(POD, "Normal", "TooSoon", "text")
        await world.clock.sleep(2)
        recorder.event(POD, "Normal", "InTime", "text")
        await recorder.drained()
        reasons = [e["reason"] for e in api.of(EVENTS)]
        assert "TooSoon" not in reasons
        assert reasons[-1] == "InTime"

    with_recorder(test)


def test_an_event_that_expired_is_made_anew_with_its_count():
    async def test(world, api, recorder):
        recorder.event(POD, "Warning", "BackOff", "again")
        await recorder.drained()
        (event,) = api.of(EVENTS)
        api.remove(EVENTS, event["metadata"]["name"], "default")
        recorder.event(POD, "Warning", "BackOff", "again")
        await recorder.drained()
        (event,) = api.of(EVENTS)
        assert event["count"] == 2

    with_recorder(test)


def test_a_server_that_is_away_is_tried_again_every_ten_seconds_and_nothing_is_lost():
    async def test(world, api, recorder):
        api.fail_next("create", "events", ConnectionLost("down"), times=3)
        recorder.event(POD, "Normal", "Pulled", "first")
        recorder.event(POD, "Normal", "Created", "second")
        await recorder.drained()
        assert [e["reason"] for e in api.of(EVENTS)] == ["Pulled", "Created"]
        assert 20 <= world.clock.monotonic_ns() / 1e9 <= 30
        assert recorder.dropped == 0

    with_recorder(test)


def test_an_event_the_server_refuses_is_dropped_and_the_next_one_written():
    async def test(world, api, recorder):
        api.fail_next("create", "events", status_failure(403, "Forbidden", "namespace is being terminated"))
        recorder.event(POD, "Normal", "Killing", "refused")
        recorder.event(POD, "Normal", "Stopped", "accepted")
        await recorder.drained()
        assert [e["reason"] for e in api.of(EVENTS)] == ["Stopped"]
        assert recorder.dropped == 1

    with_recorder(test)


def test_a_recorder_that_is_stopped_in_the_middle_of_a_write_goes_on_with_it():
    async def main(world: World):
        api = FakeAPI(world)
        api.fail_next("create", "events", ConnectionLost("down"))
        recorder = EventRecorder(api, world, "kubelet", "node-1")
        recorder.event(POD, "Normal", "Killing", "text")
        for _ in range(2):
            async with Tasks() as tasks:
                tasks.spawn(recorder.run(), name="events")
                await world.clock.sleep(0.001)
                tasks.cancel()
        (event,) = api.of(EVENTS)
        return event["count"]

    assert run_virtual(main) == 1


def test_a_queue_that_is_full_drops_and_counts():
    async def main(world: World):
        recorder = EventRecorder(FakeAPI(world), world, "kubelet")
        for number in range(1005):
            recorder.event(POD, "Normal", "R", str(number))
        return recorder.dropped

    assert run_virtual(main) == 5


def test_a_component_without_host_names_none():
    async def test(world, api, recorder):
        recorder.event(POD, "Normal", "Scheduled", "text")
        await recorder.drained()
        (event,) = api.of(EVENTS)
        assert event["source"] == {"component": "default-scheduler"}
        assert event["reportingInstance"] == ""

    with_recorder(test, "default-scheduler", "")


RECORDED = Path(__file__).with_name("recorded_events_crashloop.jsonl")


def test_the_correlator_counts_repeated_events_as_a_recorded_kubelet_did():
    """Every write of a Kubernetes 1.36.2 kubelet while a container crashed three times.

    Fed one plain Event for each, the correlator must come to the same counts, first times and kinds of writes.
    """
    correlator = EventCorrelator()
    repeated = 0
    for line in RECORDED.read_text().splitlines():
        record = json.loads(line)
        recorded = record["object"]
        plain = {
            **recorded,
            "metadata": {"name": "p.0", "namespace": "x"},
            "firstTimestamp": recorded["lastTimestamp"],
            "count": 1,
        }
        write = correlator.correlate(plain, parse_rfc3339(record["wall"]))
        assert write is not None
        assert write.event["count"] == recorded["count"]
        assert write.event["firstTimestamp"] == recorded["firstTimestamp"]
        assert (write.patch is not None) == (record["type"] == "MODIFIED")
        repeated += write.patch is not None
    assert repeated > 5


def test_two_components_that_speak_in_the_same_nanosecond_write_two_events():
    async def test(world, api, recorder):
        other = EventRecorder(api, world, "default-scheduler")
        async with Tasks() as tasks:
            tasks.spawn(other.run(), name="other events")
            other.event(POD, "Normal", "Scheduled", "Successfully assigned default/web to node-1")
            recorder.event(POD, "Warning", "FailedMount", "no such thing")
            recorder.event(POD, "Warning", "FailedMount", "no such thing")
            await recorder.drained()
            await other.drained()
            tasks.cancel()
        assert sorted((event["reason"], event["message"], event["count"]) for event in api.of(EVENTS)) == [
            ("FailedMount", "no such thing", 2),
            ("Scheduled", "Successfully assigned default/web to node-1", 1),
        ]

    with_recorder(test)


def test_an_event_whose_answer_got_lost_is_not_written_twice():
    async def test(world, api, recorder):
        create = api.create
        lost = []

        async def lose_the_first_answer(*arguments, **options):
            stored = await create(*arguments, **options)
            if not lost:
                lost.append(stored)
                raise ConnectionLost("in the middle of the answer")
            return stored

        api.create = lose_the_first_answer
        recorder.event(POD, "Normal", "Killing", "Stopping container web")
        await recorder.drained()
        assert [event["reason"] for event in api.of(EVENTS)] == ["Killing"]
        assert recorder.dropped == 0

    with_recorder(test)
