"""What measurements beside a real Kubernetes 1.36.2 (`$KUBERNETES_CLUSTER`, `$KUBERNETES_HOME`) share."""

import base64
import http.client
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from bench.figures import machine

HERE = Path(__file__).resolve().parent.parent
HOME = Path(os.environ.get("KUBERNETES_HOME") or Path.home() / ".cache/kubernetes-1.36.2")
CLUSTER = os.environ.get("KUBERNETES_CLUSTER") or str(HERE.parent / "shared/kubernetes/cluster")
NAMESPACE = "default"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
IMAGE = "quick:1"
"""Its program exits 0 on SIGTERM at once."""
SECONDS = 300.0
END = "<!-- end of the figures -->\n"


class API:
    """An API server, by its kubeconfig."""

    def __init__(self, kubeconfig: str) -> None:
        said = yaml.safe_load(Path(kubeconfig).read_text())
        cluster, user = said["clusters"][0]["cluster"], said["users"][0]["user"]
        self.where = urlsplit(cluster["server"])
        self.authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._trust = ssl.create_default_context(cadata=self.authority)
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
            self.where.hostname or "", self.where.port, context=self._trust, timeout=SECONDS
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


class Lastcall:
    """`lastcall` of this checkout in a home of its own, so that nothing is left; its cluster has the name `name`."""

    def __init__(self, home: str, name: str) -> None:
        self.name = name
        self.environment = {**os.environ, "PYTHONPATH": str(HERE / "src"), "HOME": home}
        for each in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "KUBECONFIG"):
            self.environment.pop(each, None)

    def run(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "lastcall.cli.main", *arguments]
        done = subprocess.run(command, env=self.environment, text=True, stdout=subprocess.PIPE, timeout=SECONDS)
        if done.returncode:
            raise SystemExit(f"lastcall {arguments[0]} failed")
        return done.stdout

    def up(self) -> str:
        """Return the path of the kubeconfig."""
        return str(json.loads(self.run("up", self.name, "--detach", "-o", "json"))["kubeconfig"])

    def down(self) -> None:
        self.run("down", self.name)


def begin(name: str) -> str:
    """Return the line before the figures of `python -m bench NAME` in a page."""
    return f"<!-- figures: python -m bench {name} -->\n"


def page(text: str, name: str, figures: str) -> str:
    """Return the text of a page with these figures of `python -m bench NAME`. Raises ValueError if it has no place."""
    before, mark, rest = text.partition(begin(name))
    _, end, after = rest.partition(END)
    if not (mark and end):
        raise ValueError(f"the page has no line {begin(name).strip()!r}")
    return f"{before}{mark}\n{figures}\n{end}{after}"


def said(*command: str) -> str:
    """Return the standard output of a command. Raises CalledProcessError."""
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=HERE).stdout


def measured_now() -> str:
    """Return the date, the commit and the machine of a measurement that begins."""
    commit = said("git", "rev-parse", "--short=8", "HEAD").strip()
    return f"{time.strftime('%Y-%m-%d', time.gmtime())}, {commit}; {machine()}; load {os.getloadavg()[0]:.1f}"
