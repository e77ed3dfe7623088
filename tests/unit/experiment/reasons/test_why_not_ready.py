"""Why a Pod is not Ready: in one line while it is waited for, in full when the time is over."""

from typing import Any

import pytest

from lastcall.endings import fixes_for, is_crash_looping, waiting_helps
from lastcall.experiment.reasons.object_events import runtime_of
from lastcall.experiment.reasons.why_not_ready import (
    Refused,
    Unschedulable,
    hook_fails_again_and_again,
    in_short,
    why_no_pods,
    why_not_ready,
    why_still_there,
    without_names,
)
from lastcall.kube.api import StatusError


def pod(status: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "web-1", "namespace": "default", **metadata}, "status": status or {}}


def waits(reason: str, message: str) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "app", "state": {"waiting": {"reason": reason, "message": message}}}]}


def event(reason: str, message: str, count: int = 1) -> dict[str, Any]:
    return {"type": "Warning", "reason": reason, "message": message, "count": count}


RUNS = {"phase": "Running", "containerStatuses": [{"name": "app", "ready": False, "state": {"running": {}}}]}
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
IN_SHORT = [
    ("just made", {}, [], "web-1 is Pending and not Ready"),
    (
        "unschedulable by its condition",
        {"conditions": [UNSCHEDULABLE]},
        [],
        "web-1 is Pending and not Ready (Unschedulable: 0/1 nodes)",
    ),
    (
        "a pull that backs off",
        waits("ImagePullBackOff", "Back-off"),
        [event("Failed", "x")],
        "web-1 is Pending and not Ready (ImagePullBackOff: Back-off)",
    ),
    (
        "a failing readiness probe",
        RUNS,
        [event("Unhealthy", "Readiness probe failed: HTTP 404", 7)],
        "web-1 is Running and not Ready (Unhealthy: Readiness probe failed: HTTP 404 (7 times))",
    ),
    (
        "a probe that has not answered yet",
        RUNS,
        [],
        "web-1 is Running and not Ready (Running: but not ready: its readiness probe has not succeeded)",
    ),
    (
        "an init container that still runs",
        {
            "initContainerStatuses": [{"name": "wait", "state": {"running": {}}, "ready": False}],
            "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": "[app]"}],
        },
        [],
        "web-1 is Pending and not Ready (Init: wait still runs, and the containers after it wait for its end)",
    ),
]


@pytest.mark.parametrize(("status", "events", "told"), [row[1:] for row in IN_SHORT], ids=[row[0] for row in IN_SHORT])
def test_one_line_has_the_newest_reason(status: dict[str, Any], events: list[Any], told: str) -> None:
    assert in_short(pod(status), events) == told


