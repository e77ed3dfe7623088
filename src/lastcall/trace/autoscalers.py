"""HorizontalPodAutoscalers, and which of them has resized an owner of Pods. No I/O, no clock.

The owner's managedFields tell that an autoscaler wrote the size, its scaleTargetRef which one it was, and its Event
SuccessfulRescale why. Of two with the same target nobody is named, unless just one of them says that it did it.

Source: pkg/controller/podautoscaler/horizontal.go:reconcileAutoscaler.
"""

# check: pure

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from lastcall.kube.api import Object, name_of, namespace_of, uid_of
from lastcall.records import kinds, rules
from lastcall.records.record import Record
from lastcall.trace.drafts import Draft, draft
from lastcall.trace.owners import AUTOSCALER
from lastcall.trace.pod_timeline import Moment
from lastcall.trace.stamps import SECOND
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.records.definitions.controllers import ScaleDecided

MOST = 4096
SAME_NS = 5 * SECOND
"""The Event of a resize comes so soon before or after the write."""


@dataclass(frozen=True, slots=True)
class Autoscaler:
    """`gone_ns`: when it was deleted. `said`: what it said last about its sizes: (when, size, reason)."""

    namespace: str
    name: str
    uid: str
    target: tuple[str, str] = ("", "")
    gone_ns: int | None = None
    said: tuple[tuple[int, int, str], ...] = ()

    def reason(self, written: Record) -> str:
        """Return what it said when the owner was written, "" if nothing."""
        size = written.facts_as(kinds.OWNER_WRITTEN).get("to")
        found = [why for at, to, why in self.said if to == size and abs(at - written.at_ns) <= SAME_NS]
        return found[-1] if found else ""


class Autoscalers:
    """All that are there, and those that were deleted last."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Autoscaler] = OrderedDict()

    def seen(self, obj: Object, now: Moment, *, gone: bool = False) -> None:
        """Handle an event of a watch."""
        uid, spec = uid_of(obj), obj.get("spec") or {}
        target = spec.get("scaleTargetRef") or {}
        known = self._known.get(uid) or Autoscaler(namespace_of(obj), name_of(obj), uid)
        target_of = (str(target.get("kind")), str(target.get("name")))
        self._known[uid] = replace(known, target=target_of, gone_ns=now.at_ns if gone else None)
        while len(self._known) > MOST:
            self._known.popitem(last=False)

    def listed(self, items: Iterable[Object], now: Moment) -> None:
        """Handle a list: all that are there."""
        there = set()
        for obj in items:
            there.add(uid_of(obj))
            self.seen(obj, now)
        for uid, each in self._known.items():
            if uid not in there and each.gone_ns is None:
                self._known[uid] = replace(each, gone_ns=now.at_ns)

    def said(self, uid: str, size: int, reason: str, now: Moment) -> None:
        """Handle an Event: the autoscaler has given its target a new size."""
        if (known := self._known.get(uid)) is not None:
            self._known[uid] = replace(known, said=(*known.said[-7:], (now.at_ns, size, reason)))

    def decision(self, written: Record) -> Draft | None:
        """Return the decision that a write of an owner goes back to, None where no autoscaler, or not just one, can
        have made it."""
        if written.kind != kinds.OWNER_WRITTEN or written.facts_as(kinds.OWNER_WRITTEN).get("userAgent") != AUTOSCALER:
            return None
        facts = written.facts_as(kinds.OWNER_WRITTEN)
        target = (facts["ofKind"], facts["name"])
        able = [
            each
            for each in self._known.values()
            if (each.namespace, each.target) == (facts["namespace"], target)
            and (each.gone_ns is None or written.at_ns <= each.gone_ns + SAME_NS)
        ]
        by = able if len(able) == 1 else [each for each in able if each.reason(written)]
        if len(by) != 1:
            return None
        decided: ScaleDecided = {
            "ownerKind": "HorizontalPodAutoscaler",
            "owner": by[0].name,
            "ownerUid": by[0].uid,
            "step": "scaling",
            "revision": "",
            "ofKind": facts["ofKind"],
            "name": facts["name"],
            "uid": facts["uid"],
            "generation": 0,
            "resourceVersion": facts["resourceVersion"],
            "from": facts.get("from") or 0,
            "to": facts.get("to") or 0,
            "why": by[0].reason(written),
        }
        return draft(
            kinds.SCALE_DECIDED,
            decided,
            AUTOSCALER,
            rule=rules.RECONCILE_AUTOSCALER,
            evidence="inferred",
            at_ns=written.at_ns,
        )
