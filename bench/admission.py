"""`python -m bench admission`: a cluster with one webhook and ten policies beside one without.

Both stand at once and take turns, Pod by Pod and 200 ConfigMaps by 200, so that what else runs on the machine disturbs
them alike. The webhook is asked about every write of Pods and ConfigMaps and allows it, over TLS in the control plane's
network; each ValidatingAdmissionPolicy looks at the same writes with two expressions. As root, for the webhook enters
that network.
"""

import argparse
import asyncio
import base64
import http.server
import json
import os
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.figures import cpu_seconds, machine, pss_kib
from bench.turns import Table, show, take_turns
from lastcall.kube.api.resources import (
    CONFIGMAPS,
    PODS,
    VALIDATINGADMISSIONPOLICIES,
    VALIDATINGADMISSIONPOLICYBINDINGS,
    VALIDATINGWEBHOOKCONFIGURATIONS,
)
from lastcall.kube.apiserver.auth.pki import ClusterCA
from lastcall.kube.client.kubeconfig import client_for, load_kubeconfig

LASTCALL = (sys.executable, "-m", "lastcall.cli.main")
POLICIES = 10
WRITES = 200
IDLE_SECONDS = 10.0
WAIT_SECONDS = 60.0
ENDS_AT_ONCE = "trap 'exit 0' TERM; while :; do sleep 0.01; done"
POD_SPEC = {
    "containers": [{"name": "main", "image": "busybox:1.36", "command": ["sh", "-c", ENDS_AT_ONCE]}],
    "automountServiceAccountToken": False,
    "enableServiceLinks": False,
}
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": ["pods", "configmaps"]}  # fmt: skip


class Hook(http.server.BaseHTTPRequestHandler):
    """Allows everything. It keeps connections, as servers do."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer is one write: two would wait for each other (Nagle, delayed ACK)

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = {"uid": review["request"]["uid"], "allowed": True}
        kind = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        body = json.dumps({**kind, "response": answer}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Do nothing: the hook keeps no log."""


