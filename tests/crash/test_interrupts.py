"""Ctrl-C once and twice at every stage, and its relatives: a message, the right status, a clean machine."""

import functools
import os
import signal
import time
from collections.abc import Callable, Iterator

import ordinary_user
import pytest
from pods import container, pod
from run_command import InParallel, Lastcall, Result
from tree import Tree, children
from waiting import eventually

pytestmark = pytest.mark.real_kernel

SAYS = "lastcall: Ctrl-C: tearing down the cluster"
AT_ONCE = "lastcall: stopped at once; the kernel ends the cluster"

NEVER_READY = {"exec": {"command": ["false"]}, "periodSeconds": 1}
DRAINS = "trap 'sleep 3; exit 0' TERM; while true; do sleep 0.05; done"
VICTIM = pod("victim", container("app", DRAINS, pre_stop="sleep 3; true"), grace=15)
"""Its end takes long enough for a busy machine to interrupt it meanwhile."""
WAITING = pod("victim", container("app", readinessProbe=NEVER_READY))

STAGES = ("starting", "waiting for Ready", "Ready", "in preStop", "draining", "tearing down", "kept")
DELETED = ("in preStop", "draining", "tearing down")


def await_init(command: Lastcall) -> None:
    ended = command.process.poll
    eventually(lambda: children(command.pid) or ended() is not None, "init", said=command.said, pause=0.0005)
    assert ended() is None, command.said()


def reach(stage: str, command: Lastcall) -> Callable[[], None]:
    """Wait for the stage; what to do after the signal."""
    if stage == "starting":
        await_init(command)
        return lambda: None
    tree = command.tree()
    wanted = {
        "waiting for Ready": "created default/victim",
        "Ready": "default/victim is Ready",
        "in preStop": "preStop exec starts",
        "draining": "SIGTERM → PID",
        "tearing down": "SIGTERM → PID",
        "kept": "The cluster stays up until Ctrl-C",
    }
    command.wait_for(wanted[stage])
    return hold_the_teardown(command, tree) if stage == "tearing down" else lambda: None


def hold_the_teardown(command: Lastcall, tree: Tree) -> Callable[[], None]:
    """The node is stopped until the app has ended: all that is left to do is the teardown."""
    os.kill(tree.roles["node"], signal.SIGSTOP)
    command.wait_for("exit 0")

    def go_on() -> None:
        if tree.roles["node"] in children(tree.init):
            os.kill(tree.roles["node"], signal.SIGCONT)

    return go_on


def interrupt(user: str, stage: str, times: int, number: int = signal.SIGINT) -> Result:
    manifest = WAITING if stage == "waiting for Ready" else VICTIM
    arguments = ["run", "-", "--after", "30" if stage == "Ready" else "0.1", *(["--keep"] if stage == "kept" else [])]
    with Lastcall(arguments, manifests=[manifest], user=user) as command:
        go_on = reach(stage, command)
        for _ in range(times):
            command.interrupt(number)
            time.sleep(0.002)  # between two keystrokes
        go_on()
        return command.finish(60)


CASES = [(stage, times) for stage in STAGES for times in (1, 2)]


@pytest.fixture(scope="module")
def results() -> Iterator[InParallel]:
    jobs = {
        (user, stage, times): functools.partial(interrupt, user, stage, times)
        for stage, times in CASES
        for user in ordinary_user.USERS
    }
    running = InParallel(jobs)
    yield running
    running.close()


@pytest.mark.parametrize("times", [1, 2], ids=["once", "twice"])
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("user", ordinary_user.USERS)
def test_ctrl_c_ends_with_a_message_and_a_clean_machine(user: str, stage: str, times: int, results: InParallel) -> None:
    result = results[user, stage, times]  # that nothing was left is checked when it ends
    says = [line for line in result.err.splitlines() if line.startswith("lastcall: ")]
    if stage == "kept" and times == 1:
        assert (result.status, says) == (0, []), "Ctrl-C is the way to end a cluster that was kept"
        return
    if stage == "kept" and result.status == 0:
        return  # the first one had ended it before the second came
    assert result.status == 130, result.err
    assert says[-1:] in ([[SAYS]] if times == 1 else [[SAYS], [AT_ONCE]]), result.err
    if stage in DELETED and times == 1:
        assert "DELETE accepted" in result.out, "what was told while it happened stays"
    if stage in ("starting", "waiting for Ready", "Ready"):
        assert "DELETE accepted" not in result.out


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_sigterm_and_sighup_end_in_order_too(number: int, status: int) -> None:
    result = interrupt(ordinary_user.USERS[-1], "draining", 1, number)
    assert result.status == status
    assert f"{signal.Signals(number).name}: tearing down the cluster" in result.err
