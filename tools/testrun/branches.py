"""Measure which branches of the code the pure tests take, per package, and check the record against its floors.

`tests/coverage.json` has two figures for each package: `measured`, written by `tools/test main --kind pure --coverage`,
and `floor`, raised by hand. `python -m testrun.branches` checks the record and runs no test; `tools/check` calls it.
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

SOURCE = "src/lastcall/"
MEASURED_TESTS = ("tests/unit/", "tests/scenarios/")
"""The tests that count: those of tests/fuzz reach much code and assert little of it."""

KUBERNETES = "kube"
"""The folder whose packages have a row each."""

ROWS_OF_THEIR_OWN = ("kube/apiserver/deletion",)
"""Modules with a row beside that of their package."""

SLACK = 2.0
"""The floor of a package without one is this much below its first figure."""

BEGIN, END = "<!-- coverage: written by tools/test main --kind pure --coverage -->", "<!-- end of coverage -->"

Record = Mapping[str, Mapping[str, float]]
"""The name of a package → `measured` and `floor`, in percent."""


def rows_of(path: str) -> list[str]:
    """Return the rows to which a source file counts: its package, and its own row if it has one."""
    inner = path.partition(SOURCE)[2]
    if "/" not in inner:
        return []
    own = inner.removesuffix(".py")
    parts = inner.split("/")[:-1]
    if parts == [KUBERNETES]:
        return []
    package = "/".join(parts[:2] if parts[0] == KUBERNETES else parts[:1])
    return [package, *([own] if own in ROWS_OF_THEIR_OWN else [])]


def percents(files: Mapping[str, tuple[int, int]]) -> dict[str, float]:
    """Return each row's share of branches taken, in percent. `files` maps a path to (taken, all)."""
    sums: dict[str, tuple[int, int]] = {}
    for path, (taken, total) in files.items():
        for row in rows_of(path):
            before = sums.get(row, (0, 0))
            sums[row] = before[0] + taken, before[1] + total
    return {row: round(100 * taken / total, 1) if total else 100.0 for row, (taken, total) in sorted(sums.items())}


def with_measured(record: Record, measured: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Return the record with new figures. Floors stay; packages that are gone have no row."""
    return {
        row: {"measured": percent, "floor": record.get(row, {}).get("floor", float(int(max(0.0, percent - SLACK))))}
        for row, percent in measured.items()
    }


def problems(record: Record, packages: Iterable[str]) -> list[str]:
    """Return what is wrong with the record, a sentence each: a package without a row, a figure below its floor."""
    absent = [each for each in packages if each not in record]
    missing = [
        f"tests/coverage.json has no row for {each}. Run tools/test main --kind pure --coverage." for each in absent
    ]
    low = [
        f"Branch coverage of {row} is {each['measured']} %, below its floor of {each['floor']} %."
        for row, each in record.items()
        if each["measured"] < each["floor"]
    ]
    return missing + low


def table(record: Record) -> str:
    """Return the table of docs/testing.md."""
    lines = [f"| `{row}` | {each['measured']} % | {each['floor']:g} % |" for row, each in record.items()]
    return "\n".join(["| package | branches taken | floor |", "|---|---|---|", *lines])


def with_table(page: str, record: Record) -> str:
    """Return the page with the table between its markers; a page without markers stays as it is."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{begin}\n{table(record)}\n{end}{after}" if begin and end else page


def packages(project: Path) -> list[str]:
    """Return the packages of the sources that need a row."""
    own = [row for row in ROWS_OF_THEIR_OWN if (project / SOURCE / f"{row}.py").exists()]
    source = project / SOURCE
    found = [*source.glob("*/__init__.py"), *source.glob(f"{KUBERNETES}/*/__init__.py")]
    names = [path.parent.relative_to(source).as_posix() for path in found]
    return sorted([name for name in names if name != KUBERNETES] + own)


def read(project: Path) -> dict[str, dict[str, float]]:
    """Read tests/coverage.json; an absent file has no rows."""
    path = project / "tests/coverage.json"
    return dict(json.loads(path.read_text())) if path.exists() else {}


def write(project: Path, record: Record) -> None:
    """Write tests/coverage.json, a line for each row, and the table in docs/testing.md."""
    lines = [f"{json.dumps(row)}: {json.dumps(dict(each))}" for row, each in record.items()]
    (project / "tests/coverage.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    page = project / "docs/testing.md"
    page.write_text(with_table(page.read_text(), record))


def under_coverage(data: Path) -> list[str]:
    """Return the words between `python` and `-m pytest` for a process whose branches are counted."""
    return ["-m", "coverage", "run", "--branch", "--parallel-mode", f"--source={SOURCE}", f"--data-file={data}"]


def combine(python: Path, data: Path) -> dict[str, float]:
    """Combine the data of all processes and return each row's percentage; none if no process wrote data."""
    if not list(data.parent.glob(f"{data.name}.*")):
        return {}
    result = data.with_suffix(".json")
    report: list[str | Path] = [python, "-m", "coverage", "json", "-q", "-i", f"--data-file={data}", "-o", result]
    subprocess.run([python, "-m", "coverage", "combine", "-q", f"--data-file={data}"], check=True)
    subprocess.run(report, check=True)
    files = json.loads(result.read_text())["files"]
    summaries = {path: each["summary"] for path, each in files.items()}
    return percents({path: (each["covered_branches"], each["num_branches"]) for path, each in summaries.items()})


def main() -> int:
    project = Path.cwd()
    found = problems(read(project), packages(project))
    for problem in found:
        print(problem)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
