"""A rollout's experiment for CI systems: a check for each limit, and a Markdown summary. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lastcall.endings.render import Check, checks, plain_lines
from lastcall.experiment.reasons.failures import group_alike
from lastcall.experiment.rollout.pool import INCONCLUSIVE, LOSES, exit_status, pool, worst
from lastcall.experiment.rollout.report import headline, tell_limits, tell_results, yaml_lines
from lastcall.experiment.rollout.result import Result
from lastcall.traffic import WHY, Thresholds, check, percentage, upper_bound

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 100
NO_LIMITS = Thresholds()
SUITE = "lastcall rollout"
_MARKS = {0: "✅", INCONCLUSIVE: "⚠️", LOSES: "❌"}
"""By exit status."""


def deciding(results: Sequence[Result]) -> list[Result]:
    """Return the runs that decide: those with the advice applied, where there are any."""
    return [each for each in results if each.advised] or list(results)


def plain_text(results: Sequence[Result], thresholds: Thresholds = NO_LIMITS) -> str:
    """Return the whole report, as a file has it."""

    def show(console: "Console") -> None:
        for advised in (False, True):
            if group := [each for each in results if each.advised is advised]:
                tell_results(console, group)
        tell_limits(console, deciding(results), thresholds)

    return plain_lines(WIDTH, show)


def checks_of(results: Sequence[Result], thresholds: Thresholds = NO_LIMITS, error: str = "") -> list[Check]:
    """Return what decides the exit status, each a check: the requests, every other limit, containers that crashed."""
    found: list[Check] = []
    if results:
        found += _checks(results, thresholds)
    if error:
        found.append(Check(SUITE, "experiment", "error", error, error, title=SUITE))
    return found


def _checks(results: Sequence[Result], thresholds: Thresholds) -> Iterator[Check]:
    last = deciding(results)
    shown, found, text = worst(last), pool(last), plain_text(results, thresholds)
    what = f"{shown.what} {shown.disrupt}"
    limits = check(thresholds, found)
    yield _control(what, last)
    nothing = "no run was conclusive" if found.inconclusive == found.runs else None
    if thresholds.max_lost is None:
        message = f"{shown.judgement.verdict}: {shown.judgement.sentence}"
        lost = f"{what}: no request is lost"
        if found.lost:
            yield Check(SUITE, lost, "error", f"{message}{_patch(shown)}", text, kind="requests lost")
        else:
            yield Check(SUITE, lost, body=text, skipped=nothing)
    for each in limits:
        level: checks.Level = "error" if each.broken else "warning" if each.unsure else ""
        message = f"{each.sentence}\n{shown.judgement.sentence}" if each.broken else each.sentence
        name = f"{what}: {each.name} {each.limit}"
        yield Check(SUITE, name, level, message if level else "", each.sentence, skipped=nothing)
    for names, problems in _not_well(last):
        yield Check(SUITE, f"{names} is well", "error", "\n".join(problems), text, kind="not well")


def _control(what: str, results: Sequence[Result]) -> Check:
    """Check whether every run was conclusive: one that was not makes
    the exit status that of an inconclusive one, whatever the others found."""
    name = f"{what}: requests are answered before it"
    useless = [each for each in results if each.judgement.verdict == "inconclusive"]
    if not useless:
        return Check(SUITE, name)
    body = "".join(f"run {each.run}: {each.judgement.sentence}\n" for each in useless)
    return Check(SUITE, name, "warning", f"inconclusive: {useless[0].judgement.sentence}", body, kind="inconclusive")


def _not_well(results: Sequence[Result]) -> Iterator[tuple[str, list[str]]]:
    """Pods of which a container crashed or was restarted, and what is wrong with them."""
    for names, ended in group_alike(each for result in results for each in result.not_well if each.failed):
        yield names, [finding.text for finding in ended.findings if finding.severity == "problem"]


def _patch(result: Result) -> str:
    if not result.judgement.patch:
        return ""
    return "\nfix: apply this patch\n" + "\n".join(yaml_lines(result.judgement.patch))


def summary_of(results: Sequence[Result], thresholds: Thresholds = NO_LIMITS, error: str = "") -> str:
    """Return Markdown: the verdict, the lost requests by cause, the limits, the patch, and the report to open."""
    parts = []
    if results:
        last = deciding(results)
        shown, found = worst(last), pool(last)
        verdict, mark = shown.judgement.verdict, _MARKS[exit_status(found, thresholds)]
        parts += [
            f"### {mark} lastcall rollout: {checks.plain(shown.what)}: {verdict}\n",
            f"{checks.plain(shown.judgement.sentence)}\n",
            checks.table(
                ("runs", "requests", "lost", "at most (95 %)"),
                [(str(found.runs), str(found.total), str(found.lost), percentage(found.upper_bound))],
            ),
        ]
        parts += list(_details(shown, last, thresholds))
        parts.append(checks.folded(headline(shown), checks.block(plain_text(results, thresholds))))
    if error:
        parts.insert(1 if results else 0, f"{'' if results else '### ❌ lastcall rollout: '}{checks.plain(error)}\n")
    return checks.shortened(parts)


def _details(shown: Result, last: Sequence[Result], thresholds: Thresholds) -> Iterator[str]:
    lost, totals = shown.account.lost, shown.account.totals
    if lost:
        counts = Counter((each.outcome.kind, each.outcome.lost, each.cause) for each in lost)
        rows = [
            (str(count), percentage(upper_bound(count, totals[kind])), kind, str(how), WHY[cause])
            for (kind, how, cause), count in counts.most_common()
        ]
        yield checks.table(("lost", "at most (95 %)", "kind of request", "how", "why"), rows)
    limits = check(thresholds, pool(last))
    if limits:
        marks = ("❌" if each.broken else "⚠️" if each.unsure else "✅" for each in limits)
        yield "".join(f"- {mark} {checks.plain(each.sentence)}\n" for mark, each in zip(marks, limits, strict=True))
    problems = [f"{names}: {problem}" for names, each in _not_well(last) for problem in each]
    if problems:
        yield "".join(f"- ❌ {checks.plain(each)}\n" for each in problems)
    if shown.judgement.patch:
        yield "The patch:\n\n" + checks.block("\n".join(yaml_lines(shown.judgement.patch)), "yaml")
