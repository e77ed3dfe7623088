"""CustomResourceDefinitions and their objects with the kubectl on PATH and Debian's 1.20."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from api_server import running_server
from kubectls import CURRENT, DEBIAN, Kubectl

DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    additionalPrinterColumns:
    - {name: Colour, type: string, jsonPath: .spec.colour}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {colour: {type: string}, size: {type: integer, minimum: 1}}
          status: {type: object, properties: {size: {type: integer}}}
"""
WIDGET = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {colour: %s, size: %s}\n"


@pytest.fixture(params=[CURRENT, DEBIAN])
async def kubectl(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Kubectl]:
    config = tmp_path / "config"
    async with running_server() as running:
        config.write_text(running.kubeconfig)
        yield Kubectl(request.param, str(config), str(tmp_path))


async def test_a_kind_is_declared_used_and_taken_away(kubectl: Kubectl) -> None:
    async def k(*arguments: str, stdin: str = "", status: int = 0) -> str:
        return await asyncio.to_thread(kubectl, *arguments, stdin=stdin, status=status)

    name, widget = "customresourcedefinition.apiextensions.k8s.io/widgets.example.com", "widget.example.com/w"
    assert await k("get", "crd") == ""
    assert await k("apply", "-f", "-", stdin=DEFINITION) == f"{name} created\n"
    waited = await k("wait", "crd/widgets.example.com", "--for=condition=Established", "--timeout=60s")
    assert waited == f"{name} condition met\n"
    assert await k("apply", "-f", "-", stdin=WIDGET % ("red", 2)) == f"{widget} created\n"
    assert [line.split() for line in (await k("get", "widgets")).splitlines()] == [["NAME", "COLOUR"], ["w", "red"]]
    assert await k("get", "wd", "w", "-o", "jsonpath={.spec.colour}") == "red"
    explained = await k("explain", "widget.spec")
    assert "colour\t<string>" in explained
    err = await k("apply", "-f", "-", stdin=WIDGET % ("red", 0), status=1)
    text = "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"
    assert err == f'The Widget "w" is invalid: {text}\n'
    err = await k("apply", "-f", "-", stdin=(WIDGET % ("red", 2)).replace("size", "sise"), status=1)
    assert "unknown field" in err
    assert "sise" in err
    assert await k("apply", "-f", "-", stdin=WIDGET % ("blue", 2)) == f"{widget} configured\n"
    err = await k("patch", "widget", "w", "-p", '{"spec":{"size":3}}', status=1)
    assert "accepted media types include: application/json-patch+json, application/merge-patch+json" in err
    assert await k("patch", "widget", "w", "--type=merge", "-p", '{"spec":{"size":3}}') == f"{widget} patched\n"
    assert await k("scale", "widget/w", "--replicas=5") == f"{widget} scaled\n"
    shown = json.loads(await k("get", "widgets", "-o", "json"))["items"][0]
    assert (shown["kind"], shown["apiVersion"], shown["spec"]["size"]) == ("Widget", "example.com/v1", 5)
    kind, _, own = name.partition("/")
    assert await k("delete", "crd", own) == f'{kind} "{own}" deleted\n'
    assert "the server could not find the requested resource" in await k("get", "widgets", status=1)
