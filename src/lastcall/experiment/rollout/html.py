"""A rollout's experiments as one HTML file that needs nothing else: requests over the swim lanes of the Pods' ends.

No script and no network. All text comes through `markup.tag`, which escapes; the page's Content-Security-Policy lets
only the styles in whose hashes it names.
"""

import base64
import hashlib
from collections import Counter
from collections.abc import Sequence
from importlib import resources

from lastcall._version import __version__
from lastcall.endings import outcome_words
from lastcall.endings.render import Markup, percent, plain_text, prose, tag
from lastcall.experiment.rollout.lost import alike, tell_lost
from lastcall.experiment.rollout.old_pods import worst_first
from lastcall.experiment.rollout.pool import pool
from lastcall.experiment.rollout.report import (
    LATENCY_HEAD,
    latency_rows,
    tell_left,
    tell_moves,
    told_head,
    yaml_lines,
)
from lastcall.experiment.rollout.result import Result
from lastcall.experiment.rollout.scale import Scale
from lastcall.experiment.rollout.strips import Strip, strips
from lastcall.traffic import (
    LOST_MEANS,
    WHY,
    Account,
    LostRequest,
    Moment,
    PodLife,
    Thresholds,
    check,
    percentage,
    upper_bound,
)

MOST_LOST = 300
"""Rows of lost requests, those that are alike in one; the JSON has all."""
MARKS = 500
"""As many marks side by side in a lane: what is closer together is one."""
_MARKS_FROM = 25
"""Pixels: below the Pod's bar, where what it gets is drawn."""
_STORY_WIDTH = 110
_LANE = 40
"""The height of a Pod's lane, in pixels."""
_BADGES = {"nothing lost": "o-graceful", "requests lost": "o-killed", "inconclusive": "o-hookFailed"}
_KEYS = (
    ("b-object", "ready"),
    ("b-preStop", "preStop hook"),
    ("b-drain", "from the stop signal to its exit"),
    ("b-ready", "gets new connections (below the bar)"),
    ("k-answered", "requests that were answered"),
    ("k-moved", "continued elsewhere by their clients, as the server asked (dashed outline)"),
    ("k-lost", "requests that were lost (outlined)"),
)
_STYLE = """
.strip-row { display: grid; grid-template-columns: minmax(120px, 220px) minmax(0, 1fr); border-top: 1px solid var(--grid); }
.strip-row > :first-child { padding: 4px 10px 4px 0; font-size: 13px; overflow-wrap: anywhere; align-self: center; }
.strip-row svg { display: block; width: 100%; overflow: hidden; }
.picture { margin: 18px 0 0; overflow-x: auto; } .picture > div { min-width: 640px; }
.picture .keys { gap: 2px 18px; display: flex; flex-wrap: wrap; font-size: 13px; color: var(--muted); margin: 8px 0 0; }
.k-answered { fill: var(--edge); background: var(--edge); } .k-lost { fill: var(--kill); background: var(--kill); }
.k-moved { fill: var(--hookFailed); background: var(--hookFailed); } .means { display: block; font-size: 12px; color: var(--muted); }
.k-lost { stroke: var(--ink); stroke-width: 1.5; border: 1.5px solid var(--ink); }
.k-moved { stroke: var(--ink); stroke-dasharray: 2 2; border: 1px dashed var(--ink); }
.zero-line { stroke: var(--edge); stroke-dasharray: 3 3; } .grid-line { stroke: var(--grid); }
.lost { stroke: var(--kill); stroke-width: 2; } .killed-mark { fill: var(--kill); }
.tick { font-size: 11px; fill: var(--muted); text-anchor: middle; }
section > h3 { margin: 18px 0 0; }
pre { margin: 8px 0 0; padding: 10px 14px; border: 1px solid var(--line); border-radius: 8px; background: var(--lane); overflow-x: auto; font-size: 13px; }
td, th { text-align: left; vertical-align: top; }
.strip-row .many { display: block; font-size: 12px; color: var(--muted); } .strip-row .many b { color: var(--kill); font-weight: 650; }
@media (max-width: 720px) {
  .picture > div { min-width: 0; } .strip-row { grid-template-columns: minmax(0, 1fr); padding-bottom: 4px; }
  .strip-row > :first-child { padding: 4px 0 2px; } .strip-row .many { display: inline; margin-left: 8px; }
  .scroll th, .scroll td { overflow-wrap: break-word; } .scroll .wide { min-width: 230px; }
}
"""  # noqa: E501


