"""What admission makes of an object's name, namespace and kind, as a real Kubernetes 1.36.2 answered (moved.json).

The webhook is a function: nothing is sent.
"""

import base64
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from extreme_values import BASES

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import (
    CONFIGMAPS,
    CUSTOMRESOURCEDEFINITIONS,
    DEPLOYMENTS,
    MUTATINGADMISSIONPOLICIES,
    MUTATINGADMISSIONPOLICYBINDINGS,
    MUTATINGWEBHOOKCONFIGURATIONS,
    NAMESPACES,
    PODS,
    SERVICEACCOUNTS,
    STORAGECLASSES,
    Resource,
)
from lastcall.kube.apiserver.proxying.webhooks.caller import Caller
from lastcall.kube.client.api import APPLY_PATCH, Client

Object = dict[str, Any]
RECORDED = json.loads((Path(__file__).parent / "moved.json").read_text())
OPERATIONS = list(dict.fromkeys(each["case"].partition("/")[0] for each in RECORDED))

OTHER_WORDS = {
    # Go reads a ConfigMap as a Secret there, and says what is no base64 in it.
    "create/kind", "update/kind", "patch/kind", "apply/kind", "apply-new/kind", "generate/kind",
    # What a declared kind is, is checked as for a body.
    "custom/metadata-list", "custom/kind", "custom/kind-removed", "custom/apiVersion-removed", "custom/root-empty",
    "custom-update/metadata-list", "custom-update/kind", "custom-update/kind-removed",
    "custom-update/apiVersion-removed", "custom-update/root-empty",
}  # fmt: skip
"""Refused by both, with other words."""
OTHER_ANSWERS = {
    "apply-new/name": "Kubernetes keeps the object under the name of the URL, where no request can read it",
    "generate/name-removed": "webhooks see the name that was generated, and it is generated again",
    "evict/namespace": "another namespace is refused, as in a body",
    "evict/kind-removed": "the first eviction deletes the Pod in Kubernetes",
    "evict/apiVersion-removed": "the same",
    "evict/uid": "the same",
}


@pytest.fixture
def patch(monkeypatch: pytest.MonkeyPatch) -> list[Object]:
    """The patch with which the webhook answers."""
    operations: list[Object] = []

    async def call(self: Caller, spec: Object, body: bytes) -> bytes:
        response = {"uid": json.loads(body)["request"]["uid"], "allowed": True}
        if operations:
            encoded = base64.b64encode(json.dumps(operations).encode()).decode()
            response |= {"patchType": "JSONPatch", "patch": encoded}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        return json.dumps(review).encode()

    monkeypatch.setattr(Caller, "call", call)
    return operations


def named(resource: Resource, name: str) -> Object:
    return {**BASES[resource], "metadata": {"name": name, "labels": {"app": "x"}}}


