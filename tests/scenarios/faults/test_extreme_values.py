"""Extreme values in every field that a client may write: what the API accepts ends no component's turn.

In virtual time nothing stands between a component's exception and the test. By hand, for longer:

    LASTCALL_HYPOTHESIS=long pytest tests/scenarios/faults/test_extreme_values.py
"""

import os
import random

from extreme_values import BASES, Change, Tally, leaves, live_on, random_change, values_for, with_change
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as some
from virtual_cluster import run_cluster

from lastcall.kube.cri.simulated_program import Program

LONG = os.environ.get("LASTCALL_HYPOTHESIS") == "long"
COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": False}
PROFILE = (
    settings(max_examples=1500, **COMMON)
    if LONG
    else settings(max_examples=60, phases=(Phase.generate,), derandomize=True, **COMMON)
)
PROGRAMS = {"app": Program(drain_seconds=0.2)}
ONE = some.integers(0, 2**32).map(lambda seed: random_change(random.Random(seed)))
CHANGES = some.lists(ONE, min_size=20, max_size=40)


def live(changes: list[Change], seed: int) -> Tally:
    tally = Tally()
    run_cluster(lambda cluster: live_on(cluster, changes, random.Random(seed), tally), PROGRAMS, seed=seed)
    return tally


@PROFILE
@given(changes=CHANGES, seed=some.integers(0, 2**16))
def test_what_the_api_accepts_ends_nobodys_turn(changes: list[Change], seed: int) -> None:
    live(changes, seed)


def test_half_of_the_changes_are_accepted() -> None:
    source = random.Random(3)
    tally = live([random_change(source) for _ in range(150)], 3)
    assert tally.accepted > tally.refused


def test_every_field_is_among_the_changes() -> None:
    count = 0
    for resource, base in BASES.items():
        for path, field in leaves(resource):
            count += 1
            assert with_change(base, Change(resource, path, values_for(field)[-1])) != base or path[0] == "metadata"
    assert count > 6000
