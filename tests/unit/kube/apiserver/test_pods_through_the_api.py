"""Official deletion cases (control plane reference, section 6) through the whole server, in virtual time."""

from collections.abc import AsyncIterator
from copy import deepcopy
from datetime import timedelta

import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import BINDINGS, CONFIGMAPS, ENDPOINTSLICES, NAMESPACES, PODS, SERVICES
from lastcall.kube.client.api import WatchEvent
from lastcall.kube.client.informer import Informer
from lastcall.kube.client.workqueue import WorkQueue
from lastcall.world.clock import now, rfc3339
from lastcall.world.tasks import Tasks


def manifest(name: str = "p", grace: int = 30, **meta) -> dict:
    return {
        "metadata": {"name": name, **meta},
        "spec": {"terminationGracePeriodSeconds": grace, "containers": [{"name": "m", "image": "busybox:1.36"}]},
    }


async def running(api, name: str = "p", **more) -> dict:
    await api.admin.create(PODS, manifest(name, **more), "default")
    await api.admin.create(BINDINGS, {"metadata": {"name": name}, "target": {"kind": "Node", "name": "n1"}}, "default")
    status = {"status": {"phase": "Running"}}
    return await api.node.patch(PODS, name, status, "default", subresource="status")


async def drain(events: AsyncIterator[WatchEvent], count: int) -> list[WatchEvent]:
    return [await anext(events) for _ in range(count)]


def watching(api, pod: dict):
    return api.admin.watch(
        PODS, "default", resource_version=pod["metadata"]["resourceVersion"], field_selector="metadata.name=p"
    )


def after(api, seconds: float) -> str:
    return rfc3339(now(api.world.clock) + timedelta(seconds=seconds))


def test_a_graceful_delete_answers_the_pod_and_leaves_it(virtual) -> None:
    async def scenario(api) -> None:
        pod = await running(api, finalizers=["x/y"])
        async with watching(api, pod) as events:
            gone = await api.admin.delete(PODS, "p", "default")
            meta = gone["metadata"]
            assert meta["deletionGracePeriodSeconds"] == 30
            assert meta["deletionTimestamp"] == after(api, 30)
            assert meta["generation"] == 2
            assert meta["finalizers"] == ["x/y"]
            assert [event.type for event in await drain(events, 1)] == ["MODIFIED"]
        assert await api.admin.get(PODS, "p", "default") == gone

    virtual(scenario)


def test_binding_does_not_count_as_a_change_of_the_spec(virtual) -> None:
    async def scenario(api) -> None:
        pod = await running(api)
        assert pod["metadata"]["generation"] == 1
        assert pod["spec"]["nodeName"] == "n1"
        (scheduled,) = [c for c in pod["status"]["conditions"] if c["type"] == "PodScheduled"]
        assert scheduled["status"] == "True"

    virtual(scenario)


def test_a_delete_with_grace_zero_is_two_writes(virtual) -> None:
    async def scenario(api) -> None:
        pod = await running(api)
        async with watching(api, pod) as events:
            answer = await api.admin.delete(PODS, "p", "default", grace_period_seconds=0)
            modified, deleted = await drain(events, 2)
        assert (modified.type, deleted.type) == ("MODIFIED", "DELETED")
        assert modified.object["metadata"]["deletionGracePeriodSeconds"] == 0
        assert answer == deleted.object, "the answer is the object as it was removed"
        assert int(deleted.object["metadata"]["resourceVersion"]) > int(modified.object["metadata"]["resourceVersion"])
        with pytest.raises(StatusError) as caught:
            await api.admin.get(PODS, "p", "default")
        assert caught.value.code == 404

    virtual(scenario)


def test_a_delete_with_grace_zero_waits_for_no_timer(virtual) -> None:
    async def scenario(api) -> None:
        await running(api)
        before = api.world.clock.monotonic_ns()
        await api.admin.delete(PODS, "p", "default", grace_period_seconds=0)
        assert api.world.clock.monotonic_ns() == before

    virtual(scenario)


