"""What roles and bindings say, as pure functions on their objects.

Sources: plugin/pkg/auth/authorizer/rbac/rbac.go, pkg/apis/rbac/v1/evaluation_helpers.go,
pkg/registry/rbac/validation/{rule,rulecovers,policy_compact}.go.
"""

# check: pure

from collections.abc import Iterable, Iterator, Sequence

from lastcall.kube.api.field import go_quote
from lastcall.kube.api.meta import Object
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.requestinfo import RequestInfo

ALL = "*"
RBAC_GROUP = "rbac.authorization.k8s.io"
SERVICEACCOUNT_USER = "system:serviceaccount:"

FULL_AUTHORITY: tuple[Object, ...] = (
    {"verbs": [ALL], "apiGroups": [ALL], "resources": [ALL]},
    {"verbs": [ALL], "nonResourceURLs": [ALL]},
)
"""The rules of a user who may do everything."""


# -- does a rule allow a request -------------------------------------------------------------------------------------


def rule_allows(rule: Object, request: RequestInfo) -> bool:
    """Return whether one PolicyRule allows `request` (rbac.go:RuleAllows)."""
    if not _has(rule, "verbs", request.verb):
        return False
    if not request.is_resource_request:
        return any(_url_covers(pattern, request.path) for pattern in rule.get("nonResourceURLs") or ())
    names = rule.get("resourceNames")
    if names and request.name not in names:
        return False
    return _has(rule, "apiGroups", request.group) and _resource_matches(rule, request.resource, request.subresource)


def _has(rule: Object, key: str, value: str) -> bool:
    values = rule.get(key) or ()
    return ALL in values or value in values


def _resource_matches(rule: Object, resource: str, subresource: str) -> bool:
    """`*` is every resource with every subresource, `*/scale` one subresource of all; `pods/*` is only a name."""
    wanted = f"{resource}/{subresource}" if subresource else resource
    given = rule.get("resources") or ()
    return ALL in given or wanted in given or bool(subresource and f"{ALL}/{subresource}" in given)


def _url_covers(pattern: str, path: str) -> bool:
    return pattern in (ALL, path) or (pattern.endswith(ALL) and path.startswith(pattern.rstrip(ALL)))


# -- whom a binding means --------------------------------------------------------------------------------------------


def subject_of(binding: Object, user: UserInfo) -> Object | None:
    """Return the first subject of a binding that `user` is, None when no subject matches (rule.go:appliesTo).

    A ServiceAccount without namespace is one of the binding's own.
    """
    namespace = binding["metadata"].get("namespace", "")
    for subject in binding.get("subjects") or ():
        kind, name = subject.get("kind"), subject.get("name", "")
        if kind == "User":
            means = user.name == name
        elif kind == "Group":
            means = name in user.groups
        else:
            owner = subject.get("namespace") or namespace
            means = kind == "ServiceAccount" and bool(owner) and user.name == f"{SERVICEACCOUNT_USER}{owner}:{name}"
        if means:
            return dict(subject)
    return None


def described(binding: Object, subject: Object) -> str:
    """Name the binding that allows something, in Kubernetes's words (rule.go:roleBindingDescriber)."""
    meta, role = binding["metadata"], binding["roleRef"]
    name, kind = meta["name"], "ClusterRoleBinding"
    if namespace := meta.get("namespace", ""):
        name, kind = f"{name}/{namespace}", "RoleBinding"
    who = subject.get("name", "")
    if subject.get("kind") == "ServiceAccount":
        who = f"{who}/{subject.get('namespace') or namespace}"
    return f"{kind} {go_quote(name)} of {role['kind']} {go_quote(role['name'])} to {subject['kind']} {go_quote(who)}"


# -- do rules cover other rules --------------------------------------------------------------------------------------


def uncovered(owned: Sequence[Object], wanted: Iterable[Object]) -> list[Object]:
    """Return what `wanted` allows and `owned` does not, in single permissions (rulecovers.go:Covers)."""
    return [part for rule in wanted for part in _single(rule) if not any(_covers(own, part) for own in owned)]


def _single(rule: Object) -> Iterator[Object]:
    verbs = rule.get("verbs") or ()
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in verbs:
                part = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                names = rule.get("resourceNames")
                yield from ({**part, "resourceNames": [name]} for name in names) if names else (part,)
    for url in rule.get("nonResourceURLs") or ():
        for verb in verbs:
            yield {"nonResourceURLs": [url], "verbs": [verb]}


def _covers(own: Object, part: Object) -> bool:
    if not _has(own, "verbs", part["verbs"][0]):
        return False
    if "nonResourceURLs" in part:
        return any(_url_covers(pattern, part["nonResourceURLs"][0]) for pattern in own.get("nonResourceURLs") or ())
    names = own.get("resourceNames")
    if names and not set(part.get("resourceNames") or (None,)) <= set(names):
        return False
    resource, _, subresource = part["resources"][0].partition("/")
    return _has(own, "apiGroups", part["apiGroups"][0]) and _resource_matches(own, resource, subresource)


def missing_text(user: UserInfo, missing: Iterable[Object]) -> str:
    """Return why `user` may not grant the permissions `missing` (rule.go:ConfirmNoEscalation)."""
    lines = sorted({compact_text(rule) for rule in compact(missing)})
    return (
        f"user {go_quote(user.name)} (groups={_quoted(user.groups)}) is attempting to grant RBAC permissions not "
        "currently held:\n" + "\n".join(lines)
    )


def compact(rules: Iterable[Object]) -> list[Object]:
    """Merge rules about the same one resource into one rule with all their verbs (policy_compact.go:CompactRules)."""
    others: list[Object] = []
    simple: dict[tuple[str, str, str | None], Object] = {}
    for rule in rules:
        groups: Sequence[str] = rule.get("apiGroups") or ()
        resources: Sequence[str] = rule.get("resources") or ()
        names: Sequence[str] = rule.get("resourceNames") or ()
        if rule.get("nonResourceURLs") or len(groups) != 1 or len(resources) != 1 or len(names) > 1:
            others.append(rule)
            continue
        key = (groups[0], resources[0], names[0] if names else None)
        if key in simple:
            simple[key]["verbs"] += rule["verbs"]
        else:
            simple[key] = {**rule, "verbs": list(rule["verbs"])}
    return [*others, *simple.values()]


_SHOWN = {
    "apiGroups": "APIGroups",
    "resources": "Resources",
    "nonResourceURLs": "NonResourceURLs",
    "resourceNames": "ResourceNames",
    "verbs": "Verbs",
}


def compact_text(rule: Object) -> str:
    """Format a rule in one line (pkg/apis/rbac/v1/helpers.go:CompactString)."""
    parts = (f"{shown}:{_quoted(rule[key])}" for key, shown in _SHOWN.items() if rule.get(key))
    return "{" + ", ".join(parts) + "}"


def _quoted(texts: Iterable[str]) -> str:
    """A list of strings as Go's `%q` prints it."""
    return "[" + " ".join(map(go_quote, texts)) + "]"
