"""Check impersonation: whom a request asks to be (`Impersonate-*` headers), and whether it may.

Five modes are tried in turn: four constrained ones, which ask for the right to become that user *and* for the right to
do this one thing as such a user, then the legacy one, which asks for the verb `impersonate` alone.

Source: apiserver pkg/endpoints/filters/impersonation/{constrained_impersonation,mode}.go (KEP 5284, on since 1.36).
"""

import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING
from urllib.parse import unquote

from lastcall.kube.api.errors import StatusError, bad_request
from lastcall.kube.api.field import go_quote
from lastcall.kube.api.names import is_dns1123_label, is_dns1123_subdomain, regex_text
from lastcall.kube.apiserver.auth.authentication import (
    ALL_AUTHENTICATED,
    ALL_UNAUTHENTICATED,
    ANONYMOUS,
    MASTERS,
    NODE_USER,
    NODES_GROUP,
    UserInfo,
    forbidden_request,
)
from lastcall.kube.apiserver.auth.authorizer import aggregate
from lastcall.kube.apiserver.requestinfo import RequestInfo
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from multidict import MultiMapping


@dataclass(frozen=True, slots=True)
class Impersonation:
    """Whom a request asks to act as: its `Impersonate-*` headers."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)


def impersonation(headers: "MultiMapping[str]") -> Impersonation | None:
    """Return what is asked, None for nothing. Raises the 400 StatusError when a user's name is missing.

    What is not UTF-8 in a header is U+FFFD. (filters/impersonation.go:buildImpersonationRequests)
    """
    for name in headers:
        if name[:1] in "Ii" and name[:12].lower() == "impersonate-":
            break
    else:
        return None
    extra: dict[str, list[str]] = {}
    for name, value in headers.items():
        if name.lower().startswith(_EXTRA):
            extra.setdefault(unquote(_text(name).lower()[len(_EXTRA) :]), []).append(_text(value))
    asked = Impersonation(
        _text(headers.get("Impersonate-User", "")),
        tuple(_text(group) for group in headers.getall("Impersonate-Group", [])),
        _text(headers.get("Impersonate-Uid", "")),
        {key: tuple(values) for key, values in extra.items()},
    )
    if asked.name:
        return asked
    if asked == Impersonation(""):
        return None
    groups, more = _go_strings(asked.groups), ", ".join(f"{go_quote(k)}:{_go_strings(v)}" for k, v in extra.items())
    user = f'Name:"", UID:{go_quote(asked.uid)}, Groups:{groups}, Extra:map[string][]string'
    shown = f"&user.DefaultInfo{{{user}{f'{{{more}}}' if more else '(nil)'}}}"
    raise bad_request(f"requested {shown} without impersonating a user name")


_EXTRA = "impersonate-extra-"


def _text(header: str) -> str:
    """A header's value; its bytes that are not UTF-8 came as lone surrogates."""
    return header if header.isascii() else header.encode(errors="surrogateescape").decode(errors="replace")


def _go_strings(values: Sequence[str]) -> str:
    return "[]string{" + ", ".join(map(go_quote, values)) + "}" if values else "[]string(nil)"


Check = Callable[[UserInfo, RequestInfo], Awaitable[None]]
"""Raises the 403 StatusError when the user may not do this."""

_AUTHENTICATION = "authentication.k8s.io"
_MANY = 4
"""From so many groups or values on, the right to all of them is asked for first."""
_REMEMBERED_USERS = 10_000


