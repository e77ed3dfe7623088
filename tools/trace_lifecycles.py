"""Recorded lifecycles on a cluster with `lastcall trace` attached: where does its story differ from that of `run`?

    tools/trace_lifecycles.py --kubeconfig FILE [--at-once 3] [NAME …]   # a Markdown table; exit status 1: some differ

The cluster needs one node and the images busybox:1.36 and quick:1. The exact stories are those of the same lifecycle in
virtual time, with every record of the node. What is created has namespaces of its own (`traced-…`), which are removed.
"""

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from owner_replay import OwnerReplay
from scenario.agreement import differences
from scenario.lifecycles import DATA, playable, traced
from scenario.replay import Replay

from lastcall.contexts.connection import choose, connected
from lastcall.contexts.options import ContextOptions
from lastcall.endings.ending import build_endings
from lastcall.endings.facts.pod import pod_facts
from lastcall.endings.story import Ending
from lastcall.kube.api.meta import uid_of
from lastcall.kube.api.resources import PODS


def exact(name: str) -> dict[str, Ending]:
    """Return the stories of the same lifecycle in virtual time, where every record is known."""
    replay: Any = Replay(name) if (DATA / f"{name}.json").exists() else OwnerReplay(name)
    cluster = replay.run().cluster
    pods = list({uid_of(each.object): each.object for each in cluster.history[PODS]}.values())
    endings = build_endings(cluster.records(), [pod_facts(each) for each in pods], kubernetes_version="1.36")
    names = {uid_of(pod): cluster.alias(uid_of(pod)) for pod in pods}
    generated: dict[str, int] = {}
    found = {}
    for ending in endings:
        alias = names[ending.pod.uid]
        for manifest in replay.recording["manifests"]:
            owner = manifest["metadata"]["name"]
            if manifest["kind"] not in ("Pod", "StatefulSet") and alias.startswith(f"{owner}-"):
                generated[owner] = generated.get(owner, 0) + 1
                alias = f"{owner}-#{generated[owner]}"
        found[alias] = ending
    return found


def compared(traced_endings: dict[str, Ending], known: dict[str, Ending]) -> tuple[list[str], list[str]]:
    """Return (differences, what is said to be unknown), each with the Pod's name before it where there are several."""
    differ: list[str] = []
    unknown: list[str] = []
    for name, ending in traced_endings.items():
        before = f"{name}: " if len(traced_endings) > 1 else ""
        if name not in known:
            differ.append(f"{name}: a Pod that is not there")
            continue
        differ += [f"{before}{each}" for each in differences(ending, known[name])]
        unknown += [f"{before}{each}" for each in ending.not_known]
    ended = [name for name, each in known.items() if each.zero_kind]
    differ += [f"{name}: its end is not reported" for name in ended if name not in traced_endings]
    return differ, unknown


def say(text: str) -> None:
    """Print a text at once, also into a file."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def play(kubeconfig: str, names: list[str], at_once: int) -> dict[str, Any]:
    """Name → its differences and what was said to be unknown."""
    turn = asyncio.Semaphore(at_once)
    results: dict[str, Any] = {}

    async def one(client: Any, name: str) -> None:
        async with turn:
            try:
                endings = await traced(client, name)
                differ, unknown = compared(endings, results[name])
            except Exception as error:  # one lifecycle that cannot be played does not end the others
                differ, unknown = [f"not played: {error!r}"], []
        results[name] = {"differ": differ, "unknown": unknown}
        say(f"| {name} | {'; '.join(differ) or 'agrees'} | {len(unknown)} |")

    for name in names:
        results[name] = await asyncio.to_thread(exact, name)
    async with connected(choose(ContextOptions(kubeconfig)), agent="trace-lifecycles", warn=say) as there:
        say("| lifecycle | beside `run` | sentences on what is not known |\n|---|---|---|")
        await asyncio.gather(*(one(there.client, name) for name in names))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="lifecycles; all that need nothing but a namespace")
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--at-once", type=int, default=3)
    parser.add_argument("--raw", type=Path, metavar="FILE", help="write all differences and sentences as JSON")
    arguments = parser.parse_args()
    names = arguments.names or playable()
    results = asyncio.run(play(arguments.kubeconfig, names, arguments.at_once))
    if arguments.raw is not None:
        arguments.raw.write_text(json.dumps(results, indent=1))
    sys.exit(any(each["differ"] for each in results.values()))


if __name__ == "__main__":
    main()
