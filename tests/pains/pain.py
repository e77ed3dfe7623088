"""What a pain is: a directory with a manifest, a command, the cause that must be named, the fix, and what it brings.

`AREA/NAME/pain.yaml` (keys below), `manifest.yaml`, and, where they are needed, `fix.yaml` (strategic merge patches, a
document for each object; one that the manifest does not have is added), `steps.sh` (for `story`, and for what `lint`
predicts), `prepare.sh` (before the cluster) and an `app` of its own. An application that several share stands in
`apps/`. The harness puts it, as app.py (or what the file is called after its last dot), into a ConfigMap `app`, which
the manifests mount.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

import yaml

from lastcall.kube.api.patch.apply import strategic_merge_patch
from lastcall.manifests.read import Manifest, load_manifests

HERE = Path(__file__).resolve().parent
APPS = HERE / "apps"
Command = Literal["run", "rollout", "lint", "story"]


@dataclass(frozen=True)
class Expected:
    """What the command must say of the broken manifest.

    `status` is its exit status. Each of `causes` (ids of the catalogue) must be named; what may be named beside them
    is in `also`, and nothing else that is a problem. `fix` is a regular expression on the text of the fix. `says`
    (regular expressions) must be in what a person reads. No causes: silence is right, and a problem is a failure.
    """

    status: int = 3
    causes: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    fix: str = ""
    says: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fixed:
    """How the fix is tried: `advice` tries the command's own patch (`--apply-advice`), else `fix.yaml`, another `app`
    and other `args` are. `status` and `says` as above; none of the causes may be named any more but those in `keeps`.
    """

    advice: bool = False
    app: str = ""
    args: tuple[str, ...] | None = None
    status: int = 0
    says: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pain:
    """One of them. `title` is what people type into a search box, `words` the fix; `stand_in` names what is not the
    real thing, "" for none.

    `image`: which of the images that `tools/make-pains-images` makes it needs. `lint`: ids of the rules of
    `lastcall lint` that predict it from the manifest; `lint_also`: those that find what only the trial needs. `known`
    says why it is expected to fail today, "" where it is not: it is counted, and told.
    """

    title: str
    symptom: str
    why: str
    words: str
    proof: str
    command: Command
    area: str = ""
    name: str = ""
    args: tuple[str, ...] = ()
    pod: str = ""
    up: tuple[str, ...] = ()
    app: str = ""
    image: str = ""
    stand_in: str = ""
    lint: tuple[str, ...] = ()
    lint_also: tuple[str, ...] = ()
    known: str = ""
    expect: Expected = field(default_factory=Expected)
    unified: Expected | None = None
    """What is expected on control groups of version 2 instead, where that differs."""
    fixed: Fixed = field(default_factory=Fixed)

    @property
    def directory(self) -> Path:
        return HERE / self.area / self.name

    @property
    def silent(self) -> bool:
        """Whether there is nothing wrong, and nothing may be said."""
        return not self.expect.causes

    def on(self, *, unified: bool) -> "Pain":
        """This pain as a machine with control groups of version 2, or 1, has it."""
        return replace(self, expect=self.unified) if unified and self.unified else self

    def manifest(self, *, fixed: bool = False) -> str:
        """The whole manifest as a text of YAML, with the application; with the fix where that is asked for."""
        docs = [yaml.safe_load(json.dumps(each)) for each in read(self.directory / "manifest.yaml")]
        if fixed and (self.directory / "fix.yaml").exists():
            docs = patched(self.directory / "manifest.yaml", read(self.directory / "fix.yaml"))
        app = (fixed and self.fixed.app) or self.app
        if app:
            path = self.directory / app if (self.directory / app).exists() else APPS / app
            data = {f"app{path.suffix}": path.read_text()}
            docs.insert(0, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app"}, "data": data})
        return yaml.safe_dump_all(docs, sort_keys=False)

    @property
    def applies_patch(self) -> bool:
        return (self.directory / "fix.yaml").exists()


def read(path: Path) -> list[dict[str, Any]]:
    """The documents of a file."""
    return [each for each in yaml.safe_load_all(path.read_text()) if each]


def patched(manifest: Path, patches: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The objects, each with its patch; a patch without its object is an object of its own."""
    left = {(each["kind"], each["metadata"]["name"]): each for each in patches}
    objects = []
    for each in read(manifest):
        patch = left.pop((each["kind"], each["metadata"]["name"]), None)
        if patch is None:
            objects.append(each)
        elif patch.get("$patch") != "delete":
            objects.append(strategic_merge_patch(resource_of(each), each, {**patch}))
    return [*objects, *left.values()]


def resource_of(obj: dict[str, Any]) -> Any:
    from lastcall.kube.api.schema.checks import resource_for

    return resource_for(obj["apiVersion"], obj["kind"])


def objects(path: str) -> list[Manifest]:
    """A manifest as lastcall reads it."""
    return load_manifests([path])


def load_all() -> list[Pain]:
    """Every pain, by area and name. ValueError for a pain.yaml that is not one."""
    return list(_load(sorted(HERE.glob("*/*/pain.yaml"))))


def _load(paths: Sequence[Path]) -> Iterator[Pain]:
    for path in paths:
        try:
            yield load(path)
        except (TypeError, ValueError, KeyError, yaml.YAMLError) as error:
            raise ValueError(f"{path}: {error}") from error


def load(path: Path) -> Pain:
    """One pain.yaml."""
    given = dict(yaml.safe_load(path.read_text()))
    expect, fixed = Expected(**_tuples(given.pop("expect", {}))), Fixed(**_tuples(given.pop("fixed", {})))
    area, name = path.parent.parent.name, path.parent.name
    unified = Expected(**_tuples(given.pop("unified"))) if "unified" in given else None
    pain = Pain(**_tuples(given), area=area, name=name, expect=expect, unified=unified, fixed=fixed)
    for each in fields(Pain):
        if each.type == "str" and not isinstance(getattr(pain, each.name), str):
            raise ValueError(f"{each.name} must be a text")
    return pain


def _tuples(given: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(map(str, value)) if isinstance(value, list) else value for key, value in given.items()}
