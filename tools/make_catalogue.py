"""Write what is made of the catalogue: `python tools/make_catalogue.py` (`--check` only says what is out of date).

- src/lastcall/records/kinds.py: a constant for each kind of record, typed with its facts
- docs/ending-v1.schema.json, of the dataclasses that endings/render/json_v1.py shows and the catalogue; tables of
  docs/ending-v1.md
- docs/rollout-v1.schema.json, of experiment/rollout/document.py; in docs/rollout-v1.md the causes
- in all other schemas what every document begins with, of endings/render/envelope.py

The catalogue is src/lastcall/records/definitions and endings/catalogue. A unit test compares the
files with what this writes.
"""

import importlib
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_type_hints

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(Path(__file__).parent)]

from typed_docs import doc_of, fields, is_shape, object_of, sentence_for  # noqa: E402

from lastcall.endings.catalogue.lookup import CATALOGUE  # noqa: E402
from lastcall.endings.render.envelope import Head, envelope  # noqa: E402
from lastcall.endings.render.json_v1 import DEFINITIONS, RECORD_SCHEMA, SCHEMA, Document  # noqa: E402
from lastcall.experiment.rollout import document as rollout  # noqa: E402
from lastcall.experiment.rollout import report_json as rollout_report  # noqa: E402
from lastcall.traffic.causes import CAUSE_IDS  # noqa: E402

RECORDS = "lastcall.records.definitions"
MODULES = (
    "client",
    "apiserver",
    "endpointslice_controller",
    "kube_proxy",
    "controllers",
    "kubelet_start",
    "kubelet_end",
    "runtime",
    "witness",
    "init",
    "every_role",
)
"""In the order of the documents."""

MADE = (SCHEMA, rollout_report.SCHEMA, RECORD_SCHEMA)
"""Schemas that are made as a whole, and that of a line, which has no envelope."""
ROLLOUT_TITLE = "What became of the requests of a rollout"
WIDTH = 120

KINDS_HEAD = '''"""The kinds of records, each typed with the facts that it carries.

Made of records/definitions by tools/make_catalogue.py: change it there. docs/ending-v1.md explains each.
"""

# check: standard library

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
'''


def modules() -> list[ModuleType]:
    return [importlib.import_module(f"{RECORDS}.{name}") for name in MODULES]


def kinds_of(module: ModuleType) -> dict[str, Any]:
    """Return its kinds of records by name; what begins with an underscore is a part of others."""
    return {
        name: value
        for name, value in vars(module).items()
        if is_shape(value) and value.__module__ == module.__name__ and not name.startswith("_")
    }


def all_kinds() -> dict[str, Any]:
    return {name: shape for module in modules() for name, shape in kinds_of(module).items()}


def constant(kind: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind).upper()


def kinds_module() -> str:
    lines = [KINDS_HEAD.rstrip("\n")]
    lines += [f"    from {RECORDS} import ("]
    lines += [f"        {name}," for name in sorted(MODULES)]
    lines += ["    )", "    from lastcall.records.record import Kind", "else:", "    Kind = str", ""]
    for module, name in zip(modules(), MODULES, strict=True):
        lines += ["", f"# {module.ACTOR}"]
        for kind in kinds_of(module):
            lines.append(f'{constant(kind)}: Kind[{name}.{kind}] = Kind("{kind}")')
    return re.sub(r"\n\n\n+", "\n\n", "\n".join(lines)) + "\n"


# -- documents


def records_text() -> str:
    lines = []
    actor = ""
    for module in modules():
        if actor != module.ACTOR:
            actor = module.ACTOR
            lines += ["", f"### Records of `{actor}`" if " " not in actor else f"### Records of {actor}", ""]
            lines += ["| kind | says | facts |", "|---|---|---|"]
        for kind, shape in kinds_of(module).items():
            facts = "<br>".join(sentence_for(each) for each in fields(shape))
            lines.append(f"| `{kind}` | {cell(doc_of(shape))} | {cell(facts)} |")
    return "\n".join(lines).strip("\n")


def findings_text() -> str:
    lines = ["| id | means | fix |", "|---|---|---|"]
    lines += [f"| `{id_}` | {cell(cause.title)} | {cell(cause.remedy)} |" for id_, cause in CATALOGUE.items()]
    return "\n".join(lines)


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def with_part(text: str, name: str, part: str) -> str:
    """Return `text` with what is between the marks of `name` replaced."""
    begin, end = f"<!-- begin {name}: made by tools/make_catalogue.py -->", f"<!-- end {name} -->"
    before, found, rest = text.partition(begin)
    _, found_too, after = rest.partition(end)
    if not found or not found_too:
        raise SystemExit(f"the marks of {name} are missing")
    return f"{before}{begin}\n{part}\n{end}{after}"


