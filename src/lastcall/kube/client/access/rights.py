"""A right that the API server says is missing, and the kubectl commands that give it. Pure.

Source: apiserver pkg/endpoints/handlers/responsewriters/errors.go:forbiddenMessage. What else a 403 may say (an
admission plugin's refusal) names no right, and no command is given for it.
"""

# check: pure

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from lastcall.kube.client.access.impersonation import Impersonation
from lastcall.world.dataclass import dataclass

_QUOTED = r'("(?:[^"\\]|\\.)*")'
_RESOURCE = re.compile(
    rf"User {_QUOTED} cannot (\S+) resource {_QUOTED} in API group {_QUOTED} "
    rf"(?:in the namespace {_QUOTED}|at the cluster scope)"
)
_PATH = re.compile(rf"User {_QUOTED} cannot (\S+) path {_QUOTED}")
_WORD = re.compile(r"[a-zA-Z0-9][-a-zA-Z0-9_.:/*]*")
_NAMED_VERBS = ("delete", "get", "impersonate", "patch", "update")
"""Rights that can be given for one object alone."""

ANONYMOUS = "system:anonymous"
_ACCOUNT = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class Right:
    """`resource` has its subresource: `pods/log`. `namespace` "" is the whole cluster, `name` "" every object.

    A right on a `path` that is not a resource (`/metrics`) has no resource.
    """

    user: str
    verb: str
    resource: str = ""
    group: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def words(self) -> str:
        """Return `list pods in the namespace shop`, `get /metrics`."""
        if self.path:
            return f"{self.verb} {self.path}"
        what = f"{self.verb} {self._kind}" + (f" {self.name}" if self.name else "")
        return f"{what} in the namespace {self.namespace}" if self.namespace else f"{what} in all namespaces"

    @property
    def _kind(self) -> str:
        """As kubectl's --resource takes it: `deployments.apps/scale`."""
        plural, slash, subresource = self.resource.partition("/")
        return f"{plural}.{self.group}{slash}{subresource}" if self.group else self.resource


def missing_right(status: Mapping[str, Any]) -> Right | None:
    """Return what a Status says that its user may not do; None if it is about something else."""
    message, details = status.get("message"), status.get("details") or {}
    if not isinstance(message, str) or status.get("code") != 403:
        return None
    if found := _RESOURCE.search(message):
        user, resource, group = (_unquoted(found[i]) for i in (1, 3, 4))
        namespace = _unquoted(found[5]) if found[5] else ""
        verb, name = found[2], details.get("name") if isinstance(details, dict) else ""
        named = name if isinstance(name, str) and verb in _NAMED_VERBS and "/" not in resource else ""
        return Right(user, verb, resource, group, namespace, named)
    if found := _PATH.search(message):
        return Right(_unquoted(found[1]), found[2], path=_unquoted(found[3]))
    return None


def impersonation_rights(user: str, asked: Impersonation) -> list[Right]:
    """Return what `user` needs to impersonate another user. Since 1.35 the server says it in words that kubectl
    cannot give (`impersonate-on:user-info:get`); the right `impersonate` on each of them is enough in every version.

    (apiserver pkg/endpoints/filters/impersonation)
    """
    account = asked.user.removeprefix(_ACCOUNT)
    if account != asked.user and account.count(":") == 1:
        namespace, name = account.split(":")
        found = [Right(user, "impersonate", "serviceaccounts", "", namespace, name)]
    else:
        found = [Right(user, "impersonate", "users", name=asked.user)]
    group = "authentication.k8s.io"
    found += [Right(user, "impersonate", "groups", name=each) for each in asked.groups]
    found += [Right(user, "impersonate", "uids", group, name=asked.uid)] if asked.uid else []
    return found + [Right(user, "impersonate", f"userextras/{key}", group, name=value) for key, value in asked.extra]


def is_about_impersonation(right: Right) -> bool:
    return right.verb == "impersonate" or right.verb.startswith("impersonate-on:")


def commands_for(rights: Iterable[Right]) -> list[str]:
    """Return commands that grant the permissions and nothing else, as few as kubectl needs; each a line for a shell.

    An anonymous user is given nothing: anybody would have it. Neither are names that are not those of Kubernetes.
    """
    found: list[str] = []
    for together in _together(right for right in rights if _can_be_given(right)):
        first = together[0]
        verbs = list(dict.fromkeys(each.verb for each in together))
        name = _name("lastcall", *verbs, *dict.fromkeys(_what(each) for each in together), "for", first.user)
        kind = "role" if first.namespace else "clusterrole"
        place = ["-n", first.namespace] if first.namespace else []
        rule = [f"--verb={','.join(verbs)}"]
        if first.path:
            rule += [f"--non-resource-url={path}" for path in dict.fromkeys(each.path for each in together)]
        else:
            rule.append(f"--resource={','.join(dict.fromkeys(each._kind for each in together))}")
            rule += [f"--resource-name={first.name}"] if first.name else []
        if first.resource == "uids" and first.verb == "impersonate":
            found.append(_by_manifest(name, first))  # kubectl create clusterrole refuses it
        else:
            found.append(shlex.join(["kubectl", "create", kind, name, *rule, *place]))
        found.append(
            shlex.join(["kubectl", "create", f"{kind}binding", name, f"--{kind}={name}", _subject(first.user), *place])
        )
    return found


def _by_manifest(name: str, right: Right) -> str:
    rule = {"verbs": [right.verb], "apiGroups": [right.group], "resources": [right.resource]}
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [{**rule, "resourceNames": [right.name]} if right.name else rule],
    }
    return f"echo {shlex.quote(json.dumps(role))} | kubectl create -f -"


def _together(rights: Iterable[Right]) -> list[list[Right]]:
    """Rights that one role's rule says: all its verbs hold for all its resources."""
    by_object: dict[Right, list[Right]] = {}
    for right in dict.fromkeys(rights):
        by_object.setdefault(replace(right, verb=""), []).append(right)
    by_verbs: dict[tuple[Any, ...], list[Right]] = {}
    for key, group in by_object.items():
        verbs = tuple(sorted(each.verb for each in group))
        alone = key if key.name else bool(key.path)
        by_verbs.setdefault((key.user, key.namespace, verbs, alone), []).extend(group)
    return list(by_verbs.values())


def _can_be_given(right: Right) -> bool:
    words = (right.verb, right.path.lstrip("/") if right.path else right.resource)
    more = (each for each in (right.group, right.namespace) if each)
    return (
        right.user not in ("", ANONYMOUS)
        and right.user.isprintable()
        and right.name.isprintable()
        and all(_WORD.fullmatch(each) for each in (*words, *more))
    )


def _subject(user: str) -> str:
    account = user.removeprefix(_ACCOUNT)
    return f"--serviceaccount={account}" if account != user and account.count(":") == 1 else f"--user={user}"


def _what(right: Right) -> str:
    if right.path:
        return right.path.strip("/")
    return right.resource.replace("/", ":") + (f"-{right.name}" if right.name else "")


def _name(*parts: str) -> str:
    """A name for a role: readable, and another one for other parts."""
    text = "-".join(parts)
    plain = re.sub(r"[^a-zA-Z0-9:.-]+", "-", text).strip("-")
    if plain == text and len(plain) <= 120:
        return plain
    return f"{plain[:110]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _unquoted(text: str) -> str:
    """Of Go's %q; "" if it is not one that JSON knows, too."""
    try:
        return str(json.loads(text))
    except ValueError:
        return ""
