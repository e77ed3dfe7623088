"""The kinds that CustomResourceDefinitions declare, as they are served now, and kinds by other names."""

from lastcall.kube.api.custom.kinds import CustomResource
from lastcall.kube.api.resources import SERVED, Resource
from lastcall.kube.apiserver.conversions.table import CONVERSIONS, stored_resource


class DeclaredKinds:
    """`Definitions` adds and removes them; everybody else looks."""

    def __init__(self) -> None:
        self._served: dict[tuple[str, str, str], CustomResource] = {}

    def add(self, kind: CustomResource) -> None:
        self._served[kind.group, kind.version, kind.plural] = kind

    def remove(self, kind: CustomResource) -> None:
        self._served.pop((kind.group, kind.version, kind.plural), None)

    def served(self) -> list[CustomResource]:
        return list(self._served.values())

    def resource(self, group: str, version: str, plural: str) -> CustomResource | None:
        return self._served.get((group, version, plural))

    def group_versions(self) -> set[tuple[str, str]]:
        """Return what has at least one kind."""
        return {(group, version) for group, version, _ in self._served}

    def kind_for(self, group: str, version: str, kind: str) -> Resource | None:
        """Return the kind of that name, Kubernetes's own included, if it is served."""
        every = (*SERVED, *CONVERSIONS, *self._served.values())
        return next((each for each in every if (each.group, each.version, each.kind) == (group, version, kind)), None)

    def equivalents(self, resource: Resource) -> list[Resource]:
        """Return other kinds by which the same objects may be named."""
        stored = stored_resource(resource)
        every = self._served.values() if isinstance(resource, CustomResource) else (stored, *CONVERSIONS)
        return [each for each in every if each != resource and stored_resource(each) == stored]
