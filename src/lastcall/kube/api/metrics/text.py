"""Prometheus's text format, as Go's client writes it.

`families.tsv` has name, type and help of each family, as the components of Kubernetes 1.36.2 have them; it is read
with the first request. Source: prometheus/common expfmt/text_create.go.
"""

import math
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Protocol

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"

Labels = Mapping[str, str]


class Counted(Protocol):
    """A histogram: how many values were at most each bound and more than the one before; the last number has no
    bound."""

    @property
    def bounds(self) -> Iterable[float]: ...
    @property
    def counts(self) -> Iterable[int]: ...
    @property
    def sum(self) -> float: ...


Samples = Iterable[tuple[Labels, float | Counted]]


@cache
def _known() -> dict[str, tuple[str, str]]:
    rows = files("lastcall.kube.api.metrics").joinpath("families.tsv").read_text().splitlines()
    return {name: (kind, help_) for name, kind, help_ in (row.split("\t") for row in rows)}


def exposition(families: Iterable[tuple[str, Samples]]) -> str:
    """Return the text of families, sorted by name; those of one name are together. Raises KeyError for a name that
    `families.tsv` does not have."""
    known = _known()
    gathered: dict[str, list[tuple[Labels, float | Counted]]] = {}
    for name, samples in families:
        gathered.setdefault(name, []).extend(samples)
    lines: list[str] = []
    for name, found in sorted(gathered.items()):
        if not found:
            continue
        kind, help_ = known[name]
        lines += (f"# HELP {name} {help_}", f"# TYPE {name} {kind}")
        for labels, value in sorted(found, key=lambda sample: sorted(sample[0].items())):
            shown = _labels(labels)
            if isinstance(value, int | float):
                lines.append(f"{name}{_braces(shown)} {number(value)}")
            else:
                lines += _histogram(name, shown, value)
    return "\n".join([*lines, ""])


def _histogram(name: str, labels: str, value: Counted) -> Iterable[str]:
    total = 0
    for bound, count in zip((*value.bounds, math.inf), value.counts, strict=True):
        total += count
        yield f'{name}_bucket{{{labels}{"," if labels else ""}le="{number(bound)}"}} {total}'
    yield f"{name}_sum{_braces(labels)} {number(value.sum)}"
    yield f"{name}_count{_braces(labels)} {total}"


def _labels(labels: Labels) -> str:
    return ",".join(f'{key}="{_escaped(value)}"' for key, value in sorted(labels.items()))


def _braces(labels: str) -> str:
    return f"{{{labels}}}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def number(value: float) -> str:
    """Format as Go's strconv.FormatFloat(value, 'g', -1, 64) does."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if math.isnan(value):
        return "NaN"
    mantissa, _, exponent = _shortest(value).partition("e")
    power = int(exponent)
    if -4 <= power < 6:
        return repr(float(value)).removesuffix(".0")
    return f"{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"


def _shortest(value: float) -> str:
    """The fewest digits that mean this number, with an exponent."""
    text = ""
    for digits in range(17):
        text = f"{value:.{digits}e}"
        if float(text) == value:
            break
    return text
