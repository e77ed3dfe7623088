"""Tries a pain on the kernel: is its cause named, its fix proposed, and is it gone with the fix?"""

import json
import os
import re
import subprocess
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ordinary_user
from pain import HERE, Pain
from staying import Place

PATIENCE_SECONDS = 280.0
"""For one command."""
IMAGES = HERE.parents[1] / "build" / "pains"
"""Where `tools/make-pains-images` leaves its images: a store of its own, which all trials share."""
UNIFIED = Path("/sys/fs/cgroup/cgroup.controllers")
"""Is there where version 2 of control groups is all that there is."""
MAKE_IMAGES = str(HERE.parents[1] / "tools" / "make-pains-images")
ID_IN_TEXT = re.compile(r"\[([a-z]+[A-Z][A-Za-z0-9]*|[a-z]{4,})\]")
"""Errors are told in words, with the id of their cause in brackets."""


class Ground(Place):
    """Other tests hold that nothing is left on the machine; here other clusters come and go meanwhile."""

    def assert_clean(self) -> None:
        pass


@dataclass
class Said:
    """What one command said. `causes` are the ids that it named, `problems` those of them that are problems."""

    status: int
    text: str
    causes: set[str] = field(default_factory=set)
    problems: set[str] = field(default_factory=set)
    fixes: list[str] = field(default_factory=list)

    def add(self, id_: str, fix: str, *, problem: bool) -> None:
        self.causes.add(id_)
        if problem:
            self.problems.add(id_)
        if fix:
            self.fixes.append(fix)


@dataclass
class Verdict:
    """The three answers, and why one of them is no. `seconds` is for all of it."""

    pain: str
    named: bool = False
    proposed: bool = False
    removed: bool = False
    seconds: float = 0.0
    known: str = ""
    why: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return self.named and self.proposed and self.removed

    @property
    def word(self) -> str:
        """`ok`, `FAIL`, `known` (expected to fail, and does) or `MENDED` (expected to fail, and does not)."""
        if self.known:
            return "MENDED" if self.passed else "known"
        return "ok" if self.passed else "FAIL"

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"result": self.word}


def images_made() -> list[str]:
    """Names of the images that are there."""
    return [each.name.removeprefix("made-") for each in IMAGES.glob("made-*")]


def try_pain(pain: Pain, user: str = ordinary_user.USERS[0]) -> Verdict:
    """The broken one, then the fixed one, each in a cluster of its own."""
    began, verdict = time.monotonic(), Verdict(f"{pain.area}/{pain.name}", known=pain.known)
    pain = pain.on(unified=UNIFIED.exists())
    environment: dict[str, str | None] = {"XDG_DATA_HOME": str(IMAGES)} if pain.image else {}
    try:
        with TemporaryDirectory(prefix="lastcall-pain-") as directory, Ground(user, environment) as place:
            work = Path(directory)
            work.chmod(0o777)
            documents = run(place, work, pain, fixed=False)
            judge_broken(pain, documents[0], verdict)
            if pain.silent:
                verdict.removed = verdict.named
            else:
                last = documents[1] if pain.fixed.advice and len(documents) > 1 else None
                if last is None and not pain.fixed.advice:
                    (last,) = run(place, work, pain, fixed=True)
                if last is None:
                    verdict.why.append("no advice that --apply-advice could try")
                else:
                    judge_fixed(pain, last, verdict)
    except (AssertionError, OSError, subprocess.SubprocessError, ValueError) as error:
        verdict.why.append(f"{type(error).__name__}: {error}"[-2000:])
        verdict.removed = False
    verdict.seconds = round(time.monotonic() - began, 1)
    return verdict


# -- verdicts (pure) ---------------------------------------------------------------------------------------------------


def judge_broken(pain: Pain, said: Said, verdict: Verdict) -> None:
    """Is the cause named, and no other one; is the fix proposed?"""
    expect, wrong = pain.expect, []
    if said.status != expect.status:
        wrong.append(f"broken: exit status {said.status}, not {expect.status}")
    if missing := [each for each in expect.causes if each not in said.causes]:
        wrong.append(f"broken: not named: {', '.join(missing)}; named: {', '.join(sorted(said.causes)) or 'nothing'}")
    if beside := said.problems - {*expect.causes, *expect.also}:
        wrong.append(f"broken: named beside: {', '.join(sorted(beside))}")
    wrong += [f"broken: does not say {each!r}" for each in expect.says if not re.search(each, said.text, re.DOTALL)]
    verdict.named = not wrong
    texts = [*said.fixes, said.text]
    verdict.proposed = not expect.fix or any(re.search(expect.fix, each, re.DOTALL) for each in texts)
    if not verdict.proposed:
        wrong.append(f"broken: no fix matches {expect.fix!r}; fixes: {said.fixes}")
    verdict.why += [*wrong, *([said.text[-1500:]] if wrong else [])]