def serve(chain: str) -> None:
    """Serve until the pipe that is its input is closed. `chain` is a file with key and certificate. Prints the port."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    print(server.server_address[1], flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


def run(*arguments: str) -> str:
    return subprocess.run(arguments, check=True, stdout=subprocess.PIPE, text=True, timeout=300).stdout


class Cluster:
    """`kubeconfig` of a running one; `roles` is role → pid."""

    def __init__(self, name: str, stack: ExitStack) -> None:
        self.name = name
        stack.callback(run, *LASTCALL, "down", name)
        self.kubeconfig: str = json.loads(run(*LASTCALL, "up", name, "--detach", "-o", "json"))["kubeconfig"]
        (found,) = json.loads(run(*LASTCALL, "status", name, "-o", "json"))["clusters"]
        self.roles: dict[str, int] = {each["role"]: each["pid"] for each in found["processes"]}
        self._turns = 0

    def pod(self) -> dict[str, float]:
        self._turns += 1
        running, gone = asyncio.run(life(self.kubeconfig, f"p{self._turns}"))
        return {"create → Running, ms": running, "DELETE → gone, ms": gone}

    def writes(self) -> dict[str, float]:
        self._turns += 1
        before = self.cpu()
        took = asyncio.run(writes(self.kubeconfig, f"w{self._turns}"))
        return {
            "create of a ConfigMap, 1 connection, ms": took,
            "CPU of a create of a ConfigMap, all processes, ms": (self.cpu() - before) * 1000 / WRITES,
        }

    def memory(self) -> float:
        """Return the PSS of all processes in MB."""
        return sum(map(pss_kib, self.roles.values())) / 1024

    def cpu(self) -> float:
        """Return the CPU seconds so far."""
        return sum(map(cpu_seconds, self.roles.values()))


async def life(kubeconfig: str, name: str) -> tuple[float, float]:
    """Return the milliseconds from create to Running and from DELETE until the Pod is gone, as a watch shows them."""
    client = client_for(load_kubeconfig(kubeconfig), user_agent="lastcall-bench/1")
    try:
        there = await client.list(PODS, "default")
        async with (
            asyncio.timeout(WAIT_SECONDS),
            client.watch(PODS, "default", resource_version=there.resource_version) as events,
        ):
            began = time.perf_counter()
            await client.create(PODS, {"metadata": {"name": name}, "spec": POD_SPEC}, "default")
            async for _, obj in events:
                if obj["metadata"]["name"] == name and obj.get("status", {}).get("phase") == "Running":
                    break
            running = time.perf_counter()
            await client.delete(PODS, name, "default")
            async for type_, obj in events:
                if obj["metadata"]["name"] == name and type_ == "DELETED":
                    break
            return (running - began) * 1000, (time.perf_counter() - running) * 1000
    finally:
        await client.close()


async def writes(kubeconfig: str, label: str) -> float:
    """Return the milliseconds of one of `WRITES`."""
    client = client_for(load_kubeconfig(kubeconfig), user_agent="lastcall-bench/1")
    try:
        began = time.perf_counter()
        for number in range(WRITES):
            await client.create(CONFIGMAPS, {"metadata": {"name": f"{label}-{number}"}, "data": {"a": "b"}}, "default")
        return (time.perf_counter() - began) * 1000 / WRITES
    finally:
        await client.close()


@contextmanager
def webhook(pid: int, directory: Path) -> Iterator[tuple[int, str]]:
    """Serve a webhook. Yield (port on the loopback of that process's network, caBundle)."""
    authority = ClusterCA.create()
    certificate, key = authority.issue_server(["127.0.0.1"])
    chain = directory / "chain.pem"
    chain.touch(mode=0o600)
    chain.write_bytes(key + certificate)
    command = ["nsenter", "-t", str(pid), "--net", sys.executable, "-m", "bench.admission", "--hook", str(chain)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline()), base64.b64encode(authority.certificate_pem).decode()
    finally:
        process.stdin.close()
        process.wait(30)


async def configure(kubeconfig: str, port: int, bundle: str) -> None:
    client = client_for(load_kubeconfig(kubeconfig), user_agent="lastcall-bench/1")
    try:
        for number in range(POLICIES):
            checks = [
                {"expression": "object == null || object.metadata.name != 'forbidden'"},
                {"expression": "object == null || !has(object.metadata.labels) || size(object.metadata.labels) < 100"},
            ]
            policy = {"matchConstraints": {"resourceRules": [RULE]}, "validations": checks, "failurePolicy": "Fail"}
            meta = {"metadata": {"name": f"policy-{number}"}}
            await client.create(VALIDATINGADMISSIONPOLICIES, {**meta, "spec": policy})
            binding = {"policyName": f"policy-{number}", "validationActions": ["Deny"]}
            await client.create(VALIDATINGADMISSIONPOLICYBINDINGS, {**meta, "spec": binding})
        hook = {
            "name": "hook.example.com", "rules": [RULE], "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": f"https://127.0.0.1:{port}/", "caBundle": bundle}, "failurePolicy": "Fail",
        }  # fmt: skip
        await client.create(VALIDATINGWEBHOOKCONFIGURATIONS, {"metadata": {"name": "hook"}, "webhooks": [hook]})
    finally:
        await client.close()


def idle(clusters: list[Cluster]) -> list[float]:
    """Return the percent of a core that each takes while nothing is asked of it."""
    before = [each.cpu() for each in clusters]
    time.sleep(IDLE_SECONDS)
    return [100 * (each.cpu() - was) / IDLE_SECONDS for each, was in zip(clusters, before, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=10, help=f"of {WRITES} writes")
    parser.add_argument("--hook", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.hook:
        serve(arguments.hook)
        return
    if os.getuid() != 0:
        sys.exit("bench admission needs root: its webhook enters the control plane's network")
    table: Table = {}
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lastcall-bench-")))
        plain, asked = (Cluster(f"bench-{os.getpid()}-{what}", stack) for what in ("plain", "asked"))
        port, bundle = stack.enter_context(webhook(asked.roles["control-plane"], directory))
        asyncio.run(configure(asked.kubeconfig, port, bundle))
        take_turns(table, arguments.pods, asked.pod, plain.pod)
        take_turns(table, arguments.rounds, asked.writes, plain.writes)
        memory, at_rest = (asked.memory(), plain.memory()), idle([asked, plain])
    print(f"{machine()}; one webhook and {POLICIES} policies (this) beside none (other), in turns\n")
    show(table)
    print(f"\nPSS of all processes: {memory[0]:.0f} MB beside {memory[1]:.0f} MB; "
          f"idle: {at_rest[0]:.1f} % of a core beside {at_rest[1]:.1f} %")  # fmt: skip


if __name__ == "__main__":
    main()
