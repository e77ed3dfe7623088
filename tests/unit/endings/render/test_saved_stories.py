"""The page of stories as a file: complete, self-contained, bounded, and not to be broken by what it tells of."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from story_samples import BOMB, samples

from lastcall.records import kinds as k
from lastcall.ui.saved import asset
from lastcall.ui.saved_stories import html_page

NAMES = ("graceful", "sigkill", "sidecar", "overrun", "several", "hostile", "chatty")
VOID = ("meta", "link")


def page(name: str, error: str = "") -> str:
    return html_page(samples()[name], kubernetes_version="1.36", lastcall_version="0.1.0", error=error)


class Reader(HTMLParser):
    """Every element with its attributes, the data, the text; fails on tags that do not match."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.blocks: list[str] = []
        self.text = ""
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({key for key, _ in attrs}) == len(attrs)
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.blocks.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["script"]:
            self.blocks[-1] += data
        elif self.open and self.open[-1] != "style":
            self.text += data

    @property
    def data(self) -> Any:
        return json.loads(self.blocks[0])


@pytest.mark.parametrize("name", NAMES)
def test_the_page_names_nothing_outside_of_itself(name: str) -> None:
    read = Reader(page(name))
    for element, attributes in read.elements:
        assert element not in ("img", "iframe", "object", "base", "form")
        assert "style" not in attributes and "src" not in attributes
        assert not [key for key in attributes if key.startswith("on")]
        assert attributes.get("href") in (None, "data:,")


def test_the_page_has_script_and_style_of_the_live_page_and_its_policy_allows_these_alone() -> None:
    source = page("sigkill")
    read = Reader(source)
    (policy,) = [a["content"] or "" for n, a in read.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none';") and "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy
    (style,) = re.findall(r"(?s)<style>(.*?)</style>", source)
    assert (style, read.blocks[1:]) == (asset("ui.css"), [asset("ui.js")])
    for content, directive in ((style, "style-src"), (read.blocks[1], "script-src")):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}';" in policy


def test_what_containers_print_and_manifests_say_is_text_and_nothing_else() -> None:
    source = page("hostile", error=BOMB)
    read = Reader(source)
    assert [name for name, _ in read.elements].count("script") == 2
    assert "pwned" in read.text and "pwned" in read.blocks[0]
    assert "\\\\x1b[31m" in read.blocks[0]
    for raw in ("\x1b", "\x00", "\u202e", "\ud800"):
        assert raw not in source and raw not in json.dumps(read.data, ensure_ascii=False)
    source.encode()


def test_without_javascript_the_page_is_the_story_as_text() -> None:
    text = Reader(page("sigkill")).text
    assert "sigkill-demo was killed" in text and "SIGKILL → PID" in text and "grace 10 s" in text
    assert "because it still ran 8 s after SIGTERM" in " ".join(text.split())


def test_the_page_has_verdict_findings_budget_containers_and_every_record() -> None:
    (ending,) = samples()["sigkill"]
    source = page("sigkill")
    data = Reader(source).data
    (story,) = data["stories"]
    assert "<title>sigkill-demo was killed · lastcall</title>" in source and data["title"] == "sigkill-demo was killed"
    assert "still ran 8.0 s after SIGTERM and was ended by SIGKILL" in story["verdict"]
    assert [(each["kind"], each["time"]) for each in story["budget"]["parts"]] == [
        ("preStop", "2.0 s"), ("drain", "8.0 s"),
    ]  # fmt: skip
    assert story["containers"][0]["cells"] == [
        "exit code 137 (Error), by SIGKILL: grace over", "8.0 s after SIGTERM", "exec succeeded, 2.0 s",
        "sh, SIGTERM handled",
    ]  # fmt: skip
    listed = [*story["steps"], *(each for group in story["others"] for each in group["steps"])]
    assert len(listed) == len([entry for entry in ending.entries if entry.record.kind != k.OUTPUT])
    assert {each["rule"] for each in listed if each["rule"]} == set(story["rules"])
    assert ["gracePeriodSeconds", "10"] in next(each for each in listed if each["kind"] == "DeleteAccepted")["facts"]
    assert "predicted" in {each["evidence"] for each in listed}  # a simulated runtime
    numbers = [each["n"] for each in story["steps"]]
    assert numbers == list(range(1, len(numbers) + 1)) and any(each["cause"] for each in story["steps"])


