"""JSON patch, JSON merge patch and strategic merge patch on plain data.

The document is never changed; every function answers a new one (which may share unchanged parts with the old).
Sources: apiserver pkg/endpoints/handlers/patch.go, RFC 6902, RFC 7386, apimachinery pkg/util/strategicpatch/patch.go.
"""

# check: pure

from typing import Any, cast

from lastcall.kube.api import errors
from lastcall.kube.api.errors import StatusError, status_failure
from lastcall.kube.api.meta import Object
from lastcall.kube.api.patch import json_patch
from lastcall.kube.api.resources import Resource
from lastcall.kube.api.schema.types import Field, Struct, struct_for, struct_of

_DIRECTIVE = "$patch"
_RETAIN_KEYS = "$retainKeys"
_ORDER = "$setElementOrder/"
_DELETE_PRIMITIVES = "$deleteFromPrimitiveList/"


def _go_kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, dict) else "array" if isinstance(value, list) else "number"


def _not_applicable() -> StatusError:
    message = "the server rejected our request due to an error in our request"
    return status_failure(422, "Invalid", message, {})


def apply_json_patch(doc: Object, patch: Any, *, checked: bool = True) -> Object:
    """Apply a JSON patch (RFC 6902).

    Raises StatusError: 400 for a patch that is not a list, 413 for too many operations, 422 otherwise.
    `checked`: field validation looks at the patch first, and says in its own words what is wrong with it.
    """
    if patch is None:
        return doc
    if checked:
        _check_operations(patch)
    elif not isinstance(patch, list):
        raise errors.bad_request(f"json: cannot unmarshal {_go_kind(patch)} into Go value of type jsonpatch.Patch")
    if len(patch) > json_patch.MAX_OPERATIONS:
        limit = json_patch.MAX_OPERATIONS
        raise errors.too_large(f"The allowed maximum operations in a JSON patch is {limit}, got {len(patch)}")
    for operation in patch:
        if operation is None:
            raise _not_applicable()
        if not isinstance(operation, dict):
            what = f"json: cannot unmarshal {_go_kind(operation)} into Go value of type jsonpatch.Operation"
            raise errors.bad_request(what)
        if any(not isinstance(operation.get(name), str | None) for name in _NAMES):
            raise _not_applicable()
    try:
        patched = json_patch.apply(doc, patch)
    except json_patch.PatchError:
        raise _not_applicable() from None
    if not isinstance(patched, dict):
        raise _not_applicable()
    return cast(Object, patched)


def merge_patch(doc: Object, patch: Any) -> Object:
    """Apply a merge patch (RFC 7386). Raises StatusError 400 for a patch that is not an object."""
    if patch is None:
        raise errors.bad_request("Invalid JSON Patch")
    if not isinstance(patch, dict):
        what = f"json: cannot unmarshal {_go_kind(patch)} into Go value of type map[string]interface {{}}"
        raise errors.bad_request(f"error decoding patch: {what}")
    return _merge(doc, patch)


