"""`lastcall.Cluster(context=…)` in a user's tests: an existing cluster, one of `lastcall up`, is as it was before."""

import json
import signal
import subprocess
import sys

import pytest
from api_snapshot import difference, everything
from plugin_pytest import pytest_of
from ports import reserve_port
from staying import Place
from waiting import eventually

pytestmark = pytest.mark.real_kernel

HEAD = """
import asyncio, copy
import pytest
import lastcall

THERE = {"context": %r, "namespace": "shop", "kubeconfig": %r}

def pod(name, script, **spec):
    # Without a probe a container is Ready as soon as it runs, before its shell has set the trap.
    probe = {"exec": {"command": ["test", "-e", "/tmp/ready"]}, "periodSeconds": 1}
    container = {"name": "app", "image": "busybox", "command": ["sh", "-c", script], "readinessProbe": probe}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"terminationGracePeriodSeconds": 5, "containers": [container], **spec}}

POLITE = "trap 'exit 0' TERM; touch /tmp/ready; echo up; while true; do sleep 0.1; done"
STUBBORN = "trap '' TERM; touch /tmp/ready; while true; do sleep 1; done"

def deployment(name, script, replicas=2):
    own = pod(name, script)
    template = {"metadata": {"labels": own["metadata"]["labels"]}, "spec": own["spec"]}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}}

def service(name, **spec):
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}], **spec}}

def ports(service):
    return [port["port"] for port in service["spec"]["ports"]]
"""

WEB = (
    "trap 'sleep 0.5; exit 0' TERM; mkdir -p /tmp/w; echo hello > /tmp/w/index.html; httpd -p 8080 -h /tmp/w;"
    " touch /tmp/ready; sleep 600 & wait"
)

TESTS = """
@pytest.fixture(scope="module")
def prod():
    with lastcall.Cluster(**THERE, yes=THERE["context"]) as cluster:
        yield cluster

def test_what_is_applied_becomes_ready_and_its_end_has_a_story(prod):
    prod.apply(deployment("polite", POLITE), service("polite"), wait=True)
    assert len(prod.pods("deployment/polite")) == 2 and prod.logs("deployment/polite") == "up\\n"
    assert prod.exec("deployment/polite", "echo", "hi").check().stdout == "hi\\n"
    ending = prod.delete("deployment/polite", "svc/polite")
    assert ending.as_dict()["cluster"]["context"] == prod.name
    assert ending.graceful and set(ending.exit_codes.values()) == {0} and len(ending.pods) == 2, ending.text
    assert prod.list("deployments", labels="app=polite") == []
    assert prod.story(ending.pods[0].pod.name).graceful

def test_a_pod_that_ignores_its_signal_was_killed(prod):
    prod.apply(pod("stubborn", STUBBORN), wait=True)
    ending = prod.delete("stubborn", grace=1)
    assert ending.outcome == "killed" and ending.exit_codes == {"app": 137}, ending.text

def test_what_was_applied_can_be_applied_again(prod):
    first, second = service("again"), service("again")
    second["spec"]["ports"] = [{"name": "https", "port": 443}]
    assert [ports(*prod.apply(each)) for each in (first, second, second)] == [[80], [443], [443]]

def test_what_is_there_is_neither_changed_nor_deleted(prod):
    for manifests, why in (
        ([service("web")], "Service shop/web exists"),
        ([pod("web", POLITE)], "Service web, which already exists, would send requests to"),
        ([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}}], "it is cluster-scoped"),
        ([{**service("new"), "metadata": {"name": "new", "namespace": "default"}}], "its namespace is default"),
    ):
        with pytest.raises(lastcall.UserError, match=why):
            prod.apply(*manifests, pod("other", POLITE))
    with pytest.raises(lastcall.UserError, match="Deployment shop/web was not created by this program"):
        prod.delete("deployment/web")
    with pytest.raises(lastcall.UserError, match="(?s)has no namespace absent.*create namespace absent"):
        prod.in_namespace("absent").apply(pod("a", POLITE))
    for change in (lambda: prod.in_namespace("kube-system").apply(pod("a", POLITE)),
                   lambda: prod.in_namespace("kube-system").delete("cm/kube-root-ca.crt")):
        with pytest.raises(lastcall.LastcallError, match="runs no experiments"):
            change()
    assert not [each for each in prod.list("pods") if each["metadata"]["name"] == "other"]

def test_a_pod_of_the_application_ends_under_load_and_its_owner_replaces_it(prod):
    ending = prod.delete(prod.pods("deployment/web")[0], load="svc/web:PORT")
    assert ending.sent.good_before > 0 and ending.sent.total > 20 and len(ending.pods) == 1, ending.text
    prod.wait_ready("deployment/web")

def test_a_rollout_of_the_application_is_followed_and_put_back(prod):
    done = prod.rollout("deployment/web", load="fresh=30", url="http://127.0.0.1:PORT")
    assert done.total_requests > 30 and done.document["experiments"][0]["workload"] == "Deployment web", done.text
    with pytest.raises(lastcall.UserError, match="lastcall.rollout"):
        prod.rollout(deployment("web", POLITE))

def test_what_an_existing_cluster_does_not_have_says_what_to_do(prod):
    for call, fix in (
        (lambda: prod.create_namespace("new"), "create namespace NAME, then in_namespace"),
        (lambda: prod.delete_namespace("shop"), "delete namespace NAME"),
        (lambda: prod.temporary_namespace().__enter__(), "create namespace NAME, then in_namespace"),
        (lambda: prod.add_node(), "as your provider does it"),
        (lambda: prod.remove_node("node-2"), "drain NODE"),
        (lambda: prod.kubeconfig, "kubectl --context"),
        (lambda: prod.story("nobody"), "lastcall trace --context"),
        (lambda: prod.url("svc/headless:80"), "port_forward"),
        (lambda: prod.url("pod/web:80"), "port_forward"),
        (lambda: prod.url("svc/web:1"), "one of"),
    ):
        with pytest.raises(lastcall.UserError, match="(?s)on context .*fix: .*" + fix):
            call()

def test_nothing_is_changed_without_a_yes_and_all_can_be_read():
    with lastcall.Cluster(**THERE) as cluster:
        assert cluster.name == THERE["context"] and cluster.namespace == "shop"
        cluster.wait_ready("deployment/web")
        web = cluster.pods("deployment/web")
        with cluster.port_forward(web[0], 8080) as url:
            assert url.startswith("http://127.0.0.1:")
        assert "Pods" in cluster.dump() and cluster.get("svc/web") and cluster.events() is not None
        for change in (lambda: cluster.apply(pod("new", POLITE)), lambda: cluster.delete(web[0]),
                       lambda: cluster.exec(web[0], "true"), lambda: cluster.rollout("deployment/web")):
            with pytest.raises(lastcall.UserError, match="(?s)nobody has allowed it.*yes="):
                change()

def test_arguments_that_exclude_each_other_are_refused():
    for wrong, why in (
        ({"context": "a", "nodes": 2}, "nodes= is for a cluster of its own"),
        ({"context": "a", "name": "b"}, "name= is for"),
        ({"yes": "a"}, "add context="),
    ):
        with pytest.raises(lastcall.UserError, match=why):
            lastcall.Cluster(**wrong)
    with pytest.raises(lastcall.UserError, match="yes='staging' allows context staging"):
        lastcall.Cluster(**THERE, yes="staging").start()
    with pytest.raises(lastcall.UserError, match="absent"):
        lastcall.Cluster(**{**THERE, "context": "absent"}).start()

def test_the_same_without_blocking():
    async def ends():
        async with lastcall.AsyncCluster(**THERE, yes=THERE["context"]) as cluster:
            await cluster.apply(pod("alone", POLITE), wait=True)
            ending = await cluster.delete("alone")
            await cluster.apply(pod("left", POLITE))
            return ending
    assert asyncio.run(ends()).graceful
"""