def test_a_controller_acts_on_the_first_write_of_a_delete_with_grace_zero(virtual) -> None:
    """As recorded (force-delete): the endpoint is terminating before it is gone, also with a store in memory."""

    async def scenario(api) -> None:
        await running(api)
        seen: list[bool] = []
        noted: WorkQueue[str] = WorkQueue(api.world)
        informer = Informer(api.admin, PODS, world=api.world)
        informer.add_handler(None, lambda _, new: noted.add("p"), None)

        async def act() -> None:
            await noted.get()
            seen.append(informer.get("default", "p") is not None)

        async with Tasks() as tasks:
            tasks.spawn(informer.run(), name="informer")
            controller = tasks.spawn(act(), name="controller")
            await informer.synced()
            await api.world.clock.sleep(1)
            await api.admin.delete(PODS, "p", "default", grace_period_seconds=0)
            await controller
            tasks.cancel()
        assert seen == [True], "the controller acts while the marked Pod is in its cache"

    virtual(scenario)


def test_a_longer_second_delete_changes_nothing_and_is_not_seen(virtual) -> None:
    async def scenario(api) -> None:
        await running(api)
        first = await api.admin.delete(PODS, "p", "default")
        for grace in (None, 60, 30):
            assert await api.admin.delete(PODS, "p", "default", grace_period_seconds=grace) == first
        await api.world.clock.sleep(2)
        shorter = await api.admin.delete(PODS, "p", "default", grace_period_seconds=10)
        assert shorter["metadata"]["deletionTimestamp"] == after(api, 8)
        await api.world.clock.sleep(18)
        late = await api.admin.delete(PODS, "p", "default", grace_period_seconds=5)
        assert late["metadata"]["deletionGracePeriodSeconds"] == 1
        assert late["metadata"]["deletionTimestamp"] == after(api, 0)
        assert api.records.kinds[-3:] == ["DeleteAccepted", "GraceShortened", "GraceShortened"]

    virtual(scenario)


def test_the_story_of_a_pod_is_recorded_write_by_write(virtual) -> None:
    async def scenario(api) -> None:
        pod = await running(api)
        accepted = await api.admin.delete(PODS, "p", "default")
        await api.node.patch(PODS, "p", {"status": {"phase": "Succeeded"}}, "default", subresource="status")
        await api.node.delete(PODS, "p", "default", grace_period_seconds=0, uid=pod["metadata"]["uid"])
        assert api.records.kinds == [
            "PodCreated",
            "PodBound",
            "PodStatusWritten",
            "DeleteAccepted",
            "PodStatusWritten",
            "ObjectRemoved",
        ]
        assert all(api.records.rules)
        facts = api.records.facts[3]
        assert facts["resourceVersion"] == accepted["metadata"]["resourceVersion"]
        assert facts["gracePeriodSeconds"] == 30
        assert facts["user"] == "admin"
        versions = [int(facts["resourceVersion"]) for facts in api.records.facts]
        assert versions == sorted(versions)

    virtual(scenario)


def test_removing_the_last_finalizer_removes_the_object_with_one_event(virtual) -> None:
    async def scenario(api) -> None:
        pod = await running(api, finalizers=["x/y"])
        async with watching(api, pod) as events:
            held = await api.admin.delete(PODS, "p", "default", grace_period_seconds=0)
            assert held["metadata"]["deletionGracePeriodSeconds"] == 0
            answer = await api.admin.patch(PODS, "p", {"metadata": {"finalizers": []}}, "default")
            assert "finalizers" not in answer["metadata"]
            assert answer["metadata"]["resourceVersion"] == held["metadata"]["resourceVersion"]
            modified, deleted = await drain(events, 2)
        assert (modified.type, deleted.type) == ("MODIFIED", "DELETED")
        assert deleted.object["metadata"]["finalizers"] == ["x/y"], "DELETED carries the state as it was stored"
        assert int(deleted.object["metadata"]["resourceVersion"]) > int(held["metadata"]["resourceVersion"])

    virtual(scenario)


def test_a_finalizer_removed_while_the_grace_period_runs_is_an_ordinary_update(virtual) -> None:
    async def scenario(api) -> None:
        await running(api, finalizers=["x/y"])
        await api.admin.delete(PODS, "p", "default")
        await api.admin.patch(PODS, "p", {"metadata": {"finalizers": None}}, "default")
        assert (await api.admin.get(PODS, "p", "default"))["metadata"]["deletionGracePeriodSeconds"] == 30
        await api.admin.delete(PODS, "p", "default", grace_period_seconds=0)
        assert (await api.admin.list(PODS)).items == []

    virtual(scenario)


