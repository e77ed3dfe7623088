"""CustomResourceDefinitions and the objects that they declare, on a server in virtual time."""

import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import CUSTOMRESOURCEDEFINITIONS as CRDS
from lastcall.kube.api.resources import NAMESPACES, Resource
from lastcall.kube.client.api import APPLY_PATCH, STRATEGIC_MERGE_PATCH

WIDGETS = Resource("example.com", "v1", "widgets", "Widget", True)
NEWER = Resource("example.com", "v2", "widgets", "Widget", True)
SCHEMA = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["colour"],
            "properties": {
                "colour": {"type": "string", "enum": ["red", "blue"]},
                "size": {"type": "integer", "minimum": 1, "default": 3},
                "port": {"x-kubernetes-int-or-string": True},
                "parts": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": {"type": "string"}, "count": {"type": "integer"}},
                    },
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "named": {"type": "object", "additionalProperties": {"type": "integer"}},
            },
        },
        "status": {
            "type": "object",
            "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}},
        },
    },
}


def definition(*, subresources=None, versions=("v1",), scope="Namespaced", schema=SCHEMA) -> dict:
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": scope,
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": version == versions[0],
                    "schema": {"openAPIV3Schema": schema},
                    **({"subresources": subresources} if subresources else {}),
                }
                for version in versions
            ],
        },
    }


def widget(name="w", api_version="example.com/v1", **spec) -> dict:
    return {
        "apiVersion": api_version,
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"colour": "red", **spec},
    }


async def refused(call) -> StatusError:
    with pytest.raises(StatusError) as caught:
        await call
    return caught.value


def test_a_definition_is_established_before_its_create_is_answered(virtual) -> None:
    async def scenario(api) -> None:
        assert (await refused(api.admin.list(WIDGETS, "default"))).code == 404
        made = await api.admin.create(CRDS, definition())
        assert made["status"] == {
            "conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"],
        }  # fmt: skip
        assert made["spec"]["names"]["singular"] == "widget"
        assert made["spec"]["names"]["listKind"] == "WidgetList"
        status = (await api.admin.get(CRDS, "widgets.example.com"))["status"]
        assert [(each["type"], each["status"]) for each in status["conditions"]] == [
            ("NamesAccepted", "True"),
            ("Established", "True"),
        ]
        assert status["acceptedNames"] == made["spec"]["names"]
        assert (await api.admin.list(WIDGETS, "default")).items == []

    virtual(scenario)


def test_conditions_that_somebody_takes_away_do_not_come_back_while_the_names_stay(virtual) -> None:
    """As a 1.36.2 answered."""

    async def scenario(api) -> None:
        await api.admin.create(CRDS, definition())
        taken = {"status": {"conditions": []}}
        await api.admin.patch(CRDS, "widgets.example.com", taken, subresource="status")
        assert (await api.admin.get(CRDS, "widgets.example.com"))["status"]["conditions"] == []
        assert (await refused(api.admin.list(WIDGETS, "default"))).code == 404
        more = {"spec": {"names": {"shortNames": ["w"]}}}
        await api.admin.patch(CRDS, "widgets.example.com", more)
        assert len((await api.admin.get(CRDS, "widgets.example.com"))["status"]["conditions"]) == 2

    virtual(scenario)


def test_objects_are_pruned_defaulted_and_counted(virtual) -> None:
    async def scenario(api) -> None:
        await api.admin.create(CRDS, definition())
        given = widget(odd=1, free={"a": {"b": 1}}, named={"x": 1}, port="http", parts=[{"name": "a", "odd": 2}])
        made = await api.admin.create(WIDGETS, given, "default")
        assert made["spec"] == {
            "colour": "red", "free": {"a": {"b": 1}}, "named": {"x": 1}, "port": "http", "parts": [{"name": "a"}],
            "size": 3,
        }  # fmt: skip
        assert made["metadata"]["generation"] == 1
        changed = await api.admin.patch(WIDGETS, "w", {"spec": {"size": 4}}, "default")
        assert changed["metadata"]["generation"] == 2
        labelled = await api.admin.patch(WIDGETS, "w", {"metadata": {"labels": {"a": "b"}}}, "default")
        assert labelled["metadata"]["generation"] == 2

    virtual(scenario)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"size": 0}, "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"),
        ({"size": "x"}, 'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"'),
        ({"colour": "green"}, 'spec.colour: Unsupported value: "green": supported values: "red", "blue"'),
        ({"port": 1.5},
         'spec.port: Invalid value: "number": spec.port in body must be of type integer,string: "number"'),
        ({"parts": [{"count": 1}]}, "spec.parts[0].name: Required value"),
        ({"parts": [{"name": "a"}, {"name": "a"}]}, 'spec.parts[1]: Duplicate value: {"name":"a"}'),
        ({"named": {"x": "y"}},
         'spec.named.x: Invalid value: "string": spec.named.x in body must be of type integer: "string"'),
    ],
)  # fmt: skip
def test_what_the_schema_forbids_is_refused_with_its_path(virtual, spec: dict, words: str) -> None:
    async def scenario(api) -> None:
        await api.admin.create(CRDS, definition())
        error = await refused(api.admin.create(WIDGETS, widget(**spec), "default"))
        assert error.code == 422
        assert error.message == f'Widget.example.com "w" is invalid: {words}'

    virtual(scenario)


