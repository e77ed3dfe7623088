"""The API's fuzzer in small, and everything that it ever found."""

import json
import os
from pathlib import Path

import pytest
from api_inputs import Input, Inputs
from api_outcome import Outcome
from api_virtual import run_batch
from fuzz_api import fuzz

KEPT = Path(__file__).parents[1] / "corpus" / "api"


@pytest.mark.parametrize("file", sorted(KEPT.glob("*.json")), ids=lambda path: path.stem)
def test_what_was_found_once_is_mended(file: Path) -> None:
    kept = json.loads(file.read_text())
    assert not run_batch([Input.from_json(each) for each in kept["inputs"]]).findings, kept["finding"]


def test_random_requests_end_no_component_and_are_answered() -> None:
    told: list[str] = []
    outcome = fuzz(run_batch, int(os.environ.get("LASTCALL_FUZZ_SEED", "1")), 20.0, None, told.append)
    assert not outcome.findings, "\n".join(told)
    assert sum(outcome.reached.values()) * 2 > sum(outcome.sent.values())


def test_the_same_seed_makes_the_same_requests() -> None:
    one, other = Inputs(7), Inputs(7)
    assert [one.next() for _ in range(20)] == [other.next() for _ in range(20)]


def test_a_fuzzer_whose_inputs_are_mostly_refused_says_so() -> None:
    outcome = Outcome()
    outcome.sent["Pod", "json"] = 100
    outcome.reached["Pod", "json"] = 49
    assert outcome.too_few_reached() == ["Pod: 49 of 100", "json: 49 of 100"]
