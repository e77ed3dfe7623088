"""`python -m differential`: see the package."""

import argparse
import json
import signal
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from itertools import takewhile
from pathlib import Path
from random import Random
from typing import Any

from differential import known
from differential.bodies import Bodies
from differential.comparing import Difference, differences
from differential.counting import Counted, commit
from differential.generator import NAMESPACES, Generator
from differential.kinds import Kind, Schemas, served
from differential.request import JSON, Request
from differential.servers import CHOSEN, Answer, Server, our_server, real_server
from differential.steadying import again, agree, both, object_of, removal, settle

MOST_RARE = 10
MOST_READS, LEAST_REFUSED, LEAST_OF_EACH = 20.0, 100 / 3, 20
"""Percent, percent, and how often every resource, or subresource, and verb comes in a run of 25000."""


def prepared(server: Server) -> None:
    """Create the namespaces that requests use; Pods need a ServiceAccount, which no controller makes here."""
    headers = {"Content-Type": JSON}
    for name in (*NAMESPACES, "limits"):
        server.ask(Request("POST", "/api/v1/namespaces", "", "", headers=headers, body={"metadata": {"name": name}}))
        path = f"/api/v1/namespaces/{name}/serviceaccounts"
        server.ask(Request("POST", path, "", "", headers=headers, body={"metadata": {"name": "default"}}))


def aggregated(server: Server) -> None:
    """Write the rules of aggregated ClusterRoles, as a controller does, so that both servers allow the same."""
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    roles = server.get(path)["items"]
    headers = {"Content-Type": "application/merge-patch+json"}
    for _ in range(2):  # admin takes edit's, which take view's
        for role in roles:
            for selector in (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ():
                asked = selector.get("matchLabels", {}).items()
                chosen = [each for each in roles if asked <= (each["metadata"].get("labels") or {}).items()]
                role["rules"] = [rule for each in chosen if each is not role for rule in each.get("rules") or ()]
    for role in roles:
        if role.get("aggregationRule"):
            one = f"{path}/{role['metadata']['name']}"
            server.ask(Request("PATCH", one, "", "", headers=headers, body={"rules": role["rules"]}))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m differential", description="Compare with a real API server.")
    parser.add_argument("--count", type=int, default=25000)
    parser.add_argument("--seed", default="", help="any text; without it the hash of the commit")
    parser.add_argument("--only", default="", help="resources whose `group/version resource` contains this")
    parser.add_argument("--report", type=Path, help="all differences, as JSON lines")
    parser.add_argument("--log", type=Path, help="all requests and both answers, as JSON lines")
    parser.add_argument("--show", type=int, default=60, help="causes to print")
    asked = parser.parse_args()
    try:
        asked.seed = asked.seed or commit()
    except LookupError as error:
        parser.error(str(error))
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that the servers are stopped
    with tempfile.TemporaryDirectory(prefix="differential-") as scratch, ExitStack() as stack:
        real = stack.enter_context(real_server(Path(scratch)))
        ours = stack.enter_context(our_server(Path(scratch)))
        kinds = [each for each in served(real) if asked.only in each.about()]
        schemas = Schemas()
        schemas.load(real)
        for server in (real, ours):
            prepared(server)
            aggregated(server)
        return compare(asked, kinds, schemas, real, ours)


def compare(asked: argparse.Namespace, kinds: list[Kind], schemas: Schemas, real: Server, ours: Server) -> int:
    random = Random(asked.seed)
    generator = Generator(kinds, Bodies(schemas, random), random, real)
    found: defaultdict[str, list[Difference]] = defaultdict(list)
    counted, seen, reasons = Counted(), Counter[str](), known.reasons()
    report = asked.report.open("w", buffering=1) if asked.report else None
    log = asked.log.open("w") if asked.log else None
    number = 0
    for number in until_sigterm(asked.count):
        request = generator.next()
        pair = both(request, real, ours)
        if log is not None:
            answers = [[each.status, each.body.decode(errors="replace")] for each in pair]
            log.write(json.dumps({"number": number, "request": request.as_line(), "answers": answers}) + "\n")
        seen["reads"] += request.is_read
        seen["refused"] += 400 <= pair[0].status < 500
        ours.own_names |= chosen(*pair)
        generator.learned(request, *pair, ours)
        gone = {settle(server, request, answer) for server, answer in zip((real, ours), pair, strict=True)} - {""}
        for path in gone:
            generator.gone(path, ours)
        agree(request, real, ours)
        stays = partial(known.reason_of, of=reasons)
        unequal = list(differences(request, *pair, stays))
        if unequal and any(
            all(stays(found.cause) for found in differences(request, each, pair[1], stays))
            for each in again(request, real, pair[0])
        ):
            unequal, seen["unsteady"] = [], seen["unsteady"] + 1
        counted.all.count(unequal)
        unequal = [each for each in unequal if not known.reason_of(each.cause, reasons)]
        counted.unwanted.count(unequal)
        if unequal and (path := object_of(request, pair)):
            for server in (real, ours):
                for each_request in removal(path):
                    settle(server, each_request, server.ask(each_request))
            generator.gone(path, ours)
        for each in unequal:
            found[each.cause].append(each)
            if report is not None:
                report.write(json.dumps(_line(number, each), default=str) + "\n")
        if number % 1000 == 999:
            print(f"{number + 1}: {counted.unwanted}", file=sys.stderr, flush=True)
    done = number + 1
    print_causes(found, asked.show)
    rare = [
        f"{about} {verb}" for about, verb in sorted(generator.pairs) if generator.asked[about, verb] < LEAST_OF_EACH
    ]
    reads, refused = (100 * seen[each] / done for each in ("reads", "refused"))
    print(f"\nseed {asked.seed}: {done} requests\n"
          f"{reads:.1f} % reads ({MOST_READS} % at most): {_held(reads <= MOST_READS)}\n"
          f"{refused:.1f} % refused by the real server ({LEAST_REFUSED:.1f} % at least): {_held(refused >= LEAST_REFUSED)}\n"
          f"{len(rare)} of {len(generator.pairs)} resource × verb less than {LEAST_OF_EACH} times: {_held(not rare)}\n"
          f"{seen['unsteady']} are answered now this way, now that way by the real server, and once as ours\n")  # fmt: skip
    print("\n".join(counted.lines(done)))
    for rare_pair in rare[:MOST_RARE]:
        print(f"  less than {LEAST_OF_EACH} times: {rare_pair}")
    return int(not counted.held(done))


def until_sigterm(count: int) -> Iterator[int]:
    """Count up to `count`, or until SIGTERM: what was asked until then is reported."""
    signals: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: signals.append(number))
    yield from takewhile(lambda number: not signals, range(count))