def judge_fixed(pain: Pain, said: Said, verdict: Verdict) -> None:
    """Is it gone?"""
    fixed, wrong = pain.fixed, []
    if said.status != fixed.status:
        wrong.append(f"fixed: exit status {said.status}, not {fixed.status}")
    if left := (set(pain.expect.causes) | said.problems) & said.causes - {*fixed.keeps}:
        wrong.append(f"fixed: still named: {', '.join(sorted(left))}")
    wrong += [f"fixed: does not say {each!r}" for each in fixed.says if not re.search(each, said.text, re.DOTALL)]
    verdict.removed = not wrong
    verdict.why += [*wrong, *([said.text[-1500:]] if wrong else [])]


def said_of_pods(said: Said, document: dict[str, Any]) -> None:
    """Stories (`lastcall/ending/v1`)."""
    for pod in document.get("pods") or ([document] if "outcome" in document else []):
        for each in pod.get("findings") or ():
            said.add(each["id"], each.get("advice") or "", problem=each["severity"] == "problem")
            said.text += "\n" + each["text"]
        said.text += f"\noutcome: {pod.get('outcome')}"
        said.text += f"\ndecided: {json.dumps(pod.get('decidedBy'))}"


def said_of_experiment(status: int, text: str, experiment: dict[str, Any]) -> Said:
    """One experiment of `lastcall rollout`: the most frequent cause is the one that it names."""
    said = Said(status, f"{text}\n{experiment['verdict']}: {experiment['sentence']}")
    counts = experiment["byCause"]
    ids = {each["cause"]: each["causeId"] for each in experiment["lostRequests"]}
    if counts:
        said.add(ids[max(counts, key=counts.__getitem__)], "", problem=True)
    for each in experiment["advice"]:
        said.fixes.append(each["sentence"])
        said.causes.add(each["id"])
    for each in experiment.get("notes") or ():
        said.add(each["id"], each["text"], problem=False)
    said.text += "\n" + "\n".join(said.fixes)
    return said


def said_of_lint(said: Said, document: dict[str, Any]) -> None:
    """Findings of `lastcall lint`."""
    for each in document.get("findings") or ():
        id_ = each.get("id") or each.get("rule") or ""
        words = each.get("fix") or ""
        text = words if isinstance(words, str) else json.dumps(words)
        said.add(id_, text, problem=each.get("severity") in ("error", "problem"))
        said.text += f"\n{each.get('message') or each.get('text') or ''}"


# -- commands ----------------------------------------------------------------------------------------------------------


def run(place: Place, work: Path, pain: Pain, *, fixed: bool) -> list[Said]:
    """What the command said: of each experiment with `--apply-advice`, else one."""
    path = work / ("fixed.yaml" if fixed else "broken.yaml")
    path.write_text(pain.manifest(fixed=fixed))
    path.chmod(0o644)
    args = pain.fixed.args if fixed and pain.fixed.args is not None else pain.args
    if pain.command == "story":
        return [in_cluster(place, work, pain, path, fixed)]
    if pain.command == "lint" and (pain.directory / "steps.sh").exists():
        in_cluster(place, work, pain, path, fixed)  # what is predicted happens
    more = ["--apply-advice"] if pain.command == "rollout" and pain.fixed.advice and not fixed else []
    status, out, err = called(place, pain.command, str(path), *args, *more, "-o", "json")
    document = json.loads(out) if out.strip().startswith("{") else {}
    if document.get("experiments"):
        found = [said_of_experiment(status, err, each) for each in document["experiments"]]
        if len(found) > 1:  # the exit status is the last one's
            found[0].status = document["pooled"]["manifest"]["exitStatus"]
        return found
    requests = document.get("requests")
    said = said_of_experiment(status, err, requests) if requests else Said(status, err)
    for id_ in ID_IN_TEXT.findall(err):
        said.add(id_, "", problem=True)
    said_of_pods(said, document)
    said_of_lint(said, document)
    return [said]


