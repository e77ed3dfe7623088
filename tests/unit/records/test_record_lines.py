"""The line of every record, and what stands around it, in Japanese."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from japanese import LETTERS, MACHINE, missing, untold
from story_samples import samples

from lastcall.endings.picture.lanes import decide_picture
from lastcall.endings.render.lines import actor_label
from lastcall.endings.verdict import outcome_words
from lastcall.records import kinds
from lastcall.records.explain import explain
from lastcall.records.language import catalogue_of, translate
from lastcall.records.recalled import PARTS, SENTENCES
from lastcall.records.record import Record
from lastcall.records.rules import SAYS
from lastcall.records.said import CUT, Said
from lastcall.records.words import meaning, words_for
from lastcall.ui.saved_stories import html_page

SOURCE = Path(__file__).resolve().parents[3] / "src" / "lastcall"
MODULES = [
    *sorted(SOURCE.glob("records/definitions/*.py")),
    SOURCE / "records" / "sentences.py",
    *(
        SOURCE / "endings" / each
        for each in ("causes/decided.py", "ending.py", "picture/lanes.py", "render/lines.py", "verdict.py")
    ),
]
ALL_KINDS = [value for name, value in vars(kinds).items() if name.isupper() and isinstance(value, str)]
SAMPLES = ("graceful", "sigkill", "sidecar", "overrun", "several", "hostile", "chatty")


def _calls(*names: str) -> list[tuple[str, ast.Call]]:
    """Calls of these functions in MODULES, each with where it stands."""
    return [
        (f"{path.relative_to(SOURCE)}:{node.lineno}", node)
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
    ]


def test_every_template_of_a_line_stands_in_the_source_as_it_is_and_is_there_in_japanese() -> None:
    found = {where: call.args[0] for where, call in _calls("tell", "fixed")}
    assert [where for where, each in found.items() if not isinstance(each, ast.Constant)] == []
    templates = [each.value for each in found.values() if isinstance(each, ast.Constant)]
    assert len(templates) > 150
    assert [each for each in (*templates, *SENTENCES, *PARTS, CUT) if each not in catalogue_of("ja")] == []


def test_what_rules_and_kinds_mean_is_there_in_japanese() -> None:
    japanese = SOURCE / "endings" / "catalogue" / "japanese" / "rules.json"
    assert {*SAYS.values(), *map(meaning, ALL_KINDS)} == set(json.loads(japanese.read_text("utf-8")))
    assert translate(explain("pkg/kubelet/pod_workers.go:completeTerminated"), "ja").startswith(
        "ノードに Pod のものは何も残っていません"
    )
    assert translate(meaning(kinds.KILLING), "ja") == "kubelet がコンテナーを止め始めます。"
    assert explain("x.go:y") == meaning("Unknown") == ""


def test_no_line_is_made_of_an_f_string() -> None:
    """Its facts would be lost; one inside of a fact, such as `web (pid 7)`, has no words."""
    made = [(where, call.args[0]) for where, call in _calls("Words", "DecidedBy", "Bar")]
    assert [where for where, each in made if isinstance(each, ast.JoinedStr)] == []


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_every_kind_of_record_has_a_line_in_japanese(kind: str) -> None:
    assert untold(Record("a-b-1", 0, 0, "runtime", kind, "u", "", "", {})) == ""


@pytest.mark.parametrize("name", SAMPLES)
def test_a_whole_story_is_told_in_japanese(name: str) -> None:
    for ending in samples()[name]:
        for entry in ending.entries:
            assert untold(entry.record) == ""
            assert missing(actor_label(entry.record)) == []
        for lane in decide_picture(ending).lanes:
            labels = [lane.name, lane.detail, *(bar.label for bar in lane.bars), *(mark.label for mark in lane.marks)]
            assert [each for label in labels for each in missing(label)] == []
            assert all(isinstance(bar.label, Said) for bar in lane.bars if bar.label and bar.kind != "preStop")
        texts = [outcome_words(ending), *ending.not_known, *([ending.decided_by.why] if ending.decided_by else [])]
        for text in texts:
            assert missing(text) == [] and LETTERS.search(translate(text, "ja")), text


def test_a_saved_page_is_told_in_japanese() -> None:
    """What its data says has no word that only English has."""
    page = html_page(samples()["sigkill"], kubernetes_version="1.36", lastcall_version="0.1.0", language="ja")
    data = json.loads(page.partition(' id="saved">')[2].partition("</script>")[0])
    (story,) = data.pop("stories")
    del story["output"], story["rules"]  # what a program printed, and sources
    for step in (*story["steps"], *(each for group in story["others"] for each in group["steps"])):
        del step["facts"]
    english = re.compile(r"\b(the|is|was|are|has|had|of|and|to|with|after|not|by|from|that|which|its|still|no|open)\b")
    texts = [*texts_of(data), *texts_of(story)]
    assert len(texts) > 100 and [each for each in texts if english.search(each)] == []
    assert data["language"] == "ja" and LETTERS.search(data["title"])


def texts_of(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, list | dict):
        for each in data.values() if isinstance(data, dict) else data:
            yield from texts_of(each)


def test_what_a_program_printed_is_never_translated() -> None:
    record = Record("a-b-1", 0, 0, "runtime", kinds.OUTPUT, "u", "app", "", {"text": "container started\n"})
    assert translate(words_for(record).text, "ja") == "│ container started" and kinds.OUTPUT in MACHINE


def test_a_long_line_is_cut_in_its_own_language() -> None:
    record = Record("a-b-1", 0, 0, "kubelet", kinds.PRE_STOP_STARTED, "u", "app", "", {
        "handler": "exec", "detail": "x" * 500, "budgetSeconds": 30,
    })  # fmt: skip
    text = words_for(record).text
    assert text == f"preStop exec starts: {'x' * 379}… (136 more characters)"
    japanese = translate(text, "ja")
    assert japanese.startswith("preStop exec 開始: xxx") and japanese.endswith("… (ほか 127 文字)")
    assert len(japanese) == 400 + len("… (ほか 127 文字)")


def test_a_dangerous_fact_is_escaped_in_every_language() -> None:
    facts = {"handler": "exec", "detail": "a\x1b[2J\nb", "budgetSeconds": 3}
    text = words_for(Record("a-b-1", 0, 0, "kubelet", kinds.PRE_STOP_STARTED, "u", "app", "", facts)).text
    assert text == r"preStop exec starts: a\x1b[2J\nb (at most 3 s)"
    assert translate(text, "ja") == r"preStop exec 開始: a\x1b[2J\nb (最長 3 秒)"


@pytest.mark.parametrize(("when", "style"), [("SIGKILL", "bad"), ("exit", "")])
def test_what_ended_with_pid_1_is_not_bad_by_itself(when: str, style: str) -> None:
    """It may be the `sleep` of a loop: a finding says where something was lost."""
    facts = {"when": when, "processes": [{"name": "sleep", "containerPid": 7}]}
    assert words_for(Record("a-b-1", 0, 0, "container", kinds.PROCESSES_LEFT, "u", "app", "", facts)).style == style
