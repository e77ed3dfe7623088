"""Print label selectors as Go does."""

# check: pure

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lastcall.kube.api.types.meta import LabelSelector


def selector_text(selector: LabelSelector | None) -> str:
    """Return a `metav1.LabelSelector` as Go prints it."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{each.get('key') or ''},Operator:{each.get('operator') or ''},"
        f"Values:[{' '.join(each.get('values') or ())}],}},"
        for each in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