@pytest.mark.parametrize(
    ("patch", "code", "words"),
    [
        ({"metadata": {"finalizers": ["a/b"]}}, 422, "no new finalizers can be added if the object is being deleted"),
        ({"metadata": {"deletionGracePeriodSeconds": 77}}, 422, "field is immutable"),
        ({"metadata": {"uid": "other"}}, 422, "field is immutable"),
        ({"metadata": {"resourceVersion": "1"}}, 409, "the object has been modified"),
        ({"metadata": {"resourceVersion": "abc"}}, 500, 'strconv.ParseUint: parsing "abc": invalid syntax'),
    ],
)
def test_what_a_patch_of_a_terminating_pod_may_not_do(virtual, patch: dict, code: int, words: str) -> None:
    async def scenario(api) -> None:
        await running(api)
        before = await api.admin.delete(PODS, "p", "default")
        with pytest.raises(StatusError) as caught:
            await api.admin.patch(PODS, "p", patch, "default")
        assert caught.value.code == code
        assert words in caught.value.message
        assert await api.admin.get(PODS, "p", "default") == before

    virtual(scenario)


def test_a_deletion_mark_cannot_be_taken_back(virtual) -> None:
    async def scenario(api) -> None:
        await running(api)
        marked = await api.admin.delete(PODS, "p", "default")
        answer = await api.admin.patch(PODS, "p", {"metadata": {"deletionTimestamp": None}}, "default")
        assert answer == marked, "a no-op is not written"
        patch = {"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}}
        answer = await api.admin.patch(PODS, "p", patch, "default")
        assert answer["metadata"]["deletionTimestamp"] == marked["metadata"]["deletionTimestamp"]

    virtual(scenario)


def test_a_name_is_taken_while_its_pod_is_terminating(virtual) -> None:
    async def scenario(api) -> None:
        await running(api)
        await api.admin.delete(PODS, "p", "default")
        with pytest.raises(StatusError) as caught:
            await api.admin.create(PODS, manifest(), "default")
        assert caught.value.message == 'object is being deleted: pods "p" already exists'

    virtual(scenario)


def test_the_final_delete_of_an_old_pod_leaves_its_successor_alone(virtual) -> None:
    async def scenario(api) -> None:
        old = await running(api)
        await api.admin.delete(PODS, "p", "default", grace_period_seconds=0)
        new = await running(api)
        with pytest.raises(StatusError) as caught:
            await api.node.delete(PODS, "p", "default", grace_period_seconds=0, uid=old["metadata"]["uid"])
        assert caught.value.code == 409
        assert (await api.admin.get(PODS, "p", "default"))["metadata"]["uid"] == new["metadata"]["uid"]

    virtual(scenario)


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        ("bound", 'is already assigned to node "n1"'),
        ("terminating", "is being deleted, cannot be assigned to a host"),
        ("gated", "has non-empty .spec.schedulingGates"),
    ],
)
def test_a_pod_that_cannot_be_assigned(virtual, prepare: str, words: str) -> None:
    async def scenario(api) -> None:
        pod = manifest(finalizers=["x/y"])
        if prepare == "gated":
            pod["spec"]["schedulingGates"] = [{"name": "a/hold"}]
        await api.admin.create(PODS, pod, "default")
        binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
        if prepare == "bound":
            await api.admin.create(PODS, binding, "default", name="p", subresource="binding")
        if prepare == "terminating":
            await api.admin.delete(PODS, "p", "default")
        with pytest.raises(StatusError) as caught:
            await api.admin.create(PODS, binding, "default", name="p", subresource="binding")
        assert caught.value.code == 409
        assert words in caught.value.message
        assert caught.value.status["details"]["kind"] == "pods/binding"

    virtual(scenario)


def test_kinds_without_grace_answer_a_status_and_one_event(virtual) -> None:
    async def scenario(api) -> None:
        stored = await api.admin.create(CONFIGMAPS, {"metadata": {"name": "c"}, "data": {"a": "1"}}, "default")
        async with api.admin.watch(CONFIGMAPS, resource_version=stored["metadata"]["resourceVersion"]) as events:
            status = await api.admin.delete(CONFIGMAPS, "c", "default", grace_period_seconds=30)
            assert status["details"] == {"name": "c", "kind": "configmaps", "uid": stored["metadata"]["uid"]}
            assert (await anext(events)).type == "DELETED"

    virtual(scenario)


def test_a_pod_leaving_a_field_selector_is_seen_as_deleted_in_its_last_matching_state(virtual) -> None:
    async def scenario(api) -> None:
        await running(api)
        version = (await api.admin.list(PODS)).resource_version
        async with api.admin.watch(PODS, resource_version=version, field_selector="status.phase=Running") as events:
            failed = await api.node.patch(PODS, "p", {"status": {"phase": "Failed"}}, "default", subresource="status")
            event = await anext(events)
        assert event.type == "DELETED"
        assert event.object["status"]["phase"] == "Running"
        assert event.object["metadata"]["resourceVersion"] == failed["metadata"]["resourceVersion"]

    virtual(scenario)


