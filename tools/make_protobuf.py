"""Make src/lastcall/kube/api/protobuf/protobuf.json from recorded facts: `python tools/make_protobuf.py FACTS OUT`.

FACTS is a JSON file with `messages`: message → [number, JSON name, type or {"map": [key, value]}, flags…] per field.
The output has the same with short names; it is explained in src/lastcall/kube/api/protobuf/decoding.py, its only
reader.
"""

import json
import sys
from pathlib import Path
from typing import Any

PREFIXES = (
    "k8s.io.apimachinery.pkg.apis.",
    "k8s.io.apimachinery.pkg.api.resource.",
    "k8s.io.apimachinery.pkg.util.intstr.",
    "k8s.io.apimachinery.pkg.",
    "k8s.io.apiextensions_apiserver.pkg.apis.",
    "k8s.io.kube_aggregator.pkg.apis.",
    "k8s.io.api.",
)
FLAGS = {"repeated": 1, "inline": 2}


def short(name: str) -> str:
    for prefix in PREFIXES:
        if name.startswith(prefix):
            return name[len(prefix) :]
    return name


def field(number: int, name: str, type_: Any, *flags: str) -> list[Any]:
    shown = [short(each) for each in type_["map"]] if isinstance(type_, dict) else short(type_)
    bits = sum(FLAGS[flag] for flag in flags)
    return [number, name, shown, bits] if bits else [number, name, shown]


def main(source: str, target: str) -> None:
    facts = json.loads(Path(source).read_text())["messages"]
    messages = {short(name): [field(*each) for each in fields] for name, fields in facts.items()}
    if len(messages) != len(facts):
        sys.exit("two messages have the same short name: extend PREFIXES")
    Path(target).write_text(json.dumps(messages, separators=(",", ":"), sort_keys=True) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: make_protobuf.py FACTS OUT")
    main(*sys.argv[1:])
