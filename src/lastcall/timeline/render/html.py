"""The story as one HTML file that needs nothing else: no network, no fonts; without scripts it is a still picture.

Everything comes through `markup.tag`, which escapes. Should that ever fail, the page's Content-Security-Policy lets
only the style and the script run whose hashes it names.
"""

import base64
import hashlib
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import resources

from lastcall.timeline.findings.restarts import last_words
from lastcall.timeline.picture.lanes import decide_picture
from lastcall.timeline.render.bars import budget_parts
from lastcall.timeline.render.html_picture import SYMBOLS, draw
from lastcall.timeline.render.html_records import Rules, output_list, steps_table
from lastcall.timeline.render.markup import Markup, percent, prose, svg, tag
from lastcall.timeline.story import OVERRUN_SECONDS, Budget, ContainerEnding, Ending
from lastcall.timeline.verdict import is_ongoing, outcome_words, verdict, why
from lastcall.timeline.wording import seconds

OUTPUT_BYTES = 240_000
"""Of a page, for the lines that all containers printed."""

MOST_MARKS = 4000
"""In a page, of all Pods together."""

_BUDGET_WORDS = {
    "preStop": "preStop hook",
    "waiting": "waiting for its turn",
    "drain": "drain",
    "unused": "unused",
    "overrun": "over the grace period",
}
_COUNTED = {
    "killed": "killed",
    "crashed": "crashed",
    "restarted": "restarted by a probe",
    "hookFailed": "with a failed preStop hook",
    "unknown": "with an end that is not known",
    "ending": "still ending",
    "graceful": "ended gracefully",
}
"""The worst first."""

_SEVERITIES = {"info": "Note", "warning": "Warning", "problem": "Problem"}


def html_page(
    endings: Sequence[Ending],
    *,
    kubernetes_version: str,
    lastcall_version: str,
    error: str = "",
    pods: int | None = None,
) -> str:
    """The whole page. `error` is the world's error that cut the story short, "" without one.

    `pods`: how many Pods these endings are of, when each ended once under every version of `kubernetes_version`.
    """
    style, script = _asset("story.css"), _asset("story.js")
    title = _title(endings) if pods is None else _title_of_versions(endings, pods, kubernetes_version)
    rules = Rules()
    many = len(endings) > 1
    body = [
        tag(
            "header",
            tag("p", "lastcall", class_="mark"),
            tag("p", _about(endings, kubernetes_version, lastcall_version)),
            class_="top",
        ),
        tag(
            "main",
            tag("h1", title) if many or not endings else None,
            tag("p", error, class_="error", role="alert") if error else None,
            _overview(endings, "All Pods" if pods is None else "Every Pod under every version") if many else None,
            [_pod(ending, f"p{index}", rules, len(endings)) for index, ending in enumerate(endings, 1)],
            rules.section(),
        ),
        _legend(),
    ]
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    )
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content=f"lastcall {lastcall_version}"),
        tag("title", f"{title} · lastcall"),
        tag("style", Markup(style)),
    ]
    page = tag("html", tag("head", head), tag("body", SYMBOLS, body, tag("script", Markup(script))), lang="en")
    return f"<!doctype html>\n{page}\n"


def _asset(name: str) -> str:
    return (resources.files("lastcall.timeline.render") / "assets" / name).read_text("utf-8")


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _title(endings: Sequence[Ending]) -> str:
    if not endings:
        return "No Pod was deleted"
    if len(endings) == 1:
        return f"{endings[0].pod.name} {outcome_words(endings[0])}"
    return f"{len(endings)} Pods: {_counted(endings)}"


def _title_of_versions(endings: Sequence[Ending], pods: int, versions: str) -> str:
    what = "1 Pod" if pods == 1 else f"{pods} Pods"
    return f"{what} under Kubernetes {versions}: {_counted(endings) or 'none was deleted'}"


