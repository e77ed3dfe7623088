"""What the API server reads: JSON, YAML and protobuf bodies, patches, Host headers, rows of the store."""

import asyncio
import json
import tempfile
from pathlib import Path
from random import Random

import orjson
from harness import Target, changed_bytes, json_change, json_value, texts

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object
from lastcall.kube.api.patch.apply import apply_json_patch, merge_patch, strategic_merge_patch
from lastcall.kube.api.protobuf.decoding import decode_envelope
from lastcall.kube.api.protobuf.encoding import encode_envelope
from lastcall.kube.api.resources import CONFIGMAPS, DEPLOYMENTS, JOBS, NODES, PODS, SERVICES, Resource
from lastcall.kube.api.schema.checks import DecodeError, check_fields
from lastcall.kube.api.schema.pruning import prune
from lastcall.kube.api.text.go_json import complaint, loads
from lastcall.kube.api.text.go_yaml import YAMLError, decode
from lastcall.kube.api.text.json_bounds import MAX_DEPTH, check_bounds
from lastcall.kube.store.api import StoreError
from lastcall.kube.store.open import open_store
from lastcall.kube.store.value import Value
from lastcall.kube.streaming.hosts import host_name
from lastcall.world.world import World

POD = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {
        "name": "p",
        "namespace": "n",
        "labels": {"a": "b"},
        "creationTimestamp": "2020-01-01T00:00:00Z",
        "managedFields": [{"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
                           "time": "2020-01-01T00:00:00Z", "fieldsV1": {"f:spec": {"f:nodeName": {}}}}],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": True}],
    },
    "spec": {
        "terminationGracePeriodSeconds": 30,
        "containers": [
            {
                "name": "c",
                "image": "i",
                "command": ["a", "b"],
                "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "spec.x"}}}],
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}},
                "readinessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 1},
            }
        ],
        "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 300}],
        "volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}],
    },
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True",
                                                   "lastTransitionTime": "2020-01-01T00:00:00Z"}]},
}  # fmt: skip
OBJECTS = (
    POD,
    {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "c"}, "data": {"a": "b"}, "binaryData": {"x": "aGk="}},
    {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "d", "annotations": {"x": "y"}},
     "spec": {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "strategy": {"rollingUpdate": {"maxSurge": "25%"}},
              "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD["spec"]}}},
    {"kind": "Service", "apiVersion": "v1", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80, "targetPort": 8080}]}},
    {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}, "status": {"capacity": {"cpu": "2"}}},
    {"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "j"}, "spec": {"template": {"spec": POD["spec"]}}},
    {"kind": "ControllerRevision", "apiVersion": "apps/v1", "metadata": {"name": "r"}, "revision": 1, "data": {"a": [1]}},
    {"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", "metadata": {"name": "x.y"},
     "spec": {"group": "y", "names": {"plural": "x", "kind": "X"}, "scope": "Namespaced", "versions": [
         {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
             "type": "object", "properties": {"a": {"type": "array", "items": {"type": "string", "default": "b"}}}}}}]}},
)  # fmt: skip
KINDS = {each.kind: each for each in (PODS, CONFIGMAPS, DEPLOYMENTS, SERVICES, NODES, JOBS)}


def _json(data: bytes) -> bool:
    try:
        value = loads(data)
    except ValueError:
        for _ in complaint(data):
            pass
        raise
    check_bounds(value)
    orjson.dumps(value)
    resource = KINDS.get(value.get("kind")) if isinstance(value, dict) and isinstance(value.get("kind"), str) else None
    if resource is not None:
        _as_object(resource, value)
    return True


def _as_object(resource: Resource, value: Object) -> None:
    """What fits its kind can be written in both encodings; that it does not is an answer, too."""
    try:
        check_fields(resource, value)
    except DecodeError:
        return
    prune(resource, value)
    orjson.dumps(value)
    encode_envelope({**value, "apiVersion": resource.api_version, "kind": resource.kind})


JSON_BODIES = Target("json", lambda: texts(*OBJECTS), _json, (ValueError,))


