"""How probes are run: in a child that may be slow, hang or die."""

import errno
import os

import pytest

from lastcall.world import probes
from lastcall.world.probes import Probe

pytestmark = pytest.mark.loopback


def hang() -> None:
    read, _write = os.pipe()
    os.read(read, 1)


def test_a_probe_that_hangs_is_named_and_those_before_it_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "SECONDS", 0.3)

    def work(report: probes._Report) -> None:
        probes._attempt(report, "one", lambda: "seen")
        probes._attempt(report, "two", hang)
        probes._attempt(report, "three", lambda: "never")

    found = probes._in_child(work)
    assert found == {"one": Probe(0, "seen"), "two": Probe(errno.ETIMEDOUT, "no answer within 0.3 s")}


def test_many_slow_probes_may_take_longer_than_one_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "SECONDS", 2.0)

    def slow() -> None:
        probes.select.select([], [], [], 0.5)

    def work(report: probes._Report) -> None:
        for number in range(6):
            probes._attempt(report, str(number), slow)

    assert [each.ok for each in probes._in_child(work).values()] == [True] * 6


def test_what_fails_after_it_was_begun_is_kept_as_the_kernel_said_it() -> None:
    def work(report: probes._Report) -> None:
        probes._attempt(report, "one", lambda: os.rmdir("/proc/self"))  # type: ignore[func-returns-value]

    assert not probes._in_child(work)["one"].ok
    assert "no answer" not in probes._in_child(work)["one"].detail
