"""The status of Jobs: counts, conditions that fit each other, indexes, and what never goes back.

Source: pkg/apis/batch/validation/validation.go (validateJobStatus, ValidateJobUpdateStatus) and
pkg/registry/batch/job/strategy.go (getStatusValidationOptions): most rules hold for what an update changes.
"""

from typing import Any

from lastcall.kube.api.field import OMITTED, FieldError, duplicate, invalid, required
from lastcall.kube.api.meta import Object
from lastcall.kube.api.protobuf.internal import as_internal
from lastcall.kube.api.text.times import parse_rfc3339
from lastcall.kube.api.validators.common import non_negative
from lastcall.kube.api.validators.jobs.success_policy import intervals_of

_COUNTS = ("active", "succeeded", "failed", "ready", "terminating")
_TERMINAL = ("Failed", "Complete", "FailureTarget")


def update_job_status(new: Object, old: Object) -> list[FieldError]:
    status, stored = new.get("status") or {}, old.get("status") or {}
    spec = new.get("spec") or {}
    errors = [error for name in _COUNTS for error in non_negative(status.get(name), f"status.{name}")]
    errors += _uncounted(status.get("uncountedTerminatedPods") or {})
    errors += _conditions(status, stored)
    errors += _times(status, stored)
    errors += _finishing(status, stored)
    errors += _indexes(spec, status, stored)
    errors += _when_finished(status, stored)
    return errors + _no_way_back(new, status, stored)


def is_true(status: Object, condition: str) -> bool:
    return any(each.get("type") == condition and each.get("status") == "True" for each in _of(status))


def _of(status: Object) -> list[Object]:
    return status.get("conditions") or []


def _becomes(status: Object, stored: Object, condition: str) -> bool:
    return is_true(status, condition) and not is_true(stored, condition)


def _uncounted(pods: Object) -> list[FieldError]:
    errors, seen = list[FieldError](), set[str]()
    for key in ("succeeded", "failed"):
        for index, uid in enumerate(pods.get(key) or ()):
            path = f"status.uncountedTerminatedPods.{key}[{index}]"
            if not uid:
                errors.append(invalid(path, uid, "must not be empty"))
            elif uid in seen:
                errors.append(duplicate(path, uid))
            seen.add(uid)
    return errors


def _wrong(why: str) -> FieldError:
    return invalid("status.conditions", OMITTED, why)


