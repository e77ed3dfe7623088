"""Make src/lastcall/kube/api/schema/schema.json from recorded schema facts: `python tools/make_schema.py FACTS OUT`.

FACTS is a JSON file with `kinds`, `gvkToSchema` and `types` (584 types of Kubernetes 1.36.2 with their fields). The
output says the same in fewer bytes: type names without their common prefixes, fields as objects with short keys. The
short keys are explained in src/lastcall/kube/api/schema/types.py, which is the only reader.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PREFIXES = (
    ("io.k8s.apimachinery.pkg.apis.", ""),
    ("io.k8s.apimachinery.pkg.api.resource.", ""),
    ("io.k8s.apimachinery.pkg.util.intstr.", ""),
    ("io.k8s.apimachinery.pkg.", ""),
    ("io.k8s.apiextensions-apiserver.pkg.apis.", ""),
    ("io.k8s.kube-aggregator.pkg.apis.", ""),
    ("io.k8s.api.", ""),
)
KEYS = {
    "type": "t",
    "format": "f",
    "ref": "r",
    "items": "i",
    "map": "m",
    "enum": "e",
    "default": "d",
    "listType": "lt",
    "listMapKeys": "lk",
    "mapType": "mt",
    "mergeKey": "mk",
    "patchStrategy": "ps",
}


LOST = {
    "apiextensions.v1.ValidationRule": {
        "message": {"t": "string", "o": 1},
        "messageExpression": {"t": "string", "o": 1},
    },
}
"""Fields that the recorded facts lack: `kube/api/protobuf/protobuf.json` has them, and a test compares the two."""


def short(name: str) -> str:
    for prefix, replacement in PREFIXES:
        if name.startswith(prefix):
            return replacement + name[len(prefix) :]
    return name


def field(facts: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, code in KEYS.items():
        if key not in facts:
            continue
        value = facts[key]
        if key == "ref":
            value = short(value)
        elif key in ("items", "map"):
            value = field(value)
        elif key == "default" and value == {}:
            out["z"] = 1  # a struct that is not a pointer in Go: always there, if only as its zero value
            continue
        elif key == "type" and ("items" in facts or "map" in facts):
            continue
        out[code] = value
    return out


def type_facts(facts: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if "fields" in facts:
        out["f"] = {name: field(value) for name, value in facts["fields"].items()}
    elif facts.get("type"):
        out["t"] = facts["type"]
    if facts.get("format"):
        out["fmt"] = facts["format"]
    for key, code in (("required", "req"), ("mapType", "mt"), ("unions", "u")):
        if key in facts:
            out[code] = facts[key]
    return out


def prefixes(names: Iterable[str]) -> dict[str, str]:
    """Map the first part of a short name to what it has lost, where that is not `io.k8s.api.`."""
    lost: dict[str, str] = {}
    for name in names:
        first, prefix = short(name).split(".")[0], name[: len(name) - len(short(name))]
        if lost.setdefault(first, prefix) != prefix:
            sys.exit(f"{name}: two prefixes for {first}")
    return {first: prefix for first, prefix in lost.items() if prefix != "io.k8s.api."}


def main(source: str, target: str) -> None:
    facts = json.loads(Path(source).read_text())
    kinds = [
        {
            "g": kind["group"],
            "v": kind["version"],
            "k": kind["kind"],
            "p": kind["plural"],
            "n": kind["namespaced"],
            "s": short(kind["schema"]) if kind.get("schema") else "",
        }
        for kind in facts["kinds"]
    ]
    schema = {
        "version": facts["serverVersion"],
        "prefixes": prefixes(facts["types"]),
        "kinds": kinds,
        "gvk": {gvk: short(name) for gvk, name in facts["gvkToSchema"].items()},
        "types": {short(name): type_facts(value) for name, value in facts["types"].items()},
    }
    if len(schema["types"]) != len(facts["types"]):
        sys.exit("two types have the same short name: extend PREFIXES")
    for name, fields in LOST.items():
        schema["types"][name]["f"] |= fields
    Path(target).write_text(json.dumps(schema, separators=(",", ":"), sort_keys=True) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: make_schema.py FACTS OUT")
    main(*sys.argv[1:])
