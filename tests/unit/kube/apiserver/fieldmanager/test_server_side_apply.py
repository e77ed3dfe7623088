"""What a write and an apply do to the managers of fields: pure functions on objects."""

import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import CONFIGMAPS, DEPLOYMENTS, PERSISTENTVOLUMES, PODS, SERVICEACCOUNTS, SERVICES
from lastcall.kube.apiserver.fieldmanager.compare import compare
from lastcall.kube.apiserver.fieldmanager.fields import path_text, paths
from lastcall.kube.apiserver.fieldmanager.manager import LAST_APPLIED, Conflicts, Scope, applied, updated
from lastcall.kube.apiserver.fieldmanager.managers import ANCIENT_CHANGES, Manager, capped, decoded, sent
from lastcall.kube.apiserver.fieldmanager.merge import merged
from lastcall.kube.apiserver.fieldmanager.requests import Tracking
from lastcall.kube.apiserver.fieldmanager.reset_fields import reset_fields
from lastcall.kube.apiserver.fieldmanager.resource_types import empty_object, type_of
from lastcall.kube.apiserver.fieldmanager.validate import problems
from lastcall.kube.client.api import APPLY_PATCH

T1, T2 = "2030-01-01T00:00:01Z", "2030-01-01T00:00:02Z"
UID = "u"


def scope(resource, subresource=""):
    def view(obj, version):
        return (resource, obj) if version == resource.api_version else None

    return Scope(resource, view, subresource, lambda version: reset_fields(resource, subresource))


