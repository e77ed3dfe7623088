"""The site has a page for each pain and each rule of lint, at an address that stays."""

import posixpath
import re
import tomllib

from make_site.__main__ import configuration
from make_site.each import documents, pages
from make_site.pages import ROOT, missing_guides
from make_site.pages import documents as guides

from lastcall.lint.catalogue.lookup import RULES
from lastcall.lint.render.data import SITE, page_of

PAGES = pages()


def test_every_rule_and_every_pain_has_its_page() -> None:
    wanted = {f"rules/{id_}.md" for id_ in RULES} | {f"pains/{pain.name}.md" for pain in documents.load_all()}
    assert wanted | {"rules/index.md", "pains/index.md"} == set(PAGES)


def test_sarif_leads_to_the_page_of_a_rule_on_the_repository_s_site() -> None:
    homepage = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]["Homepage"]
    owner, name = homepage.removeprefix("https://github.com/").split("/")
    assert f"https://{owner}.github.io/{name}" == SITE
    for id_ in RULES:
        assert page_of(id_).removeprefix(f"{SITE}/").replace(".html", ".md") in PAGES


def test_each_page_begins_with_its_heading_and_has_words_to_search_for() -> None:
    for place, text in PAGES.items():
        assert text.startswith("# "), place
    oom = PAGES["pains/out-of-memory.md"]
    assert "137" in oom and "**Symptom:**" in oom and "kind: " in oom
    assert "terminationGracePeriodSeconds" in PAGES["rules/hookOutlivesGrace.md"]


def test_the_lists_lead_to_every_page() -> None:
    for folder in ("rules", "pains"):
        linked = set(re.findall(r"\]\((\w[\w-]*\.md)\)", PAGES[f"{folder}/index.md"]))
        assert linked >= {posixpath.basename(place) for place in PAGES if place.startswith(folder)} - {"index.md"}


def test_links_between_the_pages_lead_somewhere() -> None:
    for place, text in PAGES.items():
        for target in re.findall(r"\]\((\.\./(?:rules|pains)/[^)]+)\)", text):
            assert posixpath.normpath(posixpath.join(posixpath.dirname(place), target)) in PAGES, (place, target)


def test_the_site_has_the_order_of_diataxis_and_every_guide() -> None:
    nav = configuration(guides())["nav"]
    assert [title for tab in nav for title in tab] == [
        "Tutorial", "How-to guides", "Reference", "Explanation", "Project",
    ]  # fmt: skip
    assert missing_guides(guides()) == []
    assert missing_guides({**guides(), "docs/new.md": "new.md"}) == ["new.md"]
