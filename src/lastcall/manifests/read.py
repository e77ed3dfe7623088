"""Manifests: read, taken apart into objects, and checked, all before anything starts.

Files, directories (`*.yaml`, `*.yml`, `*.json`; below only where asked), `-` for stdin, several documents, `v1`
Lists. Every problem of every document is reported at once, with file, document, line, field, value and the fix.
"""

import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from lastcall.errors import UserError
from lastcall.kube.api import (
    CRONJOBS,
    CUSTOMRESOURCEDEFINITIONS,
    NAMESPACES,
    PODS,
    SERVED,
    Object,
    Resource,
    copy_object,
    known_kind,
    name_of,
    namespace_of,
    resource_for,
)
from lastcall.manifests.checks import Problem, manifest_problems
from lastcall.manifests.left_out import hook_events, is_of_another_product
from lastcall.manifests.workloads import OWNERS, may_have_pods
from lastcall.manifests.yaml_documents import MAX_CHARACTERS, Document, YAMLProblem, read_documents
from lastcall.world.dataclass import dataclass
from lastcall.world.files import irregular
from lastcall.world.os_errors import describe_os_error

if TYPE_CHECKING:
    from lastcall.manifests.helm import Chart

SUFFIXES = (".yaml", ".yml", ".json")
STDIN = "-"

FIRST_KINDS = ("CustomResourceDefinition", "Namespace", "ServiceAccount", "Secret", "ConfigMap", "Service")
"""Kinds in the order they are created; all others follow, then owners of Pods, and Pods come last."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place of an object. `path` is the path of a List's item within its document, "" otherwise."""

    file: str
    document: Document
    path: str = ""

    def at(self, field: str = "") -> str:
        """Return `pod.yaml:7` for a field of the object."""
        inside = ".".join(part for part in (self.path, field) if part)
        of = f" ({self.document.template})" if self.document.template else ""
        return f"{self.file}:{self.document.line_of(inside)}{of}"


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object to create. `obj` has its namespace filled in when its kind has one."""

    obj: Object
    resource: Resource
    place: Place


@dataclass(slots=True)
class Reader:
    """What was read so far, and what is wrong with it, a line each."""

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What is taken as kubectl takes it, and may not be meant."""
    hooks: list[tuple[Object, Place]] = field(default_factory=list)
    """Hooks of a chart, which are left out where anything else has Pods."""
    may_be_template: bool = False
    """Whether a text has marks of templates."""
    cron_jobs: list[tuple[Object, Place]] = field(default_factory=list)
    """CronJobs, which are left out where anything else has Pods: they start nothing before their next time."""
    of_others: list[str] = field(default_factory=list)
    """Objects of kinds that other products define, which are left out."""
    manifests: list[Manifest] = field(default_factory=list)
    declared: dict[tuple[str, str], Resource] = field(default_factory=dict)
    """(apiVersion, kind) → what a CustomResourceDefinition among the manifests declares."""
    namespace: str = "default"
    """Of objects that name none."""

    def problem(self, place: Place, message: str, field: str = "", what: str = "") -> None:
        head = f"{place.at(field)}: document {place.document.number}{f' ({what})' if what else ''}: "
        self.problems.append(f"{head}{f'{field}: ' if field else ''}{message}")

    def note_left_out(self) -> None:
        """Add a note for each reason to leave objects out."""
        if self.hooks:
            hooks = (f"{_what(each)} ({hook_events(each)}; {place.at()})" for each, place in self.hooks)
            self.notes.append(f"skipped, because Helm runs them as hooks: {', '.join(hooks)}")
        if self.cron_jobs:
            jobs = (f"{_what(each)} ({place.at()})" for each, place in self.cron_jobs)
            self.notes.append(
                f"skipped, because CronJobs start nothing before their next scheduled time: {', '.join(jobs)}"
            )
        if self.of_others:
            self.notes.append(
                f"skipped, because their kinds are unknown: {', '.join(self.of_others)}. Add their "
                f"CustomResourceDefinitions to the manifests to create them"
            )


def load_manifests(
    sources: Sequence[str],
    *,
    kustomizations: Sequence[str] = (),
    chart: "Chart | None" = None,
    recursive: bool = False,
    namespace: str = "default",
    stdin: TextIO | None = None,
    note: Callable[[str], None] = lambda line: None,
) -> list[Manifest]:
    """Return all objects of the sources, in the order to create them; those that name no namespace go to `namespace`.

    `note` gets each line about what may not be meant, and about what is left out: a chart's hooks, and kinds of other
    products that no CustomResourceDefinition among the manifests defines. Raises UserError with every problem, a line
    each; WorldError for kustomize's own trouble.
    """
    reader = Reader(namespace=namespace)
    if sources.count(STDIN) > 1:
        reader.problems.append("- (stdin) is given twice: it can be read only once")
    for name in dict.fromkeys(name for name in sources if name != STDIN and sources.count(name) > 1):
        note(f"{name} is given twice and read once: a second Pod needs another name")
    read = list(texts(list(dict.fromkeys(sources)), reader, stdin or sys.stdin, recursive=recursive))
    if kustomizations:
        # late: what it imports is of no use without the option
        from lastcall.manifests.kustomize import display_name, kustomized

        read += [(display_name(each), kustomized(each)) for each in dict.fromkeys(kustomizations)]
    if chart is not None:
        # late: only with a chart
        from lastcall.manifests.helm import rendered

        read.append((chart.name, rendered(chart)))
    try:
        return _manifests_in(read, reader)
    finally:
        for each in reader.notes:
            note(each)