def document_schema(root: Any, title: str, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a document. Its objects are `definitions`."""
    (name,) = get_args(get_type_hints(root)["schema"])
    shapes = {shape: key for key, shape in definitions.items()}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": name, "title": title}
    made = head | object_of(root, shapes)
    return with_envelope(made | {"$defs": {key: object_of(shape, shapes) for shape, key in shapes.items()}})


def with_envelope(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a document with what every document begins with (endings/render/envelope.py)."""
    facts = envelope(schema["$id"])
    begins = object_of(Head, {})
    shared = {"schema": {"const": schema["$id"]}, "kind": {}, "version": {}} | begins["properties"]
    shared |= {"kind": {"const": facts["kind"]}, "version": {"const": facts["version"]}}
    own = {name: each for name, each in schema["properties"].items() if name not in shared}
    required = [*shared, *(name for name in schema["required"] if name not in shared)]
    return schema | {"required": required, "properties": shared | own}


def other_documents() -> dict[Path, str]:
    """Return the schemas that are written by hand, with the envelope of this version."""
    made = {}
    for path in sorted((ROOT / "docs").glob("*.schema.json")):
        schema = json.loads(path.read_text())
        if "schema" in schema["properties"] and schema["$id"] not in MADE:
            made[path] = pretty(with_envelope(schema)) + "\n"
    return made


def rollout_schema() -> dict[str, Any]:
    """Return the schema of `lastcall/rollout/v1`: every shape of its module is a definition, named as fields are."""
    shapes = {
        key[0].lower() + key[1:]: shape
        for key, shape in vars(rollout).items()
        if is_shape(shape) and shape not in (rollout.Rollout, Head) and not key.startswith("_")
    }
    return document_schema(rollout.Rollout, ROLLOUT_TITLE, shapes)


def ending_schema() -> dict[str, Any]:
    """Return `lastcall/ending/v1` with the facts of each kind.

    None is required: records of older versions may have less.
    """
    schema = document_schema(Document, "How Pods ended", DEFINITIONS)
    known = all_kinds()
    schema["$defs"]["record"]["allOf"] = [
        {
            "if": {"properties": {"kind": {"const": kind}}},
            "then": {"properties": {"facts": {"$ref": f"#/$defs/facts.{kind}"}}},
        }
        for kind in known
    ]
    schema["$defs"] |= {f"facts.{kind}": object_of(shape, {}, closed=False) for kind, shape in known.items()}
    return schema


# -- lastcall/rollout/v1


def causes_text() -> str:
    lines = ["| cause | causeId | means | fix |", "|---|---|---|---|"]
    for cause, id_ in CAUSE_IDS.items():
        lines.append(f"| `{cause}` | `{id_}` | {cell(CATALOGUE[id_].title)} | {cell(CATALOGUE[id_].remedy)} |")
    return "\n".join(lines)


# -- JSON that people read


def pretty(value: Any, depth: int = 0, taken: int = 0) -> str:
    """Return JSON with what is short on one line. `taken` characters stand before it on its line."""
    flat, inner = json.dumps(value, ensure_ascii=False), "  " * (depth + 1)
    if 2 * depth + taken + len(flat) < WIDTH or not isinstance(value, dict | list) or not value:
        return flat
    if isinstance(value, dict):
        rows = [inner + f"{json.dumps(key)}: {pretty(each, depth + 1, len(key) + 4)}" for key, each in value.items()]
    elif all(isinstance(each, str) for each in value):
        return "[\n" + "\n".join(filled(value, inner)) + f"\n{inner[2:]}]"
    else:
        rows = [inner + pretty(each, depth + 1) for each in value]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    return f"{begin}\n" + ",\n".join(rows) + f"\n{inner[2:]}{end}"


def filled(texts: list[str], indent: str) -> list[str]:
    """Fill lines with as many texts as there is room for."""
    lines = [indent]
    for number, text in enumerate(texts):
        piece = json.dumps(text, ensure_ascii=False) + ("," if number < len(texts) - 1 else "")
        if lines[-1] == indent:
            lines[-1] += piece
        elif len(lines[-1]) + 1 + len(piece) <= WIDTH:
            lines[-1] += f" {piece}"
        else:
            lines.append(indent + piece)
    return lines


def files() -> dict[Path, str]:
    """Map each path to what it should hold."""
    docs = ROOT / "docs"
    text = (docs / "ending-v1.md").read_text()
    text = with_part(text, "records", records_text())
    text = with_part(text, "findings", findings_text())
    return other_documents() | {
        ROOT / "src/lastcall/records/kinds.py": kinds_module(),
        docs / "ending-v1.schema.json": pretty(ending_schema()) + "\n",
        docs / "ending-v1.md": text,
        docs / "rollout-v1.schema.json": pretty(rollout_schema()) + "\n",
        docs / "rollout-v1.md": with_part((docs / "rollout-v1.md").read_text(), "causes", causes_text()),
    }


def main(arguments: list[str]) -> int:
    made = files()
    stale = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
        if "--check" not in arguments:
            path.write_text(made[path])
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
