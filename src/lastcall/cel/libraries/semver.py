"""Semantic versions (apiserver pkg/cel/library/semverlib.go)."""

from lastcall.cel.libraries.library import Library, declared

ROWS = """
semver         string_to_semver        (string) -> Semver
semver         string_bool_to_semver   (string, bool) -> Semver
isSemver       is_semver_string        (string) -> bool
isSemver       is_semver_string_bool   (string, bool) -> bool
isGreaterThan  semver_is_greater_than  Semver.(Semver) -> bool
isLessThan     semver_is_less_than     Semver.(Semver) -> bool
compareTo      semver_compare_to       Semver.(Semver) -> int
major          semver_major            Semver.() -> int
minor          semver_minor            Semver.() -> int
patch          semver_patch            Semver.() -> int
"""

LIBRARY = Library("semver", declared(ROWS))
