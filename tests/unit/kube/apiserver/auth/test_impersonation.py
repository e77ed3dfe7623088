"""Who may act as whom. What is expected was answered by a Kubernetes 1.36.2 to the same requests."""

import asyncio

import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.apiserver.auth.authentication import UserInfo, forbidden_request
from lastcall.kube.apiserver.auth.impersonation import Impersonation, Impersonator
from lastcall.kube.apiserver.requestinfo import RequestInfo

DORA = UserInfo("dora", ("system:authenticated",))
ON_NODE = UserInfo("system:serviceaccount:ns:agent", extra={"authentication.kubernetes.io/node-name": ("n1",)})
LIST_NODES = RequestInfo(True, "", "list", "", "v1", "", "nodes")
LIST_PODS = RequestInfo(True, "", "list", "", "v1", "", "pods")
VERSION = RequestInfo(False, "/version", "get")
MASTERS = "system:masters"
CONSTRAINED = {
    "impersonate-on:user-info:list nodes",
    "impersonate-on:arbitrary-node:list nodes",
    "impersonate:user-info users.authentication.k8s.io bob",
    "impersonate:user-info groups.authentication.k8s.io devs",
}
LEGACY = {"impersonate users bob", "impersonate groups devs", "impersonate serviceaccounts robot"}


def text(request: RequestInfo) -> str:
    """A right as the tests write it: verb, resource.group/subresource, name; verb and path of what is no resource."""
    if not request.is_resource_request:
        return f"{request.verb} {request.path}"
    resource = f"{request.resource}{'.' * bool(request.group)}{request.group}"
    return f"{request.verb} {resource}{'/' * bool(request.subresource)}{request.subresource} {request.name}".strip()


class Rights:
    """Allows what it was given, and keeps what was asked."""

    def __init__(self, *given: str) -> None:
        self.given = set(given)
        self.asked: list[str] = []

    async def check(self, user: UserInfo, request: RequestInfo) -> None:
        self.asked.append(text(request))
        if text(request) not in self.given:
            raise forbidden_request(user, request)


def answer(
    impersonator: Impersonator, asked: Impersonation, about: RequestInfo, user: UserInfo = DORA
) -> UserInfo | str:
    """The user, or the words of the refusal."""
    try:
        return asyncio.run(impersonator.user_of(asked, user, about))
    except StatusError as error:
        return error.message


@pytest.mark.parametrize(
    ("asked", "about", "message"),
    [
        (
            Impersonation("bob"),
            LIST_PODS,
            'pods is forbidden: User "dora" cannot impersonate-on:user-info:list resource',
        ),
        (Impersonation("bob"), VERSION, 'forbidden: User "dora" cannot impersonate-on:user-info:get path "/version"'),
        (
            Impersonation("bob", (MASTERS,)),
            LIST_NODES,
            'groups.authentication.k8s.io "system:masters" is forbidden: User "dora" cannot impersonate:user-info '
            'resource "groups" in API group "authentication.k8s.io" at the cluster scope: impersonating the '
            "system:masters group is not allowed",
        ),
        (
            Impersonation("bob", ("",)),
            LIST_NODES,
            'groups.authentication.k8s.io is forbidden: User "dora" cannot impersonate:user-info resource "groups" in '
            'API group "authentication.k8s.io" at the cluster scope: impersonating the empty string group is not '
            "allowed",
        ),
        (Impersonation("bob", ("a", "b", "c", "d")), LIST_NODES, 'groups.authentication.k8s.io "a" is forbidden'),
        (
            Impersonation("bob", extra={"a_ ": ("v",)}),
            LIST_NODES,
            'resource "userextras" in API group "authentication.k8s.io" at the cluster scope: impersonating an invalid '
            'key in extra is not allowed: extra.key: Invalid value: "a_ ": must be a domain-prefixed path (such as '
            '"acme.io/foo")',
        ),
        (
            Impersonation("bob", extra={"Ab/Ab": ("v",)}),
            LIST_NODES,
            'an invalid key in extra is not allowed: extra.key: Invalid value: "Ab": a lowercase RFC 1123 subdomain',
        ),
        (
            Impersonation("bob", extra={"": ("v",)}),
            LIST_NODES,
            "impersonating the empty string key in extra is not allowed",
        ),
        (
            Impersonation("bob", extra={"a/b": ("v",)}),
            LIST_NODES,
            'userextras.authentication.k8s.io "v" is forbidden: User "dora" cannot impersonate:user-info resource '
            '"userextras/a/b" in API group "authentication.k8s.io" at the cluster scope',
        ),
        (
            Impersonation("system:node:n1"),
            LIST_NODES,
            'nodes.authentication.k8s.io "n1" is forbidden: User "dora" cannot impersonate:arbitrary-node resource '
            '"nodes" in API group "authentication.k8s.io" at the cluster scope',
        ),
        (
            Impersonation("system:node:n1", ("x",)),
            LIST_NODES,
            'users "system:node:n1" is forbidden: User "dora" cannot impersonate resource "users" in API group "" at '
            "the cluster scope",
        ),
        (
            Impersonation("system:serviceaccount:A:b"),
            LIST_NODES,
            'users.authentication.k8s.io "system:serviceaccount:A:b" is forbidden: User "dora" cannot '
            'impersonate:user-info resource "users"',
        ),
    ],
)
def test_a_refusal_names_the_first_mode_that_applies(asked: Impersonation, about: RequestInfo, message: str) -> None:
    told = answer(Impersonator(Rights(*CONSTRAINED).check), asked, about)
    assert isinstance(told, str)
    assert message in told


