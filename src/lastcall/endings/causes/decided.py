"""Who decided that a Pod has to end, and why this one. Pure.

The chain is followed from the accepted DELETE back: the decision of a controller, the resize or the deletion that it
reacted to, the user whose write began it. What was not recorded is left out, never guessed.
"""

# check: pure

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lastcall.endings.causes.owners import is_about_owner
from lastcall.endings.story import DecidedBy
from lastcall.records import kinds, rules
from lastcall.records.recalled import recalled
from lastcall.records.record import Record
from lastcall.records.said import joined, tell

if TYPE_CHECKING:
    from lastcall.records.definitions.apiserver import OwnerDeleted, OwnerWritten

Facts = Mapping[str, object]
"""Facts of a kind that names the writer: `user`, `userAgent`."""

_REASONS: Mapping[str, str] = {
    rules.GET_PODS_TO_DELETE: "scaledIn",
    rules.ATTEMPT_TO_DELETE_ITEM: "ownerDeleted",
    rules.DELETE_ALL_CONTENT: "namespaceDeleted",
    rules.CREATE_EVICTION: "evicted",
    rules.PROCESS_POD_ON_NODE: "tainted",
    rules.DELETE_POD_OF_TAINTED_DEVICE: "deviceTainted",
    rules.PREEMPT_POD: "preempted",
    rules.GC_TERMINATED: "podGC",
    rules.GC_TERMINATING: "podGC",
    rules.GC_ORPHANED: "podGC",
    rules.GC_UNSCHEDULED_TERMINATING: "podGC",
}
"""Rule → reason, for decisions that say no `step`."""

_STEPS = {
    "rollout": "rolledOut",
    "scaling": "scaledIn",
    "ended": "replaced",
    "suspended": "jobSuspended",
    "finished": "jobFinished",
}

_KUBELET = {"apiTerminalPhase", "kill"}
"""Causes of a termination that is not of the API's DELETE and not of the containers' own end."""


def decide_decided_by(
    records: Sequence[Record],
    causes: Mapping[str, str],
    by_id: Mapping[str, Record],
    by_probe: Sequence[tuple[str, str]] = (),
) -> DecidedBy | None:
    """Decide who ended a Pod, from its records sorted by time; None when nothing reports its end.

    `by_probe` has the containers whose last run the kubelet ended for a probe, each with that probe's name.
    """
    accepted = next((r for r in records if r.kind == kinds.DELETE_ACCEPTED), None)
    ended = next((r for r in records if r.kind == kinds.TERMINATION_OBSERVED), None)
    if ended is not None and (accepted is None or ended.at_ns < accepted.at_ns):
        cause = ended.facts_as(kinds.TERMINATION_OBSERVED).get("cause")
        if cause in _KUBELET or _reason_after(ended, records) == "DeadlineExceeded":
            return _by_kubelet(ended, records)  # over its deadline a Pod counts as completed
        if cause == "completed":
            by = _of_delete(records, accepted, causes, by_id)
            after = tell("; its object went because $why", why=by.why) if by is not None and by.why else ""
            failed = joined(
                [tell("$container, whose $probe failed", container=name, probe=probe) for name, probe in by_probe],
                " and ",
            )
            why = (
                tell("the kubelet had ended $containers$after", containers=failed, after=after)
                if by_probe
                else tell("its containers had ended by themselves$after", after=after)
            )
            return DecidedBy("kubelet", "completed", why, chain=(ended.id, *(by.chain if by is not None else ())))
    return _of_delete(records, accepted, causes, by_id)


def _of_delete(
    records: Sequence[Record], accepted: Record | None, causes: Mapping[str, str], by_id: Mapping[str, Record]
) -> DecidedBy | None:
    """Who sent the DELETE, or let it be sent."""
    if accepted is None:
        removed = next((r for r in records if r.kind == kinds.OBJECT_REMOVED), None)
        decided = _last(records, kinds.DELETION_DECIDED, removed)
        return _by_controller(decided, causes, by_id) if decided is not None else None
    decided = by_id.get(causes.get(accepted.id, ""))
    if decided is not None and decided.kind == kinds.DELETION_DECIDED:
        return _by_controller(decided, causes, by_id)
    sent = accepted.facts_as(kinds.DELETE_ACCEPTED)
    user = str(sent.get("user") or "")
    if not user:
        return None
    return DecidedBy(
        "user",
        "deleted",
        tell("it was deleted$by", by=_by(sent)),
        user=user,
        client=client_name(sent),
        chain=(accepted.id,),
        source_ips=_addresses(sent),
    )


