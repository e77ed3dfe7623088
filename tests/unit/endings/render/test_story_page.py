"""The HTML page as text: complete, self-contained, bounded, and not to be broken by what it tells of."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest
from story_samples import BOMB, samples

from lastcall.endings.render.html import html_page
from lastcall.endings.render.markup import Markup, join, percent, prose, svg, tag, text
from lastcall.records import kinds as k

NAMES = ("graceful", "sigkill", "sidecar", "overrun", "several", "hostile", "chatty")
VOID = ("meta", "input", "br")


def page(name, error=""):
    return html_page(samples()[name], kubernetes_version="1.36", lastcall_version="0.1.0", error=error)


class Reader(HTMLParser):
    """Every element with its attributes; fails on tags that do not match."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.texts = [], [], []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, name, attributes):
        assert len({key for key, _ in attributes}) == len(attributes)
        self.elements.append((name, dict(attributes)))
        if name not in VOID:
            self.open.append(name)

    def handle_startendtag(self, name, attributes):
        self.elements.append((name, dict(attributes)))

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.texts.append(data)

    def all(self, name, class_=None):
        return [a for n, a in self.elements if n == name and (class_ is None or class_ in a.get("class", "").split())]

    @property
    def text(self):
        return "".join(self.texts)


@pytest.mark.parametrize("name", NAMES)
def test_every_tag_is_closed_ids_are_unique_and_every_link_leads_somewhere(name):
    read = Reader(page(name))
    ids = [a["id"] for _, a in read.elements if "id" in a]
    assert len(set(ids)) == len(ids)
    targets = [a["href"] for n, a in read.elements if n in ("a", "use")]
    assert targets
    assert {target for target in targets if target[1:] not in ids} == set()
    labels = [word for _, a in read.elements for word in a.get("aria-labelledby", "").split()]
    assert set(labels) <= set(ids)


@pytest.mark.parametrize("name", NAMES)
def test_the_page_names_nothing_outside_of_itself(name):
    read = Reader(page(name))
    for element, attributes in read.elements:
        assert element not in ("link", "img", "iframe", "object", "base", "form")
        assert "style" not in attributes
        assert not [key for key in attributes if key.startswith("on") or key in ("src", "srcset", "xlink:href")]
    assets = re.sub(
        r"http://www\.w3\.org/2000/svg", "", "".join(re.findall(r"(?s)<(?:style|script)>.*?</", page(name)))
    )
    assert "://" not in assets
    assert "@import" not in assets


