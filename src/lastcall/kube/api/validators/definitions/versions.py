"""Validate the versions of a definition: what each has, or all of them alike.

What all versions say alike is checked once, and by the name that it has in the API server's own type, where it is
beside the versions. (`Convert_v1_CustomResourceDefinitionSpec_To_apiextensions_CustomResourceDefinitionSpec`)

Source: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go.
"""

import unicodedata
from collections.abc import Iterable
from typing import Any

from lastcall.kube.api.field import FieldError, duplicate, forbidden, invalid, required, too_many
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import is_dns1035_label
from lastcall.kube.api.validators.definitions.defaults import default_errors
from lastcall.kube.api.validators.definitions.openapi import openapi_errors
from lastcall.kube.api.validators.definitions.paths import field_path
from lastcall.kube.api.validators.definitions.shown import set_fields, shown_schema, shown_versions
from lastcall.kube.api.validators.definitions.structure import cannot_be_structural, structure_errors

MAX_SELECTABLE = 8
_MAX_WARNING = 256
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_AT_ROOT = (
    "Description", "Type", "Format", "Title", "Maximum", "ExclusiveMaximum", "Minimum", "ExclusiveMinimum", "MaxLength",
    "MinLength", "Pattern", "MaxItems", "MinItems", "UniqueItems", "MultipleOf", "Required", "Items", "Properties",
    "ExternalDocs", "Example", "XPreserveUnknownFields", "XValidations",
)  # fmt: skip
"""What may be said at the root beside a status subresource."""
_COMMON = {
    "schema": "validation",
    "subresources": "subresources",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}
_NO_PATH = "may only be set when `version.schema.openAPIV3Schema` is not included"
_SELECTABLE = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
)


def version_errors(versions: list[Object] | None) -> Iterable[FieldError]:
    given = versions or []
    shared = {key: _shared(given, key) for key in _COMMON}
    names = [each.get("name") or "" for each in given]
    schemas = [(each.get("schema") or {}).get("openAPIV3Schema") for each in given]
    for index, schema in enumerate(schemas):
        if not isinstance(schema, dict):
            yield required(f"spec.versions[{index}].schema.openAPIV3Schema")
    for index, version in enumerate(given):
        here = f"spec.versions[{index}]"
        if problems := is_dns1035_label(names[index]):
            yield invalid(f"{here}.name", names[index], ",".join(problems))
        yield from _warning(version, f"{here}.deprecationWarning")
        own = {key: None if shared[key] else version.get(key) for key in _COMMON}
        subresources = version.get("subresources") or {}
        yield from _parts(own, here, "schema", _NO_PATH, status=subresources.get("status") is not None)
    shown = shown_versions(versions, lambda key: shared[key])
    if len({*names}) != len(names):
        yield invalid("spec.versions", shown, "must contain unique version names")
    if sum(bool(each.get("storage")) for each in given) != 1:
        yield invalid("spec.versions", shown, "must have exactly one version marked as storage version")


def common_errors(versions: list[Object]) -> Iterable[FieldError]:
    """Check what all versions say alike."""
    if versions:
        shared = {key: _shared(versions, key) for key in _COMMON}
        common = {key: versions[0].get(key) if shared[key] else None for key in _COMMON}
        status = any((each.get("subresources") or {}).get("status") is not None for each in versions)
        why = "may only be set when validations.schema is included"
        yield from _parts(common, "spec", "validation", why, status=status)


def schemas_of(versions: list[Object]) -> list[tuple[str, Object]]:
    """Return (path, schema), one for all versions that say the same."""
    if _shared(versions, "schema"):
        given = [("spec.validation", each.get("schema")) for each in versions[:1]]
    else:
        given = [(f"spec.versions[{index}].schema", each.get("schema")) for index, each in enumerate(versions)]
    found = [(f"{path}.openAPIV3Schema", (schema or {}).get("openAPIV3Schema")) for path, schema in given]
    return [(path, schema) for path, schema in found if isinstance(schema, dict)]


def _shared(versions: list[Object], key: str) -> bool:
    return all(_meant(each.get(key)) == _meant(versions[0].get(key)) for each in versions)


def _meant(value: Any) -> Any:
    return value or None if isinstance(value, list) else value


