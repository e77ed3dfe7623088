"""Admission webhooks that no Pod can be created without, those that answer for them included."""

from collections.abc import Iterator, Mapping
from typing import Any

from lastcall.kube.api import (
    MUTATINGWEBHOOKCONFIGURATIONS,
    NAMESPACES,
    SERVICES,
    VALIDATINGWEBHOOKCONFIGURATIONS,
    Object,
    labels_of,
    selector_of_expressions,
)
from lastcall.lint.application import Application, Workload
from lastcall.lint.subject import Finding, Op, Subject, found
from lastcall.manifests import Path, labels_text

NAME_LABEL = "kubernetes.io/metadata.name"
"""A label that the API server gives each namespace."""


def findings(app: Application) -> Iterator[Finding]:
    for configuration in app.of(MUTATINGWEBHOOKCONFIGURATIONS, VALIDATINGWEBHOOKCONFIGURATIONS):
        for index, webhook in enumerate(configuration.obj.get("webhooks") or ()):
            service = _service_of(app, webhook)
            if service is not None and _guards_itself(app, webhook, service):
                yield _finding(app, configuration, index, webhook, service)


def _finding(app: Application, configuration: Subject, index: int, webhook: Object, service: Subject) -> Finding:
    name, its = webhook.get("name"), app.selected(service)[0]
    path: Path = ("webhooks", index)
    text = (
        f"No Pod of {its} can be created while none of them runs: webhook {name} has to admit each (failurePolicy: "
        f"Fail), and its Service {service.name} selects no other Pods."
    )
    selector: dict[str, str] = service.spec["selector"]
    exempt = [{"key": key, "operator": "NotIn", "values": [value]} for key, value in list(selector.items())[:1]]
    fix = f"Exempt them: an objectSelector that does not match {labels_text(selector)}; or failurePolicy: Ignore."
    if configuration.has((*path, "objectSelector")):
        return found("webhookGuardsItself", configuration, path, text, fix=fix)
    patch = [Op("add", (*path, "objectSelector"), {"matchExpressions": exempt})]
    return found("webhookGuardsItself", configuration, path, text, fix=fix, patch=patch)


def _service_of(app: Application, webhook: Object) -> Subject | None:
    reference = (webhook.get("clientConfig") or {}).get("service") or {}
    namespace, name = str(reference.get("namespace") or ""), str(reference.get("name") or "")
    subject = app.get("Service", namespace, name)
    return subject if subject is not None and subject.resource == SERVICES else None


def _guards_itself(app: Application, webhook: Object, service: Subject) -> bool:
    """Whether a webhook has to admit every Pod that its Service selects; False where the manifests alone do not say."""
    if webhook.get("failurePolicy", "Fail") != "Fail" or webhook.get("matchConditions") or app.has_other_kinds:
        return False
    if not service.spec.get("selector") or not any(map(_is_about_new_pods, webhook.get("rules") or ())):
        return False
    selected = app.selected(service)
    return bool(selected) and all(_wants(app, webhook, each) for each in selected)


def _is_about_new_pods(rule: Object) -> bool:
    def has(field: str, *those: str) -> bool:
        return any(each in (*those, "*") for each in rule.get(field) or ())

    groups, scope = has("apiGroups", "") and has("apiVersions", "v1"), rule.get("scope") or "*"
    return groups and has("operations", "CREATE") and has("resources", "pods", "*/*") and scope in ("*", "Namespaced")


def _wants(app: Application, webhook: Object, workload: Workload) -> bool:
    namespace = workload.subject.namespace
    try:
        objects = selector_of_expressions(webhook.get("objectSelector") or {})
        namespaces = selector_of_expressions(webhook.get("namespaceSelector") or {})
    except ValueError:
        return False  # reported as an invalid value
    labels = _labels_of_namespace(app, namespace)
    if labels is None and _asks_for_more(webhook.get("namespaceSelector") or {}):
        return False
    return objects.matches(workload.labels) and namespaces.matches({NAME_LABEL: namespace, **(labels or {})})


def _labels_of_namespace(app: Application, name: str) -> Mapping[str, str] | None:
    """None if it may have labels that nobody sees here."""
    subject = next((each for each in app.of(NAMESPACES) if each.name == name), None)
    if subject is not None:
        return labels_of(subject.obj)
    return {} if app.fresh else None


def _asks_for_more(selector: Any) -> bool:
    keys = {*(selector.get("matchLabels") or {}), *(each.get("key") for each in selector.get("matchExpressions") or ())}
    return bool(keys - {NAME_LABEL})