class Impersonator:
    """Decides who a request acts as, by what `check` allows."""

    def __init__(self, check: Check) -> None:
        self._check = check
        self._last: OrderedDict[str, int] = OrderedDict()
        """User → the mode that was last granted: tried first, and its refusal is the one that the client gets."""

    async def user_of(self, asked: Impersonation, requestor: UserInfo, request: RequestInfo) -> UserInfo:
        """Return the user to act as. Raises the 403 StatusError of the first mode that refuses when none allows it."""
        first = self._last.get(requestor.name)
        order = sorted(range(len(MODES)), key=lambda index: index != first)
        refused: StatusError | None = None
        for index in order:
            mode = MODES[index]
            if not mode.applies(asked, requestor):
                continue
            try:
                for question in mode.questions(asked, requestor, request):
                    await self._answer(mode, asked, requestor, question)
            except StatusError as error:
                refused = refused or error
                continue
            self._remember(requestor.name, index)
            return mode.user(asked)
        assert refused is not None, "the legacy mode applies to all"
        raise refused

    def granted(self, requestor: UserInfo) -> str:
        """Return the name of the mode that was last granted to a user, "" for the legacy one."""
        return MODES[self._last[requestor.name]].name

    async def _answer(self, mode: "Mode", asked: Impersonation, requestor: UserInfo, question: "Question") -> None:
        """Raises the 403 StatusError when the answer is no."""
        if question.refusal:
            raise forbidden_request(requestor, question.request, question.refusal)
        if question.instead is not None:
            try:
                await self._check(requestor, question.instead)
            except StatusError:
                pass
            else:
                return
        for request in (question.request, *question.more):
            await self._check(requestor, request)

    def _remember(self, name: str, index: int) -> None:
        self._last[name] = index
        self._last.move_to_end(name)
        if len(self._last) > _REMEMBERED_USERS:
            self._last.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Question:
    """All of `request` and `more` must be allowed, or `instead` alone; a `refusal` is a no with its reason."""

    request: RequestInfo
    more: tuple[RequestInfo, ...] = ()
    instead: RequestInfo | None = None
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Mode:
    """One way to be allowed to impersonate a user. `name` is "" for the legacy one."""

    name: str
    applies: Callable[[Impersonation, UserInfo], bool]

    def questions(self, asked: Impersonation, requestor: UserInfo, request: RequestInfo) -> Iterator[Question]:
        """Yield what must be allowed, in the order in which it is asked."""
        if self.name:
            yield Question(request._replace(verb=f"impersonate-on:{self.name}:{request.verb}"))
        verb = f"impersonate:{self.name}" if self.name else "impersonate"
        of = RequestInfo(True, "", verb, _AUTHENTICATION, "v1", "", "", "")
        named = of if self.name else of._replace(group="")
        yield Question(self._who(asked, named))
        if asked.uid:
            yield Question(of._replace(resource="uids", name=asked.uid))
        if asked.groups:
            yield self._groups(asked.groups, named._replace(resource="groups"))
        if asked.extra:
            yield self._extra(asked.extra, of._replace(resource="userextras"))

    def _who(self, asked: Impersonation, of: RequestInfo) -> RequestInfo:
        if (account := service_account(asked.name)) is not None:
            return of._replace(namespace=account[0], resource="serviceaccounts", name=account[1])
        if self.name and (node := _node(asked.name)) is not None:
            # The node that a Pod runs on differs by Pod: a user that may be that node may be any node it is bound to.
            return of._replace(resource="nodes", name="*" if self.name == "associated-node" else node)
        return of._replace(resource="users", name=asked.name)

    def _groups(self, groups: Sequence[str], of: RequestInfo) -> Question:
        each = tuple(of._replace(name=group) for group in groups)
        if not self.name:
            return Question(each[0], each[1:])
        if "" in groups:
            return Question(of, refusal="impersonating the empty string group is not allowed")
        if MASTERS in groups:
            refusal = f"impersonating the {MASTERS} group is not allowed"
            return Question(of._replace(name=MASTERS), refusal=refusal)
        return Question(each[0], each[1:], of._replace(name="*") if len(each) >= _MANY else None)

    def _extra(self, extra: Mapping[str, Sequence[str]], of: RequestInfo) -> Question:
        each = tuple(of._replace(subresource=key, name=value) for key, values in extra.items() for value in values)
        if not self.name:
            return Question(each[0], each[1:])
        for key, values in extra.items():
            problem = _key_problem(key) or ("the empty string value in extra is not allowed" if "" in values else "")
            if problem:
                return Question(of, refusal=f"impersonating {problem}")
        many = of._replace(subresource="*", name="*") if len(each) >= _MANY else None
        return Question(each[0], each[1:], many)

    def user(self, asked: Impersonation) -> UserInfo:
        """Return the user that the request acts as from here on."""
        groups = asked.groups
        if self.name.endswith("-node"):
            groups = (NODES_GROUP,)
        elif not groups and (account := service_account(asked.name)) is not None:
            groups = ("system:serviceaccounts", f"system:serviceaccounts:{account[0]}")
        if asked.name == ANONYMOUS.name:
            everybody = ALL_UNAUTHENTICATED
        elif ALL_UNAUTHENTICATED in groups:
            everybody = ""
        else:
            everybody = ALL_AUTHENTICATED
        if everybody and everybody not in groups:
            groups = (*groups, everybody)
        return UserInfo(asked.name, groups, asked.uid, asked.extra)


def service_account(user: str) -> tuple[str, str] | None:
    """Return (namespace, name) of a ServiceAccount's user name, None for any other (serviceaccount.SplitUsername)."""
    if not user.startswith(_ACCOUNT):
        return None
    namespace, separator, name = user[len(_ACCOUNT) :].partition(":")
    if not separator or is_dns1123_label(namespace) or is_dns1123_subdomain(name):
        return None
    return namespace, name


def _key_problem(key: str) -> str:
    """Why extra of this name is refused, "" when it is not (mode.go:validateExtra, validation.IsDomainPrefixedPath)."""
    domain, _, path = key.partition("/")
    if not key:
        return "the empty string key in extra is not allowed"
    if not domain or not path:
        texts = [f'Invalid value: {go_quote(key)}: must be a domain-prefixed path (such as "acme.io/foo")']
    else:
        texts = [f"Invalid value: {go_quote(domain)}: {problem}" for problem in is_dns1123_subdomain(domain)]
        if not re.fullmatch(_PATH, path):
            texts.append(f"Invalid value: {go_quote(path)}: {regex_text('Invalid path', _PATH)}")
    if texts:
        return f"an invalid key in extra is not allowed: {aggregate([f'extra.key: {text}' for text in texts])}"
    return f"a non-lowercase key in extra is not allowed: {go_quote(key)}" if key != key.lower() else ""


_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_ACCOUNT = "system:serviceaccount:"
_NODE_NAME = "authentication.kubernetes.io/node-name"


def _node(user: str) -> str | None:
    """The node of a node's user name, None for any other."""
    name = user[len(NODE_USER) :] if user.startswith(NODE_USER) else ""
    return name if name and not is_dns1123_subdomain(name) else None


def _only_a_name(asked: Impersonation) -> bool:
    return not (asked.uid or asked.groups or asked.extra)


def _on_its_node(asked: Impersonation, requestor: UserInfo) -> bool:
    """Whether a ServiceAccount's token, bound to a Pod, asks to be the node of that Pod."""
    if not _only_a_name(asked) or (node := _node(asked.name)) is None or service_account(requestor.name) is None:
        return False
    return list(requestor.extra.get(_NODE_NAME, ())) == [node]


MODES = (
    Mode("associated-node", _on_its_node),
    Mode("arbitrary-node", lambda asked, _: _only_a_name(asked) and _node(asked.name) is not None),
    Mode("serviceaccount", lambda asked, _: _only_a_name(asked) and service_account(asked.name) is not None),
    Mode("user-info", lambda asked, _: _node(asked.name) is None and service_account(asked.name) is None),
    Mode("", lambda *_: True),
)
