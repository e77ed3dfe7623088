"""A role whose event loop hangs is ended with its stack told, and comes back; one that is stopped or starved is not.

What hangs is made to in `tests/support/hanging/sitecustomize.py`.
"""

import asyncio
import contextlib
import json
import os
import signal
import ssl
import subprocess
import time
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import ordinary_user
import pytest
import yaml
from kubectls import KUBECTL
from pods import container, pod
from run_command import Lastcall
from staying import Place
from staying_cluster import HANGING, StayingCluster, staying
from waiting import eventually

from lastcall.kube.api.resources import CONFIGMAPS
from lastcall.records.record import Record

CONFIGMAPS_PATH = "/api/v1/namespaces/default/configmaps"
STOPPED_SECONDS = 30.0
LOADED_SECONDS = 60.0
BURNERS = 15
ONE_USER = ordinary_user.USERS[-1:]
"""For what takes its time whoever runs it."""
SLOWEST_SECONDS = 400.0
"""Until a hang is over, on a machine that is busy with other tests: ten seconds of a role's own time."""


def ask_once(server: str, token: str, name: str) -> None:
    """GET of a ConfigMap that is not there, and not answered when the control plane hangs. Clients ask again then."""
    address = urlsplit(server)
    context = ssl._create_unverified_context()
    connection = HTTPSConnection(address.hostname, address.port, context=context, timeout=300)
    with contextlib.suppress(OSError, HTTPException):
        connection.request("GET", f"{CONFIGMAPS_PATH}/{name}", headers={"Authorization": f"Bearer {token}"})
        connection.getresponse().read()
    connection.close()


async def ask(cluster: StayingCluster, name: str) -> None:
    token = cluster.embedded._plan.credentials.admin_token
    await asyncio.to_thread(ask_once, cluster.embedded.server, token, name)


def deaths(cluster: StayingCluster) -> list[Record]:
    return [record for record in cluster.find("ProcessDied") if record.facts["role"] != "orphan"]


async def a_running_pod(cluster: StayingCluster) -> None:
    await cluster.create(pod("p", container("app", "trap 'exit 0' TERM; while true; do sleep 0.1; done")))
    await cluster.ready()


async def it_lived_on(cluster: StayingCluster) -> None:
    """The Pod of `a_running_pod`, which can also be ended as ever."""
    await cluster.again(lambda: cluster.client.list(CONFIGMAPS, "default"))
    assert cluster.container()["restartCount"] == 0
    await cluster.delete()
    await cluster.gone()
    assert cluster.container()["state"]["terminated"]["exitCode"] == 0
    await cluster.nothing_left()


@staying(hanging=True, timeout=600)
@pytest.mark.parametrize(("path", "function"), [("hang", "spin"), ("hang-in-c", "spin_in_c"), ("sleep", "<lambda>")])
async def test_a_control_plane_whose_loop_hangs_is_ended_with_its_stack_and_pods_live_on(
    cluster: StayingCluster, path: str, function: str
) -> None:
    await a_running_pod(cluster)
    asked = asyncio.create_task(ask(cluster, path))
    await cluster.until(lambda: "control-plane" in cluster.restarted, "it is started again", limit=SLOWEST_SECONDS)
    await asked
    await cluster.embedded.drain_records()
    (died,) = deaths(cluster)
    assert (died.facts["role"], died.facts["signal"]) == ("control-plane", signal.SIGKILL)
    assert died.facts["workingOn"] == {
        "component": "API request",
        "key": f"GET {CONFIGMAPS_PATH}/{path}",
    }
    assert 10 <= died.facts["hung"]["seconds"] < 20
    log = cluster.embedded.last_words("control-plane", 200)
    for told in ("the event loop has not turned for 1", f"configmaps/{path} (API request)", f"in {function}\n"):
        assert told in log, log
    await it_lived_on(cluster)
    assert cluster.restarted == ["control-plane"], "nobody else was touched"


@staying(hanging=True, timeout=600)
async def test_a_node_whose_loop_hangs_is_ended_and_its_pods_live_on(cluster: StayingCluster) -> None:
    await a_running_pod(cluster)
    await cluster.create(pod("poison"))
    await cluster.until(lambda: "node-1" in cluster.restarted, "it is started again", limit=SLOWEST_SECONDS)
    await cluster.embedded.drain_records()
    (died,) = deaths(cluster)
    assert died.facts["role"] == "node-1" and "hung" in died.facts
    assert "in spin\n" in died.facts["hung"]["stack"]
    await cluster.ready("poison")
    await cluster.delete("poison")
    await cluster.gone("poison")
    await it_lived_on(cluster)


@staying(timeout=400, users=ONE_USER)
@pytest.mark.parametrize("roles", ["control-plane node-1", "init"])
async def test_a_process_that_is_stopped_for_half_a_minute_is_no_hang(cluster: StayingCluster, roles: str) -> None:
    await a_running_pod(cluster)
    pids = [cluster.pid(role) for role in roles.split()]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    await asyncio.sleep(STOPPED_SECONDS)  # the length of the stop is what is tested
    assert not deaths(cluster)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    await asyncio.sleep(6)  # a watchdog that took the stop for a hang would kill within this time
    assert not deaths(cluster) and not cluster.restarted
    await it_lived_on(cluster)


