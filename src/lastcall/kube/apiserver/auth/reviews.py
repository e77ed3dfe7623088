"""Answer questions about users: who am I, whose token is this, may this user do that. Nothing is stored.

Sources: pkg/registry/authentication/{selfsubjectreview,tokenreview}/rest.go, pkg/registry/authorization/*/rest.go,
pkg/apis/authorization/validation/validation.go.
"""

# check: asks for kinds because it is about reviews

from collections.abc import Awaitable, Callable

from lastcall.kube.api.errors import StatusError, bad_request
from lastcall.kube.api.errors import invalid as invalid_object
from lastcall.kube.api.field import FieldError, each, invalid, required
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import is_label_value, is_qualified_name
from lastcall.kube.api.protobuf.internal import as_json
from lastcall.kube.api.resources import (
    LOCALSUBJECTACCESSREVIEWS,
    SELFSUBJECTACCESSREVIEWS,
    SELFSUBJECTREVIEWS,
    SELFSUBJECTRULESREVIEWS,
    SUBJECTACCESSREVIEWS,
    TOKENREVIEWS,
    Resource,
)
from lastcall.kube.api.selectors import escaped_field_value, field_terms
from lastcall.kube.api.validators.common import values_of_operator
from lastcall.kube.apiserver.auth.authentication import ANONYMOUS, UserInfo, bearer_token
from lastcall.kube.apiserver.auth.authorizer import Authorizer, aggregate
from lastcall.kube.apiserver.requestinfo import RequestInfo
from lastcall.world.clock import Clock, now, rfc3339
from lastcall.world.dataclass import dataclass

AUTHORIZATION_GROUP = "authorization.k8s.io"

AuthenticateToken = Callable[[str], Awaitable[UserInfo]]
"""The user of a bearer token; raises StatusError for one that nobody accepts."""

ANSWERED_ANEW = frozenset({SELFSUBJECTRULESREVIEWS})
"""Reviews whose answers have nothing of the metadata that was sent."""


@dataclass(frozen=True, slots=True)
class Reviews:
    """Answers reviews. `audience` is the API server's own, the only one its tokens are checked for."""

    authenticate: AuthenticateToken
    authorizer: Authorizer
    clock: Clock
    audience: str

    async def answer(self, resource: Resource, review: Object, user: UserInfo, namespace: str) -> Object:
        """Return `review` (changed in place) with its status. Raises StatusError."""
        if resource == SELFSUBJECTREVIEWS:
            review["metadata"] = {"creationTimestamp": rfc3339(now(self.clock))}
            review["status"] = {"userInfo": user_info(user)}
        elif resource == TOKENREVIEWS:
            review["metadata"] = {key: value for key, value in review["metadata"].items() if key not in _WIPED}
            review["status"] = await self._token(review.setdefault("spec", {}))
        elif resource == SELFSUBJECTRULESREVIEWS:
            asked = (review.get("spec") or {}).get("namespace")
            if not asked:
                raise bad_request("no namespace on request")
            review["metadata"], review["spec"] = {}, {}
            review["status"] = await self._rules(user, asked)
        else:
            review["status"] = await self._access(resource, review, user, namespace)
        return review

    async def _rules(self, user: UserInfo, namespace: str) -> Object:
        found = await self.authorizer.rules_for(user, namespace)
        status: Object = {
            "resourceRules": [_parts(rule, _RESOURCE_RULE) for rule in found.rules if rule.get("resources")],
            "nonResourceRules": [_parts(rule, _PATH_RULE) for rule in found.rules if rule.get("nonResourceURLs")],
            "incomplete": bool(found.errors),
        }
        return {**status, "evaluationError": aggregate(found.errors)} if found.errors else status

    async def _access(self, resource: Resource, review: Object, user: UserInfo, namespace: str) -> Object:
        asking, request, error = _question(resource, review, user, namespace)
        decision = await self.authorizer.authorize(asking, request)
        status = {"allowed": decision.allowed, "reason": decision.reason, "evaluationError": error}
        return {key: value for key, value in status.items() if value or key == "allowed"}

    async def _token(self, spec: Object) -> Object:
        token = spec.get("token", "")
        if not token:
            raise bad_request("token is required for TokenReview in authentication")
        try:
            # Kubernetes makes a request of it, and of one without a token that of an unknown user.
            user = await self.authenticate(token) if bearer_token(f"Bearer {token}") else ANONYMOUS
        except StatusError:
            return {"user": {}, "error": "invalid bearer token"}
        audiences = spec.get("audiences") or [self.audience]
        if self.audience not in audiences:
            why = f"token audiences {_quoted([self.audience])} is invalid for the target audiences {_quoted(audiences)}"
            return {"user": {}, "error": why}
        return {"authenticated": True, "user": user_info(user), "audiences": [self.audience]}


_RESOURCE_RULE = ("verbs", "apiGroups", "resources", "resourceNames")
_PATH_RULE = ("verbs", "nonResourceURLs")


def _parts(rule: Object, keys: tuple[str, ...]) -> Object:
    return {key: rule[key] for key in keys if rule.get(key)}


def _quoted(names: list[str]) -> str:
    return "[" + " ".join(f'"{name}"' for name in names) + "]"


def user_info(user: UserInfo) -> Object:
    """Return the authentication/v1 UserInfo, without what is empty."""
    extra = {key: list(values) for key, values in user.extra.items()}
    info = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}
    return {key: value for key, value in info.items() if value}


