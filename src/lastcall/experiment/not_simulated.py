"""What of the manifests a cluster of lastcall does not act on, or ran something else for. Pure.

Said with every result: readers must not take for tested what was not.
"""

# check: pure

from collections.abc import Iterable, Iterator, Sequence

from lastcall.endings import fix, said, unschedulable_message
from lastcall.experiment.reasons.why_not_ready import without_preemption_note
from lastcall.kube.api import (
    PODS,
    SECRETS,
    SERVED,
    FeatureGates,
    Object,
    dropped_fields,
    name_of,
    namespace_of,
    since_minor,
)
from lastcall.manifests import OWNERS, Manifest
from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.world.dataclass import dataclass

_IGNORED = {
    "Ingress": "ingressIgnored",
}


OF_THE_RUN = ("generatorLate", "clientErrors", "slowIsQuick", "strandedByDrain", "connectionsPinned")
"""Notes about what happened; all others are about what was not simulated."""


@dataclass(frozen=True, slots=True)
class Note:
    """`id` is in the catalogue; `what` names the object or image that it is about, "" for none."""

    id: str
    what: str
    text: str

    @property
    def line(self) -> str:
        """Return the note as a line."""
        if self.id == "clusterDiffers":
            return f"differs here: {self.text}"
        return f"{'not simulated' if self.id.endswith('Ignored') else 'note'}: {self.text}"


def of_manifests(manifests: Sequence[Manifest]) -> Iterator[Note]:
    """Yield a note for each object that nothing acts on, and for each missing imagePullSecret."""
    for each in manifests:
        what = f"{each.resource.kind} {name_of(each.obj)}"
        id_ = _IGNORED.get(each.resource.kind) if each.resource in SERVED else "customResourceIgnored"
        if id_ is not None:
            yield Note(id_, what, said(id_, what=what))
    there = {(namespace_of(each.obj), name_of(each.obj)) for each in manifests if each.resource == SECRETS}
    for each in manifests:
        spec = _pod_spec(each)
        for name in (str(reference.get("name")) for reference in (spec or {}).get("imagePullSecrets") or []):
            if (namespace_of(each.obj), name) not in there:
                what = f"{each.resource.kind} {name_of(each.obj)}"
                yield Note("pullSecretMissing", name, said("pullSecretMissing", name=name, what=what))


def of_dropped(manifests: Sequence[Manifest], gates: FeatureGates) -> Iterator[Note]:
    """Yield a note for each field that was sent and is not in the stored object, because of a gate or the version."""
    for each in manifests:
        what = f"{each.resource.kind} {name_of(each.obj)}"
        for path, gate in dropped_fields(each.resource, each.obj, gates).items():
            since = since_minor(gate)
            known = since is not None and gates.minor >= since
            facts = {"version": gates.version, "path": path, "what": what, "gate": gate, "since": since}
            advice = fix("fieldDropped", "unknown" if since is None else "gate" if known else "version", **facts)
            text = said("fieldDropped", "gate" if known else "version", **facts)
            yield Note("fieldDropped", what, f"{text} fix: {advice}")


def of_images(records: Iterable[Record]) -> Iterator[Note]:
    """Note the images that others stood in for, each once."""
    found = {
        str(facts.get("image")): facts.get("substitute")
        for facts in (
            each.facts_as(kinds.IMAGE_SUBSTITUTED) for each in records if each.kind == kinds.IMAGE_SUBSTITUTED
        )
    }
    for image, substitute in found.items():
        yield Note("imageSubstituted", image, said("imageSubstituted", image=image, substitute=substitute))


def of_stranded(pods: Sequence[Object], node: str) -> Iterator[Note]:
    """Note Pods that no node takes since one was drained."""
    for pod in pods:
        why = without_preemption_note(unschedulable_message(pod))
        yield Note("strandedByDrain", name_of(pod), said("strandedByDrain", name=name_of(pod), node=node, why=why))


def _pod_spec(manifest: Manifest) -> Object | None:
    if manifest.resource == PODS:
        return manifest.obj.get("spec")
    if manifest.resource in OWNERS:
        return (manifest.obj["spec"].get("template") or {}).get("spec")
    return None
