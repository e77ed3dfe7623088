"""What `deployment/web` names."""

import pytest

from lastcall.errors import LastcallError
from lastcall.kube.api.resources import DEPLOYMENTS, NODES, PODS, SERVED, SERVICES, Resource
from lastcall.manifests.applying.references import find, with_namespace


@pytest.mark.parametrize(
    ("reference", "resource", "namespace", "name"),
    [
        ("web", PODS, "here", "web"),
        ("pod/web", PODS, "here", "web"),
        ("po/web", PODS, "here", "web"),
        ("Deployment/web", DEPLOYMENTS, "here", "web"),
        ("deploy/web", DEPLOYMENTS, "here", "web"),
        ("deployments.apps/web", DEPLOYMENTS, "here", "web"),
        ("deployments.v1.apps/web", DEPLOYMENTS, "here", "web"),
        ("svc/web", SERVICES, "here", "web"),
        ("node/node-1", NODES, "", "node-1"),
        ({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}, DEPLOYMENTS, "here", "web"),
        (
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "there"}},
            PODS,
            "there",
            "web",
        ),
    ],
)
def test_a_reference_names_kinds_as_kubectl_does(
    reference: object, resource: Resource, namespace: str, name: str
) -> None:
    named = find(reference, "here", SERVED)  # type: ignore[arg-type]
    assert (named.resource, named.namespace, named.name) == (resource, namespace, name)


@pytest.mark.parametrize(
    ("reference", "text"),
    [
        ("deploymnet/web", "unknown kind 'deploymnet': did you mean deployment?"),
        ("pod/", "has no name"),
        ({"kind": "Pod"}, "needs apiVersion, kind and metadata.name"),
        ({"apiVersion": "v9", "kind": "Pod", "metadata": {"name": "web"}}, "serves no kind Pod in v9"),
    ],
)
def test_what_names_nothing_is_refused_with_what_was_meant(reference: object, text: str) -> None:
    with pytest.raises(LastcallError, match=text):
        find(reference, "here", SERVED)  # type: ignore[arg-type]


def test_an_unknown_kind_is_refused_with_the_kinds_that_are_declared() -> None:
    boats = Resource("example.com", "v1", "boats", "Boat", namespaced=True, short_names=("bt",))
    assert find("bt/one", "here", (*SERVED, boats)).resource == boats
    with pytest.raises(LastcallError, match=r"unknown kind 'zz': the cluster also serves boats\.example\.com$"):
        find("zz/one", "here", (*SERVED, boats))


def test_an_objects_own_namespace_wins() -> None:
    own = {"metadata": {"name": "web", "namespace": "there"}}
    assert with_namespace(own, PODS, "here") is own
    assert with_namespace({"metadata": {"name": "web"}}, PODS, "here")["metadata"]["namespace"] == "here"
    assert "namespace" not in with_namespace({"metadata": {"name": "one"}}, NODES, "here")["metadata"]
