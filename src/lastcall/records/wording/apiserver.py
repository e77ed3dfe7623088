"""Lines of what the API's clients, its server and the controllers do. Pure."""

# check: pure

from __future__ import annotations

from typing import TYPE_CHECKING

from lastcall.records.said import joined, str_of, tell
from lastcall.records.text import seconds
from lastcall.records.wording.parts import DETAIL, STEP, Words, conditions, yes

if TYPE_CHECKING:
    from lastcall.records.fields import apiserver, client, controllers, endpointslice_controller, kube_proxy


def delete_sent(facts: client.DeleteSent) -> Words:
    grace = facts.get("gracePeriodSeconds")
    if grace is None:
        return Words(tell("DELETE sent"), DETAIL, "api")
    return Words(tell("DELETE sent, gracePeriodSeconds=$grace", grace=grace), DETAIL, "api")


def delete_accepted(facts: apiserver.DeleteAccepted) -> Words:
    by = tell(", by $user", user=facts["user"]) if facts.get("user") else ""
    grace = facts.get("gracePeriodSeconds")
    return Words(tell("DELETE accepted: deletionTimestamp set, grace $grace s$by", grace=grace, by=by), STEP, "api")


def node_state(facts: client.NodeStateSeen) -> Words:
    node = facts.get("node")
    if facts.get("gone"):
        return Words(tell("sees that node $node does not exist", node=node), STEP, "bad")
    ready = facts.get("ready")
    if ready:
        return Words(tell("sees node $node Ready", node=node), DETAIL)
    taints = f" ({', '.join(facts['taints'])})" if facts.get("taints") else ""
    if ready is False:
        return Words(tell("sees node $node not Ready$taints", node=node, taints=taints), STEP, "bad")
    text = tell("sees node $node not heard of: Ready is Unknown$taints", node=node, taints=taints)
    return Words(text, STEP, "bad")


def grace_shortened(facts: apiserver.GraceShortened) -> Words:
    before, after = facts.get("from"), facts.get("to")
    text = tell("grace period shortened from $before s to $after s", before=before, after=after)
    return Words(text, STEP, "api")


def status_written(facts: apiserver.PodStatusWritten) -> Words:
    phase = facts.get("phase")
    level = STEP if phase in ("Succeeded", "Failed") else DETAIL
    reason = f" ({facts['reason']})" if facts.get("reason") else ""
    ready = yes(facts.get("ready"))
    text = tell("status written: phase $phase$reason, Ready $ready", phase=phase, reason=reason, ready=ready)
    return Words(text, level, "api")


def held_by_finalizers(facts: apiserver.HeldByFinalizers) -> Words:
    finalizers = ", ".join(map(str, facts.get("finalizers") or ()))
    return Words(tell("the object stays: held by finalizers $finalizers", finalizers=finalizers), STEP, "signal")


def ephemeral_added(facts: apiserver.EphemeralContainersAdded) -> Words:
    each = [
        tell("$name beside $target", name=one.get("name"), target=one["target"])
        if one.get("target")
        else str(one.get("name"))
        for one in facts.get("containers") or []
    ]
    names = joined(each, ", ")
    return Words(tell("ephemeral container $names added by $user", names=names, user=facts.get("user")), STEP, "api")


def owner_written(facts: apiserver.OwnerWritten) -> Words:
    changed = facts.get("changed")
    owner = {"kind": facts.get("ofKind"), "name": facts.get("name"), "user": facts.get("user")}
    if not changed:
        return Words(tell("$kind $name: created by $user", **owner), STEP, "api")
    fields = ", ".join(map(str, changed))
    return Words(tell("$kind $name: $fields written by $user", fields=fields, **owner), STEP, "api")


def owner_deleted(facts: apiserver.OwnerDeleted) -> Words:
    kind, name, user = facts.get("ofKind"), facts.get("name"), facts.get("user")
    return Words(tell("$kind $name deleted by $user", kind=kind, name=name, user=user), STEP, "api")


# -- endpoints and the rules that follow them ----------------------------------------------------------------------


def endpoint_changed(facts: endpointslice_controller.EndpointChanged) -> Words:
    service, address = facts.get("service"), facts.get("address")
    text = tell("$service $address: $conditions", service=service, address=address, conditions=conditions(facts))
    return Words(text, STEP, "endpoint")


def endpoint_removed(facts: endpointslice_controller.EndpointRemoved) -> Words:
    service, address = facts.get("service"), facts.get("address")
    text = tell("$service $address: removed from the EndpointSlice", service=service, address=address)
    return Words(text, STEP, "endpoint")


def endpoint_change_seen(facts: kube_proxy.EndpointChangeSeen) -> Words:
    where = {"node": facts.get("node"), "service": facts.get("service"), "address": facts.get("address")}
    if facts.get("removed"):
        return Words(tell("$node sees $service $address: is gone", **where), DETAIL, "endpoint")
    text = tell("$node sees $service $address: $conditions", conditions=conditions(facts), **where)
    return Words(text, DETAIL, "endpoint")


def endpoint_rules_written(facts: kube_proxy.EndpointRulesWritten) -> Words:
    node, address, service = facts.get("node"), facts.get("address"), facts.get("service")
    where = f"{service} → {address}"
    received, receives = facts.get("received"), facts.get("receives")
    if not service and not receives:
        return Words(tell("$node: no Service sends to $address", node=node, address=address), DETAIL)
    if received and not receives:
        return Words(tell("$node: no new connections any more, $where", node=node, where=where), STEP, "endpoint")
    if receives and not facts.get("ready"):
        text = tell(
            "$node: new connections still go there, because no other endpoint is ready, $where", node=node, where=where
        )
        return Words(text, STEP, "endpoint")
    if receives and not received:
        return Words(tell("$node: new connections go there, $where", node=node, where=where), STEP, "endpoint")
    return Words(tell("$node: rules written, nothing changes for $where", node=node, where=where), DETAIL, "endpoint")


def rules_refused(facts: kube_proxy.RulesRefused) -> Words:
    again, error = seconds(facts.get("retryInSeconds")), facts.get("error")
    return Words(tell("service rules refused: $error; next try in $again", error=error, again=again), STEP, "bad")


def scale_decided(facts: controllers.ScaleDecided) -> Words:
    step: str = str_of(facts.get("step", "?"))
    if step == "rollout":
        step = tell("rollout")
    elif step == "scaling":
        step = tell("scaling")
    text = tell(
        "scales $kind $name from $before to $after ($step)",
        kind=facts.get("ofKind", "?"),
        name=facts.get("name", "?"),
        before=facts.get("from", "?"),
        after=facts.get("to", "?"),
        step=step,
    )
    return Words(text)
