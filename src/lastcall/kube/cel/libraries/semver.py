"""Semantic versions (apiserver pkg/cel/library/semverlib.go)."""

import re
from collections.abc import Callable
from dataclasses import field
from typing import ClassVar

from lastcall.kube.api.field import go_quote
from lastcall.kube.api.text.numbers import NumberError, parse_uint
from lastcall.kube.cel.libraries.library import Library, declared
from lastcall.kube.cel.libraries.measures import always, first_traversed, for_all, one, read_once
from lastcall.kube.cel.values import EvaluationError
from lastcall.world.dataclass import dataclass

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

NUMERIC, WORD = re.compile(r"[0-9]*\Z", re.ASCII), re.compile(r"[0-9A-Za-z-]*\Z", re.ASCII)
FIELDS = ("Major", "Minor", "Patch")


@dataclass(frozen=True, slots=True)
class Semver:
    """A semantic version; what follows the plus sign does not count in comparisons (blang/semver v4)."""

    numbers: tuple[int, int, int]
    release: tuple[int | str, ...] = ()
    build: tuple[str, ...] = field(default=(), compare=False)
    cel_type: ClassVar[str] = "kubernetes.Semver"
    cel_unit: ClassVar[bool] = True


def number(text: str, name: str) -> int:
    if not NUMERIC.match(text):
        raise EvaluationError(f"Invalid character(s) found in {name.lower()} number {go_quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise EvaluationError(f"{name} number must not contain leading zeroes {go_quote(text)}")
    return unsigned(text)


def unsigned(text: str) -> int:
    try:
        return parse_uint(text)
    except NumberError as error:
        raise EvaluationError(str(error)) from None


def read(text: str) -> Semver:
    if not text:
        raise EvaluationError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise EvaluationError("No Major.Minor.Patch elements found")
    rest, plus, build = parts[2].partition("+")
    patch, minus, release = rest.partition("-")
    numbers = (number(parts[0], FIELDS[0]), number(parts[1], FIELDS[1]), number(patch, FIELDS[2]))
    return Semver(
        numbers,
        tuple(release_part(part) for part in release.split(".")) if minus else (),
        tuple(build_part(part) for part in build.split(".")) if plus else (),
    )


def release_part(text: str) -> int | str:
    if not text:
        raise EvaluationError("Prerelease is empty")
    if NUMERIC.match(text):
        if len(text) > 1 and text[0] == "0":
            raise EvaluationError(f"Numeric PreRelease version must not contain leading zeroes {go_quote(text)}")
        return unsigned(text)
    if not WORD.match(text):
        raise EvaluationError(f"Invalid character(s) found in prerelease {go_quote(text)}")
    return text


def build_part(text: str) -> str:
    if not text:
        raise EvaluationError("Build meta data is empty")
    if not WORD.match(text):
        raise EvaluationError(f"Invalid character(s) found in build meta data {go_quote(text)}")
    return text


def normalized(text: str) -> str:
    """Remove the `v` and leading zeros, and write all three numbers (apiserver pkg/cel/library/semverlib.go)."""
    parts = [without_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3 and ("+" in parts[-1] or "-" in parts[-1]):
        raise EvaluationError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, "0", "0"][: max(3, len(parts))])


def without_zeros(part: str) -> str:
    if len(part) < 2:
        return part
    rest = part.lstrip("0")
    return rest if rest and rest[0] in "0123456789" else f"0{rest}"


def read_as(text: str, normalize: bool) -> Semver:
    return read(normalized(text) if normalize else text)


def is_semver(text: str, normalize: bool = False) -> bool:
    try:
        read_as(text, normalize)
    except EvaluationError:
        return False
    return True


def compare(left: Semver, right: Semver) -> int:
    if left.numbers != right.numbers:
        return -1 if left.numbers < right.numbers else 1
    if not left.release or not right.release:
        return bool(right.release) - bool(left.release) if left.release != right.release else 0
    ours = [(isinstance(part, str), part) for part in left.release]
    theirs = [(isinstance(part, str), part) for part in right.release]
    return 0 if ours == theirs else -1 if ours < theirs else 1


IMPLEMENTATIONS: dict[str, Callable[..., object]] = {
    "string_to_semver": read,
    "string_bool_to_semver": read_as,
    "is_semver_string": is_semver,
    "is_semver_string_bool": is_semver,
    "semver_is_greater_than": lambda left, right: compare(left, right) > 0,
    "semver_is_less_than": lambda left, right: compare(left, right) < 0,
    "semver_compare_to": compare,
    "semver_major": lambda version: version.numbers[0],
    "semver_minor": lambda version: version.numbers[1],
    "semver_patch": lambda version: version.numbers[2],
}
READS = ("string_to_semver", "string_bool_to_semver", "is_semver_string", "is_semver_string_bool")
LIBRARY = Library(
    "semver",
    declared(ROWS),
    implementations=IMPLEMENTATIONS,
    costs={**for_all(IMPLEMENTATIONS, one), **for_all(READS, first_traversed())},
    estimates={**dict.fromkeys(IMPLEMENTATIONS, always(1)), **dict.fromkeys(READS, read_once())},
)
