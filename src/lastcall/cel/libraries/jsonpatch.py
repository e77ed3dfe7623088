"""Paths of JSON patches (apiserver pkg/cel/library/jsonpatch.go)."""

from lastcall.cel.libraries.library import Library, declared

ROWS = """
jsonpatch.escapeKey  string_jsonpatch_escapeKey_string  (string) -> string
"""

LIBRARY = Library("jsonpatch", declared(ROWS))
