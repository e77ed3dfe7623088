"""What the command that follows Pods does and sees."""

from typing import Annotated, Literal, TypedDict

from lastcall.records.fields.parts import ResourceVersion, WholeSeconds

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


class NotShown(TypedDict):
    """Something of this Pod's end cannot be known from where it was followed. The story says it as it stands."""

    text: Annotated[str, "one sentence"]
    why: Annotated[
        Literal["api", "rights", "gap", "late"],
        "api: the API does not tell it; rights: reading it is not allowed; gap: a watch had broken off; late: it was "
        "before the client began",
    ]


class NodeStateSeen(TypedDict):
    """A watch shows the state of the Pod's node, at the DELETE and whenever it changes until the Pod is gone."""

    node: str
    ready: Annotated[bool | None, "the condition Ready; null: Unknown, the node was not heard of"]
    gone: Annotated[bool, "there is no Node object of this name"]
    taints: Annotated[list[str], "those that keep Pods away or drive them out"]
