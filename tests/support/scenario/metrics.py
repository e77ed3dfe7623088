"""Reads `/metrics`, and compares its names, labels and bounds with those of a real Kubernetes 1.36.2."""

import json
import re
from pathlib import Path

RECORDED = json.loads((Path(__file__).parents[2] / "golden/metrics/kubernetes-1.36.2.json").read_text())
_LINE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)(?: \d+)?")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

Sample = tuple[str, dict[str, str], float]


def samples(text: str) -> list[Sample]:
    """Name, labels and value of each line."""
    found: list[Sample] = []
    for line in text.splitlines():
        if not line.startswith("#"):
            match = _LINE.fullmatch(line)
            assert match is not None, line
            found.append((match[1], dict(_LABEL.findall(match[2] or "")), float(match[3])))
    return found


def value(text: str, family: str, /, **labels: str) -> float:
    """The sum of the samples that have these labels."""
    return sum(each for found, have, each in samples(text) if found == family and labels.items() <= have.items())


def unlike_kubernetes(text: str) -> list[str]:
    """Samples that the real one does not have in this form."""
    wrong: list[str] = []
    bounds: dict[str, list[str]] = {}
    for name, labels, _ in samples(text):
        family = name if name in RECORDED else re.sub(r"_(bucket|sum|count)$", "", name)
        if family not in RECORDED:
            wrong.append(f"{name}: no such family")
            continue
        if (bound := labels.pop("le", None)) is not None:
            seen = bounds.setdefault(family, [])
            if bound not in seen:
                seen.append(bound)
        if sorted(labels) not in RECORDED[family]["labels"]:
            wrong.append(f"{name}: {sorted(labels)}")
    wrong += [
        f"{family}: {found} where {RECORDED[family]['bounds']} are"
        for family, found in bounds.items()
        if found != RECORDED[family]["bounds"]
    ]
    return wrong
