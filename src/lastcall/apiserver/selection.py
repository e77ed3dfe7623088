"""Label and field selectors of one request, as a predicate on objects."""

from dataclasses import dataclass
from typing import Any

from lastcall.api.errors import bad_request
from lastcall.api.meta import Object, labels_of, name_of, namespace_of
from lastcall.api.selectors import parse_field_selector, parse_label_selector
from lastcall.apiserver.strategies.base import FieldLabels

BUILT_IN: FieldLabels = {"metadata.name": name_of, "metadata.namespace": namespace_of}


@dataclass(frozen=True, slots=True)
class Selection:
    """`name` is set when the field selector asks for exactly one name, which needs no decoding at all."""

    labels: Any
    fields: tuple[tuple[str, bool, str], ...]
    getters: FieldLabels
    name: str = ""

    @property
    def everything(self) -> bool:
        return self.labels is None and not self.fields and not self.name

    @property
    def only_name(self) -> bool:
        return bool(self.name) and self.labels is None and not self.fields

    def matches(self, obj: Object) -> bool:
        if self.name and name_of(obj) != self.name:
            return False
        for label, wanted, value in self.fields:
            if (self.getters[label](obj) == value) is not wanted:
                return False
        return self.labels is None or bool(self.labels.matches(labels_of(obj)))


ALL = Selection(None, (), BUILT_IN)


def parse_selection(label_selector: str, field_selector: str, field_labels: FieldLabels) -> Selection:
    """Raises the 400 StatusError of a selector that cannot be read or names an unknown field."""
    if not label_selector and not field_selector:
        return ALL
    labels = parse_label_selector(label_selector) if label_selector else None
    getters = {**field_labels, **BUILT_IN}
    fields: list[tuple[str, bool, str]] = []
    name = ""
    for requirement in parse_field_selector(field_selector) if field_selector else ():
        label, operator, value = requirement
        if label not in getters:
            if field_labels:
                raise bad_request(f"field label not supported: {label}")
            known = '"metadata.name", "metadata.namespace"'
            raise bad_request(f'"{label}" is not a known field selector: only {known}')
        if label == "metadata.name" and operator != "!=" and not name:
            name = value
        else:
            fields.append((label, operator != "!=", value))
    return Selection(labels, tuple(fields), getters, name)
