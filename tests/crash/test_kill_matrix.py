"""SIGKILL of every process, at every stage: what the command says, and that nothing is left behind.

Stages: idle (Running, before the DELETE), preStop (the hook runs), drain (between SIGTERM and SIGKILL), teardown (the
container has ended, and the node, which was stopped meanwhile, has the network still to take down).
"""

import functools
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ordinary_user
import pytest
from pods import container, pod
from published_schema import problems
from run_command import InParallel, Lastcall, Result
from story import Story, stories
from tree import Tree, children, cmdline
from waiting import eventually

pytestmark = pytest.mark.real_kernel

# Long enough for a busy machine to find the process and kill it meanwhile.
APP = "trap 'sleep 3; exit 0' TERM; while true; do sleep 0.05; done # the app"
HOOK = "sleep 2; true # the hook"
PROBE = "sleep 0.4; true # the probe"
GRACE = 12

CLUSTER = ("init", "control-plane", "node", "shim")
"""Killing one of these is the end of the cluster, and the command lives to say so."""

CASES = [
    *((stage, target) for stage in ("idle", "preStop", "drain", "teardown") for target in ("front", *CLUSTER)),
    # In the teardown no container and no exec is left to be killed.
    *((stage, target) for stage in ("idle", "preStop", "drain") for target in ("PID 1", "exec")),
]


USERS_AND_CASES = [
    *((user, case) for user in ordinary_user.USERS for case in CASES),
    # Other ids change who may signal and remove what: the stages in which most is there.
    *((user, case) for user in ordinary_user.EVERY_USER if user not in ordinary_user.USERS
      for case in CASES if case[0] in ("preStop", "drain")),
]  # fmt: skip

CORE = {
    (ordinary_user.USERS[-1], case)
    for case in (
        ("idle", "front"), ("preStop", "init"), ("drain", "control-plane"), ("teardown", "node"), ("preStop", "shim"),
        ("drain", "PID 1"), ("preStop", "exec"),
    )
}  # fmt: skip
"""Each process once."""


def victim_pod() -> dict[str, Any]:
    probe = {"exec": {"command": ["sh", "-c", PROBE]}, "periodSeconds": 1, "timeoutSeconds": 3}
    app = container("app", APP, pre_stop=HOOK, readinessProbe=probe)
    return pod("victim", app, grace=GRACE, restartPolicy="Never")


def child_of_shim(tree: Tree, mark: str, timeout: float = 60.0) -> int:
    """The host's pid of the container's PID 1, or of an exec in it, by a word of its command line."""

    def found() -> list[int]:
        return [pid for pid in tree.containers() if any(mark in word for word in cmdline(pid))]

    return eventually(
        found, repr(mark), timeout, pause=0.005, said=lambda: [cmdline(pid) for pid in tree.containers()]
    )[0]


def reach(stage: str, command: Lastcall, tree: Tree) -> Callable[[], None]:
    """Wait for the stage; what is to be done after the kill."""
    if stage == "idle":
        command.wait_for("default/victim is Ready")
    elif stage == "preStop":
        command.wait_for("preStop exec starts")
        child_of_shim(tree, "the hook")
    else:
        command.wait_for("SIGTERM → PID")
    if stage != "teardown":
        return lambda: None
    os.kill(tree.roles["node"], signal.SIGSTOP)
    command.wait_for("app: exit 0")  # the shim has its wait status, and has written it down

    def go_on() -> None:
        if tree.roles["node"] in children(tree.init):
            os.kill(tree.roles["node"], signal.SIGCONT)

    return go_on


def target_pid(stage: str, target: str, tree: Tree) -> int:
    if target == "PID 1":
        return child_of_shim(tree, "the app")
    if target == "exec":
        return child_of_shim(tree, "the hook" if stage == "preStop" else "the probe")
    return tree.roles[target]


def kill(user: str, stage: str, target: str) -> Result:
    arguments = ["run", "-", "--output", "json", "--after", "1"]
    with Lastcall(arguments, manifests=[victim_pod()], user=user) as command:
        tree = command.tree()
        go_on = reach(stage, command, tree)
        pid = target_pid(stage, target, tree)
        os.kill(pid, signal.SIGKILL)
        if stage == "teardown" and target in CLUSTER and target != "init":
            # What is stopped goes on only when init knows of the death: it could bring the Pod to its end before.
            eventually(lambda: not Path(f"/proc/{pid}").exists(), f"{target} is reaped")
        go_on()
        return command.finish(60)


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest) -> Iterator[InParallel]:
    """Only what was selected is run."""
    wanted = [
        (item.callspec.params["user"], *item.callspec.params["case"])
        for item in request.session.items
        if item.fspath == request.fspath and hasattr(item, "callspec")
    ]
    running = InParallel({key: functools.partial(kill, *key) for key in wanted})
    yield running
    running.close()


