"""Request bodies: from bytes to an object of the expected kind, with unknown fields reported and dropped.

Sources: apiserver pkg/endpoints/handlers/create.go, apimachinery pkg/runtime/serializer/json/json.go,
pkg/endpoints/handlers/fieldmanager (field validation).
"""

# check: long functions prepare because it waits to be divided by mode: new, patched, shared, applied

import asyncio
import re
from collections.abc import Callable, Generator
from contextlib import nullcontext
from typing import Any, TypeVar

import orjson

from lastcall.kube.api.custom.kinds import CustomResource
from lastcall.kube.api.custom.structural import drop_nulls, prune_unknown, set_schema_defaults
from lastcall.kube.api.errors import StatusError, bad_request, cannot_be_handled, plain_failure
from lastcall.kube.api.errors import invalid as invalid_object
from lastcall.kube.api.field import go_quote, invalid
from lastcall.kube.api.meta import Object, copy_object
from lastcall.kube.api.protobuf.decoding import decode_envelope
from lastcall.kube.api.resources import CONFIGMAPS, Resource
from lastcall.kube.api.schema.checks import DecodeError, Empties, check_fields, json_type, known_kind, unconverted
from lastcall.kube.api.schema.decoding import decode_fields, decoded_copy
from lastcall.kube.api.text import go_json as json_text
from lastcall.kube.api.text.json_bounds import OutOfBoundsError, check_bounds
from lastcall.kube.apiserver.wire.as_sent import ROOT
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.kube.apiserver.wire.negotiation import JSON, PROTOBUF, YAML
from lastcall.kube.apiserver.wire.options import TYPE_META
from lastcall.kube.apiserver.wire.repeated_fields import repeated_fields
from lastcall.kube.client.api import APPLY_PATCH, STRATEGIC_MERGE_PATCH
from lastcall.world.clock import Clock

_SCHEMES = {
    "apiextensions.k8s.io": "pkg/apiserver/apiserver.go:55",
    "apiregistration.k8s.io": "pkg/apiserver/scheme/scheme.go:28",
}
"""Where the kinds of a group are registered, as messages say it: the line of the source that makes the scheme."""


def scheme_of(resource: Resource) -> str:
    """Where its kind would have to be registered."""
    return _SCHEMES.get(resource.group, "pkg/api/legacyscheme/scheme.go:30")


SMALL_BYTES = 32 << 10
MAX_ALIASED_TEXT = 3 << 20
"""Characters that aliases may add: more cannot be stored."""


T = TypeVar("T")


class Turns:
    """How who reads YAML lets others go on: between slices, and one big text at a time."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.big = asyncio.Lock()


async def decode(body: bytes, media_type: str, turns: Turns, yaml_problems: list[str] | None = None) -> Any:
    """JSON, YAML or protobuf as plain data; `yaml_problems` gets the keys that are there twice. Raises ValueError."""
    if media_type == YAML:
        return await decode_yaml(body, turns, yaml_problems)
    if media_type != PROTOBUF:
        return await decode_json(body, turns)
    decoded = decode_envelope(body)
    check_bounds(decoded)
    return decoded


async def decode_json(body: bytes, turns: Turns) -> Any:
    """Raises ValueError with Go's words."""
    try:
        return json_text.loads(body)
    except OutOfBoundsError:
        raise
    except ValueError:
        pass
    raise ValueError(await _in_turns(json_text.complaint(body), turns, len(body)))


async def decode_yaml(body: bytes, turns: Turns, problems: list[str] | None = None) -> Any:
    """`yaml_text.decode`, so that others get their turn meanwhile. Raises ValueError with Go's words."""
    # late: 16 ms of the API server's start
    from lastcall.kube.api.text import go_yaml as yaml_text

    reading = yaml_text.steps(body, problems, max_text=len(body) + MAX_ALIASED_TEXT)
    return await _in_turns(reading, turns, len(body))


async def _in_turns(steps: Generator[None, None, T], turns: Turns, size: int) -> T:
    """What `steps` answers."""
    async with turns.big if size > SMALL_BYTES else nullcontext():
        while True:
            try:
                next(steps)
            except StopIteration as end:
                answer: T = end.value
                return answer
            await turns.clock.sleep(0)


async def decode_optional(body: bytes, media_type: str, default: Any, turns: Turns) -> Any:
    """The decoded body, `default` for an empty one. Raises the 400 StatusError."""
    if not body:
        return default
    try:
        return await decode(body, media_type, turns)
    except ValueError as error:
        why = str(error) if media_type != JSON else f"couldn't get version/kind; json parse error: {error}"
        raise bad_request(why) from None


