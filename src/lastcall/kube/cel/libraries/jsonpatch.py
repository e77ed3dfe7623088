"""Paths of JSON patches (apiserver pkg/cel/library/jsonpatch.go)."""

from collections.abc import Callable

from lastcall.kube.cel.libraries.library import Library, declared
from lastcall.kube.cel.libraries.measures import first_traversed, read_once

ROWS = """
jsonpatch.escapeKey  string_jsonpatch_escapeKey_string  (string) -> string
"""

IMPLEMENTATIONS: dict[str, Callable[..., object]] = {
    "string_jsonpatch_escapeKey_string": lambda key: key.replace("~", "~0").replace("/", "~1"),
}
LIBRARY = Library(
    "jsonpatch",
    declared(ROWS),
    implementations=IMPLEMENTATIONS,
    costs={"string_jsonpatch_escapeKey_string": first_traversed()},
    estimates={"string_jsonpatch_escapeKey_string": read_once(same_size=True)},
)
