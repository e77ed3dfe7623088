"""managedFields and server-side apply, request by request as a real Kubernetes 1.36.2 answered them."""

import json
from pathlib import Path

import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import NAMESPACES, SERVED, SERVICEACCOUNTS
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.requestinfo import is_true, request_info
from lastcall.kube.apiserver.wire.context import RequestContext

RECORDED = json.loads((Path(__file__).parents[4] / "data" / "managed_fields.json").read_text())
"""Made by tools/take_recordings.py."""
RESOURCES = {(resource.group, resource.version, resource.plural): resource for resource in SERVED}
ADMIN = UserInfo("admin", ("system:masters",))
COMPONENTS = ("kube-controller-manager", "kubelet", "kube-scheduler", "kube-apiserver")


def split(path: str) -> tuple[str, dict[str, str]]:
    path, _, query = path.partition("?")
    return path, dict(part.partition("=")[::2] for part in query.split("&") if part)


async def play(api, step: Object) -> tuple[int, Object]:
    """(status, body) of a recorded write, through the operations that all clients share."""
    path, query = split(step["path"])
    info = request_info(step["method"], path, query)
    resource = RESOURCES[info.group, info.version, info.resource]
    context = RequestContext(
        ADMIN, step["headers"].get("User-Agent", ""), query.get("fieldManager", ""), "dryRun" in query, "Ignore"
    )
    operations, namespace = api.server.operations, info.namespace if resource.namespaced else ""
    body = json.loads(json.dumps(step.get("body")))
    if isinstance(body, dict) and set(body) == {"text"}:
        import yaml

        body = yaml.safe_load(body["text"])
    try:
        if step["method"] == "POST":
            answer = await operations.create(context, resource, body, namespace)
        elif step["method"] == "PUT":
            answer = await operations.update(
                context, resource, body, namespace, info.name, subresource=info.subresource
            )
        elif step["method"] == "PATCH":
            answer = await operations.patch(
                context, resource, body, namespace, info.name, content_type=step["headers"]["Content-Type"],
                subresource=info.subresource, force=is_true(query, "force"),
            )  # fmt: skip
        else:
            answer = await operations.get(resource, namespace, info.name)
    except StatusError as error:
        return error.code, error.status
    return 201 if answer.created else 200, answer.object


def entries(obj: Object) -> list[Object]:
    """managedFields without times and without what controllers did meanwhile."""
    found = [
        {key: value for key, value in entry.items() if key != "time"}
        for entry in obj.get("metadata", {}).get("managedFields") or ()
        if entry.get("manager") not in COMPONENTS
    ]
    return sorted(found, key=lambda entry: json.dumps(entry, sort_keys=True))


@pytest.mark.parametrize("name", ["managed-fields", "server-side-apply"])
def test_a_recorded_sequence_leaves_the_recorded_managers(virtual, name: str) -> None:
    async def scenario(api) -> None:
        await api.admin.create(NAMESPACES, {"metadata": {"name": "api-http"}})
        for number, step in enumerate(RECORDED["sequences"][name]):
            status, body = step["response"]["status"], step["response"]["body"]
            query = split(step["path"])[1]
            kind = step["headers"].get("Content-Type", "")
            no_yaml = isinstance(step.get("body"), dict) and "[unclosed" in step["body"].get("text", "")
            required = "apply" in kind and "fieldManager" not in query
            if status in (405, 415) or no_yaml or required:
                continue  # HTTP's part
            code, answer = await play(api, step)
            assert code == status, (number, step["path"], answer)
            if status >= 400:
                assert answer["message"] == body["message"], number
                assert answer.get("details") == body.get("details"), number
            else:
                assert entries(answer) == entries(body), number
                assert {k: answer.get(k) for k in ("data", "spec")} == {k: body.get(k) for k in ("data", "spec")}

    virtual(scenario)


@pytest.mark.parametrize("step", [pytest.param(step, id=name) for name, step in RECORDED["creations"].items()])
def test_a_recorded_creation_makes_its_client_the_manager_of_the_recorded_fields(virtual, step: Object) -> None:
    path, query = split(step["path"])
    info = request_info("POST", path, query)
    if (info.group, info.version, info.resource) not in RESOURCES:
        pytest.skip("not served")

    async def scenario(api) -> None:
        if info.namespace and info.namespace != "default" and info.resource != "namespaces":
            await api.admin.create(NAMESPACES, {"metadata": {"name": info.namespace}})
            for name in ("default",):
                await api.admin.create(SERVICEACCOUNTS, {"metadata": {"name": name}}, info.namespace)
        code, answer = await play(api, step)
        if code != 201:
            pytest.skip(f"refused here: {answer.get('message')}")
        assert entries(answer) == entries(step["response"]["body"])

    virtual(scenario)
