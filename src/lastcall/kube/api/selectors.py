"""Label selectors and field selectors.

Sources: apimachinery pkg/labels/selector.go (lexer, parser and its messages), pkg/fields/selector.go, and the field
label conversions of pkg/apis/core/v1/conversion.go.
"""

# check: pure

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, cast

from lastcall.kube.api import errors
from lastcall.kube.api.custom.kinds import CustomResource
from lastcall.kube.api.field import FieldError, go_quote, invalid
from lastcall.kube.api.meta import AnyObject, Object, name_of, namespace_of
from lastcall.kube.api.names import is_label_value, is_qualified_name
from lastcall.kube.api.resources import Resource
from lastcall.kube.api.text.numbers import int_of
from lastcall.world.dataclass import dataclass

Operator = Literal["=", "==", "!=", "in", "notin", "exists", "!", "gt", "lt"]


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on the labels; `values` is sorted."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "in" | "=" | "==":
                return value is not None and value in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
            case "!=" | "notin":
                return value is None or value not in self.values
        left, right = int_of(value), int_of(self.values[0])
        if left is None or right is None:
            return False
        return left > right if self.operator == "gt" else left < right

    def __str__(self) -> str:
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({','.join(self.values)})"
            case "gt" | "lt":
                return f"{self.key}{'>' if self.operator == 'gt' else '<'}{self.values[0]}"
        return f"{self.key}{self.operator}{self.values[0]}"


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """A selector whose requirements must all hold. Without any it selects everything; with `nothing`, no object."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        if self.nothing:
            return False
        present = labels or {}
        for requirement in self.requirements:  # noqa: SIM110 (asked for every Pod of an owner in every sync)
            if not requirement.matches(present):
                return False
        return True

    @property
    def empty(self) -> bool:
        """Return True when it selects everything."""
        return not self.requirements and not self.nothing

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)


NOTHING = LabelSelector(nothing=True)


class _ParseError(Exception):
    """The selector cannot be read; the message is Kubernetes's."""


_SPECIAL = "=!(),><"
_SYMBOLS = {")", ",", "(", "=", "==", "!=", "!", ">", "<"}
_KEYWORDS = {"in", "notin"}
_BINARY_OPERATORS = "in, notin, =, ==, !=, gt, lt"