def test_constrained_rights_hold_for_what_they_name_and_no_more() -> None:
    impersonator = Impersonator(Rights(*CONSTRAINED).check)
    assert answer(impersonator, Impersonation("bob"), LIST_NODES) == UserInfo("bob", ("system:authenticated",))
    assert isinstance(answer(impersonator, Impersonation("bob", ("devs",)), LIST_NODES), UserInfo)
    assert isinstance(answer(impersonator, Impersonation("bob"), LIST_PODS), str)
    assert isinstance(answer(impersonator, Impersonation("carol"), LIST_NODES), str)


def test_after_a_mode_was_granted_its_refusal_is_the_one_that_is_told() -> None:
    impersonator = Impersonator(Rights(*LEGACY).check)
    asked = Impersonation("carol")
    assert str(answer(impersonator, asked, LIST_PODS)).startswith(
        'pods is forbidden: User "dora" cannot impersonate-on:'
    )
    assert isinstance(answer(impersonator, Impersonation("bob"), LIST_PODS), UserInfo)
    assert str(answer(impersonator, asked, LIST_PODS)).startswith(
        'users "carol" is forbidden: User "dora" cannot imper'
    )


def test_the_legacy_mode_costs_one_question_a_part_once_it_was_granted() -> None:
    rights = Rights(*LEGACY)
    impersonator = Impersonator(rights.check)
    answer(impersonator, Impersonation("bob", ("devs",)), LIST_PODS)
    rights.asked.clear()
    answer(impersonator, Impersonation("bob", ("devs",)), LIST_PODS)
    assert rights.asked == ["impersonate users bob", "impersonate groups devs"]


def test_the_right_to_all_groups_is_asked_for_once_when_there_are_many() -> None:
    rights = Rights(*CONSTRAINED, "impersonate:user-info groups.authentication.k8s.io *")
    assert isinstance(answer(Impersonator(rights.check), Impersonation("bob", tuple("abcd")), LIST_NODES), UserInfo)
    assert isinstance(answer(Impersonator(rights.check), Impersonation("bob", tuple("abc")), LIST_NODES), str)


async def allow(user: UserInfo, request: RequestInfo) -> None:
    pass


@pytest.mark.parametrize(
    ("asked", "groups"),
    [
        (Impersonation("system:node:x"), ("system:nodes", "system:authenticated")),
        (Impersonation("system:node:x", ("a",)), ("a", "system:authenticated")),
        (Impersonation("bob", (MASTERS,)), (MASTERS, "system:authenticated")),
        (Impersonation("system:serviceaccount:a:b", ("x",)), ("x", "system:authenticated")),
        (
            Impersonation("system:serviceaccount:a:b"),
            ("system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"),
        ),
        (Impersonation("system:serviceaccount:A_:b"), ("system:authenticated",)),
        (Impersonation("system:anonymous"), ("system:unauthenticated",)),
        (Impersonation("bob", ("system:unauthenticated",)), ("system:unauthenticated",)),
    ],
)
def test_the_groups_of_whom_an_administrator_acts_as(asked: Impersonation, groups: tuple[str, ...]) -> None:
    user = answer(Impersonator(allow), asked, LIST_NODES)
    assert isinstance(user, UserInfo)
    assert user.groups == groups


def test_a_pods_token_may_be_its_own_node_by_a_right_to_any() -> None:
    rights = Rights(
        "impersonate-on:associated-node:list nodes", "impersonate:associated-node nodes.authentication.k8s.io *"
    )
    impersonator = Impersonator(rights.check)
    user = answer(impersonator, Impersonation("system:node:n1"), LIST_NODES, ON_NODE)
    assert user == UserInfo("system:node:n1", ("system:nodes", "system:authenticated"))
    assert isinstance(answer(impersonator, Impersonation("system:node:n2"), LIST_NODES, ON_NODE), str)
    assert isinstance(answer(impersonator, Impersonation("system:node:n1"), LIST_NODES), str)
