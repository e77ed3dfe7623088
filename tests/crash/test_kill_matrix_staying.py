"""SIGKILL of every process of a cluster that stays, at every stage of a Pod: it goes on, and the Pod ends as it should.

Stages: idle (Ready, then deleted), start (the container starts), preStop (the hook runs), drain (between SIGTERM and
the end), teardown (the container has ended; the node was stopped meanwhile, and has the network still to take down).
"""
# ruff: noqa: ASYNC240 - a scenario has its process to itself

import asyncio
import signal
import threading
from pathlib import Path

import pytest
from oci_registry import Fault, Registry
from ordinary_user import EVERY_USER
from pods import container, pod
from staying_cluster import StayingCluster, staying
from tree import children, cmdline
from waiting import until

from lastcall.kube.api.resources import CONFIGMAPS, NAMESPACES
from lastcall.kube.cri.sandbox.images.from_host import static_busybox

APP = "trap 'sleep 0.6; exit 0' TERM; touch /tmp/up; while true; do sleep 0.02; done # the app"
HOOK = "sleep 0.5; true # the hook"
PROBE = {"exec": {"command": ["test", "-e", "/tmp/up"]}, "periodSeconds": 1}
STAGES = ("start", "idle", "preStop", "drain", "teardown")


def victim(seconds: float) -> dict:
    """Its hook takes half a second, and its drain: `seconds` longer."""
    app, hook = APP.replace("sleep 0.6", f"sleep {0.6 + seconds}"), HOOK.replace("sleep 0.5", f"sleep {0.5 + seconds}")
    mounts = [{"name": "data", "mountPath": "/data"}]
    main = container("app", app, pre_stop=hook, readinessProbe=PROBE, volumeMounts=mounts)
    return pod("p", main, grace=int(6 + 2 * seconds), volumes=[{"name": "data", "emptyDir": {}}])


async def reach(cluster: StayingCluster, stage: str, seconds: float = 0) -> None:
    await cluster.create(victim(seconds))
    if stage == "start":
        await cluster.until(lambda: cluster.find("ContainerCreated"))
        return
    await cluster.ready()
    if stage == "idle":
        await asyncio.sleep(0.2)  # no work is under way
        return
    await cluster.delete()
    if stage == "preStop":
        await cluster.until(lambda: cluster.argvs("ExecStarted", "the hook"))
        return
    await cluster.until(lambda: [r for r in cluster.find("SignalSent") if r.facts["signal"] == "SIGTERM"])
    if stage == "teardown":
        await cluster.kill("node-1", signal.SIGSTOP)
        await cluster.until(lambda: cluster.find("ProcessExited"))


async def end(cluster: StayingCluster) -> None:
    """Delete the Pod if that has not happened, and see that it goes without a trace."""
    await cluster.until(cluster.last, "the watch that follows the Pod is there again")
    if not cluster.last()["metadata"].get("deletionTimestamp"):
        await cluster.ready()
        await cluster.delete()
    await cluster.gone()
    await cluster.nothing_left()


def assert_hooks(cluster: StayingCluster, at_least: int = 1) -> None:
    assert len(cluster.argvs("ExecStarted", "the hook")) >= at_least, "delivered at least once"
    assert not cluster.overlapping_execs("the hook"), "never two at once"


def assert_ended_well(cluster: StayingCluster) -> None:
    """One life, ended by the stop signal."""
    assert [r.facts["argv"][-1] for r in cluster.argvs("ProcessStarted", "the app")] == [APP], "nothing was restarted"
    terminated = cluster.container()["state"]["terminated"]
    assert (terminated["exitCode"], terminated["reason"]) == (0, "Completed")
    assert cluster.container()["restartCount"] == 0
    assert cluster.last()["status"]["phase"] == "Succeeded"
    # A probe that a busy machine is too slow for is ended by a signal of its own.
    others = ("caller", "exec")
    sent = [r.facts["signal"] for r in cluster.find("SignalSent", "app") if not r.facts["why"].startswith(others)]
    assert sent == ["SIGTERM"], "once in its life"


