"""`python -m bench rollouts [--runs N] [--seconds S] [--at-once K]`: what `lastcall rollout` says, again and again.

Each run is the real command on a cluster of its own: 200 requests a second, three replicas, every change of endpoints a
second late, one rolling update, `--seconds` of load after it began. Over all runs: what was lost and with which bound,
whether the books of generator and applications agree, verdicts, and how late requests were sent.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench import rollouts_there as there
from bench.figures import machine
from bench.rollout_table import HEADER, VARIANTS, rows, run


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench rollouts", description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--only", default="", help="names of examples (polite,naive), all by default")
    parser.add_argument("--raw", type=Path, help="where each run's document goes, a line of JSON each")
    there.add_options(parser)
    options = parser.parse_args(arguments)
    chosen = [each for each in VARIANTS if not options.only or each.manifest in options.only.split(",")]
    if options.context:
        on = there.There(options.context, options.kubeconfig, options.image, options.python)
        raise SystemExit(not there.rollouts_there(on, chosen, options.runs, options.seconds, options.raw))
    print(machine(), flush=True)
    print()
    print(HEADER, flush=True)
    for variant in chosen:
        count = max(1, round(options.runs * variant.share))
        with ThreadPoolExecutor(options.at_once) as pool:
            work = [pool.submit(run, variant, options.seconds) for _ in range(count)]
            runs = []
            for each in work:
                runs.append(each.result())
                if options.raw is not None:
                    with options.raw.open("a") as file:
                        file.write(json.dumps(runs[-1]) + "\n")
        print("\n".join(rows(variant.name, runs)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
