"""The guides: documents of the repository, with their places in the site, and links that lead there. Pure."""

import posixpath
import re
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
REPOSITORY = "https://github.com/lastcall-k8s/lastcall"

ELSEWHERE = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture/index.md",
    "CONTRIBUTING.md": "contributing/index.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "STYLE.md": "style.md",
    "bench/README.md": "bench.md",
}
"""Documents outside of docs/, and their places."""

TUTORIAL = ("index", "install", "run", "rollout")
"""Pages to read first, one after the other. The tour, the lesson and stories come after them."""
HOW_TO = {
    "Manifests and clusters": ("lint", "clusters", "ui", "without-docker"),
    "Symptoms": ("pains",),
    "Tests": ("python", "operators", "ci"),
    "Coming from": ("from-kind", "from-k3d", "from-minikube", "from-envtest"),
    "Existing clusters": ("any-cluster", "audit", "node-agent", "monitoring", "engines"),
}
REFERENCE = {
    "Formats": ("ending-v1", "rollout-v1"),
    "Options and metrics": ("config", "metrics"),
    "Words": ("glossary",),
}
"""What is written by hand; the rest is made of the code."""
EXPLANATION = {
    "As Kubernetes does it": ("fidelity", "conformance", "comparison"),
    "What it finds, and where it runs": ("diagnosis", "machines", "performance", "bench"),
}
PROJECT = ("changelog", "security", "style", "dependencies", "testing")

_LINK = re.compile(r"(?<=\]\()([^)\s#]*)(#[^)\s]*)?(?=\))")
_FENCE = re.compile(r"^ *(```|~~~)")


def documents() -> dict[str, str]:
    """Map each path in the repository to its place in the site."""
    found = {path: place for path, place in ELSEWHERE.items() if (ROOT / path).exists()}
    for path in sorted((ROOT / "docs").rglob("*.md")):
        name = path.relative_to(ROOT).as_posix()
        found[name] = name.removeprefix("docs/")
    return found


def files() -> dict[str, str]:
    """Return what lies beside them: pictures and schemas."""
    names = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").rglob("*")) if path.is_file()]
    return {name: name.removeprefix("docs/") for name in names if not name.endswith(".md")}


def taken_over(text: str, path: str, places: Mapping[str, str]) -> str:
    """Return `text` of the document `path`, with links to where things are in the site.

    What is not there is in the repository.
    """
    place = places[path]

    def target(link: re.Match[str]) -> str:
        address, anchor = link.group(1), link.group(2) or ""
        if not address or address.startswith(("http://", "https://", "mailto:")):
            return link.group(0)
        wanted = posixpath.normpath(posixpath.join(posixpath.dirname(path), address))
        if wanted in places:
            return posixpath.relpath(places[wanted], posixpath.dirname(place) or ".") + anchor
        kind = "tree" if (ROOT / wanted).is_dir() else "blob"
        return f"{REPOSITORY}/{kind}/main/{wanted}{anchor}"

    return outside_of_code(text, lambda line: _LINK.sub(target, line))


def outside_of_code(text: str, change: Callable[[str], str]) -> str:
    """Change every line that is not within a fence."""
    lines, fence = [], False
    for line in text.split("\n"):
        if _FENCE.match(line):
            fence = not fence
        lines.append(line if fence or _FENCE.match(line) else change(line))
    return "\n".join(lines)


def missing_guides(places: Mapping[str, str]) -> list[str]:
    """Return documents that are in none of the lists above: nobody would find them."""
    lists = (TUTORIAL, PROJECT, *HOW_TO.values(), *REFERENCE.values(), *EXPLANATION.values())
    listed = {f"{name}.md" for names in lists for name in names}
    inside = ("architecture/", "contributing/")
    return [place for place in places.values() if not place.startswith(inside) and place not in listed]
