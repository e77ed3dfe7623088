"""Make kube/apiserver/auth/bootstrap_policy.json from a cluster's own default roles.

`KUBECONFIG=… python tools/make_policy.py`. kubectl asks a new cluster of the version that lastcall serves, with nothing
installed: what others add to the aggregated roles (`admin`, `edit`, `view`) would be taken for its own.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

OUT = Path(__file__).parents[1] / "src" / "lastcall" / "kube" / "apiserver" / "auth" / "bootstrap_policy.json"
KINDS = {
    "clusterroles": "ClusterRole",
    "clusterrolebindings": "ClusterRoleBinding",
    "roles": "Role",
    "rolebindings": "RoleBinding",
}
LABEL = "kubernetes.io/bootstrapping=rbac-defaults"


def asked(plural: str) -> list[dict[str, Any]]:
    """Return the default objects of a kind."""
    argv = ["kubectl", "get", plural, "--all-namespaces", "-l", LABEL, "-o", "json"]
    done = subprocess.run(argv, check=True, capture_output=True)  # noqa: S603 - fixed words
    found: list[dict[str, Any]] = json.loads(done.stdout)["items"]
    return found


def entry(kind: str, obj: dict[str, Any]) -> dict[str, Any]:
    """Return what is its own: kind, name, namespace, rules or subjects.

    A binding's role has the binding's kind and, but for `system::…`, its name.
    """
    meta = obj["metadata"]
    into = sorted(label.rpartition("aggregate-to-")[2] for label in meta["labels"] if "/aggregate-to-" in label)
    one: dict[str, Any] = {"kind": kind, "name": meta["name"]}
    one |= {"namespace": meta["namespace"]} if "namespace" in meta else {}
    one |= {"aggregateTo": into} if into else {}
    if "aggregationRule" in obj:  # its rules are those of the others
        (selector,) = obj["aggregationRule"]["clusterRoleSelectors"]
        (label,) = selector["matchLabels"]
        return one | {"aggregates": label.rpartition("aggregate-to-")[2]}
    if kind.endswith("Binding"):
        one |= {} if obj["roleRef"]["name"] == meta["name"] else {"role": obj["roleRef"]["name"]}
        return one | {"subjects": obj.get("subjects") or []}
    return one | {"rules": obj["rules"]}


def written(entries: list[dict[str, Any]]) -> str:
    """Return JSON, a rule or subject on a line."""
    lines = []
    for each in entries:
        name, parts = next(((key, each[key]) for key in ("rules", "subjects") if key in each), ("", []))
        text = json.dumps({key: value for key, value in each.items() if key != name})
        if name:
            inner = "".join(f"\n  {json.dumps(part)}," for part in parts).removesuffix(",")
            text = f'{text[:-1]}, "{name}": [{inner}]' + "}"
        lines.append(text)
    return "[\n" + ",\n".join(lines) + "\n]\n"


if __name__ == "__main__":
    OUT.write_text(written([entry(kind, each) for plural, kind in KINDS.items() for each in asked(plural)]))
