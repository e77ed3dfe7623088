"""What a write costs, counted: it does not grow with clients and objects that it does not concern."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

import orjson
import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import NODES, PODS, VALIDATINGWEBHOOKCONFIGURATIONS
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.registry.objects import ObjectCache
from lastcall.kube.apiserver.registry.selection import Selection
from lastcall.kube.client.api import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from lastcall.kube.store.memory import MemoryStore
from lastcall.kube.store.value import Value


def pod(name: str) -> dict:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}}


async def bind(api, name: str, node: str) -> None:
    binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
    await api.admin.create(PODS, binding, "default", name=name, subresource="binding")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the objects that a selection was asked about."""
    names: list[str] = []
    matches = Selection.matches

    def counted(selection: Selection, obj: dict) -> bool:
        names.append(obj["metadata"]["name"])
        return matches(selection, obj)

    monkeypatch.setattr(Selection, "matches", counted)
    return names


@pytest.mark.parametrize("nodes", [3, 100])
def test_a_pod_event_concerns_the_watch_of_its_node_only(virtual: Callable, asked: list[str], nodes: int) -> None:
    async def scenario(api) -> None:
        async with AsyncExitStack() as stack:
            watches = {}
            for number in range(nodes):
                selector = f"spec.nodeName=n{number}"
                client = api.server.client(UserInfo(f"system:node:n{number}", ("system:nodes",)))
                # Later, the first event is asked for: a watch begins when it is read.
                watches[number] = await stack.enter_async_context(client.watch(PODS, field_selector=selector))
            readers = {number: asyncio.ensure_future(anext(events)) for number, events in watches.items()}
            await api.world.clock.sleep(0)
            await api.admin.create(PODS, pod("p"), "default")
            await bind(api, "p", "n1")
            event = await readers.pop(1)
            assert (event.type, event.object["spec"]["nodeName"]) == ("ADDED", "n1")
            assert asked == ["p", "p"], "before and after the binding"
            assert not any(reader.done() for reader in readers.values())
            for reader in readers.values():
                reader.cancel()

    virtual(scenario)


@pytest.mark.parametrize("others", [3, 100])
def test_who_asks_for_one_name_passes_over_no_others(virtual: Callable, asked: list[str], others: int) -> None:
    async def scenario(api) -> None:
        for number in range(others):
            await api.admin.create(NODES, {"metadata": {"name": f"n{number}"}})
        found = await api.admin.list(NODES, field_selector="metadata.name=n1")
        assert [node["metadata"]["name"] for node in found.items] == ["n1"]
        version = found.resource_version
        async with api.admin.watch(NODES, field_selector="metadata.name=n1", resource_version=version) as events:
            reader = asyncio.ensure_future(anext(events))
            await api.world.clock.sleep(0)
            watchers = api.server.operations.shared.store._history.watchers
            assert list(watchers._by_prefix) == ["nodes/n1"]
            await api.admin.patch(NODES, "n1", {"metadata": {"labels": {"a": "b"}}})
            assert (await reader).object["metadata"]["labels"] == {"a": "b"}
        assert asked == []

    virtual(scenario)


