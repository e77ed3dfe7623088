"""Advice for requests that were in flight when their container was killed: more time, or what kept it from ending.

Time helps only a program that got its stop signal and was still at work. Pure.
"""

# check: pure

import math
from collections.abc import Sequence
from typing import Any

from lastcall.endings import Change, Ending, Finding, PodFacts, build_endings, fix, why_not_ended
from lastcall.records.said import tell
from lastcall.traffic.account import Account
from lastcall.traffic.lives import PodLife
from lastcall.traffic.outcome import LONG_LIVED
from lastcall.traffic.proposal import SPARE_SECONDS, Advice, grace_of, in_template


def more_time(account: Account, count: int, lives: Sequence[PodLife], owner: dict[str, Any]) -> Advice:
    """Return advice for `count` requests that were lost to SIGKILL."""
    names = {each.pod for each in account.lost if each.cause == "killed"}
    endings = [_ending_of(life) for life in lives if life.killed and life.name in names]
    for ending in endings:
        if (finding := why_not_ended(ending)) is not None:
            return _end_on_signal(finding, count)
        if (finding := _waits_for_nothing_that_ends(ending)) is not None:
            return _end_on_signal(finding, count)
    wanted = _wanted_seconds(account, lives, owner)
    heard = any(c.process.disposition == "handled" for ending in endings for c in ending.containers)
    sentence = fix("requestKilled", "" if heard else "unseen", wanted=wanted, grace=grace_of(owner))
    return Advice("requestKilled", sentence, count, in_template({"terminationGracePeriodSeconds": wanted}))


def _waits_for_nothing_that_ends(ending: Ending) -> Finding | None:
    """Return why a program was killed that only its own change can end in time; None for others."""
    found = (each for each in ending.findings if each.id == "killed" and each.change is not None)
    return next((each for each in found if each.change is not None and each.change.program), None)


def _ending_of(life: PodLife) -> Ending:
    return build_endings(life.records, [PodFacts(life.uid, "", life.name)], kubernetes_version="")[0]


def _end_on_signal(finding: Finding, count: int) -> Advice:
    """The program never acted on its stop signal: no grace period is long enough."""
    change = finding.change or Change()
    advice = tell("$why $fix", why=finding.text, fix=finding.advice) if finding.advice else finding.text
    return Advice(finding.id, advice, count, in_template(change.patch) if change.patch else {}, change.program)


def _wanted_seconds(account: Account, lives: Sequence[PodLife], owner: dict[str, Any]) -> int:
    """Return as long as the hook and the longest good answer of such requests took; twice what it was where that is not
    more, for then it is not known how long they take."""
    grace = grace_of(owner)
    killed = [each.outcome for each in account.lost if each.cause == "killed"]
    kinds = {each.kind for each in killed}.difference(LONG_LIVED)  # of those the client says how long they take
    took = max((account.longest.get(kind, 0.0) for kind in kinds), default=0.0)
    hook = max((life.term.since(life.deleted) for life in lives if life.term and life.deleted), default=0.0)
    wanted = math.ceil(hook + took + SPARE_SECONDS)
    return wanted if took and wanted > grace else grace * 2
