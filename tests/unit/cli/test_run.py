"""`lastcall run` around a cluster: what it says, what it ends with, and that the cluster is stopped."""

import asyncio
import json
import signal
from dataclasses import replace

import pytest
import uvloop

from lastcall.cli.errors import guarded
from lastcall.cli.run.experiment import run_manifests
from lastcall.errors import Interrupted, UserError, WorldError
from lastcall.experiment.run.options import RunOptions
from lastcall.kube.api.errors import status_failure
from lastcall.kube.cluster.errors import ClusterStartError
from lastcall.manifests.read import load_manifests
from lastcall.world.interrupts import Interrupts
from lastcall.world.need import Need

pytestmark = pytest.mark.loopback

FAST = RunOptions(after=0, timeout=60)


@pytest.fixture
def run(pod_file):
    def run(cluster, options=FAST, sources=None):
        return run_manifests(load_manifests(sources or [str(pod_file)]), options, lambda _: cluster.at_start())

    return run


def test_a_graceful_end_is_status_0_and_the_cluster_is_stopped(run, new_cluster, capsys):
    cluster = new_cluster()
    assert run(cluster) == 0
    assert cluster.stopped == 1
    out, err = capsys.readouterr()
    assert "default/web ended gracefully" in out
    assert "SIGTERM → PID 1 (StopContainer)" in out
    assert "default/web is Ready" in err
    assert "\x1b" not in out


def test_a_kill_is_status_3(run, new_cluster, capsys):
    assert run(new_cluster(kill=True)) == 3
    assert "default/web was killed" in capsys.readouterr().out


def test_a_failed_hook_is_status_3(run, new_cluster):
    assert run(new_cluster(hook="failed")) == 3
    assert run(new_cluster(hook="succeeded")) == 0


def test_json_goes_to_stdout_alone(run, new_cluster, capsys):
    assert run(new_cluster(kill=True), replace(FAST, output="json")) == 3
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert (document["schema"], document["exitStatus"]) == ("lastcall/ending/v1", 3)
    (pod,) = document["pods"]
    assert (pod["name"], pod["outcome"], pod["containers"][0]["killedBy"]) == ("web", "killed", "grace over")
    assert [r["kind"] for r in pod["records"]].count("PodGoneSeen") == 1
    assert "SIGKILL → PID 1" in err


INGRESS = """\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}
"""


def test_what_nobody_acts_on_is_said_in_text_and_in_json(run, new_cluster, pod_file, tmp_path, capsys):
    (tmp_path / "ingress.yaml").write_text(INGRESS)
    sources = [str(pod_file), str(tmp_path / "ingress.yaml")]
    assert run(new_cluster(), replace(FAST, output="json"), sources) == 0
    out, err = capsys.readouterr()
    (note,) = json.loads(out)["notSimulated"]
    assert note["id"] == "ingressIgnored" and note["what"] == "Ingress shop"
    assert f"not simulated: {note['text']}" in err


def test_a_run_of_what_is_simulated_in_full_says_so_by_an_empty_list(run, new_cluster, capsys):
    assert run(new_cluster(), replace(FAST, output="json")) == 0
    assert json.loads(capsys.readouterr().out)["notSimulated"] == []


def test_the_delete_carries_the_grace_that_was_asked_for(run, new_cluster, capsys):
    assert run(new_cluster(), replace(FAST, grace=7, output="json")) == 0
    assert json.loads(capsys.readouterr().out)["pods"][0]["graceSeconds"] == 7


def test_a_pod_that_completes_on_its_own_counts_as_ended_by_itself(run, new_cluster, capsys):
    assert run(new_cluster(ends_by_itself=True)) == 0
    out, err = capsys.readouterr()
    assert "web has already ended (Succeeded)" in err
    assert "ended by itself" in out


def test_a_pod_that_never_becomes_ready_says_why(run, new_cluster):
    cluster = new_cluster(ready=False)
    with pytest.raises(WorldError) as error:
        run(cluster, replace(FAST, timeout=0.1))
    assert "timed out after 0.1 s (--timeout) waiting for all Pods to become Ready" in str(error.value)
    assert "condition Ready is False: ContainersNotReady: not yet" in str(error.value)
    assert cluster.stopped == 1


def test_a_reason_that_waiting_does_not_change_is_told_at_once(run, new_cluster):
    cluster = new_cluster(waiting={"reason": "ErrImagePull", "message": "no such image"})
    with pytest.raises(WorldError) as error:
        run(cluster, replace(FAST, timeout=3600))
    assert "container app: ErrImagePull: no such image" in str(error.value)
    assert "lastcall image import" in str(error.value)


