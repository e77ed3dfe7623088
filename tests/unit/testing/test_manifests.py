"""Manifests for `apply`: paths, YAML text and objects."""

from pathlib import Path

import pytest

from lastcall.errors import InvalidManifest
from lastcall.manifests.applying.manifests import read
from lastcall.testing.rollout import arguments

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}}
TEXT = """
apiVersion: v1
kind: List
items:
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}
- {apiVersion: v1, kind: Service, metadata: {name: web}}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
"""


def kinds(*sources: object) -> list[str]:
    return [obj["kind"] for obj in read(sources)]  # type: ignore[arg-type]


def test_objects_come_in_the_order_in_which_they_need_each_other(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(TEXT)
    wanted = ["Namespace", "Service", "Deployment", "Pod"]
    assert kinds(POD, TEXT) == wanted
    assert kinds([POD], str(file)) == wanted
    assert kinds(POD, tmp_path) == wanted


def test_an_object_that_was_given_is_not_changed() -> None:
    (found,) = read([POD])
    found["metadata"]["name"] = "other"
    assert POD["metadata"] == {"name": "web"}


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("no/such/file.yaml", "No such file"),
        ("a: [\n", "<text>:"),
        ("just\nwords\n", "expected an object with apiVersion and kind"),
        ({"kind": "Pod", "metadata": {"name": "web"}}, "apiVersion is missing"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {}}, "metadata.name is missing in Pod"),
    ],
)
def test_what_cannot_be_read_says_why(source: object, text: str) -> None:
    with pytest.raises(InvalidManifest, match=text):
        read([source])  # type: ignore[list-item]


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(InvalidManifest) as refused:
        read([{"kind": "Pod"}, {"apiVersion": "v1"}])
    assert len(str(refused.value).splitlines()) == 2


def test_keywords_become_options_of_the_command() -> None:
    options = {"find_safe": True, "apply_advice": False, "from_": "pod", "runs": 3, "max_p99": None}
    assert arguments(options) == ["--find-safe", "--from", "pod", "--runs", "3"]
