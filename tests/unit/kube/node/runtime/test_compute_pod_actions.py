"""What a sync does: the tables of kuberuntime_manager_test.go:TestComputePodActions*."""

from dataclasses import replace

import pytest

from lastcall.kube.cri.api import (
    ContainerMetadata,
    ContainerState,
    ContainerStatus,
    NamespaceOption,
    PodSandboxMetadata,
    PodSandboxState,
    PodSandboxStatus,
)
from lastcall.kube.node.interfaces import PodStatus
from lastcall.kube.node.pods.runtime_pod import CONTAINER_HASH_ANNOTATION
from lastcall.kube.node.runtime.decide import compute_pod_actions, hash_container
from lastcall.kube.node.stopping.grace import KillReason

RUNNING, EXITED = ContainerState.CONTAINER_RUNNING, ContainerState.CONTAINER_EXITED
UNKNOWN, CREATED = ContainerState.CONTAINER_UNKNOWN, ContainerState.CONTAINER_CREATED
READY, NOTREADY = PodSandboxState.SANDBOX_READY, PodSandboxState.SANDBOX_NOTREADY


def spec(name, **more):
    return {"name": name, "image": "i", **more}


def pod(*containers, policy="Always", init=(), deleting=False, **more):
    metadata = {"name": "p", "namespace": "default", "uid": "u"}
    if deleting:
        metadata["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    containers = containers or (spec("a"), spec("b"))
    return {
        "metadata": metadata,
        "spec": {"containers": list(containers), "initContainers": list(init), "restartPolicy": policy, **more},
    }


def sandbox(state=READY, attempt=0, ips=("10.0.0.1",), network="POD", id="s0"):
    options = NamespaceOption(network=network)
    return PodSandboxStatus(id, PodSandboxMetadata("p", "u", "default", attempt), state, attempt, ips, options)


def status(container, state=RUNNING, code=0, reason="", sandbox_id="s0"):
    return ContainerStatus(
        f"id-{container['name']}", ContainerMetadata(container["name"]), sandbox_id, state, "i", "i", 1,
        exit_code=code, reason=reason, annotations={CONTAINER_HASH_ANNOTATION: hash_container(container)},
    )  # fmt: skip


def runtime(*statuses, sandboxes=None):
    boxes = (sandbox(),) if sandboxes is None else tuple(sandboxes)
    return PodStatus("u", "p", "default", ("10.0.0.1",), tuple(statuses), boxes)


def compute(the_pod, the_status, liveness=None, startup=None):
    return compute_pod_actions(
        the_pod,
        the_status,
        liveness=lambda id: (liveness or {}).get(id, "unknown"),
        startup=lambda id: (startup or {}).get(id, "unknown"),
    )


A, B = spec("a"), spec("b")


def test_nothing_to_do_when_everything_runs():
    assert compute(pod(), runtime(status(A), status(B))).empty


def test_a_new_pod_gets_a_sandbox_and_all_its_containers():
    actions = compute(pod(), runtime(sandboxes=()))
    assert (actions.kill_pod, actions.create_sandbox, actions.attempt) == (True, True, 0)
    assert actions.containers_to_start == [0, 1] and not actions.sandbox_changed


@pytest.mark.rule("node-semantics 9.2/restart")
@pytest.mark.parametrize(
    ("policy", "code", "restarted"),
    [("Always", 0, True), ("Always", 1, True), ("OnFailure", 0, False), ("OnFailure", 1, True), ("Never", 1, False)],
)
def test_an_ended_container_is_restarted_as_the_policy_says(policy, code, restarted):
    actions = compute(pod(policy=policy), runtime(status(A), status(B, EXITED, code)))
    assert actions.containers_to_start == ([1] if restarted else [])
    assert not actions.kill_pod


@pytest.mark.rule("node-semantics 9.2/restart")
def test_nothing_is_restarted_in_a_pod_that_is_being_deleted():
    assert compute(pod(deleting=True), runtime(status(A), status(B, EXITED, 1))).empty


@pytest.mark.rule("node-semantics 9.2/nothing-left")
def test_the_pod_is_killed_when_nothing_runs_and_nothing_will():
    actions = compute(pod(policy="Never"), runtime(status(A, EXITED), status(B, EXITED, 1)))
    assert actions.kill_pod and not actions.create_sandbox


@pytest.mark.rule("node-semantics 21.2/policy, 21.2/rules")
def test_a_container_s_own_restart_policy_and_rules_come_first():
    rules = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]
    own = spec("a", restartPolicy="Never", restartPolicyRules=rules)
    assert compute(pod(own, B, policy="Never"), runtime(status(own, EXITED, 42), status(B))).containers_to_start == [0]
    assert compute(pod(own, B, policy="Always"), runtime(status(own, EXITED, 1), status(B))).containers_to_start == []


