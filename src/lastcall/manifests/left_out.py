"""Objects that experiments leave out: a chart's hooks, and kinds of other products. Pure."""

# check: pure

from collections.abc import Collection
from functools import cache
from typing import Any

from lastcall.kube.api import CRONJOBS, PODS, known_types
from lastcall.manifests.workloads import OWNERS

HOOK, DELETED_WHEN = "helm.sh/hook", "helm.sh/hook-delete-policy"
_INSTALLATION = frozenset(("pre-install", "post-install"))
_OF_OLD = frozenset(("extensions",))
_WITH_PODS = frozenset(each.kind for each in (PODS, CRONJOBS, *OWNERS))


def hook_events(obj: Any) -> str:
    """Return the events at which Helm creates an object, "" for one that is part of the running application.

    Such a part is also what an installation leaves behind and has no Pods, such as a Secret of `pre-install`.
    Source: helm.sh/docs/topics/charts_hooks.
    """
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if not isinstance(annotations, dict):
        return ""
    events = _words(annotations.get(HOOK))
    stays = _INSTALLATION.intersection(events) and "hook-succeeded" not in _words(annotations.get(DELETED_WHEN))
    return "" if stays and obj.get("kind") not in _WITH_PODS else ", ".join(events)


def _words(value: Any) -> list[str]:
    return [word for each in value.split(",") if (word := each.strip())] if isinstance(value, str) else []


@cache
def own_groups() -> frozenset[str]:
    """Return the API groups of Kubernetes itself, those of old versions too."""
    return frozenset(each.rpartition("/")[0].rpartition("/")[0] for each in known_types()) | _OF_OLD


def is_of_another_product(api_version: str, declared: Collection[str] = ()) -> bool:
    """Return True if an apiVersion is in a group of neither Kubernetes nor `declared`, nor a misspelling of one.

    Groups of other products have a dot (apiextensions validation).
    """
    group = api_version.rpartition("/")[0]
    ours = own_groups() | set(declared)
    if "." not in group or group in ours:
        return False
    # late: a manifest without errors needs no words for them
    from lastcall.manifests.names import closest

    return closest(group, ours) is None