def test_the_policy_of_the_page_allows_its_own_style_and_script_alone():
    source = page("sigkill")
    read = Reader(source)
    (policy,) = [a["content"] for a in read.all("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for element, directive in (("style", "style-src"), ("script", "script-src")):
        (content,) = re.findall(rf"(?s)<{element}>(.*?)</{element}>", source)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy


def test_what_containers_print_and_manifests_say_is_text_and_nothing_else():
    source = page("hostile", error=BOMB)
    read = Reader(source)
    assert [name for name, _ in read.elements].count("script") == 1
    assert not [a for _, a in read.elements for key in a if key.startswith("on")]
    assert "pwned" in read.text  # it is told
    assert "\\x1b[31m" in read.text
    for raw in ("\x1b", "\x00", "\u202e", "\ud800"):
        assert raw not in source
    source.encode()


def test_attributes_and_text_are_escaped_and_markup_is_not():
    assert tag("a", "<&>", None, ["x", 1], href="\"'<", class_="m", hidden=True, id=None, open=False) == (
        '<a href="&quot;&#x27;&lt;" class="m" hidden>&lt;&amp;&gt;x1</a>'
    )
    assert tag("p", Markup("<b>")) == "<p><b></p>"
    assert svg("rect", x=1, stroke_width=2) == '<rect x="1" stroke-width="2"/>'
    assert join(None) == ""
    assert text("a\nb") == "a\\nb"
    assert (percent(0.5), percent(1 / 3), percent(0)) == ("50%", "33.33%", "0%")


def test_the_verdict_comes_first_then_findings_budget_picture_and_steps():
    source = page("sigkill")
    order = [
        source.index(part)
        for part in (
            "was killed</span></h1>", 'class="verdict"', 'class="findings"', "Grace period 10 s", 'class="timeline"',
            "<caption>Containers", ">Steps<", "The rules",
        )
    ]  # fmt: skip
    assert order == sorted(order)
    read = Reader(source)
    assert "still ran 8.0 s after SIGTERM and was ended by SIGKILL" in read.text
    assert "<title>sigkill-demo was killed · lastcall</title>" in source
    assert "exit code 137 (Error), by SIGKILL: grace over" in read.text


def test_every_record_is_in_the_page_with_its_rule_facts_cause_and_evidence():
    (ending,) = samples()["sigkill"]
    read = Reader(page("sigkill"))
    rows = read.all("tr")
    records = [entry for entry in ending.entries if entry.record.kind != k.OUTPUT]
    assert len(rows) >= len(records)
    for entry in records:
        if entry.record.rule:
            assert entry.record.rule in read.text
    assert "because of" in read.text
    assert "predicted" in read.text  # a simulated runtime
    assert "gracePeriodSeconds 10" in read.text
    marks = read.all("a", "m")
    assert len(marks) == len([a for a in rows if a.get("id")])
    assert [int(a["data-n"]) for a in sorted(marks, key=lambda a: int(a["data-n"]))] == list(range(1, len(marks) + 1))


def test_several_pods_have_an_overview_and_a_section_each():
    read = Reader(page("several"))
    assert len(read.all("section", "pod")) == 4
    assert len(read.all("table", "overview")) == 1
    assert "4 Pods: 1 killed, 1 with a failed preStop hook, 2 ended gracefully" in read.text
    assert [n for n, _ in read.elements].count("h1") == 1


def test_twenty_pods_fit_in_a_megabyte():
    source = page("many")
    assert len(Reader(source).all("section", "pod")) == 20
    assert len(source.encode()) < 1_000_000


def test_ten_thousand_lines_are_capped_and_the_page_says_how_many_are_left_out():
    source = page("chatty")
    read = Reader(source)
    shown = len([a for a in read.all("li") if "data-t" in a])
    (left_out,) = re.findall(r"(\d+) lines are left out of this page", read.text)
    assert shown + int(left_out) == 10_000
    assert 500 < shown < 5000
    assert "line 0 " in read.text
    assert "line 9999 " in read.text
    assert len(source.encode()) < 600_000
    ticks = [a for a in read.all("line") if "data-t" in a]
    assert len(ticks) < 1000


def test_lines_that_were_too_fast_to_record_are_counted(new_tape):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.add(1.0, "runtime", k.OUTPUT, "app", stream="stdout", text="x", dropped=41)
    source = html_page([tape.ending()], kubernetes_version="1.36", lastcall_version="0")
    assert "41 more lines came too fast" in source


def test_thousands_of_records_before_the_end_are_cut_and_it_is_said(new_tape):
    tape = new_tape()
    for attempt in range(2000):
        tape.add(-9 + attempt / 1000, "kubelet", k.CONTAINER_STARTED, "app", attempt=attempt)
    tape.accepted()
    tape.over(0.1)
    source = html_page([tape.ending()], kubernetes_version="1.36", lastcall_version="0")
    assert "The 1700 oldest of them are left out here" in source
    assert len(source) < 300_000


def test_a_story_of_nothing_and_an_error_are_pages_too(new_tape):
    empty = html_page([], kubernetes_version="1.36", lastcall_version="0", error="node-1 was killed")
    assert "No Pod was deleted" in empty
    assert 'role="alert">node-1 was killed' in empty
    Reader(empty)
    Reader(html_page([new_tape().ending()], kubernetes_version="1.36", lastcall_version="0"))


def test_the_same_finding_of_several_containers_is_said_once(new_tape):
    tape = new_tape()
    tape.accepted()
    for name in ("a", "b"):
        tape.add(0.1, "kubelet", k.IMAGE_SUBSTITUTED, name, image="x:1", substitute="y:2")
    source = html_page([tape.ending()], kubernetes_version="1.36", lastcall_version="0")
    assert source.count("Image x:1 is not available") == 1
    assert "behave differently. (a, b)" in source


def test_the_page_of_the_same_records_is_the_same_page():
    assert page("sidecar") == page("sidecar")


def test_what_stands_between_backticks_is_code_and_still_escaped():
    assert prose("use `exec <b>`, not `sh`") == "use <code>exec &lt;b&gt;</code>, not <code>sh</code>"
    assert prose("one ` alone") == "one ` alone"


def test_the_same_pod_under_two_versions_is_one_pod_that_ended_twice():
    twice = [*samples()["graceful"], *samples()["sigkill"]]
    told = html_page(twice, kubernetes_version="1.23, 1.36", lastcall_version="0.1.0", pods=1)
    read = Reader(told)
    assert "1 Pod under Kubernetes 1.23, 1.36: 1 killed, 1 ended gracefully" in read.text
    assert "2 Pods" not in read.text and "All Pods" not in told
