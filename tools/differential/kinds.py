"""What the real server serves: every resource with its verbs, subresources and the schema of its objects."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from differential.servers import Server

DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@dataclass(frozen=True, slots=True)
class Kind:
    """A resource of one version. `subresources` is name → verbs."""

    group: str
    version: str
    resource: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...]
    subresources: dict[str, tuple[str, ...]] = field(default_factory=dict, hash=False)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"

    def about(self, subresource: str = "") -> str:
        return f"{self.api_version} {self.resource}{'/' if subresource else ''}{subresource}"

    def collection(self, namespace: str) -> str:
        """Return the path of the collection; of all namespaces with an empty `namespace`."""
        between = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{self.root}{between}/{self.resource}"

    def path(self, namespace: str, name: str, subresource: str = "") -> str:
        return f"{self.collection(namespace)}/{name}{'/' if subresource else ''}{subresource}"


def served(server: Server) -> Iterator[Kind]:
    """Yield all kinds, by aggregated discovery, in its order."""
    for root in ("/api", "/apis"):
        for group in server.get(root, DISCOVERY)["items"]:
            for version in group["versions"]:
                for each in version.get("resources", []):
                    yield Kind(
                        group["metadata"].get("name", ""),
                        version["version"],
                        each["resource"],
                        (each.get("responseKind") or {}).get("kind", ""),
                        each["scope"] == "Namespaced",
                        tuple(each["verbs"]),
                        {sub["subresource"]: tuple(sub["verbs"]) for sub in each.get("subresources", [])},
                    )


@dataclass(slots=True)
class Schemas:
    """The schemas of OpenAPI v3, by apiVersion and kind."""

    _components: dict[str, dict[str, Any]] = field(default_factory=dict)
    _by_kind: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    def load(self, server: Server) -> None:
        for path in server.get("/openapi/v3")["paths"].values():
            document = server.get(path["serverRelativeURL"].split("?")[0])
            components = (document.get("components") or {}).get("schemas") or {}
            self._components.update(components)
            for schema in components.values():
                for each in schema.get("x-kubernetes-group-version-kind") or []:
                    version = f"{each['group']}/{each['version']}" if each["group"] else each["version"]
                    self._by_kind[version, each["kind"]] = schema

    def of(self, kind: Kind) -> dict[str, Any]:
        """Return the schema of a kind, an empty one for kinds without objects of their own."""
        return self._by_kind.get((kind.api_version, kind.kind), {})

    def resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return `schema` with its reference followed, where it is one."""
        for each in [schema, *schema.get("allOf", [])]:
            if "$ref" in each:
                return self._components[each["$ref"].rsplit("/", 1)[1]]
        return schema
