"""What the EndpointSlice controller has written."""

from lastcall.records.fields.parts import InSlice, Observed

ACTOR = "endpointslice-controller"


class EndpointRemoved(InSlice):
    """A Pod's address leaves an EndpointSlice."""

    address: str
    observedResourceVersion: Observed


class EndpointChanged(EndpointRemoved):
    """A Pod's address comes into an EndpointSlice, or its conditions change there."""

    ready: bool
    serving: bool
    terminating: bool
