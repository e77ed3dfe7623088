"""Judges what lastcall said of a case against the truth. Pure: no process, no file."""

import json
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from bench.diagnosis.fault import Injected
from bench.diagnosis.repair import mapping_in
from lastcall.endings import CATALOGUE

Grade = Literal["right", "half", "silent", "wrong"]
SURROUNDINGS = frozenset({
    "imageSubstituted", "generatorLate", "ingressIgnored", "customResourceIgnored", "clusterDiffers", "onACluster",
    "hookTimeNotCounted",
})  # fmt: skip
"""Findings about this machine or this cluster, not about the application."""
NOT_A_CAUSE = frozenset({"unexplained", "notSeen"})
UNCERTAIN = re.compile(r"\(inferred\)|\bprobably\b|\bperhaps\b|\bmay have\b|\bnot known\b")
IN_BRACKETS = re.compile(r"fix: (.*) \[(\w+)\]$")
HEADLINE = re.compile(r"lastcall: \S")
"""The first line about an object; those that belong to it are indented."""
HOOK_NOT_DONE = ("failed", "outlived", "skipped", "interrupted")
OF_LINT = re.compile(r"\(lastcall lint: (\w+)\)")


@dataclass(frozen=True)
class Named:
    """One finding: what lastcall named, how sure it is, and what it proposes."""

    id: str
    severity: str
    container: str = ""
    text: str = ""
    advice: str = ""
    change: dict[str, Any] = field(default_factory=dict)
    """`{"patch": …}`, `{"program": verb}` or, of a rollout, `{"workload": …}`."""
    by: Literal["story", "error", "rollout", "lint"] = "story"

    @property
    def certain(self) -> bool:
        return self.severity in ("problem", "warning") and not UNCERTAIN.search(self.text)


@dataclass(frozen=True)
class Answer:
    """What one command said: its exit status, its findings, and the measured facts."""

    status: int
    named: tuple[Named, ...]
    facts: dict[str, Any]
    stderr: str = ""


def read_answer(status: int, stdout: str, stderr: str) -> Answer:
    """Read a command's output: its document, or the text of what never became ready."""
    document: dict[str, Any] = {}
    if stdout.strip().startswith("{"):
        document = json.loads(stdout)
    named = [*_of_stories(document), *_of_experiments(document), *_of_unready(document), *_of_lint(stderr)]
    if not document:
        named += _of_error(stderr)
    return Answer(status, tuple(named), _facts(status, document), stderr)


def _of_stories(document: dict[str, Any]) -> list[Named]:
    return [_named(each) for pod in document.get("pods") or () for each in pod.get("findings") or ()]


def _named(finding: dict[str, Any], by: Any = "story") -> Named:
    return Named(
        finding["id"], finding["severity"], finding.get("container") or "", finding["text"],
        finding.get("advice") or "", finding.get("change") or {}, by,
    )  # fmt: skip


def _of_experiments(document: dict[str, Any]) -> list[Named]:
    named = []
    for experiment in document.get("experiments") or ():
        advice = {each["id"]: each for each in experiment["advice"]}
        lost = dict.fromkeys(each["causeId"] for each in experiment["lostRequests"])
        for id_ in dict.fromkeys((*lost, *advice)):
            proposed = advice.get(id_, {})
            patch = proposed.get("patch") or {}
            program = proposed.get("program")
            change = {"workload": patch} if patch else {"program": program} if program else {}
            text = experiment["sentence"]
            named.append(Named(id_, "problem", "", text, proposed.get("sentence") or "", change, "rollout"))
        named += [_named(each, "rollout") for each in experiment.get("notWell") or ()]
        named += [_of_note(each) for each in experiment.get("notes") or ()]
    return named


def _of_note(note: dict[str, Any]) -> Named:
    """Read a note of an experiment: it has no severity, and its advice is in its text."""
    text, _, advice = note["text"].partition(" fix: ")
    return Named(note["id"], "info", "", text, advice, by="rollout")


