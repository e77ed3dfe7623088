"""Audit policies: which level a request gets, and which stages of it are left out.

Source: apiserver pkg/audit/policy/{checker,reader}.go, pkg/apis/audit/validation/validation.go.
"""

# check: pure

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from lastcall.kube.api.names import is_dns1123_subdomain
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.requestinfo import RequestInfo
from lastcall.world.dataclass import dataclass

LEVELS = ("None", "Metadata", "Request", "RequestResponse")
NONE, METADATA, REQUEST, REQUEST_RESPONSE = range(4)
STAGES = ("RequestReceived", "ResponseStarted", "ResponseComplete", "Panic")
API_VERSION = "audit.k8s.io/v1"

_POLICY_FIELDS = frozenset(("apiVersion", "kind", "metadata", "rules", "omitStages", "omitManagedFields"))
_RULE_FIELDS = frozenset(
    ("level", "users", "userGroups", "verbs", "resources", "namespaces", "nonResourceURLs", "omitStages")
) | {"omitManagedFields"}
_RESOURCE_FIELDS = frozenset(("group", "resources", "resourceNames"))


class PolicyError(ValueError):
    """The text names the field, what is wrong with it, and what is allowed."""


@dataclass(frozen=True, slots=True)
class GroupResources:
    """Resources of one group. Empty `resources` are all of them, empty `names` all objects."""

    group: str = ""
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """What the audit log keeps of a request."""

    level: int
    omit_stages: frozenset[str] = frozenset()
    omit_managed_fields: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of an audit policy. An empty field matches everything."""

    decision: Decision
    users: tuple[str, ...] = ()
    user_groups: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    resources: tuple[GroupResources, ...] = ()
    namespaces: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Policy:
    """An audit policy. `default` is for requests that no rule matches.

    `warnings` name fields that kube-apiserver would ignore.
    """

    rules: tuple[Rule, ...]
    default: Decision = Decision(NONE)
    warnings: tuple[str, ...] = ()


AUDIT_EVERYTHING = Policy((Rule(Decision(METADATA, frozenset({"RequestReceived"}))),))
"""Without a policy: who did what, and no body. kube-apiserver has no default, and writes nothing without one."""


def decide(policy: Policy, user: UserInfo | None, request: RequestInfo) -> Decision:
    """Return the decision of the first rule that matches. `user` is None for a request whose sender is not known."""
    return next((rule.decision for rule in policy.rules if _matches(rule, user, request)), policy.default)


def _matches(rule: Rule, user: UserInfo | None, request: RequestInfo) -> bool:
    if rule.users and (user is None or user.name not in rule.users):
        return False
    if rule.user_groups and (user is None or not set(user.groups) & set(rule.user_groups)):
        return False
    if rule.verbs and request.verb not in rule.verbs:
        return False
    if rule.namespaces or rule.resources:
        return _matches_resource(rule, request)
    if rule.non_resource_urls:
        return not request.is_resource_request and any(
            _matches_path(request.path, spec) for spec in rule.non_resource_urls
        )
    return True


def _matches_path(path: str, spec: str) -> bool:
    return spec in ("*", path) or (spec.endswith("*") and path.startswith(spec.rstrip("*")))


def _matches_resource(rule: Rule, request: RequestInfo) -> bool:
    if not request.is_resource_request:
        return False
    if rule.namespaces and request.namespace not in rule.namespaces:
        return False
    if not rule.resources:
        return True
    own = request.resource, request.subresource
    return any(
        each.group == request.group
        and (
            not each.resources
            or ((not each.names or request.name in each.names) and any(_names(spec, *own) for spec in each.resources))
        )
        for each in rule.resources
    )


def _names(spec: str, resource: str, subresource: str) -> bool:
    """Whether `pods`, `pods/log`, `pods/*`, `*/log` or `*` means this."""
    if spec in ("*", f"{resource}/{subresource}" if subresource else resource):
        return True
    if subresource and spec == f"*/{subresource}":
        return True
    return spec == f"{resource}/*"


def parse_policy(document: Any) -> Policy:
    """Read a policy from its decoded YAML. Raises PolicyError."""
    if not isinstance(document, Mapping):
        raise PolicyError(f"it is not a Policy of {API_VERSION}")
    if (document.get("kind"), document.get("apiVersion")) != ("Policy", API_VERSION):
        found = f"{document.get('kind')} of {document.get('apiVersion')}"
        raise PolicyError(f"it is a {found}; fix: write kind: Policy and apiVersion: {API_VERSION}")
    warnings = _unknown(document, _POLICY_FIELDS, "")
    rules = _list(document, "rules", "", Mapping)
    if not rules:
        raise PolicyError("rules: there are none; fix: write at least one rule with a level")
    stages = _stages(document, "omitStages")
    omit = _flag(document, "omitManagedFields", "")
    read = []
    for index, rule in enumerate(rules):
        at = f"rules[{index}]."
        warnings += _unknown(rule, _RULE_FIELDS, at)
        read.append(_rule(rule, at, stages, bool(omit), warnings))
    return Policy(tuple(read), Decision(NONE, stages, bool(omit)), tuple(warnings))


def _rule(rule: Mapping[str, Any], at: str, stages: frozenset[str], omit: bool, warnings: list[str]) -> Rule:
    level = rule.get("level")
    if level not in LEVELS:
        what = f"{level!r} is not a level" if level else "is missing"
        raise PolicyError(f"{at}level: {what}; fix: write one of {', '.join(LEVELS)}")
    own = _flag(rule, "omitManagedFields", at)
    urls, namespaces = _texts(rule, "nonResourceURLs", at), _texts(rule, "namespaces", at)
    for index, url in enumerate(urls):
        if url != "*" and not url.startswith("/"):
            raise PolicyError(f"{at}nonResourceURLs[{index}]: {url!r} does not begin with /")
        if "*" in url[:-1]:
            raise PolicyError(f"{at}nonResourceURLs[{index}]: {url!r} has a * before its end")
    resources = _list(rule, "resources", at, Mapping)
    if urls and (resources or namespaces):
        raise PolicyError(f"{at}nonResourceURLs: excludes resources and namespaces; fix: write two rules")
    return Rule(
        Decision(LEVELS.index(level), stages | _stages(rule, f"{at}omitStages"), omit if own is None else own),
        _texts(rule, "users", at),
        _texts(rule, "userGroups", at),
        _texts(rule, "verbs", at),
        tuple(_resources(each, f"{at}resources[{index}].", warnings) for index, each in enumerate(resources)),
        namespaces,
        urls,
    )


def _resources(each: Mapping[str, Any], at: str, warnings: list[str]) -> GroupResources:
    warnings += _unknown(each, _RESOURCE_FIELDS, at)
    group = each.get("group") or ""
    if not isinstance(group, str) or (group and is_dns1123_subdomain(group)):
        raise PolicyError(f"{at}group: {group!r} is not the name of a group, without its version")
    names, resources = _texts(each, "resourceNames", at), _texts(each, "resources", at)
    if names and not resources:
        raise PolicyError(f"{at}resourceNames: needs resources beside it")
    return GroupResources(group, resources, names)


def _stages(owner: Mapping[str, Any], at: str) -> frozenset[str]:
    stages = _texts(owner, "omitStages", at.removesuffix("omitStages"))
    for index, stage in enumerate(stages):
        if stage not in STAGES:
            raise PolicyError(f"{at}[{index}]: {stage!r} is not a stage; fix: write one of {', '.join(STAGES)}")
    return frozenset(stages)


def _texts(owner: Mapping[str, Any], name: str, at: str) -> tuple[str, ...]:
    return tuple(_list(owner, name, at, str))


def _list(owner: Mapping[str, Any], name: str, at: str, of: type) -> Sequence[Any]:
    found = owner.get(name) or []
    if not isinstance(found, list) or not all(isinstance(each, of) for each in found):
        raise PolicyError(f"{at}{name}: is not a list of {'strings' if of is str else 'objects'}")
    return found


def _flag(owner: Mapping[str, Any], name: str, at: str) -> bool | None:
    found = owner.get(name)
    if not isinstance(found, bool | None):
        raise PolicyError(f"{at}{name}: {found!r} is not true or false")
    return found


def _unknown(owner: Mapping[str, Any], known: Collection[str], at: str) -> list[str]:
    return [f"{at}{name} is not a field of a policy, and is ignored" for name in owner if name not in known]