def _tokens(text: str) -> list[tuple[str, str]]:
    """(kind, literal); the kind of a name is `identifier`, the last is `end of string`."""
    tokens: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char in " \t\r\n":
            at += 1
        elif char in _SPECIAL:
            # The longest known symbol of the run of special characters (labels.Lexer.scanSpecialSymbol).
            symbol = text[at : at + 2] if text[at : at + 2] in _SYMBOLS else char
            tokens.append((symbol, symbol))
            at += len(symbol)
        else:
            end = at
            while end < len(text) and text[end] not in _SPECIAL and text[end] not in " \t\r\n":
                end += 1
            word = text[at:end]
            tokens.append((word if word in _KEYWORDS else "identifier", word))
            at = end
    tokens.append(("end of string", ""))
    return tokens


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._at = 0

    def _look(self, *, values: bool = False) -> tuple[str, str]:
        kind, literal = self._tokens[self._at]
        # Where a value is expected, keywords are plain words.
        return ("identifier", literal) if values and kind in _KEYWORDS else (kind, literal)

    def _take(self, *, values: bool = False) -> tuple[str, str]:
        found = self._look(values=values)
        if found[0] != "end of string":
            self._at += 1
        return found

    def parse(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        while True:
            kind, literal = self._look(values=True)
            if kind in ("identifier", "!"):
                try:
                    requirements.append(self._requirement())
                except _ParseError as error:
                    raise _ParseError(f"unable to parse requirement: {error}") from None
                kind, literal = self._take()
                if kind == "end of string":
                    return requirements
                if kind != ",":
                    raise _ParseError(f"found '{literal}', expected: ',' or 'end of string'")
                kind, literal = self._look(values=True)
                if kind not in ("identifier", "!"):
                    raise _ParseError(f"found '{literal}', expected: identifier after ','")
            elif kind == "end of string":
                return requirements
            else:
                raise _ParseError(f"found '{literal}', expected: !, identifier, or 'end of string'")

    def _requirement(self) -> Requirement:
        kind, literal = self._take(values=True)
        absent = kind == "!"
        if absent:
            kind, literal = self._take(values=True)
        if kind != "identifier":
            raise _ParseError(f"found '{literal}', expected: identifier")
        key = literal
        _raise_first(_key_errors(key))
        if self._look(values=True)[0] in ("end of string", ",") or absent:
            return Requirement(key, "!" if absent else "exists")
        operator, literal = self._take()
        if operator not in ("in", "notin", "=", "==", "!=", ">", "<"):
            raise _ParseError(f"found '{literal}', expected: {_BINARY_OPERATORS}")
        values = self._values() if operator in _KEYWORDS else [self._exact_value()]
        named = cast(Operator, {">": "gt", "<": "lt"}.get(operator, operator))
        _raise_first(_value_errors(key, named, values))
        return Requirement(key, named, tuple(sorted(dict.fromkeys(values))))

    def _exact_value(self) -> str:
        kind, literal = self._look(values=True)
        if kind in ("end of string", ","):
            return ""
        self._take(values=True)
        if kind != "identifier":
            raise _ParseError(f"found '{literal}', expected: identifier")
        return literal

    def _values(self) -> list[str]:
        kind, literal = self._take(values=True)
        if kind != "(":
            raise _ParseError(f"found '{literal}' expected: '('")
        kind, literal = self._look(values=True)
        if kind == ")":
            self._take(values=True)
            return [""]
        if kind not in ("identifier", ","):
            raise _ParseError(f"found '{literal}', expected: ',', ')' or identifier")
        values: list[str] = []
        while True:
            kind, literal = self._take(values=True)
            if kind == "identifier":
                values.append(literal)
                kind, literal = self._look(values=True)
                if kind == ",":
                    continue
                if kind == ")":
                    break
                raise _ParseError(f"found '{literal}', expected: ',' or ')'")
            if kind == ",":
                if not values:
                    values.append("")
                kind, literal = self._look(values=True)
                if kind == ")":
                    values.append("")
                    break
                if kind == ",":
                    self._take(values=True)
                    values.append("")
            else:
                raise _ParseError(f"found '{literal}', expected: ',', or identifier")
        self._take(values=True)
        return values


def _raise_first(problems: list[FieldError]) -> None:
    if problems:
        texts = [str(problem) for problem in problems]
        raise _ParseError(texts[0] if len(texts) == 1 else "[" + ", ".join(dict.fromkeys(texts)) + "]")


def _key_errors(key: str) -> list[FieldError]:
    return [invalid("<nil>", key, problem) for problem in is_qualified_name(key)]


def _value_errors(key: str, operator: Operator, values: list[str]) -> list[FieldError]:
    found: list[FieldError] = []
    for index, value in enumerate(values):
        if operator in ("gt", "lt") and int_of(value) is None:
            found.append(invalid(f"values[{index}]", value, "for 'Gt', 'Lt' operators, the value must be an integer"))
        found += [invalid(f"values[{index}][{key}]", value, problem) for problem in is_label_value(value)]
    return found


def parse_label_selector(text: str) -> LabelSelector:
    """Parse `a=b,c in (d,e),!f`. Raises the 400 StatusError in Kubernetes's words."""
    try:
        return LabelSelector(tuple(sorted(_Parser(text).parse(), key=lambda requirement: requirement.key)))
    except _ParseError as error:
        raise errors.bad_request(str(error)) from None


def selector_of_labels(labels: Mapping[str, str] | None) -> LabelSelector:
    """Return all these labels: `Service.spec.selector`. An empty or absent map selects nothing."""
    if not labels:
        return NOTHING
    return LabelSelector(tuple(Requirement(key, "=", (labels[key],)) for key in sorted(labels)))


_SET_OPERATORS: dict[str, Operator] = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


def selector_of_expressions(selector: AnyObject | None) -> LabelSelector:
    """Return a `metav1.LabelSelector` (`matchLabels`, `matchExpressions`). None selects nothing, an empty one
    everything.

    Raises ValueError for an unknown operator; validation refuses those earlier.
    (`metav1.LabelSelectorAsSelector`)
    """
    if selector is None:
        return NOTHING
    labels = selector.get("matchLabels") or {}
    requirements = [Requirement(key, "=", (labels[key],)) for key in sorted(labels)]
    for expression in selector.get("matchExpressions") or ():
        operator = _SET_OPERATORS.get(expression.get("operator", ""))
        if operator is None:
            raise ValueError(f"{go_quote(expression.get('operator', ''))} is not a valid label selector operator")
        requirements.append(
            Requirement(expression.get("key") or "", operator, tuple(sorted(expression.get("values") or ())))
        )
    return LabelSelector(tuple(requirements))


FieldGetter = Callable[[Object], str]


def _path(*keys: str, default: str = "") -> FieldGetter:
    def get(obj: Object) -> str:
        value: Any = obj
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if value is None:
            return default
        return ("true" if value else "false") if isinstance(value, bool) else str(value)

    return get


def _event_source(obj: Object) -> str:
    """`source.component`, or the reporter in the new form. (`event/strategy.go:ToSelectableFields`)"""
    component = (obj.get("source") or obj.get("deprecatedSource") or {}).get("component")
    return component or obj.get("reportingComponent") or obj.get("reportingController") or ""


def _involved(key: str) -> FieldGetter:
    """Core and events.k8s.io events are one storage: either field name may be stored."""

    def get(obj: Object) -> str:
        return str((obj.get("involvedObject") or obj.get("regarding") or {}).get(key) or "")

    return get


_EVENT_KEYS = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_EVERY: dict[str, FieldGetter] = {"metadata.name": name_of, "metadata.namespace": namespace_of}


def _event_fields(prefix: str, component: str) -> dict[str, FieldGetter]:
    fields = {f"{prefix}.{key}": _involved(key) for key in _EVENT_KEYS}
    reporting = _path("reportingComponent"), _path("reportingController")
    return {
        **fields,
        "reason": _path("reason"),
        component: lambda obj: reporting[0](obj) or reporting[1](obj),
        "source": _event_source,
        "type": _path("type"),
    }


def _pod_ips(obj: Object) -> str:
    return " ".join(entry.get("ip", "") for entry in (obj.get("status") or {}).get("podIPs") or ())


FIELDS: dict[tuple[str, str], dict[str, FieldGetter]] = {
    ("", "pods"): {
        "spec.nodeName": _path("spec", "nodeName"),
        "spec.host": _path("spec", "nodeName"),
        "spec.restartPolicy": _path("spec", "restartPolicy"),
        "spec.schedulerName": _path("spec", "schedulerName"),
        "spec.serviceAccountName": _path("spec", "serviceAccountName"),
        "spec.hostNetwork": _path("spec", "hostNetwork", default="false"),
        "status.phase": _path("status", "phase"),
        "status.podIP": _path("status", "podIP"),
        "status.podIPs": _pod_ips,
        "status.nominatedNodeName": _path("status", "nominatedNodeName"),
    },
    ("", "events"): _event_fields("involvedObject", "reportingComponent"),
    ("events.k8s.io", "events"): _event_fields("regarding", "reportingController"),
    ("", "nodes"): {"spec.unschedulable": _path("spec", "unschedulable", default="false")},
    ("", "namespaces"): {"status.phase": _path("status", "phase")},
    ("", "secrets"): {"type": _path("type")},
    ("", "replicationcontrollers"): {"status.replicas": _path("status", "replicas", default="0")},
    ("batch", "jobs"): {"status.successful": _path("status", "succeeded", default="0")},
    ("certificates.k8s.io", "certificatesigningrequests"): {"spec.signerName": _path("spec", "signerName")},
    ("networking.k8s.io", "ipaddresses"): {
        f"spec.parentRef.{name}": _path("spec", "parentRef", name)
        for name in ("group", "resource", "namespace", "name")
    },
    ("resource.k8s.io", "resourceslices"): {
        "spec.nodeName": _path("spec", "nodeName"),
        "spec.driver": _path("spec", "driver"),
    },
    ("", "services"): {"spec.clusterIP": _path("spec", "clusterIP"), "spec.type": _path("spec", "type")},
}
"""Field labels besides metadata.name and metadata.namespace, by group and plural."""


class FieldTerm(NamedTuple):
    """`operator` is `=` or `!=`."""

    label: str
    operator: Literal["=", "!="]
    value: str


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """All terms must hold. Iterating gives the terms."""

    terms: tuple[FieldTerm, ...]
    getters: Mapping[str, FieldGetter]

    def matches(self, obj: Object) -> bool:
        # Not all() of a generator, which costs twice as much where there is one term.
        for term in self.terms:  # noqa: SIM110
            if (self.getters[term.label](obj) == term.value) is not (term.operator == "="):
                return False
        return True

    def __iter__(self) -> Iterator[FieldTerm]:
        return iter(self.terms)

    def exact(self, label: str) -> str | None:
        """Return the value that this label must have, None if the selector leaves it open. (`RequiresExactMatch`)"""
        return next((term.value for term in self.terms if term.label == label and term.operator == "="), None)


def _split_unescaped(text: str) -> list[str]:
    """At commas that no backslash escapes."""
    parts, start, at = [], 0, 0
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == ",":
            parts.append(text[start:at])
            start = at + 1
        at += 1
    return [*parts, text[start:]]


def _unescape(value: str) -> str:
    if re.search(r"(?<!\\)(?:\\\\)*=", value):
        raise _ParseError(f"invalid field selector: unescaped character in value: {value}")
    out = re.sub(r"\\([\\,=])", r"\1", value)
    if re.search(r"(?<!\\)(?:\\\\)*\\(?![\\,=])", value):
        raise _ParseError(f"invalid field selector: invalid escape sequence: {value}")
    return out


_OWN_TEXTS = {
    ("batch", "jobs"): "field label {quoted} not supported for Job",
    ("resource.k8s.io", "resourceslices"): (
        "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {label}"
    ),
}
"""Kinds whose conversion of field labels says it in its own words."""
_GENERIC_TEXT = frozenset({("networking.k8s.io", "ipaddresses")})
"""Kinds with field labels of their own, and none that converts them."""
_WITHOUT_NAMESPACE = frozenset(
    {
        ("", "nodes"),
        ("", "namespaces"),
        ("certificates.k8s.io", "certificatesigningrequests"),
        ("resource.k8s.io", "resourceslices"),
    }
)
"""Kinds of the cluster that convert field labels themselves; all others of the cluster know `metadata.namespace`."""


def parse_field_selector(resource: Resource, text: str) -> FieldSelector:
    """Parse `spec.nodeName=x,status.phase!=Running`. Raises the 400 StatusError in Kubernetes's words."""
    special = FIELDS.get((resource.group, resource.plural), {})
    if isinstance(resource, CustomResource):
        special = {path[1:]: _path(*path[1:].split(".")) for path in resource.selectable}
    getters = {**_EVERY, **special}
    if (resource.group, resource.plural) in _WITHOUT_NAMESPACE:
        del getters["metadata.namespace"]
    terms = field_terms(text)
    for term in terms:
        if term.label not in getters:
            key = (resource.group, resource.plural)
            if key in _OWN_TEXTS:
                raise errors.bad_request(_OWN_TEXTS[key].format(label=term.label, quoted=go_quote(term.label)))
            if special and key not in _GENERIC_TEXT:
                raise errors.bad_request(f"field label not supported: {term.label}")
            known = ", ".join(go_quote(known_label) for known_label in sorted(_EVERY))
            raise errors.bad_request(f"{go_quote(term.label)} is not a known field selector: only {known}")
    return FieldSelector(terms, getters)


def escaped_field_value(value: str) -> str:
    """Return a value as it is written in a field selector. (`EscapeValue`)"""
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")


def field_terms(text: str) -> tuple[FieldTerm, ...]:
    """Return the terms of a field selector, whether its labels are known or not. Raises the 400 StatusError."""
    terms: list[FieldTerm] = []
    for part in _split_unescaped(text):
        if not part:
            continue
        match = re.match(r"(.*?)(!=|==|=)(.*)", part, re.DOTALL)
        if match is None:
            raise errors.bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        label, operator, value = match.groups()
        try:
            value = _unescape(value)
        except _ParseError as error:
            raise errors.bad_request(str(error)) from None
        terms.append(FieldTerm(label, "!=" if operator == "!=" else "=", value))
    return tuple(terms)
