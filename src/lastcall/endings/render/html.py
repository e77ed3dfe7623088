"""The story as one HTML file that needs nothing else: no network, no fonts; without scripts it is a still picture.

Everything comes through `markup.tag`, which escapes. Should that ever fail, the page's Content-Security-Policy lets
only the style and the script run whose hashes it names.
"""

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import resources

from lastcall.endings.findings.restarts import last_words
from lastcall.endings.picture.lanes import KINDS, decide_picture
from lastcall.endings.render.bars import budget_parts
from lastcall.endings.render.html_picture import SYMBOLS, draw
from lastcall.endings.render.html_records import Rules, output_list, steps_table
from lastcall.endings.render.markup import Markup, percent, prose, svg, tag, telling
from lastcall.endings.story import OVERRUN_SECONDS, Budget, ContainerEnding, Ending
from lastcall.endings.verdict import is_ongoing, lives_on, outcome_words, verdict, why
from lastcall.records.language import ENGLISH, told
from lastcall.records.said import joined, tell
from lastcall.records.text import seconds

OUTPUT_BYTES = 240_000
"""Of a page, for the lines that all containers printed."""

MOST_MARKS = 4000
"""In a page, of all Pods together."""

_BUDGET_WORDS = {
    "preStop": tell("preStop hook"),
    "waiting": tell("waiting for its turn"),
    "drain": tell("drain"),
    "unused": tell("unused"),
    "overrun": tell("over the grace period"),
}
_COUNTED = {
    "killed": tell("killed"),
    "crashed": tell("crashed"),
    "restarted": tell("restarted by a probe"),
    "hookFailed": tell("with a failed preStop hook"),
    "unknown": tell("with an end that is not known"),
    "ending": tell("still ending"),
    "graceful": tell("ended gracefully"),
}
"""The worst first."""
_HOOKS = {
    "succeeded": tell("succeeded"),
    "failed": tell("failed"),
    "outlived": tell("outlived"),
    "interrupted": tell("cut off by the end of its container"),
    "unknown": tell("unknown"),
}
_DISPOSITIONS: dict[str, str] = {
    "handled": tell("handled"),
    "ignored": tell("ignored"),
    "blocked": tell("blocked"),
    "default": tell("default"),
}

_SEVERITIES = {"info": tell("Note"), "warning": tell("Warning"), "problem": tell("Problem")}
SCRIPT_WORDS = (
    tell("▶ Play"), tell("❚❚ Pause"), tell("Previous record"), tell("Next record"), tell("Speed"), tell("story pace"),
    tell("real time"),
    tell("4 × faster"), tell("10 × slower"), tell("100 × slower"),  # noqa: RUF001 - the sign for times
    tell("Zoom out"), tell("Zoom in"), tell("Fit"), tell("true to scale"), tell("Time"), tell("Records"),
    tell(
        "Point at a mark, or walk through them with ← → ↑ ↓. Space plays, + and − zoom, a drag along the time axis "  # noqa: RUF001 - as the button has it
        "scrubs."
    ),
    tell("because of "), tell(", led to "), tell("led to "), tell("observed"),
)  # fmt: skip
"""What `assets/story.js` says."""


def html_page(
    endings: Sequence[Ending],
    *,
    kubernetes_version: str,
    lastcall_version: str,
    error: str = "",
    pods: int | None = None,
    language: str = ENGLISH,
) -> str:
    """Return the whole page. `error` is the world's error that cut the story short, "" without one.

    `pods`: how many Pods these endings are of, when each ended once under every version of `kubernetes_version`.
    `language`: one of `timeline.language.LANGUAGES`.
    """
    with telling(language):
        return _page(endings, kubernetes_version, lastcall_version, error, pods, language)


def _page(
    endings: Sequence[Ending],
    kubernetes_version: str,
    lastcall_version: str,
    error: str,
    pods: int | None,
    language: str,
) -> str:
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
            _overview(endings, tell("All Pods") if pods is None else tell("Every Pod under every version"))
            if many
            else None,
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
        tag("title", joined([title, "lastcall"], " · ")),
        tag("style", Markup(style)),
    ]
    page = tag(
        "html",
        tag("head", head),
        tag("body", SYMBOLS, body, tag("script", Markup(script)), data_words=_script_words(language)),
        lang=language,
    )
    return f"<!doctype html>\n{page}\n"


def _script_words(language: str) -> str | None:
    """For the script: English → that language, as JSON; None where it has nothing to look up."""
    if language == ENGLISH:
        return None
    return json.dumps({str(each): str(told(each, language)) for each in SCRIPT_WORDS}, ensure_ascii=False)


