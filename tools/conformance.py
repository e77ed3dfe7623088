"""Run Kubernetes's own conformance suite on a cluster of this clone, and write docs/conformance.md.

    python tools/conformance.py [--focus REGEX | --part] [--as-user] [--procs N] [--keep FILE]
    python tools/conformance.py --results FILE... [--as-user]     what earlier runs kept, as if it were one run
    python tools/conformance.py --results FILE... --choose SECONDS
    python tools/conformance.py --runs FILE... --commit COMMIT [--real FILE]     several whole runs of one commit

It needs the suite beside the clone (../shared/kubernetes, `install --conformance`), root, and about 40 minutes for all.
docs/conformance.md is written only when all of it ran. `--as-user` runs the cluster as an ordinary user whom
/etc/subuid gives 65 536 ids; what does not pass there is in docs/fidelity.md, with its reason.

`--part` runs the specs of conformance_part.txt: those of a kept run that passed within a few seconds each, so that in
minutes much is looked at. CI does so on every change. `--choose` makes that list.

`--runs` keeps whole runs, a line for each spec, in conformance_runs/ and names them in docs/conformance.md; `--real` is
what a real cluster said of the specs that failed.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[1]
SUITE = PROJECT.parent / "shared" / "kubernetes" / "conformance"
DOCUMENT = PROJECT / "docs" / "conformance.md"
FIDELITY = PROJECT / "docs" / "fidelity.md"
PART = Path(__file__).with_name("conformance_part.txt")
RUNS = Path(__file__).with_name("conformance_runs")
CLUSTER = "conformance"
SPECS = 446
"""Of the whole suite."""
ORDINARY_USER = PROJECT / "tests" / "support" / "ordinary_user.py"
USER_IDS = (65534, 65536)
"""The user of `--as-user`, and how many subordinate ids there are."""

STANDS_IN = {
    "DNS should provide /etc/hosts entries": "no `getent` in the images that stand in for agnhost and jessie-dnsutils",
    "DNS should provide DNS for pods for Hostname": "no `getent` in the images that stand in for agnhost and "
    "jessie-dnsutils",
    "read only busybox container": "the shell that stands in for busybox's says it in other words",
    "ImageVolume should succeed with pod and pull policy of Always": "the image that stands in for kitten is not "
    "Alpine Linux, which the spec looks for (and the containerd beside the suite has no image volumes)",
}
"""Specs that fail because of the images beside the suite; a real Kubernetes 1.36.2 fails in them, too."""
OF_USERS = {
    "Pod InPlace Resize": "no control groups are delegated to the user here, so nothing enforces limits; where systemd "
    "delegates them, it does",
}
"""Specs that need what an ordinary user lacks on the machine of the run."""
BEGIN, END = "<!-- suite as an ordinary user: begin -->", "<!-- suite as an ordinary user: end -->"

Results = Mapping[str, Mapping[str, Any]]


class Lastcall:
    """`lastcall` of this clone, as root or as the ordinary user, whose files are below `home`."""

    def __init__(self, home: Path, *, as_user: bool) -> None:
        self._command = [str(Path(sys.executable).with_name("lastcall"))]
        self._home, self._as_user = home, as_user
        if as_user:
            user, ids = USER_IDS
            home.chmod(0o755)
            (home / "user").mkdir()
            os.chown(home / "user", user, user)
            places = [f"{name}={home}/user" for name in ("HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")]
            self._command = [sys.executable, str(ORDINARY_USER), f"--subordinate-ids={ids}", "env", *places,
                             *self._command]  # fmt: skip

    def __call__(self, *arguments: str) -> str:
        return run(*self._command, *arguments)

    def readable(self, paths: Sequence[str]) -> list[str]:
        """Return the same files where the user may read them."""
        if not self._as_user:
            return list(paths)
        return [shutil.copy(path, str(self._home)) for path in paths]


def run(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=PROJECT).stdout  # noqa: S603


def focus_of(specs: Sequence[str]) -> str:
    """Return a regular expression of just these specs."""
    return "|".join(re.escape(name) for name in specs)


def lines_of_failures(results: Results, reasons: Mapping[str, str]) -> list[str]:
    lines = []
    for name in sorted(name for name, each in results.items() if not each["passed"]):
        real = next((text for part, text in STANDS_IN.items() if part in name), "")
        why = f"{real}; a real cluster fails here, too" if real else ""
        why = why or next((text for part, text in reasons.items() if part in name), "the reason is not known")
        lines.append(f"- {name} — {why}")
    return lines


def passed_of(results: Results) -> int:
    return sum(bool(each["passed"]) for each in results.values())


def document(runs: Sequence[Results], commit: str, kept: str = "") -> str:
    """Return the text of docs/conformance.md. `kept` says where the runs are."""
    *counts, last = (str(passed_of(each)) for each in runs)
    passed = f"{', '.join(counts)} and {last}" if counts else last
    times = f" in {len(runs)} runs" if len(runs) > 1 else ""
    lines = [
        "# Kubernetes's conformance suite",
        "",
        "Made by `make conformance`: two nodes, as root, the suite of Kubernetes 1.36.2.",
        "",
        f"Commit {commit}, {datetime.now(UTC):%Y-%m-%d}: {passed} of {len(runs[0])} passed{times}.{kept}",
    ]
    failures = {name: each for run in runs for name, each in run.items() if not each["passed"]}
    if failures:
        lines += ["", "What did not pass:", ""]
        lines += lines_of_failures(failures, {})
    return "\n".join(lines) + "\n"


def kept_run(results: Results) -> str:
    """Return a line for each spec: whether it passed, seconds, name; below one that failed what it said."""
    lines = []
    for name, each in sorted(results.items()):
        lines.append(f"{'passed' if each['passed'] else 'FAILED'}\t{each['seconds']:.1f}\t{name}")
        if not each["passed"]:
            lines += [f"\t{line.strip()}" for line in str(each["message"]).splitlines()[:12] if line.strip()]
    return "\n".join(lines) + "\n"


def keep_runs(files: Sequence[Path], real: Path | None, commit: str) -> None:
    """Keep whole runs and write their document. Raises ValueError for a run of less than all specs."""
    runs: list[Results] = [json.loads(path.read_text()) for path in files]
    if short := [str(path) for path, each in zip(files, runs, strict=True) if len(each) != SPECS]:
        raise ValueError(f"not whole runs: {', '.join(short)}")
    RUNS.mkdir(exist_ok=True)
    for old in RUNS.glob("*.tsv"):
        old.unlink()
    for number, each in enumerate(runs, 1):
        (RUNS / f"{commit}-{number}.tsv").write_text(kept_run(each))
    kept = " They are kept in `tools/conformance_runs/`"
    if real is not None:
        (RUNS / "kubernetes-1.36.2.tsv").write_text(kept_run(json.loads(real.read_text())))
        kept += ", with what a real cluster said of those that failed"
    DOCUMENT.write_text(document(runs, commit, f"{kept}."))


def user_section(results: Results, commit: str) -> str:
    """Return the part of docs/fidelity.md about a run as an ordinary user."""
    passed = passed_of(results)
    alone = any("[Serial]" in name for name in results)
    of = (
        ""
        if len(results) == SPECS
        else f" ({len(results)} of the {SPECS} specs ran{'' if alone else ', none [Serial]'})"
    )
    lines = [
        BEGIN,
        "Made by `tools/conformance.py --as-user`: two nodes, an ordinary user with 65 536 ids in /etc/subuid.",
        f"Commit {commit}, {datetime.now(UTC):%Y-%m-%d}: {passed} of {len(results)} passed{of}.",
    ]
    if passed < len(results):
        lines += ["", "What did not pass:", "", *lines_of_failures(results, OF_USERS)]
    return "\n".join([*lines, END])


def written_into(text: str, section: str) -> str:
    """Return `text` with what is between the marks replaced."""
    before, _, rest = text.partition(BEGIN)
    return before + section + rest.partition(END)[2]


def chosen(results: Results, seconds: float) -> list[str]:
    """Return specs that passed in at most so many seconds, and may run beside others."""
    return sorted(
        name
        for name, each in results.items()
        if each["passed"] and each["seconds"] <= seconds and "[Serial]" not in name
    )


def ran(arguments: argparse.Namespace) -> Results:
    focus = focus_of(PART.read_text().splitlines()) if arguments.part else arguments.focus
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        lastcall = Lastcall(Path(folder), as_user=arguments.as_user)
        lastcall("up", CLUSTER, "--kubernetes-version", "1.36", "--nodes", "2", "--detach")
        try:
            lastcall("image", "import", *lastcall.readable(run(str(SUITE), "--list-images").split()))
            config = lastcall("kubeconfig", CLUSTER).strip()
            command = [str(SUITE), "--kubeconfig", config, "--procs", arguments.procs]
            if focus:
                command += ["--focus", focus]
            subprocess.run(command, cwd=folder, check=False)  # noqa: S603
            found: Results = json.loads((Path(folder) / "conformance.json").read_text())
        finally:
            lastcall("down", CLUSTER)
    return found


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--focus", default="", help="only specs whose name matches")
    parser.add_argument("--part", action="store_true", help="only those of conformance_part.txt")
    parser.add_argument("--procs", default="12", help="specs at a time")
    parser.add_argument("--as-user", action="store_true", help="the cluster is an ordinary user's")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="also write the results here")
    parser.add_argument("--results", type=Path, nargs="+", metavar="FILE", help="of earlier runs: nothing runs")
    parser.add_argument("--runs", type=Path, nargs="+", metavar="FILE", help="whole runs of one commit: keep them")
    parser.add_argument("--real", type=Path, metavar="FILE", help="with --runs: what a real cluster said")
    parser.add_argument("--choose", type=float, metavar="SECONDS", help="with --results: write conformance_part.txt")
    parser.add_argument("--commit", default="", help="with --results and --runs: that of the runs")
    return parser.parse_args()


def main() -> int:
    arguments = parsed()
    results: Results
    if arguments.runs:
        try:
            keep_runs(arguments.runs, arguments.real, arguments.commit)
        except (OSError, ValueError) as error:
            sys.stderr.write(f"--runs: {error}\n")
            return 2
        return 0
    if arguments.results:
        results = {name: each for path in arguments.results for name, each in json.loads(path.read_text()).items()}
        if arguments.choose:
            PART.write_text("\n".join(chosen(results, arguments.choose)) + "\n")
            return 0
    elif not SUITE.exists():
        sys.stderr.write(f"not found: {SUITE}\nfix: put Kubernetes's suite there\n")
        return 2
    else:
        results = ran(arguments)
    if arguments.keep:
        arguments.keep.write_text(json.dumps(results, indent=1, sort_keys=True))
    commit = arguments.commit or run("git", "rev-parse", "--short", "HEAD").strip()
    if arguments.as_user and (arguments.results or not (arguments.part or arguments.focus)):
        FIDELITY.write_text(written_into(FIDELITY.read_text(), user_section(results, commit)))
    elif len(results) == SPECS:
        DOCUMENT.write_text(document([results], commit))
    asked = len(PART.read_text().splitlines()) if arguments.part else 0
    if len(results) < asked:
        sys.stderr.write(f"{asked} specs were asked for, {len(results)} ran\nfix: make the list again (--choose)\n")
        return 1
    return 0 if all(each["passed"] for each in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