@pytest.mark.rule("node-semantics 9.2/kill")
@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
def test_a_changed_container_is_replaced_whatever_the_policy(policy):
    message = "Container a definition changed, will be restarted"
    changed = spec("a", image="other")
    actions = compute(pod(changed, B, policy=policy), runtime(status(A), status(B)))
    assert [(k.message, k.reason) for k in actions.containers_to_kill] == [(message, None)]
    assert actions.containers_to_start == [0]


@pytest.mark.rule("node-semantics 9.2/kill")
@pytest.mark.parametrize(
    ("probe", "policy", "message", "reason", "starts"),
    [
        ("liveness", "Always", "Container a failed liveness probe, will be restarted", KillReason.LIVENESS_PROBE, [0]),
        ("liveness", "Never", "Container a failed liveness probe", KillReason.LIVENESS_PROBE, []),
        ("startup", "OnFailure", "Container a failed startup probe, will be restarted", KillReason.STARTUP_PROBE, [0]),
    ],
)
def test_a_failed_probe_kills(probe, policy, message, reason, starts):
    probed = spec("a", **{f"{probe}Probe": {}})
    actions = compute(pod(probed, B, policy=policy), runtime(status(probed), status(B)), **{probe: {"id-a": "failure"}})
    assert [(k.message, k.reason) for k in actions.containers_to_kill] == [(message, reason)]
    assert actions.containers_to_start == starts


@pytest.mark.rule("node-semantics 9.2/unknown")
def test_an_unknown_container_is_killed_before_it_is_restarted():
    actions = compute(pod(), runtime(status(A, UNKNOWN), status(B)))
    assert [k.message for k in actions.containers_to_kill] == [
        'Container is in "unknown" state, try killing it before restart'
    ]
    assert actions.containers_to_start == [0]


# -- sandboxes --------------------------------------------------------------------------------------


@pytest.mark.rule("node-semantics 9.2/sandbox")
@pytest.mark.parametrize(
    ("sandboxes", "host_network", "attempt"),
    [
        pytest.param([sandbox(NOTREADY, 3)], False, 4, id="the newest is not ready"),
        pytest.param([sandbox(attempt=1, id="s1"), sandbox()], False, 2, id="more than one is ready"),
        pytest.param([sandbox(network="NODE")], False, 1, id="another network mode"),
        pytest.param([sandbox(ips=())], False, 1, id="no address"),
    ],
)
def test_when_a_sandbox_is_made_anew(sandboxes, host_network, attempt):
    actions = compute(pod(hostNetwork=host_network), runtime(status(A), status(B), sandboxes=sandboxes))
    assert actions.create_sandbox and actions.kill_pod and actions.sandbox_changed
    assert actions.attempt == attempt and actions.containers_to_start == [0, 1]


@pytest.mark.rule("node-semantics 9.2/sandbox")
def test_a_host_network_sandbox_needs_no_address():
    assert compute(
        pod(hostNetwork=True), runtime(status(A), status(B), sandboxes=[sandbox(ips=(), network="NODE")])
    ).empty


