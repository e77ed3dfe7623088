"""Requests made of mutated objects: every verb, subresource, patch type and encoding.

An `Input` is plain data, so that a batch can be replayed, shortened and kept in the corpus.
"""

import base64
import json
import random
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import yaml
from api_mutation import Mutator
from api_seeds import BODIES, BOUND, NAMESPACE, OPTIONS, SEEDS, STATUSES, THINGS, THINGS_DEFINITION, name_of_seed

from lastcall.kube.api.meta import Object
from lastcall.kube.api.protobuf.encoding import encode_envelope
from lastcall.kube.api.resources import Resource
from lastcall.kube.api.schema.types import Struct, struct_for, struct_of

JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json-patch": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
ACCEPTED = (
    *[JSON] * 5,
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    YAML,
    "*/*",
)
QUERIES: tuple[dict[str, str], ...] = (
    *[{}] * 8,
    {"dryRun": "All"},
    {"fieldValidation": "Strict"},
    {"fieldValidation": "Ignore"},
    {"fieldManager": "f" * 129},
    {"pretty": "true"},
    {"resourceVersion": "0"},
)
LIST_QUERIES: tuple[dict[str, str], ...] = (
    {},
    {"limit": "1"},
    {"limit": "-1"},
    {"limit": "9" * 30},
    {"continue": "x"},
    {"resourceVersion": "-1"},
    {"labelSelector": "app in (fuzzed,x)"},
    {"labelSelector": "a in ("},
    {"fieldSelector": "metadata.name=fuzzed"},
    {"fieldSelector": "x=y"},
    {"timeoutSeconds": "9" * 30},
)
SEEDS_BY_PLURAL = {each.plural: each for each in SEEDS}
OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")


@dataclass(frozen=True)
class Input:
    """One request. `kind` and `encoding` are what it is counted under."""

    method: str
    path: str
    content_type: str
    accept: str
    body: bytes
    kind: str
    encoding: str

    def to_json(self) -> dict[str, str]:
        return {**self.__dict__, "body": base64.b64encode(self.body).decode()}

    @classmethod
    def from_json(cls, data: dict[str, str]) -> "Input":
        return cls(**{**data, "body": base64.b64decode(data["body"])})  # type: ignore[arg-type]


def setup() -> list[Input]:
    """What a batch begins with: a bound for Pods, and a declared kind."""
    quotas = SEEDS_BY_PLURAL["resourcequotas"].path(NAMESPACE)
    definitions = SEEDS_BY_PLURAL["customresourcedefinitions"].path()
    return [
        Input("POST", path, JSON, JSON, json.dumps(obj).encode(), "setup", "json")
        for path, obj in ((quotas, BOUND), (definitions, THINGS_DEFINITION))
    ]