def html_page(results: Sequence[Result], thresholds: Thresholds | None = None) -> str:
    """Return the whole page, a section for each experiment."""
    story = (resources.files("lastcall.endings.render") / "assets" / "story.css").read_text("utf-8")
    title = f"{results[0].what}: {results[0].judgement.verdict}"
    policy = f"default-src 'none'; style-src {_hash(story)} {_hash(_STYLE)}; base-uri 'none'; form-action 'none'"
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content=f"lastcall {__version__}"),
        tag("title", f"{title} · lastcall"),
        tag("style", Markup(story)),
        tag("style", Markup(_STYLE)),
    ]
    body = [
        tag(
            "header",
            tag("p", "lastcall", class_="mark"),
            tag("p", f"rollout under load · lastcall {__version__}"),
            class_="top",
        ),
        tag("main", [_limits(results, thresholds or Thresholds()), [_experiment(each) for each in results]]),
    ]
    return f"<!doctype html>\n{tag('html', tag('head', head), tag('body', body), lang='en')}\n"


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _limits(results: Sequence[Result], thresholds: Thresholds) -> Markup | None:
    """What several runs have in common, and what the limits say of those that decide."""
    last = [each for each in results if each.advised is results[-1].advised]
    found = pool(last)
    lines = [each.sentence for each in check(thresholds, found)]
    if len(last) > 1:
        told = f"{found.lost} of {found.total} requests lost, at most {percentage(found.upper_bound)} (95 %)"
        left_out = f"; {found.inconclusive} inconclusive, not counted" if found.inconclusive else ""
        lines.insert(0, f"{len(last)} runs together: {told}{left_out}")
    return tag("section", [tag("p", line, class_="note") for line in lines]) if lines else None


def _experiment(result: Result) -> Markup:
    found, judgement = result.account, result.judgement
    rates = ", ".join(f"{count} {kind}" for kind, count in found.totals.items())
    about = (
        f"{told_head(result)}; {found.total} requests to Service {result.service} from the disruption on ({rates}); it "
        f"took {result.seconds:.1f} s; control period before: {found.control_lost} of {found.control_total} lost"
    )
    patch = judgement.patch
    which = f"{' with the advice applied' if result.advised else ''}{f', run {result.run}' if result.run > 1 else ''}"
    return tag(
        "section",
        tag(
            "h1",
            f"{result.what}{which} ",
            tag("span", judgement.verdict, class_=f"badge {_BADGES[judgement.verdict]}"),
        ),
        tag("p", prose(judgement.sentence), class_="verdict"),
        tag("p", about, class_="about"),
        [tag("p", note.told, class_="note") for note in result.notes],
        [tag("p", line, class_="note") for line in tell_moves(found)],
        [
            tag("p", f"Also, for {each.saves}: ", prose(each.sentence), class_="note")
            for each in (() if result.unheard else judgement.advice[1:])
        ],
        _picture(result),
        [tag("h3", "The patch"), tag("pre", tag("code", _lines(yaml_lines(patch))))] if patch else None,
        None if result.unheard else _latencies(result),
        _causes(found) if found.lost else None,
        _pods(found, result.lives) if found.lost and not found.not_followed else None,
        _lost(found.lost) if found.lost else None,
        _stories(result),
        class_="pod",
    )


def _stories(result: Result) -> list[Markup]:
    """How each old Pod ended, to open."""
    return [
        tag(
            "details",
            tag("summary", f"The story of {each.pod.name}: {outcome_words(each)}"),
            tag("pre", tag("code", _lines(plain_text([each], _STORY_WIDTH).splitlines()))),
        )
        for each in worst_first(result.endings)
    ]


def _lines(lines: Sequence[str]) -> list[Markup]:
    """Each escaped for itself: escaping shows line ends as escapes."""
    return [Markup(tag("span", line) + "\n") for line in lines]


# -- the picture ---------------------------------------------------------------------------------------------------


def _picture(result: Result) -> Markup:
    began = result.began
    times = [each.sent - began for each in result.outcomes] + [each.finished - began for each in result.outcomes]
    scale = Scale(min(times, default=0.0), max(times, default=1.0))
    lost = result.account.lost
    lives = [each for each in result.lives if each.name and (each.ready is not None or each.deleted is not None)]
    known = {each.name for each in lives}
    rows = [_row(each.label, each.content, each.height, each) for each in strips(result, scale)]
    rows += [_row(each.name, _lane(each, began, lost, scale), _LANE) for each in lives]
    nowhere = [each for each in lost if each.pod not in known]
    if nowhere:
        where = "Pod not known" if result.account.not_followed else "no Pod"
        rows.append(_row(where, _marks(nowhere, scale), _LANE))
    labels = [
        tag("text", f"{at:g} s", x=percent(scale.at(at)), y=14, class_="tick")
        for at in scale.ticks()
        if 0.02 < scale.at(at) < 0.98
    ]
    rows.append(_row("since the disruption", labels, 20))
    keys = [tag("li", tag("span", class_=f"key {name}"), words) for name, words in _KEYS if _is_shown(name, result)]
    return tag("figure", tag("div", rows), tag("ul", keys, class_="keys"), class_="picture")


def _is_shown(key: str, result: Result) -> bool:
    if key == "b-preStop":
        return any(life.hook is not None for life in result.lives)
    return key != "k-moved" or bool(result.account.moved)


def _row(name: str, content: object, height: int, strip: Strip | None = None) -> Markup:
    picture = tag("svg", content, width="100%", height=height, role="img", aria_label=name)  # type: ignore[arg-type]
    many = None
    if strip is not None:
        lost = tag("b", f", {strip.lost} lost") if strip.lost else None
        before = f", and {strip.before} in the control period" if strip.before else None
        many = tag("span", f"{strip.total}", lost, before, class_="many")
    return tag("div", tag("div", name, many), picture, class_="strip-row")


