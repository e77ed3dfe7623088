"""Kinds whose versions a webhook converts, over real TLS on loopback. What its errors say was recorded on a real
Kubernetes 1.36.2 (conversions.json: UID stands for that of the request or the object)."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from api_server import RunningServer
from waiting import until
from webhook_target import Target, hooked

from lastcall.kube.api.custom.kinds import is_established
from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import CUSTOMRESOURCEDEFINITIONS, NAMESPACES, Resource
from lastcall.kube.apiserver.conversions.conversion import (
    KNOWN_AT_LEAST,
    ConversionNeeded,
    Conversions,
    with_conversion,
)
from lastcall.kube.apiserver.proxying.webhooks import conversion
from lastcall.kube.client.api import APPLY_PATCH

pytestmark = pytest.mark.loopback

Object = dict[str, Any]
RECORDED = json.loads((Path(__file__).parent / "conversions.json").read_text())
GROUP = "me.conv.example.com"
V1 = Resource(GROUP, "v1", "cs", "C", True, subresources=("status",))
V2 = Resource(GROUP, "v2", "cs", "C", True, subresources=("status",))
TEXT = {"type": "string"}


def convert(obj: Object, api_version: str) -> Object:
    """v1 has `hostPort`, v2 has `host` and `port`."""
    made = json.loads(json.dumps(obj))
    made["apiVersion"], spec = api_version, made.get("spec") or {}
    if api_version.endswith("v2") and "hostPort" in spec:
        spec["host"], _, spec["port"] = spec.pop("hostPort").partition(":")
    elif api_version.endswith("v1") and ("host" in spec or "port" in spec):
        spec["hostPort"] = f"{spec.pop('host', '')}:{spec.pop('port', '')}"
    return made


def good(request: Object) -> Object:
    objects = [convert(each, request["desiredAPIVersion"]) for each in request["objects"]]
    response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response}


def target(wrong: Callable[[Object], Any] | None = None) -> Target:
    """A webhook; `wrong` spoils the answers when `spoiled` is set."""

    def answer(request: Object) -> tuple[int, str]:
        review = good(request)
        said = wrong(review) if wrong is not None and made.spoiled else None
        if isinstance(said, int):
            return said, json.dumps(review)
        return 200, said if isinstance(said, str) else json.dumps(review)

    made = Target(answer)
    made.spoiled = False
    return made


def first(review: Object) -> Object:
    found: Object = review["response"]["convertedObjects"][0]
    return found


def put(where: Callable[[Object], Object], **values: Any) -> Callable[[Object], None]:
    return lambda review: where(review).update(values)


def meta(review: Object) -> Object:
    found: Object = first(review)["metadata"]
    return found


def response(review: Object) -> Object:
    found: Object = review["response"]
    return found


WRONG: dict[str, Callable[[Object], Any]] = {
    "name": put(meta, name="other"),
    "uid": put(meta, uid="x"),
    "ns": put(meta, namespace="x"),
    "kind": put(first, kind="Other"),
    "version": put(first, apiVersion="g/v9"),
    "nometa": lambda review: first(review).pop("metadata") and None,
    "metatext": put(first, metadata="x"),
    "badlabels": put(meta, labels={"a b": "c"}),
    "numlabels": put(meta, labels={"a": 1}),
    "listlabels": put(meta, labels=["a"]),
    "badannotations": put(meta, annotations={"a b": "c"}),
    "fewer": put(response, convertedObjects=[]),
    "none": put(response, convertedObjects=None),
    "failure": put(response, result={"status": "Failure", "message": "no way"}),
    "silent": put(response, result={"status": "Failure"}),
    "noresult": lambda review: response(review).pop("result") and None,
    "noresponse": lambda review: review.pop("response") and None,
    "otheruid": put(response, uid="x"),
    "otherkind": lambda review: review.update(kind="AdmissionReview"),
    "otherversion": lambda review: review.update(apiVersion="apiextensions.k8s.io/v1beta1"),
    "text": put(response, convertedObjects=["x"]),
    "500": lambda review: 500,
    "404": lambda review: 404,
    "junk": lambda review: "junk",
    "empty": lambda review: "",
}


def definition(webhook: Target, storage: str = "v1") -> Object:
    def version(name: str, *fields: str) -> Object:
        properties = {"spec": {"type": "object", "properties": dict.fromkeys(fields, TEXT)}}
        properties["status"] = {"type": "object", "properties": {"x": TEXT}}
        return {
            "name": name,
            "served": True,
            "storage": name == storage,
            "subresources": {"status": {}},
            "selectableFields": [{"jsonPath": f".spec.{fields[0]}"}],
            "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
        }

    client = {"url": f"https://127.0.0.1:{webhook.port}/convert", "caBundle": webhook.bundle}
    return {
        "metadata": {"name": f"cs.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "cs", "kind": "C", "listKind": "Clist"},
            "versions": [version("v1", "hostPort"), version("v2", "host", "port")],
            "conversion": {
                "strategy": "Webhook",
                "webhook": {"clientConfig": client, "conversionReviewVersions": ["v2", "v1"]},
            },
        },
    }


@asynccontextmanager
async def converting(webhook: Target) -> AsyncIterator[RunningServer]:
    """A server with the kind, and the objects `a` (of v1) and `b` (of v2)."""
    async with hooked(webhook) as server:
        await server.admin.create(CUSTOMRESOURCEDEFINITIONS, definition(webhook))
        assert is_established(await server.admin.get(CUSTOMRESOURCEDEFINITIONS, f"cs.{GROUP}"))
        for kind, name, spec in ((V1, "a", {"hostPort": "h:1"}), (V2, "b", {"host": "k", "port": "2"})):
            obj = {"apiVersion": kind.api_version, "kind": "C", "metadata": {"name": name}, "spec": spec}
            await server.admin.create(kind, obj, "ns")
        yield server


async def test_objects_are_read_and_written_in_every_version_and_stored_in_one() -> None:
    webhook = target()
    async with converting(webhook) as server:
        api = server.admin
        assert (await api.get(V2, "a", "ns"))["spec"] == {"host": "h", "port": "1"}
        assert (await api.get(V1, "b", "ns"))["spec"] == {"hostPort": "k:2"}
        await api.patch(V2, "a", {"spec": {"port": "9"}}, "ns")
        await api.patch(V2, "a", {"status": {"x": "y"}, "spec": {"port": "no"}}, "ns", subresource="status")
        found = await api.get(V1, "a", "ns")
        assert (found["spec"], found["status"], found["apiVersion"]) == (
            {"hostPort": "h:9"},
            {"x": "y"},
            V1.api_version,
        )
        changed = await api.get(V2, "b", "ns")
        await api.update(V2, {**changed, "spec": {"host": "put", "port": "3"}}, "ns")
        assert (await api.get(V1, "b", "ns"))["spec"] == {"hostPort": "put:3"}
        applied = {"apiVersion": V2.api_version, "kind": "C", "metadata": {"name": "a"}, "spec": {"port": "10"}}
        found = await api.patch(V2, "a", applied, "ns", content_type=APPLY_PATCH, field_manager="m")
        assert found["spec"] == {"host": "h", "port": "10"}
        assert {(each["manager"], each["apiVersion"]) for each in found["metadata"]["managedFields"]} >= {
            ("m", V2.api_version)
        }
        await api.delete(V2, "a", "ns")
        assert [each["metadata"]["name"] for each in (await api.list(V1, "ns")).items] == ["b"]


async def test_a_list_asks_once_for_what_is_of_another_version_and_selects_by_the_fields_of_its_own() -> None:
    webhook = target()
    async with converting(webhook) as server:
        webhook.asked.clear()
        listed = (await server.admin.list(V2, "ns")).items
        assert [each["spec"]["host"] for each in listed] == ["h", "k"]
        assert [[obj["metadata"]["name"] for obj in each["objects"]] for each in webhook.asked] == [["a"]], (
            "b was converted for the answer to its POST"
        )
        webhook.asked.clear()
        assert len((await server.admin.list(V2, "ns")).items) == 2
        assert not webhook.asked, "what was converted is known"
        chosen = (await server.admin.list(V2, "ns", field_selector="spec.host=k")).items
        assert [each["metadata"]["name"] for each in chosen] == ["b"]
        with pytest.raises(StatusError, match=re.escape("field label not supported: spec.host")):
            await server.admin.list(V1, "ns", field_selector="spec.host=k")


async def test_a_watch_tells_what_comes_to_match_and_what_ceases_to_in_its_own_version() -> None:
    async with converting(target()) as server:
        told: list[tuple[str, str, Object]] = []
        version = (await server.admin.list(V2, "ns")).resource_version

        async def follow() -> None:
            async with server.admin.watch(V2, "ns", resource_version=version, field_selector="spec.host=h") as events:
                async for event in events:
                    obj = event.object
                    told.append((event.type, obj["metadata"]["name"], obj["spec"]))

        following = asyncio.create_task(follow())
        try:
            await server.admin.patch(V1, "b", {"spec": {"hostPort": "h:5"}}, "ns")
            await server.admin.patch(V2, "b", {"spec": {"port": "6"}}, "ns")
            await server.admin.patch(V1, "b", {"spec": {"hostPort": "z:6"}}, "ns")
            await until(lambda: len(told) == 3, "three events", said=lambda: told)
        finally:
            following.cancel()
        assert told == [
            ("ADDED", "b", {"host": "h", "port": "5"}),
            ("MODIFIED", "b", {"host": "h", "port": "6"}),
            ("DELETED", "b", {"host": "h", "port": "6"}),
        ]


async def test_what_was_stored_in_another_version_is_converted_when_the_stored_version_changes() -> None:
    webhook = target()
    async with converting(webhook) as server:
        await server.admin.patch(
            CUSTOMRESOURCEDEFINITIONS,
            f"cs.{GROUP}",
            {"spec": {"versions": definition(webhook, "v2")["spec"]["versions"]}},
        )
        found = await server.admin.get(V2, "a", "ns")
        assert (found["apiVersion"], found["spec"]) == (V2.api_version, {"host": "h", "port": "1"})
        await server.admin.patch(V2, "a", {"spec": {"port": "7"}}, "ns")
        assert (await server.admin.get(V1, "a", "ns"))["spec"] == {"hostPort": "h:7"}


async def test_a_webhook_may_change_labels_and_annotations_and_no_other_metadata() -> None:
    def more(review: Object) -> None:
        meta(review).update(labels={"a": "b"}, annotations={"c": "d"}, finalizers=["x/y"], generation=77)

    webhook = target(more)
    async with converting(webhook) as server:
        before = await server.admin.get(V1, "a", "ns")
        webhook.spoiled = True
        found = (await server.admin.get(V2, "a", "ns"))["metadata"]
        assert (found["labels"], found["annotations"]) == ({"a": "b"}, {"c": "d"})
        rest = {key: value for key, value in found.items() if key not in ("labels", "annotations")}
        assert rest == before["metadata"]


@pytest.mark.parametrize("case", WRONG)
async def test_what_is_wrong_with_an_answer_is_said_in_kubernetes_s_words(case: str) -> None:
    webhook = target(WRONG[case])
    async with converting(webhook) as server:
        webhook.spoiled = True
        with pytest.raises(StatusError) as refused:
            await server.admin.get(V2, "a", "ns")
        webhook.spoiled = False
        assert (await server.admin.get(V2, "a", "ns"))["spec"]["host"] == "h", "the next question is asked anew"
    said = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "UID", refused.value.message)
    said = said.replace(f"https://127.0.0.1:{webhook.port}", "https://HOST")
    assert said == RECORDED[case].replace("default !=", "ns !=")
    assert (refused.value.code, refused.value.reason) == (500, "")


async def test_objects_in_another_order_are_refused_and_none_is_torn() -> None:
    def turn(review: Object) -> None:
        review["response"]["convertedObjects"].reverse()

    webhook = target(turn)
    async with converting(webhook) as server:
        made = {"apiVersion": V1.api_version, "kind": "C", "metadata": {"name": "c"}, "spec": {"hostPort": "m:3"}}
        await server.admin.create(V1, made, "ns")
        webhook.spoiled = True
        with pytest.raises(StatusError, match="must have the same name: a != c") as refused:
            await server.admin.list(V2, "ns")
        assert (refused.value.code, refused.value.reason) == (500, "")
        webhook.spoiled = False
        hosts = {each["metadata"]["name"]: each["spec"]["host"] for each in (await server.admin.list(V2, "ns")).items}
        assert hosts == {"a": "h", "b": "k", "c": "m"}


async def test_a_webhook_that_hangs_holds_only_who_asked_for_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "SECONDS", 1)

    class Hanging(Target):
        async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
            if self.spoiled:
                begun.set()
                await released.wait()
            return await super().handle(request)

    begun, released = asyncio.Event(), asyncio.Event()
    plain = target()
    webhook = Hanging(plain.answer)
    async with converting(webhook) as server:
        webhook.spoiled = True
        asked = asyncio.ensure_future(server.admin.get(V2, "a", "ns"))
        await begun.wait()
        assert (await server.admin.get(V1, "a", "ns"))["spec"] == {"hostPort": "h:1"}
        assert [each["metadata"]["name"] for each in (await server.admin.list(NAMESPACES)).items][-1] == "ns"
        with pytest.raises(StatusError, match='/convert\\?timeout=1s": context deadline exceeded') as refused:
            await asked
        assert refused.value.code == 500
        released.set()
        webhook.spoiled = False
        assert (await server.admin.get(V2, "a", "ns"))["spec"]["host"] == "h", "the next question is asked anew"


async def test_a_webhook_that_never_gives_what_is_needed_ends_the_work() -> None:
    async def ask(objects: Any, api_version: str) -> list[Object]:
        return [{**each, "apiVersion": api_version} for each in objects]

    conversions, rounds = Conversions(ask), 0

    async def work() -> None:
        nonlocal rounds
        rounds += 1
        conversions.converted({"apiVersion": "g/v1", "kind": "C", "metadata": {}, "round": rounds}, "g/v2")

    with pytest.raises(StatusError, match="converted into another one each time"):
        await with_conversion(work)
    with pytest.raises(ConversionNeeded):
        conversions.converted({"apiVersion": "g/v1", "kind": "C", "metadata": {}, "round": 0}, "g/v2")


async def test_what_was_converted_is_kept_up_to_a_number_of_bytes() -> None:
    asked: list[int] = []

    async def ask(objects: Any, api_version: str) -> list[Object]:
        asked.append(len(objects))
        return [{**each, "apiVersion": api_version} for each in objects]

    def big(number: int) -> Object:
        return {"apiVersion": "g/v1", "kind": "C", "metadata": {"name": str(number)}, "text": "x" * (1 << 20)}

    conversions = Conversions(ask)
    objects = [big(number) for number in range(KNOWN_AT_LEAST + 10)]
    shown = await conversions.ensure(objects, "g/v2")
    assert [each["metadata"]["name"] for each in shown] == [str(number) for number in range(len(objects))]
    assert {each["apiVersion"] for each in shown} == {"g/v2"}
    assert conversions.converted(objects[-1], "g/v2")["apiVersion"] == "g/v2"
    with pytest.raises(ConversionNeeded):
        conversions.converted(objects[0], "g/v2")
    assert sum(asked) == len(objects) and max(asked) == 3, "four of them are more than 4 MiB"
