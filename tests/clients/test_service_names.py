"""Names of Services inside Pods, on the real kernel: resolv.conf, the node's DNS server, and HTTP requests by name."""

import json

import ordinary_user
import pytest
from kubectls import needs_kubectl
from pods import container, pod
from staying import Place
from waiting import eventually

pytestmark = [pytest.mark.real_kernel, needs_kubectl]

SERVES = "mkdir /w; echo $HOSTNAME >/w/index.html; trap 'exit 0' TERM; httpd -f -p 8080 -h /w & wait"


@pytest.fixture(params=ordinary_user.USERS)
def place(request: pytest.FixtureRequest):
    with Place(request.param) as made:
        yield made


def test_a_pod_reaches_services_by_their_names(place: Place) -> None:
    kubeconfig = place.up()["kubeconfig"]

    def kubectl(*arguments: str, **options) -> str:
        return place.kubectl(kubeconfig, *arguments, **options)

    web = pod("server", container("app", SERVES), grace=1)
    web["metadata"]["labels"] = {"app": "web"}
    kubectl("create", "-f", "-", stdin=json.dumps(web))
    kubectl("expose", "pod", "server", "--name", "web", "--port", "80", "--target-port", "8080")
    kubectl("expose", "pod", "server", "--name", "headless", "--cluster-ip", "None", "--port", "8080")
    kubectl("wait", "--for=condition=Ready", "--timeout=60s", "pod/server")

    def run(command: str) -> str:
        return kubectl("exec", "server", "--", "sh", "-c", f"{command} 2>&1 || true").strip()

    assert "nameserver 10.96.0.10" in run("cat /etc/resolv.conf")
    assert "search default.svc.cluster.local svc.cluster.local cluster.local" in run("cat /etc/resolv.conf")
    for name in ("web", "web.default", "web.default.svc.cluster.local", "headless:8080"):
        eventually(lambda name=name: run(f"wget -qO- http://{name}/") == "server", f"{name} answers")
    address = kubectl("get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
    assert address in run("nslookup web.default.svc.cluster.local")
    assert "SERVFAIL" in run("nslookup example.com")  # nobody to ask without --egress
