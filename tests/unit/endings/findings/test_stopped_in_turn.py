"""A master that stops its programs one after another needs the sum of their times; nobody sees when it signals each."""

from collections.abc import Callable
from typing import Any

import pytest
from ending_stories import NODE, begin, beside, killed, left, master_of_three, stops_in_turn

from lastcall.endings.story import Finding
from lastcall.records import kinds as k


def told(new_tape: Any, story: Callable[[Any], None]) -> dict[str, Finding]:
    tape = new_tape()
    story(tape)
    return {each.id: each for each in tape.ending().findings}


def test_programs_of_one_master_that_end_seconds_apart_may_need_the_sum_of_their_times(new_tape: Any) -> None:
    found = told(new_tape, stops_in_turn)
    assert "childrenNotSignalled" not in found
    killed_ = found["killed"]
    assert killed_.severity == "problem"
    assert (
        "Of the children of PID 1 (supervisord) that have handlers for SIGTERM, worker-2 (pid 12) ended after 4.0 s, "
        "and worker-0 (pid 10) and worker-1 (pid 11) still ran. Whether it stops them one after another was not "
        "observed."
    ) in killed_.text
    assert killed_.advice.startswith("If PID 1 (supervisord) stops them one after another, as supervisord does with ")
    assert "with 4.0 s for each that still ran, 12.1 s in all" in killed_.advice
    assert "terminationGracePeriodSeconds above 13" in killed_.advice
    assert "If it signals all at once, worker-0 (pid 10) and worker-1 (pid 11) need more than 10.0 s" in killed_.advice
    assert killed_.change is not None and killed_.change.patch == {"terminationGracePeriodSeconds": 30}


def test_each_program_that_had_ended_is_told_with_its_time(new_tape: Any) -> None:
    def two_of_three(tape: Any) -> None:
        begin(tape, ("supervisord", "-n"), exe="/usr/bin/supervisord")
        master_of_three(tape, 4.0, 9.0)
        killed(tape)

    found = told(new_tape, two_of_three)["killed"]
    assert "worker-2 (pid 12) ended after 4.0 s and worker-1 (pid 11) ended after 9.0 s, and worker-0" in found.text
    assert "with 5.0 s for each that still ran, 14.0 s in all" in found.advice


def test_a_master_below_an_init_is_named(new_tape: Any) -> None:
    def below_tini(tape: Any) -> None:
        begin(tape, ("tini", "--", "honcho"), exe="/usr/bin/tini")
        master_of_three(tape, 4.05, parent=2)
        master = NODE | {"pid": 39, "containerPid": 2, "name": "honcho"}
        for record in tape.records:
            if record.kind in (k.PROCESSES_AT_STOP, k.PROCESSES_LEFT):
                record.facts["processes"].insert(0, {**master, "parent": 1, "child": True})
        killed(tape)

    assert "Of the children of honcho (pid 2) that have" in told(new_tape, below_tini)["killed"].text


def story(*ends: float, exe: str = "/usr/bin/supervisord", **change: Any) -> Callable[[Any], None]:
    """Change the first program of those that were left."""

    def told_so(tape: Any) -> None:
        begin(tape, (exe,), exe=exe)
        master_of_three(tape, *ends)
        for record in tape.records:
            if record.kind in (k.PROCESSES_AT_STOP, k.PROCESSES_LEFT):
                record.facts["processes"][0].update(change)
        killed(tape)

    return told_so


def nobody_listed_the_processes(tape: Any) -> None:
    stops_in_turn(tape)
    tape.records[:] = [each for each in tape.records if each.kind != k.PROCESSES_AT_STOP]


def one_ended_that_came_later(tape: Any) -> None:
    begin(tape)
    beside(tape, NODE)
    end = {"pid": 50, "containerPid": 50, "name": "late", "disposition": "handled", "exitCode": 0, "signal": None}
    tape.add(4.0, "runtime", k.CHILD_ENDED, "app", **end, secondsBefore=0.0)
    left(tape, {**NODE, "child": True})
    killed(tape)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(story(), id="none had ended"),
        pytest.param(story(0.05), id="one ended at once: the others take longer"),
        pytest.param(story(1.5), id="there was time for more than two of its kind"),
        pytest.param(story(4.0, 4.1), id="two ended together: they were signalled together"),
        pytest.param(story(4.0, disposition="default"), id="one has no handler"),
        pytest.param(story(4.0, parent=11), id="one is the child of another"),
        pytest.param(story(4.0, exe="/usr/bin/dumb-init"), id="an init signals the whole group"),
        pytest.param(story(4.0, exe="/bin/bash"), id="a shell signals nobody"),
        pytest.param(nobody_listed_the_processes, id="whose children they are is not known"),
        pytest.param(one_ended_that_came_later, id="the one that ended was not there at the signal"),
    ],
)
def test_nothing_is_said_of_turns_where_the_ends_do_not_show_them(new_tape: Any, other: Callable[[Any], None]) -> None:
    assert all("one after another" not in each.text for each in told(new_tape, other).values())