@staying(users=EVERY_USER)
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("stage", STAGES)
async def test_a_killed_node_adopts_its_containers(cluster: StayingCluster, stage: str, times: int) -> None:
    await reach(cluster, stage)
    for _ in range(times):
        await cluster.kill_and_wait("node-1")
    await end(cluster)
    if stage == "start":
        # The start was finished, or it was rolled back and made again.
        started = cluster.argvs("ProcessStarted", "the app")
        assert len(started) == 1 and cluster.container()["state"]["terminated"]["exitCode"] == 0
    else:
        assert_ended_well(cluster)
    assert_hooks(cluster)
    if stage == "idle":
        alive = [each for each in cluster.versions["p"] if not each["metadata"].get("deletionTimestamp")]
        ready = [cluster.is_ready("p", each) for each in alive]
        assert ready == sorted(ready), "once Ready it stayed so"
        events = await cluster.events()
        assert all(event.endswith(" x1") for event in events if "Unhealthy" not in event), events
        assert len(events) == len(set(events)), events


@staying
@pytest.mark.parametrize("stage", STAGES)
async def test_a_killed_control_plane_goes_on_from_its_store(cluster: StayingCluster, stage: str) -> None:
    await reach(cluster, stage)
    version = int(cluster.last().get("metadata", {}).get("resourceVersion", "0"))
    if stage == "teardown":
        await cluster.kill_and_wait("control-plane")
        await cluster.kill("node-1", signal.SIGCONT)
    else:
        await cluster.kill_and_wait("control-plane")
    await end(cluster)
    assert_ended_well(cluster)
    assert len(cluster.argvs("ExecStarted", "the hook")) == 1
    versions = [int(each["metadata"]["resourceVersion"]) for each in cluster.versions["p"]]
    assert versions == sorted(versions) and versions[-1] > version, "they go on where they were"
    assert cluster.restarted == ["control-plane"], "nobody else was touched"


@staying(users=EVERY_USER)
@pytest.mark.parametrize("stage", STAGES)
async def test_a_killed_shim_ends_its_containers_and_pods_restart_by_their_policy(
    cluster: StayingCluster, stage: str
) -> None:
    # That the kill comes before the stage is over decides what there is to tell.
    await reach(cluster, stage, 5 if stage in ("preStop", "drain") else 0)
    await cluster.kill_and_wait("shim-1")
    if stage == "teardown":
        await cluster.kill("node-1", signal.SIGCONT)
    if stage == "idle":
        await cluster.until(lambda: cluster.container()["restartCount"] == 1 and cluster.is_ready(), "it runs again")
    await end(cluster)
    (died,) = [r for r in cluster.find("ProcessDied") if r.facts["role"] == "shim-1"]
    assert died.facts["signal"] == signal.SIGKILL
    assert not cluster.overlapping_execs("the hook")
    exits = cluster.find("ProcessExited", "app")
    if stage == "start" and cluster.find("PreStopSkipped"):
        # It was Ready before the kill came, and deleted before it ran again.
        assert [e.facts["exitCode"] for e in exits] == [137]
    elif stage in ("start", "idle"):
        assert_hooks(cluster)
        assert cluster.container()["state"]["terminated"]["exitCode"] == 0
        if stage == "idle":
            assert [e.facts["exitCode"] for e in exits] == [137, 0], "ended with its shim, and by the DELETE"
            assert cluster.container()["restartCount"] == 1
            assert any("SandboxChanged" in event for event in await cluster.events())
    elif stage == "teardown":
        assert cluster.container()["state"]["terminated"]["exitCode"] == 0, "it had ended before: that is on record"
    else:
        (ended,) = exits
        code = ended.facts["exitCode"]
        # Where a cluster has one user id the shim answers system calls. Without it the application's next one fails:
        # one that is draining may have left by itself before init's SIGKILL.
        assert ended.actor == "init" and (code == 137 or (stage == "drain" and code == 0))
        assert cluster.container()["state"]["terminated"]["exitCode"] == code, "what happened is what is told"
        assert cluster.last()["status"]["phase"] == ("Failed" if code else "Succeeded")
    if stage in ("idle", "preStop", "drain"):
        mine = [r for r in cluster.find("SignalSent", "app") if r.facts["pid"] == exits[0].facts["pid"]]
        if stage == "drain" and exits[0].facts["exitCode"] == 0 and not any(r.actor == "init" for r in mine):
            return  # it had left by itself, as above, before init came to it
        (killed,) = [r for r in mine if r.actor == "init"]
        assert (killed.facts["signal"], killed.facts["why"]) == ("SIGKILL", "the shim died")
        assert killed.pod_uid == cluster.last()["metadata"]["uid"]


