"""Kubernetes's own conformance suite on a cluster of this clone; what it says stands in docs/conformance.md.

    python tools/conformance.py [--focus REGEX] [--procs N]

It needs the suite beside the clone (../shared/kubernetes, `install --conformance`), root, and about 50 minutes for all.
docs/conformance.md is written only when all of it ran.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

PROJECT = Path(__file__).parents[1]
SUITE = PROJECT.parent / "shared" / "kubernetes" / "conformance"
DOCUMENT = PROJECT / "docs" / "conformance.md"
CLUSTER = "conformance"


def run(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=PROJECT).stdout  # noqa: S603


def document(results: dict[str, bool], commit: str) -> str:
    """What stands in docs/conformance.md; `results` says of each spec whether it passed."""
    failed = sorted(name for name, passed in results.items() if not passed)
    lines = [
        "# Kubernetes's conformance suite",
        "",
        "Made by `make conformance`: two nodes, as root, the suite of Kubernetes 1.36.2.",
        "",
        f"Commit {commit}, {datetime.now(UTC):%Y-%m-%d}: {sum(results.values())} of {len(results)} passed.",
    ]
    if failed:
        lines += ["", "What did not pass:", "", *(f"- {name}" for name in failed)]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--focus", default="", help="only specs whose name matches")
    parser.add_argument("--procs", default="6", help="specs at a time")
    arguments = parser.parse_args()
    if not SUITE.exists():
        sys.stderr.write(f"not found: {SUITE}\nfix: put Kubernetes's suite there\n")
        return 2
    lastcall = str(Path(sys.executable).with_name("lastcall"))
    run(lastcall, "up", CLUSTER, "--nodes", "2", "--detach")
    try:
        images = run(str(SUITE), "--list-images").split()
        run(lastcall, "image", "import", *images)
        config = run(lastcall, "kubeconfig", CLUSTER).strip()
        with tempfile.TemporaryDirectory() as folder:
            command = [str(SUITE), "--kubeconfig", config, "--procs", arguments.procs]
            if arguments.focus:
                command += ["--focus", arguments.focus]
            status = subprocess.run(command, cwd=folder, check=False).returncode  # noqa: S603
            found = json.loads((Path(folder) / "conformance.json").read_text())
    finally:
        run(lastcall, "down", CLUSTER)
    results = {name: bool(each["passed"]) for name, each in found.items()}
    if not arguments.focus:
        commit = run("git", "rev-parse", "--short", "HEAD").strip()
        DOCUMENT.write_text(document(results, commit))
    return status


if __name__ == "__main__":
    sys.exit(main())
