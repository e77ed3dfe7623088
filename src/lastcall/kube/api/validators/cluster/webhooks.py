"""Configurations of admission webhooks.

Sources: pkg/apis/admissionregistration/validation/validation.go, apiserver pkg/util/webhook/validation.go. The texts
are those of a real 1.36.2 (tests/unit/kube/apiserver/proxying/webhooks/configurations.json).
"""

from collections.abc import Sequence

from lastcall.kube.api.field import FieldError, duplicate, each, invalid, not_supported, required, too_many
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import is_dns1035_label, is_dns1123_subdomain, is_qualified_name
from lastcall.kube.api.text.go_url import URLError, parse
from lastcall.kube.api.validators.common import label_selector
from lastcall.kube.api.validators.expressions import Expressions, Scope, expression_error

REVIEW_VERSIONS = ("v1", "v1beta1")
"""Of AdmissionReview, the ones that the API server knows."""
LONGEST_TIMEOUT = 30
"""Seconds."""
MOST_CONDITIONS = 64
_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")
_URL_FORM = "desired format: https://host[/path]"


def validate_configuration(obj: Object, expressions: Expressions) -> list[FieldError]:
    """Check a webhook configuration.

    (`ValidateValidatingWebhookConfiguration`, `ValidateMutatingWebhookConfiguration`)
    """
    errors: list[FieldError] = []
    names: set[str] = set()
    for index, webhook in enumerate(obj.get("webhooks") or ()):
        at = f"webhooks[{index}]"
        errors += _webhook(webhook, at, expressions)
        name = webhook.get("name") or ""
        if name and name in names:
            errors.append(duplicate(f"{at}.name", name))
        names.add(name)
    return errors


def _webhook(webhook: Object, at: str, expressions: Expressions) -> list[FieldError]:
    errors = _name(webhook.get("name") or "", f"{at}.name")
    for index, rule in enumerate(webhook.get("rules") or ()):
        errors += rule_errors(rule, f"{at}.rules[{index}]")
    errors += one_of(webhook, "failurePolicy", at, ("Fail", "Ignore"))
    errors += one_of(webhook, "matchPolicy", at, ("Equivalent", "Exact"))
    effects = webhook.get("sideEffects")
    if effects is None:
        errors.append(required(f"{at}.sideEffects", f"must specify one of {', '.join(_SIDE_EFFECTS)}"))
    elif effects not in _SIDE_EFFECTS:
        errors.append(not_supported(f"{at}.sideEffects", effects, _SIDE_EFFECTS))
    seconds = webhook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= LONGEST_TIMEOUT:
        why = f"the timeout value must be between 1 and {LONGEST_TIMEOUT} seconds"
        errors.append(invalid(f"{at}.timeoutSeconds", seconds, why))
    for selector in ("namespaceSelector", "objectSelector"):
        errors += label_selector(webhook.get(selector), f"{at}.{selector}")
    errors += one_of(webhook, "reinvocationPolicy", at, ("IfNeeded", "Never"))
    errors += _client(webhook.get("clientConfig") or {}, f"{at}.clientConfig")
    if conditions := webhook.get("matchConditions"):
        errors += condition_errors(conditions, f"{at}.matchConditions", expressions.scope(params=False))
    return errors + _review_versions(webhook.get("admissionReviewVersions") or [], f"{at}.admissionReviewVersions")


def one_of(obj: Object, key: str, at: str, supported: Sequence[str]) -> list[FieldError]:
    value = obj.get(key)
    return [] if value is None or value in supported else [not_supported(f"{at}.{key}", value, supported)]


def _name(name: str, at: str) -> list[FieldError]:
    """(`IsFullyQualifiedName`)"""
    if not name:
        return [required(at)]
    if problems := is_dns1123_subdomain(name):
        return each(at, name, problems)
    if name.count(".") < 2:
        return [invalid(at, name, "should be a domain with at least three segments separated by dots")]
    return []


def _review_versions(versions: list[str], at: str) -> list[FieldError]:
    known = ", ".join(REVIEW_VERSIONS)
    if not versions:
        return [required(at, f"must specify one of {known}")]
    errors: list[FieldError] = []
    for index, version in enumerate(versions):
        if version in versions[:index]:
            errors.append(invalid(f"{at}[{index}]", version, "duplicate version"))
            continue
        errors += each(f"{at}[{index}]", version, is_dns1035_label(version))
    if not set(versions) & set(REVIEW_VERSIONS):
        errors.append(invalid(at, versions, f"must include at least one of {known}"))
    return errors


