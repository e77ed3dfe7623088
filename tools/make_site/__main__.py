"""`python -m make_site [FOLDER]`: builds the site into FOLDER, by default build/site.

Fails where Zensical warns (strict), where a link leads nowhere, and where something would come from another host.
What Zensical reads is beside it, in FOLDER-source: `mkdocs.yml` and plain Markdown, which MkDocs builds unchanged.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml

from make_site import each, pages, playing, reference
from make_site.links import site_problems

ROOT = pages.ROOT
START = "---\ntitle: Real Kubernetes Pods on one Linux machine\n---\n"
"""Before the start page: its heading is the site's name, which says nothing as a title."""
CSS = """.played { width: 100%; height: 46rem; border: 1px solid var(--md-default-fg-color--lightest); }
.md-grid { max-width: 78rem; }
.md-typeset table:not([class]) td { min-width: 0; overflow-wrap: anywhere; }
@media (min-width: 60em) {
  .md-typeset table:not([class]) td:first-child code { word-break: normal; overflow-wrap: normal; }
}
.md-typeset h1 .headerlink { display: none; }
.md-typeset a:not(.headerlink):not(.md-button) { text-decoration: underline; }
[data-md-color-scheme="default"] {
  --md-code-hl-comment-color: #5f5f5f; --md-code-hl-generic-color: #5f5f5f; --md-code-hl-variable-color: #5f5f5f;
  --md-code-hl-operator-color: #5f5f5f; --md-code-hl-punctuation-color: #5f5f5f;
}
.md-tabs__link { opacity: 1; }
.md-tabs__item--active .md-tabs__link { font-weight: 700; }
.md-copyright, .md-copyright a { color: #d0d0d0 !important; }
@media print { .played { display: none; } }
"""
JS = """// What the theme leaves unnamed, and what scrolls can be reached by keyboard.
document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
const reach = (code) => { if (code.tabIndex < 0) code.tabIndex = 0; };
for (const code of document.querySelectorAll("pre > code, .md-typeset__scrollwrap")) {
  reach(code);
  new MutationObserver(() => reach(code)).observe(code, { attributeFilter: ["tabindex"] });
}
for (const head of document.querySelectorAll("th")) {
  if (!head.textContent.trim()) head.setAttribute("role", "presentation");
}
document.querySelectorAll("nav.md-nav[aria-labelledby]").forEach((nav, at) => {
  nav.removeAttribute("aria-labelledby");
  nav.removeAttribute("aria-expanded");
  nav.setAttribute("aria-label", `Pages ${at + 1}`);
});
"""

MADE = {
    "Commands": "reference/commands.md",
    "Records": "reference/records.md",
    "Findings": "reference/findings.md",
    "Lint rules": "rules/index.md",
    "Each pain": "pains/index.md",
    "JSON Schemas": "reference/schemas.md",
    "Python API": "reference/python.md",
}
"""The reference that is made of the code."""


def source(work: Path) -> None:
    """Write the files that Zensical reads."""
    shutil.rmtree(work, ignore_errors=True)
    places = {**pages.documents(), **pages.files()}
    if left := pages.missing_guides(pages.documents()):
        raise SystemExit(f"in no list of tools/make_site/pages.py: {', '.join(left)}")
    for path, place in places.items():
        if path.endswith(".md"):
            text = pages.taken_over((ROOT / path).read_text("utf-8"), path, places)
            _write(work / "docs" / place, START + text if place == "index.md" else text)
        else:
            _copy(ROOT / path, work / "docs" / place)
    for place, make in reference.PAGES.items():
        _write(work / "docs" / place, make())
    for place, text in each.pages().items():
        _write(work / "docs" / place, text)
    _write(work / "docs/tour.md", playing.tour_page())
    _write(work / "docs/stories.md", playing.stories_page())
    for language, name in playing.lesson_names().items():
        _write(work / "docs" / name, playing.lesson_page(language))
    _write(work / "docs/site.css", CSS)
    _write(work / "docs/site.js", JS)
    for folder, files in (("tour", playing.tour_files()), ("stories", playing.story_files())):
        for name, text in files.items():
            _write(work / "docs" / folder / name, text)
    _write(work / "mkdocs.yml", yaml.safe_dump(configuration(pages.documents()), sort_keys=False, allow_unicode=True))


def configuration(documents: dict[str, str]) -> dict[str, object]:
    """Return mkdocs.yml, without fonts of others and without `repo_url`, whose host the theme would ask."""
    architecture, contributing = (
        [place for place in documents.values() if place.startswith(folder)]
        for folder in ("architecture/", "contributing/")
    )
    played = ["tour.md", *playing.lesson_names().values(), "stories.md"]
    return {
        "site_name": "lastcall",
        "site_description": "Real Kubernetes Pods on one Linux machine, and the exact story of how each of them ends",
        "use_directory_urls": False,
        "theme": {
            "name": "material",
            "variant": "classic",
            "font": False,
            "features": ["navigation.tabs", "navigation.top", "navigation.indexes", "toc.follow"],
            "palette": [
                {"media": "(prefers-color-scheme: light)", "scheme": "default", "primary": "indigo",
                 "toggle": {"icon": "material/weather-night", "name": "Dark"}},
                {"media": "(prefers-color-scheme: dark)", "scheme": "slate", "primary": "indigo",
                 "toggle": {"icon": "material/weather-sunny", "name": "Light"}},
            ],
        },
        "extra_css": ["site.css"],
        "extra_javascript": ["site.js"],
        "plugins": [{"search": {"lang": ["en", "ja"]}}],
        "markdown_extensions": [
            "tables", "sane_lists", "attr_list",
            {"toc": {"permalink": True}},
            {"pymdownx.highlight": {"use_pygments": True}},
            "pymdownx.superfences",
        ],
        "not_in_nav": "/rules/*.md\n/pains/*.md\n",
        "validation": {
            "omitted_files": "warn",
            "absolute_links": "warn",
            "unrecognized_links": "warn",
            "anchors": "warn",
            "not_found": "warn",
        },
        "nav": [
            {"Tutorial": [*_files(pages.TUTORIAL), {"How a Pod stops": played}]},
            {"How-to guides": _sections(pages.HOW_TO)},
            {"Reference": [*_made(), *_sections(pages.REFERENCE)]},
            {"Explanation": [*_sections(pages.EXPLANATION), {"Architecture": architecture}]},
            {"Project": [*_files(pages.PROJECT), {"Contributing": contributing}]},
        ],
    }  # fmt: skip


def _made() -> list[dict[str, str | list[str]]]:
    """Return its entries. A list of pages (index.md) is a section of its own: it would become that of the reference."""
    return [{title: [place] if place.endswith("/index.md") else place} for title, place in MADE.items()]


def _files(names: Iterable[str]) -> list[str]:
    return [f"{name}.md" for name in names]


def _sections(lists: Mapping[str, Iterable[str]]) -> list[dict[str, list[str]]]:
    return [{title: _files(names)} for title, names in lists.items()]


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def _copy(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, target)


def build(folder: Path) -> None:
    """Build the site. Raises SystemExit where Zensical warns or a link leads nowhere."""
    folder = folder.resolve()
    work = folder.with_name(f"{folder.name}-source")
    source(work)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "-f", str(work / "mkdocs.yml")]
    done = subprocess.run(command, check=False)  # noqa: S603 (ours)
    if done.returncode:
        raise SystemExit(done.returncode)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.move(work / "site", folder)
    if found := site_problems(folder):
        raise SystemExit("\n".join([f"{len(found)} links lead nowhere, or elsewhere:", *found]))


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/site")
