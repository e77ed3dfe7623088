"""Objects to send: valid ones from the seeds, and what changes make of them and of objects that are there."""

import base64
import copy
from itertools import zip_longest
from pathlib import Path
from random import Random
from typing import Any

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from differential import normalising, values
from differential.kinds import Kind, Schemas
from differential.request import Held

BAD_NAMES = ("A", "-a", "a_b", "a" * 254, "a/b", "a%b", "..", "é", "a b", "")
LABELS = ({"app": "a"}, {"app": "b"}, {"app": "a", "x.example.com/y": "z"})
BAD_LABELS = ({"-": "a"}, {"a": "b c"}, {"a/b/c": "d"}, {"a": "x" * 64}, {"A" * 64: ""})


def _request_pem() -> str:
    """Of a CertificateSigningRequest, base64; one key for all that a run makes."""

    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "u")])
    made = x509.CertificateSigningRequestBuilder().subject_name(name).sign(
        ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()
    )  # fmt: skip
    return base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()


class Bodies:
    """`random` decides everything."""

    def __init__(self, schemas: Schemas, random: Random) -> None:
        self.schemas, self._random = schemas, random
        self._seeds: dict[str, list[dict[str, Any]]] = yaml.safe_load(
            Path(__file__).with_name("seeds.yaml").read_text()
        )
        self._csr = _request_pem()

    def valid(self, kind: Kind, namespace: str, name: str, *, smallest: bool = False) -> dict[str, Any]:
        """Build an object that the real server accepts, by the seeds."""
        seeds = self._seeds.get(f"{kind.api_version} {kind.kind}") or self._seeds.get(kind.kind)
        if seeds is None:
            schema = self.schemas.resolved(self.schemas.of(kind))
            seed = values.value_of(self.schemas, schema, self._random) if schema else {}
            seed.pop("status", None)
        else:
            seed = copy.deepcopy(seeds[0] if smallest else self._random.choice(seeds))
        meta = seed.get("metadata")
        seed = {"apiVersion": kind.api_version, "kind": kind.kind, **self._filled(seed, namespace)}
        meta = dict(meta) if isinstance(meta, dict) else {}
        seed["metadata"] = {"name": name, **meta} | ({"namespace": namespace} if kind.namespaced else {})
        if "labels" not in seed["metadata"] and self._random.random() < 0.5:
            seed["metadata"]["labels"] = dict(self._random.choice(LABELS))
        return seed

    def _filled(self, value: Any, namespace: str) -> Any:
        match value:
            case dict():
                return {key: self._filled(each, namespace) for key, each in value.items()}
            case list():
                return [self._filled(each, namespace) for each in value]
            case "NAMESPACE":
                return namespace
            case "CSR":
                return self._csr
        return value

    def changed(self, kind: Kind, obj: dict[str, Any], times: int = 1) -> dict[str, Any]:
        out: dict[str, Any] = values.changed(self.schemas, self.schemas.of(kind), obj, self._random, times)
        return out

    def odd_metadata(self, obj: dict[str, Any]) -> None:
        """Make something about the object's metadata or type unusual."""
        meta = obj["metadata"]
        match self._random.randrange(16):
            case 0:
                meta["name"] = self._random.choice(BAD_NAMES)
            case 1:
                meta.pop("name", None)
                meta["generateName"] = "gen-"
            case 2:
                meta.pop("name", None)
            case 3:
                meta["namespace"] = self._random.choice(("other", "", "A"))
            case 4:
                obj["kind"] = self._random.choice(("Pod", "Other", "", 7))
            case 5:
                obj["apiVersion"] = self._random.choice(("v1", "apps/v9", "", "x/y/z", 7))
            case 6:
                meta["labels"] = dict(self._random.choice(BAD_LABELS))
            case 7:
                meta["annotations"] = self._random.choice(({"-": "a"}, {"a": "b" * 300}, {"A/b": "c"}, {"a": 1}))
            case 8:
                meta["finalizers"] = self._random.choice(
                    (["example.com/f"], ["f"], ["a/b/c"], ["foregroundDeletion"], [])
                )
            case 9:
                owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u", "controller": True}
                meta["ownerReferences"] = self._random.choice(
                    ([owner], [owner, {**owner, "name": "p"}], [{**owner, "uid": ""}], [{"kind": "X"}],
                     [{**owner, "apiVersion": "v1", "kind": "Event"}])
                )  # fmt: skip
            case 10:
                meta["resourceVersion"] = self._random.choice(("1", "x", ""))
            case 11:
                meta["uid"] = self._random.choice(("u", ""))
            case 12:
                meta[self._random.choice(("creationTimestamp", "deletionTimestamp"))] = self._random.choice(
                    ("2024-01-01T00:00:00Z", "x", None)
                )
            case 13:
                meta["managedFields"] = self._random.choice(([], [{}], [{"manager": "m", "operation": "Apply"}], "x"))
            case 14:
                meta[self._random.choice(("unknown", "clusterName", "selfLink", "generation"))] = self._random.choice(
                    ("x", 5)
                )
            case _:
                obj["metadata"] = self._random.choice((None, [], "x", {}))

    def again(self, path: str, held: dict[str, Any], new: Any) -> Any:
        """Return `new` for both servers, made of what the real one holds at `path`: what each has chosen is `Held`."""
        return _own_values(path, held, new, ())


def _own_values(path: str, old: Any, new: Any, keys: tuple[str | int, ...]) -> Any:
    if isinstance(new, dict) and isinstance(old, dict):
        return {key: _own_values(path, old.get(key), each, (*keys, key)) for key, each in new.items()}
    if isinstance(new, list) and isinstance(old, list):
        paired = zip_longest(old[: len(new)], new)
        return [_own_values(path, a, b, (*keys, i)) for i, (a, b) in enumerate(paired)]
    name = next((str(key) for key in reversed(keys) if isinstance(key, str)), "")
    if new == old and new is not None and normalising.normalised(new, name) != new:
        return Held(path, keys)
    return new
