"""What passed on containerd, as docs/engines.md shows it: `python tools/engine_results.py [run [VERSION [TEST…]]]`.

`run` runs the tests of containerd, as root, on each version that is here (`tools/get-debian-containerd`) or on one, or
only these tests of one, and keeps the results in docs/engines.json. Without it only the page is written anew. A test
compares the page with the results, and the results with the tests that there are.
"""

import ast
import json
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from engines.differences import ON_CONTAINERD  # noqa: E402 (in a folder of its own)

MODULES = (
    "tests/engines/test_up_on_containerd.py",
    "tests/engines/test_run_on_containerd.py",
    "tests/engines/test_recorded_on_containerd.py",
)
RESULTS = ROOT / "docs" / "engines.json"
PAGE = ROOT / "docs" / "engines.md"
BEGIN, END = "<!-- results of containerd: tools/engine_results.py -->\n", "<!-- end of the results -->\n"


def tests() -> dict[str, str]:
    """Name of each test → what it says, in words."""
    found = {}
    for module in MODULES:
        for node in ast.parse((ROOT / module).read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found[node.name] = node.name.removeprefix("test_").replace("_", " ")
    return found


def run(only: str, names: list[str]) -> None:
    """Run the tests on version `only`, "" for each, and keep what they said. With `names` only these are run."""
    # late: pytest, which the page does not need
    from engines.containerd import UNPACKED, missing_containerd, path_of

    known: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for version in [only] if only else list(UNPACKED):
        if why := missing_containerd(version):
            sys.stderr.write(f"{version}: {why}\n")
            continue
        chosen = f"[{version}" + (f" and ({' or '.join(names)})" if names else "")
        with tempfile.TemporaryDirectory() as name:
            report = Path(name) / "report.xml"
            # xunit1: in xunit2 a test has no properties
            command = [sys.executable, "-m", "pytest", "-q", "-o", "junit_family=xunit1", f"--junitxml={report}"]
            command += ["-k", chosen]
            subprocess.run([*command, *MODULES], cwd=ROOT, check=False)  # noqa: S603 (our own tests)
            before = known.get(version, {}) if names else {}
            known[version] = {
                **_about(path_of(version)),
                "tests": {**before.get("tests", {}), **outcomes(report, version)},
                "recordings": {**before.get("recordings", {}), **recordings(report, version)},
            }
        RESULTS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


def _about(path: str) -> dict[str, str]:
    def said(*command: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env={"PATH": path})  # noqa: S603
        return done.stdout

    return {
        "containerd": said("containerd", "--version").split()[2].partition("~")[0].partition("+")[0],
        "runc": said("runc", "--version").split()[2].partition("+")[0],
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "commit": said("git", "rev-parse", "--short=8", "HEAD").strip(),
    }


def outcomes(report: Path, version: str) -> dict[str, str]:
    """Test → `passed`, `failed` or `skipped`, of one version; of a test with several cases the worst of them."""
    found: dict[str, str] = {}
    order = ("passed", "skipped", "failed")
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 (pytest wrote it)
        name, _, parameters = case.get("name", "").partition("[")
        if not parameters.startswith(version):
            continue
        kinds = {each.tag for each in case}
        how = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        found[name] = max(how, found.get(name, "passed"), key=order.index)
    return found


def recordings(report: Path, version: str) -> dict[str, list[str]]:
    """Return recorded lifecycle → what differs from it, of one version."""
    found: dict[str, list[str]] = {}
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 (pytest wrote it)
        if case.get("name", "").partition("[")[2].startswith(version):
            for each in case.iter("property"):
                if each.get("name") == "recordings":
                    found |= json.loads(each.get("value", "{}"))
    return found


def section(results: dict[str, Any]) -> str:
    """Return the tables of the page."""
    lines = ["| engine | version | what ran | passed | when |", "|---|---|---|---|---|"]
    for each in results.values():
        ran = [how for how in each["tests"].values() if how != "skipped"]
        passed = sum(how == "passed" for how in ran)
        lines.append(
            f"| containerd, runc | {each['containerd']}, {each['runc']} | {len(ran)} tests | {passed} | "
            f"{each['date']}, {each['commit']} |"
        )
    lines += ["", f"| what | {' | '.join(each['containerd'] for each in results.values())} |"]
    lines.append("|---|" + "---|" * len(results))
    words = {"passed": "yes", "failed": "no", "skipped": "not run", "": "not run"}
    for name, said in tests().items():
        cells = " | ".join(words[each["tests"].get(name, "")] for each in results.values())
        lines.append(f"| {said} | {cells} |")
    if any(each.get("recordings") for each in results.values()):
        lines += ["", *_recorded([each.get("recordings", {}) for each in results.values()], results)]
    return "\n".join(lines) + "\n"


def _recorded(found: list[dict[str, list[str]]], results: dict[str, Any]) -> list[str]:
    """Return the table of the recorded lifecycles, a column for each version."""
    counts = {
        "replayed": [len(each) for each in found],
        "as recorded": [sum(not texts for texts in each.values()) for each in found],
    }
    lines = [f"| recorded lifecycles | {' | '.join(each['containerd'] for each in results.values())} |"]
    lines.append("|---|" + "---|" * len(found))
    lines += [f"| {said} | {' | '.join(map(str, numbers))} |" for said, numbers in counts.items()]
    for name in sorted({name for each in found for name, texts in each.items() if texts}):
        why = ON_CONTAINERD.get(name, ("", "unexplained"))[1]
        cells = ["differs" if each.get(name) else "as recorded" if name in each else "not run" for each in found]
        lines.append(f"| `{name}`: {why} | {' | '.join(cells)} |")
    return lines


def page(text: str, results: dict[str, Any]) -> str:
    """Return the page with its tables written anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{section(results)}\n{END}{after}"


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["run"]:
        run("".join(arguments[1:2]), arguments[2:])
    PAGE.write_text(page(PAGE.read_text(), json.loads(RESULTS.read_text())))


if __name__ == "__main__":
    main(sys.argv[1:])
