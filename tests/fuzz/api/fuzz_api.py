"""Random requests, made along the types, against lastcall's API.

    python tests/fuzz/api/fuzz_api.py --minutes 5                a cluster in virtual time, a new one for each batch
    python tests/fuzz/api/fuzz_api.py --minutes 5 --real         one cluster on the real kernel
    python tests/fuzz/api/fuzz_api.py --replay FILE              a batch that was kept

Ends with 1 when there are findings, and keeps the batch of each new one in `--keep DIR`.
"""

import argparse
import json
import logging
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "support"), str(HERE)]

from api_inputs import Input, Inputs  # noqa: E402 (its directory was not on the path)
from api_outcome import Outcome  # noqa: E402
from api_virtual import run_batch  # noqa: E402

BATCH = 100
SHORTENED_BY = 14
"""How many runs may be spent on a shorter batch that finds the same."""

Run = Callable[[Sequence[Input]], Outcome]


def shortened(inputs: Sequence[Input], run: Run, wanted: str) -> list[Input]:
    """A part of `inputs` after which `wanted` is found again: pieces are left out, ever smaller ones."""
    kept, piece, tries = list(inputs), max(len(inputs) // 2, 1), 0
    while piece and tries < SHORTENED_BY:
        for start in range(0, len(kept), piece):
            fewer = kept[:start] + kept[start + piece :]
            tries += 1
            if fewer and wanted in run(fewer).distinct():
                kept = fewer
                break
            if tries >= SHORTENED_BY:
                break
        else:
            piece //= 2
    return kept


def fuzz(
    run: Run, seed: int, seconds: float, keep: Path | None, tell: Callable[[str], None], *, shorten: bool = False
) -> Outcome:
    """Batches from `seed` on until `seconds` are over; what each found new is told and kept."""
    total, known = Outcome(), set[str]()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        source, inputs = Inputs(seed), list[Input]()
        while len(inputs) < BATCH:
            inputs += source.next()
        outcome = run(inputs)
        for finding in sorted(set(outcome.distinct()) - known):
            known.add(finding)
            tell(f"seed {seed}: {finding}")
            if keep is not None:
                keep.mkdir(parents=True, exist_ok=True)
                short = shortened(inputs, run, finding) if shorten else inputs
                (keep / f"seed-{seed}-{len(known)}.json").write_text(
                    json.dumps({"finding": finding, "inputs": [each.to_json() for each in short]}, indent=1)
                )
        total.add(outcome)
        seed += 1
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--keep", type=Path, metavar="DIR")
    parser.add_argument("--shorten", action="store_true", help="what is kept finds the same with fewer requests; slow")
    parser.add_argument("--replay", type=Path)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)

    def tell(text: str) -> None:
        print(text, flush=True)

    if options.replay:
        outcome = run_batch([Input.from_json(each) for each in json.loads(options.replay.read_text())["inputs"]])
    elif options.real:
        from api_real import RealCluster

        with RealCluster() as cluster:
            outcome = fuzz(cluster.run_batch, options.seed, options.minutes * 60, options.keep, tell)
    else:
        outcome = fuzz(run_batch, options.seed, options.minutes * 60, options.keep, tell, shorten=options.shorten)
    print("\n".join(outcome.report()))
    few = outcome.too_few_reached()
    if few:
        print("less than half reached a handler, a fault of the fuzzer: " + ", ".join(few))
    return 1 if outcome.findings or few else 0


if __name__ == "__main__":
    sys.exit(main())