def test_an_object_says_what_it_is(virtual) -> None:
    async def scenario(api) -> None:
        await api.admin.create(CRDS, definition())
        error = await refused(api.admin.create(WIDGETS, {**widget(), "apiVersion": ""}, "default"))
        assert error.code == 400
        assert "does not match the expected API version (example.com/v1)" in error.message
        await api.admin.create(WIDGETS, widget(), "default")
        patch = api.admin.patch(WIDGETS, "w", {"spec": {}}, "default", content_type=STRATEGIC_MERGE_PATCH)
        assert (await refused(patch)).code == 415

    virtual(scenario)


def test_status_and_scale_are_written_apart(virtual) -> None:
    async def scenario(api) -> None:
        scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"}
        both = {"status": {}, "scale": {**scale, "labelSelectorPath": ".status.selector"}}
        await api.admin.create(CRDS, definition(subresources=both))
        made = await api.admin.create(WIDGETS, {**widget(), "status": {"replicas": 9}}, "default")
        assert "status" not in made
        written = await api.admin.patch(
            WIDGETS, "w", {"spec": {"size": 8}, "status": {"replicas": 2, "selector": "a=b"}}, "default",
            subresource="status",
        )  # fmt: skip
        assert (written["spec"]["size"], written["status"]["replicas"]) == (3, 2)
        assert written["metadata"]["generation"] == 1
        scaled = await api.admin.patch(WIDGETS, "w", {"spec": {"replicas": 5}}, "default", subresource="scale")
        assert scaled["spec"] == {"replicas": 5}
        assert scaled["status"] == {"replicas": 2, "selector": "a=b"}
        now = await api.admin.get(WIDGETS, "w", "default")
        assert (now["spec"]["size"], now["metadata"]["generation"]) == (5, 2)

    virtual(scenario)


def test_every_served_version_shows_the_same_objects(virtual) -> None:
    async def scenario(api) -> None:
        await api.admin.create(CRDS, definition(versions=("v1", "v2")))
        await api.admin.create(NEWER, widget(api_version="example.com/v2"), "default")
        assert (await api.admin.get(NEWER, "w", "default"))["apiVersion"] == "example.com/v2"
        assert (await api.admin.get(WIDGETS, "w", "default"))["apiVersion"] == "example.com/v1"
        crd = await api.admin.get(CRDS, "widgets.example.com")
        versions = [{**each, "storage": each["name"] == "v2"} for each in crd["spec"]["versions"]]
        changed = await api.admin.patch(CRDS, "widgets.example.com", {"spec": {"versions": versions}})
        assert changed["status"]["storedVersions"] == ["v1", "v2"]
        assert (await api.admin.get(WIDGETS, "w", "default"))["apiVersion"] == "example.com/v1"
        await api.admin.patch(NEWER, "w", {"spec": {"colour": "blue"}}, "default")
        (found,) = (await api.admin.list(WIDGETS, "default")).items
        assert (found["apiVersion"], found["spec"]["colour"]) == ("example.com/v1", "blue")

    virtual(scenario)


def test_an_object_of_a_changed_schema_keeps_what_it_has_until_it_is_written(virtual) -> None:
    async def scenario(api) -> None:
        await api.admin.create(CRDS, definition())
        await api.admin.create(WIDGETS, widget(), "default")
        crd = await api.admin.get(CRDS, "widgets.example.com")
        versions = [{**crd["spec"]["versions"][0], "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": {"type": "object", "properties": {"height": {"type": "number"}}}},
        }}}]  # fmt: skip
        await api.admin.patch(CRDS, "widgets.example.com", {"spec": {"versions": versions}})
        assert (await api.admin.get(WIDGETS, "w", "default"))["spec"] == {"colour": "red", "size": 3}
        written = await api.admin.patch(WIDGETS, "w", {"spec": {"height": 1.5}}, "default")
        assert written["spec"] == {"height": 1.5}

    virtual(scenario)


