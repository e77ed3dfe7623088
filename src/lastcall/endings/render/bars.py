"""Pictures of time made of characters: the grace budget and the lanes of what ran side by side. Pure."""

# check: pure

from collections.abc import Sequence

from lastcall.endings.story import OVERRUN_SECONDS, Budget, Span
from lastcall.world.dataclass import dataclass

_SHADES = {"preStop": "▓", "waiting": "▒", "drain": "█", "unused": "░", "overrun": "!"}
_LABELS = {"preStop": "hook", "waiting": "waiting", "drain": "drain", "unused": "unused", "overrun": "overrun"}


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a line; `kind` decides its colour."""

    text: str
    kind: str = ""


def share(values: Sequence[float], width: int) -> list[int]:
    """Share `width` cells in proportion to `values`; what is not zero gets at least one. The sum is `width`."""
    total = sum(values)
    if total <= 0:
        return [0] * len(values)
    cells = [max(1, int(value / total * width)) if value > 0 else 0 for value in values]
    order = sorted(range(len(values)), key=lambda i: (-values[i], i))
    while sum(cells) < width:
        cells[max(order, key=lambda i: (values[i] / total * width - cells[i], -i))] += 1
    while sum(cells) > width:
        largest = max(order, key=lambda i: (cells[i], -i))
        if cells[largest] <= 1:
            break
        cells[largest] -= 1
    return cells


def budget_parts(budget: Budget) -> list[tuple[str, float]]:
    """Return the parts of the bar with their seconds, in order; those that did not happen are left out, drain excepted.

    With an overrun, the drain shown is what lay within the grace period.
    """
    within = budget.drain - min(budget.overrun, budget.drain)
    parts = [("preStop", budget.pre_stop), ("waiting", budget.waiting), ("drain", within)]
    parts += [("unused", budget.unused), ("overrun", budget.overrun if budget.overrun >= OVERRUN_SECONDS else 0.0)]
    return [(name, value) for name, value in parts if value >= 0.05 or (name == "drain" and value > 0)]


def budget_bar(budget: Budget, width: int) -> list[Part]:
    """Return one shaded bar of `width` cells: `hook ▓▓▓ | drain ██ | unused ░░░` without the words."""
    parts = budget_parts(budget)
    cells = share([value for _, value in parts], width)
    return [Part(_SHADES[name] * count, name) for (name, _), count in zip(parts, cells, strict=True)]


def budget_legend(budget: Budget) -> list[Part]:
    """Return the words of the bar: `hook 3.0 s | drain 5.3 s | unused 21.7 s`."""
    legend: list[Part] = []
    for name, value in budget_parts(budget):
        if legend:
            legend.append(Part(" | "))
        legend.append(Part(f"{_LABELS[name]} {value:.1f} s", name))
    return legend


def axis(end: float, width: int) -> str:
    """Draw whole-second marks under `width` cells that stand for 0 to `end` seconds."""
    if end <= 0 or width < 8:
        return ""
    step = next(
        (s for s in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600) if end / s <= width / 7), end
    )
    line = [" "] * width
    mark = 0
    while mark * step <= end:
        text = f"{mark * step:g}"
        column = min(int(mark * step / end * width), width - 1)
        if column + len(text) <= width:
            line[column : column + len(text)] = text
        mark += 1
    return "".join(line).rstrip()


def lane(span: Span, end: float, width: int) -> str:
    """Draw one span on an axis of `width` cells for 0 to `end` seconds: `▏` is shorter than a cell, `…` has no end."""
    if end <= 0:
        return ""
    first = min(max(0, int(max(0.0, span.start) / end * width)), width - 1)
    if span.end is None:
        return " " * first + "─" * (width - first - 1) + "…"
    if (span.end - span.start) / end * width < 0.5:
        return " " * first + "▏"
    last = min(max(first, round(span.end / end * width) - 1), width - 1)
    return " " * first + "█" * (last - first + 1)
