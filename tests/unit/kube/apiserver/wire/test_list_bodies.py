"""Lists that are made in pieces read like lists that are made at once."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import orjson
import pytest
import yaml

from lastcall.kube.api.resources import CONFIGMAPS, EVENTS, EVENTS_V1, PODS
from lastcall.kube.apiserver.answers.list_bodies import PIECE_BYTES, list_body, list_pieces, stored_list
from lastcall.kube.apiserver.answers.representation import partial_metadata, reformat, table
from lastcall.kube.apiserver.registry.listing import SLICE
from lastcall.kube.apiserver.wire.negotiation import JSON, PROTOBUF, YAML, MediaType
from lastcall.kube.apiserver.wire.options import ListOptions

COUNTS = [0, 1, 2, SLICE, 2 * SLICE + 1]


async def fill(api, count: int, size: int = 10):
    for index in range(count):
        data = {"text": 'line\n"two" \\n' + "x" * size, "other": "üß\u2028"}
        await api.admin.create(CONFIGMAPS, {"metadata": {"name": f"cm-{index:04}"}, "data": data}, "default")
    return await api.server.operations.list(CONFIGMAPS, "default", ListOptions())


@pytest.mark.parametrize("count", COUNTS)
def test_the_plain_form_is_the_stored_objects_without_their_types(virtual: Callable, count: int) -> None:
    async def scenario(api) -> None:
        operations = api.server.operations
        page = await fill(api, count, size=10_000)
        stored = await stored_list(operations, CONFIGMAPS, page)
        pieces = list(stored.pieces)
        body = b"".join(pieces)
        assert len(body) == stored.length
        assert max(map(len, pieces)) < PIECE_BYTES + 20_000
        assert len(pieces) == (1 if count < 3 else -(-count // 26)), "26 of these make a piece"
        items = [operations.decode(CONFIGMAPS, entry.value) for entry in page.entries]
        assert orjson.loads(body) == {
            "kind": "ConfigMapList",
            "apiVersion": "v1",
            "metadata": {"resourceVersion": str(page.revision)},
            "items": [{k: v for k, v in item.items() if k not in ("kind", "apiVersion")} for item in items],
        }
        assert body == await list_body(operations, CONFIGMAPS, page, MediaType(), {})

    virtual(scenario)


def test_a_text_that_ends_with_empty_lines_does_not_end_a_yaml_document(virtual: Callable) -> None:
    async def scenario(api) -> None:
        data = {"a": "\n", "b": "2"}
        await api.admin.create(CONFIGMAPS, {"metadata": {"name": "odd"}, "data": data}, "default")
        page = await api.server.operations.list(CONFIGMAPS, "default", ListOptions())
        body = await list_body(api.server.operations, CONFIGMAPS, page, MediaType(YAML), {})
        assert b"\n..." not in body
        assert yaml.safe_load(body)["items"][0]["data"] == data
        assert b"\n..." not in reformat(b'{"a":{"text":"\\n"}}', MediaType(YAML))

    virtual(scenario)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("media_type", [MediaType(JSON, pretty=True), MediaType(YAML)], ids=["indented", "yaml"])
def test_other_encodings_are_those_of_the_whole(virtual: Callable, media_type: MediaType, count: int) -> None:
    async def scenario(api) -> None:
        page = await fill(api, count)
        plain = await list_body(api.server.operations, CONFIGMAPS, page, MediaType(), {})
        body = await list_body(api.server.operations, CONFIGMAPS, page, media_type, {})
        assert body.decode() == reformat(plain, media_type).decode()

    virtual(scenario)


def test_other_forms_of_large_objects_are_made_in_pieces_too(virtual: Callable) -> None:
    async def scenario(api) -> None:
        operations = api.server.operations
        page = await fill(api, 60, size=10_000)
        pretty = MediaType(JSON, pretty=True)
        pieces = [piece async for piece in list_pieces(operations, CONFIGMAPS, page, pretty, {})]
        assert b"".join(pieces) == await list_body(operations, CONFIGMAPS, page, pretty, {})
        assert max(map(len, pieces)) < PIECE_BYTES + 20_000
        assert len(pieces) == 5, "26 of these make a piece; the beginning and the end"

    virtual(scenario)


@pytest.mark.parametrize("pretty", [False, True])
@pytest.mark.parametrize("count", COUNTS)
def test_a_table_in_slices_is_the_table_of_the_whole(virtual: Callable, count: int, pretty: bool) -> None:
    async def scenario(api) -> None:
        operations = api.server.operations
        page = await fill(api, count)
        media_type = MediaType(JSON, "Table", "v1", pretty)
        body = await list_body(operations, CONFIGMAPS, page, media_type, {})
        objects = [operations.decode(CONFIGMAPS, entry.value) for entry in page.entries]
        meta = {"resourceVersion": str(page.revision)}
        whole = orjson.dumps(table(CONFIGMAPS, objects, media_type, {}, meta, operations.now(), 36))
        assert body == (reformat(whole, media_type) if pretty else whole + b"\n")

    virtual(scenario)


def test_metadata_only_and_the_other_face_of_an_event(virtual: Callable) -> None:
    async def scenario(api) -> None:
        operations = api.server.operations
        page = await fill(api, 3)
        partial = orjson.loads(
            await list_body(operations, CONFIGMAPS, page, MediaType(JSON, "PartialObjectMetadataList"), {})
        )
        assert partial["kind"] == "PartialObjectMetadataList"
        assert [set(item) for item in partial["items"]] == [{"kind", "apiVersion", "metadata"}] * 3
        event = {
            "metadata": {"name": "e"},
            "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
            "reason": "Seen",
            "message": "m",
            "type": "Normal",
        }
        await api.admin.create(EVENTS, event, "default")
        events = await operations.list(EVENTS_V1, "default", ListOptions())
        shown = orjson.loads(await list_body(operations, EVENTS_V1, events, MediaType(), {}))
        assert (shown["kind"], shown["apiVersion"]) == ("EventList", "events.k8s.io/v1")
        assert shown["items"][0]["note"] == "m"
        assert "kind" not in shown["items"][0]

    virtual(scenario)


METADATA = MediaType(JSON, "PartialObjectMetadataList")


@pytest.mark.parametrize(
    ("media_type", "end"),
    [
        (METADATA, b'"items":null}\n'),
        (replace(METADATA, pretty=True), b'"items": null\n}'),
        (replace(METADATA, name=YAML), b"items: null\n"),
        (MediaType(), b'"items":[]}\n'),
    ],
)
def test_a_list_of_metadata_without_items_says_null(virtual: Callable, media_type: MediaType, end: bytes) -> None:
    """As Go writes a list that nothing was appended to (asked of 1.36.2)."""

    async def scenario(api) -> None:
        body = await list_body(api.server.operations, CONFIGMAPS, await fill(api, 0), media_type, {})
        assert end in body
        await list_body(api.server.operations, CONFIGMAPS, await fill(api, 0), replace(media_type, name=PROTOBUF), {})

    virtual(scenario)


def test_the_annotation_of_a_daemonsets_template_generation_is_no_part_of_its_metadata_alone() -> None:
    mine = {"a": "b", "deprecated.daemonset.template.generation": "1"}
    for annotations, left in ((mine, {"annotations": {"a": "b"}}), ({k: v for k, v in mine.items() if k != "a"}, {})):
        obj = {"kind": "DaemonSet", "metadata": {"name": "d", "annotations": annotations}}
        assert partial_metadata(obj, METADATA)["metadata"] == {"name": "d", **left}
        assert obj["metadata"]["annotations"] == annotations


@pytest.mark.parametrize("selector", ["", "spec.nodeName=n1"])
def test_others_get_their_turn_while_a_long_list_is_decoded(virtual: Callable, selector: str) -> None:
    async def scenario(api) -> None:
        operations = api.server.operations
        for index in range(5 * SLICE):
            spec = {"containers": [{"name": "c", "image": "i"}]}
            await api.admin.create(PODS, {"metadata": {"name": f"p-{index}"}, "spec": spec}, "default")
        turns = 0

        async def count_turns() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        other = asyncio.ensure_future(count_turns())
        page = await operations.list(PODS, "default", ListOptions(field_selector=selector))
        if not selector:
            await list_body(operations, PODS, page, MediaType(JSON, "Table", "v1"), {})
        assert turns >= 5
        other.cancel()

    virtual(scenario)


def test_stored_bytes_of_another_kind_are_an_error_and_not_a_broken_list(virtual: Callable) -> None:
    async def scenario(api) -> None:
        page = await fill(api, 2)
        with pytest.raises(ValueError, match="does not begin with its kind"):
            await stored_list(api.server.operations, PODS, page)

    virtual(scenario)
