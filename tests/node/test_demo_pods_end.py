"""Both demos on the real kernel, as root and as an ordinary user: order, times, outcome, and what is left."""

import functools
from collections.abc import Iterator
from typing import Any

import ordinary_user
import pytest
from published_schema import problems
from run_command import InParallel, Lastcall, Result
from story import Story, stories

pytestmark = [pytest.mark.real_kernel, pytest.mark.core]

LATE = 0.3
"""Seconds a step may be late by the rule."""

BUSY = 20.0
"""Seconds on top for a machine that does other things too: what a step waits for is in its order and its facts. No step
may ever be early."""

COMMANDS = {
    "graceful": ("graceful", "--output", "json"),
    "sigkill": ("sigkill", "--output", "json"),
    "sigkill 1.23": ("sigkill", "--output", "json", "--kubernetes-version", "1.23"),
    "both in words": ("all", "--explain"),
}


def demo(user: str, which: str) -> tuple[Result, str]:
    with Lastcall(["demo", *COMMANDS[which]], user=user) as command:
        command.tree()
        result = command.finish(90)
        print(f"{user}: CapEff {command.credentials.cap_eff} Uid {command.credentials.uid.split()[0]}")
        if user == "ordinary user":
            assert command.credentials.cap_eff.strip("0\n") == ""
            assert command.credentials.groups == ""
            assert command.credentials.uid.split() == [str(ordinary_user.UID)] * 4
        return result, command.credentials.cap_eff


@pytest.fixture(scope="module")
def demos() -> Iterator[InParallel]:
    jobs = {(user, which): functools.partial(demo, user, which) for which in COMMANDS for user in ordinary_user.USERS}
    running = InParallel(jobs)
    yield running
    running.close()


@pytest.fixture(params=ordinary_user.USERS)
def run_by(request: pytest.FixtureRequest, demos: InParallel) -> Any:
    def run_by(which: str) -> Result:
        result, cap_eff = demos[request.param, which]
        print(f"{request.param}: CapEff {cap_eff}")
        return result

    return run_by


@pytest.fixture
def story_of(run_by: Any) -> Any:
    def story_of(which: str, status: int) -> Story:
        result = run_by(which)
        assert result.status == status, result.err
        assert list(problems(result.document)) == []
        assert (result.document["exitStatus"], result.document["error"]) == (status, None)
        (story,) = stories(result.document).values()
        return story

    return story_of


def assert_time(story: Story, what: str, at: float, expected: float, latest: float | None = None) -> None:
    """Never early. Late by at most `LATE`, and what a busy machine adds."""
    last = (expected if latest is None else latest) + LATE + BUSY
    assert expected <= at <= last, f"{what} at {at}, expected {expected} to {last}:\n{story.brief()}"


def assert_way_of_a_deletion(story: Story, phase: str) -> None:
    """The order that a real Kubernetes shows (write order, endpoint, hook, signals, teardown)."""
    story.assert_order(
        ("PodCreated", {}),
        ("PodBound", {}),
        ("SandboxCreated", {}),
        ("ContainerStarted", {}),
        ("EndpointChanged", {"ready": True, "serving": True, "terminating": False}),
        ("DeleteAccepted", {}),
        ("TerminationObserved", {"cause": "deletionTimestamp"}),
        ("GraceDecided", {}),
        ("Killing", {"message": "Stopping container app"}),
        ("PreStopStarted", {"handler": "exec"}),
        ("PreStopFinished", {"outcome": "succeeded", "exitCode": 0}),
        ("StopRequested", {}),
        ("ProcessSignalState", {"disposition": "handled"}),
        ("SignalSent", {"signal": "SIGTERM"}),
        ("Output", {}),
        ("ProcessExited", {}),
        ("StopFinished", {}),
        ("SandboxStopped", {}),
        ("VolumesUnmounted", {}),
        ("FinalDeleteSent", {}),
        ("ObjectRemoved", {}),
        ("PodGoneSeen", {}),
    )
    story.assert_order(("SandboxStopped", {}), ("PodStatusWritten", {"phase": phase}), ("FinalDeleteSent", {}))
    story.assert_order(("ProcessExited", {}), ("NetworkDetached", {}), ("SandboxStopped", {}))
    unseen = [r for r in story["records"] if r["evidence"] != "observed"]
    assert not unseen, f"the kernel and the API were there all the time: {unseen}"


def assert_endpoint(story: Story) -> None:
    """Terminating in parallel with the hook; still serving until the Pod's phase is terminal, then gone."""
    exited = story.at("ProcessExited")
    first, *_, last = story["endpoints"]
    assert (first["ready"], first["serving"], first["terminating"]) == (False, True, True)
    assert first["at"] < story.at("PreStopFinished") and first["at"] < LATE + BUSY
    assert last["removed"] and exited < last["at"] < exited + LATE + BUSY
    assert [each["removed"] for each in story["endpoints"]] == [False, True]


def assert_overhead(story: Story, exited: float) -> None:
    used = story["budget"]["preStop"] + story["budget"]["drain"]
    assert story["overhead"] == pytest.approx(story["gone"] - used, abs=1e-4)
    assert 0 < story["overhead"] < LATE + BUSY
    assert exited < story["gone"] < exited + LATE + BUSY