def _conditions(status: Object, stored: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    complete = is_true(status, "Complete")
    if not (is_true(stored, "Complete") and is_true(stored, "Failed")) and complete and is_true(status, "Failed"):
        errors.append(_wrong("cannot set Complete=True and Failed=true conditions"))
    if not is_true(stored, "FailureTarget") and complete and is_true(status, "FailureTarget"):
        errors.append(_wrong("cannot set Complete=True and FailureTarget=true conditions"))
    return errors


def _times(status: Object, stored: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    done, started = status.get("completionTime"), status.get("startTime")
    finished = _becomes(status, stored, "Complete") or _becomes(status, stored, "Failed")
    changed = done != stored.get("completionTime")
    complete, path = is_true(status, "Complete"), "status.completionTime"
    if (changed or finished) and done is not None and not complete:
        why = "cannot set completionTime when there is no Complete=True condition"
        errors.append(invalid(path, done, why))
    if (changed or _becomes(status, stored, "Complete")) and done is None and complete:
        errors.append(required(path, "completionTime is required for Complete jobs"))
    moved = changed or started != stored.get("startTime")
    if moved and done is not None and started is not None and parse_rfc3339(done) < parse_rfc3339(started):
        errors.append(invalid(path, done, "must be equal to or after `startTime`"))
    return errors


def _finishing(status: Object, stored: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    if _becomes(status, stored, "Failed") and not is_true(status, "FailureTarget"):
        errors.append(_wrong("cannot set Failed=True condition without the FailureTarget=true condition"))
    if _becomes(status, stored, "Complete") and not is_true(status, "SuccessCriteriaMet"):
        errors.append(_wrong("cannot set Complete=True condition without the SuccessCriteriaMet=true condition"))
    return errors


def _indexes(spec: Object, status: Object, stored: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    completed, failed = status.get("completedIndexes") or "", status.get("failedIndexes")
    completions, per_index = spec.get("completions"), spec.get("backoffLimitPerIndex") is not None
    indexed = spec.get("completionMode") == "Indexed"
    had = {"completedIndexes": stored.get("completedIndexes") or "", "failedIndexes": stored.get("failedIndexes")}
    given = {"completedIndexes": completed, "failedIndexes": failed if per_index else None}
    for key, text in given.items():
        if completions is None or text is None or text == had[key]:
            continue
        try:
            intervals_of(text, completions)
        except ValueError as error:
            errors.append(invalid(f"status.{key}", text, f"error parsing {key}: {error}"))
    if completed and completed != had["completedIndexes"] and not indexed:
        why = "cannot set non-empty completedIndexes when non-indexed completion mode"
        errors.append(invalid("status.completedIndexes", completed, why))
    if failed is not None and failed != had["failedIndexes"] and not per_index:
        why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        errors.append(invalid("status.failedIndexes", failed, why))
    if per_index and not errors and failed is not None:
        errors += _overlap(completed, failed, completions or 0)
    return errors


def _overlap(completed: str, failed: str, completions: int) -> list[FieldError]:
    try:
        first, second = intervals_of(completed, completions), intervals_of(failed, completions)
    except ValueError:
        return []
    common = [max(one.start, other.start) for one in first for other in second if _meet(one, other)]
    if not common:
        return []
    why = f"failedIndexes and completedIndexes overlap at index: {min(common)}"
    return [invalid("status.failedIndexes", failed, why)]


def _meet(one: range, other: range) -> bool:
    return max(one.start, other.start) < min(one.stop, other.stop)


def _when_finished(status: Object, stored: Object) -> list[FieldError]:
    """Nothing of a Job that is over is active or uncounted."""
    errors: list[FieldError] = []
    finished = _becomes(status, stored, "Complete") or _becomes(status, stored, "Failed")
    over = is_true(status, "Complete") or is_true(status, "Failed")
    active, terminating = status.get("active") or 0, status.get("terminating") or 0
    uncounted = status.get("uncountedTerminatedPods")

    def changed(name: str) -> bool:
        return bool(finished or status.get(name) != stored.get(name))

    if over and changed("active") and active > 0:
        errors.append(invalid("status.active", active, "active>0 is invalid for finished job"))
    if over and changed("startTime") and status.get("startTime") is None:
        errors.append(required("status.startTime", "startTime is required for finished job"))
    if over and changed("uncountedTerminatedPods") and any((uncounted or {}).values()):
        shown = as_internal("batch.v1.UncountedTerminatedPods", uncounted)
        errors.append(invalid("status.uncountedTerminatedPods", shown, "must be empty for finished job"))
    if over and changed("terminating") and terminating > 0:
        errors.append(invalid("status.terminating", terminating, "terminating>0 is invalid for finished job"))
    ready = status.get("ready") or 0
    if (changed("ready") or changed("active")) and status.get("ready") is not None and ready > active:
        errors.append(invalid("status.ready", ready, "cannot set more ready pods than active"))
    for condition, shown in (("FailureTarget", "FailureTarget=true"), ("Failed", "Failed=true")):
        both = [is_true(each, "SuccessCriteriaMet") and is_true(each, condition) for each in (status, stored)]
        if both == [True, False]:
            errors.append(_wrong(f"cannot set SuccessCriteriaMet=True and {shown} conditions"))
    return errors


def _no_way_back(new: Object, status: Object, stored: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    for condition in _TERMINAL:
        if is_true(stored, condition) and not is_true(status, condition):
            errors.append(_wrong(f"cannot disable the terminal {condition}=True condition"))
    for name in ("failed", "succeeded"):
        if (status.get(name) or 0) < (stored.get(name) or 0):
            errors.append(invalid(f"status.{name}", status.get(name) or 0, f"cannot decrease the {name} counter"))
    started: Any = status.get("startTime")
    free = (new.get("spec") or {}).get("suspend") or (is_true(stored, "Suspended") and not is_true(status, "Suspended"))
    if not free and stored.get("startTime") is not None and started != stored["startTime"]:
        errors.append(invalid("status.startTime", started, "field is immutable for unsuspended job once set"))
    return errors
