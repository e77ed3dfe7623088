"""Objects of requests: as the expected kind, with unknown fields reported and dropped.

What comes of an object depends on how it came: a body is the server's own, an object of this process stays as it is,
errors of a PATCH show what was patched, those of an apply are the server's own. All are decoded in one way.

Sources: apiserver pkg/endpoints/handlers/{create,patch}.go, apimachinery pkg/runtime/serializer/json/json.go,
pkg/endpoints/handlers/fieldmanager (field validation).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import orjson

from lastcall.kube.api.custom.kinds import CustomResource
from lastcall.kube.api.custom.structural import drop_nulls, prune_unknown, set_schema_defaults
from lastcall.kube.api.errors import StatusError, bad_request, cannot_be_handled, plain_failure
from lastcall.kube.api.errors import invalid as invalid_object
from lastcall.kube.api.field import go_quote, invalid
from lastcall.kube.api.meta import Object, copy_object
from lastcall.kube.api.resources import CONFIGMAPS, Resource
from lastcall.kube.api.schema.checks import DecodeError, check_fields, json_type, known_kind, unconverted
from lastcall.kube.api.schema.decoding import decode_fields, decoded_copy
from lastcall.kube.api.schema.pruning import Empties
from lastcall.kube.api.text import go_json as json_text
from lastcall.kube.apiserver.wire.as_sent import ROOT
from lastcall.kube.apiserver.wire.context import RequestContext

_SCHEMES = {
    "apiextensions.k8s.io": "pkg/apiserver/apiserver.go:55",
    "apiregistration.k8s.io": "pkg/apiserver/scheme/scheme.go:28",
}
"""Where the kinds of a group are registered, as messages say it: the line of the source that makes the scheme."""


def scheme_of(resource: Resource) -> str:
    """Return where its kind would have to be registered."""
    return _SCHEMES.get(resource.group, "pkg/api/legacyscheme/scheme.go:30")


def prepare(context: RequestContext, resource: Resource, obj: Object, old: Object | None = None) -> Object:
    """Return the body of a request (changed in place) as one of `resource`. Raises StatusError.

    What is the same in `old` has been looked at before.
    """
    return _of_body(context, resource, _decode(context, resource, obj, old))


def prepare_copy(context: RequestContext, resource: Resource, obj: Object, old: Object | None = None) -> Object:
    """Return a copy of `obj` as one of `resource`, which shares nothing with it but what is of `old`.

    Raises StatusError.
    """
    return _of_body(context, resource, _decode(context, resource, obj, old, copies=True))


def prepare_patched(
    context: RequestContext, resource: Resource, obj: Object, patched: Callable[[], str], old: Object | None = None
) -> Object:
    """Return what a PATCH made of `old` as one of `resource`; `obj` stays as it is.

    `patched` gives the text of what was patched, which errors show. Raises StatusError.
    """
    found = _decode(context, resource, obj, old, copies=True, without_json=lambda: patched().startswith(_WITHOUT_JSON))
    if found.error is None and not found.problems and context.repeated is None:
        return found.obj
    if found.error is not None:
        shown = patched()
        error = _first_error(resource, found.obj, found.error, shown)
        raise _wrong_patch(shown, error.unconverted if shown.startswith(_WITHOUT_JSON) else str(error))
    problems = found.problems
    if context.repeated is not None:  # in the patch itself: found when it was read
        problems, context.repeated = [*context.repeated.problems(), *problems], None
    if len(problems) > 1 and not isinstance(resource, CustomResource):
        problems = _in_its_order(resource, problems, patched())
    _report(context, problems, lambda why: _wrong_patch(patched(), why))
    return found.obj


def prepare_applied(context: RequestContext, resource: Resource, obj: Object, config: Object) -> Object:
    """Return what an apply of `config` made (changed in place) as one of `resource`. Raises StatusError."""
    found = _decode(context, resource, obj, without_json=lambda: True)
    if found.error is not None and not isinstance(found.error, _NoMetadata):
        error = _first_error(resource, found.obj, found.error)
        raise plain_failure(_unconvertible(resource, config.get("metadata") or {}, error))
    return _of_body(context, resource, found)


_WITHOUT_JSON = "map["
"""How the text of what was patched begins where Go makes no JSON of it in between."""


class _NoMetadata(DecodeError):
    """`metadata` is not an object."""

    def __init__(self, resource: Resource, meta: Any) -> None:
        super().__init__(
            f"json: cannot unmarshal {json_type(meta)} into Go struct field {resource.kind}.metadata of type "
            "v1.ObjectMeta",
            unconverted(meta, "v1.ObjectMeta"),
        )


class _Decoded(NamedTuple):
    """`problems` are fields that are unknown. After an `error` the object is not finished."""

    obj: Object
    problems: list[str]
    error: DecodeError | None = None


def _decode(
    context: RequestContext,
    resource: Resource,
    obj: Object,
    old: Object | None = None,
    *,
    copies: bool = False,
    without_json: Callable[[], bool] = lambda: False,
) -> _Decoded:
    """Decode `obj` (in place, unless it `copies`), set kind and version and note in the context what is empty.

    Raises the StatusError of an object of another kind.
    """
    if copies:
        obj = dict(obj)
    check_kind(resource, obj)
    if not isinstance(obj.get("metadata"), dict | None):
        return _Decoded(obj, [], _NoMetadata(resource, obj["metadata"]))
    obj["metadata"] = obj.get("metadata") or {}
    obj["kind"], obj["apiVersion"] = resource.kind, resource.api_version
    looked_at = [key for key, value in obj.items() if old is None or key not in old or not _same(value, old[key])]
    part = obj if old is None else {key: obj[key] for key in looked_at}
    known, empties = None, context.empties
    empties.clear()
    if copies:
        known = None if isinstance(resource, CustomResource) else decoded_copy(resource, part, empties)
        part = copy_object({key: obj[key] for key in looked_at}) if known is None else known
        if old is not None:
            obj |= {key: old[key] for key in obj if key in old and key not in looked_at}
    forget = obj["metadata"].get("managedFields") == []
    try:
        if isinstance(resource, CustomResource):
            problems = _decode_custom(resource, part)
        else:
            problems = [] if known is not None else _decode_known(resource, part, empties, without_json)
    except DecodeError as error:
        return _Decoded(obj, [], error)
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
    return _Decoded(obj, problems)


def _of_body(context: RequestContext, resource: Resource, found: _Decoded) -> Object:
    """Return what was decoded of a body, or raise the StatusError of what is wrong with it."""
    if found.error is None and not found.problems and context.repeated is None:
        return found.obj

    def refused(why: str) -> StatusError:
        return cannot_be_handled(resource.kind, resource.version, resource.kind, why)

    if found.error is not None:
        raise refused(str(found.error))
    problems = found.problems
    if context.repeated is not None:
        problems, context.repeated = context.repeated.merged(problems), None
    _report(context, problems, refused)
    return found.obj


def _report(context: RequestContext, problems: list[str], refused: Callable[[str], StatusError]) -> None:
    """Warn of problems, or raise the StatusError that `refused` makes of them, as the client wants it."""
    if not problems:
        return
    if context.field_validation == "Strict":
        raise refused(f"strict decoding error: {', '.join(problems)}")
    if context.field_validation == "Warn":
        context.warnings.extend(problems)


def _wrong_patch(shown: str, why: str) -> StatusError:
    return invalid_object("", "", [invalid("patch", shown, why)])


def _decode_known(resource: Resource, obj: Object, empties: Empties, without_json: Callable[[], bool]) -> list[str]:
    """Decode fields; more is done with numbers where no JSON is in between. Raises DecodeError."""
    try:
        return decode_fields(resource, obj, empties)
    except DecodeError:
        if not without_json():
            raise
        # late: for odd numbers only
        from lastcall.kube.api.schema.unstructured import convert_numbers

        if not convert_numbers(resource, obj):
            raise
    return decode_fields(resource, obj, empties)


def _first_error(resource: Resource, obj: Object, error: DecodeError, shown: str = "") -> DecodeError:
    """Return the error that is reported of several values of a wrong type in what was not sent as it is.

    It is the first in `shown`, the text of what was patched; where no JSON is in between, the first in the order of the
    type's fields.
    """
    if isinstance(resource, CustomResource) or isinstance(error, _NoMetadata):
        return error
    # late: for an error's words only
    from lastcall.kube.api.protobuf.ordering import in_go_order

    try:
        check_fields(resource, json_text.loads(shown.encode()) if shown.startswith("{") else in_go_order(obj, obj))
    except (DecodeError, ValueError) as found:
        return found if isinstance(found, DecodeError) else error
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
    """Check that kind and apiVersion of a body, which may be left out, are the URL's. Raises 400."""
    if isinstance(resource, CustomResource):
        _check_custom_kind(resource, obj)
        return
    kind, api_version = obj.get("kind") or resource.kind, obj.get("apiVersion") or resource.api_version
    if (kind, api_version) == (resource.kind, resource.api_version):
        return
    why = misfit(resource, str(kind), str(api_version))
    raise cannot_be_handled(str(kind), str(api_version).rpartition("/")[2], resource.kind, why)


def misfit(resource: Resource, kind: str, api_version: str) -> str:
    """Return why an object is not a `resource`: it has another kind or version; "" for one that is."""
    if (kind, api_version) == (resource.kind, resource.api_version):
        return ""
    if api_version.count("/") > 1:
        return f"unexpected GroupVersion string: {api_version}"
    if not known_kind(api_version, kind):
        return f'no kind "{kind}" is registered for version "{api_version}" in scheme "{scheme_of(resource)}"'
    internal = f"core.{resource.kind}" if not resource.group else f"{resource.group.split('.')[0]}.{resource.kind}"
    return f"converting ({api_version.rpartition('/')[2]}.{kind}) to ({internal}): unknown conversion"
