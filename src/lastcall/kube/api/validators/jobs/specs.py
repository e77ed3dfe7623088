"""Job and CronJob. Source: pkg/apis/batch/validation/validation.go."""

from collections.abc import Sequence
from typing import Any

from lastcall.kube.api.field import (
    OMITTED,
    FieldError,
    duplicate,
    each,
    go_quote,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import is_dns1123_label, is_dns1123_subdomain, is_qualified_name
from lastcall.kube.api.selectors import selector_of_expressions
from lastcall.kube.api.text.cron import ScheduleError, parse
from lastcall.kube.api.text.times import zone_of
from lastcall.kube.api.validators.common import (
    in_order,
    internal,
    label_selector,
    non_negative,
    one_of,
    required_one_of,
)
from lastcall.kube.api.validators.jobs.success_policy import success_policy
from lastcall.kube.api.validators.workloads import IMMUTABLE, template_spec

MAX_PARALLELISM_INDEXED = 100_000
MAX_RULES = 20
LONGEST_MANAGER = 63
"""Bytes of who manages a Job."""
_CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
_JOB_NAME = "batch.kubernetes.io/job-name"
_LEGACY_CONTROLLER_UID = "controller-uid"
_LEGACY_JOB_NAME = "job-name"
MAX_FAILED_INDEXES = 100_000
COMPLETIONS_SOFT_LIMIT = 100_000
HIGH_COMPLETIONS_LIMIT = 10_000
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")


def validate_job(obj: Object) -> list[FieldError]:
    spec, meta = obj.get("spec") or {}, obj.get("metadata") or {}
    errors = _generated_selector(spec, meta.get("name") or "", meta.get("uid") or "")
    errors += _job_spec_and_selector(spec)
    completions = spec.get("completions") or 0
    if spec.get("completionMode") == "Indexed" and completions > 0:
        host = f"{meta.get('name') or ''}-{completions - 1}"
        if is_dns1123_label(host):
            why = f"will not able to create pod with invalid DNS label: {host}"
            errors.append(invalid("metadata.name", meta.get("name") or "", why))
    return errors


def _generated_selector(spec: Object, name: str, uid: str) -> list[FieldError]:
    """(`validateGeneratedSelector`)"""
    selector = spec.get("selector")
    if spec.get("manualSelector") or selector is None:
        return []
    errors: list[FieldError] = []
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    expected = {_LEGACY_CONTROLLER_UID: uid, _LEGACY_JOB_NAME: name, _CONTROLLER_UID: uid, _JOB_NAME: name}
    for key, value in expected.items():
        path, why = f"spec.template.metadata.labels[{key}]", f"must be '{value}'"
        if key not in labels:
            errors.append(required(path, why))
        elif labels[key] != value:
            errors.append(invalid(path, dict(sorted(labels.items())) or None, why))
    if not _selects(selector, expected):
        errors.append(invalid("spec.selector", in_order(selector), "`selector` not auto-generated"))
    return errors


def _selects(selector: Object | None, labels: dict[str, str]) -> bool:
    """Whether a selector that can be read matches; one that is not there matches nothing."""
    if selector is None:
        return False
    if label_selector(selector, ""):
        return True  # what cannot be read has its own errors
    try:
        return selector_of_expressions(selector).matches(labels)
    except ValueError:
        return True  # an unknown operator, which has its own error


def _job_spec_and_selector(spec: Object) -> list[FieldError]:
    """(`ValidateJobSpec`)"""
    errors = job_spec(spec, "spec")
    selector = spec.get("selector")
    errors += [required("spec.selector")] if selector is None else label_selector(selector, "spec.selector")
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if not _selects(selector, labels or {}):
        shown = None if labels is None else dict(sorted(labels.items()))
        errors.append(invalid("spec.template.metadata.labels", shown, "`selector` does not match template `labels`"))
    return errors


def job_spec(spec: Object, path: str) -> list[FieldError]:
    """Check the part that a Job and a CronJob's template share."""
    errors: list[FieldError] = []
    for key in (
        "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
        "backoffLimitPerIndex", "maxFailedIndexes",
    ):  # fmt: skip
        errors += non_negative(spec.get(key), f"{path}.{key}")
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        errors.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    mode = spec.get("completionMode")
    if mode is not None and mode not in ("NonIndexed", "Indexed"):
        errors.append(not_supported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed")))
    if mode == "Indexed":
        errors += _indexed(spec, path)
    if mode in (None, "NonIndexed"):
        for key in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(key) is not None:
                errors.append(invalid(f"{path}.{key}", spec[key], "requires indexed completion mode"))
    if spec.get("podFailurePolicy") is not None:
        errors += _failure_policy(spec, path)
    if spec.get("successPolicy") is not None:
        if mode != "Indexed":
            shown = internal("batch.v1.SuccessPolicy", spec["successPolicy"])
            errors.append(invalid(f"{path}.successPolicy", shown, "requires indexed completion mode"))
        else:
            errors += success_policy(spec["successPolicy"], spec.get("completions"), f"{path}.successPolicy")
    errors += _manager(spec.get("managedBy"), f"{path}.managedBy")
    policies = ("Failed",) if spec.get("podFailurePolicy") is not None else ("Failed", "TerminatingOrFailed")
    errors += one_of(spec.get("podReplacementPolicy"), f"{path}.podReplacementPolicy", policies)
    template = spec.get("template") or {}
    errors += template_spec(template, f"{path}.template")
    restart, where = (template.get("spec") or {}).get("restartPolicy"), f"{path}.template.spec.restartPolicy"
    if restart in (None, "", "Always"):
        errors.append(required(where, 'valid values: "OnFailure", "Never"'))
    elif restart not in ("OnFailure", "Never"):
        errors.append(not_supported(where, restart, ("OnFailure", "Never")))
    elif spec.get("podFailurePolicy") is not None and restart != "Never":
        errors.append(invalid(where, restart, 'only "Never" is supported when podFailurePolicy is specified'))
    return errors


def _manager(name: str | None, path: str) -> list[FieldError]:
    """Who does a Job's work. (`validateManagedBy`, `IsDomainPrefixedPath`)"""
    if name is None:
        return []
    host, _, rest = name.partition("/")
    if not host or not rest:
        errors = [invalid(path, name, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    else:
        errors = each(path, host, is_dns1123_subdomain(host))
    return [*errors, too_long(path, LONGEST_MANAGER)] if len(name.encode()) > LONGEST_MANAGER else errors


def _indexed(spec: Object, path: str) -> list[FieldError]:
    """What holds for the completion mode Indexed."""
    errors: list[FieldError] = []
    completions, most = spec.get("completions"), spec.get("maxFailedIndexes")
    parallelism = spec.get("parallelism") or 0
    if completions is None:
        errors.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if parallelism > MAX_PARALLELISM_INDEXED:
        why = f"must be less than or equal to {MAX_PARALLELISM_INDEXED} when completion mode is Indexed"
        errors.append(invalid(f"{path}.parallelism", parallelism, why))
    if completions is not None and most is not None and most > completions:
        errors.append(invalid(f"{path}.maxFailedIndexes", most, "must be less than or equal to completions"))
    if most is not None and most > MAX_FAILED_INDEXES:
        errors.append(invalid(f"{path}.maxFailedIndexes", most, f"must be less than or equal to {MAX_FAILED_INDEXES}"))
    if (completions or 0) > COMPLETIONS_SOFT_LIMIT and spec.get("backoffLimitPerIndex") is not None:
        if most is None:
            why = f"must be specified when completions is above {COMPLETIONS_SOFT_LIMIT}"
            errors.append(required(f"{path}.maxFailedIndexes", why))
        why = (
            f"must be less than or equal to {HIGH_COMPLETIONS_LIMIT} when completions are above "
            f"{COMPLETIONS_SOFT_LIMIT} and used with backoff limit per index"
        )
        if parallelism > HIGH_COMPLETIONS_LIMIT:
            errors.append(invalid(f"{path}.parallelism", parallelism, why))
        if most is not None and most > HIGH_COMPLETIONS_LIMIT:
            errors.append(invalid(f"{path}.maxFailedIndexes", most, why))
    return errors


def _failure_policy(spec: Object, path: str) -> list[FieldError]:
    rules = spec["podFailurePolicy"].get("rules") or []
    at = f"{path}.podFailurePolicy.rules"
    errors: list[FieldError] = []
    if len(rules) > MAX_RULES:
        errors.append(too_many(at, len(rules), MAX_RULES))
    template = (spec.get("template") or {}).get("spec") or {}
    containers = [item.get("name", "") for key in ("containers", "initContainers") for item in template.get(key) or ()]
    for index, rule in enumerate(rules):
        errors += _failure_rule(spec, rule, f"{at}[{index}]", containers)
    return errors


def _valid(value: Any, path: str, supported: Sequence[str]) -> list[FieldError]:
    if value in (None, ""):
        return [required(path, f"valid values: [{' '.join(go_quote(item) for item in supported)}]")]
    return one_of(value, path, supported)


def _failure_rule(spec: Object, rule: Object, path: str, containers: list[str]) -> list[FieldError]:
    """(`validatePodFailurePolicyRule`)"""
    action = rule.get("action")
    if action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        errors = [invalid(f"{path}.action", action, "requires the backoffLimitPerIndex to be set")]
    else:
        errors = _valid(action, f"{path}.action", _ACTIONS)
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or []
    if codes is not None:
        errors += _exit_codes(codes, f"{path}.onExitCodes", containers)
    if len(conditions) > MAX_RULES:
        errors.append(too_many(f"{path}.onPodConditions", len(conditions), MAX_RULES))
    for position, pattern in enumerate(conditions):
        where = f"{path}.onPodConditions[{position}]"
        errors += each(f"{where}.type", pattern.get("type") or "", is_qualified_name(pattern.get("type") or ""))
        errors += _valid(pattern.get("status"), f"{where}.status", ("False", "True", "Unknown"))
    if codes is not None and conditions:
        why = "specifying both OnExitCodes and OnPodConditions is not supported"
        errors.append(invalid(path, OMITTED, why))
    if codes is None and not conditions:
        why = "specifying one of OnExitCodes and OnPodConditions is required"
        errors.append(invalid(path, OMITTED, why))
    return errors


def _exit_codes(codes: Object, path: str, containers: list[str]) -> list[FieldError]:
    errors = _valid(codes.get("operator"), f"{path}.operator", ("In", "NotIn"))
    name = codes.get("containerName")
    if name is not None and name not in containers:
        why = "must be one of the container or initContainer names in the pod template"
        errors.append(invalid(f"{path}.containerName", name, why))
    values = codes.get("values") or []
    if not values:
        errors.append(invalid(f"{path}.values", codes.get("values"), "at least one value is required"))
    elif len(values) > 255:
        errors.append(too_many(f"{path}.values", len(values), 255))
    for index, value in enumerate(values):
        if codes.get("operator") == "In" and value == 0:
            errors.append(invalid(f"{path}.values[{index}]", value, "must not be 0 for the In operator"))
        if value in values[:index]:
            errors.append(duplicate(f"{path}.values[{index}]", value))
    if sorted(values) != values:
        errors.append(invalid(f"{path}.values", values, "must be ordered"))
    return errors


def update_job(new: Object, old: Object) -> list[FieldError]:
    """Check a change. An indexed Job's completions may change with its parallelism.

    A Job that was suspended before its start has more freedom.
    """
    spec, stored = new.get("spec") or {}, old.get("spec") or {}
    # The update's own validation looks at the spec once more.
    errors = _job_spec_and_selector(spec)
    completions = spec.get("completions")
    if completions != stored.get("completions"):
        if spec.get("completionMode") != "Indexed":
            errors.append(invalid("spec.completions", completions, IMMUTABLE))
        elif completions is not None and completions != spec.get("parallelism"):
            why = "can only be modified in tandem with spec.parallelism"
            errors.append(invalid("spec.completions", completions, why))
    if spec.get("selector") != stored.get("selector"):
        errors.append(invalid("spec.selector", in_order(spec.get("selector")), IMMUTABLE))
    template, before = spec.get("template"), stored.get("template")
    if template != before and not _only_directives(new, old):
        errors.append(invalid("spec.template", internal("core.v1.PodTemplateSpec", template or {}), IMMUTABLE))
    for key in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        if spec.get(key) != stored.get(key):
            shown = internal(f"batch.v1.{key[0].upper()}{key[1:]}", spec.get(key))
            errors.append(invalid(f"spec.{key}", shown, IMMUTABLE))
    return errors


def _only_directives(new: Object, old: Object) -> bool:
    """The scheduling directives of a Job that is suspended and never started (or not any more) may change."""
    stored = old.get("spec") or {}
    started = (old.get("status") or {}).get("startTime") is not None
    if not stored.get("suspend") or started:
        return False

    def rest(obj: Object) -> Any:
        template = (obj.get("spec") or {}).get("template") or {}
        meta = {k: v for k, v in (template.get("metadata") or {}).items() if k not in ("labels", "annotations")}
        directives = ("nodeSelector", "affinity", "tolerations", "schedulingGates")
        return meta, {k: v for k, v in (template.get("spec") or {}).items() if k not in directives}

    return bool(rest(new) == rest(old))


# -- CronJob -------------------------------------------------------------------------------------------------------

MAX_CRON_JOB_NAME = 52


def schedule_problems(schedule: str) -> list[str]:
    """Return what Kubernetes would say of a schedule. (`validateScheduleFormat`)"""
    problems: list[str] = []
    text = schedule
    if text.startswith(("TZ=", "CRON_TZ=")) and " " in text:
        zone, _, text = text.partition("=")[2].partition(" ")
        if problem := _zone_problem(zone):
            problems.append(f"provided bad location {zone}: {problem}")
    try:
        if not problems:
            parse(text.strip(" ") if text != schedule else text)
    except ScheduleError as error:
        problems.append(str(error))
    if "TZ" in schedule:
        problems.append("cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
    return problems


def validate_cron_job(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors: list[FieldError] = []
    schedule = spec.get("schedule") or ""
    if not schedule:
        errors.append(required("spec.schedule"))
    errors += [invalid("spec.schedule", schedule, problem) for problem in schedule_problems(schedule) if schedule]
    errors += non_negative(spec.get("startingDeadlineSeconds"), "spec.startingDeadlineSeconds")
    zone = spec.get("timeZone")
    if zone is not None and (problem := _zone_problem(zone)):
        errors.append(invalid("spec.timeZone", zone, problem))
    policies = ("Allow", "Forbid", "Replace")
    errors += required_one_of(spec.get("concurrencyPolicy"), "spec.concurrencyPolicy", policies)
    template = (spec.get("jobTemplate") or {}).get("spec") or {}
    errors += job_spec(template, "spec.jobTemplate.spec")
    if (selector := template.get("selector")) is not None:
        why = "`selector` will be auto-generated"
        errors.append(invalid("spec.jobTemplate.spec.selector", in_order(selector), why))
    if template.get("manualSelector"):
        errors.append(not_supported("spec.jobTemplate.spec.manualSelector", True, ("nil", "false")))
    for key in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        errors += non_negative(spec.get(key), f"spec.{key}")
    name = (obj.get("metadata") or {}).get("name") or ""
    if len(name) > MAX_CRON_JOB_NAME:
        errors.append(invalid("metadata.name", name, f"must be no more than {MAX_CRON_JOB_NAME} characters"))
    return errors


def _zone_problem(zone: str) -> str:
    if not zone:
        return "timeZone must be nil or non-empty string"
    if zone.lower() == "local":
        return "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
    try:
        zone_of(zone)
    except ValueError as error:
        return str(error)
    return ""
