"""Rules of CustomResourceDefinitions.

Source: apiextensions-apiserver pkg/apis/apiextensions/validation, pkg/apiserver/schema/validation.go (structural
schemas).
"""

from collections.abc import Iterable
from typing import Any

from lastcall.api.custom.json_path import parse_path
from lastcall.api.custom.patterns import pattern
from lastcall.api.field import FieldError, each, forbidden, invalid, not_supported, required
from lastcall.api.meta import Object
from lastcall.api.names import is_dns1035_label, is_dns1123_subdomain
from lastcall.api.schema.checks import DecodeError, check_value
from lastcall.api.schema.types import struct

_TYPES = ("array", "boolean", "integer", "number", "object", "string")


def validate_definition(definition: Object) -> list[FieldError]:
    spec = definition.get("spec") or {}
    names, group = spec.get("names") or {}, spec.get("group") or ""
    errors: list[FieldError] = []
    name = f"{names.get('plural', '')}.{group}"
    given = (definition.get("metadata") or {}).get("name") or ""
    if given != name:
        errors.append(invalid("metadata.name", given, 'must be spec.names.plural+"."+spec.group'))
    if not group:
        errors.append(required("spec.group"))
    else:
        errors += each("spec.group", group, is_dns1123_subdomain(group))
        if "." not in group:
            errors.append(invalid("spec.group", group, "should be a domain with at least one dot"))
    if not spec.get("scope"):
        errors.append(required("spec.scope"))
    elif spec["scope"] not in ("Cluster", "Namespaced"):
        errors.append(not_supported("spec.scope", spec["scope"], ("Cluster", "Namespaced")))
    errors += _versions(spec.get("versions") or [])
    errors += _names(names, "spec.names")
    strategy = (spec.get("conversion") or {}).get("strategy")
    if strategy == "Webhook":
        errors.append(
            invalid("spec.conversion.strategy", strategy, "conversion webhooks are not called here: use None")
        )
    elif strategy != "None":
        errors.append(not_supported("spec.conversion.strategy", strategy, ("None", "Webhook")))
    if spec.get("preserveUnknownFields"):
        text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        errors.append(invalid("spec.preserveUnknownFields", True, text))
    return errors


def validate_definition_update(new: Object, old: Object) -> list[FieldError]:
    """Group, plural and scope of a definition stay; no stored version may go."""
    errors: list[FieldError] = []
    for path in (("group",), ("scope",), ("names", "plural")):
        before: Any = old.get("spec")
        after: Any = new.get("spec")
        for name in path:
            before, after = (before or {}).get(name), (after or {}).get(name)
        if before != after:
            errors.append(invalid(".".join(("spec", *path)), after, "field is immutable"))
    known = [version.get("name") for version in (new.get("spec") or {}).get("versions") or ()]
    for index, name in enumerate((new.get("status") or {}).get("storedVersions") or ()):
        if name not in known:
            text = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            errors.append(invalid(f"status.storedVersions[{index}]", name, text))
    return errors


