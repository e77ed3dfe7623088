"""What little a write changes. Pure."""

# check: pure

from lastcall.kube.api.meta import Object
from lastcall.kube.apiserver.fieldmanager.managers import same_but_times


def only_removes_finalizers(new: Object, old: Object) -> bool:
    """Return whether all that a write does to an object that is being deleted is to take finalizers off."""
    meta, was = new["metadata"], old["metadata"]
    left, had = meta.get("finalizers") or [], was.get("finalizers") or []
    if not was.get("deletionTimestamp") or len(left) >= len(had) or not set(left) <= set(had):
        return False
    kept = {**meta, "finalizers": None, "managedFields": None} == {**was, "finalizers": None, "managedFields": None}
    return kept and {**new, "metadata": None} == {**old, "metadata": None}


def only_times_differ(new: Object, old: Object) -> bool:
    """Return whether a write would do nothing but give entries of managedFields a new time."""
    if any(value is not old.get(key) and value != old.get(key) for key, value in new.items() if key != "metadata"):
        return False
    entries, before = (obj["metadata"].get("managedFields") or [] for obj in (new, old))
    if entries == before or not same_but_times(entries, before):
        return False
    return {**new, "metadata": {**new["metadata"], "managedFields": before}} == old