_YAML = b"""\
apiVersion: v1
kind: ConfigMap
metadata: &m {name: a, labels: {x: "y", 1: 2}}
data:
  a: |
    text
  b: >-
    folded
  c: 'it''s'
  d: "\\u00e9\\n"
  e: !!binary aGk=
base: &base {f: 0x1F, g: 1e3, h: ~}
more: {<<: [*base, *m], i: *m}
list:
- 1
- [yes, .5, 2001-01-01]
- ? key
  : value
...
"""


def _yaml(data: bytes) -> bool:
    problems: list[str] = []
    value = decode(data, problems)
    check_bounds(value)
    assert all(isinstance(problem, str) for problem in problems)
    assert orjson.loads(orjson.dumps(value)) == value
    return True


def _make_yaml(random: Random, seeds: list[bytes]) -> bytes:
    """Another value in another style, with anchors and aliases."""
    if random.random() < 0.2:
        return changed_lines(random, random.choice(seeds))
    text = _written(random, json_value(random, seeds), 0, flow=False)
    if random.random() < 0.5:
        anchored, used = random.choice(
            (
                ("1", "*a"),
                ("[1, 2]", "[*a, *a]"),
                ("{b: c}", "{<<: *a, b: d}"),
                ("{b: c}", "{<<: [*a, *a]}"),
                ("[&c d, *c]", "*c"),
            )
        )
        text = f"x: &a {anchored}\ny: {used}\nz: {text}"
    return text.encode("utf-8", "surrogatepass")


def _written(random: Random, value: object, depth: int, *, flow: bool) -> str:
    """In block style, or in flow style from here on."""
    flow = flow or depth > 40 or random.random() < 0.3
    if isinstance(value, dict) and value:
        pairs = [f"{_quoted(key)}: {_written(random, item, depth + 1, flow=flow)}" for key, item in value.items()]
        pad = "\n" + " " * depth
        return "{" + ", ".join(pairs) + "}" if flow else pad + pad.join(pairs)
    if isinstance(value, list) and value:
        return "[" + ", ".join(_written(random, item, depth + 1, flow=True) for item in value) + "]"
    if isinstance(value, str) and value.isalnum() and value.isascii() and random.random() < 0.5:
        return value
    return _quoted(value)


def _quoted(value: object) -> str:
    """YAML does not know halves of surrogate pairs."""
    return json.dumps(value, ensure_ascii=False)


def changed_lines(random: Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(lines) or 1)
        kind = random.randrange(3)
        if kind == 0:
            del lines[at : at + 1]
        elif kind == 1:
            lines[at:at] = lines[at : at + random.randint(1, 3)]
        else:
            random.shuffle(lines[at : at + 3])
    return b"".join(lines)


YAML_BODIES = Target("yaml", lambda: [_YAML, *texts(*OBJECTS)], _yaml, (YAMLError,), _make_yaml)


def _protobuf(data: bytes) -> bool:
    value = decode_envelope(data)
    check_bounds(value)
    resource = KINDS.get(value.get("kind", ""))
    if resource is not None and value.get("apiVersion") == resource.api_version:
        _as_object(resource, value)
    orjson.dumps(value)
    return True


def _make_protobuf(random: Random, seeds: list[bytes]) -> bytes:
    """A message of an object with other values of the same types, or with bytes of one string changed."""
    value = json.loads(json.dumps(random.choice(OBJECTS)))
    for _ in range(random.randint(1, 4)):
        _same_type(random, value)
    return encode_envelope(value)


def _same_type(random: Random, value: object) -> None:
    at: object = value
    while isinstance(at, dict | list) and at:
        key = random.choice(list(at) if isinstance(at, dict) else range(len(at)))
        child = at[key]
        if isinstance(child, bool):
            at[key] = not child
        elif isinstance(child, int):
            at[key] = random.choice((0, 1, -1, 2**31 - 1, -(2**31)))
        elif isinstance(child, str) and key not in ("kind", "apiVersion") and not _is_shaped(child):
            at[key] = random.choice(("", "x" * 1000, "é", "\0", child))
        elif isinstance(child, list) and random.random() < 0.2:
            at[key] = child * random.choice((0, 2, 100))
        at = child


