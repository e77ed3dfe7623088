"""Containers that ended before anybody deleted their Pod: crashes, and restarts by probes, as the kernel shows them."""

import functools
from collections.abc import Iterator
from typing import Any

import ordinary_user
import pytest
from pods import EXITS_ON_TERM, container, pod
from run_command import InParallel, Lastcall, Result
from story import Story, stories

pytestmark = pytest.mark.real_kernel

PROBE = {"tcpSocket": {"port": 8080}, "periodSeconds": 1, "failureThreshold": 2}
PATIENT_PROBE = PROBE | {"failureThreshold": 4}
"""For a program that has to listen before it is ended: a busy machine may need two seconds to start it."""
SERVE = "nc -ll -p {port} -e cat"
ONCE = "test -e /data/tried && exit 0; touch /data/tried; echo no database yet; exit 1"


def with_probe(name: str, script: str, **probes: Any) -> dict[str, Any]:
    return pod(name, container("app", script, **probes), grace=5)


PODS = [
    pod("well"),
    pod("crashes", container("app", "echo connecting; echo FATAL no DB_URL >&2; sleep 1; exit 3")),
    pod("crashes-once", container("app", "echo FATAL no DB_URL >&2; exit 3"), restartPolicy="Never"),
    pod("segfaults", container("app", "echo before; sh -c 'kill -SEGV $$$$'; exit $?"), restartPolicy="Never"),
    pod("completes", container("app", "echo done"), restartPolicy="Never"),
    with_probe("slow", f"sleep 60 & {EXITS_ON_TERM}", livenessProbe=PROBE),
    with_probe("hangs", f"{SERVE.format(port=8080)} & p=$!; (sleep 3; kill $p) & {EXITS_ON_TERM}", livenessProbe=PROBE),
    with_probe("other-port", f"{SERVE.format(port=9090)} & {EXITS_ON_TERM}", livenessProbe=PATIENT_PROBE),
    pod(
        "waits",
        container("app", volumeMounts=[{"name": "data", "mountPath": "/data"}]),
        initContainers=[container("wait", ONCE, volumeMounts=[{"name": "data", "mountPath": "/data"}])],
        volumes=[{"name": "data", "emptyDir": {}}],
    ),
]


def ended(user: str) -> Result:
    arguments = ["run", "-", "--output", "json", "--after", "10"]
    with Lastcall(arguments, manifests=PODS, user=user) as command:
        return command.finish(150)


@pytest.fixture(scope="module")
def results() -> Iterator[InParallel]:
    running = InParallel({user: functools.partial(ended, user) for user in ordinary_user.USERS})
    yield running
    running.close()


@pytest.fixture(params=ordinary_user.USERS)
def told(request: pytest.FixtureRequest, results: InParallel) -> dict[str, Story]:
    result = results[request.param]
    assert result.status == 3, result.err
    assert "default/crashes is unhealthy:" in result.err
    assert "    | FATAL no DB_URL" in result.err
    return stories(result.document)


def test_a_pod_that_is_well_has_no_part_in_it(told: dict[str, Story]) -> None:
    assert told["well"]["outcome"] == "graceful" and told["well"]["earlierEnds"] == []
    assert told["completes"]["outcome"] == "graceful"
    assert not {"crashed", "livenessProbeKilled"} & set(told["completes"].findings())


def test_a_container_that_fails_at_once_is_a_crash_with_its_last_words(told: dict[str, Story]) -> None:
    story = told["crashes"]
    assert story["outcome"] == "crashed"
    assert "app crashed" in story.findings()["crashed"] and "(exit code 3)" in story.findings()["crashed"]
    assert story.findings()["crashed"].endswith("FATAL no DB_URL")
    assert {(run["exitCode"], run["endedBy"]) for run in story["earlierEnds"]} == {(3, "itself")}
    assert story["earlierEnds"][0]["lastLines"] == ["connecting", "FATAL no DB_URL"]


def test_so_it_is_where_nothing_starts_it_again(told: dict[str, Story]) -> None:
    story = told["crashes-once"]
    assert story["outcome"] == "crashed" and story.container["endedBy"] == "itself"
    assert "(exit code 139)" in told["segfaults"].findings()["crashed"]


@pytest.mark.parametrize(
    ("name", "before", "text", "advice"),
    [
        ("slow", False, ": it did not listen yet (exit code 0)", "A startupProbe with the same check"),
        ("hangs", True, ": it no longer listened (exit code 0)", "It had answered before"),
        ("other-port", False, ": it listened on port 9090 (exit code 0)", "livenessProbe port: 9090"),
    ],
)
def test_a_restart_by_a_liveness_probe_says_how_the_program_looked(
    told: dict[str, Story], name: str, before: bool, text: str, advice: str
) -> None:
    story = told[name]
    assert story["outcome"] == "restarted", story.brief()
    (found,) = [each for each in story["findings"] if each["id"] == "livenessProbeKilled"]
    assert "connect: connection refused" in found["text"] and text in found["text"]
    assert advice in found["advice"]
    ends = [run for run in story["earlierEnds"] if run["endedBy"] == "livenessProbe"]
    assert ends and ends[0]["failedProbe"]["succeededBefore"] is before


def test_an_init_container_that_is_tried_again_until_it_succeeds_is_no_crash(told: dict[str, Story]) -> None:
    story = told["waits"]
    assert story["outcome"] == "graceful"
    assert "Init container wait failed" in story.findings()["initContainerFailed"]
    assert story.findings()["initContainerFailed"].endswith("The last line that it printed: no database yet")


def test_a_pod_that_its_startup_probe_ends_again_and_again_says_so_with_its_last_words() -> None:
    slower = [with_probe("slower", EXITS_ON_TERM, startupProbe=PROBE)]
    with Lastcall(["run", "-", "--timeout", "12"], manifests=slower) as command:
        result = command.finish(120)
    assert result.status == 1, result.err
    assert "because its startupProbe had not succeeded in time (dial tcp" in result.err
    assert "fix: startupProbe: failureThreshold * periodSeconds at least 30 s" in result.err
    assert "    | start" in result.err
    assert "correct the probe (port" not in result.err
