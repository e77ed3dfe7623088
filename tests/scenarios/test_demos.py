"""The two demos of `lastcall demo` in virtual time, from their manifests in examples/."""

from pathlib import Path

import pytest
from scenario.programs import ShellPrograms
from virtual_cluster import VirtualCluster, run_cluster

from lastcall.endings.ending import build_endings
from lastcall.endings.facts.pod import pod_facts
from lastcall.records import kinds

BEFORE_TERMINAL_PHASES = ("1.23",)
"""Since 1.27 every deleted Pod ends in a terminal phase; before, restartPolicy Always left it Running."""

EXAMPLES = Path(__file__).parents[2] / "examples"


def near(value: float, by: float = 0.05):
    return pytest.approx(value, abs=by)


def demo(name: str, version: str = "1.36", seed: int = 0) -> VirtualCluster:
    """Apply `examples/<name>`, wait until Ready, delete at once, follow to the end."""
    holder: list[ShellPrograms] = []

    async def scenario(cluster: VirtualCluster) -> None:
        holder.append(ShellPrograms(cluster.world, cluster.volumes.messages))
        (manifest,) = sorted(EXAMPLES.glob(f"{name}*.yaml"))
        pod, _service = await cluster.create(manifest.read_text())
        name_of_pod = pod["metadata"]["name"]
        await cluster.wait_ready(name_of_pod)
        await cluster.sleep(0.3)
        await cluster.delete(f"pod/{name_of_pod}")
        await cluster.wait_gone(name_of_pod)

    return run_cluster(
        scenario, lambda config, sandbox: holder[0](config, sandbox), kubernetes_version=version, seed=seed
    )


@pytest.mark.parametrize("version", ["1.23", "1.27", "1.36"])
def test_the_graceful_demo_hears_sigterm_after_its_hook_and_drains(version: str) -> None:
    """Hook 3 s, drain 5 s, exit 0, no SIGKILL, gone right after: the same in every version."""
    cluster = demo("term-demo", version)
    pod = "term-demo"
    assert cluster.signals() == [(near(3), "SIGTERM")]
    assert cluster.exits() == [(near(8), 0)]
    gone_after_exit = cluster.gone_at(pod) - cluster.at(kinds.PROCESS_EXITED)
    assert 0 <= gone_after_exit < 0.1
    assert "SIGTERM received, draining..." in cluster.output()
    assert [line.split("]")[0] for line in cluster.events(pod)][-1].startswith("Normal Killing")
    assert cluster.status(pod)["phase"] == ("Running" if version in BEFORE_TERMINAL_PHASES else "Succeeded")


@pytest.mark.parametrize(("version", "kill"), [("1.23", 12), ("1.27", 12), ("1.36", 10)])
def test_the_sigkill_demo_is_killed_when_the_version_s_budget_is_over(version: str, kill: float) -> None:
    """1.22 to 1.27 did not take the hook's 2 s off the grace period of 10 s."""
    cluster = demo("sigkill-demo", version)
    assert cluster.signals() == [(near(2), "SIGTERM"), (near(kill), "SIGKILL")]
    assert cluster.exits() == [(near(kill), 137)]
    terminated = cluster.container_status(pod="sigkill-demo")["state"]["terminated"]
    assert (terminated["exitCode"], terminated["reason"]) == (137, "Error")
    assert cluster.status("sigkill-demo")["phase"] == ("Running" if version in BEFORE_TERMINAL_PHASES else "Failed")


def test_the_whole_way_of_a_deletion_is_recorded_in_kubernetes_s_order() -> None:
    """node-semantics 6, last paragraph: Killing < hook < StopContainer < CNI DEL < statuses < unmount < DELETE."""
    cluster = demo("term-demo")
    order = (
        kinds.DELETE_ACCEPTED,
        kinds.TERMINATION_OBSERVED,
        kinds.KILLING,
        kinds.PRE_STOP_STARTED,
        kinds.PRE_STOP_FINISHED,
        kinds.STOP_REQUESTED,
        kinds.SIGNAL_SENT,
        kinds.PROCESS_EXITED,
        kinds.STOP_FINISHED,
        kinds.NETWORK_DETACHED,
        kinds.SANDBOX_STOPPED,
        kinds.VOLUMES_UNMOUNTED,
        kinds.FINAL_DELETE_SENT,
        kinds.OBJECT_REMOVED,
    )
    assert cluster.kinds(*order, pod="term-demo") == list(order)


def test_the_endpoint_terminates_while_the_hook_runs_and_leaves_with_the_terminal_phase() -> None:
    cluster = demo("term-demo")
    assert cluster.endpoints("term-demo")[-3:] == [
        ["term-demo ready=true serving=true terminating=false"],
        ["term-demo ready=false serving=true terminating=true"],
        [],
    ]
    terminating = next(r for r in cluster.records(kinds.ENDPOINT_CHANGED) if r.facts["terminating"])
    assert terminating.at_ns < cluster.records(kinds.PRE_STOP_FINISHED)[0].at_ns


@pytest.mark.parametrize(
    ("name", "version"), [("term-demo", "1.36"), ("sigkill-demo", "1.36"), ("sigkill-demo", "1.23")]
)
def test_the_story_of_a_simulated_ending_is_complete(name: str, version: str) -> None:
    """The same records make the story of `lastcall run`: budget, exit, who killed, and nothing claimed as observed."""
    cluster = demo(name, version)
    (ending,) = build_endings(cluster.all_records, [pod_facts(cluster.pod(name))], kubernetes_version=version)
    (app,) = ending.containers
    if name == "term-demo":
        assert (app.exit.code, app.exit.sigkilled, ending.budget.grace) == (0, False, 30)
        assert (ending.budget.pre_stop, ending.budget.drain) == (near(3), near(5))
    else:
        assert (app.exit.code, app.exit.sigkilled, ending.budget.grace) == (137, True, 10)
    runtime = [record for record in cluster.all_records if record.actor == "runtime"]
    assert runtime and {record.evidence for record in runtime} == {"predicted"}
