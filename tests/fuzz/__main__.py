"""Fuzzing for minutes: `python tests/fuzz --minutes 60 [--only NAME …] [--seed N]`, or `make fuzz MINUTES=60`.

Each fuzzer of `registry.py` gets its share of the time. Exit status 1 and the input's file in `corpus/` for what
failed: mend it and keep the file, which the tests read from then on. Told is how many inputs were read, by structure
and by bytes: less than half of all is a fault of the fuzzer.
"""

import argparse
import logging
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from registry import FUZZERS


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    chosen = [fuzzer for fuzzer in FUZZERS if not options.only or fuzzer.name in options.only]
    if not chosen:
        parser.error(
            f"there is none of {', '.join(options.only)}; there are {', '.join(each.name for each in FUZZERS)}"
        )
    whole = sum(fuzzer.share for fuzzer in chosen)
    print(f"seed {options.seed}, {options.minutes} minutes for {len(chosen)} fuzzers", flush=True)
    logging.getLogger("lastcall").setLevel(logging.CRITICAL)  # of what cannot be read it tells at length
    failed = False
    for fuzzer in chosen:
        report = fuzzer.run(options.minutes * 60 * fuzzer.share / whole, options.seed)
        print(report, flush=True)
        for failure in report.failures:
            print(f"  {failure}", flush=True)
        few = sum(report.made) > 200 and 2 * sum(report.passed) < sum(report.made)
        if few:
            print("  less than half of the inputs were read: mend the fuzzer", flush=True)
        failed = failed or few or bool(report.failures)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
