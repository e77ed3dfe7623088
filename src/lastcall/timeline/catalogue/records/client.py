"""What the command that follows Pods does and sees."""

from typing import Annotated, TypedDict

from lastcall.timeline.catalogue.records.parts import ResourceVersion, WholeSeconds

ACTOR = "client"


class DeleteSent(TypedDict):
    """The command sends the DELETE."""

    gracePeriodSeconds: Annotated[WholeSeconds | None, "null: the Pod's own"]


class PodReadySeen(TypedDict):
    """A watch shows the Pod with the condition Ready for the first time."""

    resourceVersion: ResourceVersion


class PodGoneSeen(TypedDict):
    """The client sees the watch event DELETED."""

    resourceVersion: ResourceVersion
