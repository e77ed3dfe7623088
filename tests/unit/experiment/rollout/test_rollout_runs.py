"""`lastcall rollout` around its experiments: several runs, limits, advice that fails, and what is told of each."""

import json
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any, cast

import published_schema
import pytest
from click.testing import CliRunner
from rich.console import Console
from rollout_lives import pod_life

from lastcall.cli.rollout import rounds
from lastcall.cli.rollout.command import rollout as command
from lastcall.cli.rollout.page import RolloutPage
from lastcall.endings.story import Finding, Severity
from lastcall.errors import Interrupted, LastcallError, WorldError
from lastcall.experiment.not_simulated import Note
from lastcall.experiment.reasons.failures import NotWell
from lastcall.experiment.rollout.checks import checks_of, summary_of
from lastcall.experiment.rollout.lost import tell_lost
from lastcall.experiment.rollout.options import RolloutOptions
from lastcall.experiment.rollout.pool import exit_status, pool
from lastcall.experiment.rollout.report import tell_remaining, tell_results
from lastcall.experiment.rollout.report_json import as_json
from lastcall.experiment.rollout.result import Result
from lastcall.manifests.read import load_manifests
from lastcall.traffic.account import account
from lastcall.traffic.load import Load
from lastcall.traffic.outcome import Outcome
from lastcall.traffic.thresholds import MaxLost, Thresholds
from lastcall.traffic.verdict import judge
from lastcall.ui.command_page.messages import Again

NAIVE = Path(__file__).resolve().parents[4] / "examples" / "rollout" / "naive.yaml"
MANIFESTS = load_manifests([str(NAIVE)])
OWNER = next(each.obj for each in MANIFESTS if each.resource.kind == "Deployment")


def found(lost: int, *, control: int = 0, took: float = 0.01, held_up: float = 0.0, **more: Any) -> Result:
    """100 requests while a Pod is deleted at 10, so many of them refused by it."""
    life = pod_life(
        "u", name="web-1", ip="10.1", ready=0.5, routed=1.0, deleted=10.0, term=10.1, exited=10.2, unrouted=14.0
    )
    outcomes = [Outcome(n, "fresh", 5.0, 5.0, 5.01, 1, 0.0, 200, "10.1", "truncated" if n <= control else "")
                for n in range(1, 21)]  # fmt: skip
    outcomes += [
        Outcome(20 + n, "fresh", 12.0, 12.0, 12.0 + took, 1, 0.0, 200, "10.1", "refused" if n <= lost else "", held_up)
        for n in range(1, 101)
    ]
    counted = account(outcomes, [life], [], 10.0)
    values = {
        "account": counted, "judgement": judge(counted, [life], OWNER, 8080), "lives": [life], "outcomes": outcomes,
        "owner": OWNER, "what": "Deployment naive", "service": "naive", "disrupt": "rollout", "propagation": "0s",
        "source": "node", "began": 10.0, "seconds": 4.0, "over": 14.0,
    }  # fmt: skip
    return Result(**{**values, **more})


Scripted = list[Result | LastcallError]


@pytest.fixture
def rollout() -> Iterator[Any]:
    """Runs the command with results that are made up in place of experiments; they have to be used up."""
    left: Scripted = []

    def experiment(manifests: Any, options: RolloutOptions, *, page: Any = None) -> Result:
        next_one = left.pop(0)
        if isinstance(next_one, LastcallError):
            raise next_one
        return next_one

    def run(results: Scripted, **options: Any) -> int:
        left[:] = results
        return rounds.run_rollout(MANIFESTS, RolloutOptions(load=Load(rates={"fresh": 1.0}), **options), experiment)

    yield run
    assert left == []


def not_well(id_: str, severity: Severity) -> tuple[NotWell, ...]:
    finding = Finding(id_, severity, "app crashed (exit code 3)", "app", "See what it printed.")
    return (NotWell("default/web-1", (finding,), ("  app crashed",)),)


