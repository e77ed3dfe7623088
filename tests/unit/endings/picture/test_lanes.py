"""The lanes of a picture: who, what, and the phases of every container."""

from dataclasses import replace

import pytest

from lastcall.endings.picture.lanes import decide_picture
from lastcall.endings.story import ContainerFacts
from lastcall.records import kinds as k


def lane(picture, name, detail=None):
    (found,) = [each for each in picture.lanes if each.name == name and detail in (None, each.detail)]
    return found


def phases(picture, name="app"):
    bars = lane(picture, name).bars
    return [(bar.kind, round(bar.start, 1), None if bar.end is None else round(bar.end, 1)) for bar in bars]


def test_every_actor_and_container_has_a_lane_and_every_record_of_the_end_a_mark(tapes):
    ending = tapes["sigkill-1.36"]().ending()
    picture = decide_picture(ending)
    names = [each.name for each in picture.lanes]
    assert names == [
        "client", "API server", "EndpointSlice controller", "endpoint", "kubelet", "runtime", "app", "output",
    ]  # fmt: skip
    numbers = [mark.number for mark in picture.marks]
    assert numbers == list(range(1, len(numbers) + 1))
    assert [mark.entry.at for mark in picture.marks] == sorted(mark.entry.at for mark in picture.marks)
    shown = {mark.entry.record.kind for mark in picture.marks}
    assert shown >= {k.DELETE_SENT, k.DELETE_ACCEPTED, k.SIGNAL_SENT, k.PROCESS_EXITED, k.POD_GONE_SEEN}
    assert k.PROCESS_STARTED not in shown  # long before the DELETE


def test_signals_and_the_exit_lie_in_the_lane_of_the_container_with_their_words(tapes):
    picture = decide_picture(tapes["sigkill-1.36"]().ending())
    marks = [(mark.glyph, mark.label) for mark in lane(picture, "app").marks]
    assert marks == [("signal", "SIGTERM"), ("kill", "SIGKILL"), ("exit", "exit 137")]
    assert lane(picture, "output").lines == (2.7,)


def test_the_phases_of_a_container_follow_one_another(tapes):
    bars = phases(decide_picture(tapes["graceful"]().ending()))
    assert bars == [("running", -0.0, 0.0), ("preStop", 0.0, 3.0), ("running", 3.0, 3.0), ("drain", 3.0, 8.6)]


def test_what_lies_beyond_the_grace_period_is_a_phase_of_its_own(tapes):
    ending = tapes["sigkill-1.23"]().ending()
    kinds = [(kind, end) for kind, _, end in phases(decide_picture(ending)) if kind in ("drain", "overrun")]
    assert kinds == [("drain", 10.0), ("overrun", 12.0)]


def test_a_kill_right_at_the_end_of_the_grace_period_is_not_over_it(tapes):
    assert "overrun" not in [kind for kind, _, _ in phases(decide_picture(tapes["sigkill-1.36"]().ending()))]


def test_a_sidecar_waits_for_its_turn(new_tape):
    tape = new_tape()
    tape.pod = tape.pod.__class__(
        tape.uid, "default", "web", "n", "", (ContainerFacts("mesh", "sidecar"), ContainerFacts("app"))
    )
    for name, pid in (("mesh", 5), ("app", 7)):
        tape.started(name, pid)
    tape.accepted()
    tape.stop(0.01, 30)
    tape.exit(5.0, 0)
    tape.stop(5.01, 25, container="mesh", pid=5)
    tape.exit(6.0, 0, container="mesh", pid=5)
    bars = phases(decide_picture(tape.ending()), "mesh")
    assert bars == [("running", -0.0, 0.0), ("waiting", 0.0, 5.0), ("running", 5.0, 5.0), ("drain", 5.0, 6.0)]


def test_the_endpoint_is_what_it_was_before_and_after_the_delete(tapes, new_tape):
    tape = new_tape()
    facts = {"service": "web", "slice": "web-1", "address": "10.0.0.2", "serving": True}
    tape.add(-1.0, "endpointslice-controller", k.ENDPOINT_CHANGED, ready=True, terminating=False, **facts)
    tape.accepted()
    tape.endpoint(0.1)
    tape.add(0.2, "endpointslice-controller", k.ENDPOINT_CHANGED, **{**facts, "serving": False}, terminating=True)
    tape.over(1.0)
    (one, other) = [each for each in decide_picture(tape.ending()).lanes if each.kind == "endpoint"]
    assert [bar.kind for bar in one.bars] == ["ready", "terminating"]
    assert one.bars[0].start == pytest.approx(-0.002)
    assert (other.detail, [bar.kind for bar in other.bars]) == ("web 10.244.0.2", ["serving"])


def test_an_end_that_nobody_saw_stays_open(new_tape):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.stop(0.01, 30)
    tape.add(3.0, "init", k.PROCESS_DIED, role="node-1", pid=4, signal=9)
    assert phases(decide_picture(tape.ending()))[-1] == ("drain", 0.0, None)


def test_too_many_records_lose_their_details_first_and_it_is_counted(new_tape):
    tape = new_tape()
    tape.started()
    tape.accepted()
    for number in range(100):
        tape.add(0.1 + number / 100, "kubelet", k.STATUS_SENT, phase="Running")
    for number in range(60):
        tape.add(2 + number / 100, "kubelet", k.KILLING, message=f"no {number}")
    picture = decide_picture(tape.ending(), most=50)
    assert len(picture.marks) == 50
    assert picture.left_out == 112
    assert {mark.entry.record.kind for mark in picture.marks} == {k.DELETE_ACCEPTED, k.KILLING}


def test_an_empty_story_has_an_empty_picture(new_tape):
    picture = decide_picture(new_tape().ending())
    assert (picture.marks, picture.start, picture.end) == ([], 0.0, 0.0)


def living(new_tape, *runs):
    """A Pod that nothing ends: `runs` are (start, exit) of `app`, None for one that goes on."""
    tape = new_tape()
    tape.pod = replace(tape.pod, phase="Running")
    tape.add(0.0, "apiserver", k.POD_CREATED)
    for number, (begun, ended) in enumerate(runs):
        tape.add(begun, "runtime", k.PROCESS_STARTED, "app", pid=40 + number)
        if ended is not None:
            tape.add(ended, "runtime", k.PROCESS_EXITED, "app", exitCode=1, pid=40 + number)
    return decide_picture(tape.ending())


def test_what_runs_has_no_end_and_began_when_its_process_did(new_tape):
    assert phases(living(new_tape, (2.0, None))) == [("running", 2.0, None)]


def test_a_container_that_waits_to_be_restarted_does_not_run_meanwhile(new_tape):
    picture = living(new_tape, (1.0, 1.5), (11.0, 11.4), (31.0, None))
    assert phases(picture) == [("running", 1.0, 1.5), ("running", 11.0, 11.4), ("running", 31.0, None)]
    assert phases(living(new_tape, (1.0, 1.5), (11.0, 11.4))) == [("running", 1.0, 1.5), ("running", 11.0, 11.4)]


def test_a_sidecar_of_a_pod_that_lives_waits_for_nothing(new_tape):
    tape = new_tape()
    tape.pod = replace(tape.pod, phase="Running", containers=(ContainerFacts("app", "sidecar"),))
    tape.add(0.0, "apiserver", k.POD_CREATED)
    tape.add(1.0, "runtime", k.PROCESS_STARTED, "app", pid=40)
    tape.add(4.0, "apiserver", k.POD_STATUS_WRITTEN, phase="Running", ready=True)
    assert phases(decide_picture(tape.ending())) == [("running", 1.0, None)]