def _question(resource: Resource, review: Object, user: UserInfo, namespace: str) -> tuple[UserInfo, RequestInfo, str]:
    """About whom and what an access review asks, and what of it cannot be read. Raises the 422 StatusError."""
    spec = review.setdefault("spec", {})
    attributes, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    _check(resource, review, namespace)
    if resource != SELFSUBJECTACCESSREVIEWS:
        user = UserInfo(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""))
    if attributes is None:
        return user, RequestInfo(False, path.get("path", ""), path.get("verb", "")), ""
    selector, error = _field_selector(attributes.get("fieldSelector") or {})
    request = RequestInfo(
        True,
        "",
        attributes.get("verb", ""),
        attributes.get("group", ""),
        attributes.get("version", ""),
        attributes.get("namespace", ""),
        attributes.get("resource", ""),
        attributes.get("name", ""),
        attributes.get("subresource", ""),
        field_selector=selector,
    )
    return user, request, error


def _field_selector(given: Object) -> tuple[str, str]:
    """(the field selector that a review asks about, what is wrong with it).

    What cannot be read is left out, which never allows more (registry/authorization/util/helpers.go).
    """
    ignored = "spec.resourceAttributes.fieldSelector {}ignored due to parse error".format
    if raw := given.get("rawSelector"):
        try:
            field_terms(raw)
        except StatusError:
            return "", ignored("")
        return raw, ""
    asked = given.get("requirements") or ()
    terms = []
    for term in asked:
        operator, values = _OPERATORS.get(term.get("operator", "")), term.get("values") or []
        if operator is not None and len(values) == 1:
            terms.append(f"{term.get('key', '')}{operator}{escaped_field_value(values[0])}")
    if len(terms) == len(asked):
        return ",".join(terms), ""
    return ",".join(terms), ignored("partially " if terms else "")


_OPERATORS = {"In": "=", "NotIn": "!="}


_WIPED = ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "uid")
"""Of the metadata that is sent. (rest.WipeObjectMetaSystemFields)"""


def _check(resource: Resource, review: Object, namespace: str) -> None:
    """Raises the 422 StatusError of a question that cannot be asked. (pkg/apis/authorization/validation)"""
    spec, local = review.get("spec") or {}, ("namespace",) if resource == LOCALSUBJECTACCESSREVIEWS else ()
    given = {key: value for key, value in review["metadata"].items() if value and key not in _WIPED}
    meta = as_json("meta.v1.ObjectMeta", given)
    attributes, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    errors: list[FieldError] = []
    if attributes is not None and path is not None:
        why = "cannot be specified in combination with resourceAttributes"
        errors.append(invalid("spec.nonResourceAttributes", _as_go(path), why))
    elif attributes is None and path is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        errors.append(invalid("spec.resourceAttributes", None, why))
    if (
        resource in (SUBJECTACCESSREVIEWS, LOCALSUBJECTACCESSREVIEWS)
        and not spec.get("user")
        and not spec.get("groups")
    ):
        errors.append(invalid("spec.user", "", "at least one of user or group must be specified"))
    for key, check in (("fieldSelector", _field_requirements), ("labelSelector", _label_requirements)):
        if (selector := (attributes or {}).get(key)) is not None:
            errors += _selector(selector, f"spec.resourceAttributes.{key}", check)
    if meta.keys() - {"managedFields", *local}:
        errors.append(invalid("metadata", meta, f"must be empty{' except for namespace' if local else ''}"))
    if resource == LOCALSUBJECTACCESSREVIEWS:
        asked = (attributes or {}).get("namespace", "")
        if path is not None:
            why = "disallowed on this kind of request"
            errors.append(invalid("spec.nonResourceAttributes", _as_go(path), why))
        elif attributes is not None and asked != namespace:
            why = "must match metadata.namespace"
            errors.append(invalid("spec.resourceAttributes.namespace", asked, why))
    if errors:
        raise invalid_object("", "", errors, group=AUTHORIZATION_GROUP)


def _selector(selector: Object, path: str, check: Callable[[Object, str], list[FieldError]]) -> list[FieldError]:
    """(`validateResourceAttributes`: fields and labels that a request is limited to)"""
    raw, asked = selector.get("rawSelector") or "", selector.get("requirements") or []
    errors: list[FieldError] = []
    if raw and asked:
        why = "may not specified at the same time as requirements"
        errors.append(invalid(f"{path}.rawSelector", raw, why))
    if not raw and not asked:
        why = f"when {path} is specified, requirements or rawSelector is required"
        errors.append(required(f"{path}.requirements", why))
    for index, requirement in enumerate(asked):
        errors += check(requirement, f"{path}.requirements[{index}]")
    return errors


def _field_requirements(requirement: Object, path: str) -> list[FieldError]:
    """(metav1validation.ValidateFieldSelectorRequirement, whose operators need not be known)"""
    errors = values_of_operator(requirement.get("operator") or "", requirement.get("values") or [], path)
    return errors if requirement.get("key") else [*errors, required(f"{path}.key", "must be specified")]


def _label_requirements(requirement: Object, path: str) -> list[FieldError]:
    """(metav1validation.ValidateLabelSelectorRequirement, the same)"""
    key = requirement.get("key") or ""
    errors = values_of_operator(requirement.get("operator") or "", requirement.get("values") or [], path)
    errors += each(f"{path}.key", key, is_qualified_name(key))
    for index, value in enumerate(requirement.get("values") or ()):
        errors += each(f"{path}.values[{index}]", value, is_label_value(value))
    return errors


def _as_go(path: Object) -> Object:
    """nonResourceAttributes as the internal struct prints: without JSON names."""
    return {"Path": path.get("path", ""), "Verb": path.get("verb", "")}
