"""What the agent says reaches a client that comes back, and what it cannot keep is counted."""

import json

from lastcall.records import kinds
from lastcall.trace.agent.lines import MOST_KEPT, Lines, Recorder
from lastcall.world.clock import RealClock


def said(lines: list[bytes]) -> list[dict[str, object]]:
    return [json.loads(line) for line in lines]


def test_nothing_is_lost_before_the_first_hello() -> None:
    out: list[bytes] = []
    lines = Lines(out.append)
    lines.tell(record=1)
    assert out == []
    lines.go_on(0)
    lines.tell(record=2)
    assert said(out) == [{"seq": 1, "record": 1}, {"seq": 2, "record": 2}]


def test_a_client_that_comes_back_gets_what_it_has_not_seen() -> None:
    out: list[bytes] = []
    lines = Lines(out.append)
    lines.go_on(0)
    for number in range(3):
        lines.tell(record=number)
    del out[:]
    lines.go_on(2)
    assert said(out) == [{"seq": 3, "record": 2}]


def test_what_fell_out_is_told_as_a_number() -> None:
    out: list[bytes] = []
    lines = Lines(out.append)
    for number in range(MOST_KEPT + 5):
        lines.tell(record=number)
    lines.go_on(2)
    assert said(out[:2]) == [{"lost": 3}, {"seq": 6, "record": 5}]
    assert len(out) == MOST_KEPT + 1


def test_a_record_carries_the_time_at_which_it_was() -> None:
    out: list[bytes] = []
    lines, clock = Lines(out.append), RealClock()
    lines.go_on(0)
    recorder = Recorder(lines, clock, "node-1")
    at = clock.monotonic_ns() - 5_000_000_000
    recorder.record(kinds.PROCESS_EXITED, pod_uid="u", container="c", facts={"exitCode": None}, at_ns=at)
    record = said(out)[0]["record"]
    assert isinstance(record, dict)
    assert record["at_ns"] == at
    assert 4.9e9 < clock.wall_ns() - record["wall_ns"] < 60e9
    assert (record["kind"], record["evidence"], record["actor"]) == ("ProcessExited", "observed", "node-agent")
    assert record["facts"] == {"exitCode": None}
