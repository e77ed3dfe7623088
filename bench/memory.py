"""What a client can make the control plane hold: resident memory during attacks, and a minute after them.

    python -m bench memory [--only NAME …] [--rest 60]

Starts a cluster of its own (`lastcall up`, in a temporary home) for each attack. The attacker may edit the
namespace default. Prints resident memory of the control plane in MB: before, the peak, and after the rest.
"""

import argparse
import base64
import copy
import http.client
import json
import os
import resource
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import yaml

LASTCALL = [sys.executable, "-m", "lastcall.cli.main"]
CORE = "/api/v1/namespaces/default"
MAPS = f"{CORE}/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MERGE = "application/merge-patch+json"


class Server:
    """The API server of one cluster, asked as its administrator or with a token."""

    def __init__(self, kubeconfig: str) -> None:
        with open(kubeconfig) as file:
            config = yaml.safe_load(file)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        host, _, port = cluster["server"].removeprefix("https://").partition(":")
        self.address = (host, int(port))
        self.context = ssl.create_default_context(
            cadata=base64.b64decode(cluster["certificate-authority-data"]).decode()
        )
        self.token = user.get("token", "")
        if "client-certificate-data" in user:
            with tempfile.NamedTemporaryFile() as pem:
                for field in ("client-certificate-data", "client-key-data"):
                    pem.write(base64.b64decode(user[field]))
                pem.flush()
                self.context.load_cert_chain(pem.name)
        self._kept: http.client.HTTPSConnection | None = None

    def become(self, token: str) -> None:
        """Send `token` from now on, and no certificate."""
        anonymous = ssl.create_default_context()
        anonymous.load_verify_locations(cadata="".join(map(ssl.DER_cert_to_PEM_cert, self.context.get_ca_certs(True))))
        self.context, self.token, self._kept = anonymous, token, None

    def ask(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> tuple[int, Any]:
        """Send a request. Return (code, answer)."""
        headers = {"Content-Type": kind} | ({"Authorization": f"Bearer {self.token}"} if self.token else {})
        for again in (True, False):
            if self._kept is None:
                self._kept = http.client.HTTPSConnection(*self.address, context=self.context, timeout=60)
            try:
                self._kept.request(method, path, None if body is None else json.dumps(body), headers)
                answer = self._kept.getresponse()
                return answer.status, json.loads(answer.read())
            except (http.client.HTTPException, OSError):
                self._kept = None
                if not again:
                    raise
        raise AssertionError

    def open(self, text: str = "", body: bytes = b"") -> ssl.SSLSocket:
        """Open a connection on which `text`, a request line and headers, and `body` are sent, and nothing is read."""
        connection = socket.create_connection(self.address, 10)
        secure = self.context.wrap_socket(connection, server_hostname=self.address[0])
        if text:
            head = f"{text}\r\nHost: {self.address[0]}\r\nAuthorization: Bearer {self.token}\r\n\r\n"
            with suppress(OSError):
                secure.sendall(head.encode() + body)
        return secure


def store(server: Server, count: int, size: int) -> None:
    """Store `count` ConfigMaps of `size` bytes."""
    for number in range(count):
        server.ask("POST", MAPS, {"metadata": {"name": f"a-{number}"}, "data": {"x": "y" * size}})


def watches(server: Server) -> list[ssl.SSLSocket]:
    """Open 1500 watches of 6000 ConfigMaps that are not read."""
    return _opened(server, 1500, f"GET {MAPS}?watch=1 HTTP/1.1")


def history(server: Server) -> list[ssl.SSLSocket]:
    """Create a Deployment as large as is taken, and make 200 small changes of it."""
    for size in (2_900_000, 1_400_000):
        pod = {"containers": [{"name": "c", "image": "i", "env": [{"name": "X", "value": "y" * size}]}]}
        template = {"metadata": {"labels": {"a": "b"}}, "spec": pod}
        spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}
        if server.ask("POST", DEPLOYMENTS, {"metadata": {"name": "big"}, "spec": spec})[0] == 201:
            break
    for number in range(200):
        server.ask("PATCH", f"{DEPLOYMENTS}/big", {"metadata": {"labels": {"n": str(number)}}}, MERGE)
    return []


def updates(server: Server) -> list[ssl.SSLSocket]:
    """Open one watch that is not read, and make 1500 updates of 1 MB."""
    server.ask("POST", MAPS, {"metadata": {"name": "t"}})
    opened = _opened(server, 1, f"GET {MAPS}?watch=1 HTTP/1.1")
    for number in range(1500):
        server.ask("PATCH", f"{MAPS}/t", {"data": {"big": "y" * 1_000_000 + str(number)}}, MERGE)
    return opened


