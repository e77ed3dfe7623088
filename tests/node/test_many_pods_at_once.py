"""A hundred Pods started and ended at once on the real kernel, some of them badly; and nothing is left.

Why 137: out of memory, our SIGKILL, and the program's own are told apart. One run of the command for all of it.
"""

import ordinary_user
import pytest
from pods import container, pod
from run_command import Lastcall
from story import Story, stories

pytestmark = pytest.mark.real_kernel

MANY = 90
SERVES = "trap 'exit 0' TERM; while :; do sleep 600 & wait $!; done"
SPECIAL = [
    pod(
        "out-of-memory",
        container("app", "sleep 1; exec tail /dev/zero", resources={"limits": {"memory": "24Mi"}}),
        restartPolicy="Never",
        grace=60,
    ),
    pod("ignores", container("app", "trap '' TERM; while :; do sleep 0.1; done"), grace=2),
    pod("own-137", container("app", "sleep 1; exit 137"), restartPolicy="Never"),
    pod("child-never-told", container("app", "sleep 600; true"), grace=2),
    pod("hook-hangs", container("app", pre_stop="trap '' TERM; while :; do sleep 0.1; done"), grace=2),
    pod(
        "disk-full",
        container(
            "app",
            "trap 'exit 0' TERM; head -c 9000000 /dev/zero >/data/file || echo full; >/up; while :; do sleep 0.1; done",
            readinessProbe={"exec": {"command": ["test", "-e", "/up"]}, "periodSeconds": 1},
            volumeMounts=[{"name": "data", "mountPath": "/data"}],
        ),
        volumes=[{"name": "data", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}],
    ),
]


@pytest.fixture(scope="module")
def told() -> dict[str, Story]:
    many = [pod(f"p{number}", container("app", SERVES)) for number in range(MANY)]
    arguments = ["run", "-", "--output", "json", "--timeout", "240", "--after", "8"]
    with Lastcall(arguments, manifests=[*many, *SPECIAL], user=ordinary_user.USERS[0]) as command:
        command.tree()
        result = command.finish(400)  # nothing may be left on the machine
    assert result.status == 3, result.err[-2000:]
    return stories(result.document)


def test_every_pod_ends_by_its_signal_and_is_gone(told: dict[str, Story]) -> None:
    for number in range(MANY):
        story = told[f"p{number}"]
        assert (story["outcome"], story.container["exitCode"], story["gone"] is not None) == ("graceful", 0, True)
        story.assert_order(("SignalSent", {"signal": "SIGTERM"}), ("ProcessExited", {}), ("NetworkDetached", {}))
        assert [each["facts"]["signal"] for each in story.records("SignalSent")] == ["SIGTERM"]


def test_why_137_is_told_apart(told: dict[str, Story]) -> None:
    assert told["ignores"].container["killedBy"] == "grace over"
    assert "killed" in told["ignores"].findings()
    assert told["own-137"].container["exitCode"] == 137
    assert told["own-137"].container["killedBy"] is None
    assert "exitCode137OfItsOwn" in told["own-137"].findings()
    starved = told["out-of-memory"]
    if starved.container["oomKills"] is None:
        return  # nobody counts here, and the machine's memory is no limit to test
    assert (starved.container["killedBy"], starved.container["reason"]) == ("out of memory", "OOMKilled")
    assert "memory limit of 24Mi" in starved.findings()["outOfMemory"]


def test_a_child_that_was_never_told_and_a_hook_that_hangs_are_named(told: dict[str, Story]) -> None:
    assert "sleep (pid 2) still ran at SIGKILL" in told["child-never-told"].findings()["shellKeepsSignal"]
    assert told["hook-hangs"].container["preStop"]["outcome"] == "outlived"
    assert told["hook-hangs"]["gone"] is not None


def test_a_full_disk_is_the_programs_business_and_the_pod_ends_as_ever(told: dict[str, Story]) -> None:
    story = told["disk-full"]
    assert "full" in [each["facts"]["text"] for each in story.records("Output")]
    assert (story["outcome"], story.container["exitCode"]) == ("graceful", 0)
