"""Rows of declared kinds: additionalPrinterColumns.

Source: apiextensions-apiserver pkg/registry/customresource/tableconvertor/tableconvertor.go.
"""

from datetime import datetime
from typing import Any

from lastcall.kube.api.custom.json_path import values_at
from lastcall.kube.api.custom.kinds import CustomResource
from lastcall.kube.api.field import go_json
from lastcall.kube.api.meta import Object, name_of
from lastcall.kube.api.table.text import since

_AGE: Object = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def custom_columns(resource: CustomResource) -> list[Object]:
    """Return `columnDefinitions`."""
    name: Object = {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}
    return [
        name,
        *(
            {
                "name": each["name"],
                "type": each["type"],
                "format": each.get("format", ""),
                "description": each.get("description", ""),
                "priority": each.get("priority", 0),
            }
            for each in resource.columns or (_AGE,)
        ),
    ]


def custom_row(resource: CustomResource, obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), *(_cell(each, obj, now) for each in resource.columns or (_AGE,))]


def _cell(column: Object, obj: Object, now: datetime) -> Any:
    """None where there is nothing, or something of another type."""
    found = values_at(obj, column["jsonPath"])
    value = found[0] if found else None
    kind = column["type"]
    if value is None:
        return None
    if kind == "date":
        try:
            return since(value, now) if isinstance(value, str) else None
        except ValueError:
            return "<invalid>"
    if kind == "string":
        return value if isinstance(value, str) else _text(found)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind in ("integer", "number"):
        return (int(value) if kind == "integer" else value) if number else None
    return value if isinstance(value, bool) else None


def _text(found: list[Any]) -> str:
    """As Go's jsonpath prints values: several with commas between them."""
    return ",".join(each if isinstance(each, str) else go_json(each) for each in found)