WAITS = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
with lastcall.Cluster(**THERE, yes=THERE["context"]) as cluster:
    cluster.apply(deployment("left", POLITE), service("left"))
    print("applied", flush=True)
    while True:
        cluster.get("svc/left")
"""


@pytest.mark.timeout(400)
def test_tests_on_an_existing_cluster_pass_and_it_is_as_before_also_when_one_is_killed() -> None:
    port = reserve_port()
    with Place() as place:
        kubeconfig = place.up("--name", "theirs", "--publish", f"{port}:svc/shop/web:{port}")["kubeconfig"]
        (context,) = (
            each["name"] for each in json.loads(place.kubectl(kubeconfig, "config", "view", "-o", "json"))["contexts"]
        )
        head = HEAD % (context, kubeconfig)
        place.kubectl(kubeconfig, "create", "namespace", "shop")
        made = f"import json; print(json.dumps(dict(kind='List', apiVersion='v1', items=[deployment('web', {WEB!r}), "
        made += (
            f"service('web', type='LoadBalancer', ports=[dict(port={port}, targetPort=8080)]), service('headless')])))"
        )
        manifests = subprocess.run([sys.executable, "-c", head + made], capture_output=True, text=True, check=True)
        place.kubectl(kubeconfig, "-n", "shop", "apply", "-f", "-", stdin=manifests.stdout)
        address = json.dumps({"status": {"loadBalancer": {"ingress": [{"ip": "127.0.0.1"}]}}})
        place.kubectl(
            kubeconfig, "-n", "shop", "patch", "svc/web", "--subresource=status", "--type=merge", "-p", address
        )
        place.kubectl(kubeconfig, "-n", "shop", "rollout", "status", "deployment/web")
        before = everything(kubeconfig)

        with pytest_of(head + TESTS.replace("PORT", str(port))) as command:
            result = command.finish(300)
        assert result.status == 0 and "10 passed" in result.out, result.out + result.err
        assert difference(before, everything(kubeconfig)) == []

        there = ("--kubeconfig", kubeconfig, "--context", context)
        for number in (signal.SIGINT, signal.SIGKILL):
            process = subprocess.Popen([sys.executable, "-c", head + WAITS], stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None and process.stdout.readline() == "applied\n"
            process.send_signal(number)
            process.wait(120)
            process.stdout.close()
            if number == signal.SIGKILL:
                left = place.run("doctor", *there)
                assert (left.status, "delete Deployment left" in left.out) == (1, True), left.out
                assert "nothing is left" in place.ok("cleanup", *there, f"--yes={context}")
            eventually(lambda: difference(before, everything(kubeconfig)) == [], "all is put back")
        place.ok("down", "--name", "theirs")
