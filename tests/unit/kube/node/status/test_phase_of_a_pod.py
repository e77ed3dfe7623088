"""node-semantics 12.1, with the cases of upstream TestPodPhaseWith*."""

from typing import Any

import pytest

from lastcall.kube.node.status.phase import get_phase


def running(name: str, started: bool = True) -> dict[str, Any]:
    return {"name": name, "state": {"running": {"startedAt": "2030-01-01T00:00:00Z"}}, "started": started}


def ended(name: str, code: int = 0) -> dict[str, Any]:
    return {"name": name, "state": {"terminated": {"exitCode": code}}}


def waiting(name: str, last: int | None = None) -> dict[str, Any]:
    status: dict[str, Any] = {"name": name, "state": {"waiting": {"reason": "x"}}}
    if last is not None:
        status["lastState"] = {"terminated": {"exitCode": last}}
    return status


def pod(containers: str = "a b", init: str = "", sidecars: str = "", policy: str = "Always") -> dict[str, Any]:
    inits = [{"name": n} for n in init.split()] + [{"name": n, "restartPolicy": "Always"} for n in sidecars.split()]
    return {
        "metadata": {"name": "p"},
        "spec": {
            "restartPolicy": policy,
            "containers": [{"name": n} for n in containers.split()],
            "initContainers": inits,
        },
    }


def phase(the_pod: dict[str, Any], *statuses: dict[str, Any], terminal: bool = False, initialized: bool = False) -> str:
    return get_phase(the_pod, list(statuses), pod_is_terminal=terminal, pod_has_initialized=initialized)


A, N, F = "Always", "Never", "OnFailure"


@pytest.mark.rule("node-semantics 12.1/3, 12.1/4, 12.1/6, 12.1/7, 12.1/waiting-stopped")
@pytest.mark.parametrize(
    ("policy", "statuses", "expected"),
    [
        (A, [], "Pending"),
        (A, [running("a"), running("b")], "Running"),
        (A, [ended("a"), ended("b")], "Running"),
        (A, [ended("a", 1), ended("b", 1)], "Running"),
        (A, [running("a"), ended("b", 1)], "Running"),
        (A, [running("a")], "Pending"),
        (A, [running("a"), waiting("b", last=1)], "Running"),
        (A, [waiting("a", last=0), waiting("b", last=1)], "Running"),
        (A, [running("a"), waiting("b")], "Pending"),
        (N, [running("a"), running("b")], "Running"),
        (N, [ended("a"), ended("b")], "Succeeded"),
        (N, [ended("a"), ended("b", 2)], "Failed"),
        (N, [running("a"), ended("b", 2)], "Running"),
        (F, [ended("a"), ended("b")], "Succeeded"),
        (F, [ended("a"), ended("b", 2)], "Running"),
        (F, [ended("a"), waiting("b", last=2)], "Running"),
        (F, [waiting("a"), ended("b")], "Pending"),
    ],
)
def test_the_phase_follows_the_container_states(policy: str, statuses: list[dict[str, Any]], expected: str) -> None:
    assert phase(pod(policy=policy), *statuses) == expected


@pytest.mark.rule("node-semantics 12.1/5, 12.1/deleted")
@pytest.mark.parametrize("policy", [A, N, F])
@pytest.mark.parametrize(("codes", "expected"), [((0, 0), "Succeeded"), ((0, 143), "Failed"), ((137, 0), "Failed")])
def test_a_pod_that_was_stopped_ends_by_its_exit_codes_whatever_its_restart_policy(
    policy: str, codes: tuple[int, int], expected: str
) -> None:
    assert phase(pod(policy=policy), ended("a", codes[0]), ended("b", codes[1]), terminal=True) == expected


@pytest.mark.rule("node-semantics 12.1/before-1.27, 24/phase")
def test_before_1_27_a_stopped_pod_with_restart_policy_always_stays_running() -> None:
    statuses = [ended("a"), ended("b", 137)]
    assert get_phase(pod(), statuses, pod_is_terminal=True, pod_has_initialized=True, force_terminal=False) == "Running"


@pytest.mark.rule("node-semantics 19/phase")
def test_a_static_pod_is_not_forced_into_a_terminal_phase() -> None:
    static = pod()
    static["metadata"]["annotations"] = {"kubernetes.io/config.source": "file"}
    assert phase(static, ended("a"), ended("b"), terminal=True) == "Running"


@pytest.mark.rule("node-semantics 12.1/1, 12.1/2")
@pytest.mark.parametrize(
    ("policy", "statuses", "expected"),
    [
        (N, [running("i"), waiting("a")], "Pending"),
        (N, [ended("i", 1), waiting("a")], "Failed"),
        (A, [ended("i", 1), waiting("a")], "Pending"),
        (F, [waiting("i", last=1), waiting("a")], "Pending"),
        (N, [waiting("i", last=1), waiting("a")], "Failed"),
        (N, [ended("i"), waiting("a")], "Pending"),
        (N, [ended("i"), running("a")], "Running"),
        (N, [ended("i"), ended("a")], "Succeeded"),
    ],
)
def test_plain_init_containers_come_first(policy: str, statuses: list[dict[str, Any]], expected: str) -> None:
    assert phase(pod("a", init="i", policy=policy), *statuses) == expected


@pytest.mark.rule("node-semantics 8/phase, 12.1/2, 12.1/sidecars")
@pytest.mark.parametrize(
    ("statuses", "initialized", "expected"),
    [
        ([running("s", started=False), waiting("a")], False, "Pending"),
        ([running("s"), running("a")], True, "Running"),
        ([running("s"), ended("a")], True, "Running"),
        ([running("s", started=False), running("a")], True, "Running"),
        ([ended("s", 137), ended("a")], True, "Succeeded"),
        ([waiting("s"), running("a")], True, "Pending"),
        ([waiting("s", last=1), running("a")], True, "Running"),
        ([waiting("s", last=1), ended("a")], True, "Succeeded"),
        ([running("a")], True, "Pending"),  # nobody knows of the sidecar
        ([{"name": "s", "state": {}}, running("a")], True, "Pending"),
    ],
)
def test_sidecars_count_while_they_run_but_not_by_their_exit_code(
    statuses: list[dict[str, Any]], initialized: bool, expected: str
) -> None:
    assert phase(pod("a", sidecars="s", policy=N), *statuses, terminal=True, initialized=initialized) == expected


@pytest.mark.rule("node-semantics 21.2/rules")
def test_a_restart_rule_of_the_container_keeps_a_never_pod_running() -> None:
    never = pod("a", policy=N)
    never["spec"]["containers"][0] |= {
        "restartPolicy": "Never",
        "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}],
    }
    assert phase(never, ended("a", 42)) == "Running"
    assert phase(never, ended("a", 43)) == "Failed"


@pytest.mark.rule("node-semantics 12.1/sidecars, 21.3/phase")
@pytest.mark.parametrize("debug", [running("debug"), ended("debug", 1), waiting("debug")])
def test_ephemeral_containers_count_for_nothing(debug: dict[str, Any]) -> None:
    never = pod("a", policy=N)
    never["spec"]["ephemeralContainers"] = [{"name": "debug"}]
    assert phase(never, running("a"), debug) == "Running"
    assert phase(never, ended("a"), debug) == "Succeeded"
