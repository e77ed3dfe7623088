"""The table of causes: every row has a request that takes it, and one that is refuted; bounds take claims away only."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rollout_lives import pod_life

from lastcall.traffic.causes import CAUSES, Loss, Row, decide_cause
from lastcall.traffic.connection_use import ConnectionUse, Limit
from lastcall.traffic.lives import MOMENTS, Outage, PodLife
from lastcall.traffic.moments import Moment, exactly
from lastcall.traffic.outcome import KINDS, LOST, Outcome


def request(sent: float, finished: float, lost: str, kind: str = "fresh", age: float = 0.0) -> Outcome:
    return Outcome(1, kind, sent, sent, finished, 1, age, 200, "10.1", lost)  # type: ignore[arg-type]


def life(**times: Any) -> PodLife:
    """A Pod that is deleted at 10, gets SIGTERM at 12, exits at 15 and is in the rules from 1 on."""
    return pod_life("u", "web-1", "10.1", **{"ready": 0.5, "routed": 1.0, "deleted": 10.0, "term": 12.0, "exited": 15.0}
                    | times)  # fmt: skip


def other(**times: Any) -> PodLife:
    return pod_life("v", "web-2", "10.2", **times)


CRASH = Outage(Moment.at(5.0), Moment.at(7.0))
STOPPED = Outage(Moment.at(5.0), Moment.at(7.0), Moment.at(4.9))
RECYCLED = ConnectionUse((4.0, 4.5, 5.0), 4.0, 6.0)
USED, LEFT = ConnectionUse((11.0, 12.5, 13.5, 14.5), 2.0, 15.0), ConnectionUse((11.0, 12.2, 12.4), 2.0, 15.0)
QUITS = life(hook=10.0, listener_closed=11.0)
CLOSES = life(open_until=12.4, listener_closed=12.6, killed=True)
REFUSED, CUT = request(13, 13, "refused"), request(14, 15, "truncated")
READY, LATER = other(ready=1.0, routed=1.0), other(ready=17.0, routed=17.0)

WALK: list[tuple[str, Loss, Loss]] = [
    ("not serving yet", Loss(request(2, 3, "5xx"), life(), served=4.0), Loss(request(2, 5, "5xx"), life(), served=4.0)),
    ("server error", Loss(request(5, 6, "5xx"), life()), Loss(CUT, life())),
    ("no endpoint", Loss(REFUSED, None), Loss(REFUSED, None, [READY])),
    ("unexplained", Loss(request(3, 4, "connect timeout"), None), Loss(request(3, 4, "connect timeout"), life())),
    ("crashed", Loss(request(6, 6, "refused"), life(outages=[CRASH])),
     Loss(request(6, 6, "refused"), life(outages=[STOPPED]))),
    ("restarted", Loss(request(6, 6, "refused"), life(outages=[STOPPED])),
     Loss(request(8, 8, "refused"), life(outages=[STOPPED]))),
    ("unexplained", Loss(request(5, 6, "connect timeout"), life()), Loss(request(12.5, 15, "connect timeout"), life())),
    ("no endpoint", Loss(REFUSED, life(), [life(), LATER]), Loss(REFUSED, life(), [life(), READY])),
    ("closed by its hook", Loss(request(11.5, 11.5, "refused"), QUITS), Loss(request(10.5, 10.5, "refused"), QUITS)),
    ("late endpoint", Loss(REFUSED, life()), Loss(request(9, 9, "refused"), life())),
    ("not ready yet", Loss(request(1.5, 1.5, "refused"), life(ready=2.0)), Loss(request(1.5, 1.5, "refused"), life())),
    ("not listening yet", Loss(request(1.5, 1.5, "refused"), life()), Loss(request(1.5, 1.6, "truncated"), life())),
    ("cut at a limit", Loss(request(5, 6, "truncated"), life(), use=RECYCLED, limit=Limit("requests", 3.0)),
     Loss(request(5, 6, "truncated"), life(), use=RECYCLED, limit=Limit("requests", 9.0))),
    ("stale connection", Loss(request(11.4, 11.5, "closed before bytes", "keep-alive", age=5.0), QUITS),
     Loss(request(10.4, 10.5, "closed before bytes", "keep-alive", age=5.0), QUITS)),
    ("closed by its hook", Loss(request(10.9, 11.1, "reset before bytes"), QUITS),
     Loss(request(10.9, 11.1, "reset before bytes"), life(hook=10.0))),
    ("unexplained", Loss(request(5, 6, "truncated"), life()), Loss(CUT, life())),
    ("stale connection", Loss(request(16, 16, "reset after bytes", age=5.0), life()),
     Loss(request(16, 16, "reset after bytes"), life())),
    ("no endpoint", Loss(request(16, 16, "truncated"), life(), [life(), LATER]),
     Loss(request(16, 16, "truncated"), life(), [life(), READY])),
    ("late endpoint", Loss(request(16, 16, "truncated"), life()), Loss(CUT, life())),
    ("never read", Loss(request(12.1, 12.5, "reset before bytes"), CLOSES),
     Loss(request(12.1, 13.5, "reset before bytes"), CLOSES)),
    ("held open", Loss(CUT, life(killed=True), use=USED), Loss(CUT, life(killed=True), use=LEFT)),
    ("killed", Loss(CUT, life(killed=True)), Loss(CUT, life())),
    ("stale connection", Loss(request(14, 15, "reset before bytes", "keep-alive"), life()),
     Loss(request(14, 15, "reset after bytes", "keep-alive"), life())),
    ("no endpoint", Loss(CUT, life(), [life(), LATER]),
     Loss(request(14, 15, "truncated", "keep-alive"), life(), [life(), LATER])),
    ("never read", Loss(request(14, 15, "reset before bytes"), life(), seen="never"),
     Loss(request(14, 15, "reset before bytes"), life(), seen="begun")),
    ("cut off", Loss(CUT, life()), Loss(request(5, 6, "truncated"), life())),
]  # fmt: skip


def row_of(loss: Loss) -> Row:
    return next(row for row in CAUSES if row.fits(loss))


def test_the_walk_goes_by_every_row() -> None:
    assert [row.cause for row in CAUSES] == [cause for cause, *_ in WALK]


@pytest.mark.parametrize(("number", "takes", "refuted"), [(n, *row[1:]) for n, row in enumerate(WALK)],
                         ids=[f"{n}: {row[0]}" for n, row in enumerate(WALK)])  # fmt: skip
def test_each_row_has_a_request_that_takes_it_and_one_that_is_refuted(number: int, takes: Loss, refuted: Loss) -> None:
    assert row_of(takes) is CAUSES[number]
    assert row_of(refuted) is not CAUSES[number]
    assert decide_cause(takes).cause == CAUSES[number].cause and not decide_cause(takes).not_known


@pytest.mark.parametrize(
    ("outcome", "known"),
    [
        pytest.param(request(11.9, 12.5, "reset before bytes"), {}, id="sent before the signal: it may be at it"),
        pytest.param(request(12.1, 12.5, "reset after bytes"), {}, id="it was answered in part"),
        pytest.param(request(12.1, 12.5, "closed before bytes"), {}, id="accepted ones are closed"),
        pytest.param(request(12.1, 12.5, "reset before bytes", "keep-alive", age=5.0), {}, id="it had been accepted"),
        pytest.param(request(12.1, 12.5, "reset before bytes"), {"seen": "begun"}, id="the application saw it"),
        pytest.param(request(12.1, 12.5, "reset before bytes"), {"lives": [life(), LATER]}, id="nobody else listened"),
    ],
)
def test_what_was_not_reset_in_the_accept_queue_is_not_called_unread(outcome: Outcome, known: dict[str, Any]) -> None:
    assert decide_cause(Loss(outcome, replace(CLOSES, killed=False), **known)).cause != "never read"


# -- bounds -----------------------------------------------------------------------------------------------------------

# Whole tenths: much is at the same moment then, and next to what a clock may differ by.
times = st.integers(0, 60).map(lambda tenths: tenths / 10)
exacts = times.map(Moment.at)
widths = st.sampled_from([0.0, 0.0, 0.005, 0.1, 1.0, 3.0, math.inf])


@st.composite
def exact_losses(draw: st.DrawFn) -> Loss:
    """A request and its Pod, whose end has its order; some of it did not happen."""
    values: dict[str, Any] = {
        name: exactly(draw(st.none() | times)) for name in ("ready", "routed", "open_until", "listener_closed", "hook")
    }
    end = sorted(draw(st.tuples(times, times, times, times)))
    values |= {
        name: exactly(at) if draw(st.booleans()) else None
        for name, at in zip(("deleted", "stop", "term", "exited"), end, strict=True)
    }
    outages = draw(st.lists(st.builds(Outage, exacts, st.none() | exacts, st.none() | exacts), max_size=2))
    pod = PodLife("u", "web-1", "10.1", killed=draw(st.booleans()), outages=outages, **values)
    sent, took = draw(times), draw(st.sampled_from([0.0, 0.005, 0.1, 0.4, 2.0]))
    outcome = request(sent, sent + took, draw(st.sampled_from(LOST)), draw(st.sampled_from(KINDS)),
                      draw(st.sampled_from([0.0, 5.0])))  # fmt: skip
    return Loss(outcome, pod, seen=draw(st.sampled_from(["never", "begun", "unknown"])), served=draw(times))


@st.composite
def widened(draw: st.DrawFn, loss: Loss) -> Loss:
    assert loss.life is not None

    def wide(moment: Moment | None) -> Moment | None:
        return moment and Moment(moment.earliest - draw(widths), moment.latest + draw(widths))

    outages = [
        replace(each, exited=wide(each.exited), restarted=wide(each.restarted), stop=wide(each.stop))
        for each in loss.life.outages
    ]
    moments = {name: wide(getattr(loss.life, name)) for name in MOMENTS}
    return replace(loss, life=replace(loss.life, outages=outages, **moments))


@settings(deadline=None)
@given(st.data())
def test_bounds_change_no_cause_into_another_one(data: st.DataObject) -> None:
    loss = data.draw(exact_losses())
    exact = decide_cause(loss)
    wide = decide_cause(data.draw(widened(loss)), data.draw(st.sampled_from([0.0, 0.1, 1.0])))
    assert not exact.not_known
    assert wide == exact or (wide.cause, wide.not_known) == ("not seen", "signal")
