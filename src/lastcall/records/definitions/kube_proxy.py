"""What the service proxy of each node sees and writes."""

from typing import Annotated, NotRequired, TypedDict

from lastcall.records import rules
from lastcall.records.definitions.parts import EndpointConditions, Observed, Seconds
from lastcall.records.said import tell
from lastcall.records.sentences import DETAIL, STEP, Words, conditions, row, sentences
from lastcall.records.text import seconds

ACTOR = "kube-proxy"


class EndpointChangeSeen(EndpointConditions):
    """The proxy of a node sees a changed EndpointSlice. With `removed` there are no conditions."""

    node: str
    service: str
    slice: str
    address: str
    observedResourceVersion: Annotated[Observed, "the slice's"]


def endpoint_change_seen(facts: EndpointChangeSeen) -> Words:
    where = {"node": facts.get("node"), "service": facts.get("service"), "address": facts.get("address")}
    if facts.get("removed"):
        return Words(tell("$node sees $service $address: is gone", **where), DETAIL, "endpoint")
    text = tell("$node sees $service $address: $conditions", conditions=conditions(facts), **where)
    return Words(text, DETAIL, "endpoint")


class EndpointRulesWritten(TypedDict):
    """The kernel of a node goes by the changed rules from here on.

    One that a node's agent read has no `seconds`; its `service` is empty when no rule leads to the address.
    """

    node: str
    service: str
    address: str
    received: Annotated[bool, "new connections went there before"]
    receives: Annotated[bool, "new connections go there now"]
    ready: bool
    seconds: NotRequired[Annotated[Seconds, "since the change was seen"]]


def endpoint_rules_written(facts: EndpointRulesWritten) -> Words:
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


class RulesRefused(TypedDict):
    """The kernel does not take the rules."""

    error: str
    retryInSeconds: Seconds


def rules_refused(facts: RulesRefused) -> Words:
    again, error = seconds(facts.get("retryInSeconds")), facts.get("error")
    return Words(tell("service rules refused: $error; next try in $again", error=error, again=again), STEP, "bad")


SENTENCES = sentences(
    row(EndpointChangeSeen, endpoint_change_seen, rules.ON_ENDPOINT_SLICE_UPDATE),
    row(EndpointRulesWritten, endpoint_rules_written, rules.CATEGORIZE_ENDPOINTS),
    row(RulesRefused, rules_refused),
)
"""The words for each kind."""
