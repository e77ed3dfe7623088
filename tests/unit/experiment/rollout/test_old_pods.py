"""How old Pods ended: a kill is said, whatever became of the requests."""

from typing import Any

import pytest

from lastcall.endings import Change, Finding, fix
from lastcall.experiment.rollout.old_pods import killed_sentence, old_pod_rows, stories
from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.traffic.causes import Cause
from lastcall.traffic.lives import PodLife
from lastcall.traffic.lost_request import LostRequest
from lastcall.traffic.moments import Moment
from lastcall.traffic.outcome import Kind, Outcome

AT = Moment.at


@pytest.mark.parametrize(
    ("life", "took", "ended_by"),
    [
        ({"term": AT(10.0), "exited": AT(11.2)}, "1.2 s", "its exit on the stop signal"),
        ({"term": AT(10.0), "exited": AT(14.0), "killed": True}, "4.0 s", "SIGKILL: its grace period was over"),
        ({"exited": AT(10.5)}, "0.5 s", "its own exit, before a stop signal"),
        ({"term": AT(12.0), "exited": AT(10.5)}, "0.5 s", "its own exit, before a stop signal"),
        ({"term": AT(10.0)}, "not seen", "not seen"),
        ({"term": AT(10.0), "exited": Moment(12.0, 13.0)}, "2.0 to 3.0 s", "its exit on the stop signal"),
        ({"term": AT(10.0), "exited": Moment(12.0, float("inf"))}, "not seen", "its exit on the stop signal"),
    ],
)
def test_an_old_pod_has_a_row(life: dict[str, Any], took: str, ended_by: str) -> None:
    assert old_pod_rows([PodLife("u", "web-1", deleted=AT(10.0), **life)]) == [("web-1", took, ended_by)]


def test_pods_that_nobody_deleted_have_none() -> None:
    assert old_pod_rows([PodLife("u", "web-2")]) == []


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ([], ""),
        (["web-1"], "web-1 was ended by SIGKILL"),
        (["web-1", "web-2"], "web-1 and 1 other old Pod were ended by SIGKILL"),
        (["web-1", "web-2", "web-3"], "web-1 and 2 other old Pods were ended by SIGKILL"),
    ],
)
def test_old_pods_that_were_killed_are_named(names: list[str], sentence: str) -> None:
    lives = [PodLife(name, name, deleted=AT(1.0), killed=True) for name in names]
    lives += [PodLife("x", "new", killed=True), PodLife("y", "well", deleted=AT(1.0))]
    assert killed_sentence(lives).startswith(sentence)
    assert bool(killed_sentence(lives)) == bool(sentence)


def lost(kind: Kind, cause: Cause = "killed", pod: str = "web-1") -> LostRequest:
    outcome = Outcome(1, kind, 9.0, 9.0, 14.1, 1, 0.0, 200, "10.0.0.1", "reset after bytes")
    return LostRequest(outcome, 6.1, pod, "", cause, ("", ""), "unknown")


def test_of_held_connections_the_story_advises_what_the_verdict_does_and_substitutes_are_a_notes() -> None:
    told: list[tuple[float, str, dict[str, Any]]] = [
        (0.5, kinds.IMAGE_SUBSTITUTED, {"image": "python:3", "substitute": "localhost/python"}),
        (1.0, kinds.POD_CREATED, {"namespace": "d", "name": "web-1", "containers": [{"name": "app"}]}),
        (1.1, kinds.PROCESS_STARTED, {"pid": 7}),
        (8.0, kinds.DELETE_ACCEPTED, {"gracePeriodSeconds": 4}),
        (10.0, kinds.STOP_REQUESTED, {"timeoutSeconds": 4}),
        (10.0, kinds.PROCESS_SIGNAL_STATE, {"pid": 7, "signal": "SIGTERM", "disposition": "handled"}),
        (10.0, kinds.SIGNAL_SENT, {"signal": "SIGTERM", "pid": 7, "why": "StopContainer"}),
        (14.0, kinds.SIGNAL_SENT, {"signal": "SIGKILL", "pid": 7, "why": "grace over"}),
        (14.1, kinds.PROCESS_EXITED, {"pid": 7, "exitCode": 137, "signal": "SIGKILL"}),
    ]
    records = [
        Record(f"r{n}", round(at * 1e9), 0, "a", kind, "u", "" if kind == kinds.POD_CREATED else "app", facts=facts)
        for n, (at, kind, facts) in enumerate(told)
    ]
    lives = [PodLife("u", "web-1", deleted=AT(8.0))]

    def killed(*lost: LostRequest) -> Finding:
        (story,) = stories(records, lives, "1.37", 0, lost)
        return next(each for each in story.findings if each.id == "killed")

    assert "terminationGracePeriodSeconds above" in killed().advice
    held = killed(lost("fresh", "held open"))
    assert (held.advice, held.change) == (fix("staleConnection"), Change(program="closeIdleConnections"))
    streams = killed(lost("stream"), lost("websocket"), lost("fresh", "cut off"), lost("slow", pod="web-2"))
    assert (streams.advice, streams.change) == (
        fix("killed", "streams", signal="SIGTERM"),
        Change(program="endStreams"),
    )
    assert killed(lost("stream"), lost("slow")) == killed()
    (story,) = stories(records, lives, "1.37")
    assert "imageSubstituted" not in [each.id for each in story.findings]
