"""The table of known differences from the recordings, as data, as judgement and as a page.

`python tests/support/api_differences.py` writes the table into docs/fidelity.md, `… REPORT` judges a report of the
replay. The table is tests/clients/api_differences.yaml; a rule has:

    run        http, current (kubectl on PATH) or debian (kubectl 1.20); one or several
    where      names of recordings, with *; one or several
    step       numbers of requests (http); all of them when missing
    path       a regular expression for the start of what differs; everything when missing
    state      differs: and stays so; not yet: will agree; client: the kubectl on PATH is not the recorded 1.36
    sometimes  true: depends on time or on the machine, so that it may agree as well
    why        for the reader
"""

import fnmatch
import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "tests" / "clients" / "api_differences.yaml"
PAGE = ROOT / "docs" / "fidelity.md"
BEGIN, END = "<!-- known differences: begin -->\n", "<!-- known differences: end -->\n"


def _several(value: Any) -> list[str]:
    return [str(each) for each in (value if isinstance(value, list) else [value])]


@dataclass
class Rule:
    run: list[str]
    where: list[str]
    why: str
    state: str
    step: list[str] = field(default_factory=list)
    path: str = ""
    sometimes: bool = False
    used: set[str] = field(default_factory=set)

    def covers(self, run: str, name: str, difference: dict[str, Any]) -> bool:
        """Whether the difference is this one; the pattern that says so counts as used."""
        patterns = [each for each in self.where if fnmatch.fnmatchcase(name.removesuffix(".v1.20"), each)]
        if (
            run not in self.run
            or not patterns
            or (self.step and difference["step"] not in self.step)
            or re.match(self.path, difference["path"]) is None
        ):
            return False
        self.used.update(patterns)
        return True

    def __str__(self) -> str:
        return f"{'|'.join(self.run)} {', '.join(self.where)} {' '.join(self.step)} {self.path}".strip()


def rules() -> list[Rule]:
    out = []
    for entry in yaml.safe_load(TABLE.read_text()):
        step = _several(entry.get("step", [])) if "step" in entry else []
        assert set(entry) <= {"run", "where", "step", "path", "state", "sometimes", "why"}, entry
        assert entry["state"] in ("differs", "not yet", "client"), entry
        out.append(
            Rule(
                _several(entry["run"]), _several(entry["where"]), entry["why"], entry["state"],
                [number for each in step for number in each.split()], entry.get("path", ""),
                bool(entry.get("sometimes") or entry["state"] == "client"),
            )
        )  # fmt: skip
    return out


def judge(run: str, report: list[dict[str, Any]], table: list[Rule]) -> list[str]:
    """What is different and not in the table, and rules for `run` that nothing needs any more."""
    found = []
    for scenario in report:
        for difference in scenario["differences"]:
            if difference["level"] != "MUST":
                continue
            if not [rule for rule in table if rule.covers(run, scenario["name"], difference)]:
                found.append(
                    f"{scenario['name']} step {difference['step']} {difference['path']}: "
                    f"recorded {difference['expected']}, seen {difference['seen']}"
                )
    for rule in table:
        if run in rule.run and not rule.sometimes:
            found += [f"agrees meanwhile: {each} in {rule}" for each in rule.where if each not in rule.used]
    return found


TITLES = {
    "differs": "Differs, and stays so",
    "not yet": "Not yet",
    "client": "Differs by the client: kubectl 1.36 was recorded, another one is on PATH",
}


def page() -> str:
    """The table as Markdown."""
    out = []
    table = rules()
    for state, title in TITLES.items():
        out += [f"### {title}\n", "| recording | what | why |", "|---|---|---|"]
        for rule in table:
            if rule.state != state:
                continue
            names = ", ".join(f"`{name}`" for name in rule.where) if rule.where != ["*"] else "all"
            mode = {"http": "HTTP", "current": "kubectl", "debian": "kubectl 1.20"}
            what = " ".join(
                [", ".join(mode[run] for run in rule.run)]
                + ([f"request {', '.join(rule.step)}"] if rule.step else [])
                + ([f"`{rule.path.replace('|', chr(92) + '|')}`"] if rule.path else [])
                + (["(sometimes)"] if rule.sometimes and state != "client" else [])
            )
            out.append(f"| {names} | {what} | {rule.why} |")
        out.append("")
    return "\n".join(out)


def written(text: str) -> str:
    """`text` of docs/fidelity.md with the table of now."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}{page()}{END}{tail}"


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print("\n".join(judge(sys.argv[1], json.loads(Path(sys.argv[2]).read_text()), rules())) or "as the table says")
    else:
        PAGE.write_text(written(PAGE.read_text()))