def _last(records: Sequence[Record], kind: str, before: Record | None) -> Record | None:
    if before is None:
        return None
    return next((r for r in reversed(records) if r.kind == kind and r.at_ns <= before.at_ns), None)


_KUBELET_DECISIONS: Mapping[str, str] = {
    rules.EVICT_UNDER_PRESSURE: "nodePressure",
    rules.LOCAL_STORAGE_EVICTION: "localStorage",
    rules.KILL_PODS_AT_SHUTDOWN: "nodeShutdown",
    rules.EVICT_PODS_TO_FREE_REQUESTS: "preemption",
    rules.LIST_CONFIG: "manifest",
}
"""Rule of the decision → reason."""
_EVICTIONS = ("nodePressure", "localStorage")


def _by_kubelet(ended: Record, records: Sequence[Record]) -> DecidedBy:
    """Read from the decision or the status: evicted, over its deadline, preempted by a critical Pod, node shutdown."""
    decided = _last(records, kinds.DELETION_DECIDED, ended)
    if decided is not None and decided.rule in _KUBELET_DECISIONS:
        name = _KUBELET_DECISIONS[decided.rule]
        why = recalled(str(decided.facts_as(kinds.DELETION_DECIDED).get("why") or "").rstrip(". "))
        if name in _EVICTIONS:
            why = tell("the kubelet evicted it: $why", why=why)
        return DecidedBy("kubelet", name, why, chain=(decided.id, ended.id))
    reason = _reason_after(ended, records)
    words = {
        "": tell("the kubelet ended it"),
        "Evicted": tell("the kubelet evicted it because its node was short of something"),
        "DeadlineExceeded": tell("it had run for its activeDeadlineSeconds"),
        "Terminated": tell("its node shuts down"),
        "Preempting": tell("the kubelet needed its place for a critical Pod"),
    }.get(reason) or tell("the kubelet ended it ($reason)", reason=reason)
    named = {"Evicted": "nodePressure", "DeadlineExceeded": "deadline", "Terminated": "nodeShutdown"}.get(reason)
    return DecidedBy("kubelet", named or "kubelet", words, chain=(ended.id,))


def _reason_after(ended: Record, records: Sequence[Record]) -> str:
    """The first reason that the Pod's status had from its end on."""
    written = [r for r in records if r.kind == kinds.POD_STATUS_WRITTEN and r.at_ns >= ended.at_ns]
    return next((why for r in written if (why := str(r.facts_as(kinds.POD_STATUS_WRITTEN).get("reason") or ""))), "")


def _by_controller(decided: Record, causes: Mapping[str, str], by_id: Mapping[str, Record]) -> DecidedBy:
    chain = [decided]
    while (above := by_id.get(causes.get(chain[-1].id, ""))) is not None:
        if not is_about_owner(above) or above in chain:
            break
        chain.append(above)
    facts = decided.facts_as(kinds.DELETION_DECIDED)
    why = recalled(facts.get("why") or "")
    step = str(facts.get("step") or "")
    reason = _REASONS.get(decided.rule, "")
    if len(chain) > 1 and chain[1].kind == kinds.SCALE_DECIDED:
        step = str(chain[1].facts_as(kinds.SCALE_DECIDED).get("step") or step)
    elif len(chain) > 1 and chain[1].kind == kinds.DELETION_DECIDED:
        step = str(chain[1].facts_as(kinds.DELETION_DECIDED).get("step") or step)
    reason = _STEPS.get(step, reason or "owner")
    by = next(filter(None, map(_writer, reversed(chain))), facts)
    return DecidedBy(
        decided.actor,
        reason,
        _sentence(chain, why),
        user=str(by.get("user") or ""),
        client=client_name(by),
        owner_kind=str(facts.get("ownerKind") or ""),
        owner=str(facts.get("owner") or ""),
        chain=tuple(each.id for each in chain),
        source_ips=_addresses(by),
    )