def in_cluster(place: Place, work: Path, pain: Pain, path: Path, fixed: bool) -> Said:
    """A cluster that stays, what `steps.sh` does with it, and the story of one Pod, where one is asked for.

    `prepare.sh` comes before the cluster, in the same directory. `steps.sh` gets the manifest as $1; it fails where the
    symptom is not there ($FIXED is empty), or where it is still there ($FIXED is 1), and says why on stderr.
    """
    name = "fixed" if fixed else "broken"
    environment = {**os.environ, "FIXED": "1" if fixed else "", "CLUSTER": name, "LASTCALL": " ".join(place.command())}
    environment["PAIN"] = str(pain.directory)
    if (pain.directory / "prepare.sh").exists():
        script(work, pain, "prepare.sh", path, environment)
    facts = cluster_facts(called(place, "up", "--detach", "--name", name, "-o", "json", *substituted(work, pain)))
    try:
        place.watch(facts["pid"])
        published = {f"PUBLISHED_{number}": each["address"] for number, each in enumerate(facts.get("published") or ())}
        environment |= {"KUBECONFIG": facts["kubeconfig"], **published}
        told = script(work, pain, "steps.sh", path, environment)
        if not pain.pod:
            return Said(0, told)
        asked = pain.pod.split()
        if asked == ["$NAME"]:  # steps.sh says which
            asked = (work / "name").read_text().split()
        status, out, err = called(place, "story", *asked, "--name", name, "-o", "json")
        said = Said(status, f"{told}\n{err}")
        if out.strip().startswith("{"):
            said_of_pods(said, json.loads(out))
        return said
    finally:
        called(place, "down", name, "--timeout", "60")


def script(work: Path, pain: Pain, file: str, path: Path, environment: dict[str, str]) -> str:
    """What a script of the pain printed. AssertionError where it failed."""
    command = ["bash", "-euo", "pipefail", str(pain.directory / file), str(path)]
    options: dict[str, Any] = {"capture_output": True, "text": True, "timeout": PATIENCE_SECONDS}
    ended = subprocess.run(command, env=environment, cwd=work, **options)
    output = ended.stdout + ended.stderr
    assert ended.returncode == 0, f"{environment['CLUSTER']}: {file} ended with {ended.returncode}: {output}"
    return output


def substituted(work: Path, pain: Pain) -> list[str]:
    """Options of `up`: `$PAIN` is the pain's directory, `$TMP` one of the trial's own."""
    words = [each.replace("$PAIN", str(pain.directory)) for each in pain.up]
    return [each.replace("$TMP", str(work)) for each in words]


def called(place: Place, *arguments: str) -> tuple[int, str, str]:
    """A command from start to end: status, stdout, stderr."""
    with place.start(*arguments) as process:
        try:
            out, err = process.communicate(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.terminate()
            out, err = process.communicate(timeout=60)
            raise
    return process.returncode, out, err


def cluster_facts(result: tuple[int, str, str]) -> dict[str, Any]:
    """What `lastcall up -o json` says, which has to succeed."""
    assert result[0] == 0, f"exit status {result[0]}: {result[1]}{result[2]}"
    return dict(json.loads(result[1]))


def told(verdict: Verdict) -> str:
    """One line."""
    answers = (("cause", verdict.named), ("fix", verdict.proposed), ("removed", verdict.removed))
    marks = " · ".join(f"{name} {'yes' if answer else 'NO'}" for name, answer in answers)
    return f"{verdict.word:7}{verdict.pain:45}{verdict.seconds:6.1f} s  {marks}"


def summary(verdicts: list[Verdict]) -> str:
    """`62/64 (1 expected to fail, …)`."""
    counts = {word: [each.pain for each in verdicts if each.word == word] for word in ("FAIL", "known", "MENDED")}
    passed = sum(each.passed for each in verdicts)
    words = {"FAIL": "failed", "known": "expected to fail", "MENDED": "expected to fail, and did not"}
    notes = [f"{len(those)} {words[word]}: {', '.join(those)}" for word, those in counts.items() if those]
    return f"{passed}/{len(verdicts)}{f' ({chr(59).join(notes)})' if notes else ''}"