def obj(resource, **rest):
    return {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": {"name": "x"}, **rest}


def fields(entry) -> list[str]:
    return [path_text(path) for path in paths(entry["fieldsV1"])]


def by_name(entries) -> dict[str, list[str]]:
    return {entry["manager"]: fields(entry) for entry in entries}


def config(**data):
    return obj(CONFIGMAPS, data=data)


def none(resource):
    return {"kind": resource.kind, "apiVersion": resource.api_version}


# -- updates -------------------------------------------------------------------------------------------------------


def test_who_changes_a_field_manages_it_and_who_managed_it_does_no_more():
    entries = updated(scope(CONFIGMAPS), [], None, config(a="1", b="1"), "one", T1)
    assert by_name(entries) == {"one": [".data", ".data.a", ".data.b"]}
    entries = updated(scope(CONFIGMAPS), entries, config(a="1", b="1"), config(a="2", b="1"), "two", T2)
    assert by_name(entries) == {"one": [".data", ".data.b"], "two": [".data.a"]}
    assert [entry["time"] for entry in entries] == [T1, T2]


def test_a_field_that_goes_is_managed_by_nobody_and_who_manages_nothing_is_not_listed():
    entries = updated(scope(CONFIGMAPS), [], None, config(a="1"), "one", T1)
    entries = updated(scope(CONFIGMAPS), entries, config(a="1"), config(a="1", b="2"), "two", T1)
    assert list(by_name(entries)) == ["one", "two"]
    entries = updated(scope(CONFIGMAPS), entries, config(a="1", b="2"), config(a="1"), "three", T2)
    assert by_name(entries) == {"one": [".data", ".data.a"]}


def test_a_write_that_changes_nothing_leaves_the_very_same_entries():
    entries = updated(scope(CONFIGMAPS), [], None, config(a="1"), "one", T1)
    assert updated(scope(CONFIGMAPS), entries, config(a="1"), config(a="1"), "two", T2) is entries


def test_an_object_that_nobody_manages_stays_so_until_it_is_applied():
    assert updated(scope(CONFIGMAPS), [], config(a="1"), config(a="2"), "one", T1) == []
    live, entries = applied(scope(CONFIGMAPS), [], config(a="1"), config(b="2"), "two", T2, force=False)
    assert live["data"] == {"a": "1", "b": "2"}
    assert by_name(entries) == {"two": [".data.b"], "before-first-apply": [".data", ".data.a"]}


def test_status_belongs_to_who_writes_status_and_spec_to_who_writes_spec():
    pod = obj(PODS, spec={"nodeName": "n"}, status={"phase": "Pending"})
    entries = updated(scope(PODS), [], None, pod, "user", T1)
    assert by_name(entries) == {"user": [".spec.nodeName"]}
    running = obj(PODS, spec={"nodeName": "other"}, status={"phase": "Running"})
    entries = updated(scope(PODS, "status"), entries, pod, running, "kubelet", T2)
    assert by_name(entries) == {"user": [".spec.nodeName"], "kubelet": [".status.phase"]}
    assert entries[1]["subresource"] == "status"


def test_items_of_a_list_with_keys_are_managed_one_by_one():
    old = obj(PODS, spec={}, status={"conditions": [{"type": "Ready", "status": "False"}]})
    new = obj(PODS, spec={}, status={"conditions": [
        {"type": "Ready", "status": "True"}, {"type": "Initialized", "status": "True", "lastProbeTime": None},
    ]})  # fmt: skip
    changed, removed = compare(type_of(PODS), old, new)
    assert [path_text(path) for path in paths(changed)] == [
        '.status.conditions[type="Initialized"]',
        '.status.conditions[type="Initialized"].lastProbeTime',
        '.status.conditions[type="Initialized"].status',
        '.status.conditions[type="Initialized"].type',
        '.status.conditions[type="Ready"].status',
    ]
    assert removed == {}


def test_a_struct_that_go_always_has_is_not_added_but_what_is_in_it_is():
    assert empty_object(DEPLOYMENTS)["spec"]["template"] == {"metadata": {}, "spec": {"containers": None}}
    old = obj(DEPLOYMENTS, spec={"template": {"spec": {}}})
    new = obj(DEPLOYMENTS, spec={"template": {"metadata": {"labels": {"a": "b"}}, "spec": {}}})
    changed, _ = compare(type_of(DEPLOYMENTS), old, new)
    assert [path_text(path) for path in paths(changed)] == [
        ".spec.template.metadata.labels", ".spec.template.metadata.labels.a",
    ]  # fmt: skip


def test_more_than_ten_managers_are_put_together_oldest_first():
    entries = [
        Manager(f"m{n:02}", "Update", "v1").entry({f"f:{n}": {}}, f"2030-01-01T00:00:{n:02}Z") for n in range(13)
    ]
    left = capped(entries)
    assert len(left) == 10
    ancient = next(entry for entry in left if entry["manager"] == ANCIENT_CHANGES)
    assert fields(ancient) == [".0", ".1", ".2", ".3"]
    assert ancient["time"] == "2030-01-01T00:00:03Z"


def test_entries_of_a_client_are_taken_when_they_can_be_read_and_forgotten_when_it_asks_for_it():
    good = [Manager("m", "Update", "v1").entry({"f:data": {}}, T1)]
    stored = [Manager("s", "Update", "v1").entry({"f:data": {}}, T1)]
    assert decoded([{"manager": "z"}]) is None, "it says nothing of what it manages"
    assert decoded([{**good[0], "apiVersion": ""}]) is None, "it does not say in which version"
    assert decoded([{**good[0], "fieldsV1": {}}]) == [], "a manager of nothing is not listed"
    assert decoded([*good, *stored, *good]) == [*good, *stored], "once each"
    for given, expected in ((None, stored), (good, good), ([{"manager": "z"}], stored), ([], []), ([{}], [])):
        new = {"metadata": {} if given is None else {"managedFields": given}}
        assert sent(new, stored, subresource=False) == expected
        assert sent(new, stored, subresource=True) == stored, "a subresource takes nobody's word"


# -- apply ---------------------------------------------------------------------------------------------------------


def test_a_field_that_is_applied_no_longer_goes_unless_somebody_else_manages_it():
    what = scope(CONFIGMAPS)
    live, entries = applied(what, [], none(CONFIGMAPS), config(a="1", b="1", c="1"), "one", T1, force=False)
    live, entries = applied(what, entries, live, config(b="1"), "two", T1, force=False)
    new = {**live, "data": {**live["data"], "u": "1"}}
    entries, live = updated(what, entries, live, new, "three", T1), new
    live, entries = applied(what, entries, live, config(a="1"), "one", T2, force=False)
    assert live["data"] == {"a": "1", "b": "1", "u": "1"}
    assert by_name(entries) == {"two": [".data.b"], "one": [".data.a"], "three": [".data.u"]}


def test_an_applied_value_that_somebody_else_manages_is_a_conflict_unless_it_is_the_same():
    what = scope(CONFIGMAPS)
    live, entries = applied(what, [], none(CONFIGMAPS), config(a="1", b="1"), "one", T1, force=False)
    with pytest.raises(Conflicts) as refused:
        applied(what, entries, live, config(a="2", b="1"), "two", T2, force=False)
    assert [(entry["manager"], path_text(path)) for entry, path in refused.value.conflicts] == [("one", ".data.a")]
    live, shared = applied(what, entries, live, config(a="1"), "two", T2, force=False)
    assert by_name(shared) == {"one": [".data.a", ".data.b"], "two": [".data.a"]}
    assert "time" not in shared[0], "who changed nothing has no time"
    live, forced = applied(what, entries, live, config(a="2"), "two", T2, force=True)
    assert live["data"] == {"a": "2", "b": "1"}
    assert by_name(forced) == {"one": [".data.b"], "two": [".data.a"]}


def test_applying_the_same_again_changes_neither_object_nor_entries():
    what = scope(DEPLOYMENTS)
    container = {"name": "main", "image": "quick:1", "ports": [{"containerPort": 80}]}
    manifest = obj(DEPLOYMENTS, spec={"template": {"spec": {"containers": [container]}}})
    live, entries = applied(what, [], none(DEPLOYMENTS), manifest, "one", T1, force=False)
    again, same = applied(what, entries, live, manifest, "one", T2, force=False)
    assert again is live
    assert same == entries
    assert '.spec.template.spec.containers[name="main"].ports[containerPort=80,protocol="TCP"]' in fields(same[0])


def test_an_item_that_is_applied_no_longer_goes_with_all_it_has_of_this_manager():
    what = scope(SERVICES)

    def service(*ports):
        return obj(SERVICES, spec={"ports": [{"port": port, "name": f"p{port}"} for port in ports]})

    live, entries = applied(what, [], none(SERVICES), service(80, 443), "one", T1, force=False)
    live, entries = applied(what, entries, live, service(443), "one", T2, force=False)
    assert live["spec"]["ports"] == [{"port": 443, "name": "p443"}]
    live, entries = applied(what, entries, live, obj(SERVICES), "one", T2, force=False)
    assert not (live.get("spec") or {}).get("ports")
    assert entries == []


def test_a_list_keeps_the_order_of_the_manifest_and_the_places_of_what_others_added():
    type_ = type_of(SERVICES)

    def ports(*numbers):
        return {"spec": {"ports": [{"port": number, "protocol": "TCP"} for number in numbers]}}

    def order(live, config):
        return [port["port"] for port in merged(type_, ports(*live), ports(*config))["spec"]["ports"]]

    assert order((1, 2, 3), (3, 1)) == [2, 3, 1]
    assert order((1, 9, 2), (1, 2)) == [1, 9, 2]
    assert order((1,), (2, 1)) == [2, 1]
    assert order((), (2, 1)) == [2, 1]


def test_kubectl_takes_over_what_client_side_apply_wrote_but_not_what_others_changed_since():
    what = scope(CONFIGMAPS)
    annotation = '{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"1","b":"1"},"metadata":{"name":"x"}}\n'

    def live_with(**data):
        return {**config(**data), "metadata": {"name": "x", "uid": UID, "annotations": {LAST_APPLIED: annotation}}}

    live = live_with(a="1", b="1")
    entries = updated(what, [], None, live, "kubectl-client-side-apply", T1)
    new, after = applied(what, entries, live, config(a="2", b="1"), "kubectl", T2, force=False)
    assert new["data"] == {"a": "2", "b": "1"}
    assert new["metadata"]["annotations"][LAST_APPLIED] == (
        '{"apiVersion":"v1","data":{"a":"2","b":"1"},"kind":"ConfigMap","metadata":{"name":"x"}}\n'
    )
    assert by_name(after)["kubectl"] == [".data.a", ".data.b"]
    changed = live_with(a="9", b="1")
    entries = updated(what, entries, live, changed, "somebody", T1)
    with pytest.raises(Conflicts) as refused:
        applied(what, entries, changed, config(a="2", b="1"), "kubectl", T2, force=False)
    assert [path_text(path) for _, path in refused.value.conflicts] == [".data.a"]
    with pytest.raises(Conflicts):
        applied(what, entries, live, config(a="2"), "argo", T2, force=False)


def test_nothing_that_is_given_is_changed():
    what = scope(CONFIGMAPS)
    live, entries = applied(what, [], none(CONFIGMAPS), config(a="1", b="1"), "one", T1, force=False)
    manifest = config(b="2")
    before = repr((live, entries, manifest))
    applied(what, entries, live, manifest, "one", T2, force=True)
    updated(what, entries, live, config(z="1"), "two", T2)
    assert repr((live, entries, manifest)) == before


@pytest.mark.parametrize(
    ("resource", "manifest", "words"),
    [
        (CONFIGMAPS, {"bogus": 1}, ".bogus: field not declared in schema"),
        (CONFIGMAPS, {"data": {"a": 1}}, ".data.a: expected string, got &value.valueUnstructured{Value:1}"),
        (CONFIGMAPS, {"data": []}, ".data: expected map, got &{[]}"),
        (DEPLOYMENTS, {"spec": {"replicas": "3"}}, ".spec.replicas: expected numeric (int or float), got string"),
        (DEPLOYMENTS, {"spec": {"paused": "no"}}, ".spec.paused: expected boolean, got &{no}"),
        (SERVICES, {"spec": {"ports": {}}}, ".spec.ports: expected list, got &{map[]}"),
        (
            SERVICES,
            {"spec": {"ports": [{"port": 80}, {"port": 80, "protocol": "TCP"}]}},
            '.spec.ports: duplicate entries for key [port=80,protocol="TCP"]',
        ),
    ],
)
def test_what_does_not_fit_the_schema_is_refused_with_its_path(resource, manifest, words: str):
    assert problems(type_of(resource), {**obj(resource), **manifest}) == [words]


def test_a_stored_item_without_its_keys_refuses_an_apply_as_kubernetes_does():
    live = obj(SERVICEACCOUNTS, secrets=[{}]) | {"metadata": {"name": "robot", "namespace": "fuzz"}}
    tracking = Tracking(scope(SERVICEACCOUNTS), Manager("me", "Apply", "v1"), lambda: T1)
    with pytest.raises(StatusError) as refused:
        tracking.apply(obj(SERVICEACCOUNTS, secrets=[{"name": "x"}]), live, force=False)
    assert (refused.value.code, refused.value.message) == (
        500,
        "failed to create manager for existing fields: failed to convert new object (fuzz/robot; /v1, "
        "Kind=ServiceAccount) to smd typed: .secrets: element 0: associative list with keys has an element that omits "
        'all key fields ["name"] (and doesn\'t have default values for any key fields)',
    )


CONTEXTS = (
    ({"runAsUser": 1}, {}, {}),
    ({"runAsUser": 1, "capabilities": {"add": ["X"]}}, {"capabilities": {}}, {"capabilities": {}}),
    ({"seLinuxOptions": {"user": "a"}}, {"seLinuxOptions": {}}, {"seLinuxOptions": {}}),
    ({"seLinuxOptions": {"user": "a"}, "runAsUser": 1}, {"runAsUser": 1}, {"runAsUser": 1}),
    ({"runAsUser": 1}, None, None),
)
"""The securityContext of a container as it was applied, as it is applied next, and what a real 1.36.2 has then."""


def deployment(context):
    container = {"name": "c", "image": "x", **({} if context is None else {"securityContext": context})}
    return obj(DEPLOYMENTS, spec={"template": {"spec": {"containers": [container]}}})


@pytest.mark.parametrize(("first", "second", "expected"), CONTEXTS)
def test_a_struct_that_is_applied_empty_stays_when_its_fields_go(first, second, expected):
    live, entries = applied(scope(DEPLOYMENTS), [], none(DEPLOYMENTS), deployment(first), "one", T1, force=False)
    live, entries = applied(scope(DEPLOYMENTS), entries, live, deployment(second), "one", T2, force=False)
    assert live["spec"]["template"]["spec"]["containers"][0].get("securityContext") == expected


def test_what_holds_only_an_empty_list_is_not_applied():
    entries = applied(scope(PODS), [], none(PODS), obj(PODS, spec={"imagePullSecrets": []}), "one", T1, force=False)[1]
    assert by_name(entries) == {}


def test_the_parts_of_a_volumes_claim_reference_have_managers_of_their_own(virtual):
    """`granular` at the field goes before `atomic` of its type (as 1.36.2 answers)."""

    async def scenario(api) -> None:
        csi = {"driver": "d.example.com", "volumeHandle": "h"}
        spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "csi": csi}
        spec["claimRef"] = {"namespace": "n", "name": "c"}
        made = await api.admin.create(PERSISTENTVOLUMES, {"metadata": {"name": "v"}, "spec": spec})
        (entry,) = made["metadata"]["managedFields"]
        assert entry["fieldsV1"]["f:spec"]["f:claimRef"] == {".": {}, "f:name": {}, "f:namespace": {}}
        patched = await api.admin.patch(PERSISTENTVOLUMES, "v", {"spec": {"claimRef": {"uid": "u"}}})
        mine = patched["metadata"]["managedFields"][-1]["fieldsV1"]["f:spec"]["f:claimRef"]
        assert "f:uid" in mine

    virtual(scenario)


@pytest.mark.parametrize("metadata", [{"metadata": None}, {"metadata": {}}, {}])
def test_an_apply_without_metadata_changes_what_is_there_and_makes_nothing_without_a_name(virtual, metadata) -> None:
    """(as 1.36.2 answers)"""

    async def scenario(api) -> None:
        config = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}, **metadata}

        async def apply():
            return await api.admin.patch(
                CONFIGMAPS, "x", config, "default", content_type=APPLY_PATCH, field_manager="a"
            )

        with pytest.raises(
            StatusError, match=r"\(x based on URL\) was undeterminable: name must be provided"
        ) as refused:
            await apply()
        assert refused.value.code == 400
        await api.admin.create(CONFIGMAPS, {"metadata": {"name": "x"}}, "default")
        assert (await apply())["data"] == {"a": "b"}

    virtual(scenario)
