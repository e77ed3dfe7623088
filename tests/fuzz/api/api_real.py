"""The same requests against a cluster on the real kernel: over TLS, as any client sends them.

After each batch the cluster answers, a Pod lives and ends, and no role was started again.
"""

import http.client
import json
import os
import ssl
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from api_inputs import Input, setup
from api_outcome import Outcome, is_finding
from api_seeds import NAMESPACE
from waiting import eventually

REFUSED = (400, 404, 405, 406, 413, 415)
"""Answers by which an input did not reach a handler, as far as a client can tell; some 400 and 404 come from one."""
ANSWER_SECONDS = 30.0
LIFE_SECONDS = 60.0


class RealCluster:
    """`with RealCluster() as cluster:` a cluster of its own, gone afterwards."""

    def __init__(self) -> None:
        self.name = f"fuzz-{os.getpid()}"
        self._connection: http.client.HTTPSConnection | None = None

    def __enter__(self) -> "RealCluster":
        self._lastcall("up", "--detach", "--name", self.name)
        home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state")
        config = yaml.safe_load((home / "lastcall" / self.name / "kubeconfig").read_text())
        self._server = urlsplit(config["clusters"][0]["cluster"]["server"])
        self._token = config["users"][0]["user"]["token"]
        self.restarts = self._restarts()
        namespace = {"metadata": {"name": NAMESPACE}}
        self._asked("POST", "/api/v1/namespaces", namespace)
        return self

    def __exit__(self, *_: object) -> None:
        self._lastcall("down", self.name, "--timeout", "10")

    @staticmethod
    def _lastcall(*arguments: str) -> str:
        command = [sys.executable, "-m", "lastcall.cli.main", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
        if done.returncode:
            raise RuntimeError(f"lastcall {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout

    def _restarts(self) -> dict[str, int]:
        cluster = json.loads(self._lastcall("status", self.name, "--output", "json"))["clusters"][0]
        return {each["role"]: each["restarts"] for each in cluster["processes"]}

    def request(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        """Status and body of the answer. Raises OSError and http.client.HTTPException when there is none."""
        for last in (False, True):
            if self._connection is None:
                context = ssl._create_unverified_context()
                assert self._server.hostname is not None
                self._connection = http.client.HTTPSConnection(
                    self._server.hostname, self._server.port, timeout=ANSWER_SECONDS, context=context
                )
            try:
                self._connection.request(
                    method, path, body or None, {"Authorization": f"Bearer {self._token}", **headers}
                )
                response = self._connection.getresponse()
                return response.status, response.read()
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                self._connection = None  # perhaps it had rested for too long
                if last:
                    raise
            except BaseException:
                self._connection = None
                raise
        raise AssertionError

    def _asked(self, method: str, path: str, obj: Any = None) -> tuple[int, Any]:
        status, body = self.request(
            method, path, {"Content-Type": "application/json"}, json.dumps(obj).encode() if obj else b""
        )
        return status, json.loads(body or b"null")

    def run_batch(self, inputs: Sequence[Input]) -> Outcome:
        """All inputs; then the cluster answers, a Pod lives and ends, and nothing was started again."""
        outcome = Outcome()
        for each in (*setup(), *inputs):
            self._send(each, outcome)
        try:
            self._lives_and_ends()
        except (OSError, http.client.HTTPException, AssertionError) as error:
            outcome.findings.append(f"after the batch: {type(error).__name__}: {error}")
        if (restarts := self._restarts()) != self.restarts:
            outcome.findings.append(f"roles were started again: {self.restarts} → {restarts}")
            self.restarts = restarts
        return outcome

    def _send(self, each: Input, outcome: Outcome) -> None:
        headers = {"Accept": each.accept, **({"Content-Type": each.content_type} if each.content_type else {})}
        outcome.sent[each.kind, each.encoding] += 1
        try:
            status, body = self.request(each.method, each.path, headers, each.body)
        except (OSError, http.client.HTTPException) as error:
            outcome.findings.append(f"{each.method} {each.path[:100]}: no answer: {type(error).__name__}")
            return
        outcome.statuses[status] += 1
        outcome.reached[each.kind, each.encoding] += status not in REFUSED or b'"details"' in body
        if is_finding(status, body):
            outcome.answered(each, status, body)

    def _lives_and_ends(self) -> None:
        for plural in ("resourcequotas", "limitranges"):
            self.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}/{plural}", {}, b"")
        name = f"alive-{time.time_ns()}"
        spec = {
            "containers": [{"name": "c", "image": "busybox:1.36", "command": ["sleep", "600"]}],
            "terminationGracePeriodSeconds": 0,
        }
        pods = "/api/v1/namespaces/default/pods"
        tolerations = [{"operator": "Exists"}]
        pod = {"metadata": {"name": name}, "spec": {**spec, "nodeName": "node-1", "tolerations": tolerations}}
        status, answer = self._asked("POST", pods, pod)
        assert status == 201, f"a Pod is not created: {answer.get('message')}"
        self._wait(lambda: self._asked("GET", f"{pods}/{name}")[1].get("status", {}).get("phase") == "Running", "runs")
        self._asked("DELETE", f"{pods}/{name}")
        self._wait(lambda: self._asked("GET", f"{pods}/{name}")[0] == 404, "is gone")

    @staticmethod
    def _wait(question: Any, what: str) -> None:
        eventually(question, f"a Pod that {what}", LIFE_SECONDS, pause=0.1)