WHERE = '(pod: "web-1_default(u)", container: app)'
ONE_POD = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
CREATE = 'Error creating: pods "web-1" is forbidden: '
FIXES = [
    ("CreateContainerConfigError", f"container has runAsNonRoot and image will run as root {WHERE}",
     ["securityContext: {runAsUser: 1000}"]),
    ("CreateContainerConfigError",
     f"container has runAsNonRoot and image has non-numeric user (nginx), cannot verify user is non-root {WHERE}",
     ["the image's user nginx is a name", "set securityContext.runAsUser to its number"]),
    ("CreateContainerConfigError", f"container's runAsUser breaks non-root policy {WHERE}",
     ["runAsUser: 0 contradicts runAsNonRoot: true"]),
    ("CreateContainerConfigError", 'configmap "conf" not found', ["add ConfigMap conf to the manifests"]),
    ("CreateContainerConfigError", "couldn't find key url in Secret default/db",
     ["add the key url to Secret default/db"]),
    ("FailedScheduling", '0/1 nodes are available: persistentvolumeclaim "data" not found.',
     ["add PersistentVolumeClaim data to the manifests"]),
    ("Unschedulable", "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
     ["no node has the labels that nodeSelector or nodeAffinity ask for"]),
    ("FailedScheduling", "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match pod anti-affinity rules.",
     ["Insufficient cpu: lower resources.requests", "podAntiAffinity wants more nodes"]),
    ("FailedScheduling", f"0/1 nodes are available: 1 {ONE_POD}.",
     ["another Pod has its ReadWriteOncePod claim", "strategy: {type: Recreate}"]),
    ("FailedMount", 'MountVolume.SetUp failed for volume "c" : configmap "conf" not found',
     ["add ConfigMap conf to the manifests"]),
    ("FailedMount", 'MountVolume.SetUp failed for volume "s" : hostPath type check failed: /var/run/docker.sock is not '
     "a socket file", ["hostPath.path: the socket of the container runtime", "/run/containerd/containerd.sock"]),
    ("FailedMount", 'MountVolume.SetUp failed for volume "s" : hostPath type check failed: /opt/agent is not a '
     "directory",
     ["hostPath.path: a path of the node that is a directory", "/opt/agent is of another type, or does not exist"]),
    ("FailedCreatePodSandBox", "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to start sandbox "
     '"a1": failed to generate sandbox container spec: failed to generate user string: user group "1000" is specified '
     "without user", ["runAsUser beside runAsGroup (its sandbox needs both)"]),
    ("FailedCreate", f"{CREATE}exceeded quota: two, requested: pods=1, used: pods=2, limited: pods=2",
     ["ResourceQuota two has no room for another Pod", "maxSurge: 0"]),
    ("FailedCreate", f"{CREATE}failed quota: two: must specify limits.cpu",
     ["ResourceQuota two wants limits.cpu of every container"]),
    ("FailedCreate", f'{CREATE}error looking up service account default/nobody: serviceaccount "nobody" not found',
     ["add ServiceAccount nobody to the manifests"]),
    ("FailedCreate", f'{CREATE}violates PodSecurity "restricted:v1.36": allowPrivilegeEscalation != false',
     ["pod-security.kubernetes.io/enforce (restricted:v1.36)"]),
    ("Unhealthy", 'Startup probe failed: Get "http://10.0.0.2:80/": dial tcp 10.0.0.2:80: connect: connection refused',
     ["startupProbe: failureThreshold times periodSeconds"]),
    ("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 404",
     ["the program answered the probe with 404: correct the probe's path"]),
    ("ErrImagePull", "dial tcp: lookup registry.example on 10.96.0.10:53: no such host",
     ["`lastcall image import FILE`", "does not reach the registry"]),
    ("ErrImagePull", 'failed to resolve reference "docker.io/library/webb:1": docker.io/library/webb:1: not found',
     ["the registry has no image of this name and tag"]),
    ("ErrImagePull", "it is not in the image store", ["a private registry wants `docker login`"]),
    ("ImagePullBackOff", 'Back-off pulling image "web:2": ErrImagePull: manifest unknown: manifest unknown',
     ["the registry has no image of this name and tag: correct spec.containers[].image"]),
    ("ErrImagePull", "pull access denied, repository does not exist or may require authorization: authorization failed",
     ["imagePullSecrets: the registry wants credentials"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("runtime", "importing", "listing"),
    [
        ("", "`lastcall image import FILE`", "`lastcall image ls`"),
        ("lastcall://1.0", "`lastcall image import FILE`", "`lastcall image ls`"),
        ("containerd://2.1.4", "`ctr -n k8s.io images import FILE` on the node", "`ctr -n k8s.io images ls`"),
        ("cri-o://1.34.1", "`podman load -i FILE` on the node", "`crictl images`"),
    ],
)
def test_an_image_is_imported_where_the_runtime_of_the_node_keeps_it(
    runtime: str, importing: str, listing: str
) -> None:
    (unreachable,) = fixes_for("ErrImagePull", "dial tcp: i/o timeout", runtime)
    assert unreachable.startswith(f"{importing} takes the image")
    (never,) = fixes_for("ErrImageNeverPull", "is not present with pull policy of Never", runtime)
    assert listing in never
    given = pod(waits("ErrImagePull", "dial tcp: i/o timeout"))
    assert f"  fix: {unreachable}" in why_not_ready(given, runtime=runtime)


async def test_the_runtime_of_a_pods_node_is_its_nodes_or_unknown() -> None:
    class Nodes:
        async def get(self, resource: Any, name: str) -> Any:
            if name == "gone":
                raise StatusError({"code": 404, "message": "no such node"})
            return {"status": {"nodeInfo": {"containerRuntimeVersion": "containerd://2.1.4"}}}

    client: Any = Nodes()
    assert await runtime_of(client, {"spec": {"nodeName": "n"}}) == "containerd://2.1.4"
    assert await runtime_of(client, {"spec": {"nodeName": "gone"}}) == ""
    assert await runtime_of(client, {"spec": {}}) == ""


@pytest.mark.parametrize(("reason", "message", "words"), FIXES)
def test_a_fix_goes_by_what_the_message_says_and_is_told_once(reason: str, message: str, words: list[str]) -> None:
    if reason == "Unschedulable":
        given = pod({"conditions": [{"type": "PodScheduled", "status": "False", "reason": reason, "message": message}]})
        lines = why_not_ready(given, [event("FailedScheduling", message)])
    elif reason.startswith(("Failed", "Unhealthy")):
        lines = why_not_ready(pod(), [event(reason, message, 2), event(reason, message)])
    else:
        lines = why_not_ready(pod(waits(reason, message)), [event("Failed", f"Error: {reason}")])
    fixes = [line for line in lines if line.startswith("  fix: ")]
    assert len(fixes) == len(set(fixes)) and fixes == lines[-len(fixes) :]
    assert [word for word in words if word not in "".join(fixes)] == []
    assert not any("ConfigMap" in line for line in fixes) or "configmap" in message


@pytest.mark.parametrize("reason", ["FailedScheduling", "FailedMount", "CreateContainerConfigError", "FailedCreate"])
def test_of_a_message_that_nobody_knows_nothing_is_advised(reason: str) -> None:
    lines = [*why_not_ready(pod(waits(reason, "odd")), [event(reason, "odd")])]
    assert not any("fix:" in line for line in lines)


def test_an_owner_whose_pods_are_refused_has_a_fix_too() -> None:
    message = f"{CREATE}exceeded quota: two, requested: pods=1, used: pods=2, limited: pods=2"
    lines = why_no_pods("ReplicaSet web", {}, 0, 3, [event("FailedCreate", message)])
    assert lines[:2] == ["ReplicaSet web: 0 of its 3 Pods are Ready", f"  Event FailedCreate: {message}"]
    assert lines[2].startswith("  fix: ResourceQuota two has no room") and len(lines) == 3


HOW_FAR = [
    ("of the old template", {"strategy": {}}, {},
     "2 of its 2 Pods are Ready, 0 of them made from the new template"),
    ("a DaemonSet's", {"updateStrategy": {}}, {"updatedNumberScheduled": 1},
     "2 of its 2 Pods are Ready, 1 of them made from the new template"),
    ("not for long enough", {"strategy": {}, "minReadySeconds": 30}, {"updatedReplicas": 2},
     "2 of its 2 Pods are Ready, but not yet for 30 s (spec.minReadySeconds)"),
    ("a ReplicaSet's", {"minReadySeconds": 30}, {},
     "2 of its 2 Pods are Ready, but not yet for 30 s (spec.minReadySeconds)"),
    ("nothing asks for more", {"strategy": {}}, {"updatedReplicas": 2}, "2 of its 2 Pods are Ready"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "status", "told"), [row[1:] for row in HOW_FAR], ids=[row[0] for row in HOW_FAR])
def test_pods_that_are_ready_and_do_not_count_have_the_reason_that_is_set(
    spec: dict[str, Any], status: dict[str, Any], told: str
) -> None:
    head, *fixes = why_no_pods("Deployment web", {"spec": spec, "status": status}, 2, 2, [])
    assert head == f"Deployment web: {told}"
    wanted = ["  fix: lower spec.minReadySeconds (30), or wait longer (--timeout) [notAvailableYet]"]
    assert fixes == (wanted if "minReadySeconds)" in told else [])


def probed(started: bool, ready: bool = False, **probes: Any) -> dict[str, Any]:
    container = {"name": "app", "ready": ready, "started": started, "state": {"running": {}}, "restartCount": 2}
    last = {"terminated": {"exitCode": 137, "reason": "Error"}}
    return {
        **pod({"phase": "Running", "containerStatuses": [{**container, "lastState": last}]}),
        "spec": {"containers": [{"name": "app", **probes}]},
    }


def test_the_probe_that_is_waited_for_is_named_and_restarts_are_counted() -> None:
    both = {"startupProbe": {}, "readinessProbe": {}}
    starts, runs = why_not_ready(probed(False, **both)), why_not_ready(probed(True, **both))
    assert "  container app: Running: but not ready: its startup probe has not succeeded" in starts
    assert "  container app: Running: but not ready: its readiness probe has not succeeded" in runs
    assert "  container app: Error: last time exit code 137 (restarted 2 times)" in runs


def test_what_the_scheduler_adds_about_preemption_is_not_repeated() -> None:
    message = (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are "
        "available: 1 Preemption is not helpful for scheduling."
    )
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    lines = why_not_ready(pod({"conditions": [condition]}), [event("FailedScheduling", message)])
    assert not any("preemption" in line for line in lines)
    assert "  condition PodScheduled is False: Unschedulable: 0/1 nodes are available: 1 Insufficient cpu." in lines


STAYS = [
    ("1 node(s) didn't match Pod's node affinity/selector", True, False),
    ('persistentvolumeclaim "data" not found', True, False),
    ("1 Insufficient cpu", False, False),
    (f"1 {ONE_POD}", False, False),
    (f"1 {ONE_POD}", True, True),
    ("1 Insufficient cpu", True, True),
    ("1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector", True, True),
    ("1 something new", False, True),
]


@pytest.mark.parametrize(("reasons", "pods_may_go", "helps"), STAYS)
def test_waiting_helps_only_against_what_can_change(reasons: str, pods_may_go: bool, helps: bool) -> None:
    assert waiting_helps(f"0/2 nodes are available: {reasons}.", pods_may_go=pods_may_go) is helps


def test_a_pod_that_is_ending_tells_what_holds_it() -> None:
    ending = {"deletionTimestamp": "2026-01-01T00:10:00Z", "deletionGracePeriodSeconds": 600}
    assert why_still_there(pod(**ending)) == [
        "Pod default/web-1 is ending, to be over by 2026-01-01T00:10:00Z (grace period 600 s). Still running: its "
        "containers."
    ]
    held = {**ending, "deletionGracePeriodSeconds": 0, "finalizers": ["example.com/held"]}
    line, fix = why_still_there(pod(**held))
    assert "finalizers hold it (example.com/held)" in line and line == in_short(pod(**held))
    assert "kubectl patch pod web-1 -n default" in fix


def scheduled(
    name: str, *, ready: bool = True, refused: str = "", policy: str = "Always", **metadata: Any
) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "True" if ready and not refused else "False"}]
    if refused:
        conditions += [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": refused}]
    spec = {"restartPolicy": policy, **({} if refused else {"nodeName": "node-1"})}
    return {"metadata": {"name": name, "uid": name, **metadata}, "spec": spec, "status": {"conditions": conditions}}


FULL = "0/1 nodes are available: 1 Insufficient cpu."
LOOKS = [
    ("nothing else goes on", [], False, True),
    ("the others are Ready and stay", [scheduled("old")], False, True),
    ("one is ending", [scheduled("old", deletionTimestamp="now")], False, False),
    ("one ends by itself", [scheduled("job", policy="OnFailure")], False, False),
    ("one is on its way to Ready", [scheduled("new", ready=False)], False, False),
    ("another waits for a node, too", [scheduled("next", refused=FULL)], False, True),
    ("Pods may count as available later", [scheduled("old")], True, False),
]


@pytest.mark.parametrize(("others", "more", "for_good"), [row[1:] for row in LOOKS], ids=[row[0] for row in LOOKS])
def test_a_pod_that_no_node_takes_is_given_up_when_nothing_can_change_it(
    others: list[dict[str, Any]], more: bool, for_good: bool
) -> None:
    pod, looked = scheduled("web", refused=FULL), Unschedulable()
    found = [looked.look([pod], [pod, *others], at, more_to_come=more) for at in (10.0, 11.0, 12.9, 13.0)]
    assert found == [[], [], [], [pod] if for_good else []]


def test_a_pod_that_got_a_node_meanwhile_is_looked_at_anew() -> None:
    refused, looked = scheduled("web", refused=FULL), Unschedulable()
    for at, pod in ((10.0, refused), (12.0, scheduled("web")), (14.0, refused)):
        assert looked.look([pod], [pod], at, more_to_come=False) == []
    assert looked.look([refused], [refused], 17.0, more_to_come=False) == [refused]


def crashed(times: int, code: int, state: str) -> dict[str, Any]:
    """A container that has ended so often, each time with this exit code, and is in this state now."""
    end = {"terminated": {"exitCode": code, "reason": "Error"}}
    now = {
        "waiting": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
        "terminated": end,
        "running": {"running": {}},
    }[state]
    status = {
        "name": "app",
        "ready": False,
        "restartCount": times - (state != "running"),
        "state": now,
        "lastState": end,
    }
    return pod({"phase": "Running", "containerStatuses": [status]})


@pytest.mark.parametrize(
    ("times", "code", "state", "given_up"),
    [
        (3, 1, "waiting", True),
        (3, 1, "terminated", True),
        (2, 1, "terminated", False),
        (3, 0, "waiting", False),
        (5, 1, "running", False),
    ],
)
def test_three_failures_in_a_row_are_a_crash_loop(times: int, code: int, state: str, given_up: bool) -> None:
    assert is_crash_looping(crashed(times, code, state)) is given_up


def test_pods_that_the_api_server_refuses_are_given_up_when_nothing_else_goes_on() -> None:
    condition = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}
    owner = {"metadata": {"uid": "o"}, "status": {"conditions": [condition]}}
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    steady = {**pod(ready), "spec": {"nodeName": "n"}}
    starting = {**pod({}), "spec": {"nodeName": "n"}}
    refused = Refused()
    assert not refused.look([owner], [steady], 10.0)
    assert not refused.look([owner], [steady], 12.0)
    assert not refused.look([owner], [starting], 14.0)
    assert refused.look([owner], [steady], 14.0)
    assert not refused.look([{"metadata": {"uid": "o"}}], [steady], 15.0)
    assert not refused.look([owner], [steady], 16.0)


