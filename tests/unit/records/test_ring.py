import json
import os
import select
import signal
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import pytest
from waiting import eventually

from lastcall.records.record_json import encode_record
from lastcall.records.ring import Ring, RingReader, RingRecorder
from lastcall.world.clock import RealClock


@pytest.fixture
def ring():
    ring = Ring.create("test-ring", capacity=4096)
    yield ring
    ring.close()
    os.close(ring.fd)


def test_what_one_mapping_writes_another_reads_whole_and_in_order(ring):
    recorder = RingRecorder(ring, "kubelet", RealClock())
    other = Ring(os.dup(ring.fd))
    reader = RingReader(other)
    first = recorder.record("Killing", pod_uid="u", container="c", rule="r", facts={"a": [1, "ä"]}, cause_id="x")
    second = recorder.for_actor("runtime").record("SignalSent", evidence="inferred")
    records = reader.read_new()
    assert [r.id for r in records] == [first, second]
    assert records[0].facts == {"a": [1, "ä"]}
    assert (records[0].pod_uid, records[0].container, records[0].rule, records[0].cause_id) == ("u", "c", "r", "x")
    assert [r.actor for r in records] == ["kubelet", "runtime"]
    assert records[1].evidence == "inferred"
    assert records[1].facts == {}
    assert first.startswith("kubelet-") and first.endswith("-0")
    assert second.startswith("runtime-") and second.endswith("-1")
    assert records[0].at_ns <= records[1].at_ns
    assert reader.read_new() == []
    other.close()
    os.close(other.fd)


def test_a_slow_reader_is_told_how_many_records_it_missed(ring):
    recorder = RingRecorder(ring, "a", RealClock())
    reader = RingReader(ring)
    recorder.record("First")
    assert [r.kind for r in reader.read_new()] == ["First"]
    for number in range(500):
        recorder.record("Fact", facts={"number": number, "padding": "x" * (number % 97)})
    seen = [r.facts["number"] for r in reader.read_new()]
    assert seen[-1] == 499
    assert seen == list(range(500 - len(seen), 500))
    assert reader.overwritten == 500 - len(seen) > 0


def test_a_reader_that_comes_late_starts_with_the_oldest_record_and_missed_none(ring):
    recorder = RingRecorder(ring, "a", RealClock())
    for number in range(200):
        recorder.record("Fact", facts={"number": number})
    reader = RingReader(ring)
    seen = [r.facts["number"] for r in reader.read_new()]
    assert seen[-1] == 199 and seen[0] > 0
    assert reader.overwritten == 0


def test_a_record_that_cannot_be_written_says_so_and_raises_nothing(ring):
    recorder = RingRecorder(ring, "a", RealClock())
    reader = RingReader(ring)
    recorder.record("Huge", facts={"text": "x" * 5000})
    circle = {}
    circle["self"] = circle
    recorder.record("Circle", facts=circle)
    recorder.record("Bytes", facts={"raw": b"\xff"})
    recorder.record("Surrogate", facts={"raw": "\udcff"})
    huge, circular, raw, surrogate = reader.read_new()
    assert "too long" in huge.facts["omitted"]
    assert "omitted" in circular.facts
    assert raw.facts == {"raw": repr(b"\xff")}
    assert surrogate.kind == "Surrogate"


def test_a_writer_wakes_whoever_waits():
    wake = os.eventfd(0, os.EFD_NONBLOCK)
    ring = Ring.create("wake", wake, capacity=4096)
    recorder = RingRecorder(ring, "a", RealClock())
    assert select.select([wake], [], [], 0)[0] == []
    recorder.record("Fact")
    recorder.record("Fact")
    assert select.select([wake], [], [], 0)[0] == [wake]
    assert os.eventfd_read(wake) == 2
    os.close(wake)
    recorder.record("AfterTheReaderLeft")
    ring.close()
    os.close(ring.fd)


def test_an_fd_that_is_no_ring_is_refused():
    fd = os.memfd_create("other")
    os.ftruncate(fd, 8192)
    with pytest.raises(ValueError, match="not a record ring"):
        Ring(fd)
    os.close(fd)


def test_a_frame_whose_bytes_have_not_arrived_is_not_read_and_not_skipped(ring):
    recorder = RingRecorder(ring, "a", RealClock())
    reader = RingReader(ring)
    recorder.record("Fact", facts={"n": 1})
    position = 4096 + 16 + 5  # a byte of the payload, as another processor might still see it
    original = ring._map[position]
    ring._map[position] = original ^ 0xFF
    assert reader.read_new() == []
    ring._map[position] = original
    assert [r.facts["n"] for r in reader.read_new()] == [1]


@pytest.mark.loopback
@pytest.mark.parametrize("round_", range(12))
def test_a_writer_killed_under_load_loses_nothing_it_committed(round_):
    """The writer counts every record that `record` returned from; a reader then finds them all, none torn."""
    ring = Ring.create("killed", capacity=64 << 10)
    count = os.memfd_create("count")
    os.ftruncate(count, 8)
    reader = RingReader(ring)
    pid = os.fork()
    if pid == 0:
        recorder = RingRecorder(ring, "victim", RealClock())
        number = 0
        while True:
            recorder.record("Fact", facts={"number": number, "text": "y" * (number * 37 % 900)})
            number += 1
            os.pwrite(count, number.to_bytes(8, "little"), 0)
    # On a busy machine the writer may not even have begun.
    eventually(lambda: os.pread(count, 8, 0) != bytes(8), "the writer's first record", pause=0.001)
    time.sleep(round_ * 0.003)  # read at different moments; any is right
    seen = []
    for _ in range(5):
        seen += reader.read_new()  # beside the running writer
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    seen += reader.read_new()
    acknowledged = int.from_bytes(os.pread(count, 8, 0), "little")
    numbers = [r.facts["number"] for r in seen]
    assert numbers == sorted(set(numbers))
    assert all(r.facts["text"] == "y" * (r.facts["number"] * 37 % 900) for r in seen)
    assert numbers[-1] in (acknowledged - 1, acknowledged)  # at most the one whose return was not counted any more
    assert len(numbers) + reader.overwritten == numbers[-1] + 1
    # The next writer goes on where the dead one stopped.
    recorder = RingRecorder(ring, "heir", RealClock())
    recorder.record("Next", facts={"text": json.dumps(seen[-1].facts)})
    assert [r.kind for r in reader.read_new()] == ["Next"]
    ring.close()
    os.close(ring.fd)
    os.close(count)


class Point(NamedTuple):
    x: int
    y: str


@dataclass
class Plain:
    text: str


ODD = ({1: "a", "b": None}, "\ud800", 2**80, (1, (2, 3)), Point(1, "ü"), Path("/x"), Plain("t"), b"\xff", datetime.min)


@pytest.mark.parametrize("value", ODD, ids=repr)
def test_a_record_reads_the_same_whichever_encoder_wrote_it(ring, value):
    reader = RingReader(ring)
    RingRecorder(ring, "a", RealClock()).record("Fact", facts={"value": value})
    RingRecorder(ring, "a", RealClock(), encode_record).record("Fact", facts={"value": value})
    one, other = reader.read_new()
    assert one.facts == other.facts
