"""Static Pods and their mirrors in whole clusters (node-semantics 19, 25.25, 25.26, 25.30)."""

import json
from typing import Any

import pytest
from virtual_cluster import VirtualCluster, container, run_cluster

from lastcall.kube.client.api import ConnectionLost
from lastcall.kube.cri.simulated_program import Program
from lastcall.records import kinds

NAME = "web-node-1"


class Manifests:
    """A manifest directory of the virtual world."""

    def __init__(self, **files: Any) -> None:
        self.files: dict[str, bytes | str] = {}
        for name, content in files.items():
            self.write(name, content)

    def write(self, name: str, content: Any) -> None:
        self.files[name] = json.dumps(content).encode() if isinstance(content, dict) else content

    async def read(self) -> dict[str, bytes | str]:
        return dict(sorted(self.files.items()))


def manifest(name: str = "web", *, grace: int = 30, containers: list[Any] | None = None, **metadata: Any) -> Any:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {"terminationGracePeriodSeconds": grace, "containers": containers or [container()]},
    }


def running(cluster: VirtualCluster, name: str = NAME) -> bool:
    return cluster.pod(name).get("status", {}).get("phase") == "Running"


def starts(cluster: VirtualCluster) -> int:
    return len(cluster.records(kinds.PROCESS_STARTED))


def mirrors(cluster: VirtualCluster, name: str = NAME) -> list[str]:
    """The UIDs of all mirrors of that name, in order."""
    return list(cluster._uids.get(f"default/{name}", []))


@pytest.mark.rule("node-semantics 2/sources, 9.1/mirror, 19/mirror, 19/uid")
def test_a_manifest_runs_as_a_pod_with_a_mirror() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.wait_until(lambda: running(cluster))

    cluster = run_cluster(scenario, {"app": Program()}, kubelet={"static_pods": Manifests(web=manifest())})
    mirror = cluster.pod(NAME)
    annotations, (owner,) = mirror["metadata"]["annotations"], mirror["metadata"]["ownerReferences"]
    assert annotations["kubernetes.io/config.source"] == "file"
    assert annotations["kubernetes.io/config.mirror"] == annotations["kubernetes.io/config.hash"]
    assert annotations["kubernetes.io/config.seen"].startswith("2030-01-01T00:00:0")
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Node", "node-1", True)
    assert mirror["spec"]["nodeName"] == "node-1"
    assert {"operator": "Exists", "effect": "NoExecute"} in mirror["spec"]["tolerations"]
    # Its containers run under the hash of the manifest, the mirror has a UID of its own.
    (started,) = cluster.records(kinds.PROCESS_STARTED)
    assert started.pod_uid == annotations["kubernetes.io/config.hash"] != mirror["metadata"]["uid"]
    assert cluster.condition(NAME, "Ready") == "True"


@pytest.mark.rule("node-semantics 19/mirror-deleted, 25/25")
@pytest.mark.parametrize("grace", [None, 0])
def test_deleting_a_mirror_stops_nothing_and_it_is_made_again(grace: int | None) -> None:
    """25.25."""

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.wait_until(lambda: running(cluster))
        await cluster.delete(f"pod/{NAME}", grace)
        await cluster.wait_until(lambda: len(mirrors(cluster)) == 2 and running(cluster, f"{NAME}~2"), 5)
        await cluster.sleep(60)

    cluster = run_cluster(scenario, {"app": Program()}, kubelet={"static_pods": Manifests(web=manifest())})
    assert len(mirrors(cluster)) == 2 and cluster.is_gone(NAME) and not cluster.is_gone(f"{NAME}~2")
    assert starts(cluster) == 1 and cluster.records(kinds.SIGNAL_SENT) == []
    assert cluster.condition(f"{NAME}~2", "Ready") == "True"


@pytest.mark.rule("node-semantics 4.6/mirrors, 19/removed, 19/mirror-kept, 4.5/mirror-terminating")
def test_a_removed_manifest_ends_the_pod_with_its_grace_and_then_its_mirror() -> None:
    files = Manifests(web=manifest(grace=5))

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.wait_until(lambda: running(cluster))
        del files.files["web"]
        await cluster.wait_gone(NAME)
        await cluster.sleep(5)

    cluster = run_cluster(scenario, {"app": Program(on_term="ignore")}, kubelet={"static_pods": files})
    assert cluster.signals() == [(pytest.approx(0, abs=0.05), "SIGTERM"), (pytest.approx(5, abs=0.05), "SIGKILL")]
    assert cluster.gone_at(NAME) >= cluster.at(kinds.PROCESS_EXITED)
    (decided,) = cluster.records(kinds.DELETION_DECIDED)
    assert "manifest" in decided.facts["why"] and decided.at_ns <= cluster.records(kinds.TERMINATION_OBSERVED)[0].at_ns
    assert cluster.kubelet._sources.pods.get_pods() == [] and len(mirrors(cluster)) == 1