def bodies(server: Server) -> list[ssl.SSLSocket]:
    """Send 300 requests whose bodies of 3 MB lack their last byte."""
    size = 3 << 20
    opened: list[ssl.SSLSocket] = []

    def send() -> None:
        with suppress(OSError):
            opened.append(server.open(f"POST {MAPS} HTTP/1.1\r\nContent-Length: {size}", b" " * (size - 1)))

    for _ in range(30):
        threads = [threading.Thread(target=send) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return opened


def lists(server: Server) -> list[ssl.SSLSocket]:
    """Ask for 60 lists of 30 MB, some of them indented, that are not read."""
    return [
        *_opened(server, 30, f"GET {MAPS} HTTP/1.1"),
        *_opened(server, 30, f"GET {MAPS}?pretty=true HTTP/1.1"),
    ]


def connections(server: Server) -> list[ssl.SSLSocket]:
    """Open 6000 connections without a request."""
    return _opened(server, 6000, "")


def everything(server: Server) -> list[ssl.SSLSocket]:
    """Run all of the others at once, by one user.

    500 connections are without a request, so that the others get theirs.
    """
    opened: list[ssl.SSLSocket] = []

    def idle(beside: Server) -> list[ssl.SSLSocket]:
        return _opened(beside, 500, "")

    def run(attack: Attack) -> None:
        beside = copy.copy(server)
        beside._kept = None
        opened.extend(attack(beside))

    threads = [threading.Thread(target=run, args=(each,)) for each in (watches, history, updates, bodies, lists, idle)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return opened


Attack = Callable[[Server], list[ssl.SSLSocket]]
ATTACKS: tuple[Attack, ...] = (watches, history, updates, bodies, lists, connections, everything)


STORED = {watches: (6000, 100), lists: (30, 1_000_000), everything: (30, 1_000_000)}
"""What is stored before an attack is measured: how many ConfigMaps, and their bytes."""


def _opened(server: Server, count: int, text: str) -> list[ssl.SSLSocket]:
    opened = []
    for _ in range(count):
        with suppress(OSError):
            opened.append(server.open(text))
    return opened


def _edit(server: Server) -> str:
    """A token of a ServiceAccount that may edit the namespace default."""
    server.ask("POST", f"{CORE}/serviceaccounts", {"metadata": {"name": "attacker"}})
    subject = {"kind": "ServiceAccount", "name": "attacker", "namespace": "default"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
    binding = {"metadata": {"name": "attacker"}, "subjects": [subject], "roleRef": role}
    server.ask("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", binding)
    code, answer = server.ask("POST", f"{CORE}/serviceaccounts/attacker/token", {"spec": {}})
    if code != 201:
        raise SystemExit(f"no token for the attacker: {answer}")
    token: str = answer["status"]["token"]
    return token


@contextmanager
def _cluster() -> Iterator[tuple[Server, int]]:
    """(its API server, the process of its control plane)."""
    home = tempfile.mkdtemp(prefix="lastcall-memory-")
    environment = {**os.environ, "XDG_STATE_HOME": f"{home}/state", "XDG_DATA_HOME": f"{home}/data"}

    def run(*arguments: str) -> str:
        return subprocess.run(
            [*LASTCALL, *arguments], env=environment, capture_output=True, text=True, check=True
        ).stdout

    try:
        facts = json.loads(run("up", "--detach", "--name", "memory", "--timeout", "300", "-o", "json"))
        (cluster,) = json.loads(run("status", "memory", "-o", "json"))["clusters"]
        (pid,) = (each["pid"] for each in cluster["processes"] if each["role"] == "control-plane")
        yield Server(facts["kubeconfig"]), pid
    finally:
        run("down", "memory")
        shutil.rmtree(home, ignore_errors=True)


def resident(pid: int) -> float:
    """Return the resident memory of a process in MB."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6


def measure(attack: Callable[[Server], list[ssl.SSLSocket]], rest: float) -> tuple[float, float, float, float]:
    """Measure an attack.

    Return (MB before, peak MB, MB after `rest` seconds with the connections kept, seconds that the attack took).
    """
    with _cluster() as (server, pid):
        server.become(_edit(server))
        store(server, *STORED.get(attack, (0, 0)))
        time.sleep(15)  # what making them took has been given back
        before, ended, peak = resident(pid), threading.Event(), [0.0]

        def look() -> None:
            while not ended.wait(0.2):
                peak[0] = max(peak[0], resident(pid))

        watching = threading.Thread(target=look)
        watching.start()
        began = time.monotonic()
        opened = attack(server)
        seconds = time.monotonic() - began
        time.sleep(rest)
        ended.set()
        watching.join()
        after = resident(pid)
        for each in opened:
            each.close()
        return before, peak[0], after, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=[each.__name__ for each in ATTACKS])
    parser.add_argument("--rest", type=float, default=60.0, help="seconds between an attack and the last look")
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print(f"| attack | took, s | before, MB | peak, MB | {options.rest:.0f} s after, MB |\n|---|---|---|---|---|")
    for attack in ATTACKS:
        if options.only and attack.__name__ not in options.only:
            continue
        before, peak, after, seconds = measure(attack, options.rest)
        print(f"| {attack.__name__} | {seconds:.0f} | {before:.0f} | {peak:.0f} | {after:.0f} |", flush=True)


if __name__ == "__main__":
    main()
