"""The ends of Pods for CI systems: a check for each Pod, and a Markdown summary. Pure."""

from collections.abc import Iterable, Sequence

from lastcall.endings import Ending, outcome_words, verdict, why
from lastcall.endings.render import Check, checks, plain_text

WIDTH = 100
BAD = frozenset({"killed", "crashed", "restarted", "hookFailed", "unknown"})
"""Outcomes for which the exit status is not 0 (`cli.exit_status`)."""


def checks_of(endings: Sequence[Ending], error: str = "") -> list[Check]:
    """Return a check for each Pod, failed for one that did not end gracefully; one more for what cut the run short."""
    found = [_check(each) for each in endings]
    if error:
        found.append(Check("lastcall run", "run", "error", error, error, title="lastcall run"))
    return found


def _check(ending: Ending) -> Check:
    name = _name(ending)
    if ending.outcome not in BAD:
        return Check("lastcall run", name, body=plain_text([ending], WIDTH))
    head = f"{name} {outcome_words(ending)}"
    sentences = [verdict(ending), *_advice(ending)]
    return Check(
        "lastcall run", name, "error", "\n".join(sentences), plain_text([ending], WIDTH), head, kind=ending.outcome
    )  # fmt: skip


def _advice(ending: Ending) -> Iterable[str]:
    """What to change, each once."""
    return dict.fromkeys(f"fix: {each.advice}" for each in ending.findings if each.advice)


def summary_of(endings: Sequence[Ending], *, kubernetes_version: str, error: str = "") -> str:
    """Return Markdown: a row for each Pod, what went wrong with its fix, and the stories to open."""
    bad = [each for each in endings if each.outcome in BAD]
    many = "Pod" if len(endings) == 1 else "Pods"
    head = f"{len(endings)} {many} ended gracefully"
    if bad:
        head = f"{len(bad)} of {len(endings)} {many} did not end gracefully"
    elif not endings:
        head = "no Pod was ended"
    parts = [f"### {'❌' if bad or error else '✅'} lastcall run: {head}\n"]
    if error:
        parts.append(f"{checks.plain(error)}\n")
    rows = [
        (
            f"{each.pod.namespace}/{each.pod.name}",
            outcome_words(each),
            _seconds(each.grace_seconds),
            _seconds(each.gone),
        )
        for each in endings
    ]
    if rows:
        parts.append(checks.table(("Pod", f"Kubernetes {kubernetes_version}", "grace period", "DELETE to gone"), rows))
    for each in bad:
        items = [verdict(each), *filter(None, [why(each)]), *_advice(each)]
        name = checks.plain(_name(each))
        parts.append(f"**{name} {outcome_words(each)}**\n\n" + "".join(f"- {checks.plain(one)}\n" for one in items))
    parts += [
        checks.folded(f"The story of {each.pod.name}", checks.block(plain_text([each], WIDTH)))
        for each in (*bad, *(each for each in endings if each not in bad))
    ]
    return checks.shortened(parts)


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.3g} s"


def _name(ending: Ending) -> str:
    return f"{ending.pod.namespace}/{ending.pod.name}"
