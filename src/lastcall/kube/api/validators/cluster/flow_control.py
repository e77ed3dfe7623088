"""FlowSchemas and PriorityLevelConfigurations.

Source: pkg/apis/flowcontrol/validation/validation.go, apiserver pkg/util/shufflesharding.
"""

from collections.abc import Iterable
from typing import Any

from lastcall.kube.api.field import FieldError, duplicate, each, forbidden, invalid, not_supported, required
from lastcall.kube.api.meta import Object, name_of
from lastcall.kube.api.names import is_dns1123_label, is_dns1123_subdomain
from lastcall.kube.api.validators.cluster.flow_control_objects import FIXED_LEVELS, FIXED_SCHEMAS
from lastcall.kube.api.validators.kind_rules import KindRules

HIGHEST_PRECEDENCE = 10000
MOST_QUEUES = 10_000_000
HASH_BITS = 60
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_METHODS = ("ByNamespace", "ByUser")
_SUBJECTS = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
EXEMPT = "exempt"


def validate_flow_schema(schema: Object) -> list[FieldError]:
    spec, name = schema.get("spec") or {}, name_of(schema)
    precedence = spec.get("matchingPrecedence") or 0
    path = "spec.matchingPrecedence"
    errors: list[FieldError] = []
    if precedence <= 0:
        errors.append(invalid(path, precedence, "must be a positive value"))
    if precedence > HIGHEST_PRECEDENCE:
        errors.append(invalid(path, precedence, f"must not be greater than {HIGHEST_PRECEDENCE}"))
    if precedence == 1 and name != EXEMPT:
        errors.append(invalid(path, 1, "only the schema named 'exempt' may have matchingPrecedence 1"))
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type") not in _METHODS:
        shown = {"Type": method.get("type", "")}  # the internal type's name
        errors.append(not_supported("spec.distinguisherMethod.type", shown, _METHODS))
    level = (spec.get("priorityLevelConfiguration") or {}).get("name") or ""
    if level:
        errors += each("spec.priorityLevelConfiguration.name", level, is_dns1123_subdomain(level))
    else:
        errors.append(required("spec.priorityLevelConfiguration.name", "must reference a priority level"))
    for index, rule in enumerate(spec.get("rules") or ()):
        errors += _policy_rule(rule, f"spec.rules[{index}]")
    if name in FIXED_SCHEMAS and _content(spec) != FIXED_SCHEMAS[name]:
        errors.append(invalid("spec", spec, f"spec of '{name}' must equal the fixed value"))
    return errors + _conditions(schema)


def _content(spec: Object) -> Object:
    return {key: value for key, value in spec.items() if value not in (None, [], {})}


