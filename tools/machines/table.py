"""The rows that are tried in each guest, and the part of docs/machines.md that says what came of them. Pure."""

# check: pure

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

BEGIN, END = "<!-- machines: begin -->", "<!-- machines: end -->"


@dataclass(frozen=True)
class Row:
    """`name` is a function of rows.sh without its `row_`. `logout` ends the user's sessions first."""

    name: str
    title: str
    logout: bool = False


ROWS = (
    Row("doctor", "`doctor`"),
    Row("demo", "`demo all`"),
    Row("run", "`run term-demo.yaml`"),
    Row("up", "`up --detach`"),
    Row("kubectl", "kubectl"),
    Row("limits", "limits (files of the control group)"),
    Row("resize", "resize in place"),
    Row("oom", "out of memory"),
    Row("pids", "process limit of a Pod"),
    Row("eviction", "eviction under memory pressure"),
    Row("down", "`down`"),
    Row("kill", "SIGKILL of all processes"),
    Row("login", "`up --detach`, then logout"),
    Row("logout", "after the logout", logout=True),
    Row("leftovers", "what is left at the end"),
)
"""In this order: the rows from `up` to `down` share a cluster."""

ALWAYS = ("root", "ada")
"""Users whose columns are there when nothing was tried as them, too."""
USERS = {"root": "root", "ada": "ordinary user", "ben": "ordinary user without subordinate ids"}
KERNEL_TESTS = (
    "tests/node/test_cgroup2_on_the_kernel.py",
    "tests/node/containers/test_cgroup_mounts.py",
    "tests/node/containers/test_cpu_shares_of_groups.py",
    "tests/node/containers/test_container_limits.py",
    "tests/node/test_escapes_by_cgroups.py",
    "tests/node/test_doctor_machines.py",
    "tests/node/test_limits_of_pods.py",
    "tests/clients/test_sizes_of_nodes.py",
    "tests/node/test_bombs.py",
)
"""The tests of the kernel that touch control groups, quick ones first."""


@dataclass(frozen=True)
class Cell:
    """What came of one row. `commit` ends in `+` if the sources had changes beside it."""

    good: bool
    seen: str
    commit: str
    date: str

    def facts(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {"good": self.good, "seen": self.seen, "commit": self.commit, "date": self.date}


@dataclass
class Machine:
    """A guest, and what was tried there: `cells` by row and user, `remedies` by situation, `tests` by file."""

    about: str
    cells: dict[str, dict[str, Cell]]
    remedies: dict[str, Cell]
    tests: dict[str, Cell]

    def all_cells(self) -> list[Cell]:
        """Return every cell."""
        return [*(each for row in self.cells.values() for each in row.values()), *self.remedies.values(),
                *self.tests.values()]  # fmt: skip

    def facts(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "about": self.about,
            "cells": {row: {user: cell.facts() for user, cell in each.items()} for row, each in self.cells.items()},
            "remedies": {name: cell.facts() for name, cell in self.remedies.items()},
            "tests": {name: cell.facts() for name, cell in self.tests.items()},
        }


def machine_of(facts: Mapping[str, Any]) -> Machine:
    """Return the machine that `Machine.facts` describes."""
    cells = {row: {user: Cell(**cell) for user, cell in each.items()} for row, each in facts["cells"].items()}
    remedies, tests = ({name: Cell(**cell) for name, cell in facts[part].items()} for part in ("remedies", "tests"))
    return Machine(facts["about"], cells, remedies, tests)


def section(machines: Sequence[Machine], situations: Sequence[str]) -> str:
    """Return what is between the marks of docs/machines.md. `situations` are those in which doctor is tried."""
    lines = [BEGIN, "", "Made by `make machines`; seconds say nothing here, because the processor is emulated."]
    for machine in machines:
        by_name = {f"`{path}`": cell for path, cell in machine.tests.items()}
        lines += ["", f"### {machine.about}", "", f"{_when(machine)} {_counted(machine)}", ""]
        lines += _table_of_rows(machine)
        lines += _table("what `doctor` proposes", situations, machine.remedies)
        lines += _table("tests of the kernel", [f"`{path}`" for path in KERNEL_TESTS], by_name)
    return "\n".join([*lines, "", END])


def written_into(page: str, part: str) -> str:
    """Return `page` with what is between the marks replaced. Raises ValueError without marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no {BEGIN} … {END}")
    return before + part + after


def _when(machine: Machine) -> str:
    runs = sorted({(each.date, each.commit) for each in machine.all_cells()})
    return f"Commit {'; '.join(f'{commit}, {date}' for date, commit in runs)}."


def _counted(machine: Machine) -> str:
    cells = machine.all_cells()
    return f"{sum(each.good for each in cells)} of {len(cells)} as they should be."


def _table_of_rows(machine: Machine) -> list[str]:
    users = [user for user in USERS if user in ALWAYS or any(user in each for each in machine.cells.values())]
    lines = [f"| what | {' | '.join(USERS[user] for user in users)} |", f"|---|{'---|' * len(users)}"]
    for row in ROWS:
        each = machine.cells.get(row.name, {})
        lines.append(f"| {row.title} | {' | '.join(_shown(each.get(user)) for user in users)} |")
    return lines


def _table(title: str, names: Sequence[str], cells: Mapping[str, Cell]) -> list[str]:
    return ["", f"| {title} | |", "|---|---|", *(f"| {name} | {_shown(cells.get(name))} |" for name in names)]


def _shown(cell: Cell | None) -> str:
    if cell is None:
        return "not run"
    text = " ".join(cell.seen.split()).replace("|", "\\|").replace("<", "&lt;")
    return text if cell.good else f"**fails**: {text}"