def _asset(name: str) -> str:
    return (resources.files("lastcall.endings.render") / "assets" / name).read_text("utf-8")


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _title(endings: Sequence[Ending]) -> str:
    if not endings:
        return tell("No Pod was deleted")
    if len(endings) == 1:
        return joined([endings[0].pod.name, outcome_words(endings[0])])
    return tell("$count Pods: $ends", count=len(endings), ends=_counted(endings))


def _title_of_versions(endings: Sequence[Ending], pods: int, versions: str) -> str:
    what = tell("1 Pod") if pods == 1 else tell("$count Pods", count=pods)
    ends = _counted(endings) or tell("none was deleted")
    return tell("$pods under Kubernetes $versions: $ends", pods=what, versions=versions, ends=ends)


def _counted(endings: Sequence[Ending]) -> str:
    counts = Counter("ending" if is_ongoing(ending) else ending.outcome for ending in endings)
    said = [joined([str(counts[outcome]), words]) for outcome, words in _COUNTED.items() if counts[outcome]]
    return joined(said, ", ")


def _about(endings: Sequence[Ending], kubernetes_version: str, lastcall_version: str) -> str:
    parts = [tell("rules of Kubernetes $version", version=kubernetes_version), f"lastcall {lastcall_version}"]
    wall = min((e.deleted_at_ns for e in endings if e.deleted_at_ns is not None), default=None)
    if wall is not None:
        parts = [datetime.fromtimestamp(wall / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC"), *parts]
    return joined(parts, " · ")


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
                tag("td", seconds(ending.gone) if ending.gone is not None else tell("not seen"), class_="num"),
            )
        )
    scale = tell("0 to $time, true to scale", time=seconds(last))
    head = ("Pod", tell("how it ended"), scale, tell("exit codes"), tell("gone after"))
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
    ends = [ending.gone, *(c.exit.at for c in ending.containers), *(e.at for e in ending.entries[-1:])]
    return max((end for end in ends if end is not None), default=0.0)


def _mini(ending: Ending, offset: float, last: float) -> Markup:
    parts: list[Markup] = []

    def bar(kind: str, start: float, end: float) -> None:
        x, width = (offset + start) / last, max(0.0, end - start) / last
        parts.append(svg("rect", class_=f"bar b-{kind}", x=percent(x), width=percent(width), y=3, height=12))

    bar("object", 0.0, max(_end(ending), 0.0))
    said: list[str] = []
    main = next((c for c in ending.containers if ending.budget and c.name == ending.budget.container), None)
    if main is not None:
        hook = main.hook
        if hook and hook.started_at is not None and hook.finished_at is not None:
            bar("preStop", hook.started_at, hook.finished_at)
            said.append(tell("hook $time", time=seconds(hook.seconds)))
        if main.stop.signal_at is not None and main.exit.at is not None:
            bar("drain", main.stop.signal_at, main.exit.at)
            said.append(tell("drain $time", time=seconds(main.drain_seconds)))
        if main.exit.sigkilled and main.exit.at is not None:
            x = percent((offset + main.exit.at) / last)
            parts.append(tag("svg", svg("path", class_="kill", d="M-5 4 5 14M5 4-5 14"), x=x, overflow="visible"))
            said.append("SIGKILL")
    return tag(
        "svg",
        tag("title", joined(said, ", ") or tell("no container had to be stopped")),
        parts,
        role="img",
        width="100%",
        height=18,
    )