def _merge(doc: Any, patch: Object) -> Object:
    result: Object = dict(doc) if isinstance(doc, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = _merge(result.get(key), value)
        else:
            result[key] = _without_nulls(value) if isinstance(value, list) else value
    return result


def _without_nulls(value: Any) -> Any:
    """A list as a merge takes it from the patch: members of its objects that are null go. (evanphx/json-patch)"""
    if isinstance(value, list):
        return [_without_nulls(each) if type(each) in _NESTED else each for each in value]
    return {
        key: _without_nulls(each) if type(each) in _NESTED else each for key, each in value.items() if each is not None
    }


_NESTED = frozenset((dict, list))


_NAMES = ("op", "path", "from")


def _check_operations(patch: Any) -> None:
    """(patch.go:jsonPatcher.applyPatchToCurrentObject, strict decoding) Raises 400."""
    if not isinstance(patch, list):
        what = f"json: cannot unmarshal {_go_kind(patch)} into Go value of type []handlers.jsonPatchOp"
        raise errors.bad_request(f"error decoding patch: {what}")
    for operation in patch:
        if operation is None:
            continue
        if not isinstance(operation, dict):
            what = f"json: cannot unmarshal {_go_kind(operation)} into Go value of type handlers.jsonPatchOp"
            raise errors.bad_request(f"error decoding patch: {what}")
        for name in _NAMES:
            if not isinstance(operation.get(name), str | None):
                kind = _go_kind(operation[name])
                what = f"json: cannot unmarshal {kind} into Go struct field jsonPatchOp.{name} of type string"
                raise errors.bad_request(f"error decoding patch: {what}")


def strategic_merge_patch(resource: Resource, doc: Object, patch: Any) -> Object:
    """Merge as Kubernetes does, with the merge keys of the schema.

    Raises StatusError: 400 for a patch that is not an object, 500 for a wrong directive or a missing merge key.
    """
    if patch is None:
        return doc
    if not isinstance(patch, dict):
        what = f"json: cannot unmarshal {_go_kind(patch)} into Go value of type map[string]interface {{}}"
        raise errors.bad_request(what)
    return _merge_map(doc, patch, struct_for(resource))


def _fail(message: str) -> StatusError:
    return errors.plain_failure(message)


def go_map(value: Any) -> str:
    """Format decoded JSON as Go's `%v` prints it: `map[image:noname]`."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{go_map(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(go_map(item) for item in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _go_float(value)
    return "<nil>" if value is None else str(value)


def _go_float(value: float) -> str:
    """As Go's `%v` prints it: with an exponent from a million on."""
    if not value or 1e-4 <= abs(value) < 1e6:
        return repr(value).removesuffix(".0")
    return next(text for n in range(18) if float(text := f"{value:.{n}e}") == value)


def _go_type(value: Any) -> str:
    """As Go's `%s` prints the type of a decoded JSON value."""
    if value is None:
        return "%!s(<nil>)"
    if isinstance(value, bool | str):
        return "bool" if isinstance(value, bool) else "string"
    if isinstance(value, dict | list):
        return "map[string]interface {}" if isinstance(value, dict) else "[]interface {}"
    return "int64" if isinstance(value, int) else "float64"


def _go_text(value: Any) -> str:
    """As Go's `%s` prints a decoded JSON value."""
    if value is None or isinstance(value, bool | int | float):
        return "%!s(<nil>)" if value is None else f"%!s({_go_type(value)}={go_map(value)})"
    return go_map(value)


def _merge_map(original: Object, patch: Object, struct: Struct | None) -> Object:
    """`struct` None is a map or free-form object: its members merge without keys."""
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return {key: _strip(value) for key, value in patch.items() if key != _DIRECTIVE}
    if directive == "delete":
        return {}
    if directive is not None and (directive != "merge" or struct is not None):
        raise _fail(f"unknown patch type: {_go_text(directive)} in map: {go_map(patch)}")
    result = _retained(original, patch)
    for key, value in patch.items():
        if key in (_DIRECTIVE, _RETAIN_KEYS):
            continue
        if key.startswith(_DELETE_PRIMITIVES):
            name = key[len(_DELETE_PRIMITIVES) :]
            if isinstance(result.get(name), list) and isinstance(value, list):
                result[name] = [item for item in result[name] if item not in value]
            continue
        if key.startswith(_ORDER):
            name = key[len(_ORDER) :]
            field = _check_order(name, value, result.get(name), patch.get(name), struct)
            if name not in patch and isinstance(result.get(name), list):
                result[name] = _ordered(result[name], value, result[name], field)
            continue
        if value is None:
            result.pop(key, None)
            continue
        field = struct.fields.get(key) if struct else None
        current = result.get(key)
        if isinstance(value, dict):
            _merge_member(result, key, value, field)
        elif isinstance(value, list) and isinstance(current, list) and field is not None and "merge" in field.strategy:
            merged = _merge_list(current, value, field)
            order = patch.get(_ORDER + key)
            result[key] = _ordered(merged, order, current, field) if isinstance(order, list) else merged
        else:
            result[key] = _strip(value)
    return result


def _retained(original: Object, patch: Object) -> Object:
    """Return a copy of `original` with the members that `$retainKeys` keeps, with all if the patch has none."""
    if _RETAIN_KEYS not in patch:
        return dict(original)
    retained = patch[_RETAIN_KEYS]
    if isinstance(retained, list) and any(isinstance(each, dict | list) for each in retained):
        # Kubernetes panics: Go cannot look for a map or a list among keys (patch.go:applyRetainKeysDirective).
        raise errors.bad_request("invalid patch format of retainKeys")
    written = [key for key in patch if not key.startswith("$") and patch[key] is not None]
    if not isinstance(retained, list) or any(key not in retained for key in written):
        raise errors.bad_request("invalid patch format of retainKeys")
    return {key: value for key, value in original.items() if key in retained}


def _merge_member(result: Object, key: str, value: Object, field: Field | None) -> None:
    current = result.get(key)
    inner = struct_of(field) if field is not None and field.shape == "struct" else None
    if field is not None and "replace" in field.strategy:
        result[key] = value  # with its nulls: it replaces what was there
    elif value.get(_DIRECTIVE) == "delete" or (_DIRECTIVE in value and not isinstance(current, dict)):
        result.pop(key, None)
    else:
        result[key] = _merge_map(current if isinstance(current, dict) else {}, value, inner)


def _check_order(name: str, order: Any, current: Any, patch: Any, struct: Struct | None) -> Field | None:
    """The field whose order `$setElementOrder/…` gives. Raises the 500 of an order that does not fit.

    (strategicpatch/patch.go:mergePatchIntoOriginal, validatePatchWithSetOrderList)
    """
    for each in (order, current, patch):
        if not isinstance(each, list) and (each is order or each is not None):
            raise _fail(f"expected a []interface {{}}, but received a {_go_type(each)}")
    if struct is None:
        return None
    if (field := struct.fields.get(name)) is None:
        what = struct.name.rpartition(".")[2]
        raise _fail(f'unable to find api field in struct {what} for the json field "{name}"')
    if key := field.merge_key:
        for index, item in enumerate(order):
            if not isinstance(item, dict):
                raise _fail(f"value for key {index} is not a map")
    items = [item for item in patch or () if not (isinstance(item, dict) and _DIRECTIVE in item)]
    at = 0
    for item in order:
        if at < len(items) and (
            items[at].get(key) == item.get(key) if key and isinstance(items[at], dict) else items[at] == item
        ):
            at += 1
    if order and at < len(items):
        shown = f"The order in patch list:\n{go_map(patch)}\n doesn't match {_ORDER[:-1]} list:\n{go_map(order)}\n"
        raise _fail(shown)
    return field


def _merge_list(original: list[Any], patch: list[Any], field: Field) -> list[Any]:
    if len({_go_type(each) for each in (*original, *patch)}) > 1:
        raise _fail(f"list element types are not identical: {go_map([original, patch])}")
    if not field.merge_key:
        result = list(original)
        for item in patch:
            if item not in result:
                result.append(item)
        return _ordered(result, patch, original, field)
    key = field.merge_key
    inner = struct_of(field.item) if field.item is not None and field.item.shape == "struct" else None
    result = list(original)
    additions: list[Object] = []
    replace = False
    for item in patch:
        if not isinstance(item, dict):
            raise _fail(f"expected a map in a list with merge key {key}, got {go_map(item)}")
        directive = item.get(_DIRECTIVE)
        if directive == "replace":
            if len(item) == 1 or key not in item:
                replace = True
                continue
            result = [entry for entry in result if entry.get(key) != item[key]]
            additions.append({name: value for name, value in item.items() if name != _DIRECTIVE})
            continue
        _check_item(item, key)
        if directive == "delete":
            result = [entry for entry in result if entry.get(key) != item[key]]
        else:
            additions.append(item)
    if replace:
        return [_strip(item) for item in additions]
    for item in additions:
        for index, entry in enumerate(result):
            if isinstance(entry, dict) and entry.get(key) == item[key]:
                result[index] = _merge_map(entry, item, inner)
                break
        else:
            result.append(_merge_map({}, item, inner))
    return _ordered(result, additions, original, field)


def _check_item(item: Object, key: str) -> None:
    """Raise the 500 of an item that is neither merged nor deleted by its merge key."""
    directive = item.get(_DIRECTIVE)
    if key not in item:
        shown = {name: value for name, value in item.items() if name != _DIRECTIVE}
        raise _fail(f"map: {go_map(shown if directive else item)} does not contain declared merge key: {key}")
    if directive == "merge":
        raise _fail("merging lists cannot yet be specified in the patch")
    if directive not in (None, "delete"):
        raise _fail(f"unknown patch type: {_go_text(directive)} in map: {go_map(item)}")


def _ordered(items: list[Any], order: list[Any], original: list[Any], field: Field | None) -> list[Any]:
    """`items` with those named by `order` in that order; the others keep their place of `original` among them.

    Where the two orders say nothing about each other, the named ones come first.
    (`strategicpatch.normalizeElementOrder`, `mergeSortedSlice`)
    """
    key = field.merge_key if field is not None else ""

    def identity(item: Any) -> Any:
        return item.get(key) if key and isinstance(item, dict) else item

    wanted, served = [identity(item) for item in order], [identity(item) for item in original]
    left = [item for item in items if identity(item) not in wanted]
    right = sorted((item for item in items if identity(item) in wanted), key=lambda item: wanted.index(identity(item)))
    left.sort(key=lambda item: served.index(identity(item)) if identity(item) in served else len(served))
    result: list[Any] = []
    for item in right:
        name = identity(item)
        place = served.index(name) if name in served else -1
        while left and identity(left[0]) in served and served.index(identity(left[0])) < place:
            result.append(left.pop(0))
        result.append(item)
    return result + left


def _strip(value: Any) -> Any:
    """Without directives and nulls: what is left of a patch where there was nothing to merge with."""
    if isinstance(value, dict):
        return {
            key: _strip(item)
            for key, item in value.items()
            if item is not None
            and key not in (_DIRECTIVE, _RETAIN_KEYS)
            and not key.startswith((_ORDER, _DELETE_PRIMITIVES))
        }
    if isinstance(value, list):
        return [_strip(item) for item in value if not _is_only_directive(item)]
    return value


def _is_only_directive(item: Any) -> bool:
    return isinstance(item, dict) and (item.get(_DIRECTIVE) == "delete" or list(item) == [_DIRECTIVE])
