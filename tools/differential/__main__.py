"""`python -m differential`: see the package."""

import argparse
import json
import sys
import tempfile
from collections import Counter, defaultdict
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from differential import known
from differential.bodies import Bodies
from differential.comparing import Difference, differences
from differential.generator import NAMESPACES, Generator
from differential.kinds import Kind, Schemas, served
from differential.request import JSON, Request
from differential.servers import Answer, Server, our_server, real_server

MOST_READS, LEAST_REFUSED, LEAST_OF_EACH = 20.0, 100 / 3, 20
"""Percent, percent, and how often every resource and verb comes in a run of 20000."""


def prepared(server: Server) -> None:
    """The namespaces that requests use; Pods need a ServiceAccount, which no controller makes here."""
    headers = {"Content-Type": JSON}
    for name in (*NAMESPACES, "limits"):
        server.ask(Request("POST", "/api/v1/namespaces", "", "", headers=headers, body={"metadata": {"name": name}}))
        path = f"/api/v1/namespaces/{name}/serviceaccounts"
        server.ask(Request("POST", path, "", "", headers=headers, body={"metadata": {"name": "default"}}))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m differential", description="Compare with a real API server.")
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="resources whose `group/version resource` contains this")
    parser.add_argument("--report", type=Path, help="all differences, as JSON lines")
    parser.add_argument("--most", type=float, default=0.5, help="percent of requests that may differ")
    parser.add_argument("--show", type=int, default=60, help="causes to print")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="differential-") as scratch, ExitStack() as stack:
        real = stack.enter_context(real_server(Path(scratch)))
        ours = stack.enter_context(our_server(Path(scratch)))
        kinds = [each for each in served(real) if asked.only in each.about()]
        schemas = Schemas()
        schemas.load(real)
        for server in (real, ours):
            prepared(server)
        return compare(asked, kinds, schemas, real, ours)


def compare(asked: argparse.Namespace, kinds: list[Kind], schemas: Schemas, real: Server, ours: Server) -> int:
    random = Random(asked.seed)
    generator = Generator(kinds, Bodies(schemas, random), random, real)
    found: defaultdict[str, list[Difference]] = defaultdict(list)
    differing, seen, reasons = 0, Counter[str](), known.reasons()
    report = asked.report.open("w") if asked.report else None
    for number in range(asked.count):
        request = generator.next()
        pair: tuple[Answer, Answer] = real.ask(request), ours.ask(request)
        seen["reads"] += request.is_read
        seen["refused"] += 400 <= pair[0].status < 500
        generator.learned(request, *pair, ours)
        unequal = list(differences(request, *pair, partial(known.reason_of, of=reasons)))
        on_purpose = [each for each in unequal if known.reason_of(each.cause, reasons)]
        seen["on purpose"] += bool(unequal) and len(on_purpose) == len(unequal)
        unequal = [each for each in unequal if each not in on_purpose]
        differing += bool(unequal)
        for each in unequal:
            found[each.cause].append(each)
            if report is not None:
                report.write(json.dumps(_line(number, each), default=str) + "\n")
        if number % 1000 == 999:
            print(f"{number + 1}: {differing} differ", file=sys.stderr, flush=True)
    told(found, asked.show)
    rare = [f"{about} {verb}" for (about, verb), count in generator.asked.items() if count < LEAST_OF_EACH]
    reads, refused = (100 * seen[each] / asked.count for each in ("reads", "refused"))
    print(f"\nseed {asked.seed}: {asked.count} requests\n"
          f"{reads:.1f} % reads ({MOST_READS} % at most): {_held(reads <= MOST_READS)}\n"
          f"{refused:.1f} % refused by the real server ({LEAST_REFUSED:.1f} % at least): {_held(refused >= LEAST_REFUSED)}\n"
          f"{len(rare)} of {len(generator.asked)} resource × verb less than {LEAST_OF_EACH} times: {_held(not rare)}\n"
          f"{seen['on purpose']} differ on purpose (docs/fidelity.md)\n"
          f"{differing} differ otherwise: {100 * differing / asked.count:.2f} % ({asked.most} % allowed)")  # fmt: skip
    return int(100 * differing > asked.most * asked.count)


def _held(held: bool) -> str:
    return "held" if held else "NOT held"


def _line(number: int, each: Difference) -> dict[str, Any]:
    return {
        "number": number, "cause": each.cause, "request": each.request.told(), "path": each.path, "real": each.real,
        "ours": each.ours,
    }  # fmt: skip


def told(found: dict[str, list[Difference]], most: int) -> None:
    """The causes, the most frequent first, each with the first request that shows it."""
    for cause, all_of_it in sorted(found.items(), key=lambda pair: -len(pair[1]))[:most]:
        first = all_of_it[0]
        print(f"\n{len(all_of_it)} × {cause}\n    {first.request.told()[:600]}\n    at {first.path}\n"
              f"    real: {str(first.real)[:500]}\n    ours: {str(first.ours)[:500]}")  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main())
