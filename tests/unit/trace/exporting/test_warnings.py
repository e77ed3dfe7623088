"""Which Events are written on a killed Pod, and how."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from story_samples import samples
from waiting import until

from lastcall.endings.story import Finding
from lastcall.kube.api.errors import already_exists, status_failure
from lastcall.kube.api.resources import EVENTS
from lastcall.kube.client.api import ConnectionLost
from lastcall.trace.exporting.event_writer import EventWriter
from lastcall.trace.exporting.warnings import MOST_MESSAGE, warnings_of
from lastcall.world.tasks import Tasks
from lastcall.world.world import World


@pytest.fixture(autouse=True, scope="module")
def _stories():
    """They have an event loop of their own: they are made before the tests' loops."""
    samples()


KILLED = {"code": 137, "signal": "SIGKILL", "killed_by": "grace over"}
STAMP = "2026-11-25T00:00:00Z"


def test_a_kill_is_told_with_the_fix():
    (event,) = warnings_of(samples()["sigkill"][0], STAMP)
    assert (event["reason"], event["type"]) == ("KilledAfterGracePeriod", "Warning")
    assert event["involvedObject"]["fieldPath"] == "spec.containers{app}"
    assert "fix: " in event["message"] and "terminationGracePeriodSeconds" in event["message"]


def test_a_pod_that_ended_by_itself_gets_none():
    for name in ("graceful", "sidecar", "overrun"):
        assert warnings_of(samples()[name][0], STAMP) == []


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (KILLED, "KilledAfterGracePeriod"),
        ({**KILLED, "killed_by": "out of memory"}, "KilledOutOfMemory"),
        ({**KILLED, "ended_by": "livenessProbe"}, "KilledByLivenessProbe"),
        ({**KILLED, "killed_by": "unknown sender"}, "KilledBySIGKILL"),
    ],
)
def test_the_reason_says_who_killed(ending_of, container, fields, reason):
    assert [each["reason"] for each in warnings_of(ending_of(container(**fields)), STAMP)] == [reason]


def test_the_same_kill_has_the_same_name_and_another_one_has_not(ending_of, container):
    one = warnings_of(ending_of(container("a", **KILLED), container("b", **KILLED)), STAMP)
    again = warnings_of(ending_of(container("a", **KILLED), container("b", **KILLED)), "2027-01-01T00:00:00Z")
    names = [each["metadata"]["name"] for each in one]
    assert names == [each["metadata"]["name"] for each in again]
    assert len(set(names)) == 2
    (other,) = warnings_of(ending_of(container("a", **KILLED), uid="u-2"), STAMP)
    assert other["metadata"]["name"] not in names
    (long,) = warnings_of(ending_of(container("a", **KILLED), name="p" * 253), STAMP)
    assert len(long["metadata"]["name"]) <= 253


def test_a_long_story_loses_its_middle_and_not_its_fix(ending_of, container):
    finding = Finding("killed", "problem", "t" * 5000, "app", "a longer terminationGracePeriodSeconds")
    (event,) = warnings_of(ending_of(container(**KILLED), findings=(finding,)), STAMP)
    assert len(event["message"]) <= MOST_MESSAGE
    assert event["message"].endswith("fix: a longer terminationGracePeriodSeconds")


def test_a_finding_without_advice_has_the_general_fix(ending_of, container):
    finding = Finding("killed", "problem", "app still ran.", "app")
    (event,) = warnings_of(ending_of(container(**KILLED), findings=(finding,)), STAMP)
    assert event["message"] == "app still ran. fix: End faster, or raise terminationGracePeriodSeconds."


def test_a_probe_that_restarted_it_before_does_not_explain_the_kill_at_its_end(ending_of, container):
    probe = Finding("livenessProbeKilled", "problem", "a probe failed.", "app", "Correct the probe.")
    killed = Finding("killed", "problem", "app still ran.", "app")
    (event,) = warnings_of(ending_of(container(**KILLED), findings=(probe, killed)), STAMP)
    assert event["message"].startswith("app still ran. fix: End faster")
    by_probe = container(**{**KILLED, "ended_by": "livenessProbe"})
    (event,) = warnings_of(ending_of(by_probe, findings=(probe, killed)), STAMP)
    assert "fix: Correct the probe." in event["message"]


class Server:
    """Stores Events; `answers` come before that, one for each request."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.stored = {}
        self.requests = 0

    async def create(self, resource, obj, namespace="", **_):
        assert resource is EVENTS
        self.requests += 1
        if self.answers:
            raise self.answers.pop(0)
        name = obj["metadata"]["name"]
        if name in self.stored:
            raise already_exists("events", name)
        self.stored[name] = obj
        return obj


class Clock:
    """Does not wait."""

    def wall_ns(self):
        return 10**18

    def monotonic_ns(self):
        return 0

    async def sleep(self, seconds):
        await asyncio.sleep(0)


@asynccontextmanager
async def writing(server, notes=None):
    writer = EventWriter(World(clock=Clock()), server, (notes if notes is not None else []).append)
    async with Tasks() as tasks:
        running = tasks.spawn(writer.run(), name="events")
        yield writer
        assert await writer.flush(10)
        running.cancel()


async def test_an_event_is_written_once_however_often_it_is_told():
    server = Server()
    for _ in range(2):  # two processes, as after a change of leaders
        async with writing(server) as writer:
            for _ in range(3):
                writer.ended(samples()["sigkill"][0])
    assert len(server.stored) == 1
    assert writer.delivered() == {"sent": 0, "there": 3, "failed": 0, "dropped": 0, "waiting": 0}


async def test_a_server_that_goes_away_is_tried_again():
    server = Server(ConnectionLost("gone"), status_failure(503, "ServiceUnavailable", "starting"))
    async with writing(server) as writer:
        writer.ended(samples()["sigkill"][0])
    assert server.requests == 3 and len(server.stored) == 1


@pytest.mark.loopback
async def test_without_the_right_it_is_told_once_and_ends_nothing():
    notes = []
    server = Server(*[status_failure(403, "Forbidden", "events is forbidden")] * 2)
    async with writing(server, notes) as writer:
        for _ in range(2):
            writer.ended(samples()["sigkill"][0])
        await until(lambda: server.requests == 2)
    assert len(notes) == 1 and "kubectl create clusterrole" in notes[0]
    assert writer.delivered()["failed"] == 2


async def test_a_server_that_stays_away_costs_no_more_than_the_bound():
    server = Server(*[ConnectionLost("gone")] * 100_000)
    writer = EventWriter(World(clock=Clock()), server, [].append)
    for _ in range(2000):
        writer.ended(samples()["sigkill"][0])
    told = writer.delivered()
    assert (told["waiting"], told["dropped"]) == (1000, 1000)
