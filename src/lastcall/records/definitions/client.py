"""What the command that follows Pods does and sees."""

from typing import Annotated, Literal, NotRequired, TypedDict

from lastcall.records.definitions.parts import ResourceVersion, WholeSeconds
from lastcall.records.said import tell
from lastcall.records.sentences import DETAIL, NOISE, STEP, Words, fixed, row, sentences

ACTOR = "client"


class DeleteSent(TypedDict):
    """The command sends the DELETE."""

    gracePeriodSeconds: Annotated[WholeSeconds | None, "null: the Pod's own"]


def delete_sent(facts: DeleteSent) -> Words:
    grace = facts.get("gracePeriodSeconds")
    if grace is None:
        return Words(tell("DELETE sent"), DETAIL, "api")
    return Words(tell("DELETE sent, gracePeriodSeconds=$grace", grace=grace), DETAIL, "api")


class PodReadySeen(TypedDict):
    """A watch shows the Pod with the condition Ready for the first time."""

    resourceVersion: ResourceVersion


class PodGoneSeen(TypedDict):
    """The client sees the watch event DELETED."""

    resourceVersion: ResourceVersion


class NotShown(TypedDict):
    """Something of this Pod's end cannot be known from where it was followed. The story quotes it."""

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
    lifecycle: NotRequired[
        Annotated[list[str], "its lifecycle conditions that are True, with their reasons: `Drained (Reason)`"]
    ]


def node_state(facts: NodeStateSeen) -> Words:
    node = facts.get("node")
    if facts.get("gone"):
        return Words(tell("sees that node $node does not exist", node=node), STEP, "bad")
    ready = facts.get("ready")
    if ready and facts.get("lifecycle"):
        return Words(
            tell("sees node $node report $conditions", node=node, conditions=", ".join(facts["lifecycle"])), STEP
        )
    if ready:
        return Words(tell("sees node $node Ready", node=node), DETAIL)
    taints = f" ({', '.join(facts['taints'])})" if facts.get("taints") else ""
    if ready is False:
        return Words(tell("sees node $node not Ready$taints", node=node, taints=taints), STEP, "bad")
    text = tell("sees node $node not heard of: Ready is Unknown$taints", node=node, taints=taints)
    return Words(text, STEP, "bad")


SENTENCES = sentences(
    row(DeleteSent, delete_sent),
    row(PodReadySeen, fixed("Ready", STEP, "good")),
    row(PodGoneSeen, fixed("sees DELETED: the Pod is gone", STEP, "good")),
    row(NotShown, fixed("not known: $text", NOISE, recall=("text",))),
    row(NodeStateSeen, node_state),
)
"""The words for each kind."""
