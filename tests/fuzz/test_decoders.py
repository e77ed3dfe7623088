"""A little fuzzing of every decoder, and everything that failed once. For more: `make fuzz MINUTES=60`."""

from random import Random

import pytest
import registry
import targets_api
import targets_node
import targets_streams
from harness import Target, changed_bytes, corpus_of, made, once
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

MODULES = (targets_api, targets_streams, targets_node)
TARGETS = [each for module in MODULES for each in vars(module).values() if isinstance(each, Target)]
BY_NAME = pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)


def test_every_target_is_in_the_registry() -> None:
    assert {target.name for target in TARGETS} <= {fuzzer.name for fuzzer in registry.FUZZERS}


@BY_NAME
def test_what_failed_once_does_not_fail_again(target: Target) -> None:
    for data in [*target.seeds(), *corpus_of(target)]:
        problem, _, _ = once(target, data)
        assert not problem, data[:300]
    assert any(once(target, data)[1] for data in target.seeds())


@BY_NAME
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(random=st.randoms(use_true_random=False), structured=st.booleans())
def test_bytes_become_a_value_or_the_declared_error(target: Target, random: Random, structured: bool) -> None:
    seeds = target.seeds()
    data = made(target, random, seeds) if structured else changed_bytes(random, random.choice(seeds))
    problem, _, _ = once(target, data)
    assert not problem, data[:300]


@BY_NAME
def test_most_inputs_made_by_structure_are_read(target: Target) -> None:
    random, seeds = Random(1), target.seeds()
    read = sum(once(target, made(target, random, seeds))[1] for _ in range(60))
    assert read >= 30
