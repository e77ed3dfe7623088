"""Request bodies: from bytes to an object of the expected kind, with unknown fields reported and dropped.

Sources: apiserver pkg/endpoints/handlers/create.go, apimachinery pkg/runtime/serializer/json/json.go,
pkg/endpoints/handlers/fieldmanager (field validation).
"""

import re
from functools import cache
from typing import Any

import orjson

from lastcall.api.custom import CustomResource
from lastcall.api.decoding import decode_fields
from lastcall.api.errors import StatusError, bad_request, cannot_be_handled
from lastcall.api.errors import invalid as invalid_object
from lastcall.api.field import invalid
from lastcall.api.meta import Object
from lastcall.api.resources import CONFIGMAPS, Resource
from lastcall.api.schema import DecodeError, known_kind
from lastcall.api.structural import prune_unknown, set_schema_defaults
from lastcall.apiserver.context import RequestContext
from lastcall.apiserver.negotiation import PROTOBUF, YAML
from lastcall.client.api import APPLY_PATCH, STRATEGIC_MERGE_PATCH

SCHEME = "pkg/api/legacyscheme/scheme.go:30"

_STRUCT = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


def decode(body: bytes, media_type: str) -> Any:
    """JSON, YAML or protobuf as plain data. Raises ValueError."""
    if media_type == PROTOBUF:
        from lastcall.api.protobuf import decode_envelope

        return decode_envelope(body)
    if media_type != YAML:
        return orjson.loads(body)
    import yaml

    try:
        return yaml.load(body, Loader=_yaml_loader())  # noqa: S506 (a safe loader)
    except yaml.YAMLError as error:
        raise ValueError(str(error).replace("\n", " ")) from None


@cache
def _yaml_loader() -> Any:
    """A safe loader that leaves timestamps as the text they are, as JSON does."""
    import yaml

    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    resolvers = {
        first: [(tag, pattern) for tag, pattern in known if tag != "tag:yaml.org,2002:timestamp"]
        for first, known in base.yaml_implicit_resolvers.items()
    }
    return type("Loader", (base,), {"yaml_implicit_resolvers": resolvers})


def decode_optional(body: bytes, media_type: str, default: Any) -> Any:
    """The decoded body, `default` for an empty one. Raises the 400 StatusError."""
    if not body:
        return default
    try:
        return decode(body, media_type)
    except ValueError as error:
        raise bad_request(f"error decoding the request body: {error}") from None


def decode_object(body: bytes, media_type: str, resource: Resource, context: RequestContext) -> Object:
    """The body of a POST or PUT. Raises the 400 StatusError of what is no object of this kind."""
    try:
        obj = decode(body, media_type)
    except ValueError as error:
        if media_type == PROTOBUF:
            text = (
                f"the object provided is unrecognized (must be of type {resource.kind}): {error} ({body[:1000].hex()})"
            )
            raise bad_request(text) from None
        shown = body[:1000].decode(errors="replace") or "<empty>"
        raise _unrecognized(resource, _json_error(body), shown) from None
    if obj is None:
        return {"metadata": {}}
    if isinstance(obj, dict):
        return obj
    type_ = {list: "array", str: "string", bool: "bool"}.get(type(obj), "number")
    why = f"json: cannot unmarshal {type_} into Go value of type {_STRUCT}"
    raise _unrecognized(resource, why, body[:1000].hex())


def decode_patch(body: bytes, content_type: str) -> Any:
    """The decoded patch, an empty one for an empty body. Raises the 400 StatusError."""
    if content_type == APPLY_PATCH:
        return _decode_applied(body)
    try:
        return orjson.loads(body) if body else {}
    except ValueError:
        why = _json_error(body)
        raise bad_request(why if content_type == STRATEGIC_MERGE_PATCH else f"error decoding patch: {why}") from None


def _decode_applied(body: bytes) -> Any:
    """What is applied comes as YAML, of which JSON, what kubectl sends, is a part."""
    try:
        return orjson.loads(body)
    except ValueError:
        pass
    import yaml

    try:
        return yaml.load(body, Loader=_yaml_loader())  # noqa: S506 (a safe loader)
    except yaml.YAMLError as error:
        raise bad_request(f"error decoding YAML: error converting YAML to JSON: {_yaml_error(error)}") from None


def _yaml_error(error: Any) -> str:
    """Go's words for what is wrong with a YAML text, as far as they can be told without its decoder."""
    problem = str(getattr(error, "problem", None) or error).replace("\n", " ")
    expected = re.fullmatch(r"(?:did not find )?expected (.*?),? but (?:got|found) .*", problem)
    words = f"did not find expected {expected.group(1)}" if expected else problem
    marks = (getattr(error, name, None) for name in ("context_mark", "problem_mark"))
    line = next((mark.line for mark in marks if mark is not None and mark.line), 0)
    if line and type(error).__name__ == "ScannerError":
        line += 1  # only its scanner counts from one
    return f"yaml: line {line}: {words}" if line else f"yaml: {words}"


def _unrecognized(resource: Resource, why: str, shown: str) -> StatusError:
    return bad_request(
        f"the object provided is unrecognized (must be of type {resource.kind}): couldn't get version/kind; "
        f"json parse error: {why} ({shown})"
    )


