"""What kustomize would fetch for a kustomization: Git repositories and files of web servers. Pure.

Source: kustomize api/internal/git/repospec.go:NewRepoSpecFromURL and api/internal/loader/fileloader.go:Load, which
look for a URL before they look for a file; api/types/kustomization.go for the fields.
"""

# check: pure

import re
from collections.abc import Iterator
from typing import Any

KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
"""Files of a directory that say how to make manifests; kind and apiVersion may be left out of them."""
_TEXTS = frozenset(("annotations", "commonAnnotations", "commonLabels", "labels", "metadata"))
"""Fields below which no text is a path."""
_LEADS_ON = ("resources", "bases", "components", "generators", "transformers", "validators")
_PATHS = frozenset(
    (*_LEADS_ON, "crds", "configurations", "patchesStrategicMerge", "files", "envs", "env", "path", "paths", "repo")
)
"""Fields that are paths or lists of paths, in a kustomization and in the configuration of a built-in plugin."""
_REMOTE = re.compile(r"\s*(?:[^/\s]*:|[^/\s]*@[^/\s]*/|(?:www\.)?github\.com/)", re.IGNORECASE)
"""A scheme (https:, file:, git::, gh:) or host:path, user@host/path, or GitHub."""


def remote_sources(document: Any, field: str = "") -> Iterator[tuple[str, str]]:
    """Yield (field, value) of each path in a document of YAML that kustomize takes for a URL."""
    for key, value in document.items() if isinstance(document, dict) else ():
        if key in _TEXTS:
            continue
        at = f"{field}.{key}" if field else str(key)
        several = isinstance(value, list)
        for number, each in enumerate(value if several else [value]):
            place = f"{at}[{number}]" if several else at
            if not isinstance(each, str):
                yield from remote_sources(each, place)
            elif key in _PATHS and is_remote(each):
                yield place, each


def leads_on(document: Any) -> Iterator[str]:
    """Yield what may be another kustomization or a plugin's configuration: its path, or its text of several lines."""
    for key in _LEADS_ON if isinstance(document, dict) else ():
        value = document.get(key)
        yield from (each for each in (value if isinstance(value, list) else ()) if isinstance(each, str))


def is_builtin_plugin(document: Any) -> bool:
    """Return True for a plugin's configuration that kustomize obeys without `--enable-alpha-plugins`."""
    return isinstance(document, dict) and document.get("apiVersion") == "builtin"


def is_remote(path: str) -> bool:
    """Return True for what kustomize takes for a URL. In `KEY=FILE` of a generator FILE is the path."""
    return "\n" not in path and any(_REMOTE.match(each) is not None for each in (path, path.partition("=")[2]))