def chosen(real: Answer, ours: Answer) -> dict[str, str]:
    """Return what the two servers have chosen in the same place of an object."""
    bodies = [each.document.get("spec") for each in (real, ours) if isinstance(each.document, dict)]
    specs = [each for each in bodies if isinstance(each, dict)]
    if len(specs) < 2:
        return {}
    volumes = [[each.get("name") for each in spec.get("volumes") or () if isinstance(each, dict)] for spec in specs]
    addresses = [spec.get("clusterIPs") or () for spec in specs]
    pairs = (*zip(*volumes, strict=False), *zip(*addresses, strict=False))
    return {left: right for left, right in pairs if isinstance(right, str) and CHOSEN.fullmatch(str(left))}


def _held(held: bool) -> str:
    return "held" if held else "NOT held"


def _line(number: int, each: Difference) -> dict[str, Any]:
    return {
        "number": number, "cause": each.cause, "request": each.request.as_line(), "path": each.path, "real": each.real,
        "ours": each.ours, "noticed": each.noticed,
    }  # fmt: skip


def print_causes(found: dict[str, list[Difference]], most: int) -> None:
    """Print the causes, those that a client notices and the most frequent first, each with the first request that shows it."""
    for cause, all_of_it in sorted(found.items(), key=lambda pair: (not pair[1][0].noticed, -len(pair[1])))[:most]:
        first = all_of_it[0]
        print(f"\n{len(all_of_it)} × {'noticed' if first.noticed else 'told'} | {cause}\n    {first.request.as_line()[:600]}\n    at {first.path}\n"
              f"    real: {str(first.real)[:500]}\n    ours: {str(first.ours)[:500]}")  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main())
