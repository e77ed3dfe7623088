"""What a request is about: verb, resource, namespace, name, subresource — from method, path and query alone.

Source: apiserver pkg/endpoints/request/requestinfo.go:NewRequestInfo.
"""

# check: asks for kinds because a Namespace's own path has a namespace in it
# check: pure

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.selectors import field_terms

_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class RequestInfo(NamedTuple):
    """`is_resource_request` False: only `path` and `verb` mean something.

    `resource` is the plural name as in the URL, known or not. `name` is the object's, "" for a collection.
    `field_selector` is what a request about a collection asks for, as it was written.
    """

    is_resource_request: bool
    path: str
    verb: str
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    name: str = ""
    subresource: str = ""
    parts: tuple[str, ...] = ()
    field_selector: str = ""

    def selects(self, field: str, value: str) -> bool:
        """Return whether only objects with this value of the field are asked for.

        A selector that cannot be read asks for nothing (authorizer.Attributes.GetFieldSelector).
        """
        try:
            return any(
                (term.label, term.operator, term.value) == (field, "=", value)
                for term in field_terms(self.field_selector)
            )
        except StatusError:
            return False

    def with_selector(self, field_selector: str) -> "RequestInfo":
        """Return the request as the authorizer sees it, with a field selector of a collection.

        A request for one name by a field selector asks for that object (requestinfo.go).
        """
        if not field_selector or self.name:
            return self
        name = exact_name(field_selector) if self.verb in ("list", "watch") else ""
        return self._replace(name=name, field_selector=field_selector)


def is_true(query: Mapping[str, str], name: str) -> bool:
    """Return whether a boolean query parameter is there and neither `0` nor `false`, whatever else it says."""
    return name in query and query[name].lower() not in ("0", "false")


def exact_name(field_selector: str) -> str:
    """Return the name that a field selector asks for, "" when it asks for none or cannot be read."""
    try:
        terms = field_terms(field_selector)
    except StatusError:
        return ""
    value = next((term.value for term in terms if (term.label, term.operator) == ("metadata.name", "=")), "")
    return value if value not in (".", "..") and not set("/%") & set(value) else ""


def request_info(method: str, path: str, query: Mapping[str, str]) -> RequestInfo:
    """Resolve a request. `path` is percent-decoded; a trailing slash does not matter."""
    return _resolved(method, path, is_true(query, "watch"))


@lru_cache(maxsize=512)
def _resolved(method: str, path: str, watch: bool) -> RequestInfo:
    parts = [part for part in path.split("/") if part]
    plain = RequestInfo(False, path, method.lower())
    if parts[:1] == ["api"] and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[:1] == ["apis"] and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return plain
    verb = _VERBS.get(method, "")
    if rest[0] == "watch" and len(rest) > 1:
        # The deprecated prefix: /api/v1/watch/namespaces/ns/pods/name.
        verb, rest = "watch", rest[1:]
    namespace = ""
    if rest[0] == "namespaces":
        if len(rest) > 1:
            namespace = rest[1]
        # /namespaces/x/status and /finalize are the namespace's own; anything else lives in it.
        if len(rest) > 2 and rest[2] not in ("status", "finalize"):
            rest = rest[2:]
    resource = rest[0]
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if not name:
        if verb == "get":
            verb = "watch" if watch else "list"
        elif verb == "delete":
            verb = "deletecollection"
    return RequestInfo(True, path, verb, group, version, namespace, resource, name, subresource, tuple(rest[3:]))
