"""Light pains: what follows from a manifest alone, with certainty. `predicted/GROUP/RULE.yaml`, one for a rule of
`lint`.

Each starts from `predicted/base.yaml`, an application that is in order. `broken` is a list of strategic merge patches
of it (an object that it does not have is added, before the others), or a text that replaces it; `fixed` likewise, and
the base itself where it is left out. `lint` has to name the rule on the broken one, of the object and at the field
that `at` says, and never on the fixed one. In a namespace of its own on a cluster on the kernel:

- `refused`: kubectl apply is refused with this text (a regular expression); the fixed one is taken without it.
- `warned`: it is taken, and this is said.
- `happens`: what bash ends with 0 for as soon as it happens, within `within` seconds. With the fix `works` has to come
  true in place of it (default: each Deployment is available), and `happens` must not be true any more.
- `steps`: done once before, with both: an update, a deletion. $WORK is a directory for what it saw, $FIXED 1 or "".

`predicted/lib.sh` has the words that the scripts share.
"""

import copy
import functools
import os
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ordinary_user
import yaml
from kubectls import KUBECTL
from pain import HERE, resource_of
from trial import Ground, Verdict, called, cluster_facts

from lastcall.kube.api.patch.apply import strategic_merge_patch
from lastcall.lint.engine import lint
from lastcall.lint.sources import read as read_subjects
from lastcall.lint.subject import Finding
from lastcall.manifests.paths import shown_path

PREDICTED = HERE / "predicted"
AT_ONCE = 4
"""How many are tried at the same time: they mostly wait."""
OPTIONS = ("--nodes", "2", "--propagation", "500ms")
"""Of their cluster. node-2 is cordoned: nothing is there but what names it. Endpoints' changes arrive a moment late."""
PATIENCE_SECONDS = 90.0
"""For a script that waits for nothing in particular, on a machine that has other work."""
DEFAULT_WORKS = "available"
POLL_SECONDS = 0.5
DEFAULT_NAMESPACE = re.compile(r"(kind: Namespace\nmetadata:\n(?:  .*\n|    .*\n)*?  name: )default\b")
"""Labels of the namespace are part of some manifests: it is `default` there, and one of its own here."""


@dataclass(frozen=True)
class Light:
    """One of them. `at`: `Kind/name field.path`, or `line N` of a text in which there is no object.

    `known` as of other pains: why it is expected to fail today, "" where it is not."""

    rule: str
    group: str
    what: str
    words: str
    at: str
    broken: Any
    fixed: Any = ()
    refused: str = ""
    warned: str = ""
    happens: str = ""
    works: str = DEFAULT_WORKS
    steps: str = ""
    within: float = 60.0
    stand_in: str = ""
    known: str = ""

    @property
    def name(self) -> str:
        return f"predicted/{self.rule}"

    @property
    def file(self) -> Path:
        return PREDICTED / self.group / f"{self.rule}.yaml"

    def manifest(self, *, fixed: bool) -> str:
        """The whole manifest, as a text."""
        given = self.fixed if fixed else self.broken
        return given if isinstance(given, str) else yaml.safe_dump_all(_changed(_base(), given), sort_keys=False)


@functools.cache
def _base_text() -> str:
    return (PREDICTED / "base.yaml").read_text()


def _base() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(_base_text()))


