"""Parts of a definition as an error shows them: the API server's own types have no JSON names, and say every field.

Source: apiextensions-apiserver pkg/apis/apiextensions/types{,_jsonschema}.go.
"""

from collections.abc import Callable, Iterable
from typing import Any

from lastcall.kube.api.meta import Object

_NULL, _TEXT, _NO, _ZERO = None, "", False, 0
_SCHEMA: tuple[tuple[str, str, object], ...] = (
    ("ID", "id", _TEXT),
    ("Schema", "$schema", _TEXT),
    ("Ref", "$ref", _NULL),
    ("Description", "description", _TEXT),
    ("Type", "type", _TEXT),
    ("Nullable", "nullable", _NO),
    ("Format", "format", _TEXT),
    ("Title", "title", _TEXT),
    ("Default", "default", _NULL),
    ("Maximum", "maximum", _NULL),
    ("ExclusiveMaximum", "exclusiveMaximum", _NO),
    ("Minimum", "minimum", _NULL),
    ("ExclusiveMinimum", "exclusiveMinimum", _NO),
    ("MaxLength", "maxLength", _NULL),
    ("MinLength", "minLength", _NULL),
    ("Pattern", "pattern", _TEXT),
    ("MaxItems", "maxItems", _NULL),
    ("MinItems", "minItems", _NULL),
    ("UniqueItems", "uniqueItems", _NO),
    ("MultipleOf", "multipleOf", _NULL),
    ("Enum", "enum", _NULL),
    ("MaxProperties", "maxProperties", _NULL),
    ("MinProperties", "minProperties", _NULL),
    ("Required", "required", _NULL),
    ("Items", "items", _NULL),
    ("AllOf", "allOf", _NULL),
    ("OneOf", "oneOf", _NULL),
    ("AnyOf", "anyOf", _NULL),
    ("Not", "not", _NULL),
    ("Properties", "properties", _NULL),
    ("AdditionalProperties", "additionalProperties", _NULL),
    ("PatternProperties", "patternProperties", _NULL),
    ("Dependencies", "dependencies", _NULL),
    ("AdditionalItems", "additionalItems", _NULL),
    ("Definitions", "definitions", _NULL),
    ("ExternalDocs", "externalDocs", _NULL),
    ("Example", "example", _NULL),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", _NULL),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", _NO),
    ("XIntOrString", "x-kubernetes-int-or-string", _NO),
    ("XListMapKeys", "x-kubernetes-list-map-keys", _NULL),
    ("XListType", "x-kubernetes-list-type", _NULL),
    ("XMapType", "x-kubernetes-map-type", _NULL),
    ("XValidations", "x-kubernetes-validations", _NULL),
)
_RULE: tuple[tuple[str, str, object], ...] = (
    ("Rule", "rule", _TEXT),
    ("Message", "message", _TEXT),
    ("MessageExpression", "messageExpression", _TEXT),
    ("Reason", "reason", _NULL),
    ("FieldPath", "fieldPath", _TEXT),
    ("OptionalOldSelf", "optionalOldSelf", _NULL),
)
_COLUMN: tuple[tuple[str, str, object], ...] = (
    ("Name", "name", _TEXT),
    ("Type", "type", _TEXT),
    ("Format", "format", _TEXT),
    ("Description", "description", _TEXT),
    ("Priority", "priority", _ZERO),
    ("JSONPath", "jsonPath", _TEXT),
)
_SCALE: tuple[tuple[str, str, object], ...] = (
    ("SpecReplicasPath", "specReplicasPath", _TEXT),
    ("StatusReplicasPath", "statusReplicasPath", _TEXT),
    ("LabelSelectorPath", "labelSelectorPath", _NULL),
)


def set_fields(schema: Object) -> Iterable[str]:
    """Return the fields of a schema that say something, by the API server's names and in its order."""
    return (field for field, key, zero in _SCHEMA if key in schema and schema[key] is not None and schema[key] != zero)


def shown_schema(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    several, named = ("AllOf", "OneOf", "AnyOf"), ("Properties", "PatternProperties", "Definitions")
    return {
        field: _inner(field, schema[key], several, named) if schema.get(key) is not None else zero
        for field, key, zero in _SCHEMA
    }


def _inner(field: str, value: Any, several: tuple[str, ...], named: tuple[str, ...]) -> Any:
    if field in several:
        return [shown_schema(each) for each in value]
    if field in named:
        return {name: shown_schema(value[name]) for name in sorted(value)}
    if field == "Not":
        return shown_schema(value)
    if field == "Items":
        if isinstance(value, list):
            return {"Schema": None, "JSONSchemas": [shown_schema(each) for each in value]}
        return {"Schema": shown_schema(value) if isinstance(value, dict) else None, "JSONSchemas": None}
    if field in ("AdditionalProperties", "AdditionalItems"):
        return {"Allows": value is not False, "Schema": shown_schema(value) if isinstance(value, dict) else None}
    if field == "ExternalDocs":
        return {"Description": value.get("description", ""), "URL": value.get("url", "")}
    return [shown_rule(each) for each in value] if field == "XValidations" else value


def shown_rule(rule: Object) -> Object:
    return {field: rule.get(key, zero) for field, key, zero in _RULE}


def shown_versions(versions: list[Object] | None, shared: Callable[[str], bool]) -> Any:
    """Return the versions as they are shown, without what all of them have in common.

    `shared` says which of schema, subresources, additionalPrinterColumns and selectableFields that is.
    """
    if versions is None:
        return None
    return [_version(each, shared) for each in versions]


def _version(version: Object, shared: Callable[[str], bool]) -> Object:
    own = {key: None if shared(key) else version.get(key) for key in _PARTS}
    schema, subresources = own["schema"], own["subresources"]
    columns, fields = own["additionalPrinterColumns"], own["selectableFields"]
    return {
        "Name": version.get("name", ""),
        "Served": bool(version.get("served")),
        "Storage": bool(version.get("storage")),
        "Deprecated": bool(version.get("deprecated")),
        "DeprecationWarning": version.get("deprecationWarning"),
        "Schema": schema and {"OpenAPIV3Schema": shown_schema(schema.get("openAPIV3Schema"))},
        "Subresources": subresources
        and {
            "Status": subresources.get("status"),
            "Scale": _fields(subresources["scale"], _SCALE) if subresources.get("scale") is not None else None,
        },
        "AdditionalPrinterColumns": columns and [_fields(each, _COLUMN) for each in columns],
        "SelectableFields": fields and [{"JSONPath": each.get("jsonPath", "")} for each in fields],
    }


_PARTS = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")


def _fields(value: Object, table: tuple[tuple[str, str, object], ...]) -> Object:
    return {field: value.get(key, zero) for field, key, zero in table}