def _of_unready(document: dict[str, Any]) -> list[Named]:
    """Return the causes of Pods that did not become Ready."""
    return [_named(each, "error") for each in document.get("notReady") or ()]


def _of_error(stderr: str) -> list[Named]:
    """Return the causes in the text of an error: ids in brackets after the fix."""
    lines = stderr.splitlines()
    named, begin = [], 0
    for number, line in enumerate(lines):
        if HEADLINE.match(line):
            begin = number
        if (found := IN_BRACKETS.search(line)) and found.group(2) in CATALOGUE:
            text = "\n".join(lines[begin:number])
            named.append(Named(found.group(2), "problem", "", text, found.group(1), by="error"))
    return named


def _of_lint(stderr: str) -> list[Named]:
    lines = stderr.splitlines()
    found = []
    for number, line in enumerate(lines):
        for id_ in OF_LINT.findall(line):
            said = lines[number - 1] if number and "fix:" in line else line
            severity = "problem" if said.startswith("error") else "warning"
            found.append(Named(id_, severity, "", said, line.partition("fix: ")[2], by="lint"))
    return found


def _facts(status: int, document: dict[str, Any]) -> dict[str, Any]:
    """Return what was measured, beside all findings."""
    containers = [each for pod in document.get("pods") or () for each in pod.get("containers") or ()]
    experiments = document.get("experiments") or ()
    ready = bool(document) and document.get("error") is None
    codes = {each["name"]: _code(each) for each in containers} if not experiments else {}
    hooks = {each["name"]: each["preStop"]["outcome"] for each in containers if each.get("preStop")}
    outcomes = [pod.get("outcome") for pod in document.get("pods") or ()] if not experiments else []
    lost = sum(each["lost"] + each["control"]["lost"] for each in experiments)
    verdicts = [each["verdict"] for each in experiments]
    sentences = [each["sentence"] for each in experiments]
    return {
        "status": status, "ready": ready, "exitCodes": codes, "hooks": hooks, "outcomes": outcomes, "lost": lost,
        "verdicts": verdicts, "sentences": sentences,
    }  # fmt: skip


def _code(container: dict[str, Any]) -> int | None:
    """Return the exit code; 0 for the one that says that the stop signal ended the program."""
    code: int | None = container["exitCode"]
    number = getattr(signal, container.get("stopSignal") or "SIGTERM", signal.SIGTERM)
    return 0 if code == 128 + number else code


def is_well(answer: Answer, gone: frozenset[str] = frozenset(), container: str = "") -> bool:
    """Return True if nothing of a fault is left by the measured facts, and no id of `gone` is named of `container`."""
    facts = answer.facts
    if facts["status"] != 0 or not facts["ready"] or facts["lost"]:
        return False
    if any(code != 0 for code in facts["exitCodes"].values()):
        return False
    if any(outcome in HOOK_NOT_DONE for outcome in facts["hooks"].values()):
        return False
    if any(verdict != "nothing lost" for verdict in facts["verdicts"]):
        return False
    return not any(each.id in gone and each.container in ("", container) for each in answer.named)


def is_open(answer: Answer) -> bool:
    """Return True if an experiment without a lost request is inconclusive: the machine was too busy to say more."""
    return "inconclusive" in answer.facts["verdicts"] and not answer.facts["lost"]


# -- the judgement -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Proposal:
    """A change that the harness is to apply: a patch to be tried, or a repair that it knows to be one (`accepted`).

    `patch` is one of the Pod template's spec, `mapping` what a reader takes from a sentence: some of its fields may
    belong to the container.
    """

    kind: Literal["program", "words", "patch", "mapping", "workload", "none"]
    patch: dict[str, Any] = field(default_factory=dict)
    container: str = ""
    accepted: bool = False
    said: str = ""


def named_of(answer: Answer, truth: Injected, elsewhere: frozenset[str] = frozenset()) -> list[Named]:
    """Return the findings that name this fault, but for those of other containers: theirs is another matter."""
    fault = truth.fault
    ids = {"lint": fault.causes | fault.lint}

    def names(each: Named) -> bool:
        if each.id in fault.worded:
            return mentions(each.advice, truth.words)
        return each.id in ids.get(each.by, fault.causes)

    here = [each for each in answer.named if fault.beside or each.container in ("", truth.container)]
    return [each for each in here if names(each) and each.container not in elsewhere]