CRASHED, TRIED_AGAIN = not_well("crashed", "problem"), not_well("initContainerFailed", "info")
STATUS = [
    ("nothing lost", [found(0)], {}, 0),
    ("some lost", [found(1)], {}, 3),
    ("no more than may be", [found(1)], {"max_lost": MaxLost(1)}, 0),
    ("nothing lost, and a container crashed", [found(0, not_well=CRASHED)], {}, 3),
    ("no more lost than may be, and a container crashed", [found(1, not_well=CRASHED)], {"max_lost": MaxLost(1)}, 3),
    ("inconclusive, and a container crashed", [found(1, control=1, not_well=CRASHED)], {}, 3),
    ("an init container that was tried again", [found(0, not_well=TRIED_AGAIN)], {}, 0),
    ("of several runs a container crashed in one", [found(0), found(0, not_well=CRASHED)], {"runs": 2}, 3),
    ("more than may be", [found(2)], {"max_lost": MaxLost(1)}, 3),
    ("inconclusive", [found(1, control=1)], {}, 4),
    ("slower than may be", [found(0, took=0.3)], {"max_p99": {"": 0.2}}, 3),
    ("slower, and it may be the generator's", [found(0, took=0.3, held_up=0.2)], {"max_p99": {"": 0.2}}, 4),
    ("quick enough", [found(0, took=0.3)], {"max_p99": {"fresh": 0.31}}, 0),
    ("of several runs one lost some", [found(0), found(1), found(0)], {"runs": 3}, 3),
    ("all runs together are within the share", [found(0), found(1), found(0)],
     {"runs": 3, "max_lost": MaxLost(0.004, share=True)}, 0),
    ("one run told nothing", [found(0), found(0, control=1)], {"runs": 2}, 4),
    ("and another one lost some", [found(1), found(0, control=1)], {"runs": 2}, 3),
    ("the advice decides", [found(5), found(0)], {"apply_advice": True}, 0),
    ("advice, each run several times", [found(5), found(4), found(0), found(1)], {"apply_advice": True, "runs": 2}, 3),
    ("there is no advice to try", [found(0)], {"apply_advice": True}, 0),
]  # fmt: skip


@pytest.mark.parametrize(("results", "options", "status"), [row[1:] for row in STATUS], ids=[row[0] for row in STATUS])
def test_the_exit_status_is_that_of_all_runs_and_limits(
    rollout: Any, results: Scripted, options: dict[str, Any], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rollout(results, **options) == status


@pytest.mark.parametrize("output", ["text", "json", "html"])
@pytest.mark.parametrize("in_file", [True, False])
def test_what_the_first_experiment_found_is_told_whatever_becomes_of_the_second(
    rollout: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], output: str, in_file: bool
) -> None:
    file = tmp_path / "report" if in_file else None
    failure = WorldError("the second one fails")
    with pytest.raises(WorldError, match="the second one fails"):
        rollout([found(5), failure], apply_advice=True, output=output, output_file=file)
    told = file.read_text() if file is not None else capsys.readouterr().out
    assert "5 of 100 requests were lost" in told
    if output == "json":
        assert [each["lost"] for each in json.loads(told)["experiments"]] == [5]


class AskingPage:
    """A page whose user runs it again and again."""

    def next(self) -> Again:
        return Again(patch={}, propagation="")


def test_what_was_found_before_a_run_that_its_page_asked_for_is_told_when_that_is_interrupted(tmp_path: Path) -> None:
    file = tmp_path / "report"
    left: Scripted = [found(5), Interrupted("interrupted")]

    def experiment(manifests: Any, options: RolloutOptions) -> Result:
        next_one = left.pop(0)
        if isinstance(next_one, LastcallError):
            raise next_one
        return next_one

    options = RolloutOptions(load=Load(rates={"fresh": 1.0}), output="json", output_file=file)
    with pytest.raises(Interrupted):
        rounds._run(MANIFESTS, options, experiment, cast(RolloutPage, AskingPage()))
    assert [each["lost"] for each in json.loads(file.read_text())["experiments"]] == [5]


