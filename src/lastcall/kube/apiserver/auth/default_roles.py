"""Default roles and bindings that are there already get what a newer version of them has; nothing is taken away.

Sources: pkg/registry/rbac/reconciliation/{reconcile_role,reconcile_rolebindings}.go.
"""

from collections.abc import Iterable, Sequence
from enum import Enum

from lastcall.kube.api.meta import Object
from lastcall.kube.apiserver.auth.bootstrap_policy import AUTO_UPDATE
from lastcall.kube.apiserver.auth.rbac import uncovered


class Step(Enum):
    """How an object gets its new form."""

    NONE = "none"
    UPDATE = "update"
    RECREATE = "recreate"
    """A binding cannot be given another role."""


def reconciled(found: Object, wanted: Object) -> tuple[Step, Object]:
    """Return what has to be done about a role or binding that is there, and the object to write.

    One with the annotation `autoupdate: "false"` stays as it is.
    """
    if (found["metadata"].get("annotations") or {}).get(AUTO_UPDATE) == "false":
        return Step.NONE, found
    if "roleRef" in wanted:
        if found.get("roleRef") != wanted["roleRef"]:
            return Step.RECREATE, wanted
        changed = {**found, "subjects": _joined(found.get("subjects") or [], wanted.get("subjects") or [])}
    elif "aggregationRule" in wanted:  # its rules are the controller's
        selectors = [(each.get("aggregationRule") or {}).get("clusterRoleSelectors") or [] for each in (found, wanted)]
        rule = {**(found.get("aggregationRule") or {}), "clusterRoleSelectors": _joined(*selectors)}
        changed = {**found, "aggregationRule": rule}
    else:
        rules = found.get("rules") or []
        changed = {**found, "rules": [*rules, *uncovered(rules, wanted["rules"])]}
    changed["metadata"] = {**found["metadata"], **_marks(found, wanted)}
    same = all((changed.get(key) or None) == (found.get(key) or None) for key in changed)
    return (Step.NONE, found) if same else (Step.UPDATE, changed)


def _marks(found: Object, wanted: Object) -> Object:
    """Return labels and annotations; those that are there win."""
    both = ("labels", "annotations")
    return {each: {**wanted["metadata"][each], **(found["metadata"].get(each) or {})} for each in both}


def _joined(found: Sequence[Object], wanted: Iterable[Object]) -> list[Object]:
    joined = list(found)
    joined.extend(each for each in wanted if each not in joined)
    return joined
