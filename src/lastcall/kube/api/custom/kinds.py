"""Kinds that a CustomResourceDefinition declares. Pure.

Source: apiextensions-apiserver pkg/apiserver/customresource_handler.go.
"""

# check: pure

from dataclasses import field
from typing import Protocol

from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import Resource
from lastcall.world.dataclass import dataclass

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""Finalizer of a definition whose objects have to go first."""


class Converter(Protocol):
    """Makes objects of other versions, of one definition whose versions differ in more than their name."""

    def converted(self, obj: Object, api_version: str) -> Object:
        """Return `obj` in another version. Raises an exception of its own when a webhook has to answer first."""


@dataclass(frozen=True, slots=True, eq=False)
class CustomResource(Resource):
    """One version of a declared kind. Two are the same only if they are the same object: a definition may change.

    `stored` is the version in which objects are stored, None when it is this one. With conversion None versions differ
    in nothing but apiVersion.
    """

    schema: Object = field(default_factory=dict)
    """The version's openAPIV3Schema."""
    columns: tuple[Object, ...] = ()
    """additionalPrinterColumns."""
    scale: Object | None = None
    """specReplicasPath, statusReplicasPath, labelSelectorPath."""
    selectable: tuple[str, ...] = ()
    """JSON paths that field selectors may ask for."""
    warning: str = ""
    """The warning for a request for a deprecated version."""
    stored: "CustomResource | None" = None
    has_defaults: bool = False
    """Whether objects that were stored before may lack a default."""
    list_kind: str = ""
    """The kind of its lists."""
    converter: "Converter | None" = None
    """None where only apiVersion differs from that of another version."""

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return Resource.__hash__(self)


def is_established(definition: Object) -> bool:
    return any(
        each.get("type") == "Established" and each.get("status") == "True"
        for each in (definition.get("status") or {}).get("conditions") or ()
    )


def has_rules(schema: object) -> bool:
    """Return whether a schema has x-kubernetes-validations somewhere."""
    if isinstance(schema, dict):
        return "x-kubernetes-validations" in schema or any(map(has_rules, schema.values()))
    return isinstance(schema, list) and any(map(has_rules, schema))


def served_resources(definition: Object) -> list[Resource]:
    """Return its served versions as plain resources, the stored one first: enough for callers that only ask the API."""
    spec = definition["spec"]
    names = spec["names"]
    versions = sorted((each for each in spec["versions"] if each.get("served")), key=lambda each: not each["storage"])
    return [
        Resource(spec["group"], each["name"], names["plural"], names["kind"], spec["scope"] == "Namespaced")
        for each in versions
    ]


def has_conversion_webhook(definition: Object) -> bool:
    return (definition["spec"].get("conversion") or {}).get("strategy") == "Webhook"


def custom_resources(definition: Object, converter: Converter | None = None) -> list[CustomResource]:
    """Return what a definition declares: the stored version first, then those that are served."""
    spec = definition["spec"]
    names = (definition.get("status") or {}).get("acceptedNames") or spec["names"]
    versions = sorted(spec["versions"], key=lambda each: not each["storage"])
    stored: CustomResource | None = None
    found = []
    for version in versions:
        subresources = version.get("subresources") or {}
        made = CustomResource(
            spec["group"],
            version["name"],
            names["plural"],
            names["kind"],
            spec["scope"] == "Namespaced",
            names.get("singular") or names["kind"].lower(),
            tuple(names.get("shortNames") or ()),
            tuple(names.get("categories") or ()),
            tuple(each for each in ("scale", "status") if subresources.get(each) is not None),
            (version.get("schema") or {}).get("openAPIV3Schema") or {},
            tuple(version.get("additionalPrinterColumns") or ()),
            subresources.get("scale"),
            tuple(each["jsonPath"] for each in version.get("selectableFields") or ()),
            _warning(definition, version),
            stored,
            _has_defaults(version.get("schema")),
            names.get("listKind") or f"{names['kind']}List",
            converter,
        )
        stored = stored or made
        found.append(made)
    return found


def _warning(definition: Object, version: Object) -> str:
    if not version.get("deprecated"):
        return ""
    spec = definition["spec"]
    return (
        version.get("deprecationWarning") or f"{spec['group']}/{version['name']} {spec['names']['kind']} is deprecated"
    )


def versions_stored_first(definition: Object) -> list[str]:
    """Return what a new definition's `status.storedVersions` says.
    (customresourcedefinition/strategy.go:PrepareForCreate)"""
    versions = (definition.get("spec") or {}).get("versions") or ()
    return [each.get("name") or "" for each in versions if each.get("storage")][:1]


def _has_defaults(schema: object) -> bool:
    """Whether a schema has a default somewhere."""
    if isinstance(schema, dict):
        return schema.get("default") is not None or any(map(_has_defaults, schema.values()))
    return isinstance(schema, list) and any(map(_has_defaults, schema))