@pytest.mark.rule("node-semantics 4.3/static-start, 19/replace, 25/26, 4.2/7")
def test_a_changed_manifest_waits_until_the_old_pod_has_finished() -> None:
    """25.26."""
    files = Manifests(web=manifest(grace=5))

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.wait_until(lambda: running(cluster))
        files.write("web", manifest(grace=5, labels={"version": "2"}))
        await cluster.wait_until(lambda: len(mirrors(cluster)) == 2 and running(cluster, f"{NAME}~2"), 60)

    cluster = run_cluster(scenario, {"app": Program(on_term="ignore")}, kubelet={"static_pods": files})
    first, second = cluster.records(kinds.PROCESS_STARTED)
    (ended,) = cluster.records(kinds.PROCESS_EXITED)
    assert first.pod_uid != second.pod_uid and ended.pod_uid == first.pod_uid
    finished = cluster.records(kinds.WORKER_FINISHED)[0]
    assert ended.at_ns < finished.at_ns < second.at_ns
    assert cluster.gone_at(NAME) >= finished.at_ns / 1e9  # the mirror switches afterwards
    assert cluster.pod(f"{NAME}~2")["metadata"]["labels"] == {"version": "2"}


@pytest.mark.rule("node-semantics 4.6/restart, 19/recreated, 25/30")
def test_a_manifest_put_back_while_its_pod_terminates_starts_it_again() -> None:
    """25.30: the same UID is created while terminating."""
    files = Manifests(web=manifest(grace=5))

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.wait_until(lambda: running(cluster))
        content = files.files.pop("web")
        await cluster.wait_until(lambda: cluster.records(kinds.SIGNAL_SENT))
        files.write("web", content)
        await cluster.wait_until(lambda: starts(cluster) == 2, 60)
        await cluster.sleep(5)

    cluster = run_cluster(scenario, {"app": Program(on_term="ignore")}, kubelet={"static_pods": files})
    first, second = cluster.records(kinds.PROCESS_STARTED)
    assert first.pod_uid == second.pod_uid
    assert cluster.records(kinds.PROCESS_EXITED)[0].at_ns < second.at_ns
    assert cluster.signals()[:2][1] == (pytest.approx(5, abs=0.05), "SIGKILL")
    live = mirrors(cluster)[-1]
    assert cluster._versions[live][-1].object["status"]["phase"] == "Running"


class Unreachable:
    """A client whose API server is away while `down`."""

    down = False

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        if Unreachable.down:
            raise ConnectionLost("connection refused")
        return getattr(self._client, name)


def test_static_pods_start_and_end_without_an_api_server() -> None:
    files = Manifests()

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.kill_kubelet()
        files.write("web", manifest(grace=5))
        files.write("other", manifest("other", grace=5))
        Unreachable.down = True
        cluster.start_kubelet()
        await cluster.wait_until(lambda: starts(cluster) == 2, 10)
        await cluster.sleep(20)
        Unreachable.down = False
        await cluster.wait_until(lambda: running(cluster) and running(cluster, "other-node-1"), 30)
        Unreachable.down = True
        del files.files["other"]
        await cluster.wait_until(lambda: len(cluster.records(kinds.PROCESS_EXITED)) == 1, 10)
        await cluster.sleep(20)
        Unreachable.down = False
        await cluster.wait_gone("other-node-1")

    def wrap(client: Any, component: str) -> Any:
        return Unreachable(client) if component == "node:node-1" else client

    cluster = run_cluster(scenario, {"app": Program()}, kubelet={"static_pods": files}, wrap=wrap)
    assert starts(cluster) == 2 and not cluster.is_gone(NAME)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\x00\xff", "neither YAML nor JSON"),
        (b"", "0 documents"),
        (b"apiVersion: v1\nkind: Pod\n---\napiVersion: v1\nkind: Pod\n", "2 documents"),
        (b"apiVersion: apps/v1\nkind: Deployment", "apps/v1 Deployment"),
        (
            b"a: &a [1,1,1,1,1,1,1,1,1,1]\n"
            + b"".join(
                b"%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n" % tuple([98 + i, 98 + i] + [97 + i] * 10)
                for i in range(9)
            ),
            "excessive aliasing",
        ),
        (b"[" * 5000, "nested too deeply"),
        (manifest(uid="../../etc"), "metadata.uid"),
        (manifest("Bad_Name"), "metadata.name"),
        ("it is not a regular file", "not a regular file"),
    ],
)
def test_a_bad_file_is_named_and_the_others_run(content: Any, why: str, caplog: pytest.LogCaptureFixture) -> None:
    files = Manifests(bad=content, web=manifest())

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.wait_until(lambda: running(cluster))

    cluster = run_cluster(scenario, {"app": Program()}, kubelet={"static_pods": files})
    assert len(cluster.kubelet._sources.pods.get_pods()) == 1
    assert any("bad is left out" in record.getMessage() and why in record.getMessage() for record in caplog.records)