def _named(value: str | tuple[str, str]) -> str:
    return value if isinstance(value, str) else f"{value[1]} killed at {value[0]}"


@pytest.mark.parametrize(
    ("user", "case"),
    [pytest.param(*each, marks=[pytest.mark.core] if each in CORE else []) for each in USERS_AND_CASES],
    ids=_named,
)
def test_a_killed_process_leaves_nothing_behind_and_is_told_of(
    user: str, case: tuple[str, str], results: InParallel
) -> None:
    ordinary_user.skip_without_newuidmap(user)
    stage, target = case
    result = results[user, stage, target]  # that nothing was left is checked when it ends
    if target == "front":
        assert result.status == -signal.SIGKILL
    elif target in CLUSTER:
        assert_cluster_died(result, stage, target)
    else:
        assert_story_of_the_container(result, stage, target)


def assert_cluster_died(result: Result, stage: str, target: str) -> None:
    role = {"node": "node-1", "shim": "shim-1"}.get(target, target)
    assert result.status == 1, result.err
    says = [line for line in result.err.splitlines() if line.startswith("lastcall: ")]
    assert len(says) == 1, result.err
    assert f"the cluster's {role} (pid " in says[0] and "was killed by SIGKILL" in says[0]
    if stage == "idle":
        assert result.out.strip() == "", "nothing had been deleted: there is no story"
        return
    document = result.document
    assert list(problems(document)) == []
    assert document["exitStatus"] == 1
    assert f"the cluster's {role}" in document["error"]
    (story,) = stories(document).values()
    if stage != "teardown":  # there, what is left of the cluster may still bring it to its end
        assert story["gone"] is None
    assert (story["gone"] is None) == ("The removal of the object was not seen." in story["notKnown"])
    if target != "init":  # nobody lives to record its death
        assert f"The cluster's {role} was killed by SIGKILL" in story.findings()["processDied"]
    if stage == "teardown":
        assert (story.container["exitCode"], story.container["signal"]) == (0, None), "the shim had recorded it"
    else:
        # Where a cluster has one user id the shim answers system calls. Without it the application's next one fails:
        # one that is draining may leave by itself.
        left = (target, stage, story.container["exitCode"]) == ("shim", "drain", 0)
        assert left or story["outcome"] == "unknown", story.brief()


def assert_story_of_the_container(result: Result, stage: str, target: str) -> None:
    assert list(problems(result.document)) == []
    (story,) = stories(result.document).values()
    container = story.container
    if target == "exec" and stage != "preStop":
        assert (result.status, container["exitCode"]) == (0, 0), "one lost probe is no failure"
        assert_exec_was_killed(story, PROBE)
        return
    assert result.status == result.document["exitStatus"] == 3
    if target == "exec":
        assert_exec_was_killed(story, HOOK)
        assert (container["preStop"]["outcome"], container["preStop"]["exitCode"]) == ("failed", 137)
        assert (container["exitCode"], container["reason"], container["signal"]) == (0, "Completed", None)
        assert story["outcome"] == "hookFailed"
        return
    assert (container["exitCode"], container["reason"], container["signal"]) == (137, "Error", "SIGKILL")
    assert (container["killedBy"], story["outcome"]) == ("unknown sender", "killed")
    assert "SIGKILL" not in [signal["signal"] for signal in story["signals"]], "it was not lastcall's"
    assert "(inferred)" in story.findings()["killedByOther"]
    if stage == "preStop":
        assert container["preStop"]["outcome"] == "interrupted", "an exec hook dies with its container"
    if stage == "idle":
        assert container["exitedAt"] < 0 and story["phase"] == "Failed"
        assert "before the DELETE" in story.findings()["killedByOther"]


def assert_exec_was_killed(story: Story, script: str) -> None:
    mine = [r["facts"]["execId"] for r in story.records("ExecStarted") if r["facts"]["argv"][-1] == script]
    ends = [r["facts"] for r in story.records("ExecExited") if r["facts"]["execId"] in mine]
    killed = [end["exitCode"] for end in ends if end["signal"] == "SIGKILL" and not end["killedBecause"]]
    assert killed and set(killed) == {137}, story.brief()  # one more may have died with the container