def test_a_deleted_definition_takes_its_objects_along_and_waits_for_their_finalizers(virtual) -> None:
    async def scenario(api) -> None:
        await api.admin.create(CRDS, definition())
        held = widget("held")
        held["metadata"]["finalizers"] = ["example.com/hold"]
        await api.admin.create(WIDGETS, widget(), "default")
        await api.admin.create(WIDGETS, held, "default")
        marked = await api.admin.delete(CRDS, "widgets.example.com")
        assert marked["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
        assert "deletionGracePeriodSeconds" not in marked["metadata"]
        (left,) = (await api.admin.list(WIDGETS, "default")).items
        assert left["metadata"]["name"] == "held"
        error = await refused(api.admin.create(WIDGETS, widget("late"), "default"))
        assert error.code == 403
        assert "create not allowed while custom resource definition is terminating" in error.message
        await api.admin.patch(WIDGETS, "held", {"metadata": {"finalizers": None}}, "default")
        assert (await refused(api.admin.get(CRDS, "widgets.example.com"))).code == 404
        assert (await refused(api.admin.list(WIDGETS, "default"))).code == 404
        await api.admin.create(CRDS, definition())
        assert (await api.admin.list(WIDGETS, "default")).items == []

    virtual(scenario)


def test_a_watch_goes_on_when_the_definition_changes_and_sees_its_objects_go(virtual) -> None:
    async def scenario(api) -> None:
        await api.admin.create(CRDS, definition(versions=("v1", "v2")))
        made = await api.admin.create(WIDGETS, widget(), "default")
        version = made["metadata"]["resourceVersion"]
        async with api.admin.watch(NEWER, "default", resource_version=version) as events:
            crd = await api.admin.get(CRDS, "widgets.example.com")
            versions = [{**each, "additionalPrinterColumns": []} for each in crd["spec"]["versions"]]
            versions[0]["schema"] = {"openAPIV3Schema": {"type": "object"}}
            await api.admin.patch(CRDS, "widgets.example.com", {"spec": {"versions": versions}})
            await api.admin.patch(WIDGETS, "w", {"metadata": {"labels": {"a": "b"}}}, "default")
            await api.admin.delete(CRDS, "widgets.example.com")
            seen = [await anext(events), await anext(events)]
        assert [event.type for event in seen] == ["MODIFIED", "DELETED"]
        assert {event.object["apiVersion"] for event in seen} == {"example.com/v2"}

    virtual(scenario)


def test_names_that_another_kind_has_are_not_accepted(virtual) -> None:
    async def scenario(api) -> None:
        await api.admin.create(CRDS, definition())
        other = definition()
        other["metadata"]["name"] = "gadgets.example.com"
        other["spec"]["names"] = {"plural": "gadgets", "kind": "Widget"}
        await api.admin.create(CRDS, other)
        conditions = (await api.admin.get(CRDS, "gadgets.example.com"))["status"]["conditions"]
        assert [(each["type"], each["status"], each["reason"]) for each in conditions] == [
            ("NamesAccepted", "False", "ListKindConflict"),
            ("Established", "False", "NotAccepted"),
        ]
        gadgets = Resource("example.com", "v1", "gadgets", "Widget", True)
        assert (await refused(api.admin.list(gadgets, "default"))).code == 404

    virtual(scenario)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"group": "other.org"}, 'metadata.name: Invalid value: "widgets.example.com": must be spec.names.plural+"."'),
        ({"scope": "Galaxy"}, 'spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"'),
        ({"versions": []}, "must have exactly one version marked as storage version"),
        ({"versions": [{"name": "v1", "served": True, "storage": False, "schema": {"openAPIV3Schema": SCHEMA}}]},
         "must have exactly one version marked as storage version"),
        ({"versions": [{"name": "v1", "served": True, "storage": True}]}, "schema.openAPIV3Schema: Required value"),
        ({"versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": {"properties": {}}}}}}]},
         "openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields"),
    ],
)  # fmt: skip
def test_a_wrong_definition_is_refused(virtual, change: dict, words: str) -> None:
    async def scenario(api) -> None:
        wrong = definition()
        wrong["spec"] |= change
        error = await refused(api.admin.create(CRDS, wrong))
        assert error.code == 422
        assert words in error.message

    virtual(scenario)


def test_server_side_apply_knows_the_keys_of_a_schemas_lists(virtual) -> None:
    async def scenario(api) -> None:
        await api.admin.create(CRDS, definition())
        one = widget(parts=[{"name": "a", "count": 1}])
        made = await api.admin.patch(WIDGETS, "w", one, "default", content_type=APPLY_PATCH)
        (entry,) = made["metadata"]["managedFields"]
        assert entry["fieldsV1"]["f:spec"]["f:parts"] == {'k:{"name":"a"}': {".": {}, "f:count": {}, "f:name": {}}}
        await api.admin.patch(WIDGETS, "w", {"spec": {"parts": [*one["spec"]["parts"], {"name": "b"}]}}, "default")
        one["spec"]["parts"] = [{"name": "a", "count": 2}]
        now = await api.admin.patch(WIDGETS, "w", one, "default", content_type=APPLY_PATCH)
        assert now["spec"]["parts"] == [{"name": "a", "count": 2}, {"name": "b"}]

    virtual(scenario)


