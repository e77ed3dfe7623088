"""Resources of another server as aggregated discovery shows them, of what that server says. Pure; nothing is trusted.

Source: apiserver pkg/endpoints/installer.go:ConvertGroupVersionIntoToDiscovery.
"""

from typing import Any

from lastcall.kube.api.meta import Object


def aggregated_entries(document: Any, group: str, version: str) -> tuple[Object, ...] | None:
    """Return the entries of an APIGroupDiscoveryList; None when it says nothing of the group version."""
    for item in _listed(document, "items"):
        if _text(item.get("metadata"), "name") != group:
            continue
        for each in _listed(item, "versions"):
            if each.get("version") == version:
                return tuple(_listed(each, "resources"))
    return None


def entries_of_list(document: Any) -> tuple[Object, ...] | None:
    """Return the entries of an APIResourceList; None for something else."""
    if not isinstance(document, dict) or document.get("kind") != "APIResourceList":
        return None
    entries: dict[str, Object] = {}
    below: list[tuple[str, str, Object]] = []
    for each in _listed(document, "resources"):
        name, slash, subresource = _text(each, "name").partition("/")
        if slash:
            below.append((name, subresource, each))
            continue
        entry: Object = {
            "resource": name,
            "responseKind": _kind(each),
            "scope": "Namespaced" if each.get("namespaced") else "Cluster",
            "singularResource": _text(each, "singularName"),
            "verbs": _texts(each, "verbs"),
        }
        for key in ("shortNames", "categories"):
            if texts := _texts(each, key):
                entry[key] = texts
        entries[name] = entry
    for name, subresource, each in below:
        parent = entries.setdefault(
            name,
            {"resource": name, "scope": "Namespaced" if each.get("namespaced") else "Cluster", "verbs": []},
        )
        shown = {"subresource": subresource, "responseKind": _kind(each), "verbs": _texts(each, "verbs")}
        parent.setdefault("subresources", []).append(shown)
    return tuple(entries.values())


def _kind(each: Object) -> Object:
    return {"group": _text(each, "group"), "version": _text(each, "version"), "kind": _text(each, "kind")}


def _listed(parent: Any, key: str) -> list[Object]:
    found = parent.get(key) if isinstance(parent, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _text(parent: Any, key: str) -> str:
    found = parent.get(key) if isinstance(parent, dict) else None
    return found if isinstance(found, str) else ""


def _texts(parent: Object, key: str) -> list[str]:
    found = parent.get(key)
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