def test_several_pods_have_a_title_and_a_story_each() -> None:
    data = Reader(page("several")).data
    assert data["title"] == "4 Pods: 1 killed, 1 with a failed preStop hook, 2 ended gracefully"
    assert [each["uid"] for each in data["stories"]] == ["1", "2", "3", "4"]
    assert set(data["ends"]) == {"end/1", "end/2", "end/3", "end/4"}


def test_twenty_pods_fit_in_a_megabyte() -> None:
    source = page("many")
    assert len(Reader(source).data["stories"]) == 20
    assert len(source.encode()) < 1_000_000


def test_ten_thousand_lines_are_capped_and_the_page_says_how_many_are_left_out() -> None:
    source = page("chatty")
    read = Reader(source)
    (story,) = read.data["stories"]
    lines = [each["text"] for each in story["output"] if not each.get("note")]
    (note,) = [each["text"] for each in story["output"] if each.get("note")]
    (left_out,) = re.findall(r"(\d+) lines are left out of this page", note)
    assert len(lines) + int(left_out) == 10_000 and 500 < len(lines) < 5000
    assert lines[0].startswith("line 0 ") and lines[-1].startswith("line 9999 ")
    assert "lines are left out of this page" in read.text and len(source.encode()) < 600_000
    assert max(len(lane["lines"]) for lane in story["lanes"]) <= 1001


def test_lines_that_were_too_fast_to_record_are_counted(new_tape: Any) -> None:
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.add(1.0, "runtime", k.OUTPUT, "app", stream="stdout", text="x", dropped=41)
    source = html_page([tape.ending()], kubernetes_version="1.36", lastcall_version="0")
    (note, line) = Reader(source).data["stories"][0]["output"]
    assert note["text"].startswith("41 more lines came too fast") and line["text"] == "x"


def test_thousands_of_records_before_the_end_are_cut_and_it_is_said(new_tape: Any) -> None:
    tape = new_tape()
    for attempt in range(2000):
        tape.add(-9 + attempt / 1000, "kubelet", k.CONTAINER_STARTED, "app", attempt=attempt)
    tape.accepted()
    tape.over(0.1)
    source = html_page([tape.ending()], kubernetes_version="1.36", lastcall_version="0")
    (before,) = Reader(source).data["stories"][0]["others"]
    assert before["notes"] == ["The 1700 oldest of them are left out here; --output json has them."]
    assert len(before["steps"]) == 300 and len(source) < 300_000


def test_a_story_of_nothing_and_an_error_are_pages_too(new_tape: Any) -> None:
    empty = Reader(html_page([], kubernetes_version="1.36", lastcall_version="0", error="node-1 was killed"))
    assert (empty.data["title"], empty.data["error"]) == ("No Pod was deleted", "node-1 was killed")
    assert "node-1 was killed" in empty.text and "No Pod was deleted" in empty.text
    Reader(html_page([new_tape().ending()], kubernetes_version="1.36", lastcall_version="0"))


def test_the_page_of_the_same_records_is_the_same_page() -> None:
    assert page("sidecar") == page("sidecar")


def test_the_same_pod_under_two_versions_is_one_pod_that_ended_twice() -> None:
    twice = [*samples()["graceful"], *samples()["sigkill"]]
    told = html_page(twice, kubernetes_version="1.23, 1.36", lastcall_version="0.1.0", pods=1)
    data = Reader(told).data
    assert data["title"] == "1 Pod under Kubernetes 1.23, 1.36: 1 killed, 1 ended gracefully"
    assert data["caption"] == "Every Pod under every version"
