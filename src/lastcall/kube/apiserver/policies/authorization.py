"""`authorizer`: expressions ask it at once, the server's authorizer answers when it can.

What an expression asks and nobody has answered raises `Undecided`; the caller has the answer then and starts again.
"""

from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.auth.authorizer import Authorizer
from lastcall.kube.apiserver.proxying.webhooks.matching import Write
from lastcall.kube.apiserver.requestinfo import RequestInfo
from lastcall.kube.cel.libraries import authz
from lastcall.kube.cel.libraries.authz import Decision, Question

SERVICE_ACCOUNTS = "system:serviceaccounts"


class Undecided(BaseException):
    """No error of an expression: nothing in it may absorb this."""

    def __init__(self, user: UserInfo, question: Question) -> None:
        super().__init__(question)
        self.user, self.question = user, question


class Asked:
    """What was asked about one request, and what the answers were."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, Question], Decision] = {}

    def decision(self, user: UserInfo, question: Question) -> Decision:
        """Return the decision. Raises Undecided."""
        found = self._known.get((user.name, question))
        if found is None:
            raise Undecided(user, question)
        return found

    async def ask(self, authorizer: Authorizer, undecided: Undecided) -> None:
        """Ask the server's authorizer what was undecided."""
        user, question = undecided.user, undecided.question
        decided = await authorizer.authorize(user, request_of(question))
        self._known[user.name, question] = Decision(decided.allowed, decided.reason)


def request_of(question: Question) -> RequestInfo:
    if question.path:
        return RequestInfo(False, question.path, question.verb)
    return RequestInfo(
        True,
        "",
        question.verb,
        group=question.group,
        version="*",
        namespace=question.namespace,
        resource=question.resource,
        name=question.name,
        subresource=question.subresource,
        field_selector=question.field_selector,
    )


class _Of:
    """The authorizer for one user. (`lastcall.kube.cel.libraries.authz.Asked`)"""

    def __init__(self, user: UserInfo, asked: Asked) -> None:
        self._user, self._asked = user, asked

    def authorize(self, question: Question) -> Decision:
        return self._asked.decision(self._user, question)

    def service_account(self, namespace: str, name: str) -> "_Of":
        user = f"system:serviceaccount:{namespace}:{name}"
        groups = (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}")
        return _Of(UserInfo(user, groups=groups), self._asked)


def user_authorizer(user: UserInfo, asked: Asked) -> authz.Authorizer:
    """Return the variable `authorizer`."""
    return authz.Authorizer(_Of(user, asked))


def write_authorizer(user: UserInfo, write: Write, asked: Asked) -> authz.ResourceCheck:
    """Return the variable `authorizer.requestResource`."""
    question = Question(
        "",
        group=write.resource.group,
        resource=write.resource.plural,
        subresource=write.subresource,
        namespace=write.namespace,
        name=write.name,
    )
    return authz.ResourceCheck(_Of(user, asked), question)
