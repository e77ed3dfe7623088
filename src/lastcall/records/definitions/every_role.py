"""What every process of the cluster may write. These records are of no Pod."""

from typing import Annotated, TypedDict

from lastcall.records.sentences import STEP, fixed, row, sentences

ACTOR = "every role"


class FaultCaught(TypedDict):
    """A turn failed as nobody expected; the component continues with the next one."""

    role: str
    component: str
    key: str
    error: Annotated[str, "its text in one line"]
    times: Annotated[int, "since it was reported last"]
    count: Annotated[int, "since the role's start"]


SENTENCES = sentences(
    row(FaultCaught, fixed("an internal error was caught: $component $key: $error", STEP)),
)
"""The words for each kind."""
