"""The API's fuzzer (`tests/fuzz/api`) as one line of the registry: requests to a cluster in virtual time."""

import logging
import sys
from pathlib import Path

from harness import CORPUS, Fuzzer, Report

HERE = Path(__file__).resolve().parent


def _run(seconds: float, seed: int) -> Report:
    sys.path[:0] = [str(HERE.parent / "support"), str(HERE / "api")]
    logging.disable(logging.CRITICAL)  # of refused requests the components tell at length
    from api_virtual import run_batch
    from fuzz_api import fuzz

    told: list[str] = []
    outcome = fuzz(run_batch, seed, seconds, CORPUS / "api-found", told.append, shorten=True)
    report = Report("api", [sum(outcome.sent.values()), 0], [sum(outcome.reached.values()), 0])
    report.failures += told
    report.failures += [f"a fault of the fuzzer, too few reached a handler: {few}" for few in outcome.too_few_reached()]
    return report


def fuzzer(share: float) -> Fuzzer:
    return Fuzzer("api", share, _run)
