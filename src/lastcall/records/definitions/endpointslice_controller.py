"""What the EndpointSlice controller has written."""

from lastcall.records import rules
from lastcall.records.definitions.parts import InSlice, Observed
from lastcall.records.said import tell
from lastcall.records.sentences import STEP, Words, conditions, row, sentences

ACTOR = "endpointslice-controller"


class EndpointRemoved(InSlice):
    """A Pod's address leaves an EndpointSlice."""

    address: str
    observedResourceVersion: Observed


def endpoint_removed(facts: EndpointRemoved) -> Words:
    service, address = facts.get("service"), facts.get("address")
    text = tell("$service $address: removed from the EndpointSlice", service=service, address=address)
    return Words(text, STEP, "endpoint")


class EndpointChanged(EndpointRemoved):
    """A Pod's address comes into an EndpointSlice, or its conditions change there."""

    ready: bool
    serving: bool
    terminating: bool


def endpoint_changed(facts: EndpointChanged) -> Words:
    service, address = facts.get("service"), facts.get("address")
    text = tell("$service $address: $conditions", service=service, address=address, conditions=conditions(facts))
    return Words(text, STEP, "endpoint")


SENTENCES = sentences(
    row(EndpointRemoved, endpoint_removed, rules.SHOULD_POD_BE_IN_ENDPOINTS),
    row(EndpointChanged, endpoint_changed, rules.POD_TO_ENDPOINT),
)
"""The words for each kind."""
