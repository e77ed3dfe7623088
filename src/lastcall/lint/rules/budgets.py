"""PodDisruptionBudgets and HorizontalPodAutoscalers, against the workloads that they are about."""

from collections.abc import Iterator

from lastcall.kube.api import (
    HORIZONTALPODAUTOSCALERS,
    HORIZONTALPODAUTOSCALERS_V1,
    PODDISRUPTIONBUDGETS,
    Object,
    expected_pods,
)
from lastcall.lint.application import REPLICATED, Application, Workload
from lastcall.lint.subject import Finding, Op, Subject, found
from lastcall.manifests import closest, labels_text, similar_labels


def findings(app: Application) -> Iterator[Finding]:
    budgets = app.of(PODDISRUPTIONBUDGETS)
    for index, budget in enumerate(budgets):
        protected = app.protected(budget)
        if not protected:
            yield from _nothing(app, budget)
        yield from _never(budget, protected)
        for other in budgets[:index]:
            both = [each for each in app.protected(other) if each in protected]
            if both:
                text = f"{budget} and {other} both select the Pods of {both[0]}: every eviction of them fails."
                yield found("budgetsOverlap", budget, ("spec", "selector"), text)
    for scaler in app.of(HORIZONTALPODAUTOSCALERS, HORIZONTALPODAUTOSCALERS_V1):
        yield from _scaler(app, scaler)


def _nothing(app: Application, budget: Subject) -> Iterator[Finding]:
    wanted = ((budget.spec.get("selector") or {}).get("matchLabels")) or {}
    if not wanted:
        return
    unprotected = [
        each
        for each in app.in_namespace(budget.namespace)
        if not each.is_job and not any(each in app.protected(other) for other in app.of(PODDISRUPTIONBUDGETS))
    ]
    near = next((each for each in unprotected if similar_labels(wanted, each.labels)), None)
    if near is None and not app.has_other_kinds:
        near = next((each for each in unprotected if each.subject.name == budget.name), None)
    if near is None:
        app.note_absent("Pod", budget.namespace, labels_text(wanted), budget, ("spec", "selector"))
        return
    text = f"PodDisruptionBudget {budget.name} selects {labels_text(wanted)}; the Pods of {near} have "
    text += f"{labels_text(near.labels)}."
    new = {key: near.labels[key] for key in wanted if key in near.labels}
    patch = [Op("replace", ("spec", "selector", "matchLabels"), new)] if len(new) == len(wanted) else []
    automatic = similar_labels(wanted, near.labels)
    yield found("budgetSelectsNothing", budget, ("spec", "selector"), text, patch=patch, automatic=automatic)


def _never(budget: Subject, protected: list[Workload]) -> Iterator[Finding]:
    spec = budget.spec
    field = next((name for name in ("maxUnavailable", "minAvailable") if spec.get(name) is not None), None)
    if field is None:
        text = f"{budget} has neither minAvailable nor maxUnavailable: it allows no disruption."
        patch = [Op("add", ("spec", "maxUnavailable"), 1)]
        yield found("budgetNeverAllows", budget, ("spec",), text, patch=patch, automatic=True)
        return
    if not protected or any(each.resource not in REPLICATED for each in protected):
        return  # how many Pods there are, nodes or others decide
    replicas = sum(each.replicas or 0 for each in protected)
    if not replicas or replicas > expected_pods(budget.obj, replicas, replicas).healthy:
        return
    path = ("spec", field)
    whose = " and ".join(map(str, protected))
    count = f"{replicas} replica{'s' * (replicas != 1)}"
    scaled = [each for each in protected if each.scalers]
    at_least = " (minReplicas of its HorizontalPodAutoscaler)" if scaled else ""
    text = f"{budget} allows no disruption: {field} is {spec[field]}, and {whose} has {count}{at_least}."
    grows = bool(scaled) and not (field == "maxUnavailable" or spec[field] == "100%")
    if grows:
        text = text.replace("allows no disruption", "allows no disruption as long as there is little load")
    patch = [Op("replace", path, 1)]
    if field == "minAvailable":
        patch = [Op("remove", path), Op("add", ("spec", "maxUnavailable"), 1)]
    fix = "maxUnavailable: 1"
    if replicas == 1:
        fix += " (each eviction then causes a gap), or replicas: 2 and minAvailable: 1"
    yield found(
        "budgetNeverAllows",
        budget,
        path,
        text,
        fix=f"{fix}.",
        patch=patch,
        automatic=replicas > 1,
        severity="warning" if grows else None,
    )


# -- autoscalers -----------------------------------------------------------------------------------------------------


def _scaler(app: Application, scaler: Subject) -> Iterator[Finding]:
    reference = scaler.spec.get("scaleTargetRef") or {}
    path = ("spec", "scaleTargetRef")
    target = app.get(str(reference.get("kind")), scaler.namespace, str(reference.get("name")))
    if target is None:
        same = [each for each in app.workloads if each.subject.namespace == scaler.namespace]
        best = closest(
            str(reference.get("name")),
            [each.subject.name for each in same if each.subject.kind == reference.get("kind")],
        )
        text = f"{scaler} scales {reference.get('kind')} {reference.get('name')}, which is not in these files"
        if best is not None:
            patch = [Op("replace", (*path, "name"), best)]
            yield found("scalerTargetMissing", scaler, (*path, "name"), f"{text}; {best} is.", patch=patch)
            return
        app.note_absent(str(reference.get("kind")), scaler.namespace, str(reference.get("name")), scaler, path)
        return
    workload = next((each for each in app.workloads if each.subject is target), None)
    if workload is None:
        return
    if target.has(("spec", "replicas")) and workload.resource in REPLICATED:
        text = (
            f"{target} has replicas: {target.spec.get('replicas')}, and {scaler} sets the number: each apply resets it."
        )
        patch = [Op("remove", ("spec", "replicas"))]
        yield found("scalerSetBack", target, ("spec", "replicas"), text, patch=patch)
    ranges = [each for each in app.sound if each.kind == "LimitRange" and each.namespace == scaler.namespace]
    if ranges:
        return  # they may fill in requests
    for name in _utilizations(scaler.spec):
        lacking = [each for each in workload.containers if name not in _requests(each.spec)]
        if lacking:
            text = (
                f"{scaler} uses the utilization of {name}, and {lacking[0].name} of {target} requests none: it cannot "
                f"be computed."
            )
            yield found("scalerNeedsRequests", target, lacking[0].path, text)


def _utilizations(spec: Object) -> list[str]:
    if spec.get("targetCPUUtilizationPercentage") is not None:
        return ["cpu"]
    metrics = spec.get("metrics")
    if not metrics:
        return ["cpu"]
    resources = [each.get("resource") or {} for each in metrics if each.get("type") == "Resource"]
    return [str(each.get("name")) for each in resources if (each.get("target") or {}).get("type") == "Utilization"]


def _requests(container: Object) -> list[str]:
    """Of limits requests are made, where none are given."""
    resources = container.get("resources") or {}
    return [*(resources.get("requests") or ()), *(resources.get("limits") or ())]
