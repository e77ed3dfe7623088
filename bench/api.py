"""`python -m bench.api [--quick]`: what the API server does in a second, measured over TLS with token authentication.

The server and the load are a process each. Figures of one kind are taken `ROUNDS` times; the rows show the best round
(the least disturbed one) with the median of the rounds behind it.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from typing import Any

from bench.api_server import pod
from bench.figures import machine, percentile

NAMESPACE = "/api/v1/namespaces/default"
Request = tuple[str, str, str]


class Server:
    """bench.api_server in a process of its own. `store`: memory, sqlite or plain."""

    def __init__(self, store: str, stack: ExitStack) -> None:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="lastcall-bench-"))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.api_server", store, directory],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.pid = self._process.pid
        stack.callback(self._end)
        self.access = self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def ask(self, line: str) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("quit\n")
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def load(self, bodies: list[list[Request]], expect: tuple[int, ...] = (200,)) -> dict[str, Any]:
        """Run the requests of each connection side by side."""
        return self._child("requests", {"bodies": bodies, "expect": expect})

    def watchers(self, count: int, path: str, writes: list[Request]) -> dict[str, Any]:
        return self._child("watchers", {"count": count, "path": path, "writes": writes})

    def _child(self, kind: str, task: dict[str, Any]) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-m", "bench.api_load", kind],
            input=json.dumps({**self.access, **task}), stdout=subprocess.PIPE, text=True, check=True, timeout=300,
        )  # fmt: skip
        result: dict[str, Any] = json.loads(done.stdout)
        return result


HEADER = (
    "| figure | best | median round | p50 | p99 | load's core | loop lag p99 | target | Kubernetes 1.36.2 |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


def rate_row(name: str, rounds: list[dict[str, Any]], lags: list[list[float]], target: str, peer: str = "") -> str:
    rates = [len(each["latencies"]) / each["seconds"] for each in rounds]
    best = rounds[rates.index(max(rates))]
    lag = lags[rates.index(max(rates))]
    return (
        f"| {name} | {max(rates):,.0f}/s | {statistics.median(rates):,.0f}/s "
        f"| {statistics.median(best['latencies']):.2f} ms | {percentile(best['latencies'], 0.99):.2f} ms "
        f"| {best['cpu']:.0%} | {percentile(lag, 0.99):.1f} ms | {target} | {peer} |"
    )


def time_row(name: str, rounds: list[list[float]], cpu: str, lag: list[float], target: str) -> str:
    medians = [statistics.median(each) for each in rounds]
    best = rounds[medians.index(min(medians))]
    return (
        f"| {name} | {min(medians):.1f} ms | {statistics.median(medians):.1f} ms | {statistics.median(best):.1f} ms "
        f"| {percentile(best, 0.99):.1f} ms | {cpu} | {percentile(lag, 0.99):.1f} ms | {target} | |"
    )


def config_map(name: str) -> str:
    return json.dumps({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": {"key": "value"}})


class Names:
    """Names that no round has used."""

    def __init__(self) -> None:
        self._next = 0

    def take(self, count: int) -> list[str]:
        self._next += count
        return [f"cm-{index:07}" for index in range(self._next - count, self._next)]


def measure(server: Server, bodies: list[list[Request]], expect: tuple[int, ...]) -> tuple[dict[str, Any], list[float]]:
    server.ask("lag")
    result = server.load(bodies, expect)
    return result, server.ask("lag")


def split(values: list[float], rounds: int) -> list[list[float]]:
    size = len(values) // rounds
    return [values[start : start + size] for start in range(0, size * rounds, size)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small numbers, to see that it runs")
    parser.add_argument("--store", choices=("sqlite", "memory"), default="sqlite")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="some of get,create,mix,list,watch,memory")
    parser.add_argument("--profile", default="", help="write a cProfile of the server to this file")
    arguments = parser.parse_args()
    scale = 10 if arguments.quick else 1
    rounds = 1 if arguments.quick else arguments.rounds
    wanted = arguments.only.split(",") if arguments.only else ["get", "create", "mix", "list", "watch", "memory"]

    print(f"{machine()}; store: {arguments.store}; {rounds} rounds\n\n{HEADER}")
    names = Names()
    footer = []
    with ExitStack() as stack:
        server = Server(arguments.store, stack)
        empty = server.ask("memory")["pss"]
        server.ask(f"pods {1000 // scale}")
        filled = server.ask("memory")["pss"]
        if arguments.profile:
            server.ask(f"profile {arguments.profile}")

        def rates(name: str, make: Any, expect: tuple[int, ...], target: str, peer: str = "") -> None:
            done = [measure(server, make(), expect) for _ in range(rounds)]
            print(rate_row(name, [each[0] for each in done], [each[1] for each in done], target, peer), flush=True)

        def get(connections: int) -> list[list[Request]]:
            count = (16000 if connections > 1 else 4000) // scale // connections
            return [[("GET", f"{NAMESPACE}/pods/pod-{n:05}", "")] * count for n in range(connections)]

        if "get" in wanted:
            rates("GET of a Pod, 1 connection", lambda: get(1), (200,), "", "1 177/s")
            rates("GET of a Pod, 16 connections", lambda: get(16), (200,), "8 000/s", "3 359/s")

        def create(connections: int) -> list[list[Request]]:
            count = (16000 if connections > 1 else 4000) // scale // connections
            return [
                [("POST", f"{NAMESPACE}/configmaps", config_map(name)) for name in names.take(count)]
                for _ in range(connections)
            ]

        def mix(connections: int) -> list[list[Request]]:
            count = (12000 if connections > 1 else 3000) // scale // connections // 3
            return [
                [
                    request
                    for name in names.take(count)
                    for request in (
                        ("POST", f"{NAMESPACE}/configmaps", config_map(name)),
                        ("GET", f"{NAMESPACE}/configmaps/{name}", ""),
                        ("DELETE", f"{NAMESPACE}/configmaps/{name}", ""),
                    )
                ]
                for _ in range(connections)
            ]

        if "create" in wanted:
            rates("create of a ConfigMap, 1 connection", lambda: create(1), (201,), "")
            rates("create of a ConfigMap, 16 connections", lambda: create(16), (201,), "4 000/s")
        if "mix" in wanted:
            rates("create+get+delete, 1 connection", lambda: mix(1), (200, 201), "", "753/s")
            rates("create+get+delete, 16 connections", lambda: mix(16), (200, 201), "", "2 122/s")
        if "list" in wanted:
            done = [measure(server, [[("GET", f"{NAMESPACE}/pods", "")] * 20], (200,)) for _ in range(rounds)]
            cpu = f"{done[0][0]['cpu']:.0%}"
            lists = [each[0]["latencies"] for each in done]
            print(time_row(f"LIST of {1000 // scale} Pods", lists, cpu, done[0][1], "10 ms"), flush=True)
        if "watch" in wanted:
            name = names.take(1)[0]
            server.load([[("POST", f"{NAMESPACE}/pods", json.dumps(pod(name)))]], (201,))
            patch = ("PATCH", f"{NAMESPACE}/pods/{name}", '{"metadata":{"annotations":{"mark":"MARK"}}}')
            path = f"{NAMESPACE}/pods?watch=1&resourceVersion={server.ask('revision')}"
            server.ask("lag")
            fan = server.watchers(1000 // scale, path, [patch] * 5 * rounds)
            cpu, lag = f"{fan['cpu']:.0%}", server.ask("lag")
            many = f"one write to {1000 // scale} watchers"
            print(time_row(f"{many}: until the last has it", split(fan["last"], rounds), cpu, lag, "50 ms"))
            print(time_row(f"{many}: until the first has it", split(fan["first"], rounds), cpu, lag, ""))
            print(time_row(f"{many}: until its writer is answered", split(fan["answered"], rounds), cpu, lag, ""))
        if arguments.profile:
            server.ask("profile")
        if "memory" in wanted:
            before = server.ask("memory")["pss"]
            server.ask(f"pods {9000 // scale}")
            after = server.ask("memory")["pss"]
            footer.append(f"memory (PSS): {empty / 2**20:.0f} MB empty, {filled / 2**20:.0f} with {1000 // scale} Pods")
            footer.append(f"{(after - before) / (9000 // scale) / 1024:.1f} KiB for each further Pod")
    print("\n" + "; ".join(footer))


if __name__ == "__main__":
    main()
