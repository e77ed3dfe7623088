"""`python -m bench containerd [--rounds 15] [--at-once 20]`: lastcall and the real kubelet on one containerd, in turns.

Needs root and the real cluster of `$KUBERNETES_CLUSTER` (the script `cluster`). It starts that with its kubelet, and
`lastcall up --container-runtime-endpoint` beside it on the same containerd. A kubelet ends Pods that it does not know,
so it is stopped (SIGSTOP) while it is lastcall's turn, which leaves nothing behind. Each turn is one Pod, then
`--at-once` Pods: create → Running and DELETE → gone, as one watch of each API server shows them. Both have their own
API server and scheduler. The image is one whose program ends on SIGTERM at once. The table is printed, and written to
docs/engines.md.
"""

import argparse
import base64
import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from bench.figures import as_installed, machine
from bench.turns import Table, rows, take_turns

HERE = Path(__file__).resolve().parent.parent
HOME = Path(os.environ.get("KUBERNETES_HOME") or Path.home() / ".cache/kubernetes-1.36.2")
CLUSTER = os.environ.get("KUBERNETES_CLUSTER") or str(HERE.parent / "shared/kubernetes/cluster")
NETNS, NAME, NAMESPACE = "peer", "bench-containerd", "default"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
IMAGE = "quick:1"
SECONDS = 300.0
PAGE = HERE / "docs" / "engines.md"
BEGIN, END = "<!-- figures: python -m bench containerd -->\n", "<!-- end of the figures -->\n"


class API:
    """An API server, by its kubeconfig."""

    def __init__(self, kubeconfig: str) -> None:
        said = yaml.safe_load(Path(kubeconfig).read_text())
        cluster, user = said["clusters"][0]["cluster"], said["users"][0]["user"]
        self._where = urlsplit(cluster["server"])
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._trust = ssl.create_default_context(cadata=authority)
        self._headers = {"Content-Type": "application/json"}
        if "token" in user:
            self._headers["Authorization"] = f"Bearer {user['token']}"
        else:
            with tempfile.NamedTemporaryFile("w") as file:
                for key in ("client-certificate-data", "client-key-data"):
                    file.write(base64.b64decode(user[key]).decode() + "\n")
                file.flush()
                self._trust.load_cert_chain(file.name)
        self._connection = self._connect()

    def _connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            self._where.hostname or "", self._where.port, context=self._trust, timeout=SECONDS
        )

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        self._connection.request(method, path, None if body is None else json.dumps(body), self._headers)
        answer = self._connection.getresponse()
        said = json.loads(answer.read())
        assert answer.status < 300, said
        return said

    @contextmanager
    def watch(self, label: str) -> Iterator[Iterator[dict[str, Any]]]:
        """Yield the events of Pods with that label, from now on."""
        wanted = f"labelSelector=app%3D{label}"
        version = self.ask("GET", f"{PODS}?{wanted}")["metadata"]["resourceVersion"]
        connection = self._connect()
        connection.request("GET", f"{PODS}?watch=1&{wanted}&resourceVersion={version}", headers=self._headers)
        answer = connection.getresponse()
        try:
            yield (json.loads(line) for line in answer)
        finally:
            connection.close()


def life(api: API, label: str, count: int) -> tuple[float, float]:
    """Return (milliseconds from the first create until all run, from the first DELETE until all are gone)."""
    names = [f"{label}-{number}" for number in range(count)]
    with api.watch(label) as events:

        def until(done: Callable[[dict[str, Any]], bool]) -> None:
            left = set(names)
            for event in events:
                if done(event):
                    left.discard(event["object"]["metadata"]["name"])
                if not left:
                    return
            raise AssertionError(f"the watch ended before {sorted(left)}")

        began = time.perf_counter()
        for name in names:
            container = {"name": "app", "image": IMAGE, "imagePullPolicy": "IfNotPresent"}
            pod = {"metadata": {"name": name, "labels": {"app": label}}, "spec": {"containers": [container]}}
            api.ask("POST", PODS, {"apiVersion": "v1", "kind": "Pod", **pod})
        until(lambda event: event["object"].get("status", {}).get("phase") == "Running")
        run = time.perf_counter() - began
        began = time.perf_counter()
        for name in names:
            api.ask("DELETE", f"{PODS}/{name}")
        until(lambda event: event["type"] == "DELETED")
        return 1000 * run, 1000 * (time.perf_counter() - began)