def test_a_static_pod_may_not_need_the_api(caplog: pytest.LogCaptureFixture) -> None:
    pod = manifest()
    pod["spec"]["volumes"] = [{"name": "s", "secret": {"secretName": "s"}}]

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.sleep(3)

    cluster = run_cluster(scenario, {}, kubelet={"static_pods": Manifests(web=pod)})
    assert cluster.kubelet._sources.pods.get_pods() == []
    assert any("static pods may not reference secrets" in record.getMessage() for record in caplog.records)


def test_a_file_that_is_half_written_for_a_moment_ends_nothing() -> None:
    files = Manifests(web=manifest())
    whole = files.files["web"]
    assert isinstance(whole, bytes)

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.wait_until(lambda: running(cluster))
        files.files["web"] = whole[: len(whole) // 2]
        await cluster.sleep(10)
        assert starts(cluster) == 1 and not cluster.records(kinds.SIGNAL_SENT)
        files.files["web"] = whole
        await cluster.sleep(30)
        assert starts(cluster) == 1 and not cluster.records(kinds.SIGNAL_SENT)
        files.files["web"] = whole[: len(whole) // 2]
        await cluster.wait_gone(NAME)

    cluster = run_cluster(scenario, {"app": Program()}, kubelet={"static_pods": files})
    assert starts(cluster) == 1


@pytest.mark.rule("node-semantics 2/duplicates, 23/validation")
def test_two_manifests_of_one_name_give_one_pod() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.wait_until(lambda: running(cluster))

    files = Manifests(a=manifest(), b=manifest(labels={"b": "b"}))
    cluster = run_cluster(scenario, {"app": Program()}, kubelet={"static_pods": files})
    assert len(cluster.kubelet._sources.pods.get_pods()) == 1 and "labels" not in cluster.pod(NAME)["metadata"]


def test_a_kubelet_that_starts_again_adopts_its_static_pod() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.wait_until(lambda: running(cluster))
        await cluster.kill_kubelet()
        await cluster.sleep(3)
        cluster.start_kubelet()
        await cluster.sleep(30)

    cluster = run_cluster(scenario, {"app": Program()}, kubelet={"static_pods": Manifests(web=manifest())})
    assert starts(cluster) == 1 and len(mirrors(cluster)) == 1 and not cluster.is_gone(NAME)
    assert cluster.condition(NAME, "Ready") == "True"


def test_a_mirror_left_by_a_kubelet_without_the_manifest_is_deleted() -> None:
    files = Manifests(web=manifest())

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.wait_until(lambda: running(cluster))
        await cluster.kill_kubelet()
        files.files.clear()
        cluster.start_kubelet()
        await cluster.wait_gone(NAME)
        await cluster.sleep(5)

    cluster = run_cluster(scenario, {"app": Program()}, kubelet={"static_pods": files})
    assert len(cluster.records(kinds.PROCESS_EXITED)) == 1  # by housekeeping, as an orphan


@pytest.mark.rule("node-semantics 19/phase")
def test_a_static_pod_that_crashes_restarts_and_its_mirror_says_so() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.wait_until(lambda: cluster.container_status(pod=NAME).get("restartCount", 0) >= 2, 120)

    cluster = run_cluster(
        scenario,
        {"app": Program(exits_after=1.0, natural_exit_code=1)},
        kubelet={"static_pods": Manifests(web=manifest())},
    )
    assert cluster.container_status(pod=NAME)["lastState"]["terminated"]["exitCode"] == 1