def _sentence(chain: Sequence[Record], why: str) -> str:
    """From the beginning of the chain to this Pod."""
    decided, rest = chain[0], chain[1:]
    if not rest:
        return tell("it was $why", why=why) if why.startswith(("evicted", "preempted")) else why
    if rest[-1].kind == kinds.SCALE_DECIDED and len(rest) > 1:
        return _by_autoscaler(rest[-1], why)
    origin = rest[-1] if rest[-1].kind == kinds.OWNER_WRITTEN else None
    if rest[0].kind == kinds.SCALE_DECIDED:
        scaled = rest[0].facts_as(kinds.SCALE_DECIDED)
        resized = origin.facts_as(kinds.OWNER_WRITTEN) if origin is not None else None
        by = _by(resized) if resized is not None else ""
        what = f"{scaled.get('ownerKind')} {scaled.get('owner')}"
        if scaled.get("step") == "rollout":
            revision = scaled.get("revision")
            return tell(
                "$owner was rolled out to revision $revision$by: $why", owner=what, revision=revision, by=by, why=why
            )
        return tell("$owner was scaled$sizes$by: $why", owner=what, sizes=_sizes(origin), by=by, why=why)
    if rest[0].kind == kinds.OWNER_WRITTEN:
        written = rest[0].facts_as(kinds.OWNER_WRITTEN)
        what, by = f"{written.get('ofKind')} {written.get('name')}", _by(written)
        step = decided.facts_as(kinds.DELETION_DECIDED).get("step")
        if "replicas" in (written.get("changed") or ()) and step == "scaling":
            return tell("$owner was scaled$sizes$by: $why", owner=what, sizes=_sizes(rest[0]), by=by, why=why)
        return tell("$owner was changed$by: $why", owner=what, by=by, why=why)
    if rest[-1].kind == kinds.DELETION_DECIDED:
        above = recalled(rest[-1].facts_as(kinds.DELETION_DECIDED).get("why"))
        return tell("$why: that removed this Pod", why=above)
    last = rest[-1].facts_as(kinds.OWNER_DELETED)
    head = tell("$owner was deleted$by", owner=f"{last.get('ofKind')} {last.get('name')}", by=_by(last))
    if last.get("ofKind") == "Namespace":
        return head
    deleted = [each.facts_as(kinds.OWNER_DELETED) for each in reversed(rest[:-1])]
    between = joined([f"{each.get('ofKind')} {each.get('name')}" for each in deleted], " and ")
    if not between:
        return tell("$deleted: that removed this Pod", deleted=head)
    return tell("$deleted: that removed $owners and this Pod", deleted=head, owners=between)


def _by_autoscaler(record: Record, why: str) -> str:
    """Who resized the owner, instead of a user who wrote it."""
    scaled = record.facts_as(kinds.SCALE_DECIDED)
    reason = tell(" ($reason)", reason=scaled["why"]) if scaled.get("why") else ""
    return tell(
        "$autoscaler scaled $owner from $before to $after$reason: $why",
        autoscaler=f"{scaled.get('ownerKind')} {scaled.get('owner')}",
        owner=f"{scaled.get('ofKind')} {scaled.get('name')}",
        before=scaled.get("from"),
        after=scaled.get("to"),
        reason=reason,
        why=why,
    )


def _sizes(record: Record | None) -> str:
    facts = record.facts_as(kinds.OWNER_WRITTEN) if record is not None else None
    if facts is None or facts.get("to") is None:
        return ""
    return tell(" from $before to $after", before=facts.get("from"), after=facts["to"])


def _writer(record: Record) -> "OwnerWritten | OwnerDeleted | None":
    """Return the facts of a record that names the user who wrote."""
    if record.kind == kinds.OWNER_WRITTEN:
        return record.facts_as(kinds.OWNER_WRITTEN)
    return record.facts_as(kinds.OWNER_DELETED) if record.kind == kinds.OWNER_DELETED else None


def _by(facts: Facts) -> str:
    """` by kubectl (user kubernetes-admin) from 10.0.0.7`."""
    user, client = str(facts.get("user") or ""), client_name(facts)
    by = ""
    if user and (sender := facts.get("impersonator")):
        user = tell("$user, impersonated by $sender", user=user, sender=sender)
    if client and user:
        by = tell(" by $client (user $user)", client=client, user=user)
    elif client or user.startswith("system:"):
        by = tell(" by $who", who=client or user)
    elif user:
        by = tell(" by user $user", user=user)
    addresses = _addresses(facts)
    if by and any(not is_loopback(each) for each in addresses):
        by = tell("$by from $addresses", by=by, addresses=", ".join(addresses))
    return by


def _addresses(facts: Facts) -> tuple[str, ...]:
    found = facts.get("sourceIPs")
    return tuple(map(str, found)) if isinstance(found, Sequence) and not isinstance(found, str) else ()


def is_loopback(address: str) -> bool:
    """Return True if a request came from its server's own machine, which says nothing about who sent it."""
    return address == "::1" or address.startswith("127.")


def client_name(facts: Facts) -> str:
    """Return the client's name: `kubectl` of `kubectl/v1.32.0 (linux/amd64) …`; "" when the client did not say."""
    return str(facts.get("userAgent") or "").partition("/")[0]
