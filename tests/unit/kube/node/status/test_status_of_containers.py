"""node-semantics 12.3 to 12.5, with the cases of upstream TestConvertToAPIContainerStatuses."""

from pathlib import Path
from typing import Any

import pytest

from lastcall.kube.cri.api import ContainerMetadata, ContainerState, ContainerStatus, Mount
from lastcall.kube.node.interfaces import PodStatus, StartError
from lastcall.kube.node.pods.resources import pod_resources
from lastcall.kube.node.pods.runtime_pod import should_container_be_restarted
from lastcall.kube.node.pods.termination_message import TerminationMessages, termination_message
from lastcall.kube.node.status.containers import convert_to_api_container_statuses
from lastcall.kube.node.status.features import status_features
from lastcall.kube.node.status.generator import PodStatusGenerator

NOW = status_features("1.36")
SECOND = 1_000_000_000


def instance(name: str, state: ContainerState, attempt: int = 0, **more: Any) -> ContainerStatus:
    defaults: dict[str, Any] = {"created_at": (10 + attempt) * SECOND, "started_at": (11 + attempt) * SECOND}
    if state == ContainerState.CONTAINER_EXITED:
        defaults["finished_at"] = (12 + attempt) * SECOND
    return ContainerStatus(
        id=f"{name}{attempt}",
        metadata=ContainerMetadata(name, attempt),
        pod_sandbox_id="s",
        state=state,
        image="busybox:1.36",
        image_ref="sha256:1",
        **{**defaults, **more},
    )


def make_pod(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "namespace": "n", "uid": "u", "generation": 1},
        "spec": {"containers": [{"name": "app", "image": "busybox:1.36"}], "restartPolicy": "Always", **spec},
        "status": {"phase": "Pending"},
    }


def convert(
    pod: dict[str, Any],
    *instances: ContainerStatus,
    old: list[dict[str, Any]] | None = None,
    errors: dict[str, StartError] | None = None,
    init: bool = False,
) -> list[dict[str, Any]]:
    return convert_to_api_container_statuses(
        pod,
        PodStatus("u", "p", "n", container_statuses=instances),
        old or [],
        pod["spec"]["initContainers" if init else "containers"],
        is_init=init,
        features=NOW,
        start_error=(errors or {}).get,
        termination_message=lambda status: status.message,
    )


RUNNING, EXITED = ContainerState.CONTAINER_RUNNING, ContainerState.CONTAINER_EXITED


@pytest.mark.rule("node-semantics 12.3/waiting")
def test_a_container_nobody_has_seen_waits() -> None:
    assert convert(make_pod()) == [
        {
            "name": "app",
            "state": {"waiting": {"reason": "ContainerCreating"}},
            "lastState": {},
            "ready": False,
            "restartCount": 0,
            "image": "busybox:1.36",
            "imageID": "",
        }
    ]
    with_init = make_pod(initContainers=[{"name": "i"}])
    assert convert(with_init)[0]["state"] == {"waiting": {"reason": "PodInitializing"}}


@pytest.mark.rule("node-semantics 12.3/newest")
def test_the_newest_instance_is_the_state_and_the_one_before_the_last_state() -> None:
    (status,) = convert(
        make_pod(),
        instance("app", EXITED, 0, exit_code=7, reason="Error"),
        instance("app", RUNNING, 2),
        instance("app", EXITED, 1, exit_code=1, reason="Error"),
    )
    assert status["state"] == {"running": {"startedAt": "1970-01-01T00:00:13Z"}}
    assert status["lastState"] == {
        "terminated": {
            "exitCode": 1,
            "reason": "Error",
            "startedAt": "1970-01-01T00:00:12Z",
            "finishedAt": "1970-01-01T00:00:13Z",
            "containerID": "lastcall://app1",
        }
    }
    assert (status["restartCount"], status["containerID"], status["imageID"]) == (2, "lastcall://app2", "sha256:1")


def test_the_last_state_stays_when_the_instance_it_came_from_was_removed() -> None:
    """Recorded (crashloop-delete): attempt 0 is removed 0.2 s after attempt 1 ended, and is reported to the end."""
    both = (instance("app", EXITED, 0, exit_code=7), instance("app", EXITED, 1, exit_code=1))
    before = convert(make_pod(), *both)
    (status,) = convert(make_pod(), both[1], old=before)
    assert status["state"]["terminated"]["exitCode"] == 1
    assert status["lastState"] == before[0]["lastState"]


