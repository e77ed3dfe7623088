"""docs/pains.md, from the directories of the pains. Pure but for reading them."""

from collections.abc import Iterator
from pathlib import Path

import yaml
from pain import HERE, Pain, load_all

from lastcall.lint.catalogue.lookup import RULES
from lastcall.timeline.catalogue.lookup import CATALOGUE

PATH = HERE.parents[1] / "docs" / "pains.md"
NOT_MADE = HERE / "not-made.yaml"
"""The pains that cannot be made on the kernel, each with the reason."""

AREAS = {
    "endpoints": "Requests that are lost while endpoints change",
    "hooks": "preStop hooks",
    "signals": "The stop signal and PID 1",
    "kills": "137 and 143",
    "sidecars": "Sidecars and proxies",
    "connections": "Connections that last",
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
        "What hurts when Pods end, as people report it: symptom → cause → fix → proof. Each is a directory of",
        "[tests/pains](../tests/pains) with its manifest and its command. `make pains` tries all of them on the",
        "kernel: the cause has to be named (by its id, which is in the JSON), the fix has to be proposed, and with the",
        "fix the pain has to be gone. `make pains ONLY=name` tries one. This page is made from the directories",
        "(`python tests/pains --docs`).",
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
    yield from ("", "## Not made", "")
    for what, why in _not_made().items():
        yield f"- **{what}**: {why}"


def _pain(pain: Pain) -> Iterator[str]:
    yield from ("", f"### {pain.name}", "", f"- **Symptom:** {_line(pain.symptom)}")
    ids = ", ".join(f"`{each}`" for each in pain.expect.causes) or "nothing is wrong, and nothing is said"
    yield f"- **Cause:** {_line(pain.why)} ({ids})"
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