def test_the_graceful_demo_gets_term_after_its_hook_and_exits_0(story_of: Any) -> None:
    story = story_of("graceful", 0)
    assert (story["outcome"], story["phase"], story["graceSeconds"], story["node"]) == (
        "graceful", "Succeeded", 30, "node-1",
    )  # fmt: skip
    assert_way_of_a_deletion(story, "Succeeded")
    killing, term, exited = story.at("Killing"), story.at("SignalSent"), story.at("ProcessExited")
    assert_time(story, "SIGTERM", term - killing, 3.0)
    # The shell runs its trap when the running `sleep 1` is over, and drains for 5 s.
    assert_time(story, "the exit", exited - term, 5.0, 6.0)
    container = story.container
    assert (container["exitCode"], container["reason"], container["signal"], container["killedBy"]) == (
        0, "Completed", None, None,
    )  # fmt: skip
    assert (container["preStop"]["handler"], container["preStop"]["outcome"]) == ("exec", "succeeded")
    assert_time(story, "the hook's end", container["preStop"]["seconds"], 3.0)
    assert (container["disposition"], container["killAt"]) == ("handled", None)
    assert [(each["signal"], each["why"]) for each in story["signals"]] == [("SIGTERM", "StopContainer")]
    assert [(each["stream"], each["text"]) for each in story["output"]] == [("stdout", "SIGTERM received, draining...")]
    budget = story["budget"]
    assert budget["preStop"] + budget["drain"] + budget["unused"] == pytest.approx(30, abs=1e-3)
    assert budget["overrun"] == 0
    assert_endpoint(story)
    assert_overhead(story, exited)


def test_the_sigkill_demo_is_killed_when_the_grace_period_is_over(story_of: Any) -> None:
    story = story_of("sigkill", 3)
    stop = story.record("StopRequested")["facts"]
    assert (stop["timeoutSeconds"], stop["deductedSeconds"]) == (8, 2), "the hook's 2 s are taken off"
    assert_killed(story, 10.0, "Failed")
    assert_endpoint(story)
    assert "hookTimeNotCounted" not in story.findings()


def test_at_1_23_the_hook_s_time_is_not_taken_off_and_the_story_says_why(story_of: Any) -> None:
    story = story_of("sigkill 1.23", 3)
    stop = story.record("StopRequested")["facts"]
    assert (stop["timeoutSeconds"], stop.get("deductedSeconds") or 0) == (10, 0)
    # Up to 1.26 nothing forces a terminal phase on a Pod whose restartPolicy is Always.
    assert_killed(story, 12.0, "Running")
    assert [each["removed"] for each in story["endpoints"]][-1] and story["endpoints"][0]["terminating"]
    text = story.findings()["hookTimeNotCounted"]
    assert "preStop" in text and "grace period" in text and text.count(". ") == 0, "one sentence"


def assert_killed(story: Story, kill_after: float, phase: str) -> None:
    assert (story["outcome"], story["phase"], story["graceSeconds"]) == ("killed", phase, 10)
    assert_way_of_a_deletion(story, phase)
    killing, exited = story.at("Killing"), story.at("ProcessExited")
    term, kill = (story.at("SignalSent", signal=name) for name in ("SIGTERM", "SIGKILL"))
    assert_time(story, "SIGTERM", term - killing, 2.0)
    assert_time(story, "SIGKILL", kill - killing, kill_after)
    assert 0 < exited - kill < LATE + BUSY
    container = story.container
    assert (container["exitCode"], container["reason"], container["signal"], container["killedBy"]) == (
        137, "Error", "SIGKILL", "grace over",
    )  # fmt: skip
    assert [each["signal"] for each in story["signals"]] == ["SIGTERM", "SIGKILL"]
    assert story["output"][0]["text"] == "SIGTERM received, ignoring it..."
    assert "killed" in story.findings()
    assert_overhead(story, exited)


def test_the_story_in_words_has_steps_budget_endpoints_and_the_rules_behind_them(run_by: Any) -> None:
    result = run_by("both in words")
    assert result.status == 3
    for words in (
        "default/term-demo ended gracefully",
        "default/sigkill-demo was killed",
        "DELETE accepted: deletionTimestamp set, grace 30 s",
        "preStop exec succeeded",
        "SIGTERM → PID",
        "SIGKILL → PID",
        "│ SIGTERM received, draining...",
        "exit code 0 (Completed)",
        "exit code 137 (Error), by SIGKILL: grace over",
        "ready=false serving=true terminating=true",
        "removed from the EndpointSlice",
        "overhead",
        "gone after",
        "rule: pkg/kubelet/kuberuntime/kuberuntime_container.go:killContainer",
        "rule: pkg/registry/core/pod/strategy.go",
        "because of",
        "ran in its place",
    ):
        assert words in result.out, f"{words!r} is missing in:\n{result.out}"
    assert "\x1b" not in result.out + result.err
    assert "hook" in result.out and "drain" in result.out and "unused" in result.out, "the budget's bar"
    live, _, _ = result.out.partition("default/term-demo ended gracefully")
    assert "SIGTERM → PID" in live, "the timeline is told while it happens"
    assert "its node is Ready" in result.err
