"""What the code says is in the tables of the product: findings in the catalogue, and Japanese."""

import ast
import json
import re
from collections.abc import Iterator
from string import Template

from checks.report import Report
from checks.source import SOURCES, Project, Source
from lastcall.endings.catalogue.lookup import CATALOGUE
from lastcall.records.language import catalogue_of
from lastcall.records.recalled import SENTENCES

ASKERS = {"said": "texts", "fix": "fixes"}
JAPANESE = "endings/catalogue/japanese"
ASKED_FOR = ("containers", "findings", "pods", "requests", "restarts", "rollout", "simulation", "waiting")
"""Files whose texts are all in the catalogue or in the code. Those of the others are put together."""


def findings(project: Project, report: Report) -> None:
    """Check that every finding, and every text that is asked for by a literal, is in the catalogue."""
    for source in project.sources:
        if "catalogue" in source.module.split("."):
            continue
        for name, id_, node in _calls(source, "Finding", *ASKERS):
            report.looked_at += 1
            if id_ not in CATALOGUE:
                report.wrong(source, node.lineno, f"the finding {id_} is not in the catalogue; add its Cause there")
                continue
            variant = node.args[1] if len(node.args) > 1 else ast.Constant("")
            if name not in ASKERS or not isinstance(variant, ast.Constant):
                continue
            if variant.value not in getattr(CATALOGUE[id_], ASKERS[name]):
                text = f"{id_} has no {variant.value!r} in its {ASKERS[name]}; add it to the catalogue"
                report.wrong(source, node.lineno, text)


def japanese(project: Project, report: Report) -> None:
    """Check that every text of the code is there in Japanese, and that no Japanese is without use."""
    known = catalogue_of("ja")
    asked = {text for cause in CATALOGUE.values() for text in (*cause.texts.values(), *cause.fixes.values())}
    asked.update(SENTENCES)
    for source in project.sources:
        for _, text, node in _calls(source, "tell"):
            asked.add(text)
            if re.search("[A-Za-z]{2}", Template.pattern.sub("", text)):
                report.looked_at += 1
                if text not in known:
                    report.wrong(source, node.lineno, f"{text!r} is not there in Japanese; add it to {JAPANESE}")
    for name in ASKED_FOR:
        path = f"{SOURCES}/{JAPANESE}/{name}.json"
        if (project.root / path).exists():
            for text in json.loads((project.root / path).read_text("utf-8")):
                if text not in asked and not text.startswith("${part0}"):
                    report.wrong(path, 1, f"nothing says {text!r}; remove it")


def _calls(source: Source, *names: str) -> Iterator[tuple[str, str, ast.Call]]:
    """Yield (function, first argument, call) for the calls of these functions with a literal first argument."""
    if not any(f"{name}(" in source.text for name in names):
        return
    for node in source.nodes(ast.Call):
        match node:
            case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=str(first)), *_]) if name in names:
                yield name, first, node