@pytest.mark.parametrize(("counts", "given_up"), [((2,), False), ((3,), True), ((1, 2), True), ((), False)])
def test_a_post_start_hook_that_failed_three_times_will_fail_again(counts: tuple[int, ...], given_up: bool) -> None:
    events = [event("FailedPostStartHook", "PostStartHook failed", count) for count in counts]
    assert hook_fails_again_and_again([*events, event("BackOff", "x", 9)]) is given_up


HOOK = 'HTTP lifecycle hook (/) for Container "app" in Pod "p" failed - error: Get "http://10.0.0.2:80/": '
HOOKS = [
    (
        f"{HOOK}dial tcp 10.0.0.2:80: connect: connection refused",
        "Let the postStart hook try again until port 80 answers",
    ),
    ("failed - error: command 'x' exited with 127: x: not found", "an image that has it"),
    ("failed - error: command 'x' exited with 3: no", "let it end with 0"),
]


@pytest.mark.parametrize(("message", "fix"), HOOKS)
def test_a_post_start_hook_that_failed_is_mended_by_how_it_failed(message: str, fix: str) -> None:
    lines = why_not_ready(pod(waits("PostStartHookError", message)))
    assert fix in lines[-1] and lines[-1].endswith("[restartedPostStart]")


def test_exits_that_a_rule_of_the_container_restarts_are_no_crash_loop() -> None:
    rules = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}]
    spec = {"containers": [{"name": "app", "restartPolicy": "Never", "restartPolicyRules": rules}]}
    for code, looping in ((42, False), (1, True)):
        ended = {
            "name": "app",
            "restartCount": 4,
            "state": {"waiting": {}},
            "lastState": {"terminated": {"exitCode": code}},
        }
        assert is_crash_looping({**pod({"containerStatuses": [ended]}), "spec": spec}) is looping


def test_who_has_crashed_is_not_told_to_correct_its_readiness_probe() -> None:
    refused = event("Unhealthy", "Readiness probe failed: connect: connection refused")
    assert any("probe's port" in line for line in why_not_ready(pod(RUNS), [refused]))
    assert not any("probe's port" in line for line in why_not_ready(crashed(2, 3, "terminated"), [refused]))
    killed = event("Unhealthy", "Liveness probe failed: connect: connection refused")
    assert any("probe's port" in line for line in why_not_ready(crashed(2, 137, "running"), [killed]))


def test_what_is_alike_but_for_names_and_numbers_is_told_of_one_pod() -> None:
    first, second = ({"metadata": {"name": f"web-{n}", "uid": f"u{n}abc"}} for n in (1, 2))
    line = "  Event BackOff: restarting app in web-{0}_default(u{0}abc), dial 10.244.0.{0}:80 ({0} times)"
    assert without_names(first, [line.format(1)]) == without_names(second, [line.format(2)])
    assert without_names(first, ["  container app: a"]) != without_names(first, ["  container app: b"])
