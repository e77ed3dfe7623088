"""A pytest plugin: the fixtures of lastcall's own plugin on any cluster, by kubectl, as tests did it without lastcall.

What examples/pytest-app uses is there, no more. $REAL_KUBECONFIG names the cluster. Services are reached through the
API server's proxy, ends are seen by a watch.
"""

import json
import os
import secrets
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

import lastcall

TIMEOUT = "60s"


@dataclass
class Ended:
    exit_codes: dict[str, int]
    seconds: float
    lost_requests: int = 0
    text: str = ""

    @property
    def graceful(self) -> bool:
        return set(self.exit_codes.values()) == {0}

    def assert_graceful(self) -> None:
        assert self.graceful, self.exit_codes


class Namespace:
    def __init__(self, name: str, proxy: str) -> None:
        self.namespace, self._proxy, self._last = name, proxy, dict[str, Any]()
        self._watch = subprocess.Popen(
            ["kubectl", "-n", name, "get", "pods", "-w", "-o", "json"], stdout=subprocess.PIPE, text=True
        )
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        decoder, text = json.JSONDecoder(), ""
        assert self._watch.stdout is not None
        for line in self._watch.stdout:
            text += line
            if line == "}\n":
                pod, _ = decoder.raw_decode(text)
                self._last[pod["metadata"]["name"]] = pod
                text = ""

    def close(self) -> None:
        self._watch.terminate()
        self._watch.wait()
        self.run("delete", "namespace", self.namespace, "--wait=false")
        self.run("delete", "pods", "--all", "--grace-period=1", "--wait=false")
        self.run("wait", "--for=delete", f"namespace/{self.namespace}", "--timeout=120s", check=False)

    def run(self, *arguments: str, stdin: str | None = None, check: bool = True) -> str:
        return subprocess.run(
            ["kubectl", "-n", self.namespace, *arguments], input=stdin, text=True, check=check, stdout=subprocess.PIPE
        ).stdout

    def apply(self, *manifests: Any, wait: bool = False) -> None:
        for each in manifests:
            text = each.read_text() if isinstance(each, Path) else json.dumps(each)
            self.run("apply", "--server-side", "-f", "-", stdin=text)
            if wait:
                for obj in yaml.safe_load_all(text):
                    self._wait(obj["kind"], obj["metadata"]["name"])

    def _wait(self, kind: str, name: str) -> None:
        if kind == "Deployment":
            self.run("rollout", "status", f"deployment/{name}", f"--timeout={TIMEOUT}")
        elif kind == "CustomResourceDefinition":
            self.run("wait", "--for=condition=Established", f"crd/{name}", f"--timeout={TIMEOUT}")
        elif kind == "Job":
            for _ in range(600):
                conditions = self.get(f"job/{name}")["status"].get("conditions") or []
                if any(each["type"] == "Failed" for each in conditions):
                    raise lastcall.NotReady(self.logs(f"job/{name}"))
                if any(each["type"] == "Complete" for each in conditions):
                    return
                time.sleep(0.1)

    def wait_ready(self, reference: str, timeout: float = 60) -> None:
        condition = "Ready" if reference.startswith("pod/") else "Available"
        try:
            self.run("wait", f"--for=condition={condition}", reference, f"--timeout={timeout}s")
        except subprocess.CalledProcessError:
            raise lastcall.NotReady(reference) from None

    def wait_for(self, reference: str, condition: str, timeout: float = 60) -> None:
        self.run("wait", f"--for={condition}", reference, f"--timeout={timeout}s")

    def get(self, reference: str) -> Any:
        return json.loads(self.run("get", reference, "-o", "json"))

    def list(self, kind: str, *more: str) -> Any:
        return json.loads(self.run("get", kind, "-o", "json", *more))["items"]

    def pods(self, reference: str) -> Any:
        owner = self.get(reference)
        if owner["kind"] != "Deployment":
            return [each for each in self.list("pods") if owner["metadata"]["uid"] in _owners(each)]
        labels = owner["spec"]["selector"]["matchLabels"]
        return self.list("pods", "-l", ",".join(f"{key}={value}" for key, value in labels.items()))

    def logs(self, reference: str) -> str:
        return self.run("logs", reference)

    def url(self, target: str) -> str:
        name, port = target.removeprefix("svc/").split(":")
        return f"{self._proxy}/api/v1/namespaces/{self.namespace}/services/{name}:{port}/proxy"

    def story(self, name: str) -> Ended:
        for _ in range(100):
            statuses = self._last[name]["status"].get("containerStatuses") or []
            if all("terminated" in each["state"] for each in statuses):
                break
            time.sleep(0.1)
        return Ended({each["name"]: each["state"].get("terminated", {}).get("exitCode", -1) for each in statuses}, 0)

    def delete(self, what: Any, load: str | None = None) -> Ended:
        reference = what if isinstance(what, str) else f"{what['kind'].lower()}/{what['metadata']['name']}"
        workload = reference.startswith("deployment/")
        pods = [self.get(reference)] if reference.startswith("pod/") else self.pods(reference)
        lost, stop = {"lost": 0}, threading.Event()
        thread = threading.Thread(target=self._send, args=(load, lost, stop))
        if load:
            thread.start()
        began = time.monotonic()
        self.run("delete", reference, "--wait=true", *(("--cascade=foreground",) if workload else ()))
        for pod in pods:
            self.run("wait", "--for=delete", f"pod/{pod['metadata']['name']}", "--timeout=60s", check=False)
        seconds = time.monotonic() - began
        stop.set()
        if load:
            thread.join()
        found: dict[str, int] = {}
        for pod in pods:
            found |= self.story(pod["metadata"]["name"]).exit_codes
        return Ended(found or {"": 0}, seconds, lost["lost"])

    def _send(self, load: str, lost: dict[str, int], stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                urllib.request.urlopen(self.url(load), timeout=5).close()
            except urllib.error.URLError:
                lost["lost"] += 1
            time.sleep(0.02)


def _owners(pod: Any) -> list[str]:
    return [each["uid"] for each in pod["metadata"].get("ownerReferences") or ()]


@pytest.fixture(scope="session")
def kubeconfig() -> str:
    os.environ["KUBECONFIG"] = os.environ["REAL_KUBECONFIG"]
    return os.environ["KUBECONFIG"]


@pytest.fixture(scope="session")
def proxy(kubeconfig: str) -> Iterator[str]:
    process = subprocess.Popen(["kubectl", "proxy", "--port=0"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield "http://" + process.stdout.readline().split()[-1]
    process.terminate()
    process.wait()


@pytest.fixture
def lastcall_namespace(proxy: str) -> Iterator[Namespace]:
    name = f"test-{secrets.token_hex(4)}"
    subprocess.run(["kubectl", "create", "namespace", name], check=True, stdout=subprocess.DEVNULL)
    namespace = Namespace(name, proxy)
    yield namespace
    namespace.close()