def _counted(endings: Sequence[Ending]) -> str:
    counts = Counter("ending" if is_ongoing(ending) else ending.outcome for ending in endings)
    return ", ".join(f"{counts[outcome]} {words}" for outcome, words in _COUNTED.items() if counts[outcome])


def _about(endings: Sequence[Ending], kubernetes_version: str, lastcall_version: str) -> str:
    parts = [f"rules of Kubernetes {kubernetes_version}", f"lastcall {lastcall_version}"]
    wall = min((e.deleted_at_ns for e in endings if e.deleted_at_ns is not None), default=None)
    if wall is not None:
        parts.insert(0, datetime.fromtimestamp(wall / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC"))
    return " · ".join(parts)


# -- overview -----------------------------------------------------------------------------------------------------


def _overview(endings: Sequence[Ending], caption: str) -> Markup:
    """All Pods on one true time axis, from the first DELETE on."""
    zero = min(ending.zero_ns for ending in endings)
    ends = [_offset(e, zero) + max(_end(e), 0.0) for e in endings]
    last = max([*ends, 0.001])
    rows = []
    for index, ending in enumerate(endings, 1):
        rows.append(
            tag(
                "tr",
                tag(
                    "th", tag("a", ending.pod.name, href=f"#p{index}"), tag("small", ending.pod.namespace), scope="row"
                ),
                tag("td", _badge(ending)),
                tag("td", _mini(ending, _offset(ending, zero), last), class_="mini"),
                tag("td", ", ".join(_exit(c) for c in ending.containers if c.started)),
                tag("td", seconds(ending.gone) if ending.gone is not None else "not seen", class_="num"),
            )
        )
    head = ("Pod", "how it ended", f"0 to {seconds(last)}, true to scale", "exit codes", "gone after")
    table = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", [tag("th", name, scope="col") for name in head])),
        tag("tbody", rows),
        class_="overview",
    )
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _offset(ending: Ending, zero_ns: int) -> float:
    return (ending.zero_ns - zero_ns) / 1e9


def _end(ending: Ending) -> float:
    ends = [ending.gone, *(c.exited_at for c in ending.containers), *(e.at for e in ending.entries[-1:])]
    return max((end for end in ends if end is not None), default=0.0)


def _mini(ending: Ending, offset: float, last: float) -> Markup:
    parts: list[Markup] = []

    def bar(kind: str, start: float, end: float) -> None:
        x, width = (offset + start) / last, max(0.0, end - start) / last
        parts.append(svg("rect", class_=f"bar b-{kind}", x=percent(x), width=percent(width), y=3, height=12))

    bar("object", 0.0, max(_end(ending), 0.0))
    said = []
    main = next((c for c in ending.containers if ending.budget and c.name == ending.budget.container), None)
    if main is not None:
        hook = main.pre_stop
        if hook and hook.started_at is not None and hook.finished_at is not None:
            bar("preStop", hook.started_at, hook.finished_at)
            said.append(f"hook {seconds(hook.seconds)}")
        if main.term_at is not None and main.exited_at is not None:
            bar("drain", main.term_at, main.exited_at)
            said.append(f"drain {seconds(main.drain_seconds)}")
        if main.sigkilled and main.exited_at is not None:
            x = percent((offset + main.exited_at) / last)
            parts.append(tag("svg", svg("path", class_="kill", d="M-5 4 5 14M5 4-5 14"), x=x, overflow="visible"))
            said.append("SIGKILL")
    return tag(
        "svg",
        tag("title", ", ".join(said) or "no container had to be stopped"),
        parts,
        role="img",
        width="100%",
        height=18,
    )


def _exit(c: ContainerEnding) -> str:
    return f"{c.name} {'?' if c.exit_code is None else c.exit_code}"


# -- one Pod ------------------------------------------------------------------------------------------------------


def _badge(ending: Ending) -> Markup:
    words = outcome_words(ending)
    kind = "unknown" if is_ongoing(ending) else ending.outcome
    return tag("span", words, class_=f"badge o-{kind}")


def _pod(ending: Ending, page_id: str, rules: Rules, pods: int) -> Markup:
    pod = ending.pod
    heading = tag(
        "h1" if pods == 1 else "h2",
        tag("span", f"{pod.namespace}/", class_="ns"),
        pod.name,
        " ",
        _badge(ending),
        id=page_id,
    )
    picture = decide_picture(ending, most=max(60, MOST_MARKS // max(10, pods)))
    title = f"Timeline of {pod.name}. Every record in it is a row of the table of steps too."
    drawing = draw(picture, page_id, title, float(ending.grace_seconds) if ending.grace_seconds is not None else None)
    output = output_list(ending, OUTPUT_BYTES // max(1, pods))
    figure = tag(
        "figure",
        tag("div", class_="transport", role="group", aria_label="Play"),
        tag("div", drawing.labels, tag("div", drawing.plot, class_="view"), class_="lanes"),
        tag(
            "figcaption",
            "Time is stretched where much happens: the marks on the axis are the clock's. Numbers are those of the "
            "steps below; an arrow leads from a cause to its effect.",
        ),
        class_="timeline",
        id=f"{page_id}t",
    )
    side = tag(
        "div",
        tag("div", class_="card", aria_label="The chosen record"),
        tag("section", tag("h3", "Output"), output, class_="output") if output else None,
        class_="side",
    )
    return tag(
        "section",
        heading,
        tag("p", because, class_="why") if (because := why(ending)) else None,
        tag("p", verdict(ending), class_="verdict"),
        tag("p", _facts_line(ending), class_="about"),
        _findings(ending),
        _budget(ending.budget, len(ending.containers)),
        tag("a", "Skip the timeline", href=f"#{page_id}s", class_="skip"),
        tag("div", figure, side, class_="stage"),
        _containers(ending),
        [
            tag("section", tag("h3", heading), tag("pre", "\n".join(lines), class_="last", tabindex="0"))
            for heading, lines in last_words(ending)
        ],
        tag("h3", "Steps", id=f"{page_id}s", tabindex="-1"),
        steps_table(ending, picture, page_id, rules),
        class_="pod",
        aria_labelledby=page_id,
    )


def _facts_line(ending: Ending) -> str:
    said = [f"on {ending.pod.node}"] if ending.pod.node else []
    if ending.grace_seconds is not None:
        said.append(f"grace period {ending.grace_seconds} s")
    if ending.pod.phase:
        said.append(f"phase {ending.pod.phase}")
    if ending.gone is not None:
        said.append(f"gone {seconds(ending.gone)} after the DELETE")
    if ending.overhead is not None:
        said.append(f"{seconds(ending.overhead)} of that neither hook nor drain")
    said.append(f"uid {ending.pod.uid}")
    return " · ".join(said)


def _findings(ending: Ending) -> Markup | None:
    """The worst first; what is true of several containers once."""
    about: dict[tuple[str, str, str], list[str]] = {}
    for each in sorted(ending.findings, key=lambda each: ("problem", "warning", "info").index(each.severity)):
        about.setdefault((each.severity, each.text, each.advice), []).append(each.container)
    items = []
    for (severity, sentence, advice), containers in about.items():
        several = f" ({', '.join(filter(None, containers))})" if len(containers) > 1 else ""
        more = (tag("br"), "→ ", tag("span", prose(advice), class_="advice")) if advice else ()
        items.append(
            tag("li", tag("b", _SEVERITIES[severity]), " ", prose(sentence), several, *more, class_=f"f-{severity}")
        )
    items += [
        tag("li", tag("b", "Not known"), " ", prose(sentence), class_="f-unknown") for sentence in ending.not_known
    ]
    return tag("ul", items, class_="findings") if items else None


def _budget(budget: Budget | None, containers: int) -> Markup | None:
    if budget is None:
        return None
    parts = budget_parts(budget)
    total = sum(value for _, value in parts) or 1.0
    bars, words, x = [], [], 0.0
    for name, value in parts:
        share = value / total
        bars.append(svg("rect", class_=f"bar b-{name}", x=percent(x), width=percent(share), height=26))
        words.append(
            tag(
                "li",
                tag("i", class_=f"key b-{name}"),
                f"{_BUDGET_WORDS[name]} ",
                tag("b", seconds(value)),
                class_=f"l-{name}",
            )
        )
        x += share
    limit = None
    if budget.overrun >= OVERRUN_SECONDS:
        limit = svg(
            "line",
            class_="limit",
            x1=percent(1 - budget.overrun / total),
            x2=percent(1 - budget.overrun / total),
            y1=0,
            y2=26,
        )
    of = f" of {budget.container}, which ended last" if containers > 1 else ""
    said = ", ".join(f"{_BUDGET_WORDS[name]} {seconds(value)}" for name, value in parts)
    return tag(
        "div",
        tag("h3", f"Grace period {budget.grace:g} s", tag("small", of)),
        tag(
            "svg",
            tag("title", f"Grace period of {budget.grace:g} s{of}: {said}"),
            bars,
            limit,
            role="img",
            width="100%",
            height=26,
        ),
        tag("ul", words),
        class_="budget",
    )


def _containers(ending: Ending) -> Markup | None:
    if not ending.containers:
        return None
    head = ("container", "ended with", "after its stop signal", "preStop hook", "PID 1")
    rows = [
        tag(
            "tr",
            tag("th", c.name, tag("small", c.kind) if c.kind != "container" else None, scope="row"),
            [tag("td", cell) for cell in _cells(c, is_ongoing(ending))],
        )
        for c in ending.containers
    ]
    table = tag(
        "table",
        tag("caption", "Containers"),
        tag("thead", tag("tr", [tag("th", name, scope="col") for name in head])),
        tag("tbody", rows),
    )
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label="Containers")


def _cells(c: ContainerEnding, ongoing: bool) -> tuple[str, ...]:
    if not c.started:
        return ("never started", "", "", "")
    unknown = "still runs" if ongoing else "not known"
    ended = unknown if c.exit_code is None else f"exit code {c.exit_code}" + (f" ({c.reason})" if c.reason else "")
    if c.signal:
        ended += f", by {c.signal}" + (f": {c.killed_by}" if c.killed_by else "")
    after = ""
    if c.term_at is not None and c.exited_at is not None and c.exited_at >= c.term_at:
        after = f"{seconds(c.drain_seconds)} after {c.stop_signal}"
    elif c.exited_at is not None and c.exited_at < 0:
        after = f"{seconds(-c.exited_at)} before the DELETE"
    hook = ""
    if c.pre_stop is not None:
        hook = (
            "not run"
            if c.pre_stop.outcome == "skipped"
            else f"{c.pre_stop.handler} {c.pre_stop.outcome}, {seconds(c.pre_stop.seconds)}"
        )
    state = f"{c.stop_signal} {c.disposition}" if c.disposition else ""
    return (ended, after, hook, ", ".join(each for each in (c.exe, state) if each))


def _legend() -> Markup:
    keys = [
        ("running", "running"),
        ("preStop", "preStop hook"),
        ("waiting", "waits for its turn"),
        ("drain", "stop signal to exit"),
        ("overrun", "over the grace period"),
        ("ready", "endpoint ready"),
        ("serving", "serving while terminating"),
        ("terminating", "terminating, not serving"),
    ]
    items = [tag("li", tag("i", class_=f"key b-{kind}"), words) for kind, words in keys]
    evidence = tag(
        "p",
        "Every record was observed by the process that wrote it, unless it says inferred (concluded from something "
        "else) or predicted (simulated). Times count from the moment the API server accepted the DELETE.",
    )
    return tag("footer", tag("ul", items, class_="keys"), evidence, class_="bottom")
