"""Job and CronJob. Source: pkg/apis/batch/validation/validation.go."""

import re
from typing import Any

from lastcall.api.field import FieldError, duplicate, forbidden, invalid, not_supported, required, too_many
from lastcall.api.meta import Object
from lastcall.api.validators.common import label_selector, non_negative, one_of, required_one_of
from lastcall.api.validators.workloads import IMMUTABLE, template_spec

MAX_PARALLELISM_INDEXED = 100_000
MAX_COMPLETIONS_INDEXED = 10**9
MAX_RULES = 20
_CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")


def validate_job(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors: list[FieldError] = []
    if not spec.get("selector"):
        errors.append(required("spec.selector"))
    else:
        errors += label_selector(spec["selector"], "spec.selector")
    if not spec.get("manualSelector") and spec.get("selector"):
        uid = (obj.get("metadata") or {}).get("uid", "")
        given = (spec["selector"].get("matchLabels") or {}).get(_CONTROLLER_UID)
        if given != uid:
            errors.append(invalid("spec.selector", spec["selector"], "`selector` not auto-generated"))
    return errors + job_spec(spec, "spec")


def job_spec(spec: Object, path: str) -> list[FieldError]:
    """The part that a Job and a CronJob's template share."""
    errors: list[FieldError] = []
    for key in (
        "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
        "backoffLimitPerIndex", "maxFailedIndexes",
    ):  # fmt: skip
        errors += non_negative(spec.get(key), f"{path}.{key}")
    mode = spec.get("completionMode")
    if mode is not None and mode not in ("NonIndexed", "Indexed"):
        errors.append(not_supported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed")))
    if mode == "Indexed":
        completions = spec.get("completions")
        if completions is None:
            why = "when completion mode is Indexed"
            errors.append(required(f"{path}.completions", why))
        elif completions > MAX_COMPLETIONS_INDEXED:
            errors.append(invalid(f"{path}.completions", completions, "must be less than or equal to 1000000000"))
        if (spec.get("parallelism") or 0) > MAX_PARALLELISM_INDEXED:
            why = f"must be less than or equal to {MAX_PARALLELISM_INDEXED} when completion mode is Indexed"
            errors.append(invalid(f"{path}.parallelism", spec["parallelism"], why))
    for key in ("backoffLimitPerIndex", "maxFailedIndexes"):
        if spec.get(key) is not None and mode != "Indexed":
            why = f"{'backoffLimitPerIndex' if key == 'backoffLimitPerIndex' else 'maxFailedIndexes'} is only allowed"
            errors.append(invalid(f"{path}.{key}", spec[key], f"{why} when completion mode is Indexed"))
    errors += one_of(
        spec.get("podReplacementPolicy"), f"{path}.podReplacementPolicy", ("Failed", "TerminatingOrFailed")
    )
    if spec.get("podFailurePolicy") is not None:
        errors += _failure_policy(spec, path)
    if spec.get("successPolicy") is not None and mode != "Indexed":
        errors.append(invalid(f"{path}.successPolicy", spec["successPolicy"], "requires indexed completion mode"))
    template = spec.get("template") or {}
    errors += template_spec(template, f"{path}.template")
    restart = (template.get("spec") or {}).get("restartPolicy")
    if restart in ("Always", ""):
        where = f"{path}.template.spec.restartPolicy"
        errors.append(not_supported(where, restart, ("OnFailure", "Never")))
    elif spec.get("podFailurePolicy") is not None and restart != "Never":
        where = f"{path}.template.spec.restartPolicy"
        errors.append(invalid(where, restart, 'only "Never" is supported when podFailurePolicy is specified'))
    return errors


def _failure_policy(spec: Object, path: str) -> list[FieldError]:
    rules = spec["podFailurePolicy"].get("rules") or []
    at = f"{path}.podFailurePolicy.rules"
    if len(rules) > MAX_RULES:
        return [too_many(at, len(rules), MAX_RULES)]
    template = (spec.get("template") or {}).get("spec") or {}
    containers = [each["name"] for key in ("containers", "initContainers") for each in template.get(key) or ()]
    errors: list[FieldError] = []
    for index, rule in enumerate(rules):
        here = f"{at}[{index}]"
        errors += required_one_of(rule.get("action"), f"{here}.action", _ACTIONS)
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or []
        if codes is None and not conditions:
            errors.append(invalid(here, rule, "specifying one of OnExitCodes and OnPodConditions is required"))
        elif codes is not None and conditions:
            errors.append(invalid(here, rule, "specifying both OnExitCodes and OnPodConditions is not supported"))
        if codes is not None:
            errors += _exit_codes(codes, f"{here}.onExitCodes", containers)
        for position, pattern in enumerate(conditions):
            where = f"{here}.onPodConditions[{position}]"
            errors += required_one_of(pattern.get("status"), f"{where}.status", ("False", "True", "Unknown"))
            if not pattern.get("type"):
                errors.append(invalid(f"{where}.type", "", "name part must be non-empty"))
    return errors


def _exit_codes(codes: Object, path: str, containers: list[str]) -> list[FieldError]:
    errors = required_one_of(codes.get("operator"), f"{path}.operator", ("In", "NotIn"))
    name = codes.get("containerName")
    if name is not None and name not in containers:
        errors.append(
            invalid(
                f"{path}.containerName", name, "must be one of the container or initContainer names in the pod template"
            )
        )
    values = codes.get("values") or []
    if not values:
        return [*errors, invalid(f"{path}.values", values, "at least one value is required")]
    if len(values) > 255:
        return [*errors, too_many(f"{path}.values", len(values), 255)]
    seen: list[int] = []
    for index, value in enumerate(values):
        if value in seen:
            errors.append(duplicate(f"{path}.values[{index}]", value))
        elif codes.get("operator") == "In" and value == 0:
            errors.append(invalid(f"{path}.values[{index}]", value, "must not be 0 for the In operator"))
        seen.append(value)
    if sorted(values) != values:
        errors.append(invalid(f"{path}.values", values, "must be ordered"))
    return errors


def update_job(new: Object, old: Object) -> list[FieldError]:
    """An indexed Job's completions may change with its parallelism; one suspended before its start has more freedom."""
    spec, stored = new.get("spec") or {}, old.get("spec") or {}
    errors: list[FieldError] = []
    completions = spec.get("completions")
    if completions != stored.get("completions"):
        elastic = spec.get("completionMode") == "Indexed" and completions is not None
        if not elastic or completions != spec.get("parallelism"):
            errors.append(invalid("spec.completions", completions, IMMUTABLE))
    for key in ("selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        if spec.get(key) != stored.get(key):
            errors.append(invalid(f"spec.{key}", spec.get(key), IMMUTABLE))
    template, before = spec.get("template"), stored.get("template")
    if template != before and not _only_directives(new, old):
        errors.append(invalid("spec.template", template, IMMUTABLE))
    return errors


def update_job_status(new: Object, old: Object) -> list[FieldError]:
    """(`ValidateJobUpdateStatus`, as far as a controller can get it wrong by itself)"""
    status = new.get("status") or {}
    if (status.get("ready") or 0) > (status.get("active") or 0):
        return [invalid("status.ready", status["ready"], "cannot set more ready pods than active")]
    return []


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
_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("dom", 1, 31), ("month", 1, 12), ("dow", 0, 6))
_NAMES = {
    "month": dict(
        zip(
            ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
            range(1, 13),
            strict=True,
        )
    ),
    "dow": dict(zip(["sun", "mon", "tue", "wed", "thu", "fri", "sat"], range(7), strict=True)),
}
_DESCRIPTORS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")


def schedule_problem(schedule: str) -> str:
    """What robfig/cron would say of a schedule; "" when it can be read."""
    text = schedule
    if text.startswith(("TZ=", "CRON_TZ=")):
        return "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
    if text.startswith("@"):
        if text in _DESCRIPTORS or re.fullmatch(r"@every ([0-9.]+(ns|us|µs|ms|s|m|h))+", text):
            return ""
        return f"unrecognized descriptor: {text}"
    fields = text.split()
    if len(fields) != len(_FIELDS):
        return f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{' '.join(fields)}]"
    for field, (name, low, high) in zip(fields, _FIELDS, strict=True):
        for part in field.split(","):
            if problem := _part_problem(part, name, low, high):
                return problem
    return ""


def _part_problem(part: str, name: str, low: int, high: int) -> str:
    span, slash, step = part.partition("/")
    if slash and (not step.isdecimal() or int(step) == 0):
        if step.isdecimal():
            return f"step of range should be a positive number: {part}"
        return f'failed to parse int from {step}: strconv.Atoi: parsing "{step}": invalid syntax'
    if span in ("*", "?"):
        return ""
    ends: list[int] = []
    for text in span.split("-"):
        value = _NAMES.get(name, {}).get(text.lower())
        if value is None and not text.isdecimal():
            return f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax'
        ends.append(int(text) if value is None else value)
    if len(ends) > 2:
        return f"too many hyphens: {part}"
    if ends[0] < low:
        return f"beginning of range ({ends[0]}) below minimum ({low}): {part}"
    if ends[-1] > high:
        return f"end of range ({ends[-1]}) above maximum ({high}): {part}"
    if ends[0] > ends[-1]:
        return f"beginning of range ({ends[0]}) beyond end of range ({ends[-1]}): {part}"
    return ""


def validate_cron_job(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors: list[FieldError] = []
    schedule = spec.get("schedule") or ""
    if not schedule:
        errors.append(required("spec.schedule"))
    elif problem := schedule_problem(schedule):
        errors.append(invalid("spec.schedule", schedule, problem))
    errors += non_negative(spec.get("startingDeadlineSeconds"), "spec.startingDeadlineSeconds")
    zone = spec.get("timeZone")
    if zone is not None and (problem := _zone_problem(zone)):
        errors.append(invalid("spec.timeZone", zone, problem))
    policies = ("Allow", "Forbid", "Replace")
    errors += required_one_of(spec.get("concurrencyPolicy"), "spec.concurrencyPolicy", policies)
    template = (spec.get("jobTemplate") or {}).get("spec") or {}
    errors += job_spec(template, "spec.jobTemplate.spec")
    if template.get("manualSelector"):
        why = "`manualSelector` is not allowed in a CronJob's template"
        errors.append(forbidden("spec.jobTemplate.spec.manualSelector", why))
    for key in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        errors += non_negative(spec.get(key), f"spec.{key}")
    name = (obj.get("metadata") or {}).get("name") or ""
    if len(name) > MAX_CRON_JOB_NAME:
        errors.append(invalid("metadata.name", name, f"must be no more than {MAX_CRON_JOB_NAME} characters"))
    return errors


def _zone_problem(zone: str) -> str:
    from zoneinfo import ZoneInfo

    if not zone:
        return "timeZone must be nil or non-empty string"
    if zone.lower() == "local":
        return "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        return f"unknown time zone {zone}"
    return ""