def _parts(own: Object, path: str, schema_name: str, no_schema: str, *, status: bool) -> Iterable[FieldError]:
    schema = (own["schema"] or {}).get("openAPIV3Schema")
    if isinstance(schema, dict):
        yield from schema_problems(schema, f"{path}.{schema_name}.openAPIV3Schema", status=status)
    if isinstance(own["subresources"], dict):
        yield from _scale(own["subresources"].get("scale"), f"{path}.subresources.scale")
    for index, column in enumerate(own["additionalPrinterColumns"] or ()):
        yield from _column(column, f"{path}.additionalPrinterColumns[{index}]")
    if own["selectableFields"]:
        at = f"{path}.selectableFields"
        if isinstance(schema, dict):
            yield from _selectable(own["selectableFields"], schema, at)
        else:
            yield invalid(at, "", no_schema)


def schema_problems(schema: Object, path: str, *, status: bool) -> Iterable[FieldError]:
    """Check the schema of an object. (`validateCustomResourceDefinitionValidation`)"""
    found: list[FieldError] = []
    if status:
        found += _root_beside_status(schema, path)
    if schema.get("nullable"):
        found.append(forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    why = cannot_be_structural(schema)
    if not why:
        found += structure_errors(schema, path) or default_errors(schema, path)
    found += openapi_errors(schema, path)
    if why and not found:
        found.append(invalid(path, "", why))
    return found


def _root_beside_status(schema: Object, path: str) -> Iterable[FieldError]:
    for field in set_fields(schema):
        if field == "Type" and schema["type"] != "object":
            words = (
                'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
            )
            yield invalid(f"{path}.type", schema["type"], words)
            return
        if field not in _AT_ROOT:
            words = (
                f"only [{' '.join(_AT_ROOT)}] fields are allowed at the root of the schema if the status subresource "
                "is enabled"
            )
            yield invalid(path, shown_schema(schema), words)
            return


def _warning(version: Object, path: str) -> Iterable[FieldError]:
    text = version.get("deprecationWarning")
    if text is None:
        return
    if not version.get("deprecated"):
        yield invalid(path, text, "can only be set for deprecated versions")
        return
    if len(text.encode()) > _MAX_WARNING:
        yield invalid(path, text, f"must be <= {_MAX_WARNING} characters long")
    if not text:
        yield invalid(path, text, "must not be an empty string")
    position = 0
    for char in text:
        if char != " " and unicodedata.category(char)[0] in "CZ":
            words = "must only contain printable UTF-8 characters; non-printable character found at index"
            yield invalid(path, text, f"{words} {position}")
            break
        position += len(char.encode())


def _column(column: Object, path: str) -> Iterable[FieldError]:
    if not column.get("name"):
        yield required(f"{path}.name")
    types = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not column.get("type"):
        yield required(f"{path}.type", types)
    elif column["type"] not in _COLUMN_TYPES:
        yield invalid(f"{path}.type", column["type"], types)
    if column.get("format") and column["format"] not in _COLUMN_FORMATS:
        yield invalid(f"{path}.format", column["format"], f"must be one of {','.join(_COLUMN_FORMATS)}")
    yield from _path(column.get("jsonPath") or "", f"{path}.JSONPath")


def _path(value: str, path: str) -> Iterable[FieldError]:
    if not value:
        yield required(path)
    elif not value.startswith("."):
        yield invalid(path, value, "must be a simple json path starting with .")


def _scale(scale: Object | None, path: str) -> Iterable[FieldError]:
    for field, starts, where in (
        ("specReplicasPath", (".spec.",), ".spec"),
        ("statusReplicasPath", (".status.",), ".status"),
        ("labelSelectorPath", (".spec.", ".status."), "either .spec or .status"),
    ):
        value = (scale or {}).get(field) or ""
        if scale is None or (not value and field == "labelSelectorPath"):
            continue
        wrong = list(_path(value, f"{path}.{field}"))
        yield from wrong
        if not wrong and not value.startswith(starts):
            yield invalid(f"{path}.{field}", value, f"should be a json path under {where}")


def _selectable(fields: list[Object], schema: Object, path: str) -> Iterable[FieldError]:
    seen: set[str] = set()
    for index, each in enumerate(fields):
        text, at = each.get("jsonPath") or "", f"{path}[{index}].jsonPath"
        if not text:
            yield required(at)
            continue
        try:
            found = field_path(text, schema, brackets=False)
        except ValueError as error:
            yield invalid(at, text, f"is an invalid path: {error}")
            continue
        if found.root == "metadata":
            yield invalid(at, text, "must not point to fields in metadata")
        if not isinstance(found.schema, dict) or found.schema.get("type") not in ("string", "boolean", "integer"):
            yield invalid(at, text, _SELECTABLE)
        if found.text in seen:
            yield duplicate(at, text)
        seen.add(found.text)
    if len(seen) > MAX_SELECTABLE:
        yield too_many(path, len(seen), MAX_SELECTABLE)
