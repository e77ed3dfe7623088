"""When an indexed Job has succeeded before all of its indexes have.

Source: pkg/apis/batch/validation/validation.go (validateSuccessPolicy, validateIndexesFormat).
"""

from lastcall.kube.api.field import FieldError, go_quote, invalid, required, too_long, too_many
from lastcall.kube.api.meta import Object
from lastcall.kube.api.text.numbers import NumberError, parse_int
from lastcall.kube.api.validators.common import non_negative

MOST_RULES = 20
LONGEST_INDEXES = 64 * 1024
"""Bytes."""


def success_policy(policy: Object, completions: int | None, path: str) -> list[FieldError]:
    """Check a success policy; `completions` is that of the Job, of the completion mode Indexed."""
    rules, at = policy.get("rules") or [], f"{path}.rules"
    errors: list[FieldError] = []
    if not rules:
        why = "at least one rules must be specified when the successPolicy is specified"
        errors.append(required(at, why))
    if len(rules) > MOST_RULES:
        errors.append(too_many(at, len(rules), MOST_RULES))
    for index, rule in enumerate(rules):
        errors += _rule(rule, completions or 0, f"{at}[{index}]")
    return errors


def _rule(rule: Object, completions: int, path: str) -> list[FieldError]:
    indexes, count = rule.get("succeededIndexes"), rule.get("succeededCount")
    if indexes is None and count is None:
        return [required(path, "at least one of succeededCount or succeededIndexes must be specified")]
    errors: list[FieldError] = []
    total, at = 0, f"{path}.succeededIndexes"
    if indexes is not None:
        if len(indexes.encode()) > LONGEST_INDEXES:
            errors.append(too_long(at, LONGEST_INDEXES))
        try:
            total = number_of_indexes(indexes, completions)
        except ValueError as error:
            errors.append(invalid(at, indexes, f"error parsing succeededIndexes: {error}"))
    if count is None:
        return errors
    at = f"{path}.succeededCount"
    errors += non_negative(count, at)
    if count > completions:
        why = f"must be less than or equal to {completions} (the number of specified completions)"
        errors.append(invalid(at, count, why))
    if indexes is not None and count > total:
        why = f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        errors.append(invalid(at, count, why))
    return errors


def number_of_indexes(text: str, completions: int) -> int:
    """Count how many indexes `0,2-4` names, each below `completions`. Raises ValueError in Kubernetes's words."""
    return sum(len(each) for each in intervals_of(text, completions))


def intervals_of(text: str, completions: int) -> list[range]:
    """Return the indexes that `0,2-4` names, each below `completions`. Raises ValueError in Kubernetes's words."""
    found: list[range] = []
    before = -1
    for interval in text.split(",") if text else ():
        limits = interval.split("-")
        if len(limits) > 2:
            raise ValueError(f"the fragment {go_quote(interval)} violates the requirement that an index interval can "
                             "have at most two parts separated by '-'")  # fmt: skip
        numbers: list[int] = []
        for limit in limits:
            number = _index(limit, completions)
            if before >= number and (numbers or before >= 0):
                raise ValueError(f"non-increasing order, previous: {before}, current: {number}")
            numbers.append(number)
            before = number
        found.append(range(numbers[0], numbers[-1] + 1))
    return found


def _index(text: str, completions: int) -> int:
    try:
        number = parse_int(text)
    except NumberError:
        raise ValueError(f"cannot convert string to integer for index: {go_quote(text)}") from None
    if number >= completions:
        raise ValueError(f"too large index: {go_quote(text)}")
    return number
