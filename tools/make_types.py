"""Make src/lastcall/kube/api/types/ from src/lastcall/kube/api/schema/schema.json: `python tools/make_types.py`.

One TypedDict for each type of the API that `FILES` reaches. A type is in the first file whose roots reach it, so a
file imports only from the files before it. `python tools/make_types.py` is to be run after a change here or of the
schema; tests/unit/kube/api/test_types.py fails when the files are not what this writes.
"""

import keyword
import sys
from pathlib import Path
from typing import Any

import orjson

API = Path(__file__).parents[1] / "src" / "lastcall" / "kube" / "api"
LINE_LENGTH = 120

FILES: dict[str, tuple[str, tuple[str, ...]]] = {
    "meta": (
        "What all kinds share: metadata, references, selectors.",
        (
            "meta.v1.ObjectMeta",
            "meta.v1.LabelSelector",
            "meta.v1.Condition",
            "core.v1.ObjectReference",
            "core.v1.LocalObjectReference",
            "core.v1.TypedLocalObjectReference",
        ),
    ),
    "scheduling": (
        "Where a Pod may run: affinity, taints, spreading.",
        ("core.v1.Affinity", "core.v1.Taint", "core.v1.Toleration", "core.v1.TopologySpreadConstraint"),
    ),
    "container": (
        "Containers of a Pod's spec: probes, hooks, environment, resources, security.",
        ("core.v1.Container", "core.v1.EphemeralContainer"),
    ),
    "storage": (
        "Claims and volumes of the cluster.",
        ("core.v1.PersistentVolumeClaim", "core.v1.PersistentVolume", "storage.v1.StorageClass"),
    ),
    "volumes": ("Volumes of a Pod's spec, and what may be in them.", ("core.v1.Volume",)),
    "pod_status": ("What is known of a Pod: conditions, containers, addresses.", ("core.v1.PodStatus",)),
    "pod": ("Pods and templates of Pods.", ("core.v1.Pod", "core.v1.PodTemplateSpec")),
    "node": ("Nodes and their leases.", ("core.v1.Node", "coordination.v1.Lease")),
    "service": ("Services and the slices of their endpoints.", ("core.v1.Service", "discovery.v1.EndpointSlice")),
    "endpoints": ("Endpoints, the older form of endpoint slices.", ("core.v1.Endpoints",)),
    "workloads": (
        "Controllers of Pods that are to stay: Deployment, ReplicaSet, StatefulSet, DaemonSet.",
        (
            "apps.v1.Deployment",
            "apps.v1.ReplicaSet",
            "apps.v1.StatefulSet",
            "apps.v1.DaemonSet",
            "apps.v1.ControllerRevision",
            "core.v1.ReplicationController",
        ),
    ),
    "batch": ("Controllers of Pods that end: Job, CronJob.", ("batch.v1.Job", "batch.v1.CronJob")),
    "certificates": ("Requests for certificates.", ("certificates.v1.CertificateSigningRequest",)),
    "admission": ("Policies of admission.", ("admissionregistration.v1.ValidatingAdmissionPolicy",)),
    "policy": ("What limits evictions.", ("policy.v1.PodDisruptionBudget", "policy.v1.Eviction")),
    "cluster": (
        "Namespaces, configuration, events.",
        (
            "core.v1.Namespace",
            "core.v1.ConfigMap",
            "core.v1.Secret",
            "core.v1.ServiceAccount",
            "core.v1.Event",
        ),
    ),
}
"""File, its docstring, and the types that it must have; later files import from earlier ones."""

SCALARS = {"Quantity": "Quantity", "IntOrString": "IntOrString", "meta.v1.Time": "Time", "meta.v1.MicroTime": "Time"}
NULLABLE_TIMES = frozenset(
    (
        "creationTimestamp",
        "eventTime",
        "finishedAt",
        "firstTimestamp",
        "lastHeartbeatTime",
        "lastProbeTime",
        "lastTimestamp",
        "lastTransitionTime",
        "lastUpdateTime",
        "startedAt",
    )
)
"""Times that are not pointers in Go: their zero value is null in JSON. The schema does not say it."""
NULLABLE = frozenset((("discovery.v1.EndpointSlice", "endpoints"), ("discovery.v1.EndpointSlice", "ports")))
"""Lists that Go writes as null when they are empty, because they have no `omitempty`."""
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "dict[str, Any]"}
LARGEST_LITERAL = 12
"""An enum with more values is a `str`: only signals have more."""

SCALARS_FILE = '''"""Scalars of the API with a notation of their own. Made by tools/make_types.py."""

Quantity = str
"""Amount of a resource as the API server answers it: `100m`, `1Gi`. (`lastcall.kube.api.quantity.parse_quantity`)"""

IntOrString = int | str
"""A number, or a name or percentage: ports (`8080`, `http`), `maxUnavailable` (`1`, `25%`)."""

Time = str
"""RFC 3339 in UTC, with whole seconds (`meta.v1.Time`) or microseconds (`meta.v1.MicroTime`)."""
'''

PACKAGE = '''"""TypedDicts of API objects, for the type checker only. Made by tools/make_types.py.

Import them below `if TYPE_CHECKING:`, so that no process pays for them
(rule `types` of tools/checks). All keys are optional, as they are in JSON:
`pod["spec"]` says that the key is there, `pod.get("status")` that it may be absent.
"""
'''


