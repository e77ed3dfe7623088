"""The levels of the tour: a manifest that the learner changes, and a goal.

Their data are in `levels.json`, their texts in the catalogue (ui/texts.py).
"""

# check: pure

import functools
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import resources
from typing import Any

import orjson

from lastcall.kube.api import Object
from lastcall.manifests import YAMLProblem, read_documents
from lastcall.records.said import Said, tell
from lastcall.ui.texts import Text, texts
from lastcall.ui.tour.experiments import LABEL, SERVES, Act, Experiment
from lastcall.ui.tour.goals import Choice, Condition, Question
from lastcall.world.dataclass import dataclass

KINDS = ("Pod", "Service", "PodDisruptionBudget", "Deployment")
MOST_OBJECTS = 8
STAYS = "stays"
"""The name of the Pod that a level with a Service has beside the learner's: alone, a Pod that ends still gets new
connections, because a proxy without a ready endpoint takes one that serves."""


class BadManifest(ValueError):
    """The learner's manifest cannot be run; the text says why, and what to write."""

    def __init__(self, text: Said) -> None:
        super().__init__(text)
        self.text = text


@dataclass(frozen=True, slots=True)
class Level:
    """`solution` reaches the goal: (text, its replacement) pairs, and `grace`, the grace period to delete with, None
    for the Pod's own. `expect` is asked before the first run, `reached` is said with the goal, and `says` is what is
    new in the rule. After `releases` seconds the run removes a finalizer that holds the Pod. `needs` is what not every
    machine has; `versions` the experiment whose comparison of versions is shown."""

    id: str
    rule: str
    question: Text
    expect: Question
    hints: tuple[Text, ...]
    reached: Text
    says: Text
    manifest: str
    goal: tuple[Condition, ...]
    solution: tuple[tuple[str, str], ...]
    grace: int | None = None
    releases: float | None = None
    needs: str = ""
    versions: str = ""

    @property
    def run(self) -> str:
        """Return the name of its runs, which no experiment has."""
        return f"level-{self.id}"

    @property
    def solved(self) -> str:
        """Return the manifest that reaches the goal."""
        text = self.manifest
        for old, new in self.solution:
            text = text.replace(old, new)
        return text


@functools.cache
def levels() -> Mapping[str, Level]:
    """Return the levels by id, in their order."""
    found = orjson.loads((resources.files("lastcall.ui.tour") / "levels.json").read_bytes())
    return {each["id"]: _level(each) for each in found}


def recorded(level: str) -> dict[str, Any]:
    """Return what the virtual cluster recorded of a level that not every machine can run, as it is given.

    Raises KeyError for a level that every machine can run.
    """
    found: dict[str, Any] = orjson.loads((resources.files("lastcall.ui.tour") / "recorded.json").read_bytes())[level]
    return found


def _level(data: Mapping[str, Any]) -> Level:
    says = texts()["levels"][data["id"]]
    choices = zip(says["choices"], data["choices"], strict=True)
    made: dict[str, Any] = {
        **{key: value for key, value in data.items() if key != "choices"},
        **{key: says[key] for key in ("question", "reached", "says")},
        "expect": Question(says["ask"], tuple(Choice(text, _conditions(rows)) for text, rows in choices)),
        "hints": tuple(says["hints"]),
        "manifest": "\n".join(data["manifest"]) + "\n",
        "goal": _conditions(data["goal"], says["goal"]),
        "solution": tuple((old, new) for old, new in data["solution"]),
    }
    return Level(**made)


def _conditions(rows: Sequence[Sequence[Any]], texts: Sequence[Mapping[str, Text]] = ()) -> tuple[Condition, ...]:
    """Return the conditions of a goal with their texts, or of a choice, which has none."""
    said = zip(rows, texts or [{}] * len(rows), strict=True)
    return tuple(Condition(path, sign, want, **says) for (path, sign, want), says in said)


def level_document(level: Level) -> dict[str, Any]:
    """Return what the page gets."""
    return {
        "id": level.id,
        "rule": level.rule,
        "question": level.question,
        "expect": {"ask": level.expect.ask, "choices": [each.says for each in level.expect.choices]},
        "hints": level.hints,
        "reached": level.reached,
        "says": level.says,
        "manifest": level.manifest,
        "goal": [asdict(each) for each in level.goal],
        "needs": level.needs,
        "versions": level.versions,
        "solved": level.solved,
        "grace": level.grace,
    }


def experiment_of(level: Level, manifest: str, grace: int | None, guess: int | None = None) -> Experiment:
    """Return what is run of the learner's manifest. `guess` is the number of a choice. Raises BadManifest."""
    objects = _objects(manifest)
    pods = [each for each in objects if each["kind"] == "Pod"]
    if not pods:
        raise BadManifest(tell("the manifest has no Pod: keep one object of kind Pod"))
    _part(pods[0], "metadata", "labels")[LABEL] = level.run
    _part(pods[0], "spec").setdefault("automountServiceAccountToken", False)
    if any(each["kind"] == "Service" for each in objects):
        objects.append(_stays(pods[0], objects))
    acts = [Act(grace=grace)]
    if level.releases is not None:
        acts.append(Act("patch", after=level.releases, held=True))
    made = guess if guess in range(len(level.expect.choices)) else None
    return Experiment(
        level.run, tuple(objects), tuple(acts), goal=level.goal, manifest=manifest, expect=level.expect, guess=made
    )


def _objects(manifest: str) -> list[Object]:
    try:
        found: list[Any] = [each.value for each in read_documents(manifest)]
    except YAMLProblem as error:
        raise BadManifest(tell("line $line of the manifest: $why", line=error.line, why=error.args[0])) from None
    if len(found) > MOST_OBJECTS:
        text = tell(
            "the manifest has $count objects, and a level accepts $most: remove some",
            count=len(found),
            most=MOST_OBJECTS,
        )
        raise BadManifest(text)
    for each in found:
        if not isinstance(each, dict) or each.get("kind") not in KINDS:
            kind = each.get("kind") if isinstance(each, dict) else type(each).__name__
            raise BadManifest(tell("a level accepts $kinds, not $kind", kinds=", ".join(KINDS), kind=kind))
        _part(each, "metadata").pop("namespace", None)
        if not isinstance(each["metadata"].get("name"), str):
            raise BadManifest(tell("the $kind has no name: write metadata.name", kind=each["kind"]))
    return found


def _part(obj: Object, *path: str) -> dict[str, Any]:
    """The mapping at `path`, made where there is none. Raises BadManifest for something else."""
    for key in path:
        inner = obj.get(key)
        if inner is None:
            inner = obj[key] = {}
        if not isinstance(inner, dict):
            where, kind = ".".join(path), obj.get("kind", "object")
            raise BadManifest(tell("$where of the $kind is not a mapping", where=where, kind=kind))
        obj = inner
    return obj


def _stays(pod: Object, objects: list[Object]) -> Object:
    """A Pod that the same Services select, and that nothing is done to."""
    made: Object = orjson.loads(orjson.dumps(pod))
    labels = {key: value for key, value in made["metadata"]["labels"].items() if key != LABEL}
    for each in objects:
        if each["kind"] == "Service":
            labels |= _part(each, "spec", "selector")
    made["metadata"] = {"name": STAYS, "labels": labels or {SERVES: "1"}}
    return made