def _lane(life: PodLife, began: float, lost: Sequence[LostRequest], scale: Scale) -> list[Markup | None]:
    def at(moment: Moment | None, default: float) -> float:
        return default if moment is None else moment.latest - began

    end = at(life.exited, scale.end)
    drain = at(life.signalled, end)
    # Without a hook there is nothing between the DELETE and the stop signal but the kubelet's way to it.
    hook = min(at(life.hook, drain), drain)
    drawn = [
        *(scale.line(tick, _LANE, "grid-line") for tick in scale.ticks()),
        scale.rect(at(life.ready, scale.start), hook, 7, 16, "b-object", "ready"),
        scale.rect(hook, drain, 7, 16, "b-preStop", f"preStop hook, {drain - hook:.2f} s"),
        scale.rect(drain, end, 7, 16, "b-drain", f"{end - drain:.2f} s from the stop signal to its exit"),
    ]
    if life.routed is not None:
        until = at(life.unrouted, scale.end)
        words = "gets new connections" if life.unrouted is None else f"gets new connections until {until:.2f} s"
        drawn.append(scale.rect(life.routed.latest - began, until, 27, 5, "b-ready", words))
    if life.killed and life.exited is not None:
        drawn.append(
            tag("circle", tag("title", "SIGKILL"), cx=percent(scale.at(end)), cy=15, r=5, class_="killed-mark")
        )
    marks = _marks([each for each in lost if _is_of(each, life)], scale)
    return [*drawn, *marks, scale.line(0.0, _LANE, "zero-line")]


def _is_of(lost: LostRequest, life: PodLife) -> bool:
    """A StatefulSet's Pods have the names of those before them."""
    if lost.pod != life.name:
        return False
    where = lost.outcome.served_by
    return where == life.ip if where else life.is_named(lost.outcome.sent)


def _marks(lost: Sequence[LostRequest], scale: Scale) -> list[Markup]:
    wide = (scale.end - scale.start) / MARKS
    marks: dict[int, list[LostRequest]] = {}
    for each in lost:
        marks.setdefault(int((each.at - scale.start) / wide), []).append(each)
    drawn = []
    for those in marks.values():
        more = f" (and {len(those) - 1} more until {those[-1].at:.3f} s)" if len(those) > 1 else ""
        title = f"{those[0].at:.3f} s: {tell_lost(those[0])}{more}"
        drawn.append(scale.line(those[0].at, _LANE - 2, "lost", title, y=_MARKS_FROM))
    return drawn


# -- tables --------------------------------------------------------------------------------------------------------


def _causes(found: Account) -> Markup:
    counts = Counter((each.outcome.kind, each.outcome.lost, each.cause) for each in found.lost)
    rows = [
        tag(
            "tr",
            tag("td", count, class_="num"),
            tag("td", percentage(upper_bound(count, found.totals[kind])), class_="num"),
            tag("td", kind),
            tag("td", how, tag("span", LOST_MEANS[how], class_="means") if how else None),
            tag("td", WHY[cause], class_="wide"),
        )
        for (kind, how, cause), count in counts.most_common()
    ]
    return _table("Why they were lost", ("lost", "at most (95 %)", "kind of request", "how", "why"), rows)


def _latencies(result: Result) -> Markup | None:
    rows = [
        tag("tr", [tag("td", cell, class_="num" if index > 1 else None) for index, cell in enumerate(row)])
        for row in latency_rows(result)
    ]
    return _table("How long good answers took", LATENCY_HEAD, rows) if rows else None


def _pods(found: Account, lives: Sequence[PodLife]) -> Markup:
    left = {life.name: tell_left(life) for life in lives}
    rows = [
        tag(
            "tr",
            tag("td", each.lost, class_="num"),
            tag("td", percentage(each.upper_bound), class_="num"),
            tag("td", each.total, class_="num"),
            tag("td", f"{each.pod}{left.get(each.pod, '')}"),
        )
        for each in found.pods
    ]
    return _table("At which Pod", ("lost", "at most (95 %)", "of", "Pod"), rows)


def _lost(lost: Sequence[LostRequest]) -> Markup:
    groups = alike(lost)
    rows = [
        tag(
            "tr",
            tag("td", f"{each.first.at:.3f} s", class_="num"),
            tag(
                "td",
                tell_lost(each.first),
                tag("span", each.more, class_="means") if each.more else None,
                class_="wide",
            ),
        )
        for each in groups[:MOST_LOST]
    ]
    hidden = sum(each.count for each in groups[MOST_LOST:])
    more = f" (all but {hidden}, which the JSON has)" if hidden else ""
    return _table(f"The lost requests{more}", ("known at", "what became of it"), rows)


def _table(caption: str, head: Sequence[str], rows: Sequence[Markup]) -> Markup:
    table = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", [tag("th", name, scope="col") for name in head])),
        tag("tbody", rows),
    )
    return tag("div", table, class_="scroll", tabindex="0")
