"""What only the node can see: PID 1's signal mask, every signal sent, what a hook printed, what it was not run for."""

import functools
from collections.abc import Iterator

import ordinary_user
import pytest
from pods import EXITS_ON_TERM, container, pod
from run_command import InParallel, Lastcall, Result, lastcall
from story import Story, stories

pytestmark = [pytest.mark.real_kernel, pytest.mark.core]

HOST = {"name": "host", "hostPath": {"path": "/"}}
"""busybox cannot block a signal; the host's env(1) can, and its library is not in the image."""

SHARED = {"name": "shared", "mountPath": "/shared"}


def probe(*command: str) -> dict[str, object]:
    return {"exec": {"command": list(command)}, "periodSeconds": 1}


PODS = [
    pod("no-handler", container("app") | {"command": ["sleep", "600"]}, grace=2),
    pod("handler"),
    pod("ignores", container("app", "trap '' TERM; while true; do sleep 1; done"), grace=2),
    pod(
        "blocks",
        container(
            "app",
            "exec chroot /host /usr/bin/env --block-signal=TERM sleep 600",
            volumeMounts=[{"name": "host", "mountPath": "/host", "readOnly": True}],
            readinessProbe=probe("grep", "-q", "sleep", "/proc/1/comm"),
        ),
        grace=2,
        volumes=[HOST],
    ),
    pod("hook-fails", container("app", pre_stop="echo to stdout; echo to stderr >&2; sleep 0.2; exit 7")),
    pod("hook-has-no-program", container("app", lifecycle={"preStop": {"exec": {"command": ["/no/such/program"]}}})),
    pod(
        "hook-for-nobody",
        # The Pod has to be Ready once before it ends, however long the start of both takes.
        container(
            "app",
            "until test -e /shared/ready; do sleep 0.05; done; sleep 2",
            pre_stop="true",
            volumeMounts=[SHARED],
        ),
        container("other", readinessProbe=probe("touch", "/shared/ready"), volumeMounts=[SHARED]),
        restartPolicy="Never",
        volumes=[{"name": "shared", "emptyDir": {}}],
    ),
    pod("hook-outlives", container("app", pre_stop="sleep 60"), grace=1),
    pod("exits-5", container("app", "trap 'exit 5' TERM; while true; do sleep 0.05; done")),
    pod(
        "two",
        container("first", pre_stop="echo bye; sleep 3"),
        container("second", "trap 'echo last words >&2; exit 0' TERM; while true; do sleep 0.05; done"),
    ),
]


def facts(user: str) -> Result:
    with Lastcall(["run", "-", "--output", "json", "--after", "5"], manifests=PODS, user=user) as command:
        command.tree()
        result = command.finish(90)
        print(f"{user}: CapEff {command.credentials.cap_eff}")
        return result


@pytest.fixture(scope="module")
def results() -> Iterator[InParallel]:
    running = InParallel({user: functools.partial(facts, user) for user in ordinary_user.USERS})
    yield running
    running.close()


@pytest.fixture(params=ordinary_user.USERS)
def told(request: pytest.FixtureRequest, results: InParallel) -> dict[str, Story]:
    result = results[request.param]
    assert result.status == 3, result.err
    return stories(result.document)


def test_a_pid_1_without_a_handler_does_not_get_term_and_the_story_says_so(told: dict[str, Story]) -> None:
    story = told["no-handler"]
    state = story.record("ProcessSignalState")["facts"]
    assert (state["disposition"], state["signal"]) == ("default", "SIGTERM")
    assert "SIGTERM" not in state["caught"] + state["ignored"] + state["blocked"]
    assert state["exe"].endswith("busybox")
    assert "no handler for SIGTERM" in story.findings()["stopSignalNotHandled"]
    assert story.container["stopSeconds"] >= 2, "the whole grace period"
    assert (story.container["exitCode"], story.container["killedBy"]) == (137, "grace over")


def test_a_handler_is_seen_before_term_is_sent(told: dict[str, Story]) -> None:
    story = told["handler"]
    state = story.record("ProcessSignalState")
    assert state["facts"]["disposition"] == "handled"
    assert "SIGTERM" in state["facts"]["caught"]
    assert state["at"] <= story.at("SignalSent", signal="SIGTERM")
    assert state["facts"]["pid"] == story.record("ProcessStarted")["facts"]["pid"]
    assert [line["text"] for line in story["output"]] == ["TERM"]
    assert "stopSignalNotHandled" not in story.findings()


def test_an_ignored_term_is_told_from_a_missing_handler(told: dict[str, Story]) -> None:
    story = told["ignores"]
    state = story.record("ProcessSignalState")["facts"]
    assert state["disposition"] == "ignored" and "SIGTERM" in state["ignored"]
    assert "ignores SIGTERM" in story.findings()["stopSignalNotHandled"]


def test_a_blocked_term_is_told_from_an_ignored_one(told: dict[str, Story]) -> None:
    story = told["blocks"]
    state = story.record("ProcessSignalState")["facts"]
    assert state["disposition"] == "blocked" and "SIGTERM" in state["blocked"], story.brief()
    assert "blocks SIGTERM" in story.findings()["stopSignalNotHandled"]


