"""Declare the options of commands that talk to an existing cluster, with kubectl's names and meanings."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

from lastcall.cli.options import Seconds, checked_namespace
from lastcall.contexts import REQUEST_SECONDS, ContextOptions
from lastcall.kube.client import Impersonation

F = TypeVar("F", bound=Callable[..., Any])


class _UserExtra(click.ParamType):  # type: ignore[type-arg]
    name = "KEY=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        key, equals, text = str(value).partition("=")
        if not key or not equals:
            self.fail(f"{value!r} is not KEY=VALUE: write scopes=view", param, ctx)
        return key, text


def context_options(*, namespace: bool = True, without: tuple[str, ...] = ()) -> Callable[[F], F]:
    """Add the context options, which reach the function as one argument, `asked: ContextOptions`.

    `without` are those that the command has in another sense, by their names without dashes (`request-timeout`). A
    command without `namespace` works on all of them, or has an option of its own.
    """
    left_out = {*without, *(() if namespace else ("namespace",))}

    def decorate(function: F) -> F:
        @wraps(function)
        def call(*arguments: Any, **values: Any) -> Any:
            # What is left out is the command's own option of that name, and stays its own.
            found = {name: None if name.replace("_", "-") in left_out else values.pop(name, None) for name in _NAMES}
            asked = ContextOptions(
                kubeconfig=found["kubeconfig"] or "",
                context=found["context"] or "",
                namespace=found["namespace"] or "",
                impersonate=Impersonation(
                    found["as_user"] or "",
                    tuple(found["as_group"] or ()),
                    found["as_uid"] or "",
                    tuple(found["as_user_extra"] or ()),
                ),
                request_timeout=REQUEST_SECONDS if found["request_timeout"] is None else found["request_timeout"],
                insecure_skip_tls_verify=bool(found["insecure_skip_tls_verify"]),
            )
            return function(*arguments, asked=asked, **values)

        for name, option in reversed(_options().items()):
            if name not in left_out:
                option(call)
        return call  # type: ignore[return-value]  # click changes what the function takes

    return decorate


def leader_elect_option(lease: str) -> Callable[[F], F]:
    """Return `--leader-elect`, as components of Kubernetes have it, for the Lease kube-system/`lease`."""
    return click.option(
        "--leader-elect/--no-leader-elect",
        default=True,
        show_default=True,
        help=f"Of several processes, only the holder of the Lease kube-system/{lease} acts.",
    )


_NAMES = (
    "kubeconfig",
    "context",
    "namespace",
    "as_user",
    "as_group",
    "as_uid",
    "as_user_extra",
    "request_timeout",
    "insecure_skip_tls_verify",
)


def _options() -> dict[str, Callable[[Any], Any]]:
    return {
        "kubeconfig": click.option(
            "--kubeconfig",
            metavar="FILE",
            default="",
            help="Kubeconfig of the cluster.  [default: $KUBECONFIG, or ~/.kube/config]",
        ),
        "context": click.option(
            "--context",
            metavar="NAME",
            default="",
            help="Context of the kubeconfig to use.  [default: the current one]",
        ),
        "namespace": click.option(
            "--namespace",
            "-n",
            metavar="NAMESPACE",
            default="",
            callback=_namespace,
            help="Namespace to work in.  [default: the context's]",
        ),
        "as": click.option("--as", "as_user", metavar="USER", default="", help="User to impersonate."),
        "as-group": click.option(
            "--as-group", metavar="GROUP", multiple=True, help="Group to impersonate. Repeatable."
        ),
        "as-uid": click.option("--as-uid", metavar="UID", default="", help="UID to impersonate."),
        "as-user-extra": click.option(
            "--as-user-extra",
            type=_UserExtra(),
            multiple=True,
            help="Extra field of the user to impersonate. Repeatable.",
        ),
        "request-timeout": click.option(
            "--request-timeout",
            type=Seconds(least=0),
            metavar="TIME",
            default=f"{REQUEST_SECONDS:g}s",
            show_default=True,
            help="How long one request may take, watches excepted; 0 for no limit.",
        ),
        "insecure-skip-tls-verify": click.option(
            "--insecure-skip-tls-verify",
            is_flag=True,
            help="Do not check the server's certificate: any server that answers gets the credentials.",
        ),
    }


def _namespace(context: click.Context, parameter: click.Parameter, value: str) -> str:
    return checked_namespace(context, parameter, value) if value else ""
