"""What a ResourceQuota's status says: its limits, and how much of them is used. Pure.

Source: pkg/controller/resourcequota/resource_quota_controller.go:syncResourceQuota,
apiserver pkg/quota/v1/resources.go:CalculateUsage, generic/evaluator.go:CalculateUsageStats.
"""

# check: plain objects because a quota counts objects of any kind
# check: pure

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from lastcall.kube.api.meta import Object
from lastcall.kube.api.quota.counting import IGNORED, concerned, in_scope, usage
from lastcall.kube.api.resource_lists import ZERO, Resources, add, mask, parse, written
from lastcall.kube.api.resources import Resource


def counted_kinds(hard: Iterable[str], kinds: Iterable[Resource]) -> list[Resource]:
    """Return which of the namespaced `kinds` have to be counted for a quota with these limits."""
    names = list(hard)
    return [
        kind
        for kind in kinds
        if kind.namespaced and (kind.group, kind.plural) not in IGNORED and concerned(kind, names)
    ]


def status_of(quota: Object, objects: Mapping[Resource, Sequence[Object]], moment: datetime) -> Object | None:
    """Return the new status, from all `objects` of the namespace of each counted kind; None when it would say the same.

    A resource that this controller cannot count keeps the usage that another controller wrote.
    """
    hard = parse((quota.get("spec") or {}).get("hard"))
    before = quota.get("status") or {}
    used = parse(before.get("used"))
    counted: Resources = {}
    for kind, items in objects.items():
        names = concerned(kind, hard)
        total: Resources = dict.fromkeys(names, ZERO)
        for obj in items:
            if in_scope(quota, kind, obj):
                total = add(total, mask(usage(kind, obj, moment), names))
        counted = add(counted, total)
    used = mask({**used, **counted}, hard)
    known = "hard" in before and "used" in before
    if known and parse(before["hard"]) == hard and parse(before["used"]) == used:
        return None
    return {"hard": written(hard), "used": written(used)}


def lessens(quota: Object, status: Object) -> bool:
    """Return whether the usage of any resource is less than the quota says now."""
    before, after = parse((quota.get("status") or {}).get("used")), parse(status["used"])
    return any(name in before and amount < before[name] for name, amount in after.items())
