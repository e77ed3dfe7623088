"""A page for each pain and each rule of lint, at an address that stays: pains/NAME.html, rules/ID.html."""

import importlib
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from lastcall.lint.catalogue.lookup import RULES
from lastcall.lint.catalogue.rule import Rule
from make_site.pages import REPOSITORY, ROOT
from make_site.reference import escaped

sys.path[:0] = [str(ROOT / each) for each in ("tests/support", "tests/pains")]
documents: Any = importlib.import_module("documents")
Pain = Any
"""One of tests/pains/pain.py, which is no package."""

SURE = {
    "certain": "certain: the manifests alone prove it",
    "dependsOnApplication": "depends on the application: try `lastcall rollout`",
    "dependsOnCluster": "depends on objects or nodes that are not in the files",
}


def pages() -> dict[str, str]:
    """Return place in the site → Markdown: one for each pain and each rule, and a list of either."""
    pains = documents.load_all()
    found = {f"pains/{each.name}.md": pain_page(each) for each in pains}
    found |= {f"rules/{each.id}.md": rule_page(each, pains) for each in RULES.values()}
    return found | {"pains/index.md": "\n".join(_pains(pains)), "rules/index.md": "\n".join(_rules(RULES))}


def name_of(pain: Pain) -> str:
    """Return its title, which is what people type into a search box."""
    return escaped(str(pain.title))


def pain_page(pain: Pain) -> str:
    """Return its symptom, cause, fix and proof, with the manifest that reproduces it."""
    lines = [f"# {name_of(pain)}", "", f"Subject: {documents.AREAS[pain.area]}", ""]
    for line in documents.facts_of(pain):
        if line.startswith("- **Seen without a cluster by**"):
            line = re.sub(r"`(\w+)`", r"[`\1`](../rules/\1.md)", line)
        lines.append(line.replace("(../tests/", f"({REPOSITORY}/tree/main/tests/"))
    lines += [
        "",
        "This manifest reproduces it:",
        "",
        "```yaml",
        (pain.directory / "manifest.yaml").read_text("utf-8").rstrip(),
        "```",
        "",
    ]
    return "\n".join(
        [*lines, "[All pains](index.md) · [lost requests](../rollout.md) · [how a Pod ends](../run.md)", ""]
    )


def rule_page(rule: Rule, pains: list[Pain]) -> str:
    """Return what the rule says, and the pains that it predicts."""
    lines = [f"# `{rule.id}`", "", f"**{escaped(rule.title)}** {escaped(rule.why)}", ""]
    lines += [f"- **Fix:** {escaped(rule.fix)}", f"- **Severity:** {rule.severity}"]
    lines += [f"- **Certainty:** {SURE[rule.certainty]}", f"- **Source of the rule:** {escaped(rule.source)}", ""]
    seen = [each for each in pains if rule.id in each.lint]
    if seen:
        lines += ["It predicts:", "", *(f"- [{name_of(each)}](../pains/{each.name}.md)" for each in seen), ""]
    lines += ["To accept a finding, give a reason in an annotation of the object:", ""]
    lines += ["```yaml", "metadata:", "  annotations:", f"    lint.lastcall/ignore.{rule.id}: the reason", "```", ""]
    return "\n".join([*lines, "[All rules](index.md) · [lint](../lint.md)", ""])


def _cell(text: str) -> str:
    return escaped(text).replace("|", "\\|")


def _pains(pains: list[Pain]) -> Iterator[str]:
    yield from ("# A page for each pain", "", "[All of them on one page](../pains.md)", "")
    for area, heading in documents.AREAS.items():
        yield from (f"## {heading}", "")
        yield from (
            f"- [{name_of(each)}]({each.name}.md): {escaped(' '.join(each.symptom.split()))}"
            for each in pains
            if each.area == area
        )
        yield ""


def _rules(rules: Mapping[str, Rule]) -> Iterator[str]:
    yield from ("# A page for each rule of lint", "", "| rule | severity | finds |", "|---|---|---|")
    yield from (f"| [`{each.id}`]({each.id}.md) | {each.severity} | {_cell(each.title)} |" for each in rules.values())
    yield ""
