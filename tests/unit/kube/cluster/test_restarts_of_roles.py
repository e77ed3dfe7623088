"""When init starts a role again, and what it takes for a stranger."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from lastcall.kube.cluster.health.orphans import strangers
from lastcall.kube.cluster.health.restarts import (
    MAX_DELAY,
    Deaths,
    RestartBackoff,
    died_of,
    is_its_own_fault,
    restart_delay,
    serves_alone,
    where,
)
from lastcall.world.crash_guard import REQUEST


def test_the_first_restart_is_at_once_and_early_deaths_wait_longer_up_to_ten_seconds() -> None:
    assert [restart_delay(deaths) for deaths in range(5)] == [0.0, 0.01, 0.02, 0.04, 0.08]
    assert [restart_delay(deaths) for deaths in (10, 11, 12, 1000)] == [5.12, MAX_DELAY, MAX_DELAY, MAX_DELAY]


def test_a_role_that_had_lived_for_a_while_starts_over() -> None:
    backoff = RestartBackoff()
    assert [backoff.died(0.1) for _ in range(4)] == [0.0, 0.01, 0.02, 0.04]
    assert [backoff.died(10.0), backoff.died(0.1), backoff.died(9.9)] == [0.0, 0.01, 0.02]


@pytest.mark.loopback
def test_everything_but_pid_1_the_roles_and_their_descendants_is_a_stranger() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 60 & echo up; wait"], stdout=subprocess.PIPE) as shell:
        assert shell.stdout is not None
        shell.stdout.readline()
        children = Path(f"/proc/{shell.pid}/task/{shell.pid}/children").read_text().split()
        (child,) = [int(word) for word in children]
        with_role = strangers([shell.pid])
        without = strangers([])
        assert 1 not in without and {shell.pid, child, os.getpid()} <= set(without)
        assert not {shell.pid, child} & set(with_role) and os.getpid() in with_role
        os.kill(child, 9)
        shell.kill()


@pytest.mark.parametrize(
    ("code", "number", "own"),
    [
        (70, None, True),
        (1, None, True),
        (0, None, False),
        (None, signal.SIGSEGV, True),
        (None, signal.SIGABRT, True),
        (None, signal.SIGKILL, False),
        (None, signal.SIGTERM, False),
    ],
)
def test_whoever_kills_a_role_says_nothing_about_what_it_was_working_on(
    code: int | None, number: int | None, own: bool
) -> None:
    assert is_its_own_fault(code, number) is own


JOB = {"component": "job-controller", "key": "default/x"}
HUNG = {"seconds": 10.3, "cpuSeconds": 10.1, "takesLonger": "", "stack": ""}


def test_deaths_of_one_object_are_counted_and_two_of_them_are_told() -> None:
    deaths = Deaths()
    assert deaths.add({"exitCode": 70, "signal": None, "workingOn": JOB}, "now") == 1
    assert deaths.again_and_again() == []
    assert deaths.add({"exitCode": None, "signal": 9}, "now") == 0, "killed by somebody"
    assert deaths.last == "killed by SIGKILL"
    assert deaths.add({"exitCode": None, "signal": 9, "hung": HUNG, "workingOn": JOB}, "later") == 2
    assert (deaths.hangs, deaths.at) == (1, "later")
    assert deaths.last == "hung: its event loop did not turn for 10 s while working on default/x (job-controller)"
    (found,) = deaths.again_and_again()
    assert found == {**JOB, "deaths": 2}
    assert died_of("control-plane", found) == "control-plane died 2 times while working on default/x (job-controller)"


@pytest.mark.parametrize(
    ("component", "key", "told"),
    [
        ("API request", "POST /api/v1/pods", "died 3 times while answering POST /api/v1/pods"),
        ("scheduler", "", "died 3 times in scheduler"),
    ],
)
def test_what_a_role_dies_of_is_told_in_words(component: str, key: str, told: str) -> None:
    assert died_of("x", {"component": component, "key": key, "deaths": 3}) == f"x {told}"


def test_the_worst_is_told_first_and_the_memory_of_deaths_is_bounded() -> None:
    deaths = Deaths()
    for number in range(1000):
        deaths.add({"exitCode": 70, "workingOn": JOB}, "")
        deaths.add({"exitCode": 70, "workingOn": {"component": "c", "key": str(number)}}, "")
    deaths.add({"exitCode": 70, "workingOn": {"component": "c", "key": "999"}}, "")
    assert [(each["key"], each["deaths"]) for each in deaths.again_and_again()] == [("default/x", 1000), ("999", 2)]


@pytest.mark.parametrize(
    ("role", "turn", "deaths", "seconds"),
    [
        ("control-plane", JOB, 1, 0.0),
        ("control-plane", JOB, 2, 15.0),
        ("control-plane", JOB, 3, 30.0),
        ("control-plane", JOB, 1000, 120.0),
        ("control-plane", {"component": REQUEST, "key": "POST /"}, 5, 0.0),
        ("control-plane", None, 5, 0.0),
        ("node-1", JOB, 5, 0.0),
    ],
)
def test_a_control_plane_that_dies_of_its_controllers_answers_without_them_for_a_while(
    role: str, turn: dict[str, str] | None, deaths: int, seconds: float
) -> None:
    assert serves_alone(role, turn, deaths) == seconds


def test_where_a_loop_stood_is_what_is_shown_of_its_threads() -> None:
    stack = (
        'Thread 0x1 (most recent call first):\n  File "a.py", line 1 in waits\n\n'
        'Current thread 0x2 (most recent call first):\n  File "b.py", line 2 in spin\n  File "c.py", line 3 in main\n'
    )
    assert where({"hung": {"stack": stack}}) == '  File "b.py", line 2 in spin\n  File "c.py", line 3 in main'
    assert where({"hung": {"stack": ""}}) == ""
