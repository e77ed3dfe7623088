"""`kubernetes_build_info`."""

from collections.abc import Iterator


def build_families(version: str) -> Iterator[tuple[str, list[tuple[dict[str, str], float]]]]:
    """Yield the build info; `version` is like `1.36.2`. What was not built by Go has no Go version."""
    major, minor, _ = version.split(".", 2)
    labels = {
        "build_date": "1970-01-01T00:00:00Z",
        "compiler": "",
        "git_commit": "",
        "git_tree_state": "",
        "git_version": f"v{version}",
        "go_version": "",
        "major": major,
        "minor": minor,
        "platform": "linux/amd64",
    }
    yield "kubernetes_build_info", [(labels, 1)]