def _names(names: Object, path: str) -> Iterable[FieldError]:
    for field in ("plural", "singular", "kind", "listKind"):
        value = names.get(field) or ""
        if not value:
            yield required(f"{path}.{field}")
        elif problems := is_dns1035_label(value.lower()):
            yield invalid(f"{path}.{field}", value, ",".join(problems))
        elif field in ("plural", "singular") and value != value.lower():
            yield invalid(f"{path}.{field}", value, "must be all lowercase")
    for index, value in enumerate(names.get("shortNames") or ()):
        if problems := is_dns1035_label(value):
            yield invalid(f"{path}.shortNames[{index}]", value, ",".join(problems))
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield invalid(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same")


def _versions(versions: list[Object]) -> Iterable[FieldError]:
    path = "spec.versions"
    if not versions:
        yield required(path, "must have at least one version")
        return
    seen: set[str] = set()
    for index, version in enumerate(versions):
        here, name = f"{path}[{index}]", version.get("name", "")
        if name in seen:
            yield invalid(f"{here}.name", name, "must be unique")
        seen.add(name)
        if problems := is_dns1035_label(name):
            yield invalid(f"{here}.name", name, ",".join(problems))
    for at, schema in _hoisted(versions, "schema", "spec.validation"):
        if isinstance(schema, dict) and isinstance(schema.get("openAPIV3Schema"), dict):
            yield from _root(schema["openAPIV3Schema"], f"{at}.openAPIV3Schema")
        else:
            yield required(f"{at}.openAPIV3Schema", "schemas are required")
    for at, columns in _hoisted(versions, "additionalPrinterColumns", "spec.additionalPrinterColumns"):
        yield from _columns(columns or [], at)
    for at, subresources in _hoisted(versions, "subresources", "spec.subresources"):
        yield from _scale((subresources or {}).get("scale"), f"{at}.scale")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        text = "must have exactly one version marked as storage version"
        yield invalid(path, [version.get("name") for version in versions], text)


def _hoisted(versions: list[Object], field: str, common: str) -> list[tuple[str, Any]]:
    """What the versions have, with its path: `common`, once, where it is the same in all of them.

    (`conversion.go:Convert_v1_CustomResourceDefinitionSpec_To_apiextensions_CustomResourceDefinitionSpec`)
    """
    first = versions[0].get(field)
    if all(version.get(field) == first for version in versions):
        return [(common, first)]
    return [(f"spec.versions[{index}].{field}", version.get(field)) for index, version in enumerate(versions)]


def _columns(columns: list[Object], path: str) -> Iterable[FieldError]:
    types = ("integer", "number", "string", "boolean", "date")
    for index, column in enumerate(columns):
        here = f"{path}[{index}]"
        if not column.get("name"):
            yield required(f"{here}.name")
        if not column.get("type"):
            yield required(f"{here}.type", "must be one of boolean,date,integer,number,string")
        elif column["type"] not in types:
            yield invalid(f"{here}.type", column["type"], "must be one of boolean,date,integer,number,string")
        yield from _path(column.get("jsonPath") or "", f"{here}.jsonPath")


def _scale(scale: Object | None, path: str) -> Iterable[FieldError]:
    for field, start, needed in (
        ("specReplicasPath", ".spec.", True),
        ("statusReplicasPath", ".status.", True),
        ("labelSelectorPath", "", False),
    ):
        value = (scale or {}).get(field) or ""
        if scale is None or (not value and not needed):
            continue
        if not value:
            yield required(f"{path}.{field}")
        elif not value.startswith(start or (".spec.", ".status.")):
            under = start.rstrip(".") if start else ".spec or .status"
            yield invalid(f"{path}.{field}", value, f"should be a json path under {under}")
        else:
            yield from _path(value, f"{path}.{field}")


def _path(value: str, path: str) -> Iterable[FieldError]:
    if not value:
        yield required(path)
        return
    try:
        parse_path(value)
    except ValueError:
        yield invalid(path, value, "must be a simple json path starting with .")


def _root(schema: Object, path: str) -> Iterable[FieldError]:
    if schema.get("type") != "object":
        yield invalid(f"{path}.type", schema.get("type", ""), "must be object at the root")
    yield from _structural(schema, path)


def _structural(schema: Any, path: str) -> Iterable[FieldError]:
    """Every value has a type, and what is known of it stands outside of allOf, anyOf, oneOf and not."""
    if not isinstance(schema, dict):
        return
    kind = schema.get("type")
    free = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if not kind and not free:
        yield required(f"{path}.type", "must not be empty for specified object fields")
    elif kind and kind not in _TYPES:
        yield not_supported(f"{path}.type", kind, _TYPES)
    if kind and schema.get("x-kubernetes-int-or-string"):
        yield forbidden(f"{path}.type", "must be empty if x-kubernetes-int-or-string is true")
    if schema.get("$ref"):
        yield forbidden(f"{path}.$ref", "$ref is not supported")
    if schema.get("uniqueItems"):
        yield forbidden(
            f"{path}.uniqueItems", "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        )
    if kind == "array" and not isinstance(schema.get("items"), dict):
        yield required(f"{path}.items", "must be specified")
    if schema.get("properties") and isinstance(schema.get("additionalProperties"), dict):
        yield forbidden(f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive")
    for name, inner in (schema.get("properties") or {}).items():
        yield from _structural(inner, f"{path}.properties[{name}]")
    for name in ("items", "additionalProperties"):
        # What may be something else than a schema has not been looked at when the definition was decoded.
        inner = schema.get(name)
        if isinstance(inner, dict):
            if problem := _no_schema(inner):
                yield invalid(f"{path}.{name}", inner, problem)
            else:
                yield from _structural(inner, f"{path}.{name}")
    yield from _pattern(schema, path)


def _pattern(schema: Object, path: str) -> Iterable[FieldError]:
    """Those of allOf, anyOf, oneOf and not as well."""
    text = schema.get("pattern")
    if text and (error := pattern(text).error):
        yield invalid(f"{path}.pattern", text, f"must be a valid regular expression, but isn't: {error}")
    for name in ("allOf", "anyOf", "oneOf"):
        for index, inner in enumerate(schema.get(name) or ()):
            yield from _of_value(inner, f"{path}.{name}[{index}]")
    yield from _of_value(schema.get("not"), f"{path}.not")


def _of_value(schema: Any, path: str) -> Iterable[FieldError]:
    """The patterns of a schema that is not a structural one."""
    if not isinstance(schema, dict):
        return
    yield from _pattern(schema, path)
    for name, inner in (schema.get("properties") or {}).items():
        yield from _of_value(inner, f"{path}.properties[{name}]")
    for name in ("items", "additionalProperties"):
        yield from _of_value(schema.get(name), f"{path}.{name}")


def _no_schema(value: Object) -> str:
    field = struct("apiextensions.v1.CustomResourceValidation").fields["openAPIV3Schema"]
    try:
        check_value(field, value, [])
    except DecodeError as error:
        return str(error)
    return ""
