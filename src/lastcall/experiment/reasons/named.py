"""The causes that lines about a Pod name, as data. Pure."""

# check: pure

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lastcall.endings import Change, Finding, ProgramChange
from lastcall.errors import UnreadyCause
from lastcall.records.text import printable
from lastcall.world.dataclass import dataclass

_FIX = re.compile(r"  fix: (?P<advice>.*) \[(?P<id>\w+)\]\Z", re.DOTALL)
"""As `causes.py:fix_of` words it."""
_PRINTED = "    | "


@dataclass(frozen=True, slots=True)
class Explained:
    """Why something is not Ready: lines for people, and the causes that they name."""

    lines: tuple[str, ...]
    causes: tuple[UnreadyCause, ...]


def causes_in(
    pod: str,
    lines: Sequence[str],
    findings: Iterable[Finding] = (),
    programs: Mapping[str, ProgramChange] | None = None,
) -> tuple[UnreadyCause, ...]:
    """Return the causes in the lines about a Pod, or an owner of Pods, in their order.

    `findings` are those that lines were made of; `programs` has, by cause, what a person has to correct where the
    cluster's words alone name it.
    """
    known = {(each.id, printable(each.advice, 1000)): each for each in findings if each.advice}
    said = "\n".join(_said(lines))
    named = []
    for match in filter(None, map(_FIX.match, lines)):
        id_, advice = match["id"], match["advice"]
        if finding := known.get((id_, advice)):
            change, text = _as_data(finding.change), printable(finding.text, 1000)
            named.append(UnreadyCause(pod, id_, finding.severity, finding.container, text, advice, change))
        else:
            verb = (programs or {}).get(id_)
            change = _as_data(Change(program=verb)) if verb else None
            named.append(UnreadyCause(pod, id_, "problem", "", said, advice, change))
    return tuple(named)


def _said(lines: Iterable[str]) -> Iterator[str]:
    """Yield what the cluster says: neither fixes, nor what containers printed."""
    return (line.strip() for line in lines if not line.startswith(("  fix: ", _PRINTED)))


def _as_data(change: Change | None) -> dict[str, Any] | None:
    return None if change is None else {"patch": change.patch, "program": change.program}
