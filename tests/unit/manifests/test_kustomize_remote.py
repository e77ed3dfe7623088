"""What kustomize would fetch is refused before kustomize runs."""

from pathlib import Path

import pytest

from lastcall.errors import UserError
from lastcall.manifests.kustomize import kustomized, refuse_remote
from lastcall.manifests.kustomize_remote import is_remote, remote_sources

REMOTE = [
    "https://example.com/base.yaml",
    "HTTPS://example.com/base.yaml",
    "http://169.254.169.254/latest/meta-data",
    "github.com/owner/repo?ref=v1",
    "GitHub.com/owner/repo//base",
    "gh:owner/repo",
    "git@example.com:owner/repo.git",
    "git@example.com/owner/repo",
    "git::https://example.com/repo.git",
    "git::ext::sh -c 'touch pwned'",
    "ssh://git@example.com/repo",
    "file:///etc",
    "oci://example.com/repo:1",
    "name.txt=http://example.com/a",
    " https://example.com",
]
LOCAL = ["base", "../base", "./a:b.yaml", "/abs/base", "icon@2x.png", "key=a@b.txt", "a b.yaml", "deep/a:b", ""]


@pytest.mark.parametrize("path", REMOTE)
def test_a_url_is_remote(path: str) -> None:
    assert is_remote(path)


@pytest.mark.parametrize("path", LOCAL)
def test_a_path_is_not_remote(path: str) -> None:
    assert not is_remote(path)


URL = "http://127.0.0.1:1/x"
FIELDS = [
    (f"resources: [a.yaml, '{URL}']", "resources[1]"),
    (f"bases: ['{URL}']", "bases[0]"),
    (f"components: ['{URL}']", "components[0]"),
    (f"crds: ['{URL}']", "crds[0]"),
    (f"configurations: ['{URL}']", "configurations[0]"),
    (f"generators: ['{URL}']", "generators[0]"),
    (f"transformers: ['{URL}']", "transformers[0]"),
    (f"validators: ['{URL}']", "validators[0]"),
    (f"openapi: {{path: '{URL}'}}", "openapi.path"),
    (f"replacements: [{{path: '{URL}'}}]", "replacements[0].path"),
    (f"patches: [{{path: '{URL}'}}]", "patches[0].path"),
    (f"patchesStrategicMerge: ['{URL}']", "patchesStrategicMerge[0]"),
    (f"patchesJson6902: [{{path: '{URL}'}}]", "patchesJson6902[0].path"),
    (f"configMapGenerator: [{{files: ['a={URL}']}}]", "configMapGenerator[0].files[0]"),
    (f"secretGenerator: [{{envs: ['{URL}']}}]", "secretGenerator[0].envs[0]"),
    (f"helmCharts: [{{repo: '{URL}'}}]", "helmCharts[0].repo"),
]


@pytest.mark.parametrize(("text", "field"), FIELDS, ids=[field for _, field in FIELDS])
@pytest.mark.parametrize("name", ["kustomization.yaml", "kustomization.yml", "Kustomization"])
def test_a_remote_path_is_refused_in_every_field(tmp_path: Path, text: str, field: str, name: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError) as caught:
        refuse_remote(str(tmp_path))
    assert f"{name}: {field}: " in str(caught.value) and URL in str(caught.value)
    assert f"kubectl kustomize {tmp_path} |" in str(caught.value)


def test_what_only_looks_like_a_url_is_read() -> None:
    document = {
        "resources": ["base"],
        "commonAnnotations": {"path": URL},
        "labels": [{"pairs": {"path": URL}}],
        "images": [{"name": "a", "newName": "registry.example:5000/a"}],
        "configMapGenerator": [{"literals": [f"url={URL}"], "options": {"annotations": {"path": URL}}}],
        "patches": [{"patch": f"- op: add\n  path: /a\n  value: {URL}\n"}],
        "patchesStrategicMerge": [f"kind: Pod\nmetadata: {{name: '{URL}'}}\n"],
    }
    assert list(remote_sources(document)) == []


def test_bases_and_configurations_of_plugins_are_looked_at_too(tmp_path: Path) -> None:
    for name in ("base", "overlay"):
        (tmp_path / name).mkdir()
    (tmp_path / "overlay" / "kustomization.yaml").write_text("resources: [../base]\n")
    base, plugin = tmp_path / "base" / "kustomization.yaml", tmp_path / "base" / "plugin.yaml"
    base.write_text("resources: [../overlay]\n")
    refuse_remote(str(tmp_path / "overlay"))  # a loop, which kustomize refuses
    base.write_text(f"resources: ['{URL}']\n")
    with pytest.raises(UserError, match=r"base/kustomization.yaml: resources\[0\]"):
        refuse_remote(str(tmp_path / "overlay"))
    config = f"apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {{name: a}}\nfiles: ['{URL}']\n"
    plugin.write_text(config)
    base.write_text("generators: [plugin.yaml]\n")
    with pytest.raises(UserError, match=r"base/plugin.yaml: files\[0\]"):
        refuse_remote(str(tmp_path / "overlay"))
    base.write_text("generators:\n- |\n" + "".join(f"  {line}\n" for line in config.splitlines()))
    with pytest.raises(UserError, match=r"base/kustomization.yaml: files\[0\]"):
        refuse_remote(str(tmp_path / "overlay"))
    plugin.write_text(f"apiVersion: v1\nkind: Thing\nspec: {{path: '{URL}'}}\n")
    base.write_text("resources: [plugin.yaml]\n")
    refuse_remote(str(tmp_path / "overlay"))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (f"resources: ['{URL}']".encode("utf-16"), "not UTF-8 text"),
        (f"resources: ['{URL}']\nnot: [yaml\n".encode(), "not readable as YAML"),
    ],
    ids=["UTF-16", "no YAML"],
)
def test_what_cannot_be_looked_at_is_refused(tmp_path: Path, data: bytes, why: str) -> None:
    (tmp_path / "kustomization.yaml").write_bytes(data)
    with pytest.raises(UserError, match=f"kustomization.yaml:.*{why}"):
        refuse_remote(str(tmp_path))


@pytest.mark.parametrize(
    "name", ["a\\0b", "x" * 5000, "loop", "missing", ""], ids=["NUL", "long", "loop", "missing", "empty"]
)
def test_a_path_that_leads_nowhere_is_left_to_kustomize(tmp_path: Path, name: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "kustomization.yaml").write_text(f'resources: ["{name}"]')
    refuse_remote(str(tmp_path))


@pytest.mark.loopback
def test_kustomize_itself_is_kept_from_the_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "kubectl"
    program.write_text('#!/bin/sh\necho "$HTTP_PROXY $https_proxy [$NO_PROXY$no_proxy] $GIT_ALLOW_PROTOCOL"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("no_proxy", "*")
    assert kustomized(str(tmp_path)) == "http://127.0.0.1:1 http://127.0.0.1:1 [] none\n"