async def decode_object(
    body: bytes, media_type: str, resource: Resource, context: RequestContext, turns: Turns
) -> Object:
    """The body of a POST or PUT; `context` learns what it says twice. Raises 400 for what is not an object of this
    kind."""
    yaml_problems: list[str] = []
    try:
        obj = await decode(body, media_type, turns, yaml_problems)
    except ValueError as error:
        if media_type == JSON:
            raise _unrecognized(resource, str(error), _summary(body)) from None
        shown = body[:1000].hex() if media_type == PROTOBUF else _summary(body)
        raise bad_request(
            f"the object provided is unrecognized (must be of type {resource.kind}): {error} ({shown})"
        ) from None
    if obj is None:
        return {"metadata": {}}
    if isinstance(obj, dict):
        if media_type == JSON and not isinstance(resource, CustomResource):
            _check_type_meta(resource, obj, body)
        if context.field_validation != "Ignore":
            if media_type == JSON:
                context.repeated = repeated_fields(body, obj)
            elif yaml_problems:
                _say_of_yaml(resource, context, yaml_problems)
        return obj
    type_ = {list: "array", str: "string", bool: "bool"}.get(type(obj), "number")
    why = f"json: cannot unmarshal {type_} into Go value of type {TYPE_META}"
    raise _unrecognized(resource, why, _summary(body))


def _check_type_meta(resource: Resource, obj: Object, body: bytes) -> None:
    """kind and apiVersion are found before anything else is read. Raises 400. (`json.Serializer.Decode`)"""
    if type(obj.get("kind")) is not str or type(obj.get("apiVersion")) is not str:
        for key in obj:
            if key in ("kind", "apiVersion") and not isinstance(obj[key], str | None):
                why = f"json: cannot unmarshal {json_type(obj[key])} into Go struct field .{key} of type string"
                raise _unrecognized(resource, why, _summary(body))
    if (version := obj.get("apiVersion") or "").count("/") > 1:
        why = f"unexpected GroupVersion string: {version} ({_summary(body)})"
        raise bad_request(f"the object provided is unrecognized (must be of type {resource.kind}): {why}")


MAX_SHOWN_BYTES = 30


def _summary(body: bytes) -> str:
    """The beginning of a body that cannot be read. (`summarizeData`)"""
    if not body:
        return "<empty>"
    more = " ..." if len(body) > MAX_SHOWN_BYTES else ""
    start = body[:MAX_SHOWN_BYTES]
    return (start.decode(errors="replace") if body.startswith(b"{") else start.hex()) + more


def _say_of_yaml(resource: Resource, context: RequestContext, problems: list[str]) -> None:
    """Keys that a YAML text has twice: warnings, or the 400 StatusError. (`parseYAMLWarnings`)"""
    if context.field_validation == "Warn":
        context.warnings.extend(problems)
        return
    why = "strict decoding error: yaml: unmarshal errors:" + "".join(f"\n  {problem}" for problem in problems)
    raise cannot_be_handled(resource.kind, resource.version, resource.kind, why)


async def decode_patch(body: bytes, content_type: str, turns: Turns, context: RequestContext | None = None) -> Any:
    """The decoded patch. Raises the 400 StatusError."""
    if content_type == APPLY_PATCH:
        return await _decode_applied(body, turns, context)
    try:
        patch = await decode_json(body, turns)
    except ValueError as error:
        why = str(error)
        raise bad_request(why if content_type == STRATEGIC_MERGE_PATCH else f"error decoding patch: {why}") from None
    if context is not None and context.field_validation != "Ignore" and isinstance(patch, dict):
        context.repeated = repeated_fields(body, patch)
    return _with_floats(patch, body) if content_type == STRATEGIC_MERGE_PATCH else patch


_LONG_NUMBER = re.compile(rb"[0-9]{19}")


def _with_floats(value: Any, body: bytes) -> Any:
    if not _LONG_NUMBER.search(body):
        return value
    # late: for odd numbers only
    from lastcall.kube.api.schema.unstructured import large_as_floats

    return large_as_floats(value)


