"""Clocks of different machines: the true offset is always within the error that is told."""

import random

import pytest

from lastcall.contexts.clocks import NotOneOffset, Offset, Sample, offset_of, widest_offset


def looked(rng: random.Random, true: float, at: float, *, drift: float = 0.0, slowest: float = 0.2) -> Sample:
    """A look at a clock that is `true` seconds ahead at 0, over a way that takes longer in one direction."""
    there, back = rng.uniform(0.0001, slowest), rng.uniform(0.0001, slowest)
    moment = at + there
    return Sample(at, moment + true + drift * moment, moment + back)


@pytest.mark.parametrize("true", [0.0, 0.003, -0.04, 3600.0, -86400.0])
def test_the_true_offset_is_within_the_error_whatever_way_the_messages_took(true: float) -> None:
    rng = random.Random(str(true))
    for _ in range(300):
        samples = [looked(rng, true, at) for at in range(rng.randint(1, 20))]
        found = offset_of(samples)
        assert abs(found.seconds - true) <= found.error + 1e-9
        quickest = min(each.received - each.sent for each in samples)
        assert found.error <= quickest / 2 + 20.5 * found.drift  # never worse than NTP's quickest sample, but for drift


def test_a_clock_that_drifts_as_it_may_is_still_within_the_error() -> None:
    rng = random.Random(7)
    for drift in (150e-6, -150e-6):
        samples = [looked(rng, 2.0, at, drift=drift, slowest=0.01) for at in range(0, 600, 10)]
        found = offset_of(samples)
        assert abs(found.seconds - (2.0 + drift * found.at)) <= found.error
        later = found.at + 1000
        assert abs(found.seconds - (2.0 + drift * later)) <= found.error_at(later)


def test_a_clock_that_is_set_meanwhile_has_no_one_offset() -> None:
    with pytest.raises(
        NotOneOffset, match=r"the other clock was set during the measurement: samples differ by 59\.\d+ s"
    ):
        offset_of([Sample(0, 0.01, 0.02), Sample(1, 61.01, 1.02)])


def test_whole_seconds_are_sharpened_by_looking_again() -> None:
    true = 0.3
    samples = [Sample(at, float(int(at + 0.001 + true)), at + 0.002, 1.0) for at in (n * 0.37 for n in range(40))]
    one, many = offset_of(samples[:1]), offset_of(samples)
    assert one.error > 0.5 > 0.1 > many.error
    assert abs(many.seconds - true) <= many.error


def test_nothing_within_the_error_is_put_in_an_order() -> None:
    offset = Offset(seconds=100.0, error=0.010, at=50.0, drift=0.0)
    assert offset.order(theirs=150.0, ours=50.011) == "before"
    assert offset.order(theirs=150.0, ours=49.989) == "after"
    assert {offset.order(theirs=150.0, ours=ours) for ours in (49.991, 50.0, 50.009)} == {"unknown"}


def test_what_is_no_sample_is_said() -> None:
    with pytest.raises(ValueError, match="no sample"):
        offset_of([])
    with pytest.raises(ValueError, match="before it was sent"):
        offset_of([Sample(2.0, 2.0, 1.0)])


@pytest.mark.parametrize(
    ("offset", "told"),
    [
        (Offset(0.0, 0.0005, 0), "+0.0 ms ± 0.5 ms"),
        (Offset(-0.0421, 0.012, 0), "-42.1 ms ± 12.0 ms"),
        (Offset(3600.0, 1.5, 0), "+3600.000 s ± 1.500 s"),
    ],
)
def test_an_offset_is_told_with_its_error(offset: Offset, told: str) -> None:
    assert offset.text == told


def test_a_clock_that_jumps_to_and_fro_has_an_error_that_holds_for_every_look() -> None:
    samples = [Sample(float(at), at + 10.0 + jump, at + 0.01) for at, jump in enumerate((0.0, 0.6, -0.4, 0.2))]
    with pytest.raises(NotOneOffset):
        offset_of(samples)
    found = widest_offset(samples)
    for each in samples:
        assert abs((each.remote - each.sent) - found.seconds) <= found.error + 1e-9
    assert 0.5 < found.error < 0.53
    with pytest.raises(ValueError, match="no sample"):
        widest_offset([])
