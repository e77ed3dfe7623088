"""docs/pains.md, from the directories of the pains. Pure but for reading them."""

import re
from collections.abc import Iterator
from pathlib import Path

import yaml
from light import Light, exempted, load_lights
from pain import HERE, Pain, load_all

from lastcall.endings.catalogue.lookup import CATALOGUE
from lastcall.lint.catalogue.lookup import RULES

PATH = HERE.parents[1] / "docs" / "pains.md"
LINT = PATH.with_name("lint.md")
NOT_MADE = HERE / "not-made.yaml"
"""The pains that cannot be made on the kernel, each with the reason."""

AREAS = {
    "endpoints": "Requests that are lost while endpoints change",
    "hooks": "preStop hooks",
    "signals": "The stop signal and PID 1",
    "kills": "137 and 143",
    "sidecars": "Sidecars and proxies",
    "connections": "Connections that last",
    "starts": "Programs that do not start",
    "probes": "Probes",
    "rollouts": "Rollouts, budgets and drains",
    "held": "Objects that do not go",
    "nodes": "Nodes that go",
    "services": "Services and names",
    "jobs": "Jobs",
}
"""Directory → its heading, in the order of the document."""


def text() -> str:
    """The whole document."""
    return "\n".join(_lines(load_all())) + "\n"


def _lines(pains: list[Pain]) -> Iterator[str]:
    known = [each for each in pains if each.known]
    yield from (
        "# Pains",
        "",
        "```console",
        "$ make pains                       # try all of them on the kernel",
        "$ make pains ONLY=out-of-memory    # try one",
        "```",
        "",
        "Search this page for the error that you see. Each pain has its symptom, cause, fix and proof. It is a",
        "directory of [tests/pains](../tests/pains) with a manifest and a command. `make pains` proves that lastcall",
        "names the cause (by its id, as in the JSON) and proposes the fix, and that the fix removes the pain.",
        "",
        f"{len(pains)} pains, {len(known)} of them expected to fail today (marked), and {len(_not_made())} that cannot"
        " be made on one machine's kernel.",
    )
    for area, heading in AREAS.items():
        those = [each for each in pains if each.area == area]
        if those:
            yield from ("", f"## {heading}")
        for each in those:
            yield from _pain(each)
    yield from _table(pains)
    yield from _lights(load_lights())
    yield from ("", "## Not made", "")
    for what, why in _not_made().items():
        yield f"- **{what}**: {why}"


def _pain(pain: Pain) -> Iterator[str]:
    yield from ("", f"### {pain.title}", "")
    yield from facts_of(pain)


def facts_of(pain: Pain) -> Iterator[str]:
    """Yield its symptom, cause, fix, proof and command, each as an item of a list."""
    yield f"- **Symptom:** {_line(pain.symptom)}"
    ids = ", ".join(f"`{each}`" for each in pain.expect.causes) or "nothing is wrong, and lastcall reports nothing"
    yield f"- **Cause:** {_line(pain.why)} ({ids})"
    if pain.unified:
        yield f"- **On cgroup v2:** {', '.join(f'`{each}`' for each in pain.unified.causes)}"
    yield f"- **Fix:** {_line(pain.words)}"
    yield f"- **Proof:** {_line(pain.proof)}"
    where = f"tests/pains/{pain.area}/{pain.name}"
    shown = f"`{_command(pain)}`" if pain.command != "story" else "steps.sh, then `lastcall story`"
    shown += ", then steps.sh" if pain.command == "lint" and (pain.directory / "steps.sh").exists() else ""
    yield f"- **Try it:** {shown} ([{where}](../{where}))"
    if pain.lint:
        yield f"- **Seen without a cluster by** `lastcall lint`: {', '.join(f'`{each}`' for each in pain.lint)}"
    if pain.stand_in:
        yield f"- **Stand-in:** {_line(pain.stand_in)}"
    if pain.known:
        yield f"- **Expected to fail today:** {_line(pain.known)}"


# -- lint --------------------------------------------------------------------------------------------------------------


def other_linters() -> dict[str, str]:
    """Return which other linters have a rule for what one of ours finds, as docs/lint.md says."""
    table = LINT.read_text().partition("## Beside other linters")[2]
    rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in table.splitlines() if line[:1] == "|"]
    return {rule: others for ours, others in rows[2:] for rule in re.findall(r"`(\w+)`", ours) if rule in RULES}


def predicted_by(pain: Pain) -> str:
    """What `lastcall lint` says of its manifest, and how sure."""
    if pain.silent:
        return "nothing, rightly"
    if not pain.lint:
        return "- (the manifest does not show it)"
    return ", ".join(f"`{each}` ({RULES[each].certainty})" for each in pain.lint)


def _table(pains: list[Pain]) -> Iterator[str]:
    seen = [each for each in pains if each.lint]
    certain = [each for each in seen if any(RULES[rule].certainty == "certain" for rule in each.lint)]
    beside = other_linters()
    yield from (
        "",
        "## What `lastcall lint` finds",
        "",
        f"`lastcall lint` predicts {len(seen)} of {len(pains)} pains from the manifest, {len(certain)} of them with "
        f"certainty.",
        "`lastcall run` and `lastcall rollout` find the others. What other linters find is **read, not run**,",
        "from [their rule lists](lint.md#beside-other-linters).",
        "",
        "| pain | `lastcall lint` | also in |",
        "|---|---|---|",
    )
    for each in pains:
        found = dict.fromkeys(beside[rule] for rule in each.lint if rule in beside)
        yield f"| {each.area}/{each.name} | {predicted_by(each)} | {'; '.join(found) or '-'} |"


def _lights(lights: list[Light]) -> Iterator[str]:
    tried = [each for each in lights if not each.known]
    yield from (
        "",
        "## Light pains",
        "",
        "Each of the other rules of `lastcall lint` has a light pain in `tests/pains/predicted`. Lint finds it at this",
        "field of the broken manifest only, it happens on a cluster, and the fix prevents it.",
        "`make pains ONLY=predicted` (or a rule's id) tries them.",
        f"{len(lights)} light pains, {len(lights) - len(tried)} of them expected to fail today (marked).",
        "",
        "| rule | at | what happens | fix |",
        "|---|---|---|---|",
    )
    for each in lights:
        stand_in = f" Stand-in: {_line(each.stand_in)}" if each.stand_in else ""
        expected = f" **Expected to fail today:** {_line(each.known)}" if each.known else ""
        yield f"| `{each.rule}` | `{each.at}` | {_line(each.what)}{stand_in}{expected} | {_line(each.words)} |"
    yield from ("", "No pain proves these rules:", "")
    for rule, why in exempted().items():
        yield f"- `{rule}`: {why}"


def _command(pain: Pain) -> str:
    return " ".join(["lastcall", pain.command, "manifest.yaml", *pain.args])


def _line(words: str) -> str:
    return " ".join(words.split())


def _not_made() -> dict[str, str]:
    return {key: _line(value) for key, value in (yaml.safe_load(NOT_MADE.read_text()) or {}).items()}


def unknown_ids() -> list[str]:
    """Causes that neither catalogue has, as `pain: id`; of pains that are expected to be named."""
    known = {*CATALOGUE, *RULES}
    return [
        f"{each.name}: {id_}" for each in load_all() if not each.known for id_ in each.expect.causes if id_ not in known
    ]


def read_not_made(path: Path = NOT_MADE) -> dict[str, str]:
    """What is not made → why."""
    return dict(yaml.safe_load(path.read_text()) or {})
