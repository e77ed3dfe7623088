"""Writes that admission webhooks are asked about, over real TLS on loopback. What a webhook's answers mean was recorded
on a real Kubernetes 1.36.2 (answers.json: UID stands for that of the request)."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from api_server import RunningServer
from webhook_target import ADDRESS, RULE, Target, hooked

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import (
    CONFIGMAPS,
    DEPLOYMENTS,
    ENDPOINTSLICES,
    MUTATINGWEBHOOKCONFIGURATIONS,
    NAMESPACES,
    PODS,
    SERVICEACCOUNTS,
    SERVICES,
    VALIDATINGWEBHOOKCONFIGURATIONS,
    Resource,
)
from lastcall.kube.apiserver.auth.pki import ClusterCA

pytestmark = pytest.mark.loopback

RECORDED = json.loads((Path(__file__).parent / "answers.json").read_text())
Object = dict[str, Any]


def says(**response: Any) -> Callable[[Object], tuple[int, str]]:
    patch = response.pop("patch", None)
    if patch is not None:
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}

    def answer(request: Object) -> tuple[int, str]:
        told = {"uid": request["uid"], "allowed": True, **response}
        return 200, json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": told})

    return answer


async def install(server: RunningServer, *hooks: Object, kind: str = "Validating", name: str = "w") -> Resource:
    resource = VALIDATINGWEBHOOKCONFIGURATIONS if kind == "Validating" else MUTATINGWEBHOOKCONFIGURATIONS
    await server.admin.create(resource, {"metadata": {"name": name}, "webhooks": list(hooks)})
    return resource


def config_map(name: str = "c") -> Object:
    return {"metadata": {"name": name}, "data": {"a": "1"}}


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda each: each["case"])
async def test_what_a_webhook_answers_means_what_it_means_to_a_real_server(recorded: Object) -> None:
    target = Target(lambda request: (recorded["answers"], recorded["body"].replace('"UID"', f'"{request["uid"]}"')))
    async with hooked(target) as server:
        await install(server, target.hook(), kind=recorded["case"].partition("/")[0])
        if "result" in recorded:
            made = await server.admin.create(CONFIGMAPS, config_map(), "ns")
            assert {"data": made["data"], "name": made["metadata"]["name"]} == recorded["result"]
            return
        with pytest.raises(StatusError) as refused:
            await server.admin.create(CONFIGMAPS, config_map(), "ns")
        told = refused.value
        assert told.message.replace(target.asked[0]["uid"], "UID") == recorded["message"]
        assert (told.code, told.status.get("reason")) == (recorded["code"], recorded["reason"])
        if "details" in recorded:
            assert told.status["details"] == recorded["details"]


async def test_a_webhook_is_told_of_each_operation_and_of_what_it_is_about() -> None:
    target = Target(says())
    async with hooked(target) as server:
        await install(server, target.hook())
        admin = server.admin
        made = await admin.create(CONFIGMAPS, config_map(), "ns")
        await admin.update(CONFIGMAPS, {**made, "data": {"a": "2"}}, "ns")
        await admin.delete(CONFIGMAPS, "c", "ns")
        created, updated, deleted = target.asked
        assert created["requestKind"] == created["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
        assert created["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
        assert (created["operation"], created["name"], created["namespace"]) == ("CREATE", "c", "ns")
        assert created["object"]["data"] == {"a": "1"}
        assert created["oldObject"] is None
        assert created["options"] == {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}
        assert (updated["object"]["data"], updated["oldObject"]["data"]) == ({"a": "2"}, {"a": "1"})
        assert deleted["object"] is None
        assert deleted["oldObject"]["data"] == {"a": "2"}
        assert deleted["options"]["kind"] == "DeleteOptions"


async def test_only_what_the_selectors_and_rules_name_is_asked_about() -> None:
    target = Target(says(allowed=False))
    async with hooked(target) as server:
        admin = server.admin
        await admin.create(NAMESPACES, {"metadata": {"name": "other"}})
        rule = {**RULE, "resources": ["configmaps"], "operations": ["CREATE"]}
        selector = {"matchExpressions": [{"key": "free", "operator": "DoesNotExist"}]}
        await install(server, target.hook(rules=[rule], objectSelector=selector))
        await admin.create(CONFIGMAPS, config_map(), "other")
        free = config_map("free")
        free["metadata"]["labels"] = {"free": "yes"}
        await admin.create(CONFIGMAPS, free, "ns")
        await admin.create(SERVICES, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}, "ns")
        assert target.asked == []
        with pytest.raises(StatusError, match="denied the request"):
            await admin.create(CONFIGMAPS, config_map(), "ns")


async def test_webhooks_change_an_object_in_turn_and_those_before_a_change_may_look_again() -> None:
    def answer(request: Object) -> tuple[int, str]:
        seen = request["object"]["data"].get("seen", "")
        patch = [{"op": "add", "path": "/data/seen", "value": seen + str(len(seen))}]
        return says(patch=patch if len(seen) < 3 else [])(request)

    target = Target(answer)
    async with hooked(target) as server:
        again = {"reinvocationPolicy": "IfNeeded"}
        rule = [{**RULE, "resources": ["configmaps"]}]
        hooks = [target.hook(f"{name}.example.com", f"/{name}", rules=rule, **again) for name in ("a", "b")]
        await install(server, *hooks, kind="Mutating")
        made = await server.admin.create(CONFIGMAPS, config_map(), "ns")
        assert target.paths == ["/a", "/b", "/a", "/b"], "each looks again, once, at what came after it"
        assert made["data"] == {"a": "1", "seen": "012"}


async def test_a_changed_pod_gets_defaults_and_what_the_rest_of_admission_gives() -> None:
    container = {"name": "added", "image": "quick:1"}
    target = Target(says(patch=[{"op": "add", "path": "/spec/initContainers", "value": [container]}]))
    async with hooked(target) as server:
        await install(server, target.hook(rules=[{**RULE, "resources": ["pods"]}]), kind="Mutating")
        await server.admin.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, "ns")
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "quick:1"}]}}
        made = await server.admin.create(PODS, pod, "ns")
        (added,) = made["spec"]["initContainers"]
        assert added["terminationMessagePolicy"] == "File"
        assert [mount["mountPath"] for mount in added["volumeMounts"]] == [
            "/var/run/secrets/kubernetes.io/serviceaccount"
        ]


async def test_a_webhook_behind_a_service_is_reached_through_a_ready_endpoint() -> None:
    target = Target(says(allowed=False, status={"message": "no"}))
    async with hooked(target) as server:
        service = {"metadata": {"name": "hook"}, "spec": {"ports": [{"port": 443, "targetPort": 8443}]}}
        await server.admin.create(SERVICES, service, "ns")
        client = {"service": {"namespace": "ns", "name": "hook", "path": "/p"}, "caBundle": target.bundle}
        rule = [{**RULE, "resources": ["configmaps"]}]
        await install(server, target.hook(clientConfig=client, rules=rule))
        with pytest.raises(StatusError, match="connection refused"):
            await server.admin.create(CONFIGMAPS, config_map(), "ns")
        slice_ = {
            "metadata": {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}},
            "addressType": "IPv4",
            "ports": [{"name": "", "port": 8443, "protocol": "TCP"}],
            "endpoints": [{"addresses": [ADDRESS], "conditions": {"ready": True}}],
        }
        await server.admin.create(ENDPOINTSLICES, slice_, "ns")
        with pytest.raises(StatusError, match="denied the request: no"):
            await server.admin.create(CONFIGMAPS, config_map(), "ns")
        assert target.paths == ["/p"]


async def test_a_webhook_that_cannot_be_asked_refuses_or_is_ignored() -> None:
    target = Target(says())
    async with hooked(target) as server:
        rule = [{**RULE, "resources": ["configmaps"]}]
        nowhere = {"url": "https://127.0.0.1:1/x", "caBundle": target.bundle}
        await install(server, target.hook(clientConfig=nowhere, rules=rule, failurePolicy="Ignore"))
        await server.admin.create(CONFIGMAPS, config_map(), "ns")
        stranger = base64.b64encode(ClusterCA.create().certificate_pem).decode()
        client = {"url": f"https://127.0.0.1:{target.port}/", "caBundle": stranger}
        resource = await install(server, target.hook(clientConfig=client, rules=rule), name="second")
        with pytest.raises(StatusError, match="x509: certificate signed by unknown authority"):
            await server.admin.create(CONFIGMAPS, config_map("d"), "ns")
        await server.admin.delete(resource, "second")
        await server.admin.create(CONFIGMAPS, config_map("d"), "ns")


async def test_nobody_is_asked_about_the_configurations_themselves() -> None:
    target = Target(says(allowed=False))
    async with hooked(target) as server:
        resource = await install(server, target.hook(namespaceSelector={}))
        await install(server, target.hook(namespaceSelector={}), kind="Mutating")
        await server.admin.delete(resource, "w")
        assert target.asked == []


async def test_a_scale_is_shown_as_one_and_may_be_changed() -> None:
    target = Target(says(patch=[{"op": "replace", "path": "/spec/replicas", "value": 3}]))
    async with hooked(target) as server:
        labels = {"a": "b"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "quick:1"}]}}
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        await server.admin.create(DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": spec}, "ns")
        rule = [{**RULE, "resources": ["deployments/scale"]}]
        await install(server, target.hook(rules=rule), kind="Mutating")
        await server.admin.patch(DEPLOYMENTS, "d", {"spec": {"replicas": 2}}, "ns", subresource="scale")
        (asked,) = target.asked
        assert (asked["subResource"], asked["kind"]["kind"]) == ("scale", "Scale")
        assert (asked["object"]["spec"], asked["oldObject"]["spec"]) == ({"replicas": 2}, {"replicas": 1})
        assert (await server.admin.get(DEPLOYMENTS, "d", "ns"))["spec"]["replicas"] == 3


@pytest.mark.parametrize(
    ("response", "told"),
    [
        ('{"uid": "UID", "allowed": "yes"}', "cannot unmarshal string"),
        ('{"uid": "UID", "allowed": true, "warnings": 5}', "cannot unmarshal number"),
        ('{"uid": "UID", "allowed": true, "warnings": "abc"}', "cannot unmarshal string"),
        ('{"uid": "UID", "allowed": true, "warnings": [7]}', "cannot unmarshal"),
        ('{"uid": "UID", "allowed": true, "patch": 1, "patchType": "JSONPatch"}', "cannot unmarshal number"),
        (
            '{"uid": "UID", "allowed": true, "patch": "W3t9XQ==", "patchType": "Foo"}',
            "unsupported patch type",
        ),
        ('{"uid": "UID", "allowed": true, "patch": "WzFd", "patchType": "JSONPatch"}', "undecodable patch"),
        ("[" * 200_000, "failed to call webhook"),
        ("5", "webhook response was absent"),
    ],
)
async def test_an_answer_of_a_hostile_webhook_is_a_failed_call(response: str, told: str) -> None:
    def answer(request: Object) -> tuple[int, str]:
        whole = '{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": ' + response + "}"
        return 200, whole.replace("UID", request["uid"])

    target = Target(answer)
    async with hooked(target) as server:
        await install(server, target.hook(), kind="Mutating")
        with pytest.raises(StatusError) as refused:
            await server.admin.create(CONFIGMAPS, config_map(), "ns")
        assert refused.value.code == 500
        assert told in refused.value.message


async def test_a_deletion_cannot_be_changed() -> None:
    target = Target(says(patch=[{"op": "remove", "path": "/data"}]))
    async with hooked(target) as server:
        await server.admin.create(CONFIGMAPS, config_map(), "ns")
        await install(server, target.hook(), kind="Mutating")
        with pytest.raises(StatusError, match="attempted to modify the object"):
            await server.admin.delete(CONFIGMAPS, "c", "ns")
