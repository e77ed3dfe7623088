"""What can be played without a cluster: the tour with its runs of the virtual cluster, and sample stories.

`python -m make_site.playing FOLDER` writes the tour into a folder of its own.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import make_tour
import orjson
from story_samples import samples

from lastcall._version import __version__
from lastcall.records.language import ENGLISH
from lastcall.ui.saved_stories import html_page
from lastcall.ui.texts import texts

STORIES = {
    "graceful": "A Pod that ends well: hook, SIGTERM, drain, exit code 0.",
    "sigkill": "A Pod that does not end in time: SIGKILL when the grace period is over, exit code 137.",
    "sidecar": "Two containers and a sidecar, which is stopped after them.",
    "overrun": "A preStop hook that takes all of the grace period.",
    "several": "Four Pods that were deleted together.",
}
"""Sample → what it shows."""

TOUR_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>How a Pod stops: the tour · lastcall</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="ui.css"></head>
<body><div id="app"></div>
<noscript><main class="closed"><h1>This page needs JavaScript</h1>
<p><a href="LESSON">The lesson in words</a> needs none.</p></main></noscript>
<script src="data.js" defer></script><script src="ui.js" defer></script></body></html>
"""


def tour_files(lesson: str = "../lesson.html") -> dict[str, str]:
    """Name in the folder tour/ → content. `lesson` is the address of the lesson in words."""
    assets = make_tour.ROOT / "src/lastcall/ui/assets"
    data = orjson.dumps(make_tour.tour_data()).decode()
    return {
        "index.html": TOUR_PAGE.replace("LESSON", lesson),
        "data.js": f"globalThis.LASTCALL_TOUR = {data};\n",
        **{name: (assets / name).read_text("utf-8") for name in ("ui.js", "tour.js", "ui.css")},
    }


def story_files() -> dict[str, str]:
    """Name in the folder stories/ → a page that needs nothing else."""
    found = samples()
    return {
        f"{name}.html": html_page(found[name], kubernetes_version="1.37", lastcall_version=__version__)
        for name in STORIES
    }


def frame(address: str, title: str) -> list[str]:
    return [f'<iframe class="played" src="{address}" title="{title}" loading="lazy"></iframe>', ""]


def tour_page() -> str:
    links = [f"[{texts()['lesson']['link'][language]}]({name})" for language, name in lesson_names().items()]
    lines = [
        "# The tour: how a Pod stops",
        "",
        "A lesson of small steps, in English and Japanese. Here it plays what the virtual cluster predicts. With "
        "`lastcall up --detach` and `lastcall ui --open` each step runs on real Pods ([the live page](ui.md)).",
        "",
        " · ".join(["[In the whole window](tour/index.html)", *links]),
        "",
    ]
    return "\n".join([*lines, *frame("tour/index.html", "The tour")])


def stories_page() -> str:
    lines = [
        "# Sample stories",
        "",
        "Pages of `lastcall story --output html`, each a single file. They were made in virtual time: what "
        "runtime and containers did is predicted, and says so.",
        "",
    ]
    for name, said in STORIES.items():
        lines += [f"## {name}", "", f"{said} [Open it in the whole window](stories/{name}.html)", ""]
        lines += frame(f"stories/{name}.html", f"The story {name}")
    return "\n".join(lines)


def lesson_names() -> dict[str, str]:
    """Map each language of the catalogue to the file in docs/ that has the lesson in words."""
    return {each: "lesson.md" if each == ENGLISH else f"lesson.{each}.md" for each in texts()["name"]}


def lesson_page(language: str) -> str:
    """Return the tour's texts as a document, for search and for readers without JavaScript."""
    steps: Any = orjson.loads(make_tour.LESSON.read_bytes())["steps"]
    compared: Any = orjson.loads(make_tour.VERSIONS_FILE.read_bytes())["runs"]
    words = {key: text[language] for key, text in texts()["lesson"].items()}
    lines = [f"# {words['title']}", ""]
    chapter = ""
    for step in steps:
        if step["chapter"] != chapter:
            chapter = step["chapter"]
            lines += [f"## {texts()['chapters'][chapter][language]}", ""]
        says = texts()["steps"][step["id"]]
        lines += [f"### {says['title'][language]}", "", says["text"][language].replace("<", "&lt;"), ""]
        lines += [f"- {words['says']}: {texts()['claims'][claim]['says'][language]}" for claim in step["claims"]]
        lines += [f"- {words['rule']}: `{step['rule']}`", ""]
        if step.get("versions"):
            lines += [f"{words['versions']}:", "", *_table(compared[step["run"]], language), ""]
    return "\n".join(lines)


def _table(found: Mapping[str, Mapping[str, Any]], language: str) -> list[str]:
    lines = ["| Kubernetes | preStop | SIGTERM | SIGKILL | exit code | phase |", "|---|---|---|---|---|---|"]
    for version, run in found.items():
        if "error" in run:
            lines.append(f"| {version} | {run['error'].get(language, run['error'][ENGLISH])} | | | | |")
            continue
        hook = f"{run['hook'][0]} s to {run['hook'][1]} s" if run["hook"] else "-"
        term, kill = (f"{run[key]} s" if run[key] is not None else "-" for key in ("term", "kill"))
        lines.append(f"| {version} | {hook} | {term} | {kill} | {run['code']} | {run['phase']} |")
    return lines


def static_tour() -> dict[str, str]:
    """Name in a folder of its own → content: the tour, and the lesson in words."""
    return {**tour_files("lesson.txt"), "lesson.txt": lesson_page(ENGLISH)}


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in static_tour().items():
        (folder / name).write_text(content, "utf-8")
    sys.stdout.write(f"{folder}/index.html\n")
