"""`python -m bench floor [--rounds 15]`: a GET of lastcall's API server beside aiohttp alone, in turns.

aiohttp alone answers with bytes that are ready: no authentication, no path, no object. What it takes is what a request
costs before lastcall's first line, with the same client, TLS and event loop.
"""

import argparse
import os
from contextlib import ExitStack

from bench.api import NAMESPACE, Server
from bench.figures import as_installed, machine
from bench.turns import HERE, Table, show, take_turns

CONNECTIONS, GETS = 16, 250


def milliseconds(server: Server) -> dict[str, float]:
    get = ("GET", f"{NAMESPACE}/pods/pod-00000", "")
    result = server.load([[get] * GETS] * CONNECTIONS)
    return {f"GET, {CONNECTIONS} connections: ms a request": 1000 * result["seconds"] / len(result["latencies"])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    print(f"{machine()}; in turns with aiohttp alone, load {os.getloadavg()[0]:.1f}", flush=True)
    as_installed(HERE)
    table: Table = {}
    with ExitStack() as stack:
        ours, plain = Server("memory", stack), Server("plain", stack)
        ours.ask("pods 1")
        take_turns(table, rounds, lambda: milliseconds(ours), lambda: milliseconds(plain))
    show(table)


if __name__ == "__main__":
    main()