async def _decode_applied(body: bytes, turns: Turns, context: RequestContext | None) -> Any:
    """What is applied comes as YAML, of which JSON, what kubectl sends, is a part."""
    looks = context is not None and context.field_validation != "Ignore"
    problems: list[str] = []
    try:
        try:
            config = json_text.loads(body)
            again = looks and repeated_fields(body, config) is not None
        except ValueError:
            again = True
        if again:
            config = await decode_yaml(body, turns, problems)
    except ValueError as error:
        raise bad_request(f"error decoding YAML: error converting YAML to JSON: {error}") from None
    if not isinstance(config, dict | None):
        type_ = {list: "array", str: "string", bool: "bool"}.get(type(config), "number")
        why = f"json: cannot unmarshal {type_} into Go value of type map[string]interface {{}}"
        raise bad_request(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {why}")
    if problems and context is not None and looks:
        if context.field_validation == "Strict":
            why = "".join(f"\n  {problem}" for problem in problems)
            raise bad_request(
                f"error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:{why}"
            )
        context.warnings.extend(problems)
    return _with_floats(config or {}, body)


def _unrecognized(resource: Resource, why: str, shown: str) -> StatusError:
    return bad_request(
        f"the object provided is unrecognized (must be of type {resource.kind}): couldn't get version/kind; "
        f"json parse error: {why} ({shown})"
    )


def prepare(  # noqa: C901, PLR0915 - see the marker
    context: RequestContext,
    resource: Resource,
    obj: Object,
    *,
    patch: Callable[[], str] | None = None,
    old: Object | None = None,
    shared: bool = False,
    applied: Object | None = None,
) -> Object:
    """`obj` (changed in place) as one of `resource`: kind and version set, unknown fields reported and dropped.

    `patch` is given when the object came from a PATCH, whose errors have another form and show what it answers; `old`
    is what was patched: what is the same in both has been looked at before. With `shared` `obj` and what is in it stay
    as they are, and the answer shares nothing with it but what is of `old`. `applied`: what was applied, where `obj` is
    what an apply made, whose errors are the server's own. Raises StatusError.
    """
    if shared:
        obj = dict(obj)
    check_kind(resource, obj)
    if not isinstance(obj.get("metadata", {}), dict | None):
        type_ = {list: "array", str: "string", bool: "bool"}.get(type(obj["metadata"]), "number")
        why = f"json: cannot unmarshal {type_} into Go struct field {resource.kind}.metadata of type v1.ObjectMeta"
        if patch is not None:
            if (shown := patch()).startswith("map["):
                why = unconverted(obj["metadata"], "v1.ObjectMeta")
            raise invalid_object("", "", [invalid("patch", shown, why)])
        raise cannot_be_handled(resource.kind, resource.version, resource.kind, why)
    obj["metadata"] = obj.get("metadata") or {}
    obj["kind"], obj["apiVersion"] = resource.kind, resource.api_version
    looked_at = [key for key, value in obj.items() if old is None or key not in old or not _same(value, old[key])]
    part = obj if old is None else {key: obj[key] for key in looked_at}
    known, empties = None, context.empties
    empties.clear()
    if shared:
        known = None if isinstance(resource, CustomResource) else decoded_copy(resource, part, empties)
        part = copy_object({key: obj[key] for key in looked_at}) if known is None else known
        if old is not None:
            obj |= {key: old[key] for key in obj if key in old and key not in looked_at}
    forget = obj["metadata"].get("managedFields") == []
    try:
        if isinstance(resource, CustomResource):
            problems = _decode_custom(resource, part)
        elif known is not None:
            problems = []
        else:
            problems = _decode_known(resource, part, patch, empties, applied=applied is not None)
    except DecodeError as found:
        error = _first_error(resource, obj, found, patch, applied)
        if applied is not None:
            raise plain_failure(_unconvertible(resource, applied.get("metadata") or {}, error)) from None
        if patch is not None:
            shown = patch()
            why = error.unconverted if shown.startswith("map[") else str(error)
            raise invalid_object("", "", [invalid("patch", shown, why)]) from None
        raise cannot_be_handled(resource.kind, resource.version, resource.kind, str(error)) from None
    if context.repeated is not None:
        # Those of a patch are found when it is read, before it is applied.
        said = context.repeated
        problems = said.merged(problems) if patch is None else [*said.problems(), *problems]
        context.repeated = None
    if len(problems) > 1 and patch is not None and not isinstance(resource, CustomResource):
        problems = _in_its_order(resource, problems, patch())
    if problems:
        if context.field_validation == "Strict":
            raise _strict(resource, problems, patch)
        if context.field_validation == "Warn":
            context.warnings.extend(problems)
    if empties:
        empties[:] = [(ROOT if struct is part else struct, key, value) for struct, key, value in empties]
    if part is not obj:
        for key in looked_at:
            if key not in part:
                del obj[key]
        obj |= {key: value for key, value in part.items() if key in looked_at or key not in obj}
    if forget:
        # An empty list asks for managedFields to be forgotten; where there is none, they stay.
        obj["metadata"]["managedFields"] = []
    return obj


def _decode_known(
    resource: Resource, obj: Object, patch: Callable[[], str] | None, empties: Empties, *, applied: bool
) -> list[str]:
    """`decode_fields`, which does more with numbers where no JSON is in between. Raises DecodeError."""
    try:
        return decode_fields(resource, obj, empties)
    except DecodeError:
        if not (applied or (patch is not None and patch().startswith("map["))):
            raise
        # late: for odd numbers only
        from lastcall.kube.api.schema.unstructured import convert_numbers

        if not convert_numbers(resource, obj):
            raise
    return decode_fields(resource, obj, empties)


def _first_error(
    resource: Resource, obj: Object, error: DecodeError, patch: Callable[[], str] | None, applied: Object | None
) -> DecodeError:
    """Of several values of a wrong type the one that is told: the first in the text of what was patched; where no JSON
    is in between, the first in the order of the type's fields. Of what a client sent it is the first that was sent."""
    if isinstance(resource, CustomResource) or (patch is None and applied is None):
        return error
    shown = "" if patch is None else patch()
    # late: for an error's words only
    from lastcall.kube.api.protobuf.ordering import in_go_order

    try:
        check_fields(resource, json_text.loads(shown.encode()) if shown.startswith("{") else in_go_order(obj, obj))
    except (DecodeError, ValueError) as first:
        return first if isinstance(first, DecodeError) else error
    return error


def _in_its_order(resource: Resource, problems: list[str], shown: str) -> list[str]:
    """What is unknown in a patched object, in the order of its text; where no JSON is in between, by name."""
    if not shown.startswith("{"):
        return sorted(problems)
    found = check_fields(resource, json_text.loads(shown.encode()))
    return found if sorted(found) == sorted(problems) else problems


def _unconvertible(resource: Resource, meta: Object, error: DecodeError) -> str:
    """(fieldmanager/structuredmerge.go:Apply)"""
    version = resource.api_version if resource.group else f"/{resource.version}"
    kind = f"{version}, Kind={resource.kind}"
    name = f"{meta.get('namespace') or ''}/{meta.get('name') or ''}"
    doing = f"failed to convert new object ({name}; {kind}) to proper version"
    return f"{doing}: unable to convert unstructured object to {kind}: {error.unconverted}"


def _decode_custom(resource: CustomResource, obj: Object) -> list[str]:
    """`decode_fields` for a declared kind: metadata is Kubernetes's own, the rest what its schema says."""
    problems: list[str] = []
    if "metadata" in obj:  # a patch that leaves it alone has looked at what it changes only
        own = {"metadata": obj["metadata"]}
        problems = decode_fields(CONFIGMAPS, own)
        obj["metadata"] = own["metadata"]
    problems += [f"unknown field {go_quote(path)}" for path in prune_unknown(resource.schema, obj)]
    drop_nulls(resource.schema, obj)
    set_schema_defaults(resource.schema, obj)
    return problems


def _same(value: Any, before: Any) -> bool:
    """Equal as JSON: to Python True is 1."""
    return value is before or (bool(value == before) and orjson.dumps(value) == orjson.dumps(before))


def _strict(resource: Resource, problems: list[str], patch: Callable[[], str] | None) -> StatusError:
    why = f"strict decoding error: {', '.join(problems)}"
    if patch is None:
        return cannot_be_handled(resource.kind, resource.version, resource.kind, why)
    return invalid_object("", "", [invalid("patch", patch(), why)])


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
    why = misfit(resource, str(kind), str(api_version))
    raise cannot_be_handled(str(kind), str(api_version).rpartition("/")[2], resource.kind, why)


def misfit(resource: Resource, kind: str, api_version: str) -> str:
    """Why an object is not a `resource`: it has another kind or version; "" for one that is."""
    if (kind, api_version) == (resource.kind, resource.api_version):
        return ""
    if api_version.count("/") > 1:
        return f"unexpected GroupVersion string: {api_version}"
    if not known_kind(api_version, kind):
        return f'no kind "{kind}" is registered for version "{api_version}" in scheme "{scheme_of(resource)}"'
    internal = f"core.{resource.kind}" if not resource.group else f"{resource.group.split('.')[0]}.{resource.kind}"
    return f"converting ({api_version.rpartition('/')[2]}.{kind}) to ({internal}): unknown conversion"
