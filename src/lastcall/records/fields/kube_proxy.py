"""What the service proxy of each node sees and writes."""

from typing import Annotated, NotRequired, TypedDict

from lastcall.records.fields.parts import EndpointConditions, Observed, Seconds

ACTOR = "kube-proxy"


class EndpointChangeSeen(EndpointConditions):
    """The proxy of a node sees a changed EndpointSlice. With `removed` there are no conditions."""

    node: str
    service: str
    slice: str
    address: str
    observedResourceVersion: Annotated[Observed, "the slice's"]


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


class RulesRefused(TypedDict):
    """The kernel does not take the rules."""

    error: str
    retryInSeconds: Seconds
