"""A cluster ended and started again on its state directory: for its Pods the node was rebooted."""

from pods import container, pod
from staying_cluster import StayingCluster, staying
from waiting import until

from lastcall.kube.api.resources import CONFIGMAPS, EVENTS, NODES, SERVICES

FOREVER = "trap 'exit 0' TERM; while true; do sleep 0.05; done"
DEAF = "while true; do sleep 0.05; done"


async def pods_of_every_policy(cluster: StayingCluster) -> None:
    await cluster.create(
        pod("always", container("app", FOREVER)),
        pod("never", container("app", FOREVER), restartPolicy="Never"),
        pod("onfailure", container("app", FOREVER), restartPolicy="OnFailure"),
        pod("done", container("app", "exit 0"), restartPolicy="Never"),
        pod("leaving", container("app", DEAF), grace=600),
    )
    for name in ("always", "never", "onfailure", "leaving"):
        await cluster.ready(name)
    await cluster.until(lambda: cluster.last("done")["status"]["phase"] == "Succeeded")
    await cluster.client.create(CONFIGMAPS, {"metadata": {"name": "kept"}, "data": {"a": "b"}}, "default")
    await cluster.delete("leaving")
    await cluster.until(lambda: cluster.last("leaving")["metadata"].get("deletionTimestamp"))
    node = await cluster.client.get(NODES, "node-1")
    facts = {key: node["status"]["nodeInfo"][key] for key in ("bootID", "systemUUID", "machineID")}
    note = {"metadata": {"name": "note"}, "data": {**facts, "uid": node["metadata"]["uid"]}}
    note["data"]["always"] = cluster.last("always")["metadata"]["uid"]
    await cluster.client.create(CONFIGMAPS, note, "default")


async def they_restart_by_their_policies(cluster: StayingCluster) -> None:
    note = (await cluster.client.get(CONFIGMAPS, "note", "default"))["data"]
    assert (await cluster.client.get(CONFIGMAPS, "kept", "default"))["data"] == {"a": "b"}
    assert (await cluster.client.get(SERVICES, "kubernetes", "default"))["spec"]["clusterIP"] == "10.96.0.1"
    for name in ("always", "onfailure"):
        await cluster.until(lambda name=name: _again(cluster, name), f"{name} runs again")
        last = cluster.container(name)["lastState"]["terminated"]
        assert (last["exitCode"], last["reason"]) == (255, "Unknown"), last
    assert cluster.last("always")["metadata"]["uid"] == note["always"]
    await cluster.until(lambda: cluster.last("never")["status"]["phase"] == "Failed", "never has failed")
    ended = cluster.container("never")["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"], cluster.container("never")["restartCount"]) == (255, "Unknown", 0)
    await cluster.until(lambda: not any(_there(cluster, "leaving")), "leaving has left")
    assert cluster.last("done")["status"]["phase"] == "Succeeded"
    assert cluster.container("done")["state"]["terminated"]["exitCode"] == 0
    # The API may tell of a Pod before front has read the records of it.
    await cluster.until(lambda: len(cluster.find("ProcessStarted")) >= 2, "two containers have been started")
    assert [r.container for r in cluster.find("ProcessStarted")] == ["app", "app"]

    node = await cluster.client.get(NODES, "node-1")
    info = node["status"]["nodeInfo"]
    assert info["bootID"] != note["bootID"] and node["metadata"]["uid"] == note["uid"]
    assert (info["systemUUID"], info["machineID"]) == (note["systemUUID"], note["machineID"])
    rebooted = f"Node node-1 has been rebooted, boot id: {info['bootID']}"

    async def told() -> list[dict]:
        return [e for e in (await cluster.client.list(EVENTS, "default")).items if e["reason"] == "Rebooted"]

    events = await until(told, "the Event Rebooted")
    assert [(e["type"], e["message"]) for e in events] == [("Warning", rebooted)]

    for name in ("always", "never", "onfailure", "done"):
        await cluster.delete(name)
    for name in ("always", "never", "onfailure", "done"):
        await cluster.gone(name)
    await cluster.nothing_left()


def _again(cluster: StayingCluster, name: str) -> bool:
    return cluster.is_ready(name) and cluster.container(name)["restartCount"] == 1


def _there(cluster: StayingCluster, name: str) -> list[bool]:
    versions = cluster.versions.get(name) or []
    return [True] if versions and versions[-1]["watchType"] != "DELETED" else []


@staying(then=they_restart_by_their_policies)
async def test_after_a_restart_of_the_cluster_pods_restart_by_their_policies(cluster: StayingCluster) -> None:
    await pods_of_every_policy(cluster)