def rule_errors(rule: Object, at: str) -> list[FieldError]:
    """Check a rule with its operations, of a webhook or of a policy. (`validateRuleWithOperations`)"""
    errors: list[FieldError] = []
    operations = rule.get("operations") or []
    if not operations:
        errors.append(required(f"{at}.operations"))
    if len(operations) > 1 and "*" in operations:
        why = "if '*' is present, must not specify other operations"
        errors.append(invalid(f"{at}.operations", operations, why))
    for index, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            errors.append(not_supported(f"{at}.operations[{index}]", operation, _OPERATIONS))
    groups, versions = rule.get("apiGroups") or [], rule.get("apiVersions") or []
    if not groups:
        errors.append(required(f"{at}.apiGroups"))
    if len(groups) > 1 and "*" in groups:
        errors.append(invalid(f"{at}.apiGroups", groups, "if '*' is present, must not specify other API groups"))
    if not versions:
        errors.append(required(f"{at}.apiVersions"))
    if len(versions) > 1 and "*" in versions:
        errors.append(invalid(f"{at}.apiVersions", versions, "if '*' is present, must not specify other API versions"))
    errors += [required(f"{at}.apiVersions[{index}]") for index, each_ in enumerate(versions) if not each_]
    errors += _resources(rule.get("resources") or [], f"{at}.resources")
    return errors + one_of(rule, "scope", at, _SCOPES)


def _resources(resources: list[str], at: str) -> list[FieldError]:
    if not resources:
        return [required(at)]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, text in enumerate(resources):
        if not text:
            errors.append(required(f"{at}[{index}]"))
            continue
        resource, slash, subresource = text.partition("/")
        for wide in (f"{resource}/*", f"*/{subresource}" if slash else ""):
            if wide in seen and wide != text:
                errors.append(invalid(f"{at}[{index}]", text, f"if '{wide}' is present, must not specify {text}"))
        seen.add(text)
    if "*/*" in resources and len(resources) > 1:
        errors.append(invalid(at, resources, "if '*/*' is present, must not specify other resources"))
    if "*" in resources and any("/" not in text for text in resources if text != "*"):
        why = "if '*' is present, must not specify other resources without subresources"
        errors.append(invalid(at, resources, why))
    return errors


def _client(client: Object, at: str) -> list[FieldError]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        return [required(at, "exactly one of url or service is required")]
    return url_errors(url or "", f"{at}.url") if service is None else service_errors(service, f"{at}.service")


def url_errors(url: str, at: str) -> list[FieldError]:
    """Check the URL of a webhook. (`ValidateWebhookURL`)"""
    try:
        parts = parse(url)
    except URLError as error:
        return [required(at, f"url must be a valid URL: {error}; {_URL_FORM}")]
    errors: list[FieldError] = []
    if parts.scheme != "https":
        errors.append(invalid(at, parts.scheme, f"'https' is the only allowed URL scheme; {_URL_FORM}"))
    if not parts.host:
        errors.append(invalid(at, "", f"host must be specified; {_URL_FORM}"))
    if parts.user is not None:
        errors.append(invalid(at, parts.user, "user information is not permitted in the URL"))
    if parts.fragment:
        errors.append(invalid(at, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        errors.append(invalid(at, parts.query, "query parameters are not permitted in the URL"))
    return errors


def service_errors(service: Object, at: str) -> list[FieldError]:
    """Report the namespace when the name is missing, and vice versa. (`ValidateWebhookService`, given both swapped)"""
    swapped = {"name": service.get("namespace"), "namespace": service.get("name")}
    errors = [required(f"{at}.{key}") for key, value in swapped.items() if not value]
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        why = "port is not valid: must be between 1 and 65535, inclusive"
        errors.append(invalid(f"{at}.port", port, why))
    path = service.get("path")
    if not path or path == "/":
        return errors
    if path == "//":
        return [*errors, invalid(f"{at}.path", path, "segment[0] may not be empty")]
    if not path.startswith("/"):
        errors.append(invalid(f"{at}.path", path, "must start with a '/'"))
    for index, step in enumerate(path[1:].removesuffix("/").split("/")):
        if not step:
            errors.append(invalid(f"{at}.path", path, f"segment[{index}] may not be empty"))
            continue
        for problem in is_dns1123_subdomain(step):
            errors.append(invalid(f"{at}.path", path, f"segment[{index}]: {problem}"))
    return errors


def condition_errors(conditions: Sequence[Object], at: str, scope: Scope) -> list[FieldError]:
    """Check matchConditions. (`validateMatchConditions`)"""
    errors: list[FieldError] = []
    names: set[str] = set()
    if len(conditions) > MOST_CONDITIONS:
        errors.append(too_many(at, len(conditions), MOST_CONDITIONS))
    for index, condition in enumerate(conditions):
        where, name = f"{at}[{index}]", condition.get("name") or ""
        text = (condition.get("expression") or "").strip()
        if not text:
            errors.append(required(f"{where}.expression"))
        elif problem := scope.problem(text, ("bool",)):
            errors.append(expression_error(f"{where}.expression", text, problem))
        if not name:
            errors.append(required(f"{where}.name"))
            continue
        errors += each(f"{where}.name", name, is_qualified_name(name))
        if name in names:
            errors.append(duplicate(f"{where}.name", name))
        names.add(name)
    return errors