@pytest.mark.rule("node-semantics 9.2/no-sandbox")
def test_no_new_sandbox_for_a_pod_that_never_restarts():
    gone = runtime(status(A, EXITED), status(B, EXITED), sandboxes=[sandbox(NOTREADY)])
    actions = compute(pod(policy="Never"), gone)
    assert actions.kill_pod and not actions.create_sandbox


@pytest.mark.rule("node-semantics 9.2/no-sandbox")
def test_no_new_sandbox_when_all_containers_are_done():
    gone = runtime(status(A, EXITED), status(B, EXITED), sandboxes=[sandbox(NOTREADY)])
    actions = compute(pod(policy="OnFailure"), gone)
    assert actions.kill_pod and not actions.create_sandbox


def test_a_new_sandbox_for_on_failure_starts_only_what_had_not_succeeded():
    gone = runtime(status(A, EXITED), status(B, EXITED, 1), sandboxes=[sandbox(NOTREADY)])
    assert compute(pod(policy="OnFailure"), gone).containers_to_start == [1]


# -- init containers --------------------------------------------------------------------------------

I1, I2, I3 = spec("i1"), spec("i2"), spec("i3")
PLAIN = (I1, I2, I3)


def init_actions(*statuses, policy="Always", init=PLAIN, **probes):
    return compute(pod(policy=policy, init=init), runtime(*statuses), **probes)


@pytest.mark.rule("node-semantics 9.2/changed")
def test_a_new_sandbox_starts_with_the_first_init_container():
    actions = compute(pod(init=PLAIN), runtime(sandboxes=()))
    assert actions.init_containers_to_start == [0] and actions.containers_to_start == []


@pytest.mark.rule("node-semantics 9.2/init-failed")
@pytest.mark.parametrize(
    ("statuses", "policy", "starts", "regular", "kill"),
    [
        pytest.param((), "Always", [0], [], False, id="nothing yet"),
        pytest.param((status(I1),), "Always", [], [], False, id="the first runs"),
        pytest.param((status(I1, EXITED),), "Always", [1], [], False, id="the first is done"),
        pytest.param((status(I1, EXITED), status(I2, EXITED)), "Always", [2], [], False, id="two are done"),
        pytest.param((status(I3, EXITED),), "Always", [], [0, 1], False, id="the last is done, others forgotten"),
        pytest.param((status(I1, EXITED, 1),), "Always", [0], [], False, id="failed, restart"),
        pytest.param((status(I1, EXITED, 1),), "OnFailure", [0], [], False, id="failed, OnFailure"),
        pytest.param((status(I1, EXITED, 1),), "Never", [], [], True, id="failed, Never"),
        pytest.param((status(I1, EXITED, 0, "OOMKilled"),), "Never", [], [], True, id="OOMKilled with 0 is a failure"),
        pytest.param((status(I1, EXITED, 0, "OOMKilled"),), "OnFailure", [0], [], False, id="OOMKilled with 0, again"),
        pytest.param((status(I1, UNKNOWN),), "Always", [0], [], False, id="unknown, restart"),
        pytest.param((status(I1, UNKNOWN),), "Never", [], [], True, id="unknown, Never"),
        pytest.param((status(I1, CREATED),), "Always", [0], [], False, id="created but not started"),
    ],
)
def test_how_far_initialisation_has_come(statuses, policy, starts, regular, kill):
    actions = init_actions(*statuses, policy=policy)
    assert actions.init_containers_to_start == starts
    assert actions.containers_to_start == regular
    assert actions.kill_pod == kill


@pytest.mark.rule("node-semantics 9.2/unknown")
def test_an_init_container_in_unknown_state_is_killed_before_it_is_run_again():
    actions = init_actions(status(I1, UNKNOWN))
    (kill,) = actions.containers_to_kill
    assert kill.message == 'Init container is in "unknown" state, try killing it before restart'
    own = spec("i1", restartPolicy="Never")
    again = init_actions(status(own, UNKNOWN), policy="Never", init=(own, I2))
    assert again.init_containers_to_start == [0] and not again.kill_pod  # nobody knows how it ended


