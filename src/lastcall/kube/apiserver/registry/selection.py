"""Label and field selectors of one request, as a predicate on stored objects."""

from lastcall.kube.api.meta import Object, labels_of
from lastcall.kube.api.resources import Resource
from lastcall.kube.api.selectors import FieldSelector, LabelSelector, parse_field_selector, parse_label_selector
from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Selection:
    """`name` is set when the field selector asks for exactly one name: then nothing else needs to be decoded."""

    labels: LabelSelector | None = None
    fields: FieldSelector | None = None
    name: str = ""
    only_name: bool = False

    @property
    def everything(self) -> bool:
        return self.labels is None and self.fields is None

    def matches(self, obj: Object) -> bool:
        if self.fields is not None and not self.fields.matches(obj):
            return False
        return self.labels is None or self.labels.matches(labels_of(obj))


ALL = Selection()


def parse_selection(resource: Resource, label_selector: str, field_selector: str) -> Selection:
    """Parse selectors. Raises the 400 StatusError of one that cannot be read or names an unknown field."""
    if not label_selector and not field_selector:
        return ALL
    labels = parse_label_selector(label_selector) if label_selector else None
    fields = parse_field_selector(resource, field_selector) if field_selector else None
    if fields is None:
        return Selection(labels)
    name = fields.exact("metadata.name") or ""
    return Selection(labels, fields, name, bool(name) and labels is None and len(fields.terms) == 1)
