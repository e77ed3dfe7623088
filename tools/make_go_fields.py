"""Add to src/lastcall/api/schema/schema.json what only the Go types say: which fields are left out when they are zero,
which are null then, and which are always written.

`python tools/make_go_fields.py API APIMACHINERY APIEXTENSIONS AGGREGATOR [TAG]`

The arguments are git directories of the four repositories of Kubernetes that define types (k8s.io/api and so on). Facts
only: for each field its kind (pointer, list, map, struct, plain value) and whether its tag has omitempty. From them:

- `o` on a field: a plain value without a pointer, or a list or map, that is not encoded when it is zero or empty
- `n` on a type: lists and maps without omitempty, and times without a pointer: null when there is nothing in them
- `a` on a type: plain values without omitempty and structs that are not pointers: written although nobody set them
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

TARGET = Path(__file__).parents[1] / "src" / "lastcall" / "api" / "schema" / "schema.json"
TAG = "v0.36.2"
PLAIN = frozenset({"string", "bool", "int", "int32", "int64", "uint8", "float64"})
ROOTS = {  # path in the repository → what its types' short names begin with
    "pkg/apis/meta/v1": "meta.v1",
    "pkg/apis/apiextensions/v1": "apiextensions.v1",
    "pkg/apis/apiregistration/v1": "apiregistration.v1",
}
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.M | re.S)
_NAMED = re.compile(r"^type (\w+) (\[\][\w.]+|map\[[\w.]+\][\w.\[\]]+|\w+)$", re.M)
_FIELD = re.compile(r"""^\s+(?:(\w+)\s+)?(\S+)\s+`(?:[^`]*?\s)?json:"([^"]*)""", re.M)


def git(repository: str, *arguments: str) -> str:
    command = ["git", "-C", repository, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603 (a developer's own)


def sources(repository: str, tag: str) -> Iterator[tuple[str, str]]:
    """(beginning of the short names, text) of every file with types."""
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
        self._named: dict[str, str] = {}

    def read(self, prefix: str, text: str) -> None:
        for name, body in _STRUCT.findall(text):
            fields = {}
            for _, type_, tag in _FIELD.findall(body):
                key, *options = tag.split(",")
                if not key and type_.endswith("Common"):  # TypeMeta is the same in all
                    self._inline[f"{prefix}.{name}"] = f"{prefix}.{type_}"
                if key and key != "-":
                    zero = "omitzero" in options
                    fields[key] = (type_, zero or "omitempty" in options, zero)
            self.structs[f"{prefix}.{name}"] = fields
        for name, type_ in _NAMED.findall(text):
            self._named[f"{prefix}.{name}"] = type_

    def fields(self, name: str) -> dict[str, tuple[str, bool, bool]] | None:
        """Of a struct and of the one inside it: field → (type, whether it has omitempty or omitzero, omitzero)."""
        own = self.structs.get(name)
        return own if own is None or name not in self._inline else {**self.structs[self._inline[name]], **own}

    def kind(self, prefix: str, type_: str) -> str:
        """pointer, list, map, time, plain or struct."""
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
    sys.stdout.write(f"{len(types.structs)} structs; not found: {unknown}\n")


if __name__ == "__main__":
    if len(sys.argv) not in (5, 6):
        sys.exit("usage: make_go_fields.py API APIMACHINERY APIEXTENSIONS AGGREGATOR [TAG]")
    main(sys.argv[1:5], sys.argv[5] if len(sys.argv) == 6 else TAG)