async def install(admin: Client) -> None:
    """A webhook for everything, and what the requests are about."""
    await admin.create(NAMESPACES, {"metadata": {"name": "ns"}})
    await admin.create(NAMESPACES, {"metadata": {"name": "other"}})
    await admin.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, "ns")
    await admin.create(CONFIGMAPS, {"metadata": {"name": "there"}, "data": {"a": "1"}}, "ns")
    await admin.create(DEPLOYMENTS, named(DEPLOYMENTS, "there"), "ns")
    await admin.create(PODS, named(PODS, "p"), "ns")
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": ["*/*"]}
    hook = {
        "name": "h.example.com",
        "clientConfig": {"url": "https://192.0.2.1/"},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    await admin.create(MUTATINGWEBHOOKCONFIGURATIONS, {"metadata": {"name": "w"}, "webhooks": [hook]})


async def thing(admin: Client, server: Any) -> Resource:
    names = {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "e.com", "scope": "Namespaced", "names": names, "versions": [version]}
    await admin.create(CUSTOMRESOURCEDEFINITIONS, {"metadata": {"name": "things.e.com"}, "spec": spec})
    found = server.storage.declared.resource("e.com", "v1", "things")
    await admin.create(found, {**HEAD, "metadata": {"name": "there"}}, "ns")
    assert isinstance(found, Resource)
    return found


HEAD = {"apiVersion": "e.com/v1", "kind": "Thing"}


def requests(admin: Client, things: Resource | None) -> dict[str, Callable[[], Awaitable[Object]]]:
    data = {"data": {"a": "2"}}
    new = {"metadata": {"name": "c"}, **data}
    applied = {"apiVersion": "v1", "kind": "ConfigMap", **data}
    as_apply = {"content_type": APPLY_PATCH, "field_manager": "me"}
    scale = {"metadata": {"name": "there", "namespace": "ns"}, "spec": {"replicas": 2}}
    named = {"metadata": {"name": "p", "namespace": "ns"}}
    token = {"metadata": {"name": "default", "namespace": "ns"}, "spec": {}}
    status = {"status": {"observedGeneration": 1}}
    found: dict[str, Callable[[], Awaitable[Object]]] = {
        "create": lambda: admin.create(CONFIGMAPS, new, "ns"),
        "generate": lambda: admin.create(CONFIGMAPS, {"metadata": {"generateName": "g-"}}, "ns"),
        "update": lambda: admin.update(CONFIGMAPS, {"metadata": {"name": "there"}, **data}, "ns"),
        "patch": lambda: admin.patch(CONFIGMAPS, "there", data, "ns"),
        "apply": lambda: admin.patch(CONFIGMAPS, "there", {**applied, "metadata": {"name": "there"}}, "ns", **as_apply),
        "apply-new": lambda: admin.patch(CONFIGMAPS, "c", {**applied, "metadata": {"name": "c"}}, "ns", **as_apply),
        "status": lambda: admin.patch(DEPLOYMENTS, "there", status, "ns", subresource="status"),
        "scale": lambda: admin.update(DEPLOYMENTS, scale, "ns", subresource="scale"),
        "cluster": lambda: admin.create(STORAGECLASSES, {"metadata": {"name": "c"}, "provisioner": "x"}),
        "evict": lambda: admin.create(PODS, named, "ns", name="p", subresource="eviction"),
        "token": lambda: admin.create(SERVICEACCOUNTS, token, "ns", name="default", subresource="token"),
    }
    if things is not None:
        found["custom"] = lambda: admin.create(things, {**HEAD, "metadata": {"name": "c"}}, "ns")
        found["custom-update"] = lambda: admin.patch(things, "there", {"spec": {"a": 1}}, "ns")
    return found


async def stored(api: Any) -> list[tuple[str, str]]:
    """(key, what the object itself says) of everything in the store that is not where it says."""
    entries, _, _ = await api.server.storage.store.list("")
    wrong = []
    for entry in entries:
        meta = entry.value.parsed()["metadata"]
        own = f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"]
        if entry.key.partition("/")[2] != own:
            wrong.append((entry.key, own))
    return wrong


@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_patch_of_a_webhook_moves_an_object_and_the_answers_are_those_of_a_real_server(
    operation: str, virtual: Callable[..., None], patch: list[Object]
) -> None:
    async def scenario(api: Any) -> None:
        await install(api.admin)
        things = await thing(api.admin, api.server) if operation.startswith("custom") else None
        request = requests(api.admin, things)[operation]
        wrong: list[tuple[str, Any, Any]] = []
        for recorded in (each for each in RECORDED if each["case"].partition("/")[0] == operation):
            case = recorded["case"]
            patch[:] = recorded["patch"]
            code, answer = await outcome(request)
            patch.clear()
            assert await stored(api) == [], case
            for resource in (CONFIGMAPS, STORAGECLASSES, *([things] if things else ())):
                for name in ("c", "moved"):
                    with suppress(StatusError):
                        await api.admin.delete(resource, name, "ns" if resource.namespaced else "")
            ours, real = (code, answer), (recorded["code"], recorded.get("message") or recorded["result"])
            if code < 400:
                ours, real = (200, answer), (real[0] // 100 * 100, real[1])
            if case in OTHER_WORDS:
                ours, real = (code >= 400, ""), (real[0] >= 400, "")
            if case not in OTHER_ANSWERS and _same(ours) != _same(real):
                wrong.append((case, ours, real))
        assert not wrong, "\n".join(f"{case}:\n  {ours}\n  {real}" for case, ours, real in wrong)

    virtual(scenario)


async def outcome(request: Callable[[], Awaitable[Object]]) -> tuple[int, Any]:
    """(code, the message of an error or name and namespace of what was written); 200 is any success."""
    try:
        made = await request()
    except StatusError as error:
        return error.code, error.message
    meta = made.get("metadata", {})
    name, namespace = meta.get("name"), meta.get("namespace")
    return 200, {"name": "g-" if name and name.startswith("g-") else name, "namespace": namespace}


def _same(answer: tuple[int, Any]) -> tuple[int, Any]:
    """Uids differ."""
    code, text = answer
    return (code, text.rpartition(" ")[0]) if isinstance(text, str) and "UID" in text else answer


@pytest.mark.parametrize("resource", BASES, ids=lambda each: each.plural)
def test_whatever_a_webhook_removes_of_any_kind_is_answered_and_nothing_torn_is_stored(
    resource: Resource, virtual: Callable[..., None], patch: list[Object]
) -> None:
    async def scenario(api: Any) -> None:
        await install(api.admin)
        namespace = "default" if resource.namespaced else ""
        name = "foos.ex.com" if resource is CUSTOMRESOURCEDEFINITIONS else "c"
        made = await api.admin.create(resource, named(resource, name), namespace)
        parts = [f"/{key}" for key in made] + [f"/metadata/{key}" for key in made["metadata"]] + ["/spec/x"]
        for part in parts:
            for change in ({"op": "remove"}, {"op": "add", "value": None}, {"op": "add", "value": {}}):
                patch[:] = [{**change, "path": part}]
                for write in (
                    lambda: api.admin.create(resource, named(resource, "d"), namespace),
                    lambda: api.admin.patch(resource, name, {"metadata": {"labels": {"a": "b"}}}, namespace),
                ):
                    await outcome(write)  # anything but a StatusError fails
                    assert await stored(api) == [], (change, part)
                patch.clear()
                with suppress(StatusError):
                    await api.admin.delete(resource, "d", namespace)

    virtual(scenario)


def test_an_apply_that_creates_keeps_the_name_of_its_url(virtual: Callable[..., None], patch: list[Object]) -> None:
    async def scenario(api: Any) -> None:
        await install(api.admin)
        patch[:] = [{"op": "replace", "path": "/metadata/name", "value": "moved"}]
        with pytest.raises(StatusError) as refused:
            await requests(api.admin, None)["apply-new"]()
        assert refused.value.code == 400
        assert refused.value.message == "the name of the object (moved) does not match the name on the URL (c)"
        assert [each["metadata"]["name"] for each in (await api.admin.list(CONFIGMAPS, "ns")).items] == ["there"]

    virtual(scenario)


@pytest.mark.parametrize("operation", ["create", "update", "patch", "apply", "apply-new"])
def test_no_policy_moves_an_object_to_another_namespace(operation: str, virtual: Callable[..., None]) -> None:
    async def scenario(api: Any) -> None:
        await install(api.admin)
        await api.admin.delete(MUTATINGWEBHOOKCONFIGURATIONS, "w")
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
        expression = '[JSONPatch{op: "replace", path: "/metadata/namespace", value: "other"}]'
        spec = {
            "matchConstraints": {"resourceRules": [rule]},
            "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
        }
        await api.admin.create(MUTATINGADMISSIONPOLICIES, {"metadata": {"name": "m"}, "spec": spec})
        bound = {"metadata": {"name": "m"}, "spec": {"policyName": "m"}}
        await api.admin.create(MUTATINGADMISSIONPOLICYBINDINGS, bound)
        with pytest.raises(StatusError) as refused:
            await requests(api.admin, None)[operation]()
        expected = "the namespace of the provided object does not match the namespace sent on the request"
        assert (refused.value.code, refused.value.message) == (400, expected)
        assert await stored(api) == []

    virtual(scenario)
