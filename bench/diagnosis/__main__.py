"""`python -m bench.diagnosis --kernel N --virtual M [--seed S] [--only ID]`: how well lastcall names causes.

Without --seed the seed is the hash of the last commit that changed a rule. Results are kept in build/diagnosis, a line
for each case, and a run goes on where it was interrupted. --only runs one case (by its number or id) and prints its
manifest, the truth, the answer and the judgement. --page writes docs/diagnosis.md from the stored results.
"""

import argparse
import dataclasses
import datetime
import json
import logging
import signal
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from bench.diagnosis.case import Case, build, draw_cases
from bench.diagnosis.page import GRADES, ROOT, counted, git, measured_commit, page, seed_of_rules, share
from bench.diagnosis.running import Result, load_results, manifest, place, run_case, store
from bench.diagnosis.virtual import VirtualPlace, draw_virtual

STORED = ROOT / "build" / "diagnosis"
PAGE = ROOT / "docs" / "diagnosis.md"


CASES = 120
"""How many are run on the kernel where no number is given."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", type=int, default=0, metavar="N", help="cases with real processes")
    parser.add_argument("--virtual", type=int, default=0, metavar="N", help="cases in virtual time")
    parser.add_argument("--seed", default="")
    parser.add_argument("--only", default="", metavar="ID", help="one case, by its number or id; prints all of it")
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--page", action="store_true", help="write docs/diagnosis.md")
    options = parser.parse_args()
    if not options.kernel and not options.virtual:
        options.kernel = CASES
    seed = options.seed or seed_of_rules()
    cases = {"kernel": draw_cases(options.kernel, seed), "virtual": draw_virtual(options.virtual, seed)}
    if options.only:
        return show(options.only, cases)
    STORED.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parts, measured = {}, measured_commit()
    for world, some in cases.items():
        file = STORED / f"{world}-{seed}-{measured}.jsonl"
        run = run_virtual if world == "virtual" else run_kernel
        parts[world] = results = run(some, file, options.at_once)
        total: Counter[str] = sum(counted(results).values(), Counter())
        print(f"{world}: " + ", ".join(f"{grade} {share(total, grade)}" for grade in GRADES))
    if options.page:
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        changed = "+" if git("status", "--porcelain", "--", "src") else ""
        PAGE.write_text(page({world: some for world, some in parts.items() if some}, seed, measured + changed, today))
    return 0


def run_virtual(cases: list[Case], file: Path, _: int) -> list[dict[str, Any]]:
    """Run the cases that have no stored result yet in virtual time; return all results in order."""
    done, where = load_results(file), VirtualPlace()
    logging.disable()  # a kubelet reports what is missing, which is the fault
    for case in cases:
        if case.id not in done:
            result, _answer = run_case(where, case)
            done[result.case] = store(file, result)
            print(line(result), flush=True)
    return [done[each.id] for each in cases]


def run_kernel(cases: list[Case], file: Path, at_once: int) -> list[dict[str, Any]]:
    """Run the cases that have no stored result yet on the kernel; return all results in order."""
    done = load_results(file)
    with place() as where, ThreadPoolExecutor(at_once) as pool:
        left = [each for each in cases if each.id not in done]
        try:
            for ended in as_completed([pool.submit(run_case, where, case) for case in left]):
                result, _ = ended.result()
                done[result.case] = store(file, result)
                print(line(result), flush=True)
        except BaseException:
            where.close()
            pool.shutdown(cancel_futures=True)
            raise
    return [done[each.id] for each in cases]


def line(result: Result) -> str:
    """Return a line about a case."""
    words = [f"{each.fault}: {each.grade} ({', '.join(each.named) or 'nothing'})" for each in result.verdicts]
    words = words or ["the fault did not show"]
    alarms = f"  FALSE ALARM {result.alarms}" if result.alarms else ""
    unsound = "" if result.sound else f"  NOT SOUND {result.error[-300:]}"
    error = f"  ERROR {result.error}" if result.error and result.sound else ""
    return f"{result.seconds:5.1f} s  {result.case:45}  {'; '.join(words)}{alarms}{unsound}{error}"


def show(only: str, cases: dict[str, list[Case]]) -> int:
    """Run one case, and print everything about it."""
    found = [(world, c) for world, some in cases.items() for c in some if only in (c.id, str(c.number))]
    if not found:
        sys.exit(f"bench.diagnosis: no case is called {only}")
    world, case = found[0]
    app, injected = build(case)
    print(manifest(app.objects()))
    for each in injected:
        print(f"# truth: {each.fault.id} in {each.container}: {sorted(each.fault.causes)}, words {each.words}")
    print(f"# lastcall {app.command} {' '.join(app.args)}", flush=True)
    with place() as where:
        result, answer = run_case(VirtualPlace() if world == "virtual" else where, case)
    if answer:
        print(f"# answer: {json.dumps(answer.facts)}\n{answer.stderr}")
        for said in answer.named:
            print(f"#   {said.by} {said.severity} {said.id} [{said.container}] {said.advice} {said.change or ''}")
    print(json.dumps(dataclasses.asdict(result), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