def offered(answer: Answer, truth: Injected, elsewhere: frozenset[str] = frozenset()) -> list[Proposal]:
    """Return the changes that an answer proposes for a fault, each once: accepted ones first, then those to be tried.

    What repairs a fault may stand at another finding than the one that names it, as a pause does that saves a request
    from any end. Its changes come after those of the finding that names the fault. Its words count only where none
    does: they mention an object easily that is not what they want changed.
    """
    found = named_of(answer, truth, elsewhere)
    others = [each for each in answer.named if each.certain and each not in found and each.container not in elsewhere]
    beside = proposals(others, truth)
    every = proposals(found, truth) + [each for each in beside if not found or each.kind != "words"]
    once: dict[tuple[str, str, str], Proposal] = {}
    for each in every:
        once.setdefault((each.kind, each.container, each.said), each)
    return sorted(once.values(), key=lambda each: not each.accepted)


def proposals(found: Sequence[Named], truth: Injected) -> list[Proposal]:
    """Return the changes that the findings propose, the best first: accepted ones, then patches to be tried."""
    made = [_proposal(each, truth) for each in found]
    return sorted((each for each in made if each.kind != "none"), key=lambda each: not each.accepted)


def _proposal(each: Named, truth: Injected) -> Proposal:
    if verb := each.change.get("program"):
        enough = not truth.fault.needs or mentions(each.advice, truth.fault.needs)
        return Proposal("program", accepted=verb in truth.fault.verbs and enough, said=verb)
    container = each.container or truth.container
    if patch := each.change.get("patch"):
        return Proposal("patch", patch, container, said=json.dumps(patch))
    if patch := each.change.get("workload"):
        return Proposal("workload", patch, container, said=json.dumps(patch))
    if each.advice and _says_it(each, truth):
        return Proposal("words", accepted=True, said=each.advice)
    if mapping := mapping_in(each.advice):
        return Proposal("mapping", mapping, container, said=json.dumps(mapping))
    return Proposal("none", said=each.advice)


def _says_it(each: Named, truth: Injected) -> bool:
    match truth.fault.by_words:
        case "advice":
            return mentions(each.advice, truth.words)
        case "finding":
            return mentions(f"{each.advice}\n{each.text}", truth.words)
    return False


def mentions(text: str, words: Sequence[str]) -> bool:
    """Return True if a text has all the words; `a|b` is any of them. Upper and lower case are the same."""
    text = text.lower()
    return bool(words) and all(any(each.lower() in text for each in word.split("|")) for word in words)


def grade(
    answer: Answer,
    truth: Injected,
    *,
    removed: bool,
    others: frozenset[str] = frozenset(),
    elsewhere: frozenset[str] = frozenset(),
) -> Grade:
    """Grade one fault.

    `removed` says whether the proposed change made it go. `others` are ids of other faults of the case, which are
    no mistakes; `elsewhere` are the containers of those.
    """
    if named_of(answer, truth, elsewhere):
        return "right" if removed else "half"
    if wrongly_named(answer, truth, others):
        return "wrong"
    return "half" if removed else "silent"


def wrongly_named(answer: Answer, truth: Injected, others: frozenset[str] = frozenset()) -> list[str]:
    """Return the ids that are named as certain and are neither the cause, nor what it leads to, nor another fault."""
    fine = truth.fault.causes | truth.fault.worded | truth.fault.symptoms | SURROUNDINGS | NOT_A_CAUSE | others
    wrong = (each.id for each in answer.named if each.certain and each.id not in fine and each.by != "lint")
    return list(dict.fromkeys(wrong))


def false_alarms(answer: Answer) -> list[str]:
    """Return what is found wrong with an application that has no fault."""
    alarms = (each.id for each in answer.named if each.severity != "info" and each.id not in SURROUNDINGS)
    return list(dict.fromkeys(alarms))
