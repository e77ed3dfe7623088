"""Sums results up, and writes docs/diagnosis.md. Pure but for what asks git."""

import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.diagnosis.case import FAULTS

ROOT = Path(__file__).resolve().parents[2]
RULES = ("src/lastcall/endings", "src/lastcall/traffic", "src/lastcall/experiment/reasons")
WORLDS = {"kernel": "On the kernel", "virtual": "In virtual time"}
GRADES = ("right", "half", "silent", "wrong")


def git(*arguments: str) -> str:
    done = subprocess.run(("git", "-C", str(ROOT), *arguments), capture_output=True, text=True, check=True)
    return done.stdout.strip()


def seed_of_rules() -> str:
    """Return the hash of the last commit that changed a rule: nobody can choose it to please the rules."""
    return git("log", "-1", "--format=%H", "--", *RULES)[:12]


def measured_commit() -> str:
    """Return the hash of the last commit that changed lastcall itself: results of another one are not mixed in."""
    return git("log", "-1", "--format=%H", "--", "src")[:12]


def counted(results: Iterable[dict[str, Any]]) -> dict[str, Counter[str]]:
    """Return how often each fault got each grade, in the catalogue's order. Cases that prove nothing are left out."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in FAULTS}
    for result in results:
        for verdict in result["verdicts"] if result["sound"] else ():
            counts[verdict["fault"]][verdict["grade"]] += 1
    return counts


def share(counts: Counter[str], grade: str) -> str:
    total = sum(counts.values())
    return f"{counts[grade]} ({100 * counts[grade] / total:.0f} %)" if total else "0"


def page(parts: dict[str, Sequence[dict[str, Any]]], seed: str, at_commit: str, date: str) -> str:
    """Return docs/diagnosis.md."""
    lines = [
        "# How well lastcall names causes",
        "",
        "<!-- made by python -m bench.diagnosis -->",
        "",
        f"Made on {date} at commit `{at_commit}`, seed `{seed}` (by default the last commit that changed a rule).",
        "",
        f"    python -m bench.diagnosis {' '.join(f'--{world} {len(some)}' for world, some in parts.items())} --page",
        "",
        "Applications are broken on purpose and handed to `lastcall run` or `lastcall rollout`, which knows nothing of",
        "it. **Right**: the injected cause is named, and the proposed change makes it go when it is applied. **Half**:",
        "one of the two. **Silent**: no cause is named. **Wrong**: another cause is named as certain, and the true one",
        "is not. Each application also runs without its fault: a warning or a problem then is a **false alarm**.",
        "",
        "The proposed change is the `change` of a finding (a patch, or a verb for the program), or a YAML mapping in",
        "its advice. Changes of other findings count, too. Where only the author can make the repair (a ConfigMap",
        "that is missing, the path of a probe), the advice has to name it. Any other sentence is no change: the cause",
        "is then half right. HTTP/2 is without TLS (h2c with prior knowledge), by servers of a few lines.",
    ]
    for world, results in parts.items():
        lines += ["", f"## {WORLDS[world]}", "", *_part(list(results))]
    return "\n".join(lines) + "\n"


def _part(results: list[dict[str, Any]]) -> list[str]:
    counts = counted(results)
    total: Counter[str] = sum(counts.values(), Counter())
    sound = [each for each in results if each["sound"]]
    alarmed = [each for each in sound if each["alarms"]]
    unsound = [each["case"] for each in results if not each["sound"]]
    hidden = [each["case"] for each in sound if not each["verdicts"]]
    named = Counter(id_ for each in alarmed for id_ in each["alarms"])
    beside = sum(bool(v["beside"]) and v["grade"] in ("right", "half") for r in sound for v in r["verdicts"])
    lines = [
        f"{len(results)} cases, {sum(total.values())} faults: "
        + ", ".join(f"{grade} {share(total, grade)}" for grade in GRADES)
        + ".",
        "",
        f"False alarms: {len(alarmed)} of {len(sound)} sound applications"
        + (f" ({', '.join(f'{id_} {n}' for id_, n in named.most_common())})." if named else "."),
        "",
        f"The true cause was named, and another one that is none beside it: {beside}.",
        "",
        f"Cases that prove nothing, because the application was not well without its fault: {len(unsound)}"
        + (f" ({', '.join(unsound)})." if unsound else "."),
        "",
        f"Cases in which the fault did not show (no request happened to be lost): {len(hidden)}"
        + (f" ({', '.join(hidden)})." if hidden else "."),
        "",
        "| fault | ids that name it | right | half | silent | wrong | named when it was not right |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, each in counts.items():
        if each:
            lines.append(_row(name, each, sound))
    return lines


def _row(name: str, counts: Counter[str], results: list[dict[str, Any]]) -> str:
    fault = FAULTS[name]
    ids = ", ".join(f"`{each}`" for each in sorted(fault.causes))
    if fault.proposed:
        ids += " (not in the catalogue)"
    others = Counter(
        id_
        for result in results
        for verdict in result["verdicts"]
        if verdict["fault"] == name and verdict["grade"] != "right"
        for id_ in verdict["named"] or ["nothing"]
    )
    said = ", ".join(f"{id_} {n}" for id_, n in others.most_common(4))
    return f"| {name} | {ids} | {' | '.join(str(counts[grade] or '') for grade in GRADES)} | {said} |"
