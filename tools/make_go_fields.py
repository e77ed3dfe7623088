"""Add to src/lastcall/kube/api/schema/schema.json what only the Go types say about fields.

Which are left out when they are zero, which are null then, and which are always written.

`python tools/make_go_fields.py API APIMACHINERY APIEXTENSIONS AGGREGATOR [TAG]`

The arguments are git directories of the four repositories of Kubernetes that define types (k8s.io/api and so on). Facts
only: for each field its kind (pointer, list, map, struct, plain value) and whether its tag has omitempty. From them:

- `o` on a field: a plain value without a pointer, or a list or map, that is not encoded when it is zero or empty
- `n` on a type: lists and maps without omitempty, and times without a pointer: null when there is nothing in them
- `a` on a type: plain values without omitempty and structs that are not pointers: written although nobody set them
- `g` on a field, or on the items of its list or map: the type of its own that Go names in messages (`v1.PullPolicy`,
  `map[v1.QualifiedName]v1.DeviceAttribute`)
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parents[1] / "src" / "lastcall" / "kube" / "api" / "schema" / "schema.json"
MESSAGES = Path(__file__).parents[1] / "src" / "lastcall" / "kube" / "api" / "protobuf" / "protobuf.json"
"""Its lists of fields are put into the order of the Go types."""

TAG = "v0.36.2"
PLAIN = frozenset({"string", "bool", "int", "int32", "int64", "uint8", "float64"})
ROOTS = {  # path in the repository → what its types' short names begin with
    "pkg/apis/meta/v1": "meta.v1",
    "pkg/apis/apiextensions/v1": "apiextensions.v1",
    "pkg/apis/apiregistration/v1": "apiregistration.v1",
}
CORE = frozenset({"v1", "core", "corev1", "apiv1"})
"""What the files with types call the package of the core group; meta is `metav1`."""
_MAP = re.compile(r"map\[([\w.]+)\](.+)")
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.M | re.S)
_NAMED = re.compile(r"^type (\w+) (\[\][\w.]+|map\[[\w.]+\][\w.\[\]]+|\w+)$", re.M)
_FIELD = re.compile(r"""^\s+(?:(\w+)\s+)?(\S+)\s+`(?:[^`]*?\s)?json:"([^"]*)""", re.M)


def git(repository: str, *arguments: str) -> str:
    command = ["git", "-C", repository, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603 (a developer's own)


def sources(repository: str, tag: str) -> Iterator[tuple[str, str]]:
    """Yield (beginning of the short names, text) of every file with types."""
    for path in git(repository, "ls-tree", "-r", "--name-only", tag).splitlines():
        directory, _, name = path.rpartition("/")
        if not re.fullmatch(r"types\w*\.go|group_version\.go", name) or "testapigroup" in path:
            continue
        prefix = ROOTS.get(directory) or (directory.replace("/", ".") if directory.count("/") == 1 else "")
        if prefix:
            yield prefix, git(repository, "show", f"{tag}:{path}")


class Types:
    """All structs, and the names of other types."""

    def __init__(self) -> None:
        self.structs: dict[str, dict[str, tuple[str, bool, bool]]] = {}
        self._inline: dict[str, str] = {}
        self._inside: dict[str, list[str]] = {}
        self._order: dict[str, list[str]] = {}
        self._named: dict[str, str] = {}

    def read(self, prefix: str, text: str) -> None:
        for name, body in _STRUCT.findall(text):
            fields = {}
            order = self._order.setdefault(f"{prefix}.{name}", [])
            for _, type_, tag in _FIELD.findall(body):
                key, *options = tag.split(",")
                order.append(key or type_.rpartition(".")[2])
                if not key and type_.endswith("Common"):  # TypeMeta is the same in all
                    self._inline[f"{prefix}.{name}"] = f"{prefix}.{type_}"
                if not key and "inline" in options and "." not in type_:
                    self._inside.setdefault(f"{prefix}.{name}", []).append(f"{prefix}.{type_}")
                if key and key != "-":
                    zero = "omitzero" in options
                    fields[key] = (type_, zero or "omitempty" in options, zero)
            self.structs[f"{prefix}.{name}"] = fields
        for name, type_ in _NAMED.findall(text):
            self._named[f"{prefix}.{name}"] = type_

    def fields(self, name: str) -> dict[str, tuple[str, bool, bool]] | None:
        """Map each field of a struct and the one inside it to (type, has omitempty or omitzero, has omitzero)."""
        own = self.structs.get(name)
        return own if own is None or name not in self._inline else {**self.structs[self._inline[name]], **own}

    def place(self, name: str, field: list[Any]) -> int:
        """Return where a field of a message, or the struct that it embeds, is in the Go type."""
        order = self._order.get(name) or []
        shown = field[2].rpartition(".")[2] if field[3:] and field[3] & 2 else field[1]
        return order.index(shown) if shown in order else -1

    def type_of(self, name: str, key: str) -> str:
        """Return the type of a field of a struct, or of one inside it; "" for one that is not known."""
        own = (self.fields(name) or {}).get(key)
        if own is not None:
            return own[0]
        return next(filter(None, (self.type_of(each, key) for each in self._inside.get(name, ()))), "")

    def own_name(self, prefix: str, type_: str) -> str:
        """Return `v1.PullPolicy` for a type of its own that is not a struct, or a map with one as its keys, else ""."""
        if type_ == "types.UID":
            return type_
        if (found := _MAP.fullmatch(type_)) is not None:
            key = self.own_name(prefix, found[1])
            return f"map[{key}]{self._shown(prefix, found[2])}" if key else ""
        full = _full(prefix, type_)
        return ".".join(full.split(".")[-2:]) if full in self._named else ""

    def _shown(self, prefix: str, type_: str) -> str:
        return (
            type_ if type_ in PLAIN or type_ == "resource.Quantity" else ".".join(_full(prefix, type_).split(".")[-2:])
        )

    def kind(self, prefix: str, type_: str) -> str:
        """Return pointer, list, map, time, plain or struct."""
        if type_.startswith("*"):
            return "pointer"
        if type_.startswith("[]"):
            return "list"
        if type_.startswith("map["):
            return "map"
        if type_ in PLAIN or type_ == "types.UID":
            return "plain"
        package, _, name = type_.rpartition(".")
        if name in ("Time", "MicroTime") and package in ("metav1", ""):
            return "time"
        full = f"{prefix}.{name}" if not package else f"{'meta.v1' if package == 'metav1' else 'core.v1'}.{name}"
        named = self._named.get(full)
        return self.kind(full.rpartition(".")[0], named) if named else "struct"


def _full(prefix: str, type_: str) -> str:
    """The short name of a type as a file of `prefix` writes it."""
    package, _, name = type_.rpartition(".")
    return f"{prefix}.{name}" if not package else f"{'core.v1' if package in CORE else 'meta.v1'}.{name}"


def main(repositories: list[str], tag: str) -> None:
    types = Types()
    for repository in repositories:
        for prefix, text in sources(repository, tag):
            types.read(prefix, text)
    schema = json.loads(TARGET.read_text())
    unknown = []
    for name, facts in schema["types"].items():
        if "f" not in facts:
            continue
        struct = types.fields(name)
        if struct is None:
            unknown.append(name)
            continue
        prefix, nulls, always = name.rpartition(".")[0], [], []
        for key, field in facts["f"].items():
            field.pop("o", None)
            type_, omitted, zero = struct.get(key, ("", False, False))
            named = types.type_of(name, key)
            value = found[2] if (found := _MAP.fullmatch(named)) else ""
            for facts_of, given in (
                (field, named),
                (field.get("i"), named.removeprefix("[]")),
                (field.get("m"), value),
            ):
                if facts_of is not None:
                    facts_of.pop("g", None)
                    if (own := types.own_name(prefix, given.removeprefix("*"))) and not facts_of.get("r"):
                        facts_of["g"] = own
            kind = types.kind(prefix, type_) if type_ else ""
            if kind in ("plain", "list", "map") and omitted:
                field["o"] = 1
            if (kind == "time" and not zero) or (kind in ("list", "map") and not omitted):
                nulls.append(key)
            if (kind == "struct" and not zero) or (kind == "plain" and not omitted):
                always.append(key)
        for key, names in (("n", nulls), ("a", always)):
            facts.pop(key, None)
            if names:
                facts[key] = names
    TARGET.write_text(json.dumps(schema, separators=(",", ":"), sort_keys=True) + "\n")
    messages = json.loads(MESSAGES.read_text())
    for name, fields in messages.items():
        fields.sort(key=lambda field: (types.place(name, field), field[0]))
    MESSAGES.write_text(json.dumps(messages, separators=(",", ":"), sort_keys=True) + "\n")
    sys.stdout.write(f"{len(types.structs)} structs; not found: {unknown}\n")


if __name__ == "__main__":
    if len(sys.argv) not in (5, 6):
        sys.exit("usage: make_go_fields.py API APIMACHINERY APIEXTENSIONS AGGREGATOR [TAG]")
    main(sys.argv[1:5], sys.argv[5] if len(sys.argv) == 6 else TAG)