class Inputs:
    """Draws requests; the same seed gives the same ones."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.mutator = Mutator(self.rng)
        self.kinds = list(SEEDS)

    def next(self) -> list[Input]:
        """What is done to one object: create it, write it in some ways, read it, and mostly delete it."""
        rng = self.rng
        resource = rng.choice(self.kinds)
        seed = SEEDS[resource]
        steps = [self._create(resource, self._mutated(resource, seed)), self._create(resource, seed)]
        for _ in range(rng.choice((1, 2, 3))):
            steps.append(self._write(resource))
        steps.append(self._read(resource))
        if rng.random() < 0.8:
            steps.append(self._delete(resource))
        return steps

    def _struct(self, resource: Resource) -> Struct | None:
        return None if resource is THINGS else struct_for(resource)

    def _mutated(self, resource: Resource, obj: Object) -> Object:
        found = self.mutator.mutated(obj, self._struct(resource))
        if isinstance(found.get("metadata"), dict) and self.rng.random() < 0.93:  # most are to be found again
            found["metadata"] = {
                **found["metadata"],
                **{key: obj["metadata"][key] for key in ("name", "namespace") if key in obj["metadata"]},
            }
        return found

    def _path(
        self, resource: Resource, name: str = "", subresource: str = "", query: dict[str, str] | None = None
    ) -> str:
        path = resource.path(NAMESPACE, name, subresource)
        return f"{path}?{urlencode(query)}" if query else path

    def _create(self, resource: Resource, obj: Object) -> Input:
        return self._with_body("POST", resource, self._path(resource, query=self.rng.choice(QUERIES)), obj)

    def _write(self, resource: Resource) -> Input:
        rng = self.rng
        name = name_of_seed(resource)
        subresources = [each for each in resource.subresources if each in (*BODIES, "status")]
        if subresources and rng.random() < 0.55:
            return self._write_part(resource, name, rng.choice(subresources))
        obj = self._mutated(resource, SEEDS[resource])
        if rng.random() < 0.3:
            return self._with_body("PUT", resource, self._path(resource, name, query=rng.choice(QUERIES)), obj)
        return self._patch(resource, self._path(resource, name), obj)

    def _write_part(self, resource: Resource, name: str, subresource: str) -> Input:
        rng = self.rng
        path = self._path(resource, name, subresource, rng.choice(QUERIES))
        if subresource == "status":
            struct = self._struct(resource)
            status = struct_of(struct.fields["status"]) if struct is not None else None
            obj = {**SEEDS[resource], "status": self.mutator.mutated(STATUSES[resource], status)}
        else:
            body = BODIES[subresource]
            metadata = SEEDS[resource]["metadata"]
            obj = self.mutator.mutated(
                {**body, "metadata": {key: metadata[key] for key in ("name", "namespace") if key in metadata}}, None
            )
            if subresource in ("binding", "eviction", "token"):
                return self._with_body("POST", resource, path, obj, kind=subresource)
            if subresource in ("ephemeralcontainers", "finalize"):
                obj = {**SEEDS[resource], **obj}
        if rng.random() < 0.4:
            return self._with_body("PUT", resource, path, obj, kind="scale" if subresource == "scale" else "")
        return self._patch(
            resource,
            path,
            obj if rng.random() < 0.5 else {key: obj[key] for key in obj if key in ("status", "spec", "metadata")},
        )

    def _patch(self, resource: Resource, path: str, obj: Object) -> Input:
        rng = self.rng
        custom = resource is THINGS
        type_ = rng.choice([each for each in PATCHES if not (custom and each == "strategic")])
        body: Any = obj
        if type_ == "json-patch":
            body = self._operations(obj)
        elif type_ == "apply":
            joiner = "&" if "?" in path else "?"
            path += joiner + urlencode({"fieldManager": rng.choice(("a", "b")), "force": rng.choice(("true", "false"))})
            body = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
        else:
            body = {key: value for key, value in obj.items() if rng.random() < 0.8}
        return self._input(
            "PATCH",
            path,
            PATCHES[type_],
            self._text(body, yaml_=type_ == "apply" and rng.random() < 0.5),
            resource.kind,
            type_,
        )

    def _operations(self, obj: Object) -> list[Object]:
        rng, found = self.rng, []
        places = list(_pointers(obj))
        for _ in range(rng.choice((1, 1, 2, 10))):
            path, value = rng.choice(places)
            operation: Object = {
                "op": rng.choice(OPERATIONS),
                "path": path if rng.random() < 0.95 else rng.choice(("", "/", "/~2", "/a/-", "/spec/9999999999")),
            }
            if operation["op"] in ("add", "replace", "test"):
                operation["value"] = value if rng.random() < 0.5 else self.mutator.values.anything()
            if operation["op"] in ("move", "copy"):
                operation["from"] = rng.choice(places)[0]
            found.append(operation)
        return found

    def _read(self, resource: Resource) -> Input:
        rng = self.rng
        one = rng.random() < 0.5
        accept = rng.choice((*ACCEPTED, *([PROTOBUF] * 3 if resource is not THINGS else ())))
        path = self._path(
            resource, name_of_seed(resource) if one else "", query=None if one else rng.choice(LIST_QUERIES)
        )
        return Input("GET", path, "", accept, b"", resource.kind, "read")

    def _delete(self, resource: Resource) -> Input:
        rng = self.rng
        body = b"" if rng.random() < 0.6 else self._text(self.mutator.mutated(OPTIONS, None), yaml_=False)
        return self._input(
            "DELETE",
            self._path(resource, name_of_seed(resource), query={"gracePeriodSeconds": "0"}),
            JSON,
            body,
            resource.kind,
            "options",
        )

    def _with_body(self, method: str, resource: Resource, path: str, obj: Object, *, kind: str = "") -> Input:
        chance = self.rng.random()
        if chance < 0.25 and resource is not THINGS and not kind:
            try:
                return self._input(method, path, PROTOBUF, encode_envelope(obj), kind or resource.kind, "protobuf")
            except Exception:  # an object of wrong types has no such form; it goes as JSON
                chance = 1.0
        if chance < 0.4:
            return self._input(method, path, YAML, self._text(obj, yaml_=True), kind or resource.kind, "yaml")
        return self._input(method, path, JSON, self._text(obj, yaml_=False), kind or resource.kind, "json")

    def _text(self, value: Any, *, yaml_: bool) -> bytes:
        if yaml_:
            return yaml.safe_dump(value, allow_unicode=self.rng.random() < 0.5).encode("utf-8", "surrogatepass")
        return json.dumps(value, ensure_ascii=self.rng.random() < 0.5).encode("utf-8", "surrogatepass")

    def _input(self, method: str, path: str, content_type: str, body: bytes, kind: str, encoding: str) -> Input:
        rng = self.rng
        if body and rng.random() < 0.05:
            noisy = bytearray(body)
            for _ in range(rng.choice((1, 2, 8))):
                noisy[rng.randrange(len(noisy))] = rng.randrange(256)
            body = bytes(noisy if rng.random() < 0.7 else noisy[: rng.randrange(len(noisy))])
        return Input(method, path, content_type, rng.choice(ACCEPTED), body, kind, encoding)


def _pointers(value: Any, path: str = "") -> Any:
    """(JSON pointer, value) of all that is in an object."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        below = f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}"
        yield below, item
        yield from _pointers(item, below)