def test_runs_that_were_made_before_one_failed_are_told(rollout: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(WorldError, match="the third one fails"):
        rollout([found(1), found(2), WorldError("the third one fails")], runs=5, apply_advice=True)
    assert "all together: 3 of 200 requests lost" in capsys.readouterr().out
    with pytest.raises(WorldError, match="at once"):
        rollout([WorldError("at once")], runs=5)


def test_the_report_of_the_first_is_in_its_file_before_the_second_begins(
    rollout: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, seen = tmp_path / "report.json", []
    original = rounds._repeated

    def repeated(*arguments: Any, **options: Any) -> Any:
        if options.get("advised"):
            seen.append(len(json.loads(file.read_text())["experiments"]))
        return original(*arguments, **options)

    monkeypatch.setattr(rounds, "_repeated", repeated)
    assert rollout([found(5), found(0)], apply_advice=True, output="json", output_file=file) == 0
    assert seen == [1] and len(json.loads(file.read_text())["experiments"]) == 2


def test_the_document_has_latencies_pooled_runs_and_what_was_not_simulated(
    rollout: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    note = Note("imageSubstituted", "nginx:1.29", "Image nginx:1.29 is not available")
    first = replace(found(2), notes=(note,), disrupt="drain", node="node-1", nodes=2)
    rollout([first, found(0), found(0), found(0)], runs=2, apply_advice=True, output="json", max_lost=MaxLost(9))
    document = json.loads(capsys.readouterr().out)
    one = document["experiments"][0]
    assert (one["node"], one["nodes"], one["disrupted"], one["run"], one["withAdvice"]) == ("node-1", 2, True, 1, False)
    assert one["notSimulated"] == [{"id": note.id, "what": note.what, "text": note.text}]
    assert one["latency"]["during"]["fresh"] == {
        "count": 98,
        "p50": 0.01,
        "p95": 0.01,
        "p99": 0.01,
        "max": 0.01,
        "p99Least": 0.01,
    }
    assert one["latency"]["before"]["fresh"]["count"] == 20
    pooled = document["pooled"]["manifest"]
    assert (pooled["runs"], pooled["total"], pooled["lost"]) == (2, 200, 2) and 0.01 < pooled["upperBound"] < 0.04
    limit = {"name": "max-lost", "limit": "9", "value": "", "broken": False, "unsure": False}
    assert pooled["thresholds"][0] | {"value": ""} == limit
    assert document["pooled"]["withAdvice"]["lost"] == 0 and [e["run"] for e in document["experiments"]] == [1, 2, 1, 2]


SCHEMA = json.loads((Path(__file__).resolve().parents[4] / "docs" / "rollout-v1.schema.json").read_text())


def test_the_document_is_what_its_published_schema_says() -> None:
    notes = (Note("ingressIgnored", "Ingress shop", "kept"), Note("generatorLate", "", "late"))
    unheard = replace(found(0, control=3), unheard=True)
    results = [
        found(2, notes=notes, not_well=CRASHED),
        unheard,
        replace(found(0), advised=True, node="node-1", nodes=2),
    ]
    document = json.loads(json.dumps(as_json(results, Thresholds(MaxLost(1), {"": 0.1}))))
    assert list(published_schema.problems(document, SCHEMA, root=SCHEMA)) == []
    assert [each["id"] for each in document["experiments"][0]["notes"]] == ["generatorLate"]
    assert (
        document["experiments"][0]["notSimulated"][0]["id"] == "ingressIgnored"
        and document["experiments"][0]["lostRequests"]
    )
    del document["experiments"][0]["latency"]
    assert list(published_schema.problems(document, SCHEMA, root=SCHEMA)) != []


def text_of(*results: Result) -> str:
    console = Console(file=StringIO(), width=100, highlight=False)
    tell_results(console, results)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_people_see_latencies_the_drained_node_and_what_was_not_simulated() -> None:
    note = Note("ingressIgnored", "Ingress web", "Ingress web is kept")
    told = text_of(replace(found(2), notes=(note,), disrupt="drain", node="node-1", nodes=2))
    assert "drain of node-1 (of 2 nodes) under load" in told
    assert "not simulated: Ingress web is kept" in told
    lines = [line.split() for line in told.splitlines()]
    assert ["fresh", "before", "20", *["10", "ms"] * 4] in lines
    assert ["during", "98", *["10", "ms"] * 4] in lines


def test_advice_for_the_program_alone_is_not_tried_and_that_is_said(
    rollout: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    one = found(5)
    advice = tuple(replace(each, patch={}, program="finishRequests") for each in one.judgement.advice)
    rollout([replace(one, judgement=replace(one.judgement, advice=advice))], apply_advice=True)
    told = capsys.readouterr().err
    assert "--apply-advice: nothing to try, the change is in the program; no second run" in told


def test_several_runs_end_with_all_of_them_together() -> None:
    told = text_of(found(0), replace(found(0), run=2))
    assert told.splitlines()[-1].startswith("all together: 0 of 200 requests lost")
    assert "which lost the most" not in told
    assert "the story of run 1, which lost the most:" in text_of(found(1), replace(found(0), run=2))


def test_all_advice_comes_before_what_is_not_well() -> None:
    one = found(2, not_well=CRASHED)
    twice = replace(one.judgement, advice=(*one.judgement.advice, *one.judgement.advice))
    told = text_of(replace(one, judgement=twice))
    assert told.index("requests lost: ") < told.index("also, for 2: ") < told.index("not well: ")


def test_a_control_period_in_which_only_starting_pods_lost_requests_says_so() -> None:
    one = found(2, control=3)
    assert "control period: 3 of 20 lost\n" in text_of(one)
    started = replace(one, account=replace(one.account, not_listening_yet=2, not_serving_yet=1))
    assert "control period: 3 of 20 lost (while Pods started)\n" in text_of(started)


def test_a_lost_request_is_placed_between_steps_that_have_words() -> None:
    lost = replace(found(1).account.lost[0], between=("StatusSent", "WaitsAtKill"))
    assert tell_lost(lost).endswith("between a write of its status and the end of its grace period")
    assert tell_lost(replace(lost, between=("StatusSent", "SomethingElse"))).endswith("after a write of its status")


def test_a_container_that_crashed_is_told_beside_the_verdict() -> None:
    told = text_of(found(0, not_well=CRASHED))
    assert "nothing lost: " in told and "not well: default/web-1: app crashed (exit code 3)" in told
    assert "not well" not in text_of(found(0, not_well=TRIED_AGAIN))


def test_of_several_runs_each_has_a_line_and_the_worst_one_its_story() -> None:
    told = text_of(replace(found(1), run=1), replace(found(7), run=2), replace(found(0, control=1), run=3))
    assert "all together: 8 of 200 requests lost, at most 7.1 % (95 %); 1 inconclusive, not counted" in told
    assert "the story of run 2" in told and "7 of 100 requests were lost" in told
    assert "1 of 100 requests was lost" not in told


def test_an_experiment_in_which_nobody_answered_says_that_nothing_was_disrupted() -> None:
    unheard = replace(found(0), unheard=True, judgement=replace(found(0).judgement, verdict="inconclusive"))
    assert "nothing disrupted" in text_of(unheard) and as_json([unheard])["experiments"][0]["disrupted"] is False


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--max-lost", "-1"), "'-1': write how many requests may be lost (3), or which share of them (0.1%)"),
        (("--max-lost", "1.5"), "'1.5': write how many requests may be lost"),
        (("--max-lost", "200%"), "'200%': write how many"),
        (("--max-p99", "fast"), "'fast' is not a time"),
        (("--max-p99", "websocket=1s"), "kinds: fresh, keep-alive, slow, tcp, http2"),
        (("--runs", "0"), "0 is too few: give a whole number of runs from 1 to 1000"),
        (("--find-safe", "--runs", "3"), "set the number of its runs with --confirm"),
        (("--find-safe", "--max-lost", "0"), "--find-safe does not work with --runs, --max-lost and --max-p99"),
    ],
)
def test_limits_that_are_none_are_refused(arguments: tuple[str, ...], words: str) -> None:
    result = CliRunner().invoke(command, [str(NAIVE), *arguments])
    assert result.exit_code == 2 and words in result.output


# -- for CI ----------------------------------------------------------------------------------------------------------

LIMITS = (Thresholds(), Thresholds(MaxLost(3)), Thresholds(MaxLost(0.1, share=True)), Thresholds(max_p99={"": 0.2}))
GROUPS = (
    [found(0)], [found(2)], [found(5, control=3)], [found(0), found(12, run=2)], [found(2), found(1, control=2, run=2)],
    [found(0), found(0, control=2, run=2)], [found(0, not_well=not_well("crashed", "problem"))], [found(0, took=0.5)],
    [found(0, took=0.5, held_up=0.4)], [found(2), found(0, advised=True)], [found(0), found(2, advised=True)],
)  # fmt: skip


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("results", GROUPS)
def test_reports_for_ci_fail_exactly_where_the_exit_status_is_not_0(results: list[Result], limits: Thresholds) -> None:
    status = exit_status(pool([each for each in results if each.advised] or results), limits)
    told = checks_of(results, limits)
    assert any(each.failed for each in told) is bool(status)
    assert any(each.level == "error" for each in told) is (status == 3)
    head = summary_of(results, limits).splitlines()[0]
    assert head.startswith(f"### {({0: '✅', 3: '❌', 4: '⚠️'})[status]} lastcall rollout: ")


def test_a_summary_of_a_rollout_has_the_causes_the_patch_and_what_crashed() -> None:
    text = summary_of([found(2, not_well=not_well("crashed", "problem"))], Thresholds())
    assert "| 2 | 6.2 % | fresh | refused | sent to a Pod that no longer listened" in text
    assert "```yaml\nspec:" in text
    assert "- ❌ default/web-1: app crashed (exit code 3)" in text


@pytest.mark.parametrize("format_", ["junit", "github", "text"])
def test_a_rollout_that_measured_nothing_says_so_in_its_test_report(
    rollout: Any, capsys: Any, tmp_path: Path, format_: str
) -> None:
    file = tmp_path / "report"
    file.write_text("of an earlier run")
    with pytest.raises(WorldError):
        rollout([WorldError("Pod web is not Ready")], output=format_, output_file=file)
    told = {
        "junit": "<failure",
        "github": "::error title=lastcall rollout::Pod web",
        "text": "of an earlier run",
    }
    assert told[format_] in file.read_text()


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (0, "with the change: none of 100 requests was lost, 9 of 100 without it"),
        (2, "with the change: 2 of 100 requests are still lost (2 sent to a Pod that no longer listened"),
    ],
)
def test_after_a_change_the_losses_that_are_left_are_told(after: int, told: str) -> None:
    assert tell_remaining([found(9)], [found(after, advised=True)]).startswith(told)


def test_runs_that_show_nothing_are_not_compared() -> None:
    assert tell_remaining([found(9)], [found(0, control=1, advised=True)]) == ""