def _policy_rule(rule: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, subject in enumerate(rule.get("subjects") or ()):
        errors += _subject(subject, f"{path}.subjects[{index}]")
    if not rule.get("subjects"):
        errors.append(required(f"{path}.subjects", "subjects must contain at least one value"))
    resources, others = rule.get("resourceRules") or [], rule.get("nonResourceRules") or []
    if not resources and not others:
        errors.append(required(path, "at least one of resourceRules and nonResourceRules has to be non-empty"))
    for index, each_rule in enumerate(resources):
        errors += _resource_rule(each_rule, f"{path}.resourceRules[{index}]")
    for index, each_rule in enumerate(others):
        errors += _non_resource_rule(each_rule, f"{path}.nonResourceRules[{index}]")
    return errors


def _subject(subject: Object, path: str) -> list[FieldError]:
    kind = subject.get("kind") or ""
    if kind not in _SUBJECTS:
        return [not_supported(f"{path}.kind", kind, _SUBJECTS)]
    own = _SUBJECTS[kind]
    about, at = subject.get(own), f"{path}.{own}"
    errors: list[FieldError] = []
    if about is None:
        errors.append(required(at, f"{own} is required when subject kind is '{kind}'"))
    else:
        name = about.get("name") or ""
        if not name:
            errors.append(required(f"{at}.name"))
        elif kind == "ServiceAccount" and name != "*":
            errors += each(f"{at}.name", name, is_dns1123_subdomain(name))
        if kind == "ServiceAccount":
            namespace = about.get("namespace") or ""
            if namespace:
                errors += each(f"{at}.namespace", namespace, is_dns1123_label(namespace))
            else:
                errors.append(required(f"{at}.namespace", "must specify namespace for service account"))
    for other_kind in ("ServiceAccount", "User", "Group"):
        other = _SUBJECTS[other_kind]
        if other != own and subject.get(other) is not None:
            why = f"{other} is forbidden when subject kind is not '{other_kind}'"
            errors.append(forbidden(f"{path}.{other}", why))
    return errors


def _verbs(rule: Object, path: str) -> list[FieldError]:
    verbs = rule.get("verbs") or []
    if not verbs:
        return [required(f"{path}.verbs", "verbs must contain at least one value")]
    if "*" in verbs:
        return _alone(verbs, f"{path}.verbs", "verbs")
    if set(verbs) <= set(_VERBS):
        return []
    return [not_supported(f"{path}.verbs", verbs, _VERBS)]


def _alone(values: list[Any], path: str, what: str) -> list[FieldError]:
    if len(values) > 1 and "*" in values:
        return [invalid(path, values, f"if '*' is present, must not specify other {what}")]
    return []


def _resource_rule(rule: Object, path: str) -> list[FieldError]:
    errors = _verbs(rule, path)
    for key, what, one in (("apiGroups", "api groups", "api group"), ("resources", "resources", "resource")):
        if not rule.get(key):
            errors.append(required(f"{path}.{key}", f"resource rules must supply at least one {one}"))
        else:
            errors += _alone(rule[key], f"{path}.{key}", what)
    namespaces = rule.get("namespaces") or []
    if not namespaces and not rule.get("clusterScope"):
        why = "resource rules that are not cluster scoped must supply at least one namespace"
        errors.append(required(f"{path}.namespaces", why))
    elif "*" in namespaces:
        errors += _alone(namespaces, f"{path}.namespaces", "namespaces")
    else:
        intro = "each member of this list must be '*' or a DNS-1123 label; "
        for index, namespace in enumerate(namespaces):
            problems = (intro + problem for problem in is_dns1123_label(namespace))
            errors += each(f"{path}.namespaces[{index}]", namespace, problems)
    return errors


def _non_resource_rule(rule: Object, path: str) -> list[FieldError]:
    errors = _verbs(rule, path)
    urls = rule.get("nonResourceURLs") or []
    at = f"{path}.nonResourceURLs"
    if not urls:
        return [*errors, required(at, "nonResourceURLs must contain at least one value")]
    if "*" in urls:
        return errors + _alone(urls, at, "non-resource URLs")
    for index, url in enumerate(urls):
        if problem := _url_problem(url):
            errors.append(invalid(f"{at}[{index}]", url, problem))
    return errors


def _url_problem(url: str) -> str:
    """(`ValidateNonResourceURLPath`)"""
    if not url:
        return "must not be empty"
    if not url.startswith("/"):
        return "must start with slash"
    if " " in url:
        return "must not contain white-space"
    if "//" in url:
        return "must not contain double slash"
    if "*" in url and (url.count("*") > 1 or not url.endswith("/*")):
        return "wildcard can only do suffix matching"
    return ""


def _conditions(obj: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, condition in enumerate((obj.get("status") or {}).get("conditions") or ()):
        path, kind = f"status.conditions[{index}].type", condition.get("type") or ""
        if kind in seen:
            errors.append(duplicate(path, kind))
        seen.add(kind)
        if not kind:
            errors.append(required(path))
    return errors


def update_status(new: Object, old: Object) -> list[FieldError]:
    """Check an update of a FlowSchema's status. (`ValidateFlowSchemaStatusUpdate`)"""
    return _conditions(new)


def validate_priority_level(level: Object) -> list[FieldError]:
    spec, name = level.get("spec") or {}, name_of(level)
    kind = spec.get("type") or ""
    errors: list[FieldError] = []
    if (name == EXEMPT) != (kind == "Exempt"):
        errors.append(invalid("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'"))
    limited, exempt = spec.get("limited"), spec.get("exempt")
    if kind == "Exempt":
        errors += _exempt(exempt or {})
        if limited is not None:
            errors.append(forbidden("spec.limited", "must be nil if the type is not Limited"))
    elif kind == "Limited":
        if exempt is not None:
            errors.append(forbidden("spec.exempt", "must be nil if the type is Limited"))
        errors += [required("spec.limited", "must not be empty when type is Limited")] if limited is None else []
        errors += [] if limited is None else _limited(limited)
    else:
        errors.append(not_supported("spec.type", kind, ("Exempt", "Limited")))
    if name in FIXED_LEVELS and name != EXEMPT and spec != FIXED_LEVELS[name]:
        errors.append(invalid("spec", spec, f"spec of '{name}' must equal the fixed value"))
    return errors + _conditions(level)


def _percent(value: int | None, path: str) -> list[FieldError]:
    if value is None or 0 <= value <= 100:
        return []
    return [invalid(path, value, "must be between 0 and 100, inclusive")]


def _exempt(exempt: Object) -> list[FieldError]:
    shares = exempt.get("nominalConcurrencyShares") or 0
    path = "spec.exempt.nominalConcurrencyShares"
    errors = [invalid(path, shares, "must be a non-negative integer")] if shares < 0 else []
    return errors + _percent(exempt.get("lendablePercent"), "spec.exempt.lendablePercent")


def _limited(limited: Object) -> list[FieldError]:
    path = "spec.limited"
    shares = limited.get("nominalConcurrencyShares") or 0
    errors: list[FieldError] = []
    if shares < 0:
        errors.append(invalid(f"{path}.nominalConcurrencyShares", shares, "must be a non-negative integer"))
    errors += _response(limited.get("limitResponse") or {}, f"{path}.limitResponse")
    errors += _percent(limited.get("lendablePercent"), f"{path}.lendablePercent")
    borrowed = limited.get("borrowingLimitPercent")
    if borrowed is not None and borrowed < 0:
        errors.append(
            invalid(f"{path}.borrowingLimitPercent", borrowed, "if specified, must be a non-negative integer")
        )
    return errors


def _response(response: Object, path: str) -> list[FieldError]:
    kind, queuing = response.get("type") or "", response.get("queuing")
    if kind == "Reject":
        why = "must be nil if limited.limitResponse.type is not Limited"
        return [] if queuing is None else [forbidden(f"{path}.queuing", why)]
    if kind == "Queue":
        if queuing is None:
            return [required(f"{path}.queuing", "must not be empty if limited.limitResponse.type is Limited")]
        return _queuing(queuing, f"{path}.queuing")
    return [not_supported(f"{path}.type", kind, ("Queue", "Reject"))]


def _queuing(queuing: Object, path: str) -> list[FieldError]:
    errors = list(_positive(queuing, path, ("queueLengthLimit", "queues")))
    queues, hand = queuing.get("queues") or 0, queuing.get("handSize") or 0
    if queues > MOST_QUEUES:
        errors.append(invalid(f"{path}.queues", queues, f"must not be greater than {MOST_QUEUES}"))
    at = f"{path}.handSize"
    if hand <= 0:
        errors.append(invalid(at, hand, "must be positive"))
    elif hand > queues:
        errors.append(invalid(at, hand, f"should not be greater than queues ({queues})"))
    elif (bits := entropy_bits(queues, hand)) > HASH_BITS:
        why = f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {HASH_BITS}"
        errors += [invalid(at, hand, why)] if bits else []
    return errors


def _positive(queuing: Object, path: str, keys: Iterable[str]) -> Iterable[FieldError]:
    for key in keys:
        if (queuing.get(key) or 0) <= 0:
            yield invalid(f"{path}.{key}", queuing.get(key) or 0, "must be positive")


def entropy_bits(deck: int, hand: int) -> int:
    """Return how many bits of a hash the choice of a hand of queues takes. (`shufflesharding.RequiredEntropyBits`)"""
    product = 1
    for drawn in range(min(hand, 70)):
        product *= deck - drawn
    return (product - 1).bit_length()


RULES = {
    "flowschemas": KindRules(obj=validate_flow_schema, subresources=(("status", update_status),)),
    "prioritylevelconfigurations": KindRules(obj=validate_priority_level, subresources=(("status", update_status),)),
}
"""By plural."""