@staying
async def test_deletes_acknowledged_right_before_the_kill_go_on(cluster: StayingCluster) -> None:
    await cluster.client.create(NAMESPACES, {"metadata": {"name": "other"}})
    await cluster.again(lambda: cluster.client.create(CONFIGMAPS, {"metadata": {"name": "c"}}, "other"))
    await reach(cluster, "idle")
    await asyncio.gather(cluster.delete(), cluster.client.delete(NAMESPACES, "other"))
    await cluster.kill_and_wait("control-plane")
    await end(cluster)
    assert_ended_well(cluster)

    async def has_ended() -> bool:
        names = (await cluster.again(lambda: cluster.client.list(NAMESPACES))).items
        return all(each["metadata"]["name"] != "other" for each in names)

    await until(has_ended, "the namespace's end")


@staying(users=EVERY_USER)
@pytest.mark.parametrize("role", ["node-1", "shim-1"])
async def test_sidecars_and_shared_processes_are_adopted_too(cluster: StayingCluster, role: str) -> None:
    """A new node finds both containers in one PID namespace; a new shim ends its first process with all the others."""
    side = {**container("side", APP, readinessProbe=PROBE), "restartPolicy": "Always"}
    app = container("app", APP, readinessProbe=PROBE)
    await cluster.create(pod("p", app, initContainers=[side], shareProcessNamespace=True, grace=6))
    await cluster.ready()
    await cluster.kill_and_wait(role)
    if role == "shim-1":
        await cluster.until(lambda: cluster.container()["restartCount"] == 1 and cluster.is_ready(), "it runs again")
    await cluster.delete()
    await cluster.gone()
    ends = [(r.container, r.facts["exitCode"]) for r in cluster.find("ProcessExited")]
    assert ends[-2:] == [("app", 0), ("side", 0)], "the sidecar comes last"
    assert len(ends) == (2 if role == "node-1" else 4)
    await cluster.nothing_left()


@staying(users=EVERY_USER)
async def test_all_three_killed_at_once_come_back(cluster: StayingCluster) -> None:
    await reach(cluster, "idle")
    for role in ("node-1", "shim-1", "control-plane"):
        await cluster.kill(role)
    await cluster.until(lambda: len(cluster.restarted) == 3, "all are started again")
    await cluster.until(lambda: cluster.container()["restartCount"] == 1 and cluster.is_ready(), "it runs again")
    await end(cluster)
    assert cluster.container()["state"]["terminated"]["exitCode"] == 0


MEMORY = {"name": "m", "emptyDir": {"medium": "Memory"}}
MOUNTS = [{"name": "m", "mountPath": "/m"}, {"name": "m", "mountPath": "/sub", "subPath": "deep"}]


@staying
@pytest.mark.parametrize("stage", ["start", "drain"])
async def test_an_orphan_of_a_killed_node_goes_with_its_mounts_sandbox_and_logs(
    cluster: StayingCluster, stage: str
) -> None:
    """Nobody knows of it any more but the shim and the directories."""
    app = container("app", APP, volumeMounts=MOUNTS)
    await cluster.create(pod("p", app, grace=6, volumes=[MEMORY]))
    if stage == "start":
        await cluster.until(lambda: cluster.find("ContainerCreated"))
    else:
        await cluster.ready()
        await cluster.delete()
        await cluster.until(lambda: [r for r in cluster.find("SignalSent") if r.facts["signal"] == "SIGTERM"])
    await cluster.kill("node-1", signal.SIGSTOP)
    assert any(each.startswith("mount ") for each in cluster.left())
    await cluster.delete(grace_period_seconds=0)
    await cluster.gone()
    await cluster.kill_and_wait("node-1")
    await cluster.nothing_left()


@staying
async def test_a_pod_that_was_deleted_for_good_while_the_node_was_away_ends_too(cluster: StayingCluster) -> None:
    await reach(cluster, "idle")
    await cluster.kill("node-1", signal.SIGSTOP)
    await cluster.delete(grace_period_seconds=0)
    await cluster.gone()
    await cluster.kill_and_wait("node-1")
    await cluster.until(lambda: cluster.find("ProcessExited", "app"))
    await cluster.nothing_left()
    assert cluster.argvs("ExecStarted", "the hook") == [], "nobody knows the hook of a Pod that only the runtime knows"


