"""Ports of the host's loopback that lead into the cluster, on the real kernel."""

import http.client
import json
import os
import signal

import ordinary_user
import pytest
from kubectls import needs_kubectl
from pods import container, pod
from ports import reserve_port
from staying import Place
from waiting import eventually

pytestmark = [pytest.mark.real_kernel, needs_kubectl]

SERVES = "mkdir /w; echo $HOSTNAME >/w/index.html; trap 'exit 0' TERM; httpd -f -p 8080 -h /w & wait"


@pytest.fixture(params=ordinary_user.USERS)
def place(request: pytest.FixtureRequest):
    with Place(request.param) as made:
        yield made


def get(port: int) -> str:
    """The body of /, or what kept it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", "/")
        return connection.getresponse().read().decode().strip()
    except (OSError, http.client.HTTPException) as error:
        return type(error).__name__
    finally:
        connection.close()


def test_connections_to_a_published_port_reach_the_service(place: Place) -> None:
    known = reserve_port()
    publish = ["--publish", f"{known}:svc/web:http", "--publish", "localhost:0:pod/server:8080", "--publish-node-ports"]
    facts = place.up(*publish)
    first, second = facts["published"]
    assert first == {"address": f"127.0.0.1:{known}", "target": "svc/default/web:http"}
    assert second["target"] == "pod/default/server:8080"
    by_pod = int(second["address"].rpartition(":")[2])
    assert get(known) in ("ConnectionResetError", "RemoteDisconnected"), "the Service does not exist yet"

    def kubectl(*arguments: str, **options) -> str:
        return place.kubectl(facts["kubeconfig"], *arguments, **options)

    web = pod("server", container("app", SERVES), grace=1)
    web["metadata"]["labels"] = {"app": "web"}
    kubectl("create", "-f", "-", stdin=json.dumps(web))
    ports = [{"name": "http", "port": 80, "targetPort": 8080}]
    spec = {"type": "NodePort", "selector": {"app": "web"}, "ports": ports}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec}
    kubectl("create", "-f", "-", stdin=json.dumps(service))
    eventually(lambda: get(known) == "server", "the Service answers")
    eventually(lambda: get(by_pod) == "server", "the Pod answers")

    node_port = int(kubectl("get", "service", "web", "-o", "jsonpath={.spec.ports[0].nodePort}"))
    eventually(lambda: get(node_port) == "server", "the node port answers")
    assert {"address": f"127.0.0.1:{node_port}", "target": "svc/default/web"} in place.status()["published"]

    by_balancer = reserve_port()
    spec = {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": by_balancer, "targetPort": 8080}]}
    kubectl("create", "-f", "-", stdin=json.dumps({**service, "metadata": {"name": "balanced"}, "spec": spec}))
    eventually(lambda: get(by_balancer) == "server", "the load balancer's port answers")

    taken = place.run("up", "--detach", "--name", "other", "--publish", f"{known}:svc/web:80")
    assert taken.status == 1
    assert f"127.0.0.1:{known} is in use" in taken.err

    os.kill(place.pids()["node-1"], signal.SIGKILL)
    eventually(lambda: get(known) == "server", "the Service answers through the next node process")

    kubectl("delete", "service", "web")
    eventually(lambda: get(node_port) == "ConnectionRefusedError", "nobody listens on the node port any more")
    eventually(lambda: get(known) != "server", "the Service is gone")
    assert get(by_pod) == "server"
    place.ok("down")
    assert get(known) == get(by_pod) == "ConnectionRefusedError"
