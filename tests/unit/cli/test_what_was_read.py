"""`pod.yaml: 1 Pod, web`: the first line of a command says what it read, before anything starts."""

import pytest

from lastcall.manifests import manifests_of, summary


def manifest(kind: str, name: str, version: str = "v1") -> str:
    spec = {"NetworkPolicy": "{podSelector: {}}", "Pod": "{containers: [{name: c, image: busybox}]}"}.get(kind)
    return f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: {name}}}\n" + (f"spec: {spec}\n" if spec else "")


@pytest.mark.parametrize(
    ("files", "line"),
    [
        ({"pod.yaml": [manifest("Pod", "web")]}, "pod.yaml: 1 Pod, web"),
        (
            {"a.yaml": [manifest("Pod", "a")], "b.yaml": [manifest("ConfigMap", "settings"), manifest("Pod", "b")]},
            "a.yaml, b.yaml: 1 ConfigMap, settings; 2 Pods, a, b",
        ),
        (
            {f"{letter}.yaml": [manifest("Pod", letter)] for letter in "abcd"},
            "4 files: 4 Pods",
        ),
        (
            {
                "np.yaml": [manifest("NetworkPolicy", name, "networking.k8s.io/v1") for name in ("deny", "allow")]
                + [manifest("Pod", "web")]
            },
            "np.yaml: 2 NetworkPolicies, deny, allow; 1 Pod, web",
        ),
    ],
)
def test_the_first_line_names_files_kinds_and_objects(files: dict[str, list[str]], line: str) -> None:
    read = [(name, "---\n".join(documents)) for name, documents in files.items()]
    assert summary(manifests_of(read)) == line