class Types:
    def __init__(self, schema: dict[str, Any]) -> None:
        self.types: dict[str, Any] = schema["types"]
        self.prefixes: dict[str, str] = schema["prefixes"]
        self.file_of: dict[str, str] = {}
        self.order: dict[str, list[str]] = {}
        for file, (_, roots) in FILES.items():
            self.order[file] = []
            for root in roots:
                self._place(root, file)

    def _place(self, name: str, file: str) -> None:
        """Put a type and those that it needs into `file`, the outer ones first, unless they stand somewhere."""
        if name in self.file_of or name in SCALARS or "f" not in self.types[name]:
            return
        self.file_of[name] = file
        self.order[file].append(name)
        for field in self.types[name]["f"].values():
            for part in (field, field.get("i", {}), field.get("m", {})):
                if "r" in part:
                    self._place(part["r"], file)

    def full_name(self, name: str) -> str:
        return self.prefixes.get(name.split(".", 1)[0], "io.k8s.api.") + name

    def annotation(self, facts: dict[str, Any], used: set[str]) -> str:
        """Return the Python type of a field. Adds what it needs to `used`: names of the schema, typing and scalars."""
        if "i" in facts:
            return f"list[{self.annotation(facts['i'], used)}]"
        if "m" in facts:
            return f"dict[str, {self.annotation(facts['m'], used)}]"
        reference = facts.get("r", "")
        if reference in SCALARS:
            used.add(SCALARS[reference])
            return SCALARS[reference]
        if reference and "f" in self.types[reference]:
            used.add(reference)
            return python_name(reference)
        if reference:
            facts = self.types[reference]
        values = facts.get("e", ())
        if values and len(values) <= LARGEST_LITERAL:
            used.add("Literal")
            return f"Literal[{', '.join(quoted(value) for value in values)}]"
        plain = PLAIN.get(facts.get("t", ""), "Any")
        if "Any" in plain:
            used.add("Any")
        return plain

    def class_lines(self, name: str, used: set[str]) -> list[str]:
        lines = [f"class {python_name(name)}(TypedDict, total=False):", f'    """{self.full_name(name)}"""', ""]
        for field, facts in self.types[name]["f"].items():
            if keyword.iskeyword(field) or not field.isidentifier():
                sys.exit(f"{name}.{field} cannot be a Python name: this generator needs TypedDict's other syntax")
            nullable = (facts.get("r") == "meta.v1.Time" and field in NULLABLE_TIMES) or (name, field) in NULLABLE
            annotation = self.annotation(facts, used) + (" | None" if nullable else "")
            lines += wrapped(f"    {field}: {annotation}")
        if lines[-1] == "":  # a type without fields
            lines.pop()
        return lines

    def file(self, file: str) -> str:
        """Return the text of one file."""
        used: set[str] = set()
        bodies = ["\n".join(self.class_lines(name, used)) for name in self.order[file]]
        names = [python_name(name) for name in self.order[file]]
        imports: dict[str, set[str]] = {}
        for name in used:
            if name in SCALARS.values():
                imports.setdefault("scalars", set()).add(name)
            elif self.file_of.get(name, file) != file:
                imports.setdefault(self.file_of[name], set()).add(python_name(name))
        names += [name for group in imports.values() for name in group]
        if len(set(names)) != len(names):
            sys.exit(f"{file}: two types have the same name: put one into a file of its own")
        typing = ["TypedDict", *(used & {"Any", "Literal"})]
        head = [
            f'"""{FILES[file][0]} Made by tools/make_types.py."""',
            "",
            "from __future__ import annotations",
            "",
            *import_lines("typing", typing),
        ]
        if imports:
            head.append("")
        for module in sorted(imports):
            head += import_lines(f"lastcall.kube.api.types.{module}", list(imports[module]))
        return "\n".join(head) + "\n\n\n" + "\n\n\n".join(bodies) + "\n"


def python_name(name: str) -> str:
    return name.rsplit(".", 1)[-1]


def quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def import_lines(module: str, names: list[str]) -> list[str]:
    """Return an import as ruff formats and sorts it."""
    names = sorted(names, key=str.lower)
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= LINE_LENGTH:
        return [line]
    return [f"from {module} import (", *(f"    {name}," for name in names), ")"]


def wrapped(line: str) -> list[str]:
    """Return a field's line as ruff formats it."""
    indent, name, annotation = " " * 4, *line.strip().split(": ", 1)
    return _split(annotation, indent, f"{name}: ", "")


def _split(annotation: str, indent: str, before: str, after: str) -> list[str]:
    """Return one line if it fits; else the content of the brackets on one line, or with one argument a line."""
    line = f"{indent}{before}{annotation}{after}"
    if len(line) <= LINE_LENGTH or "[" not in annotation:
        return [line]
    outer, inside = annotation.removesuffix("]").split("[", 1)
    deeper = indent + " " * 4
    one_line = len(deeper + inside) <= LINE_LENGTH
    arguments = [inside] if one_line else _arguments(inside)
    end = "," if len(arguments) > 1 else ""
    lines = [each for argument in arguments for each in _split(argument, deeper, "", end)]
    return [f"{indent}{before}{outer}[", *lines, f"{indent}]{after}"]


def _arguments(text: str) -> list[str]:
    """The arguments between brackets, at their outermost commas."""
    depth, found = 0, [""]
    for part in text.split(", "):
        found[-1] += part
        depth += part.count("[") - part.count("]")
        if depth == 0:
            found.append("")
        else:
            found[-1] += ", "
    return [argument for argument in found if argument]


def files() -> dict[str, str]:
    """Return every file of the package by its name, with its text."""
    types = Types(orjson.loads((API / "schema" / "schema.json").read_bytes()))
    made = {f"{file}.py": types.file(file) for file in FILES}
    return {"__init__.py": PACKAGE, "scalars.py": SCALARS_FILE, **made}


def main() -> None:
    package = API / "types"
    package.mkdir(exist_ok=True)
    made = files()
    for old in package.glob("*.py"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (package / name).write_text(text)


if __name__ == "__main__":
    main()