def manifests_of(read: Sequence[tuple[str, str]]) -> list[Manifest]:
    """Return all objects of (name, text)s, in the order to create them. Raises UserError as `load_manifests` does."""
    return _manifests_in(read, Reader())


def _manifests_in(read: Sequence[tuple[str, str]], reader: Reader) -> list[Manifest]:
    found = [each for name, text in read for each in objects_in(reader, name, text)]
    for value, _ in found:
        reader.declared.update(_declared(value))
    for value, place in found:
        _read_object(reader, value, place)
    if not reader.problems and not any(map(_has_pods, reader.manifests)):
        hooks, reader.hooks = reader.hooks, []
        for value, place in hooks:
            _read_kind(reader, value, place)
    if not any(map(_has_pods, reader.manifests)):
        cron_jobs, reader.cron_jobs = reader.cron_jobs, []
        for value, place in cron_jobs:
            reader.problem(place, _NOT_YET, "kind", str(value["kind"]))
    reader.note_left_out()
    _check_together(reader)
    if reader.problems:
        raise UserError("\n".join(reader.problems))
    return sorted(reader.manifests, key=_order)


def _order(manifest: Manifest) -> int:
    if manifest.resource == PODS:
        return len(FIRST_KINDS) + 2
    if manifest.resource in OWNERS:
        return len(FIRST_KINDS) + 1
    kind = manifest.resource.kind
    return FIRST_KINDS.index(kind) if kind in FIRST_KINDS else len(FIRST_KINDS)


# -- sources to documents -------------------------------------------------------------------------------------------


