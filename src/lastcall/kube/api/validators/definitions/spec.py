"""Rules of CustomResourceDefinitions.

Source: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go, pkg/apihelpers/helpers.go.
"""

from collections.abc import Iterable
from typing import Any

from lastcall.kube.api.custom.kinds import is_established
from lastcall.kube.api.field import FieldError, forbidden, invalid, not_supported, required
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import is_dns1035_label, is_dns1123_subdomain
from lastcall.kube.api.text.go_url import URLError, parse
from lastcall.kube.api.validators.cluster.webhooks import service_errors, url_errors
from lastcall.kube.api.validators.definitions.versions import common_errors, version_errors
from lastcall.kube.api.validators.kind_rules import KindRules

_APPROVED = "api-approved.kubernetes.io"
_PROTECTED = ("k8s.io", "kubernetes.io")
_REVIEWS = ("v1", "v1beta1")
_NEEDS_APPROVAL = f'protected groups must have approval annotation "{_APPROVED}"'
_SEE = "see https://github.com/kubernetes/enhancements/pull/1111"
_MIXED = "may have mixed case, but should otherwise match: "


def validate_definition(definition: Object) -> list[FieldError]:
    names, group = (definition.get("spec") or {}).get("names") or {}, (definition.get("spec") or {}).get("group") or ""
    meta = definition.get("metadata") or {}
    errors: list[FieldError] = []
    for key in ("generateName", "name"):
        given = meta.get(key) or ""
        if given and given != f"{names.get('plural') or ''}.{group}":
            errors.append(invalid(f"metadata.{key}", given, 'must be spec.names.plural+"."+spec.group'))
    errors += _spec(definition.get("spec") or {})
    errors += _status(definition)
    errors += _approval(definition, None)
    return errors + _preserve(definition)


def validate_definition_update(new: Object, old: Object) -> list[FieldError]:
    errors = list(_spec(new.get("spec") or {}))
    fixed: list[tuple[str, ...]] = [("scope",), ("names", "kind")] if is_established(old) else []
    for path in (*fixed, ("group",), ("names", "plural")):
        before: Any = old.get("spec")
        after: Any = new.get("spec")
        for name in path:
            before, after = (before or {}).get(name), (after or {}).get(name)
        if before != after:
            errors.append(invalid(".".join(("spec", *path)), after or "", "field is immutable"))
    errors += _status(new)
    errors += _approval(new, old)
    return errors if (old.get("spec") or {}).get("preserveUnknownFields") else errors + _preserve(new)


def validate_definition_status(new: Object, old: Object) -> list[FieldError]:
    names = (new.get("status") or {}).get("acceptedNames") or {}
    return list(_names(names, "status.acceptedNames"))


def _spec(spec: Object) -> Iterable[FieldError]:
    group, names = spec.get("group") or "", spec.get("names") or {}
    if not group:
        yield required("spec.group")
    elif problems := is_dns1123_subdomain(group):
        yield invalid("spec.group", group, ",".join(problems))
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")
    yield from _word(spec.get("scope") or "", "spec.scope", ("Cluster", "Namespaced"))
    versions = spec.get("versions") or []
    yield from version_errors(spec.get("versions"))
    first = (versions[0].get("name") or "") if versions else ""  # the API server's own type says it once more
    if first and (problems := is_dns1035_label(first)):
        yield invalid("spec.version", first, ",".join(problems))
    for field in ("plural", "singular", "kind", "listKind"):
        if not names.get(field):
            yield required(f"spec.names.{field}")
    yield from _names(names, "spec.names")
    yield from common_errors(versions)
    strategy = (spec.get("conversion") or {}).get("strategy") or ""
    if spec.get("preserveUnknownFields") and strategy != "None":
        yield invalid("spec.conversion.strategy", strategy, "must be None if spec.preserveUnknownFields is true")
    yield from _conversion(spec.get("conversion") or {}, "spec.conversion")


def _word(value: str, path: str, accepted: tuple[str, ...]) -> Iterable[FieldError]:
    if not value:
        yield required(path)
    elif value not in accepted:
        yield not_supported(path, value, accepted)


