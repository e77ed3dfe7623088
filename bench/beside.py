"""`python -m bench beside [--rounds 15] [--starts 15]`: lastcall beside a real Kubernetes 1.36.2, in turns.

Needs root and the real cluster of `$KUBERNETES_CLUSTER` (the script `cluster`): etcd, kube-apiserver, controller
manager, scheduler, kubelet, kube-proxy, containerd. First both are started and ended in turns. Then both stand on this
machine, and each turn is, on one and on the other: a Pod, then `--at-once` Pods (create → Running, DELETE → gone, as a
watch shows them), Pods whose lives follow each other for `--seconds`, `--at-once` at a time, and requests by 16
connections. The image is one whose program ends on SIGTERM at once; client and requests are the same. The one that is
not measured goes on with what it does at rest. The table is printed, and written to docs/performance.md.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

from bench.figures import as_installed
from bench.real_cluster import API, CLUSTER, HERE, HOME, NAMESPACE, SECONDS, Lastcall, life, measured_now, page, turn
from bench.turns import Table, interval, take_turns

NAME = "bench-beside"
PAGE = HERE / "docs" / "performance.md"
CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
ACCOUNT = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
CONNECTIONS, GETS, WRITES = 16, 100, 20
"""Connections at a time; GETs of each, and ConfigMaps that each creates, reads and deletes, in a turn."""


def real(verb: str) -> None:
    subprocess.run([CLUSTER, verb], check=True, env={**os.environ, "V": "0"}, stdout=subprocess.DEVNULL)


def timed(start: Callable[[], object], stop: Callable[[], object]) -> dict[str, float]:
    began = time.perf_counter()
    start()
    seconds = time.perf_counter() - began
    stop()
    return {"command → node Ready, ms": 1000 * seconds}


class Requests:
    """What sends requests to one API server, as a ServiceAccount that may do everything."""

    def __init__(self, api: API) -> None:
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "bench"}}
        api.ask("POST", ACCOUNT, account)
        subject = {"kind": "ServiceAccount", "name": "bench", "namespace": NAMESPACE}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
        binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                   "metadata": {"name": "bench"}, "subjects": [subject], "roleRef": role}  # fmt: skip
        api.ask("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 86400}}
        token = api.ask("POST", f"{ACCOUNT}/bench/token", asked)["status"]["token"]
        self._access = {"host": api.where.hostname, "port": api.where.port, "ca": api.authority, "token": token}
        self._number = 0
        api.ask("POST", CONFIG_MAPS, json.loads(self._config_map("bench")))

    @staticmethod
    def _config_map(name: str) -> str:
        return json.dumps(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": "x" * 200}}
        )

    def _load(self, bodies: list[list[tuple[str, str, str]]]) -> float:
        """Return milliseconds a request."""
        done = subprocess.run(
            [sys.executable, "-m", "bench.api_load", "requests"],
            input=json.dumps({**self._access, "bodies": bodies, "expect": [200, 201]}),
            cwd=HERE, stdout=subprocess.PIPE, text=True, check=True, timeout=SECONDS,
        )  # fmt: skip
        result: dict[str, Any] = json.loads(done.stdout)
        return 1000 * float(result["seconds"]) / len(result["latencies"])

    def gets(self) -> float:
        return self._load([[("GET", f"{CONFIG_MAPS}/bench", "")] * GETS] * CONNECTIONS)

    def writes(self) -> float:
        """Return milliseconds for create, get and delete of one object."""

        def of_one() -> Iterator[tuple[str, str, str]]:
            for _ in range(WRITES):
                self._number += 1
                name = f"bench-{self._number}"
                yield "POST", CONFIG_MAPS, self._config_map(name)
                yield "GET", f"{CONFIG_MAPS}/{name}", ""
                yield "DELETE", f"{CONFIG_MAPS}/{name}", ""

        return 3 * self._load([list(of_one()) for _ in range(CONNECTIONS)])


def milliseconds_a_pod(kubeconfig: str, number: Iterator[int], at_once: int, seconds: float) -> float:
    """Return how long one Pod's whole life takes if so many follow each other, side by side, for so many seconds."""
    lives: list[None] = []
    failed: list[BaseException] = []
    began = time.perf_counter()

    def follow_each_other() -> None:
        try:
            api = API(kubeconfig)
            while time.perf_counter() - began < seconds:
                life(api, f"next-{next(number)}", 1)
                lives.append(None)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=follow_each_other) for _ in range(at_once)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return 1000 * (time.perf_counter() - began) / len(lives)


class Standing:
    """One of the two clusters, and what a turn on it measures."""

    def __init__(self, kubeconfig: str, at_once: int, seconds: float) -> None:
        self._kubeconfig, self._at_once, self._seconds = kubeconfig, at_once, seconds
        self._api = API(kubeconfig)
        self._requests = Requests(self._api)
        self._number = iter(range(1_000_000))

    def turn(self) -> dict[str, float]:
        lives = turn(self._api, self._number, self._at_once)
        a_pod = milliseconds_a_pod(self._kubeconfig, self._number, self._at_once, self._seconds)
        return {
            **lives,
            f"{self._at_once} at once, one after the other: ms a Pod": a_pod,
            f"GET, {CONNECTIONS} connections: ms a request": self._requests.gets(),
            f"create, get and delete, {CONNECTIONS} connections: ms for the three": self._requests.writes(),
        }


def rows(table: Table) -> Iterator[str]:
    """Yield the table as lines of Markdown."""
    yield "| figure | n | lastcall | Kubernetes 1.36.2 | times as fast | 95 % |"
    yield "|---|---|---|---|---|---|"
    for name, turns in table.items():
        ours, theirs = (statistics.median(pair[side] for pair in turns) for side in (0, 1))
        times, low, high = interval([(its, mine) for mine, its in turns])
        yield f"| {name} | {len(turns)} | {ours:.4g} | {theirs:.4g} | {times:.1f} | {low:.1f}-{high:.1f} |"


def run_rounds(table: Table, own: Lastcall, rounds: int, at_once: int, seconds: float) -> None:
    with ExitStack() as stack:
        stack.callback(real, "stop")
        real("start")
        own.run("image", "import", str(HOME / "images/quick.tar"))
        stack.callback(own.down)
        ours = Standing(own.up(), at_once, seconds)
        theirs = Standing(str(HOME / "admin.kubeconfig"), at_once, seconds)
        take_turns({}, 1, ours.turn, theirs.turn)  # not counted
        take_turns(table, rounds, ours.turn, theirs.turn)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--starts", type=int, default=15)
    parser.add_argument("--at-once", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=8.0)
    options = parser.parse_args()
    about = (
        f"In turns with a real Kubernetes 1.36.2 (`python -m bench beside --at-once {options.at_once}`): "
        f'{measured_now()}. "Times as fast" is the median of the ratios, with its 95 % interval.'
    )
    print(about, flush=True)
    as_installed(HERE)
    table: Table = {}
    with tempfile.TemporaryDirectory(prefix="lastcall-bench-") as home:
        own = Lastcall(home, NAME)
        of_ours = partial(timed, own.up, own.down)
        take_turns(table, options.starts, of_ours, partial(timed, partial(real, "start"), partial(real, "stop")))
        run_rounds(table, own, options.rounds, options.at_once, options.seconds)
    figures = "\n".join(rows(table))
    print(figures)
    PAGE.write_text(page(PAGE.read_text(), "beside", f"{about}\n\n{figures}"))


if __name__ == "__main__":
    main()