@staying
async def test_addresses_and_names_of_containers_that_run_stay_theirs(cluster: StayingCluster) -> None:
    await cluster.create(*(pod(f"p{number}") for number in range(3)))
    for number in range(3):
        await cluster.ready(f"p{number}")
    before = [cluster.last(f"p{number}")["status"] for number in range(3)]
    for _ in range(3):
        await cluster.kill_and_wait("node-1")
    await cluster.create(pod("p3"))
    await cluster.ready("p3")
    addresses = [cluster.last(f"p{number}")["status"]["podIP"] for number in range(4)]
    assert len(set(addresses)) == 4, addresses
    after = [cluster.last(f"p{number}")["status"] for number in range(3)]
    for old, new in zip(before, after, strict=True):
        assert old["podIP"] == new["podIP"] and old["startTime"] == new["startTime"]
        assert old["containerStatuses"] == new["containerStatuses"]
    for number in range(4):
        await cluster.delete(f"p{number}")
    for number in range(4):
        await cluster.gone(f"p{number}")
    await cluster.nothing_left()


@staying
async def test_a_node_that_dies_at_once_again_and_again_is_given_time(cluster: StayingCluster) -> None:
    for _ in range(6):
        await cluster.kill_and_wait("node-1")
    waits = [round(r.facts["restartsIn"], 3) for r in cluster.find("ProcessDied") if r.facts["role"] == "node-1"]
    assert waits == [0, 0.01, 0.02, 0.04, 0.08, 0.16]
    await cluster.create(pod("p"))
    await cluster.ready()
    await cluster.delete()
    await cluster.gone()


@staying
async def test_output_goes_on_while_the_node_is_away(cluster: StayingCluster) -> None:
    counts = "i=0; while true; do i=$((i+1)); echo $i; sleep 0.01; done"
    await cluster.create(pod("p", container("app", counts), grace=0))
    await cluster.ready()
    for _ in range(4):
        await cluster.kill_and_wait("node-1")
        before = len(lines_of_the_log(cluster))
        await cluster.until(lambda before=before: len(lines_of_the_log(cluster)) > before + 8, "it goes on")
    numbers = [int(line.split(" ", 3)[3]) for line in lines_of_the_log(cluster)]
    assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) > 30


def lines_of_the_log(cluster: StayingCluster) -> list[str]:
    """Whole ones: the last may be in the making."""
    (log,) = Path(f"/proc/{cluster.init}/root/lastcall/log/pods").glob("*/app/0.log")
    return log.read_text().rpartition("\n")[0].splitlines()


@staying
async def test_a_host_pid_container_ends_with_its_shim_too(cluster: StayingCluster) -> None:
    stubborn = "(trap '' TERM; sleep 1000) & trap '' TERM; while true; do sleep 0.05; done # the app"
    await cluster.create(pod("p", container("app", stubborn), hostPID=True, restartPolicy="Never", grace=1))
    await cluster.ready()
    await cluster.kill_and_wait("shim-1")
    await cluster.until(lambda: cluster.last()["status"]["phase"] == "Failed", "the Pod has failed")
    assert cluster.container()["state"]["terminated"]["exitCode"] == 137

    def others() -> list[list[str]]:
        roles = set(cluster.embedded.host_pids().values())
        return [cmdline(pid) for pid in children(cluster.init) if pid not in roles]

    await cluster.until(lambda: not others(), "nobody of it is left")
    await cluster.delete()
    await cluster.gone()
    await cluster.nothing_left()


@staying
@pytest.mark.parametrize("role", ["node-1", "control-plane", "shim-1"])
async def test_a_pull_under_way_is_finished_or_begun_again(cluster: StayingCluster, role: str) -> None:
    program = Path(str(static_busybox())).read_bytes()
    with Registry() as registry:
        script = "trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done"
        files = {"bin/busybox": program, "bin/sh": program, "bin/sleep": program}
        registry.add("app:v1", files, {"Entrypoint": ["/bin/sh", "-c", script], "Env": ["PATH=/bin"]})
        layer = max(registry.blobs, key=lambda digest: len(registry.blobs[digest]))
        held = threading.Event()
        registry.faults.append(Fault(layer, hold=held))
        app = {"name": "app", "image": f"{registry.host}/app:v1"}
        await cluster.create(pod("p", app, restartPolicy="Never"))
        await cluster.until(lambda: registry.asked(layer), "the layer is asked for")
        await cluster.kill_and_wait(role)
        held.set()
        await cluster.until(lambda: cluster.find("Output", "app"), "its handler is there")
        await cluster.delete()
        await cluster.gone()
        terminated = cluster.container()["state"]["terminated"]
        assert (terminated["exitCode"], cluster.container()["restartCount"]) == (0, 0)
        assert len(cluster.find("ProcessStarted", "app")) == 1
        await cluster.nothing_left()