def _changed(base: list[dict[str, Any]], patches: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What is added comes first: quotas and claims are there before the Pods."""
    left = {(each["kind"], each["metadata"].get("name")): copy.deepcopy(each) for each in patches}
    objects = []
    for each in base:
        patch = left.pop((each["kind"], each["metadata"]["name"]), {})
        if patch.pop("$patch", "") != "delete":
            objects.append(strategic_merge_patch(resource_of(each), each, patch) if patch else each)
    return [*left.values(), *objects]


def load_lights() -> list[Light]:
    """All of them, by group and rule. ValueError for a file that is not one."""
    found = []
    for path in sorted(PREDICTED.glob("*/*.yaml")):
        try:
            found.append(Light(rule=path.stem, group=path.parent.name, **yaml.safe_load(path.read_text())))
        except (TypeError, yaml.YAMLError) as error:
            raise ValueError(f"{path}: {error}") from error
    return found


def exempted() -> dict[str, str]:
    """Rules that no pain proves, and why."""
    return dict(yaml.safe_load((PREDICTED / "exempted.yaml").read_text()))


# -- lint --------------------------------------------------------------------------------------------------------------


def linted(light: Light, directory: Path, *, fixed: bool) -> dict[str, str]:
    """Where lint names this rule, and what it says there."""
    path = directory / ("fixed.yaml" if fixed else "broken.yaml")
    path.write_text(light.manifest(fixed=fixed))
    given = read_subjects([str(path)])
    findings = [(f"line {each.spot.line}", each.finding) for each in given.of_texts]
    findings += [(place_of(each), each) for each in lint(given.subjects).findings]
    return {place: each.message for place, each in findings if each.rule == light.rule}


def place_of(finding: Finding) -> str:
    """`Kind/name field.path`."""
    whose = "/".join(each for each in (finding.subject.kind, finding.subject.name) if each)
    return f"{whose} {shown_path(finding.path)}".strip()


def judge_lint(light: Light, directory: Path) -> Iterator[str]:
    """What is wrong with what lint says."""
    named = linted(light, directory, fixed=False)
    if light.at not in named:
        yield f"lint: not named at {light.at!r}; named: {named or 'nowhere'}"
    if left := linted(light, directory, fixed=True):
        yield f"lint: still named on the fixed one: {left}"


# -- on the kernel -----------------------------------------------------------------------------------------------------


def try_lights(lights: Sequence[Light], user: str = ordinary_user.USERS[0]) -> Iterator[Verdict]:
    """All of them in one cluster, as they end."""
    if not lights:
        return
    with TemporaryDirectory(prefix="lastcall-predicted-") as directory, Ground(user, {}) as place:
        facts = cluster_facts(called(place, "up", "--detach", "--name", "predicted", "-o", "json", *OPTIONS))
        try:
            place.watch(facts["pid"])
            kubeconfig = Path(facts["kubeconfig"]).read_text()
            admin = Path(directory) / "kubeconfig"
            admin.write_text(kubeconfig)
            kubectl(admin, "cordon", "node-2")
            with ThreadPoolExecutor(AT_ONCE) as pool:
                yield from pool.map(lambda each: try_light(each, kubeconfig, Path(directory)), lights)
        finally:
            called(place, "down", "predicted", "--timeout", "60")


def try_light(light: Light, kubeconfig: str, directory: Path) -> Verdict:
    """The broken one, then the fixed one."""
    began, verdict = time.monotonic(), Verdict(light.name, known=light.known)
    work = directory / light.rule
    work.mkdir()
    wrong = list(judge_lint(light, work))
    verdict.named = not wrong
    try:
        happened = list(_on_the_kernel(light, kubeconfig, work, fixed=False))
        verdict.proposed = not happened  # what is predicted comes about
        gone = list(_on_the_kernel(light, kubeconfig, work, fixed=True))
        verdict.removed = not gone
        wrong += [*happened, *gone]
    except (OSError, subprocess.SubprocessError) as error:
        wrong.append(f"{type(error).__name__}: {error}"[-2000:])
    verdict.why = wrong
    verdict.seconds = round(time.monotonic() - began, 1)
    return verdict


def _on_the_kernel(light: Light, kubeconfig: str, work: Path, *, fixed: bool) -> Iterator[str]:
    """What is not as it was predicted."""
    state = "fixed" if fixed else "broken"
    namespace = f"{light.rule.lower()}-{state}"
    (work / state).mkdir()
    config = work / state / "kubeconfig"
    config.write_text(_in_namespace(kubeconfig, namespace))
    manifest = work / f"{state}.yaml"
    manifest.write_text(DEFAULT_NAMESPACE.sub(rf"\g<1>{namespace}", light.manifest(fixed=fixed)))
    kubectl(config, "create", "namespace", namespace)
    try:
        for _ in range(100):
            if kubectl(config, "get", "serviceaccount", "default").returncode == 0:
                break
            time.sleep(0.1)  # pause of a poll
        applied = kubectl(config, "apply", "-f", str(manifest))
        said = applied.stdout + applied.stderr
        yield from judge_apply(light, applied.returncode, said, fixed=fixed)
        if not light.happens or applied.returncode:
            return
        run = functools.partial(_bash, work / state, config, namespace, manifest, fixed)
        if light.steps and (ended := run(light.steps)).returncode:
            yield f"{state}: steps ended with {ended.returncode}: {ended.stdout}{ended.stderr}"
            return
        wanted = light.works if fixed else light.happens
        last = _until(functools.partial(run, wanted), light.within)
        if last is not None:
            yield f"{state}: within {light.within:g} s not true: {wanted.strip()}\n{last}{run('told').stdout}"[-3000:]
        elif fixed and run(light.happens).returncode == 0:
            yield f"fixed: it happens all the same: {light.happens.strip()}"
    finally:
        kubectl(config, "delete", "namespace", namespace, "--wait=false")


def judge_apply(light: Light, status: int, said: str, *, fixed: bool) -> Iterator[str]:
    """What kubectl apply should not have answered (pure)."""
    state, refused = "fixed" if fixed else "broken", bool(light.refused) and not fixed
    if (status != 0) is not refused:
        yield f"{state}: kubectl apply ended with {status}: {said}"
    expected = light.refused or light.warned
    if expected and bool(re.search(expected, said, re.DOTALL)) is fixed:
        yield f"{state}: kubectl apply {'still says' if fixed else 'does not say'} {expected!r}: {said}"


def _until(check: Any, seconds: float) -> str | None:
    """None as soon as it is true, else what it said last."""
    deadline = time.monotonic() + seconds
    while (ended := check()).returncode:
        if time.monotonic() > deadline:
            return str(ended.stdout + ended.stderr)
        time.sleep(POLL_SECONDS)  # pause of a poll
    return None


def _bash(
    work: Path, config: Path, namespace: str, manifest: Path, fixed: bool, script: str
) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "KUBECONFIG": str(config), "NAMESPACE": namespace, "FIXED": "1" if fixed else ""}
    environment |= {"MANIFEST": str(manifest), "WORK": str(work)}
    command = ["bash", "-uo", "pipefail", "-c", f". {PREDICTED}/lib.sh\n{script}"]
    options: dict[str, Any] = {"capture_output": True, "text": True, "timeout": PATIENCE_SECONDS}
    return subprocess.run(command, env=environment, cwd=work, check=False, **options)


def _in_namespace(kubeconfig: str, namespace: str) -> str:
    config = yaml.safe_load(kubeconfig)
    for each in config["contexts"]:
        each["context"]["namespace"] = namespace
    return yaml.safe_dump(config)


def kubectl(config: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [KUBECTL or "kubectl", "--kubeconfig", str(config), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