def _is_shaped(text: str) -> bool:
    """Times, quantities and base64, whose encoders take nothing else."""
    return text[:1].isdigit() or text.endswith("=")


PROTOBUF = Target(
    "protobuf", lambda: [encode_envelope(each) for each in OBJECTS], _protobuf, (ValueError,), _make_protobuf
)


_PATCHES = (
    [{"op": "add", "path": "/metadata/labels/x", "value": "y"}, {"op": "test", "path": "/kind", "value": "Pod"}],
    [{"op": "copy", "from": "/spec", "path": "/x"}, {"op": "move", "from": "/x/containers/0", "path": "/y"}],
    [
        {"op": "remove", "path": "/spec/containers/-1/env/0"},
        {"op": "replace", "path": "/spec/tolerations", "value": []},
    ],
    {
        "spec": {
            "containers": [{"name": "c", "image": "j", "env": [{"name": "A", "$patch": "delete"}]}],
            "volumes": None,
        }
    },
    {
        "metadata": {"labels": {"a": None}},
        "spec": {"$retainKeys": ["containers"], "$setElementOrder/containers": [{"name": "c"}]},
    },
)


def _patch(data: bytes) -> bool:
    patch = loads(data)
    before = orjson.dumps(POD)
    for apply in (apply_json_patch, merge_patch, lambda doc, change: strategic_merge_patch(PODS, doc, change)):
        try:
            result = apply(POD, patch)
        except StatusError:
            continue
        check_bounds(result, MAX_DEPTH + 12)
        orjson.dumps(result)
    assert orjson.dumps(POD) == before
    return True


PATCHES = Target("patches", lambda: texts(*_PATCHES), _patch, (ValueError,))


def _host(data: bytes) -> bool:
    name = host_name(data.decode("latin-1"))
    assert name is None or not set(name) & set("\r\n /@\0")
    return name is not None


def _make_host(random: Random, seeds: list[bytes]) -> bytes:
    host = random.choice((b"localhost", b"[::1]", b"127.0.0.1", b"kubernetes.default.svc", b"a-b_c.example."))
    return host + random.choice((b"", b":1", b":65535", b":"))


HOSTS = Target("hosts", lambda: [b"localhost:6443", b"[::1]:1"], _host, (), _make_host)


def _store(data: bytes) -> bool:
    """A store's file with other bytes in it, or a row with another value."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "store"
        path.write_bytes(data)
        return asyncio.run(_opened(path))


async def _opened(path: Path) -> bool:
    store = await open_store(path, world=World(), reserve=False)
    try:
        entries, _, _ = await store.list("")
        for entry in entries:
            value = entry.value
            value.decoded()
            value.encoded()
        return True
    finally:
        await store.close()


def _stored(rows: dict[str, bytes]) -> bytes:
    """The file of a store with these rows."""

    async def made(path: Path) -> None:
        store = await open_store(path, world=World(), reserve=False)
        for key, data in rows.items():
            await store.create(key, lambda revision, data=data: Value(data))
        await store.close()

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "store"
        asyncio.run(made(path))
        return path.read_bytes()


def _store_seeds() -> list[bytes]:
    return [_stored({f"/kind/{number}": orjson.dumps(each) for number, each in enumerate(OBJECTS)})]


def _make_store(random: Random, seeds: list[bytes]) -> bytes:
    """Rows that nobody would write, written as a store writes them."""
    values = [
        changed_bytes(random, orjson.dumps(random.choice(OBJECTS))),
        json_change(random, texts(*OBJECTS)),
        b"",
        b"[" * 5000,
    ]
    keys = ("", "/", "/kind/é", "/kind/" + "x" * 999, "/kind/a\nb")
    return _stored({key: random.choice(values) for key in random.sample(keys, 3)})


STORE = Target("store", _store_seeds, _store, (StoreError,), _make_store)