def texts(
    sources: Iterable[str], reader: Reader, stdin: TextIO, *, recursive: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of every file, with `recursive` also of those in directories below; what cannot be read is a
    problem of `reader`."""
    for source in sources:
        if source == STDIN:
            try:
                yield "<stdin>", stdin.read(MAX_CHARACTERS + 1)
            except UnicodeDecodeError as error:
                reader.problems.append(f"<stdin>: not UTF-8 text: {error.reason}")
            continue
        path = Path(source)
        if path.is_dir():
            yield from _directory(path, reader, recursive)
        else:
            yield from _file(path, reader)


def _directory(path: Path, reader: Reader, recursive: bool) -> Iterator[tuple[str, str]]:
    try:
        there = path.rglob("*") if recursive else path.iterdir()
        files = sorted(each for each in there if each.suffix in SUFFIXES and not each.is_dir())
        below = not files and not recursive and any(each.suffix in SUFFIXES for each in path.glob("*/*"))
    except OSError as error:
        reader.problems.append(describe_os_error(error))
        return
    if not files:
        why = "use -R to read its subdirectories" if below else f"files must end in {', '.join(SUFFIXES)}"
        reader.problems.append(f"{path}: no manifest in this directory: {why}")
    for each in files:
        yield from _file(each, reader)


def waits(path: Path) -> str:
    """Return what is not a file of known length, "" for a file and for the pipe of a shell (<(…)). Raises OSError."""
    mode = path.stat().st_mode
    if stat.S_ISFIFO(mode) and str(path).startswith(("/dev/fd/", "/dev/stdin", "/proc/self/fd/")):
        return ""
    return irregular(mode)


def _file(path: Path, reader: Reader) -> Iterator[tuple[str, str]]:
    try:
        if what := waits(path):
            reader.problems.append(f"{path}: it is {what}, not a file: give a file, or - for stdin")
            return
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(MAX_CHARACTERS + 1)
    except UnicodeDecodeError as error:
        reader.problems.append(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}")
    except OSError as error:
        reader.problems.append(describe_os_error(error))
    else:
        yield str(path), text


def objects_in(reader: Reader, name: str, text: str) -> list[tuple[Any, Place]]:
    """Return what the documents of a text hold, the items of Lists each for itself; none of a text that is not YAML."""
    found: list[tuple[Any, Place]] = []
    empty = True
    reader.may_be_template |= "{{" in text or "${" in text
    try:
        for document in read_documents(text):
            empty = False
            reader.notes += [f"{name}:{each.line}: {each}: the last one counts" for each in document.doubled]
            found += items_of(reader, document.value, Place(name, document))
    except YAMLProblem as problem:
        # late: a manifest without errors needs no words for them
        from lastcall.manifests.templates import template_in

        template = template_in(text)
        if template is None:
            reader.problems.append(f"{name}:{problem.line}: {problem}")
        else:
            line, command = template
            reader.problems.append(f"{name}:{line}: {_UNRENDERED}: {command} | lastcall … -")
        return found
    if empty:
        reader.problems.append(f"{name}: no object found: the file is empty")
    return found


def items_of(reader: Reader, value: Any, place: Place) -> list[tuple[Any, Place]]:
    """Return the document itself, or the items of a List, each for itself."""
    if not isinstance(value, dict) or (value.get("kind"), value.get("apiVersion")) != ("List", "v1"):
        return [(value, place)]
    items = value.get("items")
    if not isinstance(items, list):
        reader.problem(place, f"must be a list of objects, is {_shown(items)}", "items", "List")
        return []
    paths = (f"{place.path}.items[{index}]" if place.path else f"items[{index}]" for index in range(len(items)))
    each = zip(items, paths, strict=True)
    return [pair for item, path in each for pair in items_of(reader, item, Place(place.file, place.document, path))]


def _declared(value: Any) -> dict[tuple[str, str], Resource]:
    """Return what a CustomResourceDefinition declares; nothing when it is wrong, which is reported later."""
    if not isinstance(value, dict) or value.get("kind") != CUSTOMRESOURCEDEFINITIONS.kind:
        return {}
    if any(True for _ in manifest_problems(value, CUSTOMRESOURCEDEFINITIONS)):
        return {}
    # late: few manifests declare kinds
    from lastcall.kube.api import served_resources

    return {(each.api_version, each.kind): each for each in served_resources(value)}


_NOT_YET = (
    "a CronJob starts nothing before its next scheduled time: write its spec.jobTemplate as a Job (apiVersion "
    "batch/v1), or apply it to a cluster that keeps running (lastcall up)"
)
_UNRENDERED = "this is an unrendered template; render it first"


# -- documents to objects -------------------------------------------------------------------------------------------


def _read_object(reader: Reader, value: Any, place: Place) -> None:
    if not isinstance(value, dict):
        reader.problem(place, f"must be an object with apiVersion and kind, is {_shown(value)}", place.path)
        return
    missing = [name for name in ("apiVersion", "kind") if not value.get(name) or not isinstance(value[name], str)]
    if _is_kustomization(value, place, missing):
        directory = Path(place.file).parent
        reader.problem(place, f"this is a kustomization, not an object: kustomize builds it with -k {directory}")
        return
    for name in missing:
        given = f"is {_shown(value[name])}, must be a string" if value.get(name) else "missing"
        example = "v1" if name == "apiVersion" else "Pod"
        reader.problem(place, f"{given}: every object needs it, for example `{name}: {example}`", name)
    if missing:
        return
    if hook_events(value):
        reader.hooks.append((value, place))
    else:
        _read_kind(reader, value, place)


def _read_kind(reader: Reader, value: Object, place: Place) -> None:
    """Read an object that has apiVersion and kind."""
    what = _what(value)
    declared_groups = {each.group for each in reader.declared.values()}
    if is_of_another_product(value["apiVersion"], declared_groups):
        reader.of_others.append(f"{what} ({value['apiVersion']}; {place.at()})")
        return
    resource = _resource(reader, value["apiVersion"], value["kind"], place)
    if resource == CRONJOBS:
        reader.cron_jobs.append((value, place))
        return
    if resource is None:
        return
    before = len(reader.problems)
    _check_metadata(reader, value, resource, place, what)
    if len(reader.problems) > before:
        return
    declared = resource in reader.declared.values()  # the API server checks it against its schema
    problems = [] if declared else list(manifest_problems(value, resource))
    if reader.may_be_template:
        problems = _unrendered(value, problems) or problems
    for problem_field, message in problems:
        reader.problem(place, message, problem_field, what)
    if len(reader.problems) == before or _name(value):
        reader.manifests.append(Manifest(with_namespace(value, resource, reader.namespace), resource, place))


def _is_kustomization(value: Object, place: Place, missing: Sequence[str]) -> bool:
    if not missing:
        return str(value["apiVersion"]).startswith("kustomize.config.k8s.io/")
    # late: an object has apiVersion and kind
    from lastcall.manifests.kustomize_remote import KUSTOMIZATIONS

    return Path(place.file).name in KUSTOMIZATIONS


def _unrendered(value: Object, problems: Sequence[Problem]) -> list[Problem]:
    """Return the one problem that is a template's, [] for none."""
    # late: few manifests have marks of templates
    from lastcall.manifests.paths import path_in, shown_path
    from lastcall.manifests.templates import unrendered_field

    found = unrendered_field(value, [path_in(value, each) for each, _ in problems])
    return [] if found is None else [(shown_path(found[0]), f"{_UNRENDERED}: {found[1]} | lastcall … -")]


def _resource(reader: Reader, api_version: str, kind: str, place: Place) -> Resource | None:
    resource = resource_for(api_version, kind) or reader.declared.get((api_version, kind))
    if resource is not None:
        return resource
    of_kind = [resource.api_version for resource in (*SERVED, *reader.declared.values()) if resource.kind == kind]
    if of_kind:
        message = f"{api_version!r} has no kind {kind}: write `apiVersion: {of_kind[0]}`"
        reader.problem(place, message, "apiVersion", kind)
    elif known_kind(api_version, kind):
        message = f"{kind} ({api_version}) is not supported by this version of lastcall: remove it"
        reader.problem(place, message, "kind", kind)
    else:
        served = ", ".join(sorted({each.kind for each in SERVED}))
        # late: a manifest without errors needs no words for them
        from lastcall.manifests.names import closest

        kinds = {each.kind: each for each in (*reader.declared.values(), *SERVED)}
        near = kinds.get(closest(kind, kinds) or "")
        meant = "" if near is None else f"did you mean {near.kind} ({near.api_version})? "
        message = (
            f"{kind!r} of {api_version!r} is not known; {meant}served are {served}, and what a "
            "CustomResourceDefinition among the manifests declares"
        )
        reader.problem(place, message, "kind")
    return None


def _check_metadata(reader: Reader, value: Object, resource: Resource, place: Place, what: str) -> None:
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        given = "missing" if metadata is None else f"is {_shown(metadata)}, must be an object"
        reader.problem(place, f"{given}: it holds the name, for example `metadata: {{name: web}}`", "metadata", what)
    elif not resource.namespaced and metadata.get("namespace"):
        message = f"{metadata['namespace']!r}: a {resource.kind} has no namespace: remove the field"
        reader.problem(place, message, "metadata.namespace", what)


def with_namespace(value: Object, resource: Resource, namespace: str) -> Object:
    """Return a copy that names its namespace: its own, or this one."""
    obj = copy_object(value)
    if resource.namespaced and isinstance(obj.get("metadata"), dict) and not obj["metadata"].get("namespace"):
        obj["metadata"]["namespace"] = namespace
    return obj


def _what(value: Object) -> str:
    return f"{value['kind']} {_name(value)}".strip()


def _name(value: Object) -> str:
    metadata = value.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""


def _shown(value: Any) -> str:
    """A value as a person wrote it, in short."""
    if value is None:
        return "empty"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…'"


# -- all objects together -------------------------------------------------------------------------------------------


def _check_together(reader: Reader) -> None:
    seen: dict[tuple[str, str, str], Manifest] = {}
    for manifest in reader.manifests:
        name = _name(manifest.obj)
        if not name:
            continue
        key = (
            manifest.resource.group_resource,
            namespace_of(manifest.obj) if manifest.resource.namespaced else "",
            name,
        )
        first = seen.setdefault(key, manifest)
        if first is not manifest:
            kind = manifest.resource.kind
            message = (
                f"a second {kind} {name!r} (the first is at {first.place.at('metadata.name')}): give it another name"
            )
            reader.problem(manifest.place, message, "metadata.name", f"{kind} {name}")
    if not reader.problems and not any(_has_pods(manifest) for manifest in reader.manifests):
        kinds = ", ".join(dict.fromkeys(manifest.resource.kind for manifest in reader.manifests))
        found = f"only {kinds}" if kinds else "nothing"
        found += " besides what was skipped" if reader.of_others else ""
        idle = next((manifest for manifest in reader.manifests if manifest.resource in OWNERS), None)
        if idle is not None:
            none = (idle.obj.get("spec") or {}).get("replicas") == 0
            found = f"{idle.resource.kind} {_name(idle.obj)} {'has replicas: 0' if none else 'asks for none'}"
        reader.problems.append(f"no Pod in the manifests ({found}): add one, or a workload that has some")


def _has_pods(manifest: Manifest) -> bool:
    if manifest.resource in OWNERS:
        return may_have_pods(manifest.resource, manifest.obj)
    return manifest.resource == PODS


def missing_namespaces(manifests: Sequence[Manifest]) -> list[str]:
    """Return the namespaces that the manifests use and do not define; `default` and `kube-…` are always there."""
    defined = {name_of(each.obj) for each in manifests if each.resource == NAMESPACES}
    used = dict.fromkeys(namespace_of(each.obj) for each in manifests if each.resource.namespaced)
    return [name for name in used if name not in defined and name != "default" and not name.startswith("kube-")]