def test_objects_of_the_whole_cluster_have_no_namespace(virtual) -> None:
    async def scenario(api) -> None:
        await api.admin.create(CRDS, definition(scope="Cluster"))
        everywhere = Resource("example.com", "v1", "widgets", "Widget", False)
        made = await api.admin.create(everywhere, widget())
        assert "namespace" not in made["metadata"]
        assert len((await api.admin.list(everywhere)).items) == 1

    virtual(scenario)


def test_a_definition_of_a_name_like_pods_does_not_touch_pods(virtual) -> None:
    async def scenario(api) -> None:
        own = definition()
        own["metadata"]["name"] = "namespaces.example.com"
        own["spec"]["names"] = {"plural": "namespaces", "kind": "Namespace"}
        await api.admin.create(CRDS, own)
        namespaces = Resource("example.com", "v1", "namespaces", "Namespace", True)
        await api.admin.create(namespaces, {**widget(), "kind": "Namespace"}, "default")
        assert "w" not in [each["metadata"]["name"] for each in (await api.admin.list(NAMESPACES)).items]

    virtual(scenario)


def test_an_object_that_is_read_has_the_defaults_of_today(virtual) -> None:
    async def scenario(api) -> None:
        free = {"type": "object", "properties": {"colour": {"type": "string"}, "size": {"type": "integer"}}}
        made = await api.admin.create(CRDS, definition(schema={"type": "object", "properties": {"spec": free}}))
        await api.admin.create(WIDGETS, widget(), "default")
        assert (await api.admin.get(WIDGETS, "w", "default"))["spec"] == {"colour": "red"}
        now = await api.admin.get(CRDS, made["metadata"]["name"])
        changed = definition()
        changed["metadata"]["resourceVersion"] = now["metadata"]["resourceVersion"]
        await api.admin.update(CRDS, changed)
        assert (await api.admin.get(WIDGETS, "w", "default"))["spec"] == {"colour": "red", "size": 3}
        (listed,) = (await api.admin.list(WIDGETS, "default")).items
        assert listed["spec"]["size"] == 3
        patched = await api.admin.patch(WIDGETS, "w", {"spec": {"port": 1}}, "default")
        assert patched["spec"] == {"colour": "red", "size": 3, "port": 1}

    virtual(scenario)


def test_a_definition_says_how_far_its_deletion_is(virtual) -> None:
    async def scenario(api) -> None:
        def reason(definition: dict) -> str:
            return next(each["reason"] for each in definition["status"]["conditions"] if each["type"] == "Terminating")

        await api.admin.create(CRDS, definition())
        held = widget()
        held["metadata"]["finalizers"] = ["example.com/hold"]
        await api.admin.create(WIDGETS, held, "default")
        await api.admin.delete(CRDS, "widgets.example.com")
        now = await api.admin.get(CRDS, "widgets.example.com")
        assert reason(now) == "InstanceDeletionInProgress"
        await api.admin.patch(WIDGETS, "w", {"metadata": {"finalizers": None}}, "default")
        assert (await refused(api.admin.get(CRDS, "widgets.example.com"))).code == 404

    virtual(scenario)


def test_a_definition_goes_although_its_status_names_a_version_that_it_has_not(virtual):
    async def scenario(api):
        await api.admin.create(CRDS, definition())
        status = {"status": {"storedVersions": ["v0"]}}
        await api.admin.patch(CRDS, "widgets.example.com", status, subresource="status")
        with pytest.raises(StatusError, match=r"missing from spec\.versions"):
            await api.admin.patch(CRDS, "widgets.example.com", {"metadata": {"labels": {"a": "b"}}})
        await api.admin.delete(CRDS, "widgets.example.com")
        with pytest.raises(StatusError, match="not found"):
            await api.admin.get(CRDS, "widgets.example.com")

    virtual(scenario)


def test_no_stored_version_at_all_is_the_version_that_is_stored(virtual):
    async def scenario(api):
        await api.admin.create(CRDS, definition())
        status = {"status": {"storedVersions": []}}
        changed = await api.admin.patch(CRDS, "widgets.example.com", status, subresource="status")
        assert changed["status"]["storedVersions"] == ["v1"]

    virtual(scenario)