def test_a_pod_that_does_not_go_is_an_error_with_its_story(run, new_cluster, capsys, monkeypatch):
    monkeypatch.setattr("lastcall.experiment.run.embedded.longest_grace", lambda pods, asked: 0.0)
    cluster = new_cluster(stuck=True)
    with pytest.raises(WorldError, match="default/web is still there"):
        run(cluster, replace(FAST, timeout=0.2))
    assert "The removal of the object was not seen." in capsys.readouterr().out
    assert cluster.stopped == 1


@pytest.mark.parametrize("stage", ["start", "connect", "node", "created", "deleted"])
def test_ctrl_c_once_tears_down_at_every_stage_and_deletes_nothing_more(run, new_cluster, stage):
    cluster = new_cluster(interrupt_at=stage, stuck=True)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(Interrupted) as error:
        run(cluster, replace(FAST, timeout=30))
    assert error.value.number == signal.SIGINT
    assert "tearing down the cluster" in str(error.value)
    assert cluster.stopped == 1
    if cluster.client is not None and stage != "deleted":
        assert not [call for call in cluster.client.calls if call[0] == "delete"]
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_twice_leaves_at_once(capfd):
    left = []
    with Interrupts(leave=left.append):
        signal.raise_signal(signal.SIGINT)
        assert left == []
        signal.raise_signal(signal.SIGINT)
    assert left == [130]
    assert "stopped at once" in capfd.readouterr().err


def test_under_nohup_a_hangup_stays_ignored():
    old = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            signal.raise_signal(signal.SIGHUP)
        assert interrupts.number == 0
    finally:
        signal.signal(signal.SIGHUP, old)


def test_sigterm_ends_in_order_with_its_own_status():
    with Interrupts() as interrupts:
        interrupts.check()
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(Interrupted) as error:
            interrupts.check()
    assert error.value.number == signal.SIGTERM
    assert interrupts.exit_status == 143


def test_work_that_is_cancelled_without_a_signal_is_not_told_as_interrupted():
    async def cancelled():
        raise asyncio.CancelledError

    async def interrupted():
        signal.raise_signal(signal.SIGTERM)
        await asyncio.sleep(60)  # ends by the signal

    with Interrupts() as interrupts, pytest.raises(asyncio.CancelledError):
        interrupts.run(cancelled())
    for runner in (asyncio.run, uvloop.run):
        with Interrupts() as interrupts, pytest.raises(Interrupted, match="SIGTERM"):
            interrupts.run(interrupted(), runner=runner)


@pytest.mark.parametrize("stage", ["created", "deleted"])
def test_the_death_of_a_process_of_the_cluster_is_named(run, new_cluster, stage, capsys):
    cluster = new_cluster(die_at=stage, stuck=True)
    with pytest.raises(WorldError, match=r"node-1 \(pid 4 inside the cluster\) was killed by SIGKILL"):
        run(cluster, replace(FAST, timeout=30))
    assert cluster.stopped == 1
    assert ("default/web" in capsys.readouterr().out) == (stage == "deleted")


def test_a_process_that_dies_while_the_cluster_starts_is_why_it_cannot_start(run, new_cluster):
    why = ClusterStartError("node-1 was killed by signal 9 while the cluster started")
    cluster = new_cluster(die_at="node", fail_at="node", error=why)
    with pytest.raises(WorldError, match="the cluster cannot start: node-1 was killed by signal 9 while"):
        run(cluster, FAST)
    assert cluster.stopped == 1


def test_a_process_that_ended_by_itself_is_named_with_its_last_words(run, new_cluster):
    cluster = new_cluster(die_at="created", stuck=True, death=(70, None), words="OSError: no space left")
    with pytest.raises(WorldError, match=r"node-1 \(pid 4 inside the cluster\) exited with 70: OSError: no space left"):
        run(cluster, replace(FAST, timeout=30))


def test_a_process_that_hung_is_named_with_where_it_stood(run, new_cluster):
    hung = "hung: its event loop did not turn for 10 s, and was ended. Where it stood:\n  File x.py in spin"
    cluster = new_cluster(die_at="created", stuck=True, hung=hung)
    with pytest.raises(WorldError, match=r"node-1 \(pid 4 inside the cluster\) hung: its event[^\0]*in spin"):
        run(cluster, replace(FAST, timeout=30))


def test_the_story_of_a_death_is_valid_json_with_the_error_in_it(run, new_cluster, capsys):
    with pytest.raises(WorldError):
        run(new_cluster(die_at="deleted", stuck=True), replace(FAST, output="json"))
    document = json.loads(capsys.readouterr().out)
    assert document["exitStatus"] == 1
    assert "node-1" in document["error"]


def test_a_start_failure_names_the_need_and_the_doctor(run, new_cluster, capsys):
    need = Need(
        "user namespaces", "missing", "user.max_user_namespaces is 0", "", "sysctl -w user.max_user_namespaces=1"
    )
    error = ClusterStartError("the kernel refuses the cluster's namespaces", need)
    cluster = new_cluster(fail_at="start", error=error)
    assert guarded(lambda: run(cluster)) == 1
    err = capsys.readouterr().err
    assert len(err.strip().splitlines()) == 1
    assert "sysctl -w user.max_user_namespaces=1" in err
    assert "lastcall doctor" in err
    assert cluster.stopped == 0, "there is nothing to stop"