@pytest.mark.rule("node-semantics 12.3/start-error")
def test_a_start_error_shows_as_waiting_and_moves_the_exit_to_the_last_state() -> None:
    errors = {"app": StartError("CrashLoopBackOff", "back-off 10s")}
    (status,) = convert(make_pod(), instance("app", EXITED, exit_code=1, reason="Error"), errors=errors)
    assert status["state"] == {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
    assert status["lastState"]["terminated"]["exitCode"] == 1


def test_after_the_delete_a_start_error_is_not_shown_any_more() -> None:
    pod = make_pod()
    pod["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    errors = {"app": StartError("ImagePullBackOff", "x")}
    assert convert(pod, errors=errors)[0]["state"] == {"waiting": {"reason": "ContainerCreating"}}


@pytest.mark.rule("node-semantics 12.3/lost")
@pytest.mark.parametrize(("deleting", "restarts"), [(False, 4), (True, 3)])
def test_a_lost_record_of_a_running_container_becomes_its_last_state(deleting: bool, restarts: int) -> None:
    pod = make_pod()
    if deleting:
        pod["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    old = [{"name": "app", "state": {"running": {"startedAt": "x"}}, "lastState": {}, "restartCount": 3}]
    (status,) = convert(pod, old=old)
    assert status["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert status["lastState"]["terminated"] == {
        "exitCode": 137,
        "reason": "ContainerStatusUnknown",
        "message": "The container could not be located when the pod was deleted.  The container used to be Running",
        "startedAt": None,
        "finishedAt": None,
    }
    assert status["restartCount"] == restarts


@pytest.mark.rule("node-semantics 12.3/ended-kept")
def test_a_lost_record_of_a_terminated_container_changes_nothing() -> None:
    old = [{"name": "app", "state": {"terminated": {"exitCode": 3}}, "lastState": {}, "restartCount": 3}]
    assert convert(make_pod(), old=old) == old


@pytest.mark.rule("node-semantics 12.3/unknown")
def test_an_unknown_container_that_ran_counts_as_killed() -> None:
    old = [{"name": "app", "state": {"running": {"startedAt": "x"}}, "lastState": {}, "restartCount": 1}]
    (status,) = convert(make_pod(), instance("app", ContainerState.CONTAINER_UNKNOWN, 1), old=old)
    assert status["state"]["terminated"]["exitCode"] == 137
    assert status["restartCount"] == 2
    (created,) = convert(make_pod(), instance("app", ContainerState.CONTAINER_CREATED))
    assert created["state"] == {"waiting": {}}
    (never_ran,) = convert(make_pod(), instance("app", ContainerState.CONTAINER_UNKNOWN))
    assert never_ran["state"] == {"waiting": {}}


@pytest.mark.rule("node-semantics 12.3/lost")
def test_a_lost_record_does_not_replace_the_end_before_and_one_that_never_ran_has_none() -> None:
    before = {"terminated": {"reason": "Error", "exitCode": 3}}
    old = [{"name": "app", "state": {"running": {"startedAt": "x"}}, "lastState": before, "restartCount": 4}]
    (status,) = convert(make_pod(), old=old)
    assert (status["lastState"], status["restartCount"]) == (before, 4)
    old = [{"name": "app", "state": {"waiting": {"reason": "ContainerCreating"}}, "lastState": {}, "restartCount": 0}]
    (status,) = convert(make_pod(), old=old)
    assert (status["lastState"], status["restartCount"]) == ({}, 0)


def test_init_containers_keep_the_order_of_the_spec_and_regular_ones_are_sorted() -> None:
    pod = make_pod(
        containers=[{"name": n, "image": "x"} for n in "cab"], initContainers=[{"name": n, "image": "x"} for n in "zy"]
    )
    assert [s["name"] for s in convert(pod)] == ["a", "b", "c"]
    assert [s["name"] for s in convert(pod, init=True)] == ["z", "y"]


@pytest.mark.rule("node-semantics 12.3/init-completed")
def test_a_removed_init_container_of_a_running_pod_was_completed() -> None:
    pod = make_pod(initContainers=[{"name": "i", "image": "x"}])
    (status,) = convert(pod, instance("app", RUNNING), init=True)
    assert (status["state"]["terminated"]["exitCode"], status["state"]["terminated"]["reason"]) == (0, "Completed")


def test_volume_mounts_and_resources_are_shown_by_the_versions_that_have_them() -> None:
    container = {
        "name": "app",
        "image": "x",
        "resources": {"requests": {"cpu": "1"}},
        "volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "w", "mountPath": "/w", "readOnly": True}],
    }
    (status,) = convert(make_pod(containers=[container]), instance("app", RUNNING))
    assert status["volumeMounts"] == [
        {"name": "v", "mountPath": "/v"},
        {"name": "w", "mountPath": "/w", "readOnly": True, "recursiveReadOnly": "Disabled"},
    ]
    assert status["resources"] == {"requests": {"cpu": "1"}}
    assert status["allocatedResources"] == {"cpu": "1"}


@pytest.mark.parametrize(
    ("policy", "newest", "restart"),
    [
        ("Always", None, True),
        ("Never", None, True),
        ("Never", instance("app", ContainerState.CONTAINER_CREATED), True),
        ("Never", instance("app", ContainerState.CONTAINER_UNKNOWN), True),
        ("Always", instance("app", RUNNING), False),
        ("Always", instance("app", EXITED), True),
        ("OnFailure", instance("app", EXITED), False),
        ("OnFailure", instance("app", EXITED, exit_code=1), True),
        ("Never", instance("app", EXITED, exit_code=1), False),
    ],
)
def test_which_containers_are_to_be_started_again(policy: str, newest: ContainerStatus | None, restart: bool) -> None:
    pod = make_pod(restartPolicy=policy)
    assert should_container_be_restarted(pod["spec"]["containers"][0], pod, newest) is restart
    pod["metadata"]["deletionTimestamp"] = "x"
    assert not should_container_be_restarted(pod["spec"]["containers"][0], pod, newest)


def cri_log(path: Path, lines: list[str]) -> str:
    path.write_text("".join(f"2030-01-01T00:00:00.000000000Z stdout F {line}\n" for line in lines))
    return str(path)


@pytest.mark.rule("node-semantics 12.5/log, 12.5/file")
@pytest.mark.parametrize(
    ("policy", "code", "reason", "file", "expected"),
    [
        ("File", 1, "Error", "", ""),
        ("File", 1, "Error", "from-file", "from-file"),
        ("FallbackToLogsOnError", 1, "Error", "", "one\ntwo\n"),
        ("FallbackToLogsOnError", 1, "Error", "from-file", "from-file"),
        ("FallbackToLogsOnError", 0, "Completed", "", ""),
        ("FallbackToLogsOnError", 128, "ContainerCannotRun", "", ""),
    ],
)
def test_termination_message_by_policy(
    tmp_path: Path, policy: str, code: int, reason: str, file: str, expected: str
) -> None:
    log = cri_log(tmp_path / "0.log", ["one", "two"])
    status = instance("app", EXITED, exit_code=code, reason=reason, log_path=log)
    assert termination_message({"name": "app", "terminationMessagePolicy": policy}, status, file) == expected


@pytest.mark.rule("node-semantics 12.5/appended")
def test_what_the_runtime_says_comes_before_what_the_file_says() -> None:
    status = instance("app", EXITED, exit_code=137, message="OOM was killed")
    assert termination_message({"name": "app"}, status, "from-file") == "OOM was killed: from-file"
    assert termination_message({"name": "app"}, status, "") == "OOM was killed"


@pytest.mark.rule("node-semantics 12.5/log")
def test_the_log_gives_at_most_eighty_lines_and_2048_bytes(tmp_path: Path) -> None:
    spec = {"name": "app", "terminationMessagePolicy": "FallbackToLogsOnError"}
    log = cri_log(tmp_path / "0.log", [f"l{n}" for n in range(100)])
    status = instance("app", EXITED, exit_code=1, log_path=log)
    assert termination_message(spec, status, "").splitlines() == [f"l{n}" for n in range(20, 100)]
    cri_log(tmp_path / "0.log", ["x" * 99] * 50)
    assert len(termination_message(spec, status, "")) == 2048


@pytest.mark.rule("node-semantics 12.5/file")
def test_the_file_gives_its_last_4096_bytes_and_is_read_once(tmp_path: Path) -> None:
    file = tmp_path / "0"
    file.write_text("0123456789" * 500)
    status = instance("app", EXITED, exit_code=1, mounts=(Mount("/dev/termination-log", str(file)),))
    messages = TerminationMessages()
    text = messages.get("u", {"name": "app"}, status)
    assert len(text) == 4096
    assert text.startswith("456789")
    file.unlink()
    assert messages.get("u", {"name": "app"}, status) == text
    messages.forget_except(set())
    assert messages.get("u", {"name": "app"}, status) == ""


def test_a_symbolic_link_in_place_of_the_message_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "0").symlink_to(tmp_path / "secret")
    status = instance("app", EXITED, mounts=(Mount("/dev/termination-log", str(tmp_path / "0")),))
    assert TerminationMessages().get("u", {"name": "app"}, status) == ""


class Nothing:
    def get_pod_status(self, uid: str) -> None:
        return None

    def update_pod_status(self, pod: dict[str, Any], status: dict[str, Any]) -> None:
        for container in status.get("containerStatuses", []):
            container["started"] = container["ready"] = "running" in container["state"]

    def get(self, uid: str, name: str) -> None:
        return None


def test_the_generated_status_of_a_running_pod_has_everything_the_api_shows() -> None:
    nothing = Nothing()
    generator = PodStatusGenerator(
        features=NOW, statuses=nothing, probes=nothing, reasons=nothing, host_ips=["172.18.0.2"]
    )
    runtime = PodStatus("u", "p", "n", ips=("10.244.0.5",), container_statuses=(instance("app", RUNNING),))
    status = generator.generate_api_pod_status(make_pod(), runtime, False)
    assert {key: status[key] for key in ("phase", "podIP", "podIPs", "hostIP", "hostIPs", "qosClass", "resources")} == {
        "phase": "Running",
        "podIP": "10.244.0.5",
        "podIPs": [{"ip": "10.244.0.5"}],
        "hostIP": "172.18.0.2",
        "hostIPs": [{"ip": "172.18.0.2"}],
        "qosClass": "BestEffort",
        "resources": {},
    }
    assert [(c["type"], c["status"]) for c in status["conditions"]] == [
        ("PodReadyToStartContainers", "False"),
        ("Initialized", "True"),
        ("Ready", "True"),
        ("ContainersReady", "True"),
        ("PodScheduled", "True"),
    ]


def generated(pod: dict[str, Any], *instances: ContainerStatus, **more: Any) -> dict[str, Any]:
    nothing = Nothing()
    generator = PodStatusGenerator(
        features=NOW, statuses=nothing, probes=nothing, reasons=nothing, host_ips=["172.18.0.2"], **more
    )
    return generator.generate_api_pod_status(pod, PodStatus("u", "p", "n", container_statuses=instances), False)


def test_a_status_shows_what_the_whole_pod_asks_for_and_was_allocated() -> None:
    """kubelet_pods.go:convertStatusToAPIStatus. What is not requested is not allocated."""
    resources = {"requests": {"cpu": "250m"}, "limits": {"cpu": "1", "memory": "64Mi"}}
    pod = make_pod(containers=[{"name": name, "image": "i", "resources": resources} for name in ("app", "b")])
    status = generated(pod, instance("app", RUNNING), instance("b", RUNNING))
    assert status["allocatedResources"]["cpu"] == status["resources"]["requests"]["cpu"] == "500m"
    assert "allocatedResources" not in generated(make_pod(), instance("app", RUNNING))


@pytest.mark.parametrize("before", [{"requests": {"cpu": "250m"}}, None])
def test_while_a_resize_is_under_way_a_pod_s_resources_are_those_of_before(before: Any) -> None:
    resources = {"requests": {"cpu": "2"}}
    pod = make_pod(containers=[{"name": "app", "image": "i", "resources": resources}])
    pod["status"] = {"phase": "Running"} | ({"resources": before} if before else {})
    under_way = {"resize_conditions": lambda uid: [{"type": "PodResizeInProgress", "status": "True"}]}
    assert generated(pod, instance("app", RUNNING), **under_way)["resources"] == (before or resources)
    assert generated(pod, instance("app", RUNNING))["resources"] == resources


def test_only_an_init_container_without_a_record_counts_as_completed_once_the_pod_runs() -> None:
    """kubelet_pods.go:convertToAPIContainerStatuses: initialised Pods may have lost the records of init containers."""
    pod = make_pod(initContainers=[{"name": "i", "image": "i"}], containers=[{"name": "app"}, {"name": "b"}])
    status = generated(pod, instance("app", RUNNING))
    (init,) = status["initContainerStatuses"]
    assert init["state"]["terminated"]["reason"] == "Completed"
    _, lost = status["containerStatuses"]
    assert lost["state"] == {"waiting": {"reason": "PodInitializing"}}


@pytest.mark.rule("node-semantics 12.1/sticky, 12.1/deadline")
def test_a_terminal_phase_in_the_api_is_never_left_and_a_deadline_forces_failed() -> None:
    nothing = Nothing()
    pod = make_pod()
    pod["status"] = {"phase": "Failed", "reason": "Evicted", "message": "m"}
    runtime = PodStatus("u", "p", "n", container_statuses=(instance("app", RUNNING),))

    def generate(pod: dict[str, Any], *handlers: Any) -> tuple[str, str | None, str | None]:
        generator = PodStatusGenerator(
            features=NOW, statuses=nothing, probes=nothing, reasons=nothing, host_ips=["h"], pod_sync_handlers=handlers
        )
        status = generator.generate_api_pod_status(pod, runtime, False)
        return status["phase"], status.get("reason"), status.get("message")

    assert generate(pod) == ("Failed", "Evicted", "m")
    assert generate(make_pod(), lambda pod: ("DeadlineExceeded", "late")) == ("Failed", "DeadlineExceeded", "late")


def test_the_pods_resources_are_the_sum_but_for_plain_init_containers() -> None:
    def container(name: str, cpu: str, memory: str = "", **more: Any) -> dict[str, Any]:
        return {"name": name, "resources": {"requests": {"cpu": cpu} | ({"memory": memory} if memory else {})}, **more}

    pod = make_pod(
        containers=[container("a", "250m", "64Mi"), container("b", "250m", "64Mi")],
        initContainers=[
            container("big", "2"),
            container("side", "100m", restartPolicy="Always"),
            container("i", "1", "1Gi"),
        ],
    )
    assert pod_resources(pod) == {"requests": {"cpu": "2", "memory": "1Gi"}}
    del pod["spec"]["initContainers"][0]
    assert pod_resources(pod) == {"requests": {"cpu": "1100m", "memory": "1Gi"}}
    assert pod_resources(make_pod()) == {}


def restarting(old: dict[str, Any] | None, *instances: ContainerStatus) -> dict[str, Any]:
    """The status of a container of a Pod all of whose containers restart."""
    pod = make_pod()
    (status,) = convert_to_api_container_statuses(
        pod,
        PodStatus("u", "p", "n", container_statuses=instances),
        [old] if old else [],
        pod["spec"]["containers"],
        is_init=False,
        features=NOW,
        start_error=lambda name: None,
        termination_message=lambda status: status.message,
        restarting_all=True,
    )
    return status


WAITS = {
    "waiting": {
        "reason": "RestartingAllContainers",
        "message": "The container is removed because RestartAllContainers in place",
    }
}


@pytest.mark.parametrize(
    ("state", "last", "restarts"),
    [
        ({"running": {"startedAt": "x"}}, {}, 3),
        ({"terminated": {"exitCode": 42}}, {}, 3),
        ({"waiting": {"reason": "CrashLoopBackOff"}}, {"terminated": {"exitCode": 1}}, 3),
    ],
)
def test_a_container_that_was_removed_for_a_restart_of_all_waits_and_counts_as_restarted(
    state: dict[str, Any], last: dict[str, Any], restarts: int
) -> None:
    """KEP-5532: its end is that of a container whose record is lost, with a reason of its own."""
    old = {"name": "app", "state": state, "lastState": last, "restartCount": 2, "containerID": "x://c", "ready": True}
    status = restarting({**old, "started": True})
    assert (status["state"], status["restartCount"], status["ready"]) == (WAITS, restarts, False)
    ended = status["lastState"]["terminated"]
    assert (ended["exitCode"], ended["reason"], ended["message"]) == (
        137,
        "RestartingAllContainers",
        WAITS["waiting"]["message"],
    )
    assert "containerID" not in status and "started" not in status


def test_a_restart_of_all_counts_once_and_only_for_what_has_run() -> None:
    told = {"name": "app", "state": WAITS, "lastState": {"terminated": {"exitCode": 137}}, "restartCount": 3}
    status = restarting(told)
    assert (status["state"], status["restartCount"]) == ({"waiting": {"reason": "ContainerCreating"}}, 3)
    never = {"name": "app", "state": {"waiting": {"reason": "ContainerCreating"}}, "lastState": {}, "restartCount": 0}
    assert restarting(never)["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert restarting(None)["restartCount"] == 0
    running = restarting(told, instance("app", RUNNING))
    assert "running" in running["state"], "a record that is there counts"
