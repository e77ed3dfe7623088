"""`import lastcall` in a program of its own, as each user: what the API promises, and nothing left behind."""

import ordinary_user
import pytest
from run_command import Lastcall, Result
from waiting import eventually

pytestmark = pytest.mark.real_kernel

HEAD = """
import json, sys, urllib.request
import lastcall

def pod(name, script, **spec):
    container = {"name": "app", "image": "busybox", "command": ["sh", "-c", script]}
    if "httpd" in script:
        container["readinessProbe"] = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"terminationGracePeriodSeconds": 2, "containers": [container], **spec}}

PAGE = "mkdir -p /tmp/w; echo hello > /tmp/w/index.html"
# The trap comes first: a Pod without a probe is Ready before its shell has read a line.
SERVES = "trap 'sleep 0.3; exit 0' TERM; " + PAGE + "; httpd -p 8080 -h /tmp/w; echo up; sleep 600 & wait"
AT_ONCE = "trap 'exit 0' TERM; " + PAGE + "; httpd -p 8080 -h /tmp/w; sleep 600 & wait"
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
           "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]}}

def raises(kind, call, *arguments, **more):
    try:
        call(*arguments, **more)
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind.__name__}")
"""

BLOCKING = (
    HEAD
    + """
with lastcall.Cluster() as cluster:
    cluster.apply([pod("web", SERVES), SERVICE], wait=True)
    assert cluster.get("svc/web")["spec"]["ports"][0]["port"] == 80
    assert [each["metadata"]["name"] for each in cluster.list("pods", labels="app=web")] == ["web"]
    assert urllib.request.urlopen(cluster.url("svc/web:http")).read() == b"hello\\n"
    with cluster.port_forward("web", 8080) as url:
        assert urllib.request.urlopen(url).read() == b"hello\\n"
    said = cluster.exec("web", "sh", "-c", "cat; echo oh >&2; exit 3", stdin="hi")
    assert (said.exit_code, said.stdout, said.stderr) == (3, "hi", "oh\\n"), said
    assert "exit code 3" in raises(lastcall.LastcallError, said.check)
    assert cluster.logs("web") == "up\\n"
    assert "does not exist" in raises(lastcall.LastcallError, cluster.exec, "nobody", "true")
    assert "metadata.name" in raises(lastcall.InvalidManifest, cluster.apply, pod("A", "true"))

    ending = cluster.delete("web", load="svc/web:80")
    assert ending.graceful and ending.outcome == "graceful" and ending.exit_codes == {"app": 0}, ending.text
    assert 0.2 < ending.seconds < 25
    assert ending.sent.good_before > 0 and ending.lost_requests > 0  # nobody else stands behind the Service
    assert "were lost" in ending.text and ending.as_dict()["schema"] == "lastcall/ending/v1"
    assert "requests lost" in raises(AssertionError, ending.assert_graceful)

    cluster.apply(pod("stubborn", "trap '' TERM; while true; do sleep 1; done"), wait=True)
    ending = cluster.delete("stubborn", grace=1)
    assert not ending.graceful and ending.exit_codes == {"app": 137}
    assert "load=" in raises(lastcall.NoRequests, lambda: ending.lost_requests)
    assert "default/stubborn was killed" in raises(AssertionError, ending.assert_graceful)
    assert cluster.story("stubborn").outcome == "killed"

    never = {"readinessProbe": {"tcpSocket": {"port": 1}, "periodSeconds": 1}}
    crashes = pod("crashes", "echo no database; exit 3")
    crashes["spec"]["containers"][0] |= never
    said = raises(lastcall.NotReady, cluster.apply, crashes, wait=True, timeout=60)
    assert "crashes" in said and "| no database" in said and "exit code 3" in said, said
    assert "(timeout) waiting for objects to be ready: Pod default/crashes is not ready" in raises(
        lastcall.NotReady, cluster.wait_ready, "crashes", timeout=0.1)

    with cluster.temporary_namespace(grace=0) as namespace:
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "migrate"},
               "spec": {"template": {"spec": pod("x", "echo done", restartPolicy="Never")["spec"]}}}
        namespace.apply(job, wait=True)
        assert namespace.logs("job/migrate") == "done\\n"
        assert cluster.list("jobs") == [] and len(namespace.list("jobs")) == 1
        assert "migrate" in namespace.dump()
    assert "does not exist" in raises(lastcall.LastcallError, cluster.get, "ns/" + namespace.namespace)

    # An hour of grace, and none of them listens: the end of the namespace would run into its limit of two minutes.
    with cluster.temporary_namespace(grace=1) as namespace:
        deaf = pod("deaf", "sleep 3600", terminationGracePeriodSeconds=3600)
        template = {"metadata": {"labels": {"app": "many"}}, "spec": deaf["spec"]}
        spec = {"replicas": 2, "selector": {"matchLabels": {"app": "many"}}, "template": template}
        many = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "many"}, "spec": spec}
        namespace.apply([deaf, many], wait=True)
    assert "does not exist" in raises(lastcall.LastcallError, cluster.get, "ns/" + namespace.namespace)
assert "not started" in raises(lastcall.ClusterError, cluster.get, "svc/web")
print("all of it")
"""
)

