"""Finalizers that hold an object after the last DELETE: which, and who usually takes them away. Pure."""

# check: pure

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lastcall.endings.catalogue.lookup import fix, said
from lastcall.endings.story import Ending, Entry, Finding
from lastcall.records import kinds
from lastcall.records.said import joined, tell

if TYPE_CHECKING:
    from lastcall.records.definitions.controllers import ClaimHeld

HELD_SECONDS = 0.5
"""A finalizer that is gone sooner did its work."""

_REMOVED_BY = {
    "foregroundDeletion": tell("the garbage collector, when all that has blockOwnerDeletion in its reference is gone"),
    "orphan": tell("the garbage collector, when its dependents are orphans"),
    "batch.kubernetes.io/job-tracking": tell("the Job controller, when it has counted the Pod"),
    "kopf.zalando.org/KopfFinalizerMarker": tell("your kopf operator, if it runs"),
}


def removed_by(finalizer: str) -> str:
    """Return who usually removes the finalizer."""
    domain, slash, _ = finalizer.rpartition("/")
    if finalizer in _REMOVED_BY:
        return _REMOVED_BY[finalizer]
    if slash:
        return tell("the controller of $domain that added it", domain=domain)
    return tell("whatever added it")


def removers(finalizers: Sequence[str]) -> str:
    """Return who removes each finalizer: `example.com/held: the controller of example.com that added it; …`."""
    return joined([tell("$finalizer: $by", finalizer=each, by=removed_by(each)) for each in finalizers], "; ")


def held_finalizers(ending: Ending) -> Entry | None:
    """Return the record of what held the object after the last DELETE, if it did for a while or still does."""
    held = next((e for e in reversed(ending.entries) if e.record.kind == kinds.HELD_BY_FINALIZERS), None)
    if held is None or (ending.gone is not None and ending.gone - held.at < HELD_SECONDS):
        return None
    return held


def held_by_finalizers(ending: Ending) -> Finding:
    """Say who held the object from the last DELETE (grace 0) to its end. AssertionError if nobody did."""
    held = held_finalizers(ending)
    assert held is not None
    finalizers = [str(each) for each in held.facts_as(kinds.HELD_BY_FINALIZERS).get("finalizers") or ()]
    names = ", ".join(finalizers)
    names = tell("finalizers $names", names=names) if len(finalizers) > 1 else tell("finalizer $name", name=names)
    usual = removers(finalizers)
    if ending.gone is not None:
        seconds = f"{ending.gone - held.at:.1f}"
        text = said("heldByFinalizers", "stayed", seconds=seconds, names=names, removers=usual)
        return Finding("heldByFinalizers", "warning", text)
    pod = ending.pod
    advice = fix("heldByFinalizers", pod=pod.name, namespace=pod.namespace)
    return Finding("heldByFinalizers", "problem", said("heldByFinalizers", names=names, removers=usual), advice=advice)


def claim_held(facts: "ClaimHeld", at: float) -> str:
    """Tell of a claim that was deleted while the Pod used it; `at` in seconds after the beginning of the Pod's end."""
    when = said("claimHeldByPod", "before", seconds=f"{-at:.1f}") if at < 0 else ""
    claim, finalizer, pod = facts.get("claim"), facts.get("finalizer"), facts.get("pod")
    return said("claimHeldByPod", when=when, claim=claim, finalizer=finalizer, pod=pod)
