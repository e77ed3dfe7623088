"""What a command says of its rollout to its page."""

from typing import Any, cast

from rollout_results import rollout_result

from lastcall.cli.rollout.page import RolloutPage
from lastcall.traffic.account import account
from lastcall.ui.asked import AskedPage
from lastcall.ui.command_page.link import PageLink
from lastcall.ui.command_page.messages import Rollout
from lastcall.ui.rollout.accounted import account_from_wire
from lastcall.ui.rollout.texts import state_from_wire
from lastcall.world import wire
from lastcall.world.messages import Message


class Link:
    """It notes what the page is told."""

    def __init__(self) -> None:
        self.states: list[dict[str, Any]] = []

    def tell(self, message: Message) -> None:
        if isinstance(message, Rollout):
            self.states.append(state_from_wire(wire.decode(wire.encode(message.to_wire()))["state"]))


def test_the_page_has_each_lost_request_with_the_cause_that_the_command_says() -> None:
    link = Link()
    page = RolloutPage(AskedPage(), link=cast(PageLink, link))
    result = rollout_result()
    found = account(result.outcomes, result.lives, ["lc-1 begun"], 10.0)
    page.found(rollout_result(account=found))
    told = account_from_wire(link.states[-1]["account"])
    assert [(each.outcome, each.at, each.pod, each.phase, each.cause) for each in told.lost] == [
        (each.outcome, each.at, each.pod, each.phase, each.cause) for each in found.lost
    ]
    assert (told.totals, told.losses, told.causes) == (found.totals, found.losses, found.causes)
