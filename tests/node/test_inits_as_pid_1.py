"""Debian's tini and dumb-init as PID 1: they wait for the stop signal, pass it on, and are no pain to anybody."""

import functools
import os
import shutil
from collections.abc import Iterator
from typing import Any

import ordinary_user
import pytest
from pods import container, pod
from run_command import InParallel, Lastcall, Result
from story import Story, stories

pytestmark = pytest.mark.real_kernel

HOST = {"name": "host", "hostPath": {"path": "/"}}
"""They are the host's programs, with the host's libraries."""

EXITS = "trap 'echo TERM; exit 0' TERM; echo start; while true; do sleep 0.05; done"
IGNORES = "trap '' TERM; echo start; while true; do sleep 0.05; done"
KEEPS_IT = "sleep 600; true"
"""A shell as tini's child: the signal ends the shell, and its own child is killed with PID 1."""


def under(init: str, script: str, name: str, grace: int = 5, options: str = "") -> dict[str, Any]:
    mount = {"name": "host", "mountPath": "/host", "readOnly": True}
    command = ["chroot", "/host", f"/usr/bin/{init}", *options.split(), "--", "/bin/sh", "-c", script]
    return pod(name, container("app", command=command, volumeMounts=[mount]), grace=grace, volumes=[HOST])


PODS = [
    under("tini", "exec sleep 600", "tini-default"),
    under("tini", EXITS, "tini-handler"),
    under("tini", IGNORES, "tini-ignored", grace=2),
    under("tini", KEEPS_IT, "tini-child-alone"),
    under("dumb-init", "exec sleep 600", "dumb-default"),
    under("dumb-init", EXITS, "dumb-handler"),
    under("dumb-init", IGNORES, "dumb-ignored", grace=2),
]


def ended(user: str) -> Result:
    with Lastcall(["run", "-", "--output", "json", "--after", "3"], manifests=PODS, user=user) as command:
        return command.finish(120)


@pytest.fixture(scope="module")
def results() -> Iterator[InParallel]:
    for name in ("tini", "dumb-init"):
        if shutil.which(name) is None:
            (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{name} is not on PATH: apt-get install {name}")
    running = InParallel({user: functools.partial(ended, user) for user in ordinary_user.USERS})
    yield running
    running.close()


@pytest.fixture(params=ordinary_user.USERS)
def told(request: pytest.FixtureRequest, results: InParallel) -> dict[str, Story]:
    result = results[request.param]
    assert result.status == 3, result.err
    return stories(result.document)


SILENT = ("stopSignalNotHandled", "childIgnoresSignal", "killed", "zombies", "shellKeepsSignal")


@pytest.mark.parametrize("init", ["tini", "dumb"])
def test_a_program_that_ends_on_term_does_so_under_an_init(told: dict[str, Story], init: str) -> None:
    story = told[f"{init}-default"]
    state = story.record("ProcessSignalState")["facts"]
    assert state["disposition"] == "handled", story.brief()
    assert state["taken"] == ("sigwait" if init == "tini" else "handler")
    assert story.container["exitCode"] == 143 and story["outcome"] == "graceful"
    assert not set(SILENT) & set(story.findings()) and "childrenNotSignalled" not in story.findings(), story.findings()


@pytest.mark.parametrize("init", ["tini", "dumb"])
def test_a_program_that_handles_term_gets_it_from_an_init_and_there_is_nothing_to_say(
    told: dict[str, Story], init: str
) -> None:
    story = told[f"{init}-handler"]
    assert [line["text"] for line in story["output"]][-1:] == ["TERM"]
    assert (story.container["exitCode"], story["outcome"]) == (0, "graceful")
    assert not set(SILENT) & set(story.findings()), story.findings()


@pytest.mark.parametrize("init", ["tini", "dumb"])
def test_a_child_that_ignores_term_is_named_and_not_the_init(told: dict[str, Story], init: str) -> None:
    story = told[f"{init}-ignored"]
    findings = story.findings()
    assert story["outcome"] == "killed"
    assert "passes SIGTERM on, but sh (pid " in findings["childIgnoresSignal"], findings
    assert "ignores SIGTERM (SigIgn in /proc)" in findings["childIgnoresSignal"]
    assert "stopSignalNotHandled" not in findings and "shellKeepsSignal" not in findings


def test_the_shell_that_keeps_tini_s_signal_from_its_program_is_named(told: dict[str, Story]) -> None:
    """Only a kernel that tells wait statuses (Linux 6.15) shows who was killed with PID 1."""
    story = told["tini-child-alone"]
    assert story.container["exitCode"] == 143
    if any(each["facts"]["processes"] for each in story.records("ProcessesLeft")):
        text = story.findings()["childrenNotSignalled"]
        assert "(tini) has a shell below it, sh (pid 2), which does not pass SIGTERM on to what it runs: sleep" in text
