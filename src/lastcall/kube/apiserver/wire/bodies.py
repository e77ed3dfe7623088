"""Request bodies: from bytes to plain data.

Sources: apiserver pkg/endpoints/handlers/create.go, apimachinery pkg/runtime/serializer/json/json.go,
pkg/endpoints/handlers/fieldmanager (field validation).
"""

import asyncio
import re
from collections.abc import Generator
from contextlib import nullcontext
from typing import Any, TypeVar

from lastcall.kube.api.custom.kinds import CustomResource
from lastcall.kube.api.errors import StatusError, bad_request, cannot_be_handled
from lastcall.kube.api.meta import Object
from lastcall.kube.api.protobuf.decoding import decode_envelope
from lastcall.kube.api.resources import Resource
from lastcall.kube.api.schema.checks import json_type
from lastcall.kube.api.text import go_json as json_text
from lastcall.kube.api.text.json_bounds import OutOfBoundsError, check_bounds
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.kube.apiserver.wire.negotiation import JSON, PROTOBUF, YAML
from lastcall.kube.apiserver.wire.options import TYPE_META
from lastcall.kube.apiserver.wire.repeated_fields import repeated_fields
from lastcall.kube.client.api import APPLY_PATCH, STRATEGIC_MERGE_PATCH
from lastcall.world.clock import Clock

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
    """Decode JSON, YAML or protobuf to plain data; `yaml_problems` gets repeated keys. Raises ValueError."""
    if media_type == YAML:
        return await decode_yaml(body, turns, yaml_problems)
    if media_type != PROTOBUF:
        return await decode_json(body, turns)
    decoded = decode_envelope(body)
    check_bounds(decoded)
    return decoded


async def decode_json(body: bytes, turns: Turns) -> Any:
    """Decode JSON. Raises ValueError with Go's words."""
    try:
        return json_text.loads(body)
    except OutOfBoundsError:
        raise
    except ValueError:
        pass
    raise ValueError(await _in_turns(json_text.complaint(body), turns, len(body)))


async def decode_yaml(body: bytes, turns: Turns, problems: list[str] | None = None) -> Any:
    """Decode as `yaml_text.decode` does, so that others get their turn meanwhile. Raises ValueError with Go's words."""
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
    """Return the decoded body, `default` for an empty one. Raises the 400 StatusError."""
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
    """Decode the body of a POST or PUT; `context` learns what it says twice.

    Raises 400 for what is not an object of this kind.
    """
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
    """Return the decoded patch. Raises the 400 StatusError."""
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