def _names(names: Object, path: str) -> Iterable[FieldError]:
    for field in ("plural", "singular", "kind", "listKind"):
        value, mixed = names.get(field) or "", field in ("kind", "listKind")
        if value and (problems := is_dns1035_label(value.lower() if mixed else value)):
            yield invalid(f"{path}.{field}", value, f"{_MIXED if mixed else ''}{','.join(problems)}")
    for field in ("shortNames", "categories"):
        for index, value in enumerate(names.get(field) or ()):
            if problems := is_dns1035_label(value):
                yield invalid(f"{path}.{field}[{index}]", value, ",".join(problems))
    if names.get("kind") and names["kind"] == names.get("listKind"):
        yield invalid(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same")


def _conversion(conversion: Object, path: str) -> Iterable[FieldError]:
    strategy, webhook = conversion.get("strategy") or "", conversion.get("webhook") or {}
    client, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    at = f"{path}.webhookClientConfig"
    yield from _word(strategy, f"{path}.strategy", ("None", "Webhook"))
    if strategy != "Webhook":
        words = "should not be set when strategy is not set to Webhook"
        if client is not None:
            yield forbidden(at, words)
        if reviews:
            yield forbidden(f"{path}.conversionReviewVersions", words)
        return
    if client is None:
        yield required(at, "required when strategy is set to Webhook")
    elif (client.get("url") is None) == (client.get("service") is None):
        yield required(at, "exactly one of url or service is required")
    elif client.get("url") is not None:
        yield from url_errors(client["url"], f"{at}.url")
    else:
        yield from service_errors(client["service"], f"{at}.service")
    yield from _reviews(reviews, f"{path}.conversionReviewVersions")


def _reviews(versions: list[str], path: str) -> Iterable[FieldError]:
    if not versions:
        yield required(path)
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield invalid(f"{path}[{index}]", version, "duplicate version")
            continue
        for problem in is_dns1035_label(version):
            yield invalid(f"{path}[{index}]", version, problem)
    if not any(each in _REVIEWS for each in versions):
        yield invalid(path, versions, f"must include at least one of {', '.join(_REVIEWS)}")


def _status(definition: Object) -> Iterable[FieldError]:
    status, path = definition.get("status") or {}, "status.storedVersions"
    yield from _names(status.get("acceptedNames") or {}, "status.acceptedNames")
    stored = status.get("storedVersions") or []
    if not stored:
        yield invalid(path, status.get("storedVersions") or None, "must have at least one stored version")
        return
    versions, left = (definition.get("spec") or {}).get("versions") or [], list(stored)
    for version in versions:
        if version.get("storage") and version.get("name") not in left:
            yield invalid(path, stored, f"must have the storage version {version.get('name')}")
        if version.get("name") in left:
            left.remove(version["name"])  # a name that comes again is looked for again
    known = [version.get("name") for version in versions]
    for index, name in enumerate(stored):
        if name not in known:
            text = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            yield invalid(f"{path}[{index}]", name, text)


def _approval_state(definition: Object) -> tuple[str, str]:
    """(missing, bypassed, approved or invalid; the annotation)"""
    text = ((definition.get("metadata") or {}).get("annotations") or {}).get(_APPROVED) or ""
    if not text:
        return "missing", text
    if text.startswith("unapproved"):
        return "bypassed", text
    try:
        parts = parse(text, request=True)
    except URLError:
        return "invalid", text
    return ("approved" if parts.scheme and parts.host else "invalid"), text


def _approval(new: Object, old: Object | None) -> Iterable[FieldError]:
    """Groups of Kubernetes's own are the community's to give. (`validateAPIApproval`)"""
    group = (new.get("spec") or {}).get("group") or ""
    if not any(group == each or group.endswith(f".{each}") for each in _PROTECTED):
        return
    state, text = _approval_state(new)
    if old is not None and _approval_state(old)[0] == state:
        return
    path = f"metadata.annotations[{_APPROVED}]"
    if state == "missing":
        yield required(path, f"{_NEEDS_APPROVAL}, {_SEE}")
    elif state == "invalid":
        why = f'{_NEEDS_APPROVAL} with either a URL or a reason starting with "unapproved", {_SEE}'
        yield invalid(path, text, why)


def _preserve(definition: Object) -> list[FieldError]:
    if not (definition.get("spec") or {}).get("preserveUnknownFields"):
        return []
    text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
    return [invalid("spec.preserveUnknownFields", True, text)]


RULES = {
    "customresourcedefinitions": KindRules(
        create=validate_definition,
        update=validate_definition_update,
        subresources=(("status", validate_definition_status),),
    )
}
"""By plural."""
