"""Who manages the replicas of an object, seen through its subresource `scale`.

Source: apimachinery pkg/util/managedfields/scalehandler.go.
"""

from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.conversions.scale import SCALES
from lastcall.kube.apiserver.fieldmanager.fields import FieldSet, difference, has, set_of
from lastcall.kube.apiserver.fieldmanager.managers import APPLY, Entry, ordered

REPLICAS = ("f:spec", "f:replicas")
_ONLY_REPLICAS: FieldSet = set_of(REPLICAS)


def entries_of_scale(entries: list[Entry]) -> list[Entry]:
    """Return the entries that manage the replicas, as entries of the Scale."""
    return [
        {**entry, "apiVersion": SCALES.api_version, "fieldsV1": _ONLY_REPLICAS}
        for entry in entries
        if has(entry["fieldsV1"], REPLICAS)
    ]


def entries_of_parent(resource: Resource, entries: list[Entry], of_scale: list[Entry]) -> list[Entry]:
    """Return the object's entries after its Scale was written: the managers of the replicas are those of the Scale.

    A manager that is new here has no time, as in Kubernetes. A manager that updated the object is new, since its entry
    and that of the Scale are of two versions.
    """
    left: list[Entry] = []
    claims = [entry for entry in of_scale if has(entry["fieldsV1"], REPLICAS)]
    for entry in entries:
        if not has(entry["fieldsV1"], REPLICAS):
            left.append(entry)
            continue
        claim = next((each for each in claims if _same(each, entry)), None)
        if claim is None:
            left.append({**entry, "fieldsV1": difference(entry["fieldsV1"], _ONLY_REPLICAS)})
        else:
            claims.remove(claim)
            left.append(entry)
    for claim in claims:
        new = {key: value for key, value in claim.items() if key != "time"}
        left.append({**new, "apiVersion": resource.api_version, "fieldsV1": _ONLY_REPLICAS})
    return ordered(left)


def _same(one: Entry, other: Entry) -> bool:
    same = all(one.get(key) == other.get(key) for key in ("manager", "operation", "subresource"))
    return same and one.get("operation") == APPLY
