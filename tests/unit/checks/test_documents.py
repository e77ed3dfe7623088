"""Paths and links of documents that lead nowhere are found."""

from checks.documents import links, paths


def test_a_path_that_does_not_exist_is_found(find) -> None:
    page = "`kube/node/kubelet.py:main` in `kube/node/`\n"
    page += "`kubelet.py`, `let.py`, `gone/`\n`support/x.py` `durable/` `contributing/`"
    files = {
        "kube/node/kubelet.py": "",
        "/tests/support/x.py": "",
        "/ARCHITECTURE.md": page,
        "/docs/architecture/a.md": "`node/gone.py`\n",
        "/docs/contributing/b.md": "",
        "/docs/guide.md": "`node/gone.py`\n",
    }
    assert find(paths, files) == ["ARCHITECTURE.md:2", "ARCHITECTURE.md:2", "docs/architecture/a.md:1"]


def test_a_link_that_leads_nowhere_is_found(find) -> None:
    page = "[a](docs/a.md#part) [b](docs/b.md)\n[c](https://example.com) [d](#here)\n"
    assert find(links, {"/README.md": page, "/docs/a.md": "[up](../README.md) [b](b.md)\n"}) == [
        "README.md:1",
        "docs/a.md:1",
    ]
