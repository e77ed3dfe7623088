"""What is known of somebody's Pods goes to another process whole."""

import math
from collections import Counter

from rollout_lives import pod_life

from lastcall.traffic.lives import Outage
from lastcall.traffic.moments import Moment
from lastcall.traffic.outcome import Outcome
from lastcall.traffic.through_api import Traced, reached
from lastcall.ui.rollout.followed import lives_from_wire, lives_to_wire, traced_from_wire, traced_to_wire
from lastcall.world import wire

OUTCOMES = [Outcome(n, "fresh", float(n), float(n), n + 0.01, n, 0.0, 200, "10.1", "") for n in range(1, 4)]


def test_bounds_without_an_end_restarts_and_what_was_printed_arrive_as_they_were() -> None:
    down = Outage(Moment(2.5, math.inf), Moment(2.5, math.inf))
    pod = pod_life(
        "u", "web-1", "10.1", created=1.5, ready=2.0, deleted=Moment(-math.inf, 4.0), term=Moment(4.0, math.inf),
        outages=[down],
    )  # fmt: skip
    for even in (True, False):
        made = Traced(
            [pod], 1.0, 0.003, probed=True, printed={"u": Counter({7: 2, 8: 1})}, direct=True,
            reached=reached(OUTCOMES) if even else (),
        )  # fmt: skip
        assert traced_from_wire(wire.decode(wire.encode(traced_to_wire(made))), OUTCOMES) == made


def test_lives_arrive_with_what_is_drawn_of_them() -> None:
    life = pod_life("u", "web-1", "10.1", ready=1.0, deleted=2.0, term=2.1, exited=3.0, killed=True)
    assert lives_from_wire(wire.decode(wire.encode({"lives": lives_to_wire([life])}))["lives"]) == [life]