def test_nothing_can_be_created_in_a_terminating_namespace(virtual) -> None:
    async def scenario(api) -> None:
        await api.admin.create(NAMESPACES, {"metadata": {"name": "n"}})
        answer = await api.admin.delete(NAMESPACES, "n")
        assert answer["status"]["phase"] == "Terminating"
        with pytest.raises(StatusError) as caught:
            await api.admin.create(CONFIGMAPS, {"metadata": {"name": "c"}}, "n")
        assert caught.value.code == 403
        assert caught.value.status["details"]["causes"][0]["reason"] == "NamespaceTerminating"
        empty = {**answer, "spec": {"finalizers": []}}
        await api.admin.update(NAMESPACES, empty, subresource="finalize")
        with pytest.raises(StatusError) as caught:
            await api.admin.create(CONFIGMAPS, {"metadata": {"name": "c"}}, "n")
        assert caught.value.message == 'namespaces "n" not found'

    virtual(scenario)


def test_a_status_write_cannot_change_the_spec_nor_a_spec_write_the_status(virtual) -> None:
    async def scenario(api) -> None:
        pod = await running(api)
        changed = {**pod, "spec": {**pod["spec"], "terminationGracePeriodSeconds": 1}, "status": {"phase": "Failed"}}
        answer = await api.node.update(PODS, changed, "default", subresource="status")
        assert answer["spec"] == pod["spec"]
        assert answer["status"]["phase"] == "Failed"
        again = await api.admin.patch(PODS, "p", {"status": {"phase": "Running"}}, "default")
        assert again["status"]["phase"] == "Failed"

    virtual(scenario)


def test_stored_objects_cannot_be_changed_through_what_was_given(virtual) -> None:
    async def scenario(api) -> None:
        given = {"metadata": {"name": "c"}, "data": {"a": "1"}}
        await api.admin.create(CONFIGMAPS, given, "default")
        given["data"]["a"] = "changed"
        patch = {"data": {"b": {"c": "d"}["c"]}, "metadata": {"labels": {"l": "1"}}}
        await api.admin.patch(CONFIGMAPS, "c", patch, "default")
        patch["metadata"]["labels"]["l"] = "changed"
        stored = await api.admin.get(CONFIGMAPS, "c", "default")
        assert stored["data"] == {"a": "1", "b": "d"}
        assert stored["metadata"]["labels"] == {"l": "1"}

    virtual(scenario)


def test_a_replaced_pod_keeps_the_priority_and_the_tolerations_that_admission_gave_it(virtual) -> None:
    async def scenario(api) -> None:
        made = await api.admin.create(PODS, manifest(labels={"a": "b"}), "default")
        sent = deepcopy(made)
        for field in ("priority", "preemptionPolicy", "tolerations"):
            sent["spec"].pop(field)
        sent["metadata"]["labels"] = {"a": "c"}
        written = await api.admin.update(PODS, sent, "default")
        assert written["spec"] == made["spec"]
        assert written["metadata"]["labels"] == {"a": "c"}
        assert written["metadata"]["generation"] == made["metadata"]["generation"]

    virtual(scenario)


def test_who_deletes_what_every_cluster_has_gets_it_back(virtual) -> None:
    async def scenario(api) -> None:
        async with Tasks() as tasks:
            tasks.spawn(api.server.bootstrap_controller.keep(), name="keep")
            before = await api.admin.get(SERVICES, "kubernetes", "default")
            await api.admin.delete(SERVICES, "kubernetes", "default")
            await api.admin.delete(ENDPOINTSLICES, "kubernetes", "default")
            await api.world.clock.sleep(10.5)
            after = await api.admin.get(SERVICES, "kubernetes", "default")
            assert after["metadata"]["uid"] != before["metadata"]["uid"]
            assert after["spec"] == before["spec"]
            slice_ = await api.admin.get(ENDPOINTSLICES, "kubernetes", "default")
            await api.world.clock.sleep(30)
            assert await api.admin.get(SERVICES, "kubernetes", "default") == after
            assert await api.admin.get(ENDPOINTSLICES, "kubernetes", "default") == slice_
            tasks.cancel()

    virtual(scenario)