def test_init_containers_do_not_run_again_once_a_regular_container_was_created():
    actions = init_actions(status(A), status(B), status(I1, EXITED, 1))
    assert actions.empty


S1, S2 = spec("s1", restartPolicy="Always"), spec("s2", restartPolicy="Always")
SIDECARS = (S1, S2)


@pytest.mark.rule("node-semantics 8/start")
def test_a_running_sidecar_lets_the_next_one_start_and_the_last_one_the_app():
    assert init_actions(status(S1), init=SIDECARS).init_containers_to_start == [1]
    actions = init_actions(status(S1), status(S2), init=SIDECARS)
    assert actions.init_containers_to_start == [] and actions.containers_to_start == [0, 1]


@pytest.mark.rule("node-semantics 8/start")
def test_a_sidecar_with_a_startup_probe_counts_only_once_it_succeeded():
    probed = spec("s1", restartPolicy="Always", startupProbe={})
    init = (probed, S2)
    assert init_actions(status(probed), init=init).init_containers_to_start == []
    started = init_actions(status(probed), init=init, startup={"id-s1": "success"})
    assert started.init_containers_to_start == [1]
    failed = init_actions(status(probed), init=init, startup={"id-s1": "failure"})
    assert [k.message for k in failed.containers_to_kill] == ["Init container s1 failed startup probe"]
    assert failed.init_containers_to_start == [0]


@pytest.mark.rule("node-semantics 8/restart")
@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
@pytest.mark.parametrize("code", [0, 1])
def test_an_ended_sidecar_is_restarted_whatever_the_pod_s_policy(policy, code):
    actions = init_actions(status(A), status(B), status(S1, EXITED, code), status(S2), init=SIDECARS, policy=policy)
    assert actions.init_containers_to_start == [0] and not actions.containers_to_start
    first = init_actions(status(S1, EXITED, code), init=SIDECARS, policy=policy)
    assert first.init_containers_to_start == [0], "before the app ran, too"


@pytest.mark.parametrize(("deleting", "starts"), [(False, [0]), (True, [])])
def test_a_sidecar_whose_record_is_lost_is_started_again_unless_the_pod_is_being_deleted(deleting, starts):
    """kuberuntime_container.go:computeInitContainerActions: its last status was removed for some reason."""
    the_pod = pod(init=SIDECARS, deleting=deleting)
    actions = compute(the_pod, runtime(status(A), status(B), status(S2)))
    assert (actions.init_containers_to_start, actions.containers_to_start, actions.kill_pod) == (starts, [], False)


def test_sidecars_are_not_restarted_when_the_app_has_ended_for_good():
    actions = init_actions(
        status(A, EXITED), status(B, EXITED), status(S1), status(S2, EXITED), init=SIDECARS, policy="Never"
    )
    assert actions.kill_pod and actions.init_containers_to_start == []


def test_a_sidecar_that_fails_its_liveness_probe_is_replaced():
    probed = spec("s1", restartPolicy="Always", livenessProbe={})
    actions = init_actions(status(A), status(B), status(probed), init=(probed,), liveness={"id-s1": "failure"})
    assert [(k.message, k.reason) for k in actions.containers_to_kill] == [
        ("Init container s1 failed liveness probe", KillReason.LIVENESS_PROBE)
    ]
    assert actions.init_containers_to_start == [0]


@pytest.mark.rule("node-semantics 9.2/ephemeral, 21.3/start")
def test_ephemeral_containers_start_once_even_before_initialisation_is_over():
    the_pod = pod(init=PLAIN)
    the_pod["spec"]["ephemeralContainers"] = [spec("debug")]
    actions = compute(the_pod, runtime(status(I1)))
    assert actions.ephemeral_containers_to_start == [0]
    ended = replace(status(spec("debug")), state=EXITED)
    assert compute(the_pod, runtime(status(I1), ended)).ephemeral_containers_to_start == []
