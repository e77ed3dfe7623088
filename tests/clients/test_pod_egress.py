"""Pods that connect to addresses outside of the cluster, on the real kernel. "Outside" is a namespace of the test's."""

import json
import os
import subprocess
import sys

import ordinary_user
import pytest
from kubectls import KUBECTL, needs_kubectl
from pods import container, pod
from staying import Place
from waiting import eventually

pytestmark = [pytest.mark.real_kernel, needs_kubectl]

OUTSIDE = "198.51.100.7"
SERVER = f"""
import http.server, threading
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"hello from outside"
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
loopback = http.server.ThreadingHTTPServer(("127.0.0.1", 8000), Handler)
threading.Thread(target=loopback.serve_forever, daemon=True).start()
server = http.server.ThreadingHTTPServer(({OUTSIDE!r}, 80), Handler)
print("ready", flush=True)
server.serve_forever()
"""


@pytest.fixture(params=ordinary_user.USERS)
def world(request: pytest.FixtureRequest):
    """A place whose commands run in a network namespace that has a server."""
    script = f'ip link set lo up && ip address add {OUTSIDE}/32 dev lo && exec "$0" -c "$1"'
    command = ["unshare", "--net", "sh", "-c", script, sys.executable, SERVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None and server.stdout.readline() == "ready\n"
            with Place(request.param, prefix=["nsenter", "-t", str(server.pid), "-n"]) as place:
                yield place
        finally:
            server.kill()


def test_a_pod_connects_to_the_outside_only_where_it_may(world: Place) -> None:
    def kubectl(kubeconfig: str, *arguments: str, stdin: str = "", may_fail: bool = False) -> str:
        environment = {"KUBECONFIG": kubeconfig, "HOME": str(world.home / "tmp"), "PATH": os.environ["PATH"]}
        done = subprocess.run(
            [*world.prefix, KUBECTL, "--cache-dir", str(world.home / "tmp/kubectl"), *arguments],
            env=environment, input=stdin, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert may_fail or done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout

    inside = pod("client", container("app", "trap 'exit 0' TERM; sleep 1000 & wait"), grace=1)
    for name, arguments in (("out", ["--egress"]), ("in", [])):
        kubeconfig = world.up("--name", name, *arguments)["kubeconfig"]
        kubectl(kubeconfig, "create", "-f", "-", stdin=json.dumps(inside))
        kubectl(kubeconfig, "wait", "--for=condition=Ready", "--timeout=60s", "pod/client")

        def get(address: str, kubeconfig: str = kubeconfig) -> str:
            command = f"timeout 20 wget -qO- http://{address}/ 2>&1 || true"
            return kubectl(kubeconfig, "exec", "client", "--", "sh", "-c", command, may_fail=True).strip()

        if arguments:
            eventually(lambda get=get: get(OUTSIDE) == "hello from outside", "the outside answers")
            assert "reset" in get(f"{OUTSIDE}:81"), "nobody listens there"
            os.kill(world.pids(name)["node-1"], 9)
            eventually(lambda get=get: get(OUTSIDE) == "hello from outside", "it does for the next node process")
        else:
            assert "unreachable" in get(OUTSIDE)
        for address in ("127.0.0.1:8000", "0.0.0.0:8000", "172.18.0.2:8000"):
            said = get(address)
            assert "wget: " in said and "hello" not in said, (address, said)
        world.ok("down", name)
