"""A rollout's experiments as one HTML file that needs nothing else: requests over the lanes of the Pods' ends.

It is the page of `rollout --ui`, saved: the same script draws it (`ui/saved.py`).
"""

from collections.abc import Sequence
from itertools import count
from typing import Any

from lastcall._version import __version__
from lastcall.endings import outcome_words
from lastcall.experiment.rollout.checks import plain_text
from lastcall.experiment.rollout.lost import alike, tell_lost
from lastcall.experiment.rollout.old_pods import worst_first
from lastcall.experiment.rollout.pool import pool
from lastcall.experiment.rollout.report import (
    LATENCY_HEAD,
    headline,
    latency_rows,
    tell_left,
    tell_moves,
    yaml_lines,
)
from lastcall.experiment.rollout.result import Result
from lastcall.traffic import Account, LostRequest, PodLife, Thresholds, check, percentage
from lastcall.ui import saved_page, stories
from lastcall.ui.rollout import picture

MOST_LOST = 300
"""Rows of lost requests, those that are alike in one; the JSON has all."""


def html_page(results: Sequence[Result], thresholds: Thresholds | None = None) -> str:
    """Return the whole page, a section for each experiment."""
    limits = thresholds or Thresholds()
    ends = [worst_first(each.endings) for each in results]
    numbers = count(1)
    data = {
        "about": f"rollout under load · lastcall {__version__}",
        "error": "",
        "caption": "",
        "limits": _limits(results, limits),
        "reports": [
            {**_report(result), "ends": [{"uid": str(next(numbers)), "words": _words(each)} for each in those]}
            for result, those in zip(results, ends, strict=True)
        ],
        **stories([each for those in ends for each in those], ""),
    }
    title = f"{results[0].what}: {results[0].judgement.verdict}"
    return saved_page(title, data, plain_text(results, limits), scripts=("ui.js", "rollout.js"))


def _words(ending: Any) -> str:
    return f"{ending.pod.name}: {outcome_words(ending)}"


def _limits(results: Sequence[Result], thresholds: Thresholds) -> list[str]:
    """What several runs have in common, and what the limits say of those that decide."""
    last = [each for each in results if each.advised is results[-1].advised]
    found = pool(last)
    lines = [each.sentence for each in check(thresholds, found)]
    if len(last) > 1:
        summary = f"{found.lost} of {found.total} requests lost, at most {percentage(found.upper_bound)} (95 %)"
        left_out = f"; {found.inconclusive} inconclusive, not counted" if found.inconclusive else ""
        lines.insert(0, f"{len(last)} runs together: {summary}{left_out}")
    return lines


def _report(result: Result) -> dict[str, Any]:
    found, judgement = result.account, result.judgement
    rates = ", ".join(f"{number} {kind}" for kind, number in found.totals.items())
    about = (
        f"{headline(result)}; {found.total} requests to Service {result.service} from the disruption on ({rates}); it "
        f"took {result.seconds:.1f} s; control period before: {found.control_lost} of {found.control_total} lost"
    )
    advice = () if result.unheard else judgement.advice[1:]
    which = [
        *(["with the advice applied"] if result.advised else []),
        *([f"run {result.run}"] if result.run > 1 else []),
    ]
    until = max([each.finished for each in result.outcomes], default=result.began)
    return {
        "what": result.what,
        "which": ", ".join(filter(None, which)),
        "verdict": judgement.verdict,
        "sentence": judgement.sentence,
        "about": about,
        "notes": [
            *(note.line for note in result.notes),
            *tell_moves(found),
            *(f"Also, for {each.saves}: {each.sentence}" for each in advice),
        ],
        "patch": "\n".join(yaml_lines(judgement.patch)) if judgement.patch else "",
        "tables": [each for each in _tables(result) if each["rows"]],
        **picture(result.outcomes, result.lives, found, result.began, until),
    }


def _tables(result: Result) -> list[dict[str, Any]]:
    found = result.account
    latency = [] if result.unheard else latency_rows(result)
    return [
        {"caption": "How long good answers took", "head": LATENCY_HEAD, "rows": latency},
        _pods(found, [] if found.not_followed else result.lives),
        _lost(found.lost),
    ]


def _pods(found: Account, lives: Sequence[PodLife]) -> dict[str, Any]:
    left = {life.name: tell_left(life) for life in lives}
    shown = found.pods if found.lost and lives else ()
    rows = [
        [str(each.lost), percentage(each.upper_bound), str(each.total), f"{each.pod}{left.get(each.pod, '')}"]
        for each in shown
    ]
    return {"caption": "At which Pod", "head": ("lost", "at most (95 %)", "of", "Pod"), "rows": rows}


def _lost(lost: Sequence[LostRequest]) -> dict[str, Any]:
    groups = alike(lost)
    rows = [
        [f"{each.first.at:.3f} s", ", ".join(filter(None, (tell_lost(each.first), each.more)))]
        for each in groups[:MOST_LOST]
    ]
    hidden = sum(each.count for each in groups[MOST_LOST:])
    more = f" (all but {hidden}, which the JSON has)" if hidden else ""
    return {"caption": f"The lost requests{more}", "head": ("known at", "what became of it"), "rows": rows}
