"""Files, directories, stdin and kustomizations, read into subjects of rules, each with its place."""

import sys
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from lastcall.errors import UserError
from lastcall.kube.api import resource_for
from lastcall.lint.located import Located, Spot
from lastcall.lint.places import spot_of
from lastcall.lint.subject import Subject, found
from lastcall.lint.suppressing import Comment
from lastcall.lint.suppressions import comments_of
from lastcall.manifests import (
    KUSTOMIZATIONS,
    STDIN,
    Document,
    Place,
    Reader,
    YAMLProblem,
    display_name,
    items_of,
    kustomized,
    read_documents,
    template_in,
    texts,
    with_namespace,
)
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.manifests import Chart


@dataclass(slots=True)
class Read:
    """`of_texts`: what is wrong with a text itself, beside what rules find in its objects."""

    subjects: list[Subject] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    of_texts: list[Located] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)


def read(
    sources: Sequence[str],
    kustomizations: Sequence[str] = (),
    chart: "Chart | None" = None,
    stdin: TextIO | None = None,
    *,
    recursive: bool = False,
    namespace: str = "default",
) -> Read:
    """Return everything in them; objects that name no namespace are in `namespace`. Raises UserError for a file that
    cannot be read, WorldError for kustomize's own trouble."""
    if sources.count(STDIN) > 1:
        raise UserError("- (stdin) is given twice: it can be read only once")
    reader, result = Reader(), Read()
    for name, text in texts(list(dict.fromkeys(sources)), reader, stdin or sys.stdin, recursive=recursive):
        result.texts[name] = text
    for directory in dict.fromkeys(kustomizations):
        result.texts[display_name(directory)] = kustomized(directory)
    if chart is not None:
        # late: only with a chart
        from lastcall.manifests import rendered

        result.texts[chart.name] = rendered(chart)
    if reader.problems:
        raise UserError("\n".join(reader.problems))
    for name, text in result.texts.items():
        _read_text(result, name, text, namespace)
    if not result.subjects and not result.of_texts:
        kustomization = next((each for each in result.texts if Path(each).name in KUSTOMIZATIONS), "")
        fix = f"\nfix: kustomize builds it: -k {Path(kustomization).parent}" if kustomization else ""
        raise UserError(f"no object in {', '.join(result.texts) or 'these directories'}{fix}")
    return result


def _read_text(result: Read, name: str, text: str, namespace: str) -> None:
    documents: list[Document] = []
    try:
        documents += read_documents(text)
    except YAMLProblem as problem:
        result.of_texts.append(_not_read(name, text, problem))
    for document in documents:
        reader = Reader()
        for each in document.doubled:
            spot = Spot(name, each.line, each.column)
            result.of_texts.append(_of_text("doubledKey", spot, f"The {each}. The last one counts."))
        for value, place in items_of(reader, document.value, Place(name, document)):
            _read_value(result, value, place, namespace)
        for said in reader.problems:
            spot = Spot(name, document.line, 1)
            result.of_texts.append(_of_text("notAnObject", spot, said.partition(": ")[2]))
    result.comments += comments_of(name, text, documents)


def _read_value(result: Read, value: Any, place: Place, namespace: str) -> None:
    if isinstance(value, dict) and isinstance(value.get("apiVersion"), str) and isinstance(value.get("kind"), str):
        resource = resource_for(value["apiVersion"], value["kind"])
        if namespace != "default" and resource is not None:
            value = with_namespace(value, resource, namespace)
        result.subjects.append(Subject(value, resource, place))
        return
    if Path(place.file).name in KUSTOMIZATIONS:
        return
    missing = "apiVersion and kind"
    if isinstance(value, dict):
        missing = " and ".join(name for name in ("apiVersion", "kind") if not isinstance(value.get(name), str))
    text = f"This is not a Kubernetes object: {missing} missing."
    result.of_texts.append(_of_text("notAnObject", spot_of(place, ()), text))


def _not_read(name: str, text: str, problem: YAMLProblem) -> Located:
    template = template_in(text)
    if template is None:
        return _of_text("unreadable", Spot(name, problem.line, 1), f"{problem}.")
    line, command = template
    said = "This is an unrendered template."
    return Located(
        found("unrendered", Subject({}, None), (), said, fix=f"Render it: {command} | lastcall lint -"),
        Spot(name, line, 1),
    )


def _of_text(rule: str, spot: Spot, text: str) -> Located:
    return Located(found(rule, Subject({}, None), (), text), spot)
