"""What `trace` tells of who ended a Pod when it has the API server's audit events, too (virtual time)."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from virtual_cluster import VirtualCluster, pod_manifest, run_cluster
from workloads import workload

from lastcall.cli.exit_status import exit_status
from lastcall.endings.story import Ending
from lastcall.kube.api.resources import PODS
from lastcall.kube.cri.simulated_program import Program
from lastcall.trace.auditing.index import AuditIndex
from lastcall.trace.auditing.requests import read_event
from lastcall.trace.follower import Follower, Options
from lastcall.trace.scope import Scope
from lastcall.world.clock import rfc3339_micro
from lastcall.world.tasks import Tasks

Write = Callable[..., None]
Act = Callable[[VirtualCluster, Write], Awaitable[None]]
LATE = 8.0


def traced(act: Act, manifest: Any, *, late: float = 0.0) -> list[Ending]:
    """The stories of a trace that gets the audit events which `act` writes, `late` seconds after the requests."""
    found: list[Ending] = []

    async def scenario(cluster: VirtualCluster) -> None:
        index = AuditIndex()
        follower = Follower(
            cluster.client,
            Scope(cluster.namespace),
            world=cluster.world,
            kubernetes_version="1.36",
            options=Options(audit_wait=LATE + 2),
            audit=index,
        )
        await cluster.create(manifest)
        async with Tasks() as tasks:

            def write(verb: str, resource: str, name: str, user: str, **more: Any) -> None:
                now = rfc3339_micro(datetime.fromtimestamp(cluster.world.clock.wall_ns() / 1e9, UTC))
                ref = {"resource": resource, "namespace": cluster.namespace, "name": name, **more.pop("ref", {})}
                event = {
                    "kind": "Event", "apiVersion": "audit.k8s.io/v1", "stage": "ResponseComplete",
                    "auditID": f"{user} {now}",
                    "verb": verb, "requestURI": "/", "user": {"username": user}, "userAgent": "kubectl/v1.36.2",
                    "sourceIPs": ["192.0.2.7"], "objectRef": ref, "responseStatus": {"code": 200},
                    "requestReceivedTimestamp": now, "stageTimestamp": now, **more,
                }  # fmt: skip
                tasks.spawn(arrive(event), name="audit event")

            async def arrive(event: Any) -> None:
                await cluster.sleep(late)
                read = read_event(event)
                assert read is not None
                index.add(read)

            tasks.spawn(follower.run(), name="trace")
            await follower.synced()
            await act(cluster, write)
            await cluster.sleep(60)
            follower.stop()
            async for ending in follower.endings():
                found.append(ending)
            tasks.cancel()

    run_cluster(scenario, {"app": Program(drain_seconds=1)})
    return found


async def delete_p(cluster: VirtualCluster, write: Write) -> None:
    await cluster.wait_ready("p")
    await cluster.sleep(5)
    write("delete", "pods", "p", "alice")
    await cluster.delete("pod/p")
    await cluster.wait_gone("p")


def test_a_deletion_names_user_client_and_address_of_its_audit_event() -> None:
    (story,) = traced(delete_p, pod_manifest())
    by = story.decided_by
    assert by is not None
    assert (by.user, by.client, by.source_ips, by.reason) == ("alice", "kubectl", ("192.0.2.7",), "deleted")
    assert by.why == "it was deleted by kubectl (user alice) from 192.0.2.7"
    assert not any("Who deleted it" in each for each in story.not_known)
    assert exit_status([story]) == 0


def test_a_story_waits_for_an_event_that_a_webhook_brings_late() -> None:
    (story,) = traced(delete_p, pod_manifest(), late=LATE)
    assert story.decided_by is not None
    assert story.decided_by.user == "alice"


def test_a_deletion_without_an_audit_event_says_so_in_time() -> None:
    async def unseen(cluster: VirtualCluster, write: Write) -> None:
        await delete_p(cluster, lambda *_, **__: None)

    (story,) = traced(unseen, pod_manifest())
    assert story.decided_by is None
    assert "Who deleted it is not known: the audit log has no such request, or it came too late." in story.not_known


def test_a_scale_names_who_scaled_the_deployment() -> None:
    async def scale(cluster: VirtualCluster, write: Write) -> None:
        await cluster.sleep(10)
        write(
            "patch", "deployments", "web", "bob", ref={"subresource": "scale"}, impersonatedUser={"username": "carol"}
        )
        await cluster.patch("deployment/web", {"spec": {"replicas": 1}})

    (story,) = traced(scale, workload("Deployment", replicas=2))
    by = story.decided_by
    assert by is not None
    assert (by.user, by.reason, by.owner_kind) == ("carol", "scaledIn", "ReplicaSet")
    who = "by kubectl (user carol, impersonated by bob) from 192.0.2.7"
    assert by.why.startswith(f"Deployment web was scaled from 2 to 1 {who}: ")


def test_two_users_at_the_same_time_are_both_told_and_none_is_chosen() -> None:
    async def scale(cluster: VirtualCluster, write: Write) -> None:
        await cluster.sleep(10)
        write("patch", "deployments", "web", "bob")
        await cluster.patch("deployment/web", {"spec": {"replicas": 1}})
        write("patch", "deployments", "web", "eve")

    (story,) = traced(scale, workload("Deployment", replicas=2))
    assert story.decided_by is not None
    assert story.decided_by.user == ""
    uncertain = "Who changed Deployment web is not certain: by the audit log bob or eve did at that time."
    assert uncertain in story.not_known


def test_an_eviction_names_who_evicted() -> None:
    async def evict(cluster: VirtualCluster, write: Write) -> None:
        await cluster.wait_ready("p")
        await cluster.sleep(5)
        write("create", "pods", "p", "drainer", ref={"subresource": "eviction"})
        await cluster.client.create(
            PODS, {"metadata": {"name": "p"}}, cluster.namespace, name="p", subresource="eviction"
        )

    (story,) = traced(evict, pod_manifest())
    by = story.decided_by
    assert by is not None
    assert (by.user, by.reason) == ("drainer", "evicted")
    assert by.why == "it was evicted by kubectl (user drainer) from 192.0.2.7: through the Eviction API"
