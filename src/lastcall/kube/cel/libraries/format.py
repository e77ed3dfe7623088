"""Named formats of strings (apiserver pkg/cel/library/format.go)."""

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, ClassVar

from lastcall.kube.api.custom.values import FORMATS
from lastcall.kube.api.names import (
    for_prefix,
    is_dns1035_label,
    is_dns1123_label,
    is_dns1123_subdomain,
    is_label_value,
    is_qualified_name,
)
from lastcall.kube.cel.bounds import Bounds, Operand
from lastcall.kube.cel.libraries.library import Library, declared
from lastcall.kube.cel.libraries.measures import PATTERN, TRAVERSAL, always, matching, one
from lastcall.kube.cel.libraries.url import request_error
from lastcall.kube.cel.values import NONE, Optional
from lastcall.world.dataclass import dataclass

ROWS = """
format.dns1123Label            format.dns1123Label            () -> NamedFormat
format.dns1123Subdomain        format.dns1123Subdomain        () -> NamedFormat
format.dns1035Label            format.dns1035Label            () -> NamedFormat
format.qualifiedName           format.qualifiedName           () -> NamedFormat
format.dns1123LabelPrefix      format.dns1123LabelPrefix      () -> NamedFormat
format.dns1123SubdomainPrefix  format.dns1123SubdomainPrefix  () -> NamedFormat
format.dns1035LabelPrefix      format.dns1035LabelPrefix      () -> NamedFormat
format.labelValue              format.labelValue              () -> NamedFormat
format.uri                     format.uri                     () -> NamedFormat
format.uuid                    format.uuid                    () -> NamedFormat
format.byte                    format.byte                    () -> NamedFormat
format.date                    format.date                    () -> NamedFormat
format.datetime                format.datetime                () -> NamedFormat
validate                       format-validate                NamedFormat.(string) -> optional_type(list(string))
format.named                   format-named                   (string) -> optional_type(NamedFormat)
"""

MAX_PATTERN = 128
"""Characters of a format's regular expression, for estimates (apiserver pkg/cel/limits.go)."""


@dataclass(frozen=True, slots=True)
class NamedFormat:
    """`pattern_size` is the length of the regular expression that costs count."""

    name: str
    check: Callable[[str], list[str]] = field(compare=False)
    pattern_size: int = field(compare=False)
    cel_type: ClassVar[str] = "kubernetes.NamedFormat"
    cel_unit: ClassVar[bool] = True


def valid(name: str, problem: str) -> Callable[[str], list[str]]:
    return lambda text: [] if FORMATS[name](text) else [problem]


def uri(text: str) -> list[str]:
    error = request_error(text)
    return [error] if error else []


NAMED = {
    "dns1123Label": NamedFormat("DNS1123Label", is_dns1123_label, 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", is_dns1123_subdomain, 60),
    "dns1035Label": NamedFormat("DNS1035Label", is_dns1035_label, 30),
    "qualifiedName": NamedFormat("QualifiedName", is_qualified_name, 60),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", for_prefix(is_dns1123_label), 30),
    "dns1123SubdomainPrefix": NamedFormat("DNS1123SubdomainPrefix", for_prefix(is_dns1123_subdomain), 60),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", for_prefix(is_dns1035_label), 30),
    "labelValue": NamedFormat("LabelValue", is_label_value, 40),
    "uri": NamedFormat("URI", uri, 1103),
    "uuid": NamedFormat("uuid", valid("uuid", "does not match the UUID format"), 70),
    "byte": NamedFormat("byte", valid("byte", "invalid base64"), 84),
    "date": NamedFormat("date", valid("date", "invalid date"), 71),
    "datetime": NamedFormat("datetime", valid("date-time", "invalid datetime"), 71),
}


def named(name: str) -> Optional:
    found = NAMED.get(name)
    return Optional(found) if found else NONE


def validate(form: NamedFormat, text: str) -> Optional:
    problems = form.check(text)
    return Optional(problems) if problems else NONE


def constant(form: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: form


def validate_cost(arguments: Sequence[Any]) -> int:
    return matching(arguments[1], arguments[0].pattern_size)


def validate_estimate(operands: Sequence[Operand]) -> tuple[Bounds, Bounds | None]:
    return operands[1].size.times(TRAVERSAL).times(MAX_PATTERN * PATTERN), None


LIBRARY = Library(
    "format",
    declared(ROWS),
    implementations={
        **{f"format.{name}": constant(form) for name, form in NAMED.items()},
        "format-named": named,
        "format-validate": validate,
    },
    costs={"format-named": one, "format-validate": validate_cost},
    estimates={"format-named": always(1), "format-validate": validate_estimate},
)
