"""Where two answers differ, and what such differences have in common."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from differential.normalising import HEADERS, normalised, text
from differential.request import Request
from differential.servers import Answer
from lastcall.kube.api.protobuf.decoding import decode_envelope

PROTOBUF = "application/vnd.kubernetes.protobuf"
_ABSENT = "<absent>"
_TEXT_OF_A_REFUSAL = re.compile(r"body$|message$|details\.causes\b")
_DESCRIPTION = re.compile(r"(?:\[\d+\]\.object\.)?columnDefinitions\[\d+\]\.description")


@dataclass(frozen=True, slots=True)
class Difference:
    """`cause` groups: the resource, the verb and where the answers first differ, with numbers and names taken out.
    `refused` is True for the body of an answer by which both servers refused the request."""

    request: Request
    path: str
    real: Any
    ours: Any
    refused: bool = False

    @property
    def noticed(self) -> bool:
        """Return whether a client acts otherwise: by another status, header or object.

        What a refusal says and in which order, warnings and descriptions of columns are for people to read.
        """
        if self.path == "header warning" or _DESCRIPTION.fullmatch(self.path):
            return False
        return not (self.refused and _TEXT_OF_A_REFUSAL.match(self.path))

    @property
    def cause(self) -> str:
        where = re.sub(r"\[\d+\]", "[]", self.path)
        return f"{self.request.about} | {self.request.verb} | {where} | {_short(self.real)} | {_short(self.ours)}"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return re.sub(r"\"[^\"]*\"|\d+", "_", text)[:160]


class _TextOfTimes(yaml.CSafeLoader):
    """Leaves times as they are written."""


_TextOfTimes.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def _without_zeros(value: Any) -> Any:
    """Protobuf has numbers and booleans that are zero, where JSON leaves some of them out, and no empty lists; a whole
    number there may be a float."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        value = {key: _without_types(each) if key == "volumeClaimTemplates" else each for key, each in value.items()}
        return {key: _without_zeros(each) for key, each in value.items() if each not in (0, None, [], "")}
    return [_without_zeros(each) for each in value] if isinstance(value, list) else value


def _without_types(claims: Any) -> Any:
    """Objects within an object have no kind and version in protobuf."""
    if not isinstance(claims, list):
        return claims
    return [{key: each for key, each in claim.items() if key not in ("kind", "apiVersion")} for claim in claims]


def document_of(answer: Answer) -> Any:
    """Return what the body says; a protobuf body decoded, anything else that is not JSON as text."""
    kind = answer.headers.get("content-type", "")
    if kind.startswith(PROTOBUF) and "stream" not in kind:
        try:
            return decode_envelope(answer.body)
        except Exception as error:  # the difference is then that it cannot be read
            return f"not protobuf: {error!r}"
    if kind.startswith("application/yaml"):
        try:
            return yaml.load(answer.body, Loader=_TextOfTimes)
        except yaml.YAMLError as error:
            return f"not YAML: {error!r}"
    document = answer.document
    return answer.body.decode("utf-8", "replace") if document is None else document


def differences(
    request: Request, real: Answer, ours: Answer, stays: Callable[[str], object] = lambda cause: False
) -> Iterator[Difference]:
    """Yield the first difference of the answers' status, of each header, and of the bodies.

    Of the bodies it is the first that a client notices and the first that it does not, whose causes do not stay on
    purpose, after those that do.
    """
    if real.status != ours.status:
        messages = [_message(each) for each in (real, ours)]
        yield Difference(request, "status", f"{real.status} {messages[0]}", f"{ours.status} {messages[1]}")
        return
    for name in HEADERS:
        pair = [text(each.headers.get(name, "")) for each in (real, ours)]
        if pair[0] != pair[1]:
            yield Difference(request, f"header {name}", pair[0], pair[1])
    pair_of_bodies = [normalised(document_of(each)) for each in (real, ours)]
    if any(each.headers.get("content-type", "").startswith(PROTOBUF) for each in (real, ours)):
        pair_of_bodies = [_without_zeros(each) for each in pair_of_bodies]
    wanted = {True, False}
    for path, left, right in unequal("", *pair_of_bodies):
        found = Difference(request, path or "body", left, right, refused=real.status >= 400)
        if found.noticed in wanted:
            yield found
            if not stays(found.cause):
                wanted.discard(found.noticed)
        if not wanted:
            break


def _message(answer: Answer) -> str:
    document = normalised(document_of(answer))
    if isinstance(document, dict):
        return str(document.get("message") or document.get("kind") or "")
    return str(document)[:200]


def unequal(path: str, left: Any, right: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield (path, left, right) of what differs, in the left one's order."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in [*left, *(key for key in right if key not in left)]:
            yield from unequal(f"{path}.{key}" if path else key, left.get(key, _ABSENT), right.get(key, _ABSENT))
    elif isinstance(left, list) and isinstance(right, list):
        if len(left) != len(right):
            yield f"{path}[]", f"{len(left)} items {_brief(left)}", f"{len(right)} items {_brief(right)}"
            return
        for number, pair in enumerate(zip(left, right, strict=True)):
            yield from unequal(f"{path}[{number}]", *pair)
    elif type(left) is not type(right) or left != right:
        yield path, left, right


def _brief(value: list[Any]) -> str:
    return str(value)[:300]