ASYNC = (
    HEAD
    + """
import asyncio

async def main():
    async with lastcall.AsyncCluster(nodes=2) as cluster:
        template = {"metadata": {"labels": {"app": "web"}}, "spec": pod("web", SERVES)["spec"]}
        web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
               "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}}
        await cluster.apply(web, SERVICE, wait=True)
        assert len(await cluster.list("nodes")) == 2 and len(await cluster.pods("deployment/web")) == 2
        async with lastcall.AsyncCluster.attach(cluster.name) as other:
            assert (await other.get("deploy/web"))["status"]["availableReplicas"] == 2
        ending = await cluster.delete("deployment/web")
        assert len(ending.pods) == 2 and ending.graceful, ending.text
        assert set(ending.exit_codes.values()) == {0} and len(ending.exit_codes) == 2
        held = pod("held", "trap 'exit 0' TERM; sleep 600 & wait")
        held["metadata"]["finalizers"] = ["example.com/held"]
        await cluster.apply(held, wait=True)
        try:
            await cluster.delete("held", timeout=2)
        except lastcall.StillThere as error:
            assert "example.com/held" in str(error), error
        else:
            raise AssertionError("gone?")
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "boats.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "boats", "kind": "Boat"},
                     "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                         "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}
        boat = {"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "one"}, "spec": {"sails": 2}}
        await cluster.apply(boat, definition, wait=True)
        assert (await cluster.get("boat/one"))["spec"] == {"sails": 2}

asyncio.run(main())
print("all of it")
"""
)

ROLLOUT = (
    HEAD
    + """
template = {"metadata": {"labels": {"app": "web"}}, "spec": pod("web", AT_ONCE)["spec"]}
template["spec"]["terminationGracePeriodSeconds"] = 1
template["spec"]["containers"][0]["readinessProbe"] = {"httpGet": {"port": 8080}, "periodSeconds": 1}
web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
       "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}}
done = lastcall.rollout([web, SERVICE], load=100, propagation="1s")
assert done.lost_requests > 0 and done.total_requests > done.lost_requests and done.conclusive, done
assert done.causes and done.advice and done.patch, done.document
assert "requests lost" in repr(done) and "fix: " in raises(AssertionError, done.assert_nothing_lost)
assert "--no-such" in raises(lastcall.InvalidManifest, lastcall.rollout, [web, SERVICE], no_such=1)
print("all of it")
"""
)


NODES = (
    HEAD
    + """
import asyncio

with lastcall.Cluster() as cluster:
    assert cluster.add_node(node_capacity="cpu=500m") == "node-2"
    cluster.apply(pod("web", AT_ONCE, nodeName="node-2"), wait=True)
    assert "add --force" in raises(lastcall.ClusterError, cluster.remove_node, "node-2")
    assert "no name of a node" in raises(lastcall.ClusterError, cluster.add_node, "extra")
    assert "Leave out the name" in raises(lastcall.UserError, cluster.add_node, node_capacity="node-3:cpu=1")

    async def main():
        async with lastcall.AsyncCluster.attach(cluster.name) as same:
            assert await same.add_node("node-5") == "node-5"
            await same.apply(pod("slow", "trap '' TERM; while true; do sleep 0.1; done", nodeName="node-5"), wait=True)
            try:
                async with asyncio.timeout(1):
                    await same.remove_node("node-5", force=True, grace=60)
            except TimeoutError:
                while (await same.get("node/node-5"))["spec"].get("unschedulable"):
                    await asyncio.sleep(0.1)  # a call that is cancelled lets the node take Pods again

    asyncio.run(main())
    cluster.delete("slow", grace=0)
    cluster.remove_node("node-2", force=True, grace=1)
    assert [each["metadata"]["name"] for each in cluster.list("nodes")] == ["node-1", "node-5"]
    assert "does not exist" in raises(lastcall.LastcallError, cluster.logs, "web")
print("all of it")
"""
)


def said_by(program: str, user: str) -> Result:
    with Lastcall([], program=("-c", program), user=user) as command:
        return command.finish(180)


@pytest.mark.core
@pytest.mark.parametrize("user", ordinary_user.USERS)
@pytest.mark.parametrize("program", [BLOCKING, ASYNC, ROLLOUT], ids=["blocking", "async", "rollout"])
def test_a_program_uses_a_cluster_and_leaves_nothing(program: str, user: str) -> None:
    result = said_by(program, user)
    assert result.status == 0 and result.out.endswith("all of it\n"), result.out + result.err


def test_a_program_adds_nodes_to_its_cluster_and_removes_them() -> None:
    result = said_by(NODES, ordinary_user.USERS[-1])
    assert result.status == 0 and result.out.endswith("all of it\n"), result.out + result.err


def test_a_program_that_is_killed_takes_its_cluster_along() -> None:
    program = "import lastcall, os; lastcall.Cluster('mine').start(); print('up', flush=True); os.kill(os.getpid(), 9)"
    with Lastcall([], program=("-c", program)) as command:
        command.wait_for("up")
        directory = command.home / "state" / "lastcall" / "mine"
        eventually(lambda: not directory.exists(), "the cluster ends")
        assert command.finish().status == -9


def test_a_cluster_that_cannot_start_says_why() -> None:
    program = HEAD + "print(raises(lastcall.ClusterError, lastcall.Cluster(options=['--nodes', '0']).start))"
    assert "--nodes" in said_by(program, ordinary_user.USERS[0]).out
