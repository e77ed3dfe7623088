"""What the service proxy of each node sees and writes."""

from typing import Annotated, TypedDict

from lastcall.timeline.catalogue.records.parts import EndpointConditions, Observed, Seconds

ACTOR = "kube-proxy"


class EndpointChangeSeen(EndpointConditions):
    """The proxy of a node sees a changed EndpointSlice. With `removed` there are no conditions."""

    node: str
    service: str
    slice: str
    address: str
    observedResourceVersion: Annotated[Observed, "the slice's"]


class EndpointRulesWritten(TypedDict):
    """The kernel of a node goes by the changed rules from here on."""

    node: str
    service: str
    address: str
    received: Annotated[bool, "new connections went there before"]
    receives: Annotated[bool, "new connections go there now"]
    ready: bool
    seconds: Annotated[Seconds, "since the change was seen"]


class RulesRefused(TypedDict):
    """The kernel does not take the rules."""

    error: str
    retryInSeconds: Seconds
