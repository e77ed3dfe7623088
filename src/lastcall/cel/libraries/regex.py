"""Find what a regular expression matches (apiserver pkg/cel/library/regex.go)."""

from lastcall.cel.libraries.library import Library, declared

ROWS = """
find     string_find_string          string.(string) -> string
findAll  string_find_all_string      string.(string) -> list(string)
findAll  string_find_all_string_int  string.(string, int) -> list(string)
"""

LIBRARY = Library("regex", declared(ROWS))
