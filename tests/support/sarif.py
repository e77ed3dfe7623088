"""What SARIF 2.1.0 and GitHub's code scanning demand of a document of `lint`, for the objects that it has.

Facts of OASIS's schema and prose (sections 3.11 messages, 3.28 locations) and of GitHub's "SARIF support for code
scanning". An object that this table does not have is a problem: look it up, and add it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from published_schema import problems

from lastcall.lint.catalogue.lookup import RULES

LONGEST_RULE_ID = 255
LONGEST_DESCRIPTION = 1024
_REFERENCE = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?#-]|%[0-9A-Fa-f]{2})*")
"""A URI reference's characters (RFC 3986)."""
_BRACES = re.compile(r"(?:\{\{|\}\}|[^{}])*")
_LINK = re.compile(r"\]\(")


def _object(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(required),
        "properties": properties,
        "additionalProperties": False,
    }


def _list(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


_TEXT = {"type": "string", "pattern": r"[^\s]"}
_MESSAGE = _object(("text",), text=_TEXT)
_LEVEL = {"enum": ["none", "note", "warning", "error"]}
_RULE = _object(
    ("id", "shortDescription"),
    id=_TEXT,
    shortDescription=_MESSAGE,
    fullDescription=_MESSAGE,
    helpUri={"type": "string", "pattern": "^https://"},
    help=_MESSAGE,
    defaultConfiguration=_object(level=_LEVEL),
)
_PHYSICAL = _object(
    ("artifactLocation",),
    artifactLocation=_object(("uri",), uri=_TEXT),
    region=_object(("startLine",), startLine={"type": "integer"}, startColumn={"type": "integer"}),
)
_LOCATION = _object(
    ("physicalLocation",), physicalLocation=_PHYSICAL, logicalLocations=_list(_object(fullyQualifiedName=_TEXT))
)
_RESULT = _object(
    ("message", "locations", "ruleId"),
    ruleId={"enum": list(RULES)},
    ruleIndex={"type": "integer"},
    level=_LEVEL,
    message=_MESSAGE,
    locations=_list(_LOCATION),
    suppressions=_list(_object(("kind",), kind={"enum": ["inSource", "external"]}, justification={"type": "string"})),
    properties={"type": "object"},
)
_DRIVER = _object(("name", "rules"), name=_TEXT, version=_TEXT, rules=_list(_RULE))
_RUN = _object(
    ("tool", "results"),
    tool=_object(("driver",), driver=_DRIVER),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    results=_list(_RESULT),
)
_DOCUMENT = _object(
    ("$schema", "version", "runs"),
    **{"$schema": {"type": "string"}, "version": {"const": "2.1.0"}, "runs": _list(_RUN)},
)


def sarif_problems(document: Mapping[str, Any]) -> list[str]:
    """Return what a reader of SARIF may refuse or misread."""
    found = list(problems(document, _DOCUMENT, root=_DOCUMENT))
    return found or [each for run in document["runs"] for each in _problems_of_a_run(run)]


def _problems_of_a_run(run: Mapping[str, Any]) -> Iterator[str]:
    rules = run["tool"]["driver"]["rules"]
    ids = [each["id"] for each in rules]
    if len(set(ids)) < len(ids):
        yield f"a rule is there twice: {ids}"
    for rule in rules:
        if len(rule["id"]) > LONGEST_RULE_ID:
            yield f"a long id: {rule['id']}"
        for key in ("shortDescription", "fullDescription"):
            if len(rule[key]["text"]) > LONGEST_DESCRIPTION:
                yield f"{rule['id']}: a long {key}"
        yield from (each for key in ("shortDescription", "fullDescription", "help") for each in _misread(rule[key]))
    for result in run["results"]:
        if ids[result["ruleIndex"]] != result["ruleId"]:
            yield f"ruleIndex of {result['ruleId']} is of {ids[result['ruleIndex']]}"
        yield from _misread(result["message"])
        if len(result["locations"]) != 1:
            yield f"{len(result['locations'])} locations"
        for place in result["locations"]:
            yield from _problems_of_a_place(place)
        if len(result.get("suppressions", [])) > 1:
            yield "several suppressions"


def _problems_of_a_place(place: Mapping[str, Any]) -> Iterator[str]:
    physical = place["physicalLocation"]
    if not _REFERENCE.fullmatch(physical["artifactLocation"]["uri"]):
        yield f"no URI: {physical['artifactLocation']['uri']!r}"
    if "region" in physical and min(physical["region"].values()) < 1:
        yield f"a place before the first line or column: {physical['region']}"


def _misread(message: Mapping[str, str]) -> Iterator[str]:
    """Yield what a text says that a reader takes for a placeholder, or for a link."""
    if not _BRACES.fullmatch(message["text"]):
        yield f"a single brace: {message['text']!r}"
    if _LINK.search(message["text"]):
        yield f"a link: {message['text']!r}"