@pytest.mark.parametrize("stage", ["start", "connect", "node"])
def test_a_full_disk_is_one_clear_line(run, new_cluster, stage, capsys):
    cluster = new_cluster(fail_at=stage, error=OSError(28, "No space left on device", "/lastcall"))
    assert guarded(lambda: run(cluster)) == 1
    err = capsys.readouterr().err.strip().splitlines()[-1]
    assert err.startswith("lastcall: /lastcall: No space left on device (free some space")
    assert cluster.stopped == (stage != "start")


def test_an_unforeseen_error_shows_no_traceback_unless_asked(run, new_cluster, capsys, monkeypatch):
    cluster = new_cluster(fail_at="node", error=ZeroDivisionError("oops"))
    monkeypatch.delenv("LASTCALL_DEBUG", raising=False)
    assert guarded(lambda: run(cluster)) == 1
    err = capsys.readouterr().err
    assert "internal error: ZeroDivisionError: oops" in err
    assert "Traceback" not in err
    monkeypatch.setenv("LASTCALL_DEBUG", "1")
    assert guarded(lambda: run(new_cluster(fail_at="node", error=ZeroDivisionError("oops")))) == 1
    assert "Traceback" in capsys.readouterr().err


def test_a_refused_object_is_the_users_error_with_file_line_and_field(new_cluster, pod_file):
    causes = [{"field": "spec.containers[0].image", "message": "Invalid value: …"}]
    refusal = status_failure(422, "Invalid", "Pod is invalid", {"causes": causes})
    cluster = new_cluster()
    connect = cluster.connect

    async def connect_and_refuse():
        await connect()
        cluster.client.fail_next("create", "pods", refusal)

    cluster.connect = connect_and_refuse
    with pytest.raises(UserError) as error:
        run_manifests(load_manifests([str(pod_file)]), FAST, lambda _: cluster.at_start())
    assert str(error.value) == f"{pod_file}:8: Pod web: spec.containers[0].image: Invalid value: …"


def test_a_namespace_that_nobody_defines_is_created_and_said(new_cluster, tmp_path, capsys, pod_file):
    path = tmp_path / "shop.yaml"
    path.write_text(pod_file.read_text().replace("name: web", "name: web\n  namespace: shop"))
    cluster = new_cluster()
    assert run_manifests(load_manifests([str(path)]), FAST, lambda _: cluster.at_start()) == 0
    out, err = capsys.readouterr()
    assert "namespace shop created" in err
    assert "shop/web ended gracefully" in out


def test_a_late_service_account_is_waited_for(new_cluster, pod_file):
    message = (
        'pods "web" is forbidden: error looking up service account default/default: serviceaccount "default" not found'
    )
    cluster = new_cluster()
    connect = cluster.connect

    async def connect_and_refuse():
        await connect()
        cluster.client.fail_next("create", "pods", status_failure(403, "Forbidden", message), times=3)

    cluster.connect = connect_and_refuse
    assert run_manifests(load_manifests([str(pod_file)]), FAST, lambda _: cluster.at_start()) == 0


def test_with_keep_on_failure_a_cluster_whose_pod_is_not_ready_stays(new_cluster, pod_file, capsys, monkeypatch):
    options = replace(FAST, keep_on_failure=True, timeout=0.1)
    cluster = new_cluster(ready=False)

    def path():
        assert not cluster.stopped
        cluster.spawn(press())
        return "/proc/1/fd/9"

    async def press():
        signal.raise_signal(signal.SIGINT)

    cluster.kubeconfig_path = path
    assert run_manifests(load_manifests([str(pod_file)]), options, lambda _: cluster.at_start()) == 1
    said = capsys.readouterr().err
    assert said.index("waiting for all Pods to become Ready") < said.index("kubectl --kubeconfig /proc/1/fd/9")
    assert cluster.stopped == 1
    assert run_manifests(load_manifests([str(pod_file)]), replace(options, timeout=5), lambda _: new_cluster()) == 0


def test_keep_says_how_to_reach_the_cluster_and_ctrl_c_is_the_way_out(new_cluster, pod_file, capsys, monkeypatch):
    cluster = new_cluster()

    def path():
        cluster.spawn(press())
        return "/proc/1/fd/9"

    async def press():
        signal.raise_signal(signal.SIGINT)

    cluster.kubeconfig_path = path
    assert run_manifests(load_manifests([str(pod_file)]), replace(FAST, keep=True), lambda _: cluster.at_start()) == 0
    assert "kubectl --kubeconfig /proc/1/fd/9" in capsys.readouterr().err
    assert cluster.stopped == 1