def test_a_write_lists_no_kind_that_has_no_objects(virtual: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Webhooks, policies, quotas and limits of a namespace are looked for with each write."""
    listed: list[str] = []
    own = MemoryStore.list

    async def counted(store: MemoryStore, prefix: str, **options):
        found = await own(store, prefix, **options)
        listed.append(f"{prefix}: {len(found[0])}")
        return found

    async def scenario(api) -> None:
        monkeypatch.setattr(MemoryStore, "list", counted)
        await api.admin.create(PODS, pod("p"), "default")
        await api.admin.patch(PODS, "p", {"metadata": {"labels": {"a": "b"}}}, "default")
        await api.admin.delete(PODS, "p", "default", grace_period_seconds=0)
        assert [each for each in listed if each.endswith(": 0")] == []
        webhook = {"metadata": {"name": "w"}, "webhooks": []}
        await api.admin.create(VALIDATINGWEBHOOKCONFIGURATIONS, webhook)
        listed.clear()
        await api.admin.create(PODS, pod("q"), "default")
        assert f"{VALIDATINGWEBHOOKCONFIGURATIONS.plural}/: 1" in listed

    virtual(scenario)


def test_a_name_that_begins_like_another_is_another(virtual: Callable) -> None:
    async def scenario(api) -> None:
        for name in ("n10", "n1"):
            await api.admin.create(NODES, {"metadata": {"name": name}})
        assert len((await api.admin.list(NODES, field_selector="metadata.name=n1")).items) == 1
        async with api.admin.watch(NODES, field_selector="metadata.name=n1") as events:
            assert (await anext(events)).object["metadata"]["name"] == "n1"
            await api.admin.delete(NODES, "n10")
            await api.admin.delete(NODES, "n1")
            assert (await anext(events)).object["metadata"]["name"] == "n1"

    virtual(scenario)


def test_an_object_that_somebody_has_is_not_decoded_again() -> None:
    cache = ObjectCache(size=4)
    values = [Value(orjson.dumps({"number": number})) for number in range(100)]
    held = cache.decode(values[0])
    for value in values:
        cache.decode(value)
    assert cache.decode(values[0]) is held
    still = [number for number, value in enumerate(values) if value.decoded() is not None]
    assert still == [0, 96, 97, 98, 99], "the last four, and the one that is held"
    del held
    cache.decode(values[1])
    assert values[0].decoded() is None


def test_decoded_objects_that_nobody_has_are_bounded_in_bytes() -> None:
    cache = ObjectCache(size=1000, size_bytes=100_000)
    values = [Value(orjson.dumps({"number": number, "text": "x" * 10_000})) for number in range(100)]
    for value in values:
        cache.decode(value)
    still = [number for number, value in enumerate(values) if value.decoded() is not None]
    assert still == list(range(91, 100))


def test_what_is_written_and_read_in_one_process_is_not_encoded(virtual: Callable) -> None:
    async def scenario(api) -> None:
        stored = api.server.operations.shared.store._entries
        await api.admin.create(PODS, pod("p"), "default")
        created = stored["pods/default/p"].revision
        status = {"metadata": {}, "status": {"phase": "Running"}}
        async with api.admin.watch(PODS, "default", resource_version=str(created)) as events:
            answer = await api.admin.patch(PODS, "p", status, "default", subresource="status")
            assert (await anext(events)).object is answer
        value = stored["pods/default/p"].value
        assert value.object is answer
        assert value.object is await api.admin.get(PODS, "p", "default")
        assert value.encoded() == await api.server.operations.get_bytes(PODS, "default", "p")
        assert orjson.loads(value.encoded()) == answer

    virtual(scenario)


def test_the_size_of_every_ninth_version_is_known(virtual: Callable) -> None:
    async def scenario(api) -> None:
        stored = api.server.operations.shared.store._entries
        await api.admin.create(PODS, pod("p"), "default")
        sizes = []
        for number in range(20):
            patch = {"metadata": {"annotations": {"a": "x" * 100 * number}}}
            await api.admin.patch(PODS, "p", patch, "default")
            sizes.append(stored["pods/default/p"].value.size)
        assert len(set(sizes)) == 3
        assert sizes[8] == len(stored["pods/default/p"].value.encoded()) - 100 * 11
        assert sizes[:8] == sizes[:1] * 8 and sizes[8:17] == sizes[8:9] * 9

    virtual(scenario)


@pytest.mark.parametrize("content_type", [MERGE_PATCH, STRATEGIC_MERGE_PATCH])
def test_a_patch_of_the_status_leaves_the_spec_the_same_object(virtual: Callable, content_type: str) -> None:
    async def scenario(api) -> None:
        await api.admin.create(PODS, pod("p"), "default")
        before = await api.admin.get(PODS, "p", "default")
        text = orjson.dumps(before)
        patch = {"metadata": {"annotations": {"a": "b"}}, "status": {"phase": "Running", "podIP": "10.0.0.1"}}
        await api.admin.patch(PODS, "p", patch, "default", content_type=content_type, subresource="status")
        after = await api.admin.get(PODS, "p", "default")
        assert after["spec"] is before["spec"]
        assert after["status"]["podIP"] == "10.0.0.1"
        patch["status"]["phase"] = "changed by the caller"
        assert orjson.dumps(before) == text
        assert after["status"]["phase"] == "Running"

    virtual(scenario)


def test_what_a_patch_brings_is_checked_although_the_rest_is_known(virtual: Callable) -> None:
    async def scenario(api) -> None:
        await api.admin.create(PODS, pod("p"), "default")
        with pytest.raises(StatusError) as refused:
            await api.admin.patch(PODS, "p", {"status": {"phase": 7}}, "default", subresource="status")
        assert refused.value.code == 422
        patch = {"status": {"phase": "Running", "nonsense": 1, "podIPs": []}}
        await api.admin.patch(PODS, "p", patch, "default", subresource="status")
        status = (await api.admin.get(PODS, "p", "default"))["status"]
        assert status["phase"] == "Running" and "nonsense" not in status and "podIPs" not in status

    virtual(scenario)


def test_deleting_changes_no_object_that_was_handed_out(virtual: Callable) -> None:
    async def scenario(api) -> None:
        await api.admin.create(PODS, pod("p"), "default")
        unbound = await api.admin.get(PODS, "p", "default")
        await bind(api, "p", "n1")
        bound = await api.admin.get(PODS, "p", "default")
        texts = [orjson.dumps(each) for each in (unbound, bound)]
        await api.admin.delete(PODS, "p", "default")
        marked = await api.admin.get(PODS, "p", "default")
        await api.node.delete(PODS, "p", "default", grace_period_seconds=0)
        assert [orjson.dumps(each) for each in (unbound, bound)] == texts
        assert "nodeName" not in unbound["spec"] and "deletionTimestamp" not in bound["metadata"]
        assert marked["metadata"]["deletionGracePeriodSeconds"] == 30

    virtual(scenario)


def test_a_status_that_is_put_changes_nothing_else_and_what_it_says_is_checked(virtual: Callable) -> None:
    async def scenario(api) -> None:
        await api.admin.create(PODS, pod("p"), "default")
        before = await api.admin.get(PODS, "p", "default")
        labels = {**before["metadata"], "labels": {"a": "b"}}
        given = {**before, "metadata": labels, "spec": {"nonsense": 1}, "status": {"phase": "Running", "podIPs": []}}
        text = orjson.dumps(given)
        after = await api.admin.update(PODS, given, "default", subresource="status")
        assert orjson.dumps(given) == text
        assert after["spec"] is before["spec"] and after["metadata"]["labels"] == {"a": "b"}
        assert after["status"] == {"phase": "Running", "qosClass": before["status"]["qosClass"]}
        with pytest.raises(StatusError) as refused:
            await api.admin.update(PODS, {**after, "status": {"phase": 7}}, "default", subresource="status")
        assert refused.value.code == 400
        with pytest.raises(StatusError) as refused:
            await api.admin.update(PODS, given, "default", subresource="status")
        assert refused.value.code == 409
        without = await api.admin.update(PODS, {"metadata": {"name": "p"}}, "default", subresource="status")
        assert "phase" not in without["status"]
        with pytest.raises(StatusError) as refused:
            await api.admin.update(PODS, {"metadata": {"name": "none"}}, "default", subresource="status")
        assert refused.value.code == 404

    virtual(scenario)