@staying(hanging=True, timeout=400, users=ONE_USER)
async def test_a_starved_control_plane_is_no_hang_however_slow_its_work(cluster: StayingCluster) -> None:
    """Fifteen that burn, and work of 4 s: with its share of the processors it takes longer than ten seconds."""
    await a_running_pod(cluster)
    burners = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(BURNERS)]  # noqa: ASYNC220
    try:
        until = time.monotonic() + LOADED_SECONDS
        slowest = 0.0
        while time.monotonic() < until:
            began = time.monotonic()
            await ask(cluster, "slow")
            slowest = max(slowest, time.monotonic() - began)
    finally:
        for each in burners:
            each.kill()
            each.wait()
    print(f"the slowest answer took {slowest:.1f} s")
    assert not deaths(cluster) and not cluster.restarted
    await it_lived_on(cluster)


JOB = {
    "metadata": {"name": "poison", "namespace": "default"},
    "spec": {"template": {"spec": {"containers": [container("app", "true")], "restartPolicy": "Never"}}},
}


@pytest.mark.real_kernel
@pytest.mark.parametrize("user", ordinary_user.USERS)
def test_a_command_that_restarts_nothing_ends_with_the_stack(user: str) -> None:
    manifest = {"apiVersion": "batch/v1", "kind": "Job", **JOB}
    with Lastcall(["run", "-", "--timeout", "120"], manifests=[manifest], user=user, environment=HANGING) as command:
        result = command.finish(SLOWEST_SECONDS)
    assert result.status == 1
    assert "control-plane (pid" in result.err and "hung: its event loop did not turn for 1" in result.err
    assert "in spin\n" in result.err, result.err


@pytest.mark.real_kernel
@pytest.mark.parametrize("user", ordinary_user.USERS)
def test_a_role_that_dies_of_the_same_request_again_and_again_is_told_with_it(user: str) -> None:
    with Place(user, environment={**HANGING}) as place:
        facts = place.up()
        kubeconfig = yaml.safe_load(Path(facts["kubeconfig"]).read_text())
        for times in (1, 2):
            ask_once(facts["server"], kubeconfig["users"][0]["user"]["token"], "hang")
            eventually(lambda times=times: control_plane(place)["restarts"] == times, "it is started again")
        process = control_plane(place)
        assert process["hangs"] == 2 and process["lastDeath"].startswith("hung: its event loop did not turn for 1")
        assert process["diesOf"] == [{"component": "API request", "key": f"GET {CONFIGMAPS_PATH}/hang", "deaths": 2}]
        told = f"control-plane died 2 times while answering GET {CONFIGMAPS_PATH}/hang"
        assert f"{told}: lastcall logs --role control-plane" in place.ok("status")
        assert told in place.ok("logs", "--role", "front")
        assert "in spin\n" in place.ok("logs", "--role", "front"), "innermost call first"
        assert "in spin\n" in place.ok("logs", "--role", "control-plane")


@pytest.mark.real_kernel
@pytest.mark.parametrize("user", ordinary_user.USERS)
def test_an_object_that_ends_the_control_plane_again_and_again_is_named_and_can_be_deleted(user: str) -> None:
    with Place(user, environment={**HANGING}) as place:
        facts = place.up()
        manifest = json.dumps({"apiVersion": "batch/v1", "kind": "Job", **JOB})
        place.kubectl(facts["kubeconfig"], "create", "-f", "-", stdin=manifest)
        eventually(lambda: control_plane(place)["restarts"] == 2, "it is started again twice", SLOWEST_SECONDS)
        process = control_plane(place)
        assert process["diesOf"] == [{"component": "job-controller", "key": "default/poison", "deaths": 2}]
        assert process["servesAloneSeconds"] == 15
        told = place.ok("status")
        assert "control-plane died 2 times while working on default/poison (job-controller)" in told
        assert "fix: delete that object within 15 s of a start, its controllers begin only then" in told

        def deleted() -> bool:
            done = subprocess.run(
                [KUBECTL, "--kubeconfig", facts["kubeconfig"], "--cache-dir", str(place.home / "tmp/kubectl"),
                 "delete", "job", "poison", "--wait=false"],
                env={"HOME": str(place.home / "tmp")}, capture_output=True, timeout=120, check=False,
            )  # fmt: skip
            return done.returncode == 0

        eventually(deleted, "it is deleted", SLOWEST_SECONDS)
        restarts = control_plane(place)["restarts"]
        place.kubectl(facts["kubeconfig"], "create", "deployment", "web", "--image=busybox:1.36", "--", "sleep", "99")
        asked = ("get", "deployment", "web", "-o", "jsonpath={.status.availableReplicas}")
        eventually(lambda: place.kubectl(facts["kubeconfig"], *asked) == "1", "it is available", SLOWEST_SECONDS)
        assert control_plane(place)["restarts"] == restarts, "it lives on, with all controllers"


def control_plane(place: Place) -> dict[str, Any]:
    (found,) = [each for each in place.status()["processes"] if each["role"] == "control-plane"]
    return found
