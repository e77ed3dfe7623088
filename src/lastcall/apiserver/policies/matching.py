"""Which writes a policy or a binding is about. Pure.

Source: apiserver pkg/admission/plugin/policy/{generic/policy_matcher.go, matching/matching.go}.
"""

from collections.abc import Sequence

from lastcall.api.meta import Object
from lastcall.api.resources import Resource
from lastcall.apiserver.proxying.webhooks.matching import Webhook, Write, asks_for_namespace, is_about, wants_objects


def as_webhook(wanted: Object) -> Webhook:
    """MatchResources, for what it has in common with a webhook: its selectors."""
    return Webhook("", "", wanted)


def wants(wanted: Object, write: Write) -> Resource | None:
    """As which kind the write is wanted by its object and by the rules; None when it is not."""
    if not wants_objects(as_webhook(wanted), write):
        return None
    policy = wanted.get("matchPolicy")
    if _matched(wanted.get("excludeResourceRules") or (), policy, write) is not None:
        return None
    rules = wanted.get("resourceRules") or ()
    return _matched(rules, policy, write) if rules else write.resource


def needs_namespace(wanted: Object, write: Write) -> bool:
    """Whether the labels of a namespace decide."""
    return asks_for_namespace(as_webhook(wanted), write)


def _matched(rules: Sequence[Object], policy: str | None, write: Write) -> Resource | None:
    others = () if policy == "Exact" else write.equivalents
    for resource in (write.resource, *others):
        if any(is_about(rule, write, resource) and _names(rule, write.name) for rule in rules):
            return resource
    return None


def _names(rule: Object, name: str) -> bool:
    return not rule.get("resourceNames") or name in rule["resourceNames"]