def _exit(c: ContainerEnding) -> str:
    return f"{c.name} {'?' if c.exit.code is None else c.exit.code}"


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
    title = tell("Timeline of $pod. Every record in it is a row of the table of steps too.", pod=pod.name)
    drawing = draw(picture, page_id, title, float(ending.grace_seconds) if ending.grace_seconds is not None else None)
    output = output_list(ending, OUTPUT_BYTES // max(1, pods))
    figure = tag(
        "figure",
        tag("div", class_="transport", role="group", aria_label=tell("Play")),
        tag("div", drawing.labels, tag("div", drawing.plot, class_="view"), class_="lanes"),
        tag(
            "figcaption",
            tell(
                "Time is stretched where much happens: the marks on the axis are the clock's. Numbers are those of "
                "the steps below; an arrow leads from a cause to its effect."
            ),
        ),
        class_="timeline",
        id=f"{page_id}t",
    )
    side = tag(
        "div",
        tag("div", class_="card", aria_label=tell("The chosen record")),
        tag("section", tag("h3", tell("Output")), output, class_="output") if output else None,
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
        tag("a", tell("Skip the timeline"), href=f"#{page_id}s", class_="skip"),
        tag("div", figure, side, class_="stage"),
        _containers(ending),
        [
            tag("section", tag("h3", heading), tag("pre", "\n".join(lines), class_="last", tabindex="0"))
            for heading, lines in last_words(ending)
        ],
        tag("h3", tell("Steps"), id=f"{page_id}s", tabindex="-1"),
        steps_table(ending, picture, page_id, rules),
        class_="pod",
        aria_labelledby=page_id,
    )


def _facts_line(ending: Ending) -> str:
    said: list[str] = [tell("on $node", node=ending.pod.node)] if ending.pod.node else []
    if ending.grace_seconds is not None:
        said.append(tell("grace period $grace s", grace=ending.grace_seconds))
    if ending.pod.phase:
        said.append(tell("phase $phase", phase=ending.pod.phase))
    if ending.gone is not None:
        said.append(tell("gone $time after the DELETE", time=seconds(ending.gone)))
    if ending.overhead is not None:
        said.append(tell("$time of that neither hook nor drain", time=seconds(ending.overhead)))
    return joined([*said, f"uid {ending.pod.uid}"], " · ")


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
        tag("li", tag("b", tell("Not known")), " ", prose(sentence), class_="f-unknown")
        for sentence in ending.not_known
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
                _BUDGET_WORDS[name],
                " ",
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
    of = tell(" of $container, which ended last", container=budget.container) if containers > 1 else ""
    said = joined([joined([_BUDGET_WORDS[name], seconds(value)]) for name, value in parts], ", ")
    grace = f"{budget.grace:g}"
    return tag(
        "div",
        tag("h3", tell("Grace period $grace s", grace=grace), tag("small", of)),
        tag(
            "svg",
            tag("title", tell("Grace period of $grace s$of: $parts", grace=grace, of=of, parts=said)),
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
    head = (tell("container"), tell("ended with"), tell("after its stop signal"), tell("preStop hook"), "PID 1")
    rows = [
        tag(
            "tr",
            tag("th", c.name, tag("small", KINDS[c.kind]) if c.kind != "container" else None, scope="row"),
            [tag("td", cell) for cell in _cells(c, is_ongoing(ending), lives_on(ending))],
        )
        for c in ending.containers
    ]
    table = tag(
        "table",
        tag("caption", tell("Containers")),
        tag("thead", tag("tr", [tag("th", name, scope="col") for name in head])),
        tag("tbody", rows),
    )
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=tell("Containers"))


def _cells(c: ContainerEnding, ongoing: bool, lives: bool) -> tuple[str, ...]:
    if not c.started:
        return (tell("not started yet") if lives else tell("never started"), "", "", "")
    unknown = tell("still runs") if ongoing and not c.exit.elsewhere else tell("not known")
    ended = unknown if c.exit.code is None else tell("exit code $code", code=c.exit.code)
    if c.exit.reason and c.exit.code is not None:
        ended = joined([ended, f"({c.exit.reason})"])
    if c.exit.signal:
        by = f": {c.exit.killed_by}" if c.exit.killed_by else ""
        ended = tell("$end, by $signal$by", end=ended, signal=c.exit.signal, by=by)
    after: str = ""
    if c.stop.signal_at is not None and c.exit.at is not None and c.exit.at >= c.stop.signal_at:
        after = tell("$time after $signal", time=seconds(c.drain_seconds), signal=c.stop.signal)
    elif c.exit.at is not None and c.exit.at < 0:
        after = tell("$time before the DELETE", time=seconds(-c.exit.at))
    hook: str = ""
    if c.hook is not None and c.hook.outcome == "skipped":
        hook = tell("not run")
    elif c.hook is not None:
        outcome, time = _HOOKS[c.hook.outcome], seconds(c.hook.seconds)
        hook = tell("$handler $outcome, $time", handler=c.hook.handler, outcome=outcome, time=time)
    state = (
        joined([c.stop.signal, _DISPOSITIONS.get(c.process.disposition, c.process.disposition)])
        if c.process.disposition
        else ""
    )
    return (ended, after, hook, joined([c.process.exe or "", state], ", "))


def _legend() -> Markup:
    keys = [
        ("running", tell("running")),
        ("preStop", tell("preStop hook")),
        ("waiting", tell("waits for its turn")),
        ("drain", tell("stop signal to exit")),
        ("overrun", tell("over the grace period")),
        ("ready", tell("endpoint ready")),
        ("serving", tell("serving while terminating")),
        ("terminating", tell("terminating, not serving")),
    ]
    items = [tag("li", tag("i", class_=f"key b-{kind}"), words) for kind, words in keys]
    evidence = tag(
        "p",
        tell(
            "Every record was observed by the process that wrote it, unless it says inferred (concluded from something "
            "else) or predicted (simulated). Times count from the moment the API server accepted the DELETE."
        ),
    )
    return tag("footer", tag("ul", items, class_="keys"), evidence, class_="bottom")