def test_what_a_hook_printed_and_its_exit_code_are_on_record(told: dict[str, Story]) -> None:
    story = told["hook-fails"]
    hook = story.record("PreStopFinished")["facts"]
    assert (hook["outcome"], hook["exitCode"]) == ("failed", 7)
    assert (hook["stdout"].strip(), hook["stderr"].strip()) == ("to stdout", "to stderr")
    assert 0.2 <= hook["seconds"] <= story.at("PreStopFinished") - story.at("PreStopStarted") + 1
    assert story.container["preStop"]["outcome"] == "failed"
    assert story["outcome"] == "hookFailed"
    assert "exit code 7" in story.findings()["hookFailed"]
    story.assert_order(
        ("PreStopFinished", {}), ("SignalSent", {"signal": "SIGTERM"}), ("ProcessExited", {"exitCode": 0})
    )


def test_a_hook_without_its_program_fails_and_the_stop_goes_on(told: dict[str, Story]) -> None:
    story = told["hook-has-no-program"]
    assert story.container["preStop"]["outcome"] == "failed"
    assert "/no/such/program" in story.container["preStop"]["detail"]
    assert story.container["exitCode"] == 0


def test_a_hook_of_a_container_that_has_ended_is_not_run_and_that_is_a_record(told: dict[str, Story]) -> None:
    story = told["hook-for-nobody"]
    skipped = story.record("PreStopSkipped", "app")["facts"]
    assert skipped["why"] == "the container had already ended"
    assert not story.records("PreStopStarted")
    assert "was not run" in story.findings()["hookNotRun"]


def test_a_hook_that_outlives_the_grace_period_is_told_with_both_its_ends(told: dict[str, Story]) -> None:
    story = told["hook-outlives"]
    assert story.container["preStop"]["outcome"] == "outlived"
    assert 1 <= story.container["preStop"]["seconds"] < 30, "it would have been 60"
    assert story.record("StopRequested")["facts"]["floor"] is True
    story.assert_order(
        ("PreStopFinished", {"outcome": "outlived"}),
        ("SignalSent", {"signal": "SIGTERM"}),
        ("ProcessExited", {}),
    )
    assert story["outcome"] == "hookFailed"


def test_an_exit_code_of_its_own_is_no_kill(told: dict[str, Story]) -> None:
    story = told["exits-5"]
    assert (story["outcome"], story["phase"]) == ("graceful", "Failed")
    assert (story.container["exitCode"], story.container["reason"]) == (5, "Error")
    assert "exitCodeNotZero" in story.findings()


def test_containers_of_a_pod_are_told_apart(told: dict[str, Story]) -> None:
    story = told["two"]
    first, second = story["containers"]
    assert (first["name"], second["name"]) == ("first", "second")
    assert first["preStop"]["output"] == "bye\n" and second["preStop"] is None
    assert second["exitedAt"] < first["exitedAt"], "hooks do not hold other containers up"
    lines = {(line["container"], line["stream"], line["text"]) for line in story["output"]}
    assert ("second", "stderr", "last words") in lines and ("first", "stdout", "TERM") in lines
    pids = {each["container"]: each["pid"] for each in story["signals"]}
    assert pids == {name: story.record("ProcessStarted", name)["facts"]["pid"] for name in ("first", "second")}


def test_every_signal_is_on_record_with_its_time_pid_and_reason(told: dict[str, Story]) -> None:
    for story in told.values():
        for signal in story["signals"]:
            assert signal["pid"] > 1
            assert signal["why"] in ("StopContainer", "grace over", "StopPodSandbox", "exec timeout", "caller gone")
        for sent in story.records("SignalSent"):
            assert sent["evidence"] == "observed" and sent["actor"] == "runtime"


def test_the_substitute_for_an_image_is_named(told: dict[str, Story]) -> None:
    for story in told.values():
        assert story.records("ImageSubstituted", image="busybox:1.36")
        assert "busybox:1.36 is not available" in story.findings()["imageSubstituted"]


def test_a_forced_delete_says_that_the_containers_outlived_the_object() -> None:
    slow = container("app", "trap 'sleep 0.5; exit 0' TERM; while true; do sleep 0.05; done")
    result = lastcall(["run", "-", "--output", "json", "--grace", "0"], manifests=[pod("forced", slow)])
    (story,) = stories(result.document).values()
    assert story.at("ObjectRemoved") < story.at("ProcessExited")
    assert "goneBeforeContainers" in story.findings()
    assert story["graceSeconds"] == 0


def test_an_image_of_the_user_s_own_is_not_substituted() -> None:
    with Lastcall(["image", "from-host", "mine:1"]) as made:
        assert made.process.wait(60) == 0, made.said()
        home = made.home
        own = container("app", EXITS_ON_TERM, image="mine:1")
        result = lastcall(
            ["run", "-", "--output", "json"],
            manifests=[pod("own", own)],
            environment={"XDG_DATA_HOME": str(home / "data")},
        )
    (story,) = stories(result.document).values()
    assert result.status == 0
    assert not story.records("ImageSubstituted") and "imageSubstituted" not in story.findings()
