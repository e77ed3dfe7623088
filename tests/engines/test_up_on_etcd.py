"""`lastcall up --etcd-servers`: a cluster whose store is an etcd outside; controllers and scheduler apart."""

import os
import subprocess
from pathlib import Path

import pytest
from engines.components import LASTCALL, cluster, component
from engines.etcd import Etcd, missing_etcd
from engines.servers import Keys
from kubectls import needs_kubectl
from waiting import eventually

pytestmark = [
    pytest.mark.real_kernel,
    needs_kubectl,
    pytest.mark.skipif(bool(missing_etcd()), reason=missing_etcd()),
]


def test_a_cluster_lives_in_an_etcd_and_the_next_one_finds_what_it_left(tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys")
    own = {"cert": keys.server[0], "key": keys.server[1], "trusted-ca": keys.ca_file}
    name = f"etcd-{os.getpid()}"
    with Etcd(tmp_path / "etcd", tls=own, more=("--unsafe-no-fsync",)) as etcd:
        options = (
            f"--etcd-servers={etcd.servers}", f"--etcd-cafile={keys.ca_file}", f"--etcd-certfile={keys.client[0]}",
            f"--etcd-keyfile={keys.client[1]}", f"--service-account-signing-key-file={keys.signing}",
        )  # fmt: skip
        with cluster(name, tmp_path, *options) as kubectl:
            kubectl("create", "configmap", "kept", "--from-literal=a=b")
            kubectl("create", "deployment", "web", "--image=busybox", "--", "sleep", "1000")
            kubectl("rollout", "status", "deployment/web", "--timeout=120s", timeout=150)
            token = kubectl("create", "token", "default")
            version = kubectl.get("configmap", "kept")["metadata"]["resourceVersion"]
        with cluster(name, tmp_path, *options, "--no-controllers", "--no-scheduler") as kubectl:
            assert kubectl.get("configmap", "kept")["metadata"]["resourceVersion"] == version
            who = kubectl.run("auth", "whoami", "-o", "json", f"--token={token.strip()}")
            assert "system:serviceaccount:default:default" in who[1], who
            kubectl("scale", "deployment/web", "--replicas=2")
            running = ("get", "deployment", "web", "-o", "jsonpath={.status.availableReplicas}")
            with (
                component("controller-manager", kubeconfig=kubectl.kubeconfig, log=tmp_path / "controllers.log"),
                component("scheduler", kubeconfig=kubectl.kubeconfig, log=tmp_path / "scheduler.log"),
            ):
                eventually(lambda: kubectl.run(*running)[1] == "2", "both Pods run", 200)
                holder = kubectl.get("lease", "kube-scheduler", "-n", "kube-system")["spec"]["holderIdentity"]
                assert holder


@pytest.mark.parametrize(
    ("flags", "status", "why"),
    [
        (("--etcd-servers=http://127.0.0.1:9",), 1, "etcd http://127.0.0.1:9: connection refused; fix: start it"),
        (("--etcd-servers=127.0.0.1:2379",), 2, "fix: write https://HOST:2379"),
        (("--etcd-servers=http://127.0.0.1:1", "--etcd-cafile=/x"), 2, "--etcd-cafile: is for https"),
        (("--etcd-cafile=/x",), 2, "--etcd-cafile: needs --etcd-servers"),
        (("--etcd-servers=https://127.0.0.1:1", "--etcd-certfile=/x"), 2, "--etcd-keyfile: is missing"),
        (("--etcd-servers=https://127.0.0.1:1", "--etcd-cafile=/nowhere"), 2, "/nowhere: No such file"),
        (("--etcd-servers=http://127.0.0.1:1", "--etcd-user=me"), 2, "--etcd-user: is not NAME:PASSWORD"),
        (("--etcd-servers=http://127.0.0.1:1", "--etcd-prefix=/"), 2, "--etcd-prefix '/': is empty"),
    ],
)
def test_what_is_wrong_with_the_flags_is_told_before_anything_starts(
    flags: tuple[str, ...], status: int, why: str
) -> None:
    done = subprocess.run([*LASTCALL, "up", "never", *flags], capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stderr
    assert why in done.stderr and "Traceback" not in done.stderr