def turn(api: API, number: Iterator[int], at_once: int) -> dict[str, float]:
    run, gone = life(api, f"one-{next(number)}", 1)
    all_run, all_gone = life(api, f"many-{next(number)}", at_once)
    return {
        "create → Running, ms": run,
        "DELETE → gone, ms": gone,
        f"{at_once} at once: create → all Running, ms": all_run,
        f"{at_once} at once: DELETE → all gone, ms": all_gone,
    }


def kubelet_pid() -> int:
    """Find the kubelet of the real cluster: no other one has its configuration."""
    for each in Path("/proc").iterdir():
        if each.name.isdecimal():
            try:
                words = (each / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0].endswith(b"kubelet") and f"--config={HOME}/run/kubelet.yaml".encode() in words:
                return int(each.name)
    raise SystemExit("the real cluster has no kubelet")


def lastcall(*arguments: str) -> str:
    inside = ["nsenter", f"--net=/run/netns/{NETNS}", sys.executable, "-m", "lastcall.cli.main"]
    done = subprocess.run([*inside, *arguments], text=True, stdout=subprocess.PIPE, timeout=SECONDS)
    if done.returncode:
        raise SystemExit(f"lastcall {arguments[0]} failed")
    return done.stdout


def run_rounds(rounds: int, at_once: int, endpoint: str) -> Table:
    """Measure in the network namespace of containerd, where both API servers are."""
    kubelet = kubelet_pid()
    table: Table = {}
    with ExitStack() as stack:
        real = API(str(HOME / "admin.kubeconfig"))
        stack.callback(os.kill, kubelet, signal.SIGCONT)
        os.kill(kubelet, signal.SIGSTOP)
        up = lastcall("up", NAME, "--detach", "-o", "json", "--container-runtime-endpoint", endpoint)
        stack.callback(lastcall, "down", NAME)
        ours = API(json.loads(up)["kubeconfig"])
        os.kill(kubelet, signal.SIGCONT)
        number = iter(range(10_000))

        def of_ours() -> dict[str, float]:
            os.kill(kubelet, signal.SIGSTOP)
            try:
                return turn(ours, number, at_once)
            finally:
                time.sleep(1)  # what containerd still does for lastcall is not the kubelet's
                os.kill(kubelet, signal.SIGCONT)

        def of_kubelet() -> dict[str, float]:
            time.sleep(1)  # it has looked at what it missed
            return turn(real, number, at_once)

        take_turns({}, 1, of_ours, of_kubelet)  # not counted
        take_turns(table, rounds, of_ours, of_kubelet)
    return table


def page(text: str, figures: str) -> str:
    """Return docs/engines.md with these figures."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{figures}\n{END}{after}"


def said(*command: str) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=HERE).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--at-once", type=int, default=20)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        table = run_rounds(options.rounds, options.at_once, f"unix://{HOME}/run/containerd.sock")
        print(*rows(table, "lastcall", "kubelet"), sep="\n")
        return
    version, commit = said("containerd", "--version").split()[2], said("git", "rev-parse", "--short=8", "HEAD").strip()
    about = (
        f"In turns with the kubelet 1.36.2 on the same containerd {version.partition('~')[0]} "
        f"(`python -m bench containerd --at-once {options.at_once}`): "
        f"{time.strftime('%Y-%m-%d', time.gmtime())}, {commit}; {machine()}; load {os.getloadavg()[0]:.1f}."
    )
    print(about, flush=True)
    as_installed(HERE)
    # lastcall's kubelet listens on another address of the same namespace
    environment = {**os.environ, "KUBELET_ARGS": "--address=10.123.0.2", "V": "0"}
    subprocess.run([CLUSTER, "start"], check=True, env=environment)
    try:
        again = [sys.executable, "-m", "bench.containerd", "--inside", "--rounds", str(options.rounds)]
        figures = said("nsenter", f"--net=/run/netns/{NETNS}", *again, "--at-once", str(options.at_once))
    finally:
        subprocess.run([CLUSTER, "stop"], check=False)
    print(figures)
    PAGE.write_text(page(PAGE.read_text(), f"{about}\n\n{figures}"))


if __name__ == "__main__":
    main()