def _json_error(body: bytes) -> str:
    """Go's words for the first thing wrong with a JSON text, as far as they can be told without its decoder."""
    import json

    text = body.decode(errors="replace")
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        if error.pos >= len(text.rstrip()):
            return "unexpected end of JSON input"
        character = text[error.pos]
        if "property name" in error.msg:
            return f"invalid character '{character}' looking for beginning of object key string"
        for literal in ("null", "true", "false"):
            if character == literal[0]:
                return _literal_error(text[error.pos :], literal)
        return f"invalid character '{character}' looking for beginning of value"
    return "invalid JSON"


def _literal_error(text: str, literal: str) -> str:
    for position, expected in enumerate(literal):
        if position >= len(text):
            return "unexpected end of JSON input"
        if text[position] != expected:
            return f"invalid character '{text[position]}' in literal {literal} (expecting '{expected}')"
    return "invalid JSON"


def prepare(
    context: RequestContext, resource: Resource, obj: Object, *, patch: Any = None, old: Object | None = None
) -> Object:
    """`obj` (changed in place) as one of `resource`: kind and version set, unknown fields reported and dropped.

    `patch` is given when the object came from a PATCH, whose strict errors have another form; `old` is what was
    patched: what is the same in both has been looked at before. Raises StatusError.
    """
    check_kind(resource, obj)
    if not isinstance(obj.get("metadata", {}), dict | None):
        why = "json: cannot unmarshal a value that is no object into Go struct field .metadata of type v1.ObjectMeta"
        raise cannot_be_handled(resource.kind, resource.version, resource.kind, why)
    obj["metadata"] = obj.get("metadata") or {}
    obj["kind"], obj["apiVersion"] = resource.kind, resource.api_version
    looked_at = [key for key, value in obj.items() if old is None or not _same(value, old.get(key))]
    part = obj if old is None else {key: obj[key] for key in looked_at}
    forget = obj["metadata"].get("managedFields") == []
    if patch is not None and old is not None and isinstance(resource, CustomResource):
        # What a declared kind's error shows is the patched object.
        patch = orjson.dumps(_with_managers(obj, old), option=orjson.OPT_SORT_KEYS).decode()
    try:
        if isinstance(resource, CustomResource):
            problems = _decode_custom(resource, part)
        else:
            problems = decode_fields(resource, part)
    except DecodeError as error:
        raise cannot_be_handled(resource.kind, resource.version, resource.kind, str(error)) from None
    if problems:
        if context.field_validation == "Strict":
            raise _strict(resource, problems, patch)
        if context.field_validation == "Warn":
            context.warnings.extend(problems)
    if part is not obj:
        for key in looked_at:
            if key not in part:
                del obj[key]
        obj |= {key: value for key, value in part.items() if key in looked_at or key not in obj}
    if forget:
        # An empty list asks for managedFields to be forgotten; where there is none, they stay.
        obj["metadata"]["managedFields"] = []
    return obj


def _with_managers(obj: Object, old: Object) -> Object:
    entries = old["metadata"].get("managedFields")
    return {**obj, "metadata": {**({"managedFields": entries} if entries else {}), **obj["metadata"]}}


def _decode_custom(resource: CustomResource, obj: Object) -> list[str]:
    """`decode_fields` for a declared kind: metadata is Kubernetes's own, the rest what its schema says."""
    problems: list[str] = []
    if "metadata" in obj:  # a patch that leaves it alone has looked at what it changes only
        own = {"metadata": obj["metadata"]}
        problems = decode_fields(CONFIGMAPS, own)
        obj["metadata"] = own["metadata"]
    problems += [f'unknown field "{path}"' for path in prune_unknown(resource.schema, obj)]
    set_schema_defaults(resource.schema, obj)
    return problems


def _same(value: Any, before: Any) -> bool:
    """Equal as JSON: to Python True is 1."""
    return value is before or (bool(value == before) and orjson.dumps(value) == orjson.dumps(before))


def _strict(resource: Resource, problems: list[str], patch: Any) -> StatusError:
    why = f"strict decoding error: {', '.join(problems)}"
    if patch is None:
        return cannot_be_handled(resource.kind, resource.version, resource.kind, why)
    return invalid_object("", "", [invalid("patch", patch, why)])


def _check_custom_kind(resource: CustomResource, obj: Object) -> None:
    """A declared kind is not to be guessed. Raises 400."""
    kind, api_version = obj.get("kind") or "", obj.get("apiVersion") or ""
    if kind and api_version == resource.api_version and kind == resource.kind:
        return
    if not kind:
        raise bad_request(f"Object 'Kind' is missing in '{orjson.dumps(obj).decode()[:1000]}'")
    if kind != resource.kind:
        raise bad_request(f"the kind in the data ({kind}) does not match the expected kind ({resource.kind})")
    raise bad_request(
        f"the API version in the data ({api_version}) does not match the expected API version ({resource.api_version})"
    )


def check_kind(resource: Resource, obj: Object) -> None:
    """kind and apiVersion of a body may be left out; if they are there they must be the URL's. Raises 400."""
    if isinstance(resource, CustomResource):
        _check_custom_kind(resource, obj)
        return
    kind, api_version = obj.get("kind") or resource.kind, obj.get("apiVersion") or resource.api_version
    if (kind, api_version) == (resource.kind, resource.api_version):
        return
    version = str(api_version).rpartition("/")[2]
    if known_kind(str(api_version), str(kind)):
        internal = f"core.{resource.kind}" if not resource.group else f"{resource.group.split('.')[0]}.{resource.kind}"
        why = f"converting ({version}.{kind}) to ({internal}): unknown conversion"
    else:
        why = f'no kind "{kind}" is registered for version "{api_version}" in scheme "{SCHEME}"'
    raise cannot_be_handled(str(kind), version, resource.kind, why)
