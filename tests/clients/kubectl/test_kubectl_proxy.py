"""pods/proxy, services/proxy and nodes/proxy of a whole cluster: `kubectl get --raw` and `kubectl proxy`."""

import json
import re
import urllib.request

import pytest
from kubectls import Kubectl
from waiting import eventually

pytestmark = pytest.mark.real_kernel

SERVE = (
    "mkdir -p /www/cgi-bin /www/below; cd /www; echo from $HOSTNAME > index.html; "
    "echo '<a href=\"/below/\">below</a>' > links.html; echo plain > below/index.html; "
    "printf '#!/bin/sh\\necho; echo $REQUEST_METHOD $QUERY_STRING $HTTP_AUTHORIZATION; cat\\n' > cgi-bin/say; "
    "chmod +x cgi-bin/say; exec httpd -f -p 8080 -h /www"
)
LABELS = {"app": "web"}
PORTS = [{"name": "web", "containerPort": 8080}]


def pod(name: str) -> dict[str, object]:
    container = {
        "name": "main",
        "image": "busybox:1.36",
        "command": ["sh", "-c", SERVE],
        "ports": PORTS,
        "readinessProbe": {"httpGet": {"port": "web", "path": "/index.html"}, "periodSeconds": 1},
    }
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": LABELS}, "spec": spec}


@pytest.fixture
def web(kubectl: Kubectl) -> Kubectl:
    """Pods `one` and `two` behind the Service `web`, ready."""
    ports = [{"name": "http", "port": 80, "targetPort": "web"}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    for each in (pod("one"), pod("two"), {**service, "spec": {"selector": LABELS, "ports": ports}}):
        kubectl("apply", "-f", "-", stdin=json.dumps(each))
    kubectl("wait", "--for=condition=Ready", "pod", "--all", "--timeout=120s", timeout=150)

    def served() -> bool:
        subsets = kubectl.get("endpoints", "web").get("subsets") or [{}]
        return len(subsets[0].get("addresses") or []) == 2

    eventually(served, "both Pods are endpoints")
    return kubectl


def test_pods_services_and_nodes_answer_through_the_api_server(web: Kubectl) -> None:
    core = f"/api/v1/namespaces/{web.namespace}"
    assert web("get", "--raw", f"{core}/pods/one/proxy/") == "from one\n"
    assert web("get", "--raw", f"{core}/pods/http:two:8080/proxy/index.html") == "from two\n"
    said = {
        web("get", "--raw", f"{core}/services/{name}/proxy/") for name in ["web:http", "web:80", "http:web:http"] * 8
    }
    assert said == {"from one\n", "from two\n"}
    prefix = f"{core}/services/web:http/proxy"
    assert web("get", "--raw", f"{prefix}/links.html") == f'<a href="{prefix}/below/">below</a>\n'
    error = web("get", "--raw", f"{core}/pods/one:9/proxy/", status=1)
    assert re.search(r"error trying to reach service: dial tcp 10\.244\.0\.\d+:9: connect: connection refused", error)
    assert "no endpoints available" in web("get", "--raw", f"{core}/services/web:nope/proxy/", status=1)
    node = web.get("pod", "one")["spec"]["nodeName"]
    assert web("get", "--raw", f"/api/v1/nodes/{node}/proxy/healthz") == "ok"
    pods = json.loads(web("get", "--raw", f"/api/v1/nodes/{node}:10250/proxy/pods"))["items"]
    assert {"one", "two"} <= {each["metadata"]["name"] for each in pods}


def test_a_service_whose_pods_are_gone_has_no_endpoints(web: Kubectl) -> None:
    web("delete", "pod", "one", "two", "--wait=false")
    path = f"/api/v1/namespaces/{web.namespace}/services/web:http/proxy/"
    eventually(
        lambda: 'no endpoints available for service "web' in web.run("get", "--raw", path)[2], "the Service is empty"
    )


def test_kubectl_proxy_leads_to_a_pod_with_every_verb_and_without_the_client_s_token(web: Kubectl) -> None:
    process = web.start("proxy", "--port=0")
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        base = f"http://127.0.0.1:{port}/api/v1/namespaces/{web.namespace}/pods/one:8080/proxy"
        with urllib.request.urlopen(base, timeout=60) as answer:  # a redirect to …/proxy/
            assert answer.url == f"{base}/"
            assert answer.read() == b"from one\n"
        with urllib.request.urlopen(f"{base}/below", timeout=60) as answer:  # httpd's redirect, led back
            assert answer.url == f"{base}/below/"
            assert answer.read() == b"plain\n"
        for method, body in (("GET", b""), ("POST", b"hello"), ("POST", b"x" * 200_000)):
            request = urllib.request.Request(f"{base}/cgi-bin/say?a=b", data=body or None, method=method)
            with urllib.request.urlopen(request, timeout=60) as answer:
                first, _, rest = answer.read().partition(b"\n")
            assert first.split() == [method.encode(), b"a=b"]
            assert rest == body
    finally:
        process.kill()
        process.wait()
